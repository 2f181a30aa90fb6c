"""Lessons in the queue: asked, shown, kept, stopped, and what is left when somebody dies."""

import pytest

from core.errors import StoreError
from core.jobs import client, process, recovery
from core.jobs.machine import measurement_lock
from core.jobs.queue import Queue
from core.jobs.worker.worker import Code, Worker
from core.results import exhibits
from tests import exhibited
from tests.integration import scripted_worker
from tests.integration.scripted_worker import BROKEN, QUICK, REFUSED, RELEASE, UNTIL_RELEASED, demonstration, experiment


@pytest.fixture
def work(queue, tmp_path):
    """Let a worker take all jobs."""
    queue.folder.mkdir()

    def run() -> str:
        bench = scripted_worker.bench(queue)
        return Worker(queue, bench, bench.survey(), code=Code.scan(tmp_path / "code"), idle_s=0.0).run()

    return run


@pytest.fixture
def refusing(monkeypatch):
    def full(*_):
        raise StoreError("The disk is full.")

    monkeypatch.setattr(exhibits, "add_exhibit", full)


def test_a_lesson_is_written_down_and_read_back_equal_by_others(queue, store):
    job = queue.submit(demonstration(QUICK), store)
    assert Queue(queue.folder).job(job.id) == job
    assert job.demonstration == demonstration(QUICK)
    assert (job.experiment, job.sweep, job.exhibit_id) == (None, None, "")
    assert queue.submit(demonstration(QUICK), store) == job, "who asks the same joins"
    assert client.exhibit(queue, job) is None


def test_a_lesson_is_shown_and_kept_in_the_store_without_any_row(queue, store, work):
    job = queue.submit(demonstration(QUICK), store)
    assert work() == "idle"
    done = queue.job(job.id)
    assert (done.state, done.message, done.unsaved) == ("finished", "", False)
    (shown,), skipped = exhibits.read_exhibits(store.folder)
    assert skipped == ()
    assert shown.id == done.exhibit_id
    assert shown.demonstration == job.demonstration
    assert client.exhibit(queue, done) == shown
    assert client.load_job_rows(queue, done) == store.trials() == []


def test_lessons_and_measurements_take_turns_in_the_queue(queue, store, work):
    jobs = [queue.submit(asked, store) for asked in (demonstration(QUICK), experiment(QUICK), demonstration(REFUSED))]
    assert [job.place for job in jobs] == [1, 2, 3]
    assert work() == "idle"
    assert [queue.job(job.id).state for job in jobs] == ["finished", "finished", "failed"]
    assert queue.job(jobs[2].id).message == "The device cuda:7 is not on this machine."


def test_a_bug_in_a_lesson_fails_its_job_and_calls_for_a_fresh_process(queue, store, work):
    job = queue.submit(demonstration(BROKEN), store)
    assert work() == "renew"
    failed = queue.job(job.id)
    assert failed.state == "failed"
    assert "ZeroDivisionError: a bug" in failed.message
    assert "saved" not in failed.message


def test_a_lesson_that_is_asked_to_stop_while_the_machine_is_busy_is_not_given(queue, store, work):
    job = queue.submit(demonstration(UNTIL_RELEASED), store)
    queue.files(job.id).request_stop()
    with measurement_lock():
        work()
    stopped = queue.job(job.id)
    assert (stopped.state, stopped.message) == ("stopped", "Stopped before it was done.")


def test_a_lesson_that_is_stopped_leaves_nothing(queue, store, work, monkeypatch):
    job = queue.submit(demonstration(UNTIL_RELEASED), store)
    monkeypatch.setattr(scripted_worker.time, "sleep", lambda _: queue.request_stop(job.id))
    assert work() == "idle"
    assert queue.job(job.id).state == "stopped"
    assert exhibits.read_exhibits(store.folder) == ([], ())


@pytest.mark.usefixtures("refusing")
def test_what_the_store_refuses_is_kept_with_the_job_and_the_message_says_why(queue, store, work):
    job = queue.submit(demonstration(QUICK), store)
    work()
    done = queue.job(job.id)
    assert (done.state, done.unsaved) == ("finished", True)
    assert done.message == "The exhibit could not be stored, it is saved with the job: The disk is full."
    assert client.exhibit(queue, done).id == done.exhibit_id


@pytest.mark.usefixtures("refusing")
def test_where_nothing_can_be_kept_the_message_says_so(queue, store, monkeypatch):
    queue.submit(demonstration(QUICK), store)
    job = queue.claim(process.current_process())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("core.files.documents.replace", full)
    done = recovery.complete_exhibit(queue.files(job.id), job, exhibited.exhibit())
    assert "it is only in memory until this process ends" in done.message
    assert client.exhibit(queue, done).id == done.exhibit_id
    assert client.exhibit(Queue(queue.folder), done) is None


def test_a_lesson_whose_process_is_killed_has_crashed(queue, store, dead):
    queue.submit(demonstration(QUICK), store)
    lost = queue.job(queue.claim(dead).id)
    assert (lost.state, lost.message) == ("crashed", "The measuring process was killed before it was done.")


def test_a_lesson_killed_between_its_end_and_the_store_is_brought_there_by_who_looks_next(queue, store, dead):
    queue.submit(demonstration(QUICK), store)
    job, shown = queue.claim(dead), exhibited.exhibit(demonstration(QUICK))
    queue.files(job.id).keep_exhibit(shown)
    found = queue.job(job.id)
    assert (found.state, found.exhibit_id) == ("finished", shown.id)
    assert exhibits.read_exhibits(store.folder) == ([shown], ())


def test_an_exhibit_outlives_the_file_beside_the_job(queue, store, work):
    job = queue.submit(demonstration(QUICK), store)
    work()
    done = queue.job(job.id)
    (queue.files(job.id).path / "exhibit.json").write_text('{"id": "torn')
    assert client.exhibit(queue, done).id == done.exhibit_id


def test_a_lesson_of_another_version_is_not_listed(queue, store):
    job = queue.submit(demonstration(QUICK), store)
    request = queue.folder / job.id / "request.json"
    request.write_text(request.read_text().replace('"clock"', '"sundial"'))
    assert Queue(queue.folder).jobs() == []


def test_the_script_is_released(queue, store, work):
    job = queue.submit(demonstration(UNTIL_RELEASED), store)
    (queue.folder / RELEASE).touch()
    work()
    assert queue.job(job.id).state == "finished"
