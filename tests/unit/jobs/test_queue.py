import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import JobError, StoreError
from core.jobs import all_jobs, process, saving
from core.jobs import queue as queue_module
from core.jobs.process import Process, Surroundings
from core.jobs.queue import Queue
from core.progress import ContenderProgress, Progress
from core.question.experiment import Contender, Experiment, Point
from core.results.store import Store
from tests import rows

ME = process.this()


def experiment(width: int = 128, **changes) -> Experiment:
    return Experiment(point=Point(hidden_size=width), contenders=(Contender(), Contender(threads=1)), **changes)


def trials(pairs: int = 3, **changes):
    return rows.run({"cpu": 1e-3, "cpu@1": 2e-3}, point=experiment().point, pairs=pairs, **changes)


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
    assert queue.claim(ME, Surroundings(variables=(("CUDA_VISIBLE_DEVICES", "7"),))).id == job.id


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
    assert queue.files(running.id).asked_to_stop
    assert queue.claim(ME) is None


def test_stopping_what_has_ended_changes_nothing(queue, store):
    job = queue.submit(experiment(), store)
    stopped = queue.request_stop(job.id)
    assert queue.request_stop(job.id) == stopped
    assert queue.kill(job.id) == stopped


def test_a_job_whose_process_died_crashed_and_what_it_had_saved_is_in_the_store(queue, store, dead):
    job = queue.submit(experiment(), store)
    queue.claim(dead)
    queue.files(job.id).keep_partial(trials(pairs=3, outcome="interrupted"))
    crashed = queue.job(job.id)
    assert crashed.state == "crashed"
    assert crashed.message == ("The measuring process was killed after 3 pairs; what was measured by then is saved.")
    assert [trial.outcome for trial in store.trials(run_id=crashed.run_id)] == ["interrupted"] * 2
    assert crashed.trial_ids == tuple(trial.trial_id for trial in trials())
    assert Queue(queue.folder).jobs() == [crashed]


def test_a_crash_is_settled_once_however_many_look(queue, store, dead):
    job = queue.submit(experiment(), store)
    queue.claim(dead)
    queue.files(job.id).keep_partial(trials(outcome="interrupted"))
    with ThreadPoolExecutor(6) as pool:
        seen = list(pool.map(lambda _: Queue(queue.folder).job(job.id), range(12)))
    assert len(set(map(repr, seen))) == 1
    assert len(list(store.folder.glob("*.parquet"))) == 2


def test_a_job_whose_process_died_before_it_saved_anything_says_so(queue, store, dead):
    queue.submit(experiment(), store)
    queue.claim(dead)
    (job,) = queue.jobs()
    assert (job.state, job.message) == ("crashed", "The measuring process was killed before anything was measured.")


def test_a_job_whose_process_died_after_it_was_asked_to_stop_is_stopped(queue, store, dead):
    job = queue.submit(experiment(), store)
    queue.claim(dead)
    queue.files(job.id).keep_partial(trials(outcome="interrupted"))
    queue.files(job.id).ask_to_stop()
    stopped = queue.job(job.id)
    assert (stopped.state, stopped.message[:22]) == ("stopped", "Stopped after 3 pairs;")
    assert {trial.outcome for trial in store.trials(run_id=stopped.run_id)} == {"stopped"}


def test_rows_that_were_complete_when_the_process_died_finish_their_job(queue, store, dead):
    job = queue.submit(experiment(), store)
    queue.claim(dead)
    queue.files(job.id).keep_partial(trials(pairs=1, outcome="interrupted"))
    queue.files(job.id).keep_unsaved(trials(pairs=9))
    assert queue.job(job.id).state == "finished"
    assert [trial.outcome for trial in store.trials()] == ["completed"] * 2


def test_a_process_that_died_between_the_store_and_the_end_of_its_job_lost_nothing(queue, store, dead):
    queue.submit(experiment(), store)
    job = queue.claim(dead)
    done = saving.complete(queue.files(job.id), job, trials())
    settled = queue.job(job.id)
    assert settled == done
    assert store.trials(run_id=settled.run_id) == trials()


def test_a_disk_that_is_full_does_not_hide_a_crash(queue, store, dead, monkeypatch):
    job = queue.submit(experiment(), store)
    queue.claim(dead)

    def full(self, job):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(queue_module.JobFolder, "write", full)
    assert queue.job(job.id).state == "crashed"


def test_every_waiting_job_fails_when_nobody_can_serve_it(queue, store):
    running, waiting = queue.submit(experiment(1), store), queue.submit(experiment(2), store)
    queue.claim(ME)
    queue.fail_waiting("No.")
    assert queue.job(running.id).state == "running"
    assert (queue.job(waiting.id).state, queue.job(waiting.id).message) == ("failed", "No.")


def test_old_ended_jobs_are_dropped_but_not_active_ones_nor_rows_that_no_store_has(queue, store, monkeypatch):
    running = queue.submit(experiment(1), store)
    queue.claim(ME)
    submitted = [queue.submit(experiment(width), store) for width in (2, 3, 4)]
    ended = [job.id for job in submitted]
    for job in submitted:
        queue.end(dataclasses.replace(job, state="finished", unsaved=job.id == ended[0]))
    monkeypatch.setattr(all_jobs, "KEPT_JOBS", 1)
    newest = queue.submit(experiment(5), store)
    assert [job.id for job in queue.jobs()] == [running.id, ended[0], ended[2], newest.id]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        json.dumps({"experiment": {}, "store": "x", "fresh": False, "created_at": ""}),
        json.dumps({"experiment": Experiment(point=Point()).to_json(), "store": "", "fresh": False, "created_at": ""}),
        json.dumps({"sweep": {"axes": [[[[]]]]}, "store": "x", "fresh": False, "created_at": ""}),
        json.dumps({"store": "x"}),
        "[" * 10_000,
    ],
)
def test_a_job_that_cannot_be_understood_is_named_left_alone_and_the_others_go_on(queue, store, caplog, content):
    spoiled, sound = queue.submit(experiment(1), store), queue.submit(experiment(2), store)
    request = queue.folder / spoiled.id / "request.json"
    request.write_text(content)
    others = Queue(queue.folder)
    assert [job.id for job in others.jobs()] == [sound.id]
    assert [job.id for job in others.jobs()] == [sound.id]
    assert caplog.text.count(f"The job {spoiled.id} is passed over: request.json is damaged: ") == 1
    with pytest.raises(JobError, match="are damaged; they are left as they are"):
        others.job(spoiled.id)
    assert others.claim(ME).id == sound.id
    assert request.read_text() == content


def test_damaged_jobs_are_never_dropped(queue, store, monkeypatch):
    monkeypatch.setattr(all_jobs, "KEPT_JOBS", 0)
    spoiled = queue.submit(experiment(1), store)
    queue.request_stop(spoiled.id)
    (queue.folder / spoiled.id / "request.json").write_text("{")
    Queue(queue.folder).submit(experiment(2), store)
    assert (queue.folder / spoiled.id).exists()


def test_a_status_of_an_earlier_version_still_names_its_run(queue, store):
    job = queue.submit(experiment(), store)
    status = {"state": "finished", "run_id": rows.RUN_ID, "trial_ids": [f"{rows.RUN_ID}-0"]}
    (queue.folder / job.id / "status.json").write_text(json.dumps(status))
    assert (queue.job(job.id).run_id, queue.job(job.id).run_ids) == (rows.RUN_ID, (rows.RUN_ID,))


def test_a_process_of_somebody_else_cannot_be_killed(queue, store, monkeypatch):
    job = queue.submit(experiment(), store)
    queue.claim(ME)

    def refuse(self, ours):
        raise PermissionError("not yours")

    monkeypatch.setattr(Process, "kill", refuse)
    with pytest.raises(JobError, match="somebody else"):
        queue.kill(job.id)
    assert queue.job(job.id).state == "running"
