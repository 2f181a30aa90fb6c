"""A queue of jobs in a folder: asked, joined, claimed in order, stopped."""

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import JobError, StoreError
from core.jobs import queue as all_jobs
from core.jobs import queue as queue_module
from core.jobs.process import ExecutionContext
from core.jobs.queue import Queue
from core.progress import ContenderProgress, Progress
from core.results.store import Store
from tests.unit.jobs.asked import ME, experiment


def test_a_submitted_job_waits_and_is_read_back_equal_by_others(queue, store):
    job = queue.submit(experiment(), store, fresh=True)
    assert (job.state, job.place, job.fresh, job.store) == ("queued", 1, True, store.folder.absolute())
    assert Queue(queue.folder).job(job.id) == job
    assert Queue(queue.folder).jobs() == [job]


def test_the_folder_is_the_one_of_the_environment_unless_given(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSOVER_JOBS", str(tmp_path / "elsewhere"))
    assert Queue().folder == tmp_path / "elsewhere"
    monkeypatch.delenv("CROSSOVER_JOBS")
    assert Queue().folder == queue_module.JOBS


def test_nobody_waits_in_a_folder_that_does_not_exist(queue):
    assert queue.jobs() == []
    assert not queue.waiting()
    assert queue.claim(ME) is None


def test_a_job_is_claimed_by_a_process_with_the_surroundings_of_who_asked(queue, store, monkeypatch):
    first = queue.submit(experiment(1), store)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    second, again = queue.submit(experiment(1), store), queue.submit(experiment(1), store)
    assert first.id != second.id == again.id
    assert dict(second.surroundings.variables)["CUDA_VISIBLE_DEVICES"] == "1"
    assert queue.following().id == first.id
    assert queue.claim(ME, second.surroundings) is None
    assert queue.claim(ME, first.surroundings).id == first.id
    assert queue.claim(ME, first.surroundings) is None
    assert queue.claim(ME, second.surroundings).id == second.id


def test_a_job_of_before_does_not_say_its_surroundings_and_any_process_may_measure_it(queue, store):
    job = queue.submit(experiment(), store)
    path = queue.folder / job.id / "request.json"
    path.write_text(json.dumps({name: v for name, v in json.loads(path.read_text()).items() if name != "surroundings"}))
    assert queue.job(job.id).surroundings is None
    assert queue.claim(ME, ExecutionContext(variables=(("CUDA_VISIBLE_DEVICES", "7"),))).id == job.id


def test_jobs_are_claimed_in_the_order_of_submission(queue, store):
    submitted = [queue.submit(experiment(width), store).id for width in (1, 2, 3)]
    assert [job.place for job in queue.jobs()] == [1, 2, 3]
    claimed = [queue.claim(ME) for _ in submitted]
    assert [job.id for job in claimed] == submitted
    assert {job.state for job in claimed} == {"running"}
    assert queue.claim(ME) is None


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(moves=st.lists(st.sampled_from(["submit", "claim", "stop"]), max_size=12), choice=st.randoms())
def test_whatever_is_asked_in_whatever_order_the_oldest_waiting_job_is_next(tmp_path_factory, moves, choice):
    folder = tmp_path_factory.mktemp("queue")
    queue, store, waiting = Queue(folder / "jobs"), Store(folder / "results"), []
    for width, move in enumerate(moves, start=1):
        if move == "submit":
            waiting.append(queue.submit(experiment(width), store).id)
        elif move == "claim":
            claimed = queue.claim(ME)
            assert (claimed.id if claimed else None) == (waiting.pop(0) if waiting else None)
        elif waiting:
            queue.request_stop(waiting.pop(choice.randrange(len(waiting))))
        places = {job.id: job.place for job in queue.jobs() if job.state == "queued"}
        assert places == {job_id: place for place, job_id in enumerate(waiting, start=1)}
        assert all(queue.job(job_id).place == place for job_id, place in places.items())


def test_places_move_up_when_a_job_begins(queue, store):
    first, second = queue.submit(experiment(1), store), queue.submit(experiment(2), store)
    queue.claim(ME)
    assert (queue.job(first.id).place, queue.job(second.id).place) == (0, 1)


def test_names_sort_by_submission_even_if_the_clock_is_set_back(queue, store, monkeypatch):
    monkeypatch.setattr(all_jobs.time, "time_ns", lambda: 5_000)
    first = queue.submit(experiment(1), store)
    monkeypatch.setattr(all_jobs.time, "time_ns", lambda: 4_000)
    assert queue.submit(experiment(2), store).id > first.id


@pytest.mark.parametrize("begun", [False, True])
def test_the_same_request_joins_the_active_job(queue, store, begun):
    job = queue.submit(experiment(), store)
    if begun:
        queue.claim(ME)
    assert queue.submit(experiment(), Store(store.folder)).id == job.id
    assert len(queue.jobs()) == 1


def test_another_budget_store_or_width_is_another_job(queue, store, tmp_path):
    queue.submit(experiment(), store)
    queue.submit(experiment(budget_s=5), store)
    queue.submit(experiment(), Store(tmp_path / "other"))
    queue.submit(experiment(1), store)
    assert len(queue.jobs()) == 4


def test_a_job_that_shall_stop_or_has_ended_is_not_joined(queue, store):
    first = queue.submit(experiment(), store)
    queue.claim(ME)
    queue.request_stop(first.id)
    second = queue.submit(experiment(), store)
    assert second.id != first.id
    queue.request_stop(second.id)
    assert queue.submit(experiment(), store).id not in (first.id, second.id)


def test_many_who_submit_the_same_at_once_get_one_job(queue, store):
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _: Queue(queue.folder).submit(experiment(), store).id, range(16)))
    assert len(set(names)) == 1
    assert len(queue.jobs()) == 1


def test_many_who_claim_at_once_get_different_jobs(queue, store):
    submitted = [queue.submit(experiment(width), store).id for width in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        claimed = list(pool.map(lambda _: Queue(queue.folder).claim(ME).id, submitted))
    assert sorted(claimed) == submitted


def test_a_full_queue_says_so(queue, store, monkeypatch):
    monkeypatch.setattr(queue_module, "QUEUE_LIMIT", 2)
    running = queue.submit(experiment(1), store)
    queue.claim(ME)
    waiting = [queue.submit(experiment(width), store) for width in (2, 3)]
    with pytest.raises(JobError, match="holds 2 waiting jobs"):
        queue.submit(experiment(4), store)
    assert [job.id for job in queue.jobs()] == [running.id, *(job.id for job in waiting)]


def test_a_store_that_cannot_be_written_is_refused_before_anything_waits(queue, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        queue.submit(experiment(), Store(tmp_path / "file" / "results"))
    assert queue.jobs() == []


def test_a_folder_of_jobs_that_cannot_be_written_is_an_error_in_one_sentence(tmp_path, store):
    (tmp_path / "file").write_text("")
    with pytest.raises(JobError, match=r"cannot be written"):
        Queue(tmp_path / "file").submit(experiment(), store)


def test_a_queue_that_stays_locked_is_an_error_in_one_sentence(queue, store, monkeypatch):
    queue.submit(experiment(), store)
    monkeypatch.setattr(all_jobs, "GUARD_S", 0.05)
    with FileLock(queue.folder / "queue.lock"), pytest.raises(JobError, match="has been locked for"):
        queue.submit(experiment(1), store)


@pytest.mark.parametrize("name", ["", "../../etc", "0" * 20, f"{7:020d}-abcdef", "x" * 500])
def test_a_job_that_does_not_exist_is_an_error_in_one_sentence(queue, store, name):
    queue.submit(experiment(), store)
    with pytest.raises(JobError, match="There is no job"):
        queue.job(name)
    with pytest.raises(JobError, match="There is no job"):
        queue.request_stop(name)


def test_what_the_worker_reports_is_what_others_see(queue, store):
    queue.submit(experiment(), store)
    job = queue.claim(ME)
    progress = Progress(
        phase="training",
        pairs=2,
        contenders=(ContenderProgress(contender="cpu", loss_steps=(1, 2), losses=(0.5, float("inf"))),),
    )
    queue.report(dataclasses.replace(job, progress=progress))
    seen = Queue(queue.folder).job(job.id)
    assert (seen.progress, seen.worker, seen.state) == (progress, ME, "running")


def test_a_waiting_job_is_stopped_at_once_a_running_one_is_asked_to_end(queue, store):
    running, waiting = queue.submit(experiment(1), store), queue.submit(experiment(2), store)
    queue.claim(ME)
    assert queue.request_stop(waiting.id).state == "stopped"
    assert queue.request_stop(running.id).state == "running"
    assert queue.files(running.id).is_stop_requested
    assert queue.claim(ME) is None


def test_stopping_what_has_ended_changes_nothing(queue, store):
    job = queue.submit(experiment(), store)
    stopped = queue.request_stop(job.id)
    assert queue.request_stop(job.id) == stopped
    assert queue.kill(job.id) == stopped


def test_each_field_of_a_job_is_a_key_of_one_of_its_files(queue, store):
    job = queue.submit(experiment(), store)
    files = [json.loads((queue.folder / job.id / name).read_text()) for name in ("request.json", "status.json")]
    fields = {field.name for field in dataclasses.fields(job)} - {"id", "question", "place", "damage"}
    assert fields == files[0].keys() - {"experiment"} | files[1].keys()
    assert Queue(queue.folder).job(job.id) == job
