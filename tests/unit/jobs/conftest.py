"""A queue and a store of its own for each test, and no lock shared with a real measurement."""

import subprocess
import sys
from pathlib import Path

import pytest

from core.jobs import process
from core.jobs.job import Job
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.process import Process
from core.jobs.queue import Queue
from core.results.store import Store
from tests.unit.jobs.under_way import EXPERIMENT, ME


@pytest.fixture(autouse=True)
def machine_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "machine.lock"
    monkeypatch.setenv(LOCK_VARIABLE, str(path))
    return path


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path / "jobs")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


@pytest.fixture(scope="session")
def dead() -> Process:
    """A process that ran once."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mark = process.process_from_pid(child.pid)
    child.communicate(b"\n")
    return mark


@pytest.fixture
def running(queue: Queue, store: Store) -> Job:
    queue.submit(EXPERIMENT, store)
    return queue.claim(ME)
