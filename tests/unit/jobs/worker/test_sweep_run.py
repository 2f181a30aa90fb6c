"""Sweeps in the worker: what is measured, in which turns, and what is not measured again."""

import itertools

import pytest

from core.jobs import client
from core.jobs.queue import Queue
from core.jobs.worker import sweep as sweep_run
from core.question.sweep import Axis
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep, timed
from tests.unit.jobs.worker.points import SIZES, TWO, Bench, full, instant, runs, sizes


@pytest.mark.slow
def test_a_grid_is_begun_point_by_point_and_its_rows_are_the_jobs(queue, store, serve):
    job, bench = queue.submit(sweep(sizes=SIZES), store), Bench()
    assert serve(bench) == "idle"
    done = queue.job(job.id)
    assert (done.state, done.message, bench.measured) == ("finished", "", list(SIZES))
    assert len(done.run_ids) == 4
    assert len(done.trial_ids) == 8
    rows = client.load_job_rows(queue, done)
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
        now, rows = job.progress.sweep, client.load_job_rows(queue, job)
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
    assert client.load_job_rows(queue, queue.job(queued.id)) == sorted(
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
    assert sizes(client.load_job_rows(queue, queue.job(job.id))) == [8, 16, 32, 64, 128]


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
    assert {row.outcome for row in client.load_job_rows(queue, done)} == {"timed"}


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
    assert sizes(client.load_job_rows(queue, queue.job(job.id))) == list(SIZES)
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
    assert all(len(found) == 2 for found in runs(store.trials()).values())
    assert len(client.load_job_rows(queue, queue.job(job.id))) == 4


@pytest.mark.slow
def test_rows_of_a_grid_over_two_axes_come_in_the_order_of_its_points(queue, store, serve):
    axes = (Axis(name="hidden_size", values=(8, 16)), Axis(name="batch_size", values=(32, 64)))
    job = queue.submit(sweep(axes=axes), store)
    serve(Bench())
    rows = client.load_job_rows(queue, queue.job(job.id))
    assert [(row.hidden_size, row.batch_size) for row in rows[::2]] == [(8, 32), (8, 64), (16, 32), (16, 64)]
    assert queue.job(job.id).progress.sweep.notes == ()
