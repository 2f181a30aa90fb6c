"""The credentials of a shared store stay in the environment: no file, row, script, object or command line has them."""

import os
from pathlib import Path

import psutil
import pytest

from core.answer.export import script
from core.jobs.shared import board
from core.jobs.shared.board import Question
from core.remote import local_cache
from core.results import index
from core.results.store import Store
from tests import nodes, objects
from tests.integration.following import until
from tests.integration.scripted_worker import sweep
from tests.nodes import Node

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


def command_lines(of: Node) -> list[str]:
    """Those of the processes of a machine."""
    mine = str(of.folder / "jobs")
    lines = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("CROSSOVER_JOBS") == mine:
                lines.append(" ".join(process.cmdline()))
        except (psutil.Error, OSError):
            continue
    return lines


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the environment of other processes is not read there")
def test_credentials_are_in_no_job_log_row_script_object_or_command_line(address, tmp_path, monkeypatch):
    monkeypatch.setenv(local_cache.CACHES_VARIABLE, str(tmp_path / "asker"))
    folder = local_cache.resolve_store(address)
    at = board.board_of(folder)
    question = Question(sweep=sweep(sizes=(8, 16)), spread="everywhere")
    node = Node(tmp_path / "node", address)
    with nodes.ended([node]):
        at.ask(question)
        until(lambda: at.ends(question.id), bool)
        lines = command_lines(node)
    index.list_files(folder, now=True)
    trials = Store(folder).trials()
    assert len(trials) == 4
    assert len(lines) >= 2
    assert not has_secret(" ".join(lines).encode())
    assert told_by(tmp_path) == []
    assert [name for name in at.place.names() if has_secret(at.place.read(name, 2**20) or b"")] == []
    assert not has_secret(repr(trials).encode())
    assert not has_secret(script.training_script(trials[:2]).encode())
