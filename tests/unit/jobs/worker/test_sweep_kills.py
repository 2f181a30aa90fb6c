"""What a kill of the measuring process at any moment leaves behind, and how the sweep goes on."""

import dataclasses

import pytest

from core.files import documents
from core.jobs import client, process, recovery
from core.jobs.job import Job, JobFolder
from core.jobs.process import Process
from core.jobs.queue import Queue
from core.jobs.worker.reporter import Reporter
from core.question.experiment import Experiment, Point
from core.question.sweep import Sweep
from core.results.store import CUT_OFF, Store
from tests.integration.scripted_worker import sweep, timed
from tests.unit.jobs.worker.killed import Killed, die
from tests.unit.jobs.worker.points import SIZES, TWO, Bench, cut_off, runs, sizes

PARTS = (
    (Store, "add_all"),
    (JobFolder, "keep_unsaved"),
    (JobFolder, "drop_rows"),
    (JobFolder, "keep_partial"),
    (JobFolder, "write"),
    (Reporter, "save"),
    (recovery, "save"),
    (documents, "flush_folder"),
    (Queue, "end"),
)
"""What writes, or says that something is to be written."""

THE_SAME = {(recovery, "save", False), (Reporter, "save", True)}
"""Moments at which just as much is written as at others: before the reporter saves, and after rows are dropped."""

MOMENTS = [
    pytest.param(owner, name, call, after, id=f"{owner.__name__}-{name}-{call}-{'after' if after else 'before'}")
    for owner, name in PARTS
    for call in ((1,) if name == "end" else (1, 2, 4))
    for after in (False, True)
    if (owner, name, after) not in THE_SAME
]


@pytest.mark.slow
@pytest.mark.parametrize(("owner", "name", "call", "after"), MOMENTS)
def test_a_kill_at_any_moment_loses_nothing_and_nothing_is_kept_twice(
    queue, store, serve, dead, owner, name, call, after
):
    asked = sweep(sizes=SIZES, pairs=3)
    job = queue.submit(asked, store)
    with pytest.MonkeyPatch.context() as patch:
        die(owner, name, call=call, after=after, monkeypatch=patch)
        with pytest.raises(Killed):
            serve(Bench())
    crashed = _bury(queue, job, dead)
    kept, shown = set(runs(store.trials())), client.load_job_rows(queue, crashed)
    assert kept == {row.hidden_size for row in shown if row.outcome == "timed"}
    assert len({row.trial_id for row in shown}) == len(shown)
    if crashed.state == "crashed":
        clause = f"{len(kept)} of 4 points {'is' if len(kept) == 1 else 'are'} saved"
        clause += f", and {len(cut_off(shown))} in part" if cut_off(shown) else ""
        assert crashed.message == f"The measuring process was killed: {clause}; run it again to continue."
        complete = len(cut_off(shown)) + len(kept) == 4
        assert complete or name in ("write", "keep_partial", "flush_folder"), "only the first visits may be lost"

    job, bench = queue.submit(asked, store), Bench()
    serve(bench)
    assert bench.measured == [size for size in SIZES if size not in kept]
    rows = client.load_job_rows(queue, queue.job(job.id))
    assert sizes(rows) == list(SIZES)
    assert {row.outcome for row in rows} == {"timed"}
    stored = store.trials()
    assert all(len(found) == 1 for found in runs(stored).values())
    assert len(stored) == 8 + sum(row.outcome in CUT_OFF for row in shown)


def _bury(queue: Queue, job: Job, dead: Process) -> Job:
    """The job as others see it when the process that measured it is gone."""
    now = queue.files(job.id).read()
    if now.active:
        queue.files(job.id).write(dataclasses.replace(now, worker=dead))
    return Queue(queue.folder).job(job.id)


@pytest.mark.slow
def test_a_sweep_that_was_killed_shows_what_was_saved_of_each_point(queue, store, serve, visits, dead):
    def die(size):
        if len(visits.log) == 12:
            raise Killed

    visits.then = die
    job = queue.submit(sweep(sizes=TWO), store)
    with pytest.raises(Killed):
        serve(Bench())
    crashed, (first, last) = _bury(queue, job, dead), [size for size, _ in visits.log[-2:]]
    clause = "1 of 2 points is saved, and 1 in part"
    assert crashed.message == f"The measuring process was killed: {clause}; run it again to continue."
    assert (set(runs(store.trials())), cut_off(client.load_job_rows(queue, crashed))) == ({first}, {last: {5}})
    assert {row.message for row in store.trials() if row.outcome == "interrupted"} == {
        "The measuring process was killed."
    }


def test_the_same_sweep_again_does_not_join_one_whose_process_is_dead(queue, store, serve, dead):
    job = queue.submit(sweep(sizes=TWO), store)
    queue.claim(dead)
    again = Queue(queue.folder).submit(sweep(sizes=TWO), store)
    assert again.id != job.id
    assert queue.job(job.id).state == "crashed"


def test_rows_of_a_dead_sweep_reach_the_store_before_another_takes_its_turn(queue, store, serve, dead):
    job, other = queue.submit(sweep(sizes=TWO), store), queue.submit(sweep(sizes=SIZES), store)
    queue.claim(dead)
    queue.files(job.id).keep_unsaved(timed(job.sweep.experiment(job.sweep.points[0]), "a" * 12))
    assert queue.claim(process.current_process()).id == other.id
    assert sizes(store.trials()) == [8]


def test_a_sweep_is_the_only_thing_that_a_sweeps_file_can_be(queue, store):
    job = queue.submit(sweep(sizes=TWO), store)
    assert isinstance(job.question, Sweep)
    assert (job.experiment, job.sweep) == (None, sweep(sizes=TWO))
    assert Queue(queue.folder).job(job.id) == job
    assert queue.submit(sweep(sizes=TWO), store).id == job.id
    assert queue.submit(sweep(sizes=TWO, budget_s=30), store).id != job.id
    assert queue.submit(Experiment(point=Point()), store).sweep is None
