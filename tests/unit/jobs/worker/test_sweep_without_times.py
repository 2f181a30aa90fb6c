"""Points of a sweep that do not fit, fail, are too slow or come too late: said, and left out."""

import dataclasses

import pytest

from core.jobs import client
from core.jobs.worker.reporter import Reporter
from core.jobs.worker.sweep import time
from core.question.experiment import Experiment
from core.results.schema import Trial
from tests.integration.scripted_worker import sweep
from tests.unit.jobs.worker.points import SIZES, TWO, Bench, Measure, full, instant, nothing, sizes


def failing(experiment: Experiment, record: Reporter) -> list[Trial]:
    """The lane of the first contender fails."""
    return full(experiment, record, outcome="interrupted", message="cpu@1 failed: RuntimeError: No compiler.")


def negative(experiment: Experiment, record: Reporter) -> list[Trial]:
    """The row of the first contender holds what no reader takes."""
    first, second = instant(experiment, record)
    return [dataclasses.replace(first, busy_step_s=(-1e-6,)), second]


def slow(seconds: float) -> Measure:
    def measure(experiment: Experiment, record: Reporter) -> list[Trial]:
        rows = instant(experiment, record)
        return [dataclasses.replace(row, **_blocks(row, seconds)) for row in rows]

    return measure


def _blocks(row: Trial, step_s: float) -> dict[str, tuple[int, ...]]:
    ends = [
        begin + round(steps * step_s * 1e9) for begin, steps in zip(row.block_begin_ns, row.block_steps, strict=True)
    ]
    return {"block_end_ns": tuple(ends)}


# Points without times


@pytest.mark.slow
def test_a_point_that_does_not_fit_is_kept_noted_and_the_sweep_goes_on(queue, store, serve):
    job, bench = queue.submit(sweep(sizes=SIZES), store), Bench(_16=full)
    serve(bench)
    done = queue.job(job.id)
    assert bench.measured == [8, 16, 16, 32, 64], "it is tried again once nothing else takes memory"
    assert (done.state, done.message) == ("finished", "1 point did not fit into memory.")
    assert done.progress.sweep.notes == ("Hidden size 16 did not fit into the memory of cpu@1.",)
    assert [row.outcome for row in client.load_job_rows(queue, done)][2:4] == ["out_of_memory", "timed"]
    again, bench = queue.submit(sweep(sizes=SIZES), store), Bench()
    serve(bench)
    assert bench.measured == []
    assert queue.job(again.id).message == done.message


@pytest.mark.slow
def test_a_lane_that_fails_is_noted_said_once_and_not_tried_again(queue, store, serve):
    job = queue.submit(sweep(sizes=SIZES), store)
    serve(Bench(_16=failing, _32=failing))
    done = queue.job(job.id)
    assert (done.state, done.complete) == ("finished", False)
    assert done.message == "cpu@1 failed: RuntimeError: No compiler."
    assert sorted(done.progress.sweep.notes) == [f"Hidden size {size}: {done.message}" for size in (16, 32)]
    assert len(client.load_job_rows(queue, done)) == 2 * len(SIZES)
    again, bench = queue.submit(sweep(sizes=SIZES), store), Bench()
    serve(bench)
    assert (bench.measured, queue.job(again.id).state) == ([], "finished")


@pytest.mark.slow
def test_a_row_that_no_reader_takes_costs_no_other_and_is_said_to_be_missing(queue, store, serve):
    job = queue.submit(sweep(sizes=SIZES), store)
    serve(Bench(_16=negative))
    done = queue.job(job.id)
    assert (done.state, done.complete) == ("finished", False)
    assert done.message == "The row of cpu@1 was refused: its column busy_step_s has a negative value."
    assert len(client.load_job_rows(queue, done)) == len(store.trials()) == 2 * len(SIZES) - 1
    assert store.read().skipped == ()


def test_a_point_in_which_nothing_could_be_timed_and_all_beyond_it_are_skipped(queue, store, serve):
    job, bench = queue.submit(sweep(sizes=SIZES), store), Bench(_16=nothing)
    serve(bench)
    done = queue.job(job.id)
    assert bench.measured == [8, 16]
    assert (done.state, done.message) == ("finished", "3 points were skipped as too slow.")
    assert done.progress.sweep.notes[:2] == (
        "Hidden size 16 was skipped as too slow: nothing could be timed within 20.0 s.",
        "Hidden size 32 was skipped as too slow: hidden size 16 was too slow and needs no more operations.",
    )
    assert done.progress.sweep.done == 4


def test_a_point_that_would_take_too_long_is_not_begun(queue, store, serve):
    job = queue.submit(sweep(sizes=(256, 512), pairs=10), store)
    bench = Bench(_256=slow(0.25))
    serve(bench)
    (note,) = queue.job(job.id).progress.sweep.notes
    assert bench.measured == [256]
    assert note.startswith("Hidden size 512 was skipped as too slow: 10 pairs would take about ")
    assert note.endswith(", and a point may take 20.0 s.")


def test_a_sweep_of_which_nothing_could_be_timed_has_failed(queue, store, serve):
    job = queue.submit(sweep(sizes=TWO), store)
    serve(Bench(_8=nothing))
    assert (queue.job(job.id).state, queue.job(job.id).message) == ("failed", "2 points were skipped as too slow.")


def test_after_its_budget_a_sweep_begins_no_further_point_and_says_so(queue, store, serve, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def lasting(experiment, record):
        now[0] += 25.0
        return instant(experiment, record)

    job = queue.submit(sweep(sizes=SIZES, budget_s=40), store)
    serve(lasting)
    done = queue.job(job.id)
    assert sizes(client.load_job_rows(queue, done)) == [8, 16]
    assert (done.state, done.message) == ("finished", "The budget of 40.0 s ended before 2 points could be started.")
    assert done.progress.sweep.notes == (done.message,)


@pytest.mark.slow
def test_no_point_is_begun_beside_others_that_could_not_be_over_within_the_budget(
    queue, store, serve, visits, monkeypatch
):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    visits.then = lambda _: now.__setitem__(0, now[0] + 2.0)
    job = queue.submit(sweep(sizes=SIZES, budget_s=30), store)
    serve(Bench(**{f"_{size}": slow(0.15) for size in SIZES}))
    assert [size for size, pair in visits.log if pair == 1] == [8, 16, 32]
    assert {size for size, _ in visits.log[:12]} == {8, 16}
    assert visits.log[12:] == [(32, pair) for pair in range(1, 7)]
    assert queue.job(job.id).message == "The budget of 30.0 s ended before 1 point could be started."
