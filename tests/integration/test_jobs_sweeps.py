"""Sweeps with real processes: killed at random moments, stopped, and one that really trains."""

import itertools
import random
from pathlib import Path

import pytest

from core.answer import speedup
from core.jobs import client
from core.jobs.job import Job
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import Queue
from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from core.results import environment
from core.results.store import Store
from tests import brief
from tests.integration import scripted_worker
from tests.integration.following import ended, kill, measuring, until, watched
from tests.integration.scripted_worker import COMMAND, RELEASE, UNTIL_RELEASED, sweep

SIZES = (8, 16, 32, 64, 128, 256)


@pytest.fixture
def queue(tmp_path: Path, monkeypatch):
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    queue = Queue(tmp_path / "jobs")
    yield queue
    queue.worker_file.dismiss()


@pytest.fixture
def scripted(monkeypatch) -> None:
    monkeypatch.setattr(client, "COMMAND", COMMAND)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def submit(queue: Queue, store: Store, asked: Sweep) -> Job:
    job = queue.submit(asked, store)
    client.ensure_worker(queue)
    return job


def begun(job: Job) -> list[int]:
    """Hidden sizes that the job began to measure, in order."""
    notes = [note.split() for note in scripted_worker.journal().read_text().splitlines()]
    return [int(size) for _, what, job_id, *sizes in notes if (what, job_id) == ("begin", job.id) for size in sizes]


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_sweep_that_is_killed_again_and_again_ends_with_the_rows_of_an_undisturbed_one(queue, store, seed):
    asked, moments = sweep(sizes=SIZES), random.Random(seed)
    for _ in range(3):
        before = {row.hidden_size for row in store.trials() if row.outcome == "timed"}
        job = submit(queue, store, asked)
        share = moments.choice((0.1, 0.5, 0.9, 0.98))
        running = until(
            lambda job=job: client.watch(queue, job.id),
            lambda job, share=share: not job.active or bool(job.progress and job.progress.share >= share),
        )
        if running.active:
            kill(running.worker.pid)
        over = watched(queue, job, ended)
        assert over.state in ("crashed", "finished")
        assert not before & set(begun(job)), "what was saved is not measured again"
    done = watched(queue, submit(queue, store, asked), ended)
    assert (done.state, done.message) == ("finished", "")
    rows = client.load_job_rows(queue, done)
    assert [(row.hidden_size, row.contender) for row in rows] == list(itertools.product(SIZES, ("cpu@1", "cpu")))
    assert {row.outcome for row in rows} == {"timed"}
    whole = [row for row in store.trials() if row.outcome != "interrupted"]
    assert sorted(whole, key=lambda row: row.trial_id) == sorted(rows, key=lambda row: row.trial_id)


@pytest.mark.usefixtures("scripted")
def test_a_point_in_which_a_sweep_was_killed_is_measured_anew(queue, store):
    asked = sweep(UNTIL_RELEASED, sizes=(8, 16))
    job = submit(queue, store, asked)
    kill(watched(queue, job, measuring).worker.pid)
    crashed = watched(queue, job, ended)
    clause = "0 of 2 points are saved, and 1 in part"
    assert crashed.message == f"The measuring process was killed: {clause}; run it again to continue."
    assert {row.outcome for row in store.trials()} == {"interrupted"}

    again = submit(queue, store, asked)
    (queue.folder / RELEASE).touch()
    done = watched(queue, again, ended)
    assert done.state == "finished"
    assert crashed.run_id not in done.run_ids
    assert {row.outcome for row in client.load_job_rows(queue, done)} == {"completed"}


@pytest.mark.usefixtures("scripted")
def test_a_running_sweep_is_joined_and_stopped_and_says_what_is_saved(queue, store):
    asked = sweep(UNTIL_RELEASED, sizes=(8, 16))
    job = submit(queue, store, asked)
    watched(queue, job, measuring)
    assert submit(queue, store, asked).id == job.id
    stopped = client.stop(queue, job.id)
    assert (stopped.state, stopped.message[:32]) == ("stopped", "Stopped: 0 of 2 points are saved")
    assert {row.outcome for row in client.load_job_rows(queue, stopped)} == {"stopped"}


def test_a_sweep_really_trains_each_point_for_its_times_and_then_answers_from_the_store(queue, store, monkeypatch):
    monkeypatch.setattr(client, "COMMAND", brief.COMMAND)
    contenders = (Contender(threads=1), Contender())[: environment.usable_cores()]
    point = Point(dataset="digits", samples=300, depth=1, batch_size=50, epochs=3)
    axis = Axis(name="hidden_size", values=(8, 64))
    asked = Sweep(point=point, axes=(axis,), contenders=contenders, pairs=2, point_budget_s=600)
    done = client.follow_job(queue, submit(queue, store, asked).id, lambda _: None)
    assert (done.state, done.message) == ("finished", "")
    rows = client.load_job_rows(queue, done)
    assert [row.hidden_size for row in rows[:: len(contenders)]] == [8, 64]
    assert {(row.outcome, len(row.block_pair), row.epoch_check_s, row.predictions) for row in rows} == {
        ("timed", 2, None, b"")
    }
    assert all(row.breakdown_forward_s for row in rows)
    blocks = sorted((begin, row.hidden_size) for row in rows for begin in row.block_begin_ns)
    turns = [size for size, _ in itertools.groupby(size for _, size in blocks)]
    assert len(turns) > 2, "sizes take turns"
    again = client.follow_job(queue, submit(queue, store, asked).id, lambda _: None)
    by_size = [[row for row in rows if row.hidden_size == size] for size in axis.values]
    answered = [
        each
        for each, point in zip(by_size, asked.points, strict=True)
        if speedup.answers_experiment(asked.experiment(point), each)
    ]
    assert set(again.trial_ids) & set(done.trial_ids) == {row.trial_id for each in answered for row in each}, (
        "a busy machine's answer is measured again"
    )
    if len(answered) == len(by_size):
        assert client.load_job_rows(queue, again) == rows
