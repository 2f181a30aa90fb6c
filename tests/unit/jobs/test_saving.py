import dataclasses

import pyarrow.parquet as pq
import pytest

from core.errors import StoreError
from core.jobs import client, process, recovery
from core.question.experiment import Experiment, Point
from core.results import parquet
from core.results.store import Store
from tests import rows


@pytest.fixture
def job(queue, store):
    queue.submit(Experiment(point=Point()), store)
    return queue.claim(process.current_process())


@pytest.fixture
def refusing(monkeypatch):
    """A store that takes nothing."""

    def refuse(self, table):
        raise StoreError("The disk is full.")

    monkeypatch.setattr(Store, "add_all", refuse)


def test_complete_rows_reach_the_store_and_nothing_stays_with_the_job(queue, store, job):
    files, trials = queue.files(job.id), rows.run()
    files.keep_partial(rows.run(pairs=1))
    done = recovery.complete(files, job, trials)
    assert files.read_unsaved() == trials, "until the end is written down, a kill may come"
    queue.end(done)
    assert (done.state, done.message, done.run_id) == ("finished", "", trials[0].run_id)
    assert client.load_job_rows(queue, done) == trials
    assert (files.read_partial(), files.read_unsaved()) == ([], [])


@pytest.mark.usefixtures("refusing")
def test_rows_that_the_store_refuses_are_kept_with_the_job_and_the_message_says_why(queue, job):
    trials = rows.run()
    done = recovery.complete(queue.files(job.id), job, trials)
    queue.end(done)
    assert queue.job(job.id) == done
    assert done.state == "finished"
    assert done.message == "The rows could not be stored, they are saved with the job: The disk is full."
    assert client.load_job_rows(queue, done) == trials


@pytest.mark.usefixtures("refusing")
def test_interrupted_rows_that_the_store_refuses_are_kept_too(queue, job):
    files = queue.files(job.id)
    files.keep_partial(rows.run(pairs=2, outcome="interrupted"))
    done = recovery.rescue(files, job, state="crashed", event="It was killed")
    assert done.message.startswith("It was killed after 2 pairs. The rows could not be stored")
    assert len(client.load_job_rows(queue, done)) == 2


@pytest.mark.usefixtures("refusing")
def test_rows_that_find_no_room_anywhere_are_said_to_be_lost(queue, job, monkeypatch):
    def full(path, trials):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("core.results.parquet.write_rows", full)
    done = recovery.complete(queue.files(job.id), job, rows.run())
    assert "they are only in memory until this process ends" in done.message


def test_a_row_that_had_come_to_its_own_end_keeps_its_outcome(queue, store, job):
    files = queue.files(job.id)
    diverged, cut_off = rows.run(pairs=1, outcome="interrupted")
    files.keep_partial([dataclasses.replace(diverged, outcome="diverged", message="NaN."), cut_off])
    done = recovery.rescue(files, job, state="crashed", event="It was killed")
    assert done.message == "It was killed after 1 pair; what was measured by then is saved."
    assert [(trial.outcome, trial.message) for trial in client.load_job_rows(queue, done)] == [
        ("diverged", "NaN."),
        ("interrupted", "It was killed."),
    ]


def test_one_contender_alone_is_measured_in_blocks(queue, job):
    queue.files(job.id).keep_partial(rows.run({"cpu": 1e-3}, pairs=4, outcome="interrupted"))
    done = recovery.rescue(queue.files(job.id), job, state="crashed", event="It was killed")
    assert done.message.startswith("It was killed after 4 blocks;")


def test_rows_that_reached_the_store_before_a_kill_are_not_written_again(queue, store, job):
    trials = rows.run()
    queue.files(job.id).keep_unsaved(trials)
    store.add(trials[0])
    done = recovery.rescue(queue.files(job.id), job, state="crashed", event="It was killed")
    assert client.load_job_rows(queue, done) == trials
    assert len(list(store.folder.glob("*.parquet"))) == 2


def test_rows_that_the_store_refused_are_shown_even_where_it_cannot_be_read(queue, store, job):
    store.folder.rmdir()
    store.folder.write_text("no folder")
    done = recovery.complete(queue.files(job.id), job, rows.run())
    assert done.unsaved
    assert client.load_job_rows(queue, done) == rows.run()


def test_the_rows_of_a_run_come_in_one_file_so_that_no_compaction_parts_them(queue, store, job):
    recovery.complete(queue.files(job.id), job, rows.run())
    (file,) = store.folder.glob("*.parquet")
    assert pq.read_metadata(file).num_rows == 2


def test_runs_that_are_too_large_for_one_file_come_in_several_and_each_in_one(queue, store, job, monkeypatch):
    monkeypatch.setattr(parquet, "PART_ROWS", 4)
    trials = [row for number in range(3) for row in rows.run(run_id=f"{number:012x}")]
    recovery.complete(queue.files(job.id), job, trials)
    assert sorted(pq.read_metadata(file).num_rows for file in store.folder.glob("*.parquet")) == [2, 4]
    assert len(store.trials()) == 6


def test_a_job_without_rows_has_none(queue, job):
    assert client.load_job_rows(queue, job) == []


@pytest.fixture
def duel(queue, store):
    """A job of two contenders, of which test rows are."""
    queue.submit(rows.EXPERIMENT, store)
    return queue.claim(process.current_process())


def unreadable():
    """A run whose second row no reader would take."""
    good, bad = rows.run()
    return good, dataclasses.replace(bad, busy_step_s=(-1e-6, 1e-3))


def test_a_row_that_readers_would_refuse_costs_no_other_and_is_said_to_be_missing(queue, duel):
    good, bad = unreadable()
    done = recovery.complete(queue.files(duel.id), duel, [good, bad])
    assert (done.state, done.complete, done.unsaved) == ("finished", False, False)
    assert done.message == "The row of cuda:0 was refused: its column busy_step_s has a negative value."
    assert queue.files(duel.id).read_unsaved() == [good]
    queue.end(done)
    assert queue.job(duel.id) == done
    assert client.load_job_rows(queue, done) == Store(done.store).trials() == [good]


def test_a_job_whose_every_row_is_refused_has_failed(queue, duel):
    done = recovery.complete(queue.files(duel.id), duel, unreadable()[1:])
    assert (done.state, done.trial_ids) == ("failed", ())
    assert "cpu has no row" in done.message
    assert "cuda:0 was refused" in done.message


def test_rows_so_far_are_kept_without_those_that_readers_would_refuse(queue, duel):
    good, bad = unreadable()
    queue.files(duel.id).keep_partial([good, bad])
    assert queue.files(duel.id).read_partial() == [good]


def test_a_contender_without_a_row_is_missing(queue, duel):
    good, _ = rows.run()
    done = recovery.complete(queue.files(duel.id), duel, [good])
    assert (done.state, done.complete) == ("finished", False)
    assert done.message == "cuda:0 has no row, because no block could be timed within the budget."


def test_a_lane_that_failed_is_missing_and_one_that_did_not_fit_is_an_answer(queue, duel):
    nothing = {"pairs": 0, "loss": (), "loss_step": (), "confusion": (), "predictions": b""}
    good, gone = rows.run()[0], rows.trial(contender="cuda:0", outcome="out_of_memory", message="Full.", **nothing)
    done = recovery.complete(queue.files(duel.id), duel, [good, gone])
    assert (done.complete, done.message) == (True, "")
    failed = dataclasses.replace(gone, outcome="interrupted", message="cuda:0 failed: RuntimeError: No compiler.")
    done = recovery.complete(queue.files(duel.id), duel, [good, failed], again=True)
    assert (done.complete, done.message) == (False, "cuda:0 failed: RuntimeError: No compiler.")


def test_what_is_missing_at_several_points_is_said_once(duel):
    first, second = rows.run(), rows.run(run_id="b" * 12)
    known = recovery.with_missing(recovery.with_missing(duel, first[:1]), second[:1])
    assert len(known.missing) == 1


def test_a_lane_that_failed_keeps_its_sentence_when_the_process_is_killed(queue, duel):
    good, failed = rows.run(pairs=1, outcome="interrupted")
    queue.files(duel.id).keep_partial([good, dataclasses.replace(failed, message="cuda:0 failed: no compiler.")])
    done = recovery.rescue(queue.files(duel.id), duel, state="crashed", event="It was killed")
    assert [trial.message for trial in client.load_job_rows(queue, done)] == [
        "It was killed.",
        "cuda:0 failed: no compiler.",
    ]
