"""Sweeps in the worker: what is measured, what is not measured again, and what a kill at any moment leaves behind."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable

import pytest

from core.answer.study import search
from core.answer.study.search import Step
from core.errors import DatasetUnavailable, StoreError
from core.files import atomic
from core.jobs import client, process, saving
from core.jobs.job import Job
from core.jobs.job_folder import JobFolder
from core.jobs.process import Process
from core.jobs.queue import Queue
from core.jobs.worker import sweep_run
from core.jobs.worker.reporter import Reporter
from core.jobs.worker.sweep_run import Begin, Fit
from core.jobs.worker.under_way import Measurement
from core.jobs.worker.worker import Code, Worker
from core.question.experiment import Experiment, Point
from core.question.sweep import Axis, Sweep
from core.results.reuse import CUT_OFF
from core.results.schema import Trial
from core.results.store import Store
from tests.integration import scripted_worker
from tests.integration.scripted_worker import CROSSING, Visited, sweep, timed

SIZES = (8, 16, 32, 64)
TWO = (8, 16)

Measure = Callable[[Experiment, Reporter], list[Trial]]


class Bench:
    """Measures at once, and remembers what it measured.

    Attributes:
        measured: hidden sizes in order.
        special: hidden size → what is done there instead.
    """

    def __init__(self, **special: Measure) -> None:
        self.measured: list[int] = []
        self.special = {int(name.lstrip("_")): measure for name, measure in special.items()}

    def __call__(self, experiment: Experiment, record: Reporter) -> list[Trial]:
        size = experiment.point.hidden_size
        self.measured.append(size)
        return self.special.get(size, instant)(experiment, record)


def instant(experiment: Experiment, record: Reporter, **changes) -> list[Trial]:
    return timed(experiment, record.job.run_of(experiment), **changes)


def full(experiment: Experiment, record: Reporter, **ended: str) -> list[Trial]:
    """The first contender does not fit."""
    first, second = instant(experiment, record)
    nothing = dict.fromkeys(("warmup_steps", "warmup_s", "loss_step", "loss"), ())
    nothing |= {entry.name: () for entry in dataclasses.fields(Trial) if entry.name.startswith("block_")}
    ended = {"outcome": "out_of_memory", "message": "The training needs 1 TiB.", **ended}
    return [dataclasses.replace(first, **ended, **nothing), second]


def failing(experiment: Experiment, record: Reporter) -> list[Trial]:
    """The lane of the first contender fails."""
    return full(experiment, record, outcome="interrupted", message="cpu@1 failed: RuntimeError: No compiler.")


def negative(experiment: Experiment, record: Reporter) -> list[Trial]:
    """The row of the first contender holds what no reader takes."""
    first, second = instant(experiment, record)
    return [dataclasses.replace(first, busy_step_s=(-1e-6,)), second]


def nothing(experiment: Experiment, record: Reporter) -> list[Trial]:
    return []


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


class Visits:
    """The visits that points get.

    Attributes:
        log: hidden size and pair of each, in order.
        points: every point that was begun.
        then: called after each, with the hidden size.
    """

    def __init__(self) -> None:
        self.log: list[tuple[int, int]] = []
        self.points: list[Visited] = []
        self.then: Callable[[int], object] = lambda _: None

    def begin(self, measure: Measure) -> Begin:
        def begin(experiment: Experiment, record: Reporter) -> Measurement:
            visits = self

            class Logged(Visited):
                def visit(self) -> bool:
                    more = super().visit()
                    visits.log.append((experiment.point.hidden_size, self.pairs))
                    visits.then(experiment.point.hidden_size)
                    return more

            self.points.append(Logged(measure, experiment, record))
            return self.points[-1]

        return begin

    @property
    def rounds(self) -> list[list[int]]:
        """Hidden sizes of each round after the first visits of all points."""
        first = sum(pair == 1 for _, pair in self.log)
        others = [size for size, _ in self.log[first:]]
        return [others[at : at + first] for at in range(0, len(others), first)]


@pytest.fixture
def visits() -> Visits:
    return Visits()


@pytest.fixture
def serve(queue, tmp_path, visits, monkeypatch):
    monkeypatch.setattr(sweep_run, "KEEP_EVERY_S", 0.0)

    def serve(measure: Measure, fit: Fit = lambda new, alive: True) -> str:
        bench = dataclasses.replace(scripted_worker.bench(queue), begin=visits.begin(measure), fit=fit)
        ended = Worker(queue, bench, bench.survey(), code=Code.now(tmp_path / "code"), idle_s=0.0).run()
        assert all(point.released for point in visits.points)
        return ended

    return serve


def sizes(rows: list[Trial]) -> list[int]:
    """Hidden sizes of rows in their order, each once."""
    return [size for size, _ in itertools.groupby(row.hidden_size for row in rows)]


def runs(store: Store) -> dict[int, set[str]]:
    """Hidden size → names of the runs that the store has of it, those that were cut off left out."""
    found: dict[int, set[str]] = {}
    for row in store.trials():
        if row.outcome not in CUT_OFF:
            found.setdefault(row.hidden_size, set()).add(row.run_id)
    return found


def cut_off(rows: list[Trial]) -> dict[int, set[int]]:
    """Hidden size → pairs of its rows that were cut off."""
    found: dict[int, set[int]] = {}
    for row in rows:
        if row.outcome in CUT_OFF:
            found.setdefault(row.hidden_size, set()).add(len(row.block_pair))
    return found


# What is measured


@pytest.mark.slow
def test_a_grid_is_begun_point_by_point_and_its_rows_are_the_jobs(queue, store, serve):
    job, bench = queue.submit(sweep(sizes=SIZES), store), Bench()
    assert serve(bench) == "idle"
    done = queue.job(job.id)
    assert (done.state, done.message, bench.measured) == ("finished", "", list(SIZES))
    assert len(done.run_ids) == 4
    assert len(done.trial_ids) == 8
    rows = client.rows(queue, done)
    assert [(row.hidden_size, row.contender) for row in rows] == list(itertools.product(SIZES, ("cpu@1", "cpu")))
    assert {row.outcome for row in rows} == {"timed"}
    assert store.trials() == sorted(rows, key=lambda row: (row.started_at, row.trial_id))
    assert (done.progress.sweep.done, done.progress.sweep.total) == (4, 4)


@pytest.mark.slow
def test_points_take_turns_in_rounds_of_varying_order_a_pair_a_visit(queue, store, serve, visits):
    asked = sweep(sizes=SIZES)
    queue.submit(asked, store)
    serve(Bench())
    assert visits.log[:4] == [(size, 1) for size in SIZES]
    assert len(visits.rounds) == asked.pairs - 1
    assert all(sorted(sizes) == list(SIZES) for sizes in visits.rounds)
    assert len({tuple(sizes) for sizes in visits.rounds}) > 1


@pytest.mark.slow
def test_a_point_is_in_the_store_once_it_has_its_pairs_and_the_page_sees_the_others_as_they_are(
    queue, store, serve, visits
):
    seen = []

    def look(size):
        job = Queue(queue.folder).job(queued.id)
        now, rows = job.progress.sweep, client.rows(queue, job)
        stored = sizes(store.trials())
        seen.append((now.done, now.alive, now.pairs, now.size_label))
        assert {row.hidden_size for row in rows if row.outcome == "timed"} == set(stored)
        assert now.done == len(stored)
        assert (now.remaining_s is None) is (len(seen) == 1)
        before = [pair for where, pair in visits.log[:-1] if pair < 6]
        if len(visits.log) < 20:
            assert sizes(rows) == sorted({where for where, _ in visits.log[:-1]})
            assert len(rows) == 2 * len(sizes(rows))
            assert sum(len(row.block_pair) for row in rows) == 2 * len(before)

    visits.then = look
    queued = queue.submit(sweep(sizes=SIZES), store)
    serve(Bench())
    assert seen[:5] == [
        (0, 0, 0, "hidden size 8"),
        (0, 1, 1, "hidden size 16"),
        (0, 2, 2, "hidden size 32"),
        (0, 3, 3, "hidden size 64"),
        (0, 4, 4, f"hidden size {visits.log[4][0]}"),
    ]
    assert seen[-1][:3] == (3, 1, 5)
    assert client.rows(queue, queue.job(queued.id)) == sorted(
        store.trials(), key=lambda row: (row.hidden_size, row.trial_id)
    )


@pytest.mark.slow
def test_points_for_which_there_is_no_memory_at_once_take_turns_in_groups_that_span_the_range(
    queue, store, serve, visits
):
    job = queue.submit(sweep(sizes=(8, 16, 32, 64, 128)), store)
    serve(Bench(), fit=lambda new, alive: len(new) + len(alive) <= 2)
    begun = [size for size, pair in visits.log if pair == 1]
    assert begun == [8, 64, 16, 128, 32]
    assert [size for size, pair in visits.log[:12] if pair > 1] != sorted([8] * 5 + [64] * 5)
    assert {size for size, _ in visits.log[:12]} == {8, 64}
    assert sizes(client.rows(queue, queue.job(job.id))) == [8, 16, 32, 64, 128]


@pytest.mark.slow
def test_a_point_that_is_too_large_to_stand_beside_others_comes_last_and_the_others_take_turns(
    queue, store, serve, visits
):
    queue.submit(sweep(sizes=(8, 16, 1024, 32)), store)
    serve(Bench(), fit=lambda new, alive: sum(asked.point.hidden_size for asked in (*new, *alive)) < 100)
    assert [size for size, pair in visits.log if pair == 1] == [8, 16, 32, 1024]
    assert {size for size, _ in visits.log[:18]} == {8, 16, 32}


@pytest.mark.slow
def test_no_more_points_are_alive_than_a_search_may_choose(queue, store, serve, visits, monkeypatch):
    monkeypatch.setattr(sweep_run, "MOST_AT_ONCE", 2)
    queue.submit(sweep(sizes=SIZES), store)
    serve(Bench())
    assert [size for size, pair in visits.log if pair == 1] == [8, 32, 16, 64]


@pytest.mark.slow
def test_a_point_for_which_there_is_no_memory_after_all_waits_until_the_others_are_done(queue, store, serve, visits):
    def crowded(experiment, record):
        alone = all(point.released or point.experiment == experiment for point in visits.points)
        return (instant if alone else full)(experiment, record)

    job = queue.submit(sweep(sizes=SIZES), store)
    bench = Bench(_16=crowded)
    serve(bench)
    done = queue.job(job.id)
    assert bench.measured == [8, 16, 16, 32, 64]
    assert [size for size, _ in visits.log][:14] == [8, 16, *[8] * 5, *[16] * 6, 32]
    assert (done.state, done.message, done.progress.sweep.notes) == ("finished", "", ())
    assert {row.outcome for row in client.rows(queue, done)} == {"timed"}


@pytest.mark.slow
def test_the_running_point_reports_its_own_progress_beside_that_of_the_sweep(queue, store, serve):
    seen = []

    def report(experiment, record):
        record.progress(scripted_worker.progress(experiment, 3))
        seen.append(queue.job(record.job.id).progress)
        return instant(experiment, record)

    queue.submit(sweep(sizes=TWO), store)
    serve(report)
    assert [(now.phase, now.pairs, len(now.contenders), now.sweep.alive) for now in seen] == [
        ("training", 3, 2, 0),
        ("training", 3, 2, 1),
    ]


@pytest.mark.slow
def test_points_that_the_store_has_are_not_measured_again_and_count_as_rows_of_the_job(queue, store, serve):
    queue.submit(sweep(sizes=TWO), store)
    serve(Bench())
    job, bench = queue.submit(sweep(sizes=SIZES), store), Bench()
    serve(bench)
    assert bench.measured == [32, 64]
    assert sizes(client.rows(queue, queue.job(job.id))) == list(SIZES)
    again, bench = queue.submit(sweep(sizes=SIZES), store), Bench()
    serve(bench)
    assert bench.measured == []
    assert (queue.job(again.id).state, len(queue.job(again.id).run_ids)) == ("finished", 4)


def test_a_training_that_was_completed_answers_a_point(queue, store, serve):
    for row in timed(sweep().experiment(sweep().points[0]), "a" * 12, outcome="completed"):
        store.add(row)
    queue.submit(sweep(sizes=TWO), store)
    bench = Bench()
    serve(bench)
    assert bench.measured == [16]


@pytest.mark.slow
def test_a_fresh_sweep_measures_every_point_again(queue, store, serve):
    queue.submit(sweep(sizes=TWO), store)
    serve(Bench())
    job, bench = queue.submit(sweep(sizes=TWO), store, fresh=True), Bench()
    serve(bench)
    assert bench.measured == list(TWO)
    assert all(len(found) == 2 for found in runs(store).values())
    assert len(client.rows(queue, queue.job(job.id))) == 4


@pytest.mark.slow
def test_rows_of_a_grid_over_two_axes_come_in_the_order_of_its_points(queue, store, serve):
    axes = (Axis(name="hidden_size", values=(8, 16)), Axis(name="batch_size", values=(32, 64)))
    job = queue.submit(sweep(axes=axes), store)
    serve(Bench())
    rows = client.rows(queue, queue.job(job.id))
    assert [(row.hidden_size, row.batch_size) for row in rows[::2]] == [(8, 32), (8, 64), (16, 32), (16, 64)]
    assert queue.job(job.id).progress.sweep.notes == ()


# Points without times


@pytest.mark.slow
def test_a_point_that_does_not_fit_is_kept_noted_and_the_sweep_goes_on(queue, store, serve):
    job, bench = queue.submit(sweep(sizes=SIZES), store), Bench(_16=full)
    serve(bench)
    done = queue.job(job.id)
    assert bench.measured == [8, 16, 16, 32, 64], "it is tried again once nothing else takes memory"
    assert (done.state, done.message) == ("finished", "1 point did not fit into memory.")
    assert done.progress.sweep.notes == ("Hidden size 16 did not fit into the memory of cpu@1.",)
    assert [row.outcome for row in client.rows(queue, done)][2:4] == ["out_of_memory", "timed"]
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
    assert len(client.rows(queue, done)) == 2 * len(SIZES)
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
    assert len(client.rows(queue, done)) == len(store.trials()) == 2 * len(SIZES) - 1
    assert store.read().skipped == ()


def test_a_point_in_which_nothing_could_be_timed_and_all_beyond_it_are_skipped(queue, store, serve):
    job, bench = queue.submit(sweep(sizes=SIZES), store), Bench(_16=nothing)
    serve(bench)
    done = queue.job(job.id)
    assert bench.measured == [8, 16]
    assert (done.state, done.message) == ("finished", "3 points were skipped as too slow.")
    assert done.progress.sweep.notes[:2] == (
        "Hidden size 16 was skipped as too slow: nothing could be timed within 20.0 s.",
        "Hidden size 32 was skipped as too slow: so was hidden size 16, which needs no more operations.",
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
    monkeypatch.setattr(sweep_run.time, "monotonic", lambda: now[0])

    def lasting(experiment, record):
        now[0] += 25.0
        return instant(experiment, record)

    job = queue.submit(sweep(sizes=SIZES, budget_s=40), store)
    serve(lasting)
    done = queue.job(job.id)
    assert sizes(client.rows(queue, done)) == [8, 16]
    assert (done.state, done.message) == ("finished", "The budget of 40.0 s ended before 2 points could be begun.")
    assert done.progress.sweep.notes == (done.message,)


@pytest.mark.slow
def test_no_point_is_begun_beside_others_that_could_not_be_over_within_the_budget(
    queue, store, serve, visits, monkeypatch
):
    now = [0.0]
    monkeypatch.setattr(sweep_run.time, "monotonic", lambda: now[0])
    visits.then = lambda _: now.__setitem__(0, now[0] + 2.0)
    job = queue.submit(sweep(sizes=SIZES, budget_s=30), store)
    serve(Bench(**{f"_{size}": slow(0.15) for size in SIZES}))
    assert [size for size, pair in visits.log if pair == 1] == [8, 16, 32]
    assert {size for size, _ in visits.log[:12]} == {8, 16}
    assert visits.log[12:] == [(32, pair) for pair in range(1, 7)]
    assert queue.job(job.id).message == "The budget of 30.0 s ended before 1 point could be begun."


# Ends


def test_an_error_at_a_point_fails_the_sweep_and_what_was_measured_stays(queue, store, serve):
    def missing(experiment, record):
        raise DatasetUnavailable("The files of mnist are not here.")

    job = queue.submit(sweep(sizes=SIZES), store)
    assert serve(Bench(_32=missing)) == "idle"
    failed = queue.job(job.id)
    assert failed.state == "failed"
    assert failed.message == "The files of mnist are not here. What was measured before is saved."
    assert sizes(client.rows(queue, failed)) == sizes(store.trials()) == [8, 16]


def test_a_bug_at_a_point_fails_the_sweep_and_calls_for_a_fresh_process(queue, store, serve):
    job = queue.submit(sweep(sizes=TWO), store)
    assert serve(Bench(_16=lambda *_: 1 / 0)) == "renew"
    assert queue.job(job.id).state == "failed"
    assert sizes(store.trials()) == [8]


@pytest.mark.slow
def test_a_sweep_that_is_stopped_keeps_what_each_point_has_and_goes_on_behind_those_that_are_done(
    queue, store, serve, visits
):
    def stop(size):
        if len(visits.log) == 22:
            queue.request_stop(job.id)

    visits.then = stop
    job = queue.submit(sweep(sizes=SIZES), store)
    serve(Bench())
    stopped, done = queue.job(job.id), {size for size, _ in visits.log[20:22]}
    assert stopped.message == "Stopped: 2 of 4 points are saved; run it again to continue."
    assert set(runs(store)) == done
    assert cut_off(client.rows(queue, stopped)) == {size: {5} for size in SIZES if size not in done}
    assert {row.outcome for row in store.trials()} == {"timed", "stopped"}

    bench = Bench()
    job = queue.submit(sweep(sizes=SIZES), store)
    serve(bench)
    assert set(bench.measured) == set(SIZES) - done
    assert {row.outcome for row in client.rows(queue, queue.job(job.id))} == {"timed"}


@pytest.mark.slow
def test_a_sweep_that_is_stopped_within_a_visit_keeps_its_rows_too(queue, store, serve):
    def stop(experiment, record):
        queue.request_stop(record.job.id)
        return instant(experiment, record, outcome="stopped", message="It was stopped.")

    job = queue.submit(sweep(sizes=TWO), store)
    serve(Bench(_16=stop))
    stopped = queue.job(job.id)
    assert stopped.message == "Stopped: 0 of 2 points are saved; run it again to continue."
    rows = client.rows(queue, stopped)
    assert [(row.outcome, len(row.block_pair)) for row in rows] == [("stopped", 1)] * 2 + [("stopped", 6)] * 2

    job, bench = queue.submit(sweep(sizes=TWO), store), Bench()
    serve(bench)
    assert bench.measured == [8, 16]
    assert [row.outcome for row in client.rows(queue, queue.job(job.id))] == ["timed"] * 4


def test_a_sweep_that_is_asked_to_stop_before_it_begins_measures_nothing(queue, store, serve):
    job = queue.submit(sweep(sizes=TWO), store)
    queue.files(job.id).ask_to_stop()
    serve(lambda *_: pytest.fail("it must not measure"))
    assert queue.job(job.id).message == "Stopped: 0 of 2 points are saved; run it again to continue."


@pytest.mark.slow
def test_rows_that_the_store_refuses_are_kept_with_the_job_and_end_the_sweep(queue, store, serve, visits, monkeypatch):
    add = Store.add

    def refuse(self, trial):
        if trial.hidden_size == 16:
            raise StoreError("The disk is full.")
        return add(self, trial)

    monkeypatch.setattr(Store, "add", refuse)
    job = queue.submit(sweep(sizes=SIZES), store)
    serve(Bench())
    failed = queue.job(job.id)
    before = {size for size, pair in visits.log if pair == 6} - {16}
    assert (failed.state, failed.unsaved) == ("failed", True)
    assert failed.message == "The store did not take the rows, they are kept with the job: The disk is full."
    assert set(sizes(store.trials())) == before
    assert set(sizes(client.rows(queue, failed))) == before | {16}
    assert visits.log[-1] == (16, 6)


# Adaptive


def test_an_adaptive_sweep_measures_what_the_search_asks_for_and_says_why_it_ended(queue, store, serve, monkeypatch):
    known, script = [], itertools.chain([32, 8], itertools.repeat(None))

    def next_step(candidates, evidence):
        assert sorted(candidates) == list(SIZES)
        known.append({entry.size: (len(entry.baseline_s), bool(entry.obstacle)) for entry in evidence})
        return Step(size=next(script), reason="the interval is narrow")

    monkeypatch.setattr(search, "next_step", next_step)
    asked = sweep(sizes=SIZES, adaptive=True)
    job, bench = queue.submit(asked, store), Bench(_8=nothing)
    serve(bench)
    done = queue.job(job.id)
    assert bench.measured == [32, 8]
    skipped = {8: (0, True)}
    assert known == [
        {},
        {32: (1, False)},
        {32: (2, False), **skipped},  # beside a new size the one that waits longest had its turn
        {32: (3, False), **skipped},
    ]
    assert done.progress.sweep.notes[-1] == "The search ended: the interval is narrow."
    assert (done.state, done.message) == ("finished", "1 point was skipped as too slow.")
    assert (done.progress.sweep.done, done.progress.sweep.total) == (2, 4)


@pytest.mark.slow
def test_an_adaptive_sweep_finds_the_crossing_of_a_curve_and_goes_on_from_the_store(queue, store, serve, visits):
    asked = sweep(axes=(Axis.between("hidden_size", 8, 2048, adaptive=True),), adaptive=True)
    whole, other = Bench(), Store(store.folder.with_name("other"))
    job = queue.submit(asked, other)
    serve(whole)
    assert 2 <= len(whole.measured) < len(asked.points) / 2
    assert len(set(whole.measured)) == len(whole.measured)
    assert min(whole.measured) < CROSSING < max(whole.measured)
    assert queue.job(job.id).progress.sweep.notes

    def stop(size):
        if len(visits.log) == 12:
            queue.request_stop(job.id)

    visits.log, visits.then = [], stop
    first, second = Bench(), Bench()
    job = queue.submit(asked, store)
    serve(first)
    assert first.measured[:2] == whole.measured[:2]
    done = {size for size, pair in visits.log if pair == asked.pairs}
    assert done == set(runs(store)) != set()
    queue.submit(asked, store)
    serve(second)
    assert not done & set(second.measured)


@pytest.mark.slow
def test_beside_a_size_that_a_search_chose_the_one_that_waits_longest_has_its_turn(
    queue, store, serve, visits, monkeypatch
):
    script = itertools.chain([8, 16, 32, 64], itertools.repeat(None))
    monkeypatch.setattr(search, "next_step", lambda *_: Step(size=next(script), reason="the interval is narrow"))
    queue.submit(sweep(sizes=SIZES, adaptive=True), store)
    serve(Bench())
    assert visits.log[:7] == [(8, 1), (16, 1), (8, 2), (32, 1), (16, 2), (64, 1), (8, 3)]
    assert sorted(visits.log[7:10]) == [(16, 3), (32, 2), (64, 2)]
    assert sorted(visits.log[10:]) == [(32, 3), (64, 3)]


# Kills


class Killed(BaseException):
    """The process ends here; nothing after it is done."""


def _die(owner: object, name: str, *, call: int, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process die at the given call of a function, before or after it is done."""
    real, calls = getattr(owner, name), itertools.count(1)

    def dying(*arguments, **choices):
        if next(calls) != call:
            return real(*arguments, **choices)
        if after:
            real(*arguments, **choices)
        raise Killed

    monkeypatch.setattr(owner, name, dying)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", [1, 2, 4])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Store, "add"),
        (JobFolder, "keep_unsaved"),
        (JobFolder, "drop_rows"),
        (JobFolder, "keep_partial"),
        (JobFolder, "write"),
        (Reporter, "save"),
        (saving, "save"),
        (atomic, "flush_folder"),
        (Queue, "end"),
    ],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_a_kill_at_any_moment_loses_nothing_and_nothing_is_kept_twice(
    queue, store, serve, dead, owner, name, call, after
):
    asked = sweep(sizes=SIZES, pairs=3)
    job = queue.submit(asked, store)
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
        _die(owner, name, call=call, after=after, monkeypatch=patch)
        serve(Bench())
    crashed = _bury(queue, job, dead)
    kept, shown = set(runs(store)), client.rows(queue, crashed)
    assert kept == {row.hidden_size for row in shown if row.outcome == "timed"}
    assert len({row.trial_id for row in shown}) == len(shown)
    if crashed.state == "crashed":
        verb = "is" if len(kept) == 1 else "are"
        said = f"The measuring process was killed: {len(kept)} of 4 points {verb} saved; run it again to continue."
        assert crashed.message == said
        complete = len(cut_off(shown)) + len(kept) == 4
        assert complete or name in ("write", "keep_partial", "flush_folder"), "only the first visits may be lost"

    job, bench = queue.submit(asked, store), Bench()
    serve(bench)
    assert bench.measured == [size for size in SIZES if size not in kept]
    rows = client.rows(queue, queue.job(job.id))
    assert sizes(rows) == list(SIZES)
    assert {row.outcome for row in rows} == {"timed"}
    assert all(len(found) == 1 for found in runs(store).values())
    assert len(store.trials()) == 8 + sum(row.outcome in CUT_OFF for row in shown)


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
    assert crashed.message == "The measuring process was killed: 1 of 2 points is saved; run it again to continue."
    assert (set(runs(store)), cut_off(client.rows(queue, crashed))) == ({first}, {last: {5}})
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
    assert queue.claim(process.this()).id == other.id
    assert sizes(store.trials()) == [8]


def test_a_sweep_is_the_only_thing_that_a_sweeps_file_can_be(queue, store):
    job = queue.submit(sweep(sizes=TWO), store)
    assert isinstance(job.asked, Sweep)
    assert (job.experiment, job.sweep) == (None, sweep(sizes=TWO))
    assert Queue(queue.folder).job(job.id) == job
    assert queue.submit(sweep(sizes=TWO), store).id == job.id
    assert queue.submit(sweep(sizes=TWO, budget_s=30), store).id != job.id
    assert queue.submit(Experiment(point=Point()), store).sweep is None
