import subprocess
import sys

import psutil
import pytest

from core.jobs import process
from core.jobs.process import Process

SLEEPER = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)")


@pytest.fixture
def sleeper():
    child = subprocess.Popen(SLEEPER, stdout=subprocess.PIPE)
    child.stdout.readline()
    yield child
    child.kill()
    child.communicate()


def test_the_asking_process_is_alive():
    assert process.this().alive


def test_a_number_that_went_to_another_process_is_not_the_process():
    assert not Process(pid=process.this().pid, created=process.this().created - 3600).alive


def test_a_process_that_ended_but_was_not_buried_is_dead(sleeper):
    mark = process.of(sleeper.pid)
    assert mark.alive
    sleeper.kill()
    psutil.Process(sleeper.pid)  # its entry is still there
    mark.kill()
    assert not mark.alive


def test_a_kill_ends_the_process_and_is_no_error_afterwards(sleeper):
    mark = process.of(sleeper.pid)
    mark.kill()
    assert not mark.alive
    sleeper.wait()
    mark.kill()
    assert not mark.alive


def test_a_process_that_may_not_be_looked_at_counts_as_alive_and_cannot_be_killed(monkeypatch, sleeper):
    def deny(self):
        raise psutil.AccessDenied(self.pid)

    mark = process.of(sleeper.pid)
    monkeypatch.setattr(psutil.Process, "kill", deny)
    with pytest.raises(PermissionError):
        mark.kill()
    monkeypatch.setattr(psutil.Process, "create_time", deny)
    assert mark.alive


def test_there_is_no_process_with_a_number_that_nobody_has(sleeper):
    sleeper.kill()
    sleeper.wait()
    with pytest.raises(psutil.NoSuchProcess):
        process.of(sleeper.pid)
