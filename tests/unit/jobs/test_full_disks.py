"""What becomes of jobs when disks are full, and of what writers that were killed left behind."""

import dataclasses
import errno
import os
import time

import pytest

from core.errors import StoreError
from core.files import documents
from core.jobs import client, machine, recovery
from core.jobs.job import SILENCE_S
from core.jobs.queue import Queue
from core.jobs.worker.reporter import Reporter
from core.progress import Progress
from core.question.experiment import Point
from core.question.sweep import Axis, Sweep
from core.results.store import Store
from tests import rows
from tests.unit.jobs.under_way import EXPERIMENT, of, status

# Full disks


@pytest.fixture
def full(monkeypatch):
    """Folders that take nothing any more."""
    folders = []
    replace = documents.replace

    def refuse(path, fill):
        if any(path.is_relative_to(folder) for folder in folders):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return replace(path, fill)

    monkeypatch.setattr(documents, "replace", refuse)
    return folders


@pytest.fixture
def full_store(monkeypatch):
    monkeypatch.setattr("core.results.parquet.write_table", _no_space)


def _no_space(path, *_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_with_a_full_disk_of_jobs_a_run_ends_with_its_rows_in_the_store(queue, store, running, full):
    full.append(queue.folder)
    queue.end(recovery.complete(queue.files(running.id), running, of(running)))
    done = queue.job(running.id)
    assert (done.state, done.unsaved) == ("finished", False)
    assert client.load_job_rows(queue, done) == of(running)
    assert Queue(queue.folder).job(running.id).state == "running", "nobody else can know yet"
    full.clear()
    queue.settle()
    assert not queue.is_disk_full
    assert Queue(queue.folder).job(running.id) == done


@pytest.mark.usefixtures("full_store")
def test_with_both_disks_full_the_rows_are_shown_from_memory_and_stored_when_there_is_room(
    queue, store, running, full, monkeypatch
):
    full.append(queue.folder)
    queue.end(recovery.complete(queue.files(running.id), running, of(running)))
    done = queue.job(running.id)
    assert (done.state, done.unsaved) == ("finished", True)
    assert "they are only in memory until this process ends" in done.message
    assert client.load_job_rows(queue, done) == of(running)

    queue.settle()
    assert queue.job(running.id).unsaved, "there is still no room"
    assert queue.is_disk_full
    monkeypatch.undo()
    queue.settle()
    settled = Queue(queue.folder).job(running.id)
    assert (settled.state, settled.unsaved, settled.message) == ("finished", False, "")
    assert store.trials() == of(running)
    assert not queue.is_disk_full


@pytest.mark.usefixtures("full_store")
def test_rows_that_no_disk_took_before_their_process_ended_are_lost_with_a_sentence(
    queue, store, running, full, monkeypatch, dead
):
    status(queue, running, worker=dataclasses.asdict(dead))
    full.append(queue.folder)
    queue.files(running.id).keep_unsaved(of(running))
    found = Queue(queue.folder).job(running.id)
    assert (found.state, found.trial_ids) == ("crashed", ())
    assert found.message.endswith("Results that existed only in the memory of the measuring process are lost.")
    monkeypatch.undo()
    assert Queue(queue.folder).job(running.id).message == (
        "The measuring process was killed before anything was measured."
    )


@pytest.mark.usefixtures("full_store")
def test_a_job_whose_rows_only_its_process_had_says_that_they_are_lost(queue, running, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("core.results.parquet.write_rows", _no_space)
        queue.end(recovery.complete(queue.files(running.id), running, of(running)))
    following = Queue(queue.folder)
    assert following.job(running.id).unsaved
    following.settle()
    lost = following.job(running.id)
    assert (lost.unsaved, lost.message) == (False, recovery.LOST)
    assert client.load_job_rows(following, lost) == []


def test_a_worker_whose_reports_a_full_disk_refuses_is_not_taken_for_silent(queue, running, full, monkeypatch):
    full.append(queue.folder)
    Reporter(queue, running).progress(Progress(phase="timing"))
    monkeypatch.setattr(machine.time, "monotonic", lambda: running.reported.uptime_s + 10 * SILENCE_S)
    assert Queue(queue.folder).job(running.id).state == "running"


def test_rows_that_reached_the_store_are_found_there_even_if_the_job_knows_of_none(queue, store, running, dead):
    for row in of(running):
        store.add(row)
    status(queue, running, worker=dataclasses.asdict(dead))
    found = Queue(queue.folder).job(running.id)
    assert (found.state, found.message) == ("finished", "")
    assert client.load_job_rows(queue, found) == of(running)


def test_a_sweep_finds_its_rows_in_the_store_too(queue, store, dead):
    axis = Axis(name="hidden_size", values=(8, 16))
    queue.submit(Sweep(point=Point(), axes=(axis,), contenders=EXPERIMENT.contenders), store)
    job = queue.claim(dead)
    point = job.sweep.points[0]
    experiment = job.sweep.experiment(point)
    for row in rows.run({"cpu": 1e-3, "cpu@1": 2e-3}, point=point, run_id=job.derive_run_id(experiment)):
        store.add(row)
    found = Queue(queue.folder).job(job.id)
    assert found.message == "The measuring process was killed: 1 of 2 points is saved; run it again to continue."
    assert len(client.load_job_rows(queue, found)) == 2


def test_rows_that_were_saved_as_interrupted_do_not_finish_a_job_whose_end_could_not_be_written(
    queue, store, running, dead, monkeypatch
):
    queue.files(running.id).keep_partial(of(running, pairs=3, outcome="interrupted"))
    status(queue, running, worker=dataclasses.asdict(dead))
    with monkeypatch.context() as patch:
        patch.setattr("core.jobs.job.JobFolder.write", _no_space)
        assert Queue(queue.folder).job(running.id).state == "crashed"
    assert Queue(queue.folder).job(running.id).state == "crashed"
    assert {row.outcome for row in store.trials()} == {"interrupted"}


def test_a_store_whose_disk_has_room_again_gets_rows_that_it_refused(queue, store, running, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Store, "add_all", _refuse)
        queue.end(recovery.complete(queue.files(running.id), running, of(running)))
    assert store.trials() == []
    queue.jobs()
    queue.settle()
    assert store.trials() == of(running)
    assert not Queue(queue.folder).job(running.id).unsaved


def _refuse(*_):
    raise StoreError("The disk is full.")


# What writers that were killed left behind


@pytest.fixture
def age(monkeypatch):
    """Lets files be as old as what nobody writes any more."""

    def aged(path):
        old = time.time() - 2 * documents.ABANDONED_S
        os.utime(path, (old, old))

    monkeypatch.setattr(
        documents, "_remove_abandoned_cached", documents._remove_abandoned_cached.__wrapped__
    )  # as if it had not been done lately
    return aged


@pytest.mark.parametrize("name", [".01795356867842075354-26591c.tmp", ".worker.json.0123abcd.tmp"])
def test_what_was_left_in_the_folder_of_jobs_is_swept_once_it_is_old(queue, store, age, name):
    queue.submit(EXPERIMENT, store)
    left = queue.folder / name
    if "json" in name:
        left.write_text("{")
    else:
        left.mkdir()
        (left / "request.json").write_text("{")
    queue.submit(dataclasses.replace(EXPERIMENT, budget_s=31.0), store)
    assert left.exists(), "somebody may be writing it"
    age(left)
    queue.submit(dataclasses.replace(EXPERIMENT, budget_s=32.0), store)
    assert not left.exists()
    assert len(queue.jobs()) == 3


def test_what_was_left_in_the_folder_of_a_job_goes_when_it_ends(queue, running):
    left = queue.folder / running.id / ".status.json.0123abcd.tmp"
    left.write_text("{")
    queue.report(running)
    assert left.exists()
    queue.end(dataclasses.replace(running, state="failed", message="No."))
    assert not left.exists()
