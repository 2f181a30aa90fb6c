"""The credentials of a shared store stay in the environment: no file, row, script, object or command line has them."""

import os
from pathlib import Path

import pytest

from core.answer.export import run_files
from core.jobs import client
from core.jobs.queue import Queue
from core.remote.remote_store import RemoteStore
from core.results.store import Store
from tests import nodes, objects
from tests.integration.scripted_worker import COMMAND, sweep

SECRET = "hunter2hunter2"
KEY = "AKIAHUNTER2"


@pytest.fixture
def address(monkeypatch):
    """A store; the server takes any credentials."""
    for name, value in objects.KEYS.items():
        monkeypatch.setenv(name, value)
    with objects.served() as server:
        address = server.address()
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
        monkeypatch.setenv("AWS_SESSION_TOKEN", SECRET)
        yield address


def has_secret(data: bytes) -> bool:
    return SECRET.encode() in data or KEY.encode() in data


def told_by(folder: Path) -> list[Path]:
    """Files that have a secret."""
    return [path for path in folder.rglob("*") if path.is_file() and has_secret(path.read_bytes())]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the environment of other processes is not read there")
def test_credentials_are_in_no_job_log_row_script_object_or_command_line(address, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "COMMAND", COMMAND)
    for name, value in nodes.surroundings(tmp_path).items():
        monkeypatch.setenv(name, value)
    store, queue = Store(address), Queue()
    try:
        trials = client.run(sweep(sizes=(8, 16)), store, queue)
        lines = [" ".join(process.cmdline()) for process in nodes.find_processes(tmp_path)]
    finally:
        queue.worker_file.dismiss()
    remote = RemoteStore(address)
    names = remote.list_files()
    assert len(trials) == 4
    assert len(lines) >= 1
    assert not has_secret(" ".join(lines).encode())
    assert told_by(tmp_path) == []
    assert names
    assert [name for name in names if has_secret(remote.read_file(name))] == []
    assert not has_secret(repr(trials).encode())
    assert not has_secret(run_files.training_script(trials[:2]).encode())
