"""Lessons with real processes: given by the real worker, asked by the command line, stopped and killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.jobs import client
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import Queue
from core.question.demonstrations import Demonstration
from core.question.experiment import Contender
from core.results import exhibits
from core.results.exhibits import Clock, Moving
from core.results.store import Store
from tests.exhibited import DIGITS
from tests.integration.following import until
from tests.integration.scripted_worker import COMMAND, DEAF, UNTIL_RELEASED, demonstration

ONE = (Contender(threads=1),)


@pytest.fixture
def queue(tmp_path: Path, monkeypatch):
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    queue = Queue(tmp_path / "jobs")
    yield queue
    queue.worker_file.dismiss()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def test_the_worker_gives_lessons_and_the_command_line_finds_them(queue, store):
    asked = Demonstration(kind="clock", point=DIGITS, contenders=ONE, budget_s=600, recipes=("no_drain", "fashion-cnn"))
    jobs = [queue.submit(each, store) for each in (asked, Demonstration(kind="moving", contenders=ONE))]
    phases = []
    clock, moving = (client.follow_job(queue, job.id, lambda now: phases.append(now.progress)) for job in jobs)
    assert [(job.state, job.message) for job in (clock, moving)] == [("finished", ""), ("finished", "")]
    assert any(progress and progress.phase == "timing blocks on 1 CPU thread" for progress in phases)
    shown = client.exhibit(queue, clock)
    assert isinstance(shown.content, Clock)
    assert [variant.name for variant in shown.content.variants] == ["ours", "no_drain", "fashion-cnn"]
    assert isinstance(client.exhibit(queue, moving).content, Moving)
    assert {entry.id for entry in exhibits.read_exhibits(store.folder)[0]} == {clock.exhibit_id, moving.exhibit_id}

    done = subprocess.run(
        [sys.executable, "-m", "core", "lesson", "moving", "--devices", "cpu@1", "--store", store.folder, "--json"],
        cwd=client.START_FOLDER,
        env={**os.environ, "CROSSOVER_JOBS": str(queue.folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(done.stdout)
    assert (document["id"], document["from_store"]) == (moving.exhibit_id, True)


@pytest.fixture
def showing(queue, store, monkeypatch):
    """A lesson that goes on until it is stopped."""
    monkeypatch.setattr(client, "COMMAND", COMMAND)

    def show(script: int):
        job = queue.submit(demonstration(script), store)
        client.ensure_worker(queue)
        return until(lambda: queue.job(job.id), lambda now: now.progress and now.progress.phase == "showing")

    return show


@pytest.mark.parametrize("script", [UNTIL_RELEASED, DEAF], ids=["heeds", "is deaf"])
def test_a_lesson_is_stopped_whether_it_heeds_or_not(queue, store, showing, script):
    stopped = client.stop(queue, showing(script).id)
    assert (stopped.state, stopped.message) == ("stopped", "Stopped before it was done.")
    assert exhibits.read_exhibits(store.folder) == ([], ())


def test_a_killed_lesson_has_crashed_and_can_be_asked_again(queue, store, showing):
    job = showing(UNTIL_RELEASED)
    job.worker.kill(queue.worker_file.serves)
    crashed = queue.job(job.id)
    assert (crashed.state, crashed.message) == ("crashed", "The measuring process was killed before it was done.")
    (queue.folder / "release").touch()
    again = queue.submit(job.demonstration, store)
    assert client.follow_job(queue, again.id, lambda _: None).state == "finished"
