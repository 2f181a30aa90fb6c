"""How a sweep ends before all its points are done: by errors, by being stopped, by a store that refuses."""

import pytest

from core.errors import DatasetUnavailable, StoreError
from core.jobs import client
from core.results.store import Store
from tests.integration.scripted_worker import sweep
from tests.unit.jobs.worker.points import SIZES, TWO, Bench, cut_off, instant, runs, sizes


def test_an_error_at_a_point_fails_the_sweep_and_what_was_measured_stays(queue, store, serve):
    def missing(experiment, record):
        raise DatasetUnavailable("The files of mnist are not here.")

    job = queue.submit(sweep(sizes=SIZES), store)
    assert serve(Bench(_32=missing)) == "idle"
    failed = queue.job(job.id)
    assert failed.state == "failed"
    assert failed.message == "The files of mnist are not here. Earlier measurements are saved."
    assert sizes(client.load_job_rows(queue, failed)) == sizes(store.trials()) == [8, 16]


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
    assert stopped.message == "Stopped: 2 of 4 points are saved, and 2 in part; run it again to continue."
    assert set(runs(store.trials())) == done
    assert cut_off(client.load_job_rows(queue, stopped)) == {size: {5} for size in SIZES if size not in done}
    assert {row.outcome for row in store.trials()} == {"timed", "stopped"}

    bench = Bench()
    job = queue.submit(sweep(sizes=SIZES), store)
    serve(bench)
    assert set(bench.measured) == set(SIZES) - done
    assert {row.outcome for row in client.load_job_rows(queue, queue.job(job.id))} == {"timed"}


@pytest.mark.slow
def test_a_sweep_that_is_stopped_within_a_visit_keeps_its_rows_too(queue, store, serve):
    def stop(experiment, record):
        queue.request_stop(record.job.id)
        return instant(experiment, record, outcome="stopped", message="It was stopped.")

    job = queue.submit(sweep(sizes=TWO), store)
    serve(Bench(_16=stop))
    stopped = queue.job(job.id)
    assert stopped.message == "Stopped: 0 of 2 points are saved, and 2 in part; run it again to continue."
    rows = client.load_job_rows(queue, stopped)
    assert [(row.outcome, len(row.block_pair)) for row in rows] == [("stopped", 1)] * 2 + [("stopped", 6)] * 2

    job, bench = queue.submit(sweep(sizes=TWO), store), Bench()
    serve(bench)
    assert bench.measured == [8, 16]
    assert [row.outcome for row in client.load_job_rows(queue, queue.job(job.id))] == ["timed"] * 4


def test_a_sweep_that_is_asked_to_stop_before_it_begins_measures_nothing(queue, store, serve):
    job = queue.submit(sweep(sizes=TWO), store)
    queue.files(job.id).request_stop()
    serve(lambda *_: pytest.fail("it must not measure"))
    assert queue.job(job.id).message == "Stopped: 0 of 2 points are saved; run it again to continue."


@pytest.mark.slow
def test_rows_that_the_store_refuses_are_kept_with_the_job_and_end_the_sweep(queue, store, serve, visits, monkeypatch):
    add_all = Store.add_all

    def refuse(self, table):
        if 16 in table["hidden_size"].to_pylist():
            raise StoreError("The disk is full.")
        return add_all(self, table)

    monkeypatch.setattr(Store, "add_all", refuse)
    job = queue.submit(sweep(sizes=SIZES), store)
    serve(Bench())
    failed = queue.job(job.id)
    before = {size for size, pair in visits.log if pair == 6} - {16}
    assert (failed.state, failed.unsaved) == ("failed", True)
    assert failed.message == "The rows could not be stored, they are saved with the job: The disk is full."
    assert set(sizes(store.trials())) == before
    assert set(sizes(client.load_job_rows(queue, failed))) == before | {16}
    assert visits.log[-1] == (16, 6)
