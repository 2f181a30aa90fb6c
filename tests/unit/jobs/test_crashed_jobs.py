"""Jobs whose process died, that nobody can serve, that are old or cannot be understood."""

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.errors import JobError
from core.jobs import queue as all_jobs
from core.jobs import queue as queue_module
from core.jobs import recovery
from core.jobs.process import Process
from core.jobs.queue import Queue
from core.question.experiment import Experiment, Point
from tests import rows
from tests.unit.jobs.asked import ME, experiment


def trials(pairs: int = 3, **changes):
    return rows.run({"cpu": 1e-3, "cpu@1": 2e-3}, point=experiment().point, pairs=pairs, **changes)


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
    assert len(list(store.folder.glob("*.parquet"))) == 1


def test_a_job_whose_process_died_before_it_saved_anything_says_so(queue, store, dead):
    queue.submit(experiment(), store)
    queue.claim(dead)
    (job,) = queue.jobs()
    assert (job.state, job.message) == ("crashed", "The measuring process was killed before anything was measured.")


def test_a_job_whose_process_died_after_it_was_asked_to_stop_is_stopped(queue, store, dead):
    job = queue.submit(experiment(), store)
    queue.claim(dead)
    queue.files(job.id).keep_partial(trials(outcome="interrupted"))
    queue.files(job.id).request_stop()
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
    done = recovery.complete(queue.files(job.id), job, trials())
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
        json.dumps(
            {"experiment": Experiment(point=Point()).to_json(), "store": "x" * 5_000, "fresh": False, "created_at": ""}
        ),
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
    assert caplog.text.count(f"Skipped the job {spoiled.id}: request.json is damaged: ") == 1
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

    def refuse(self, ours, log):
        raise PermissionError("not yours")

    monkeypatch.setattr(Process, "kill", refuse)
    with pytest.raises(JobError, match="another user"):
        queue.kill(job.id)
    assert queue.job(job.id).state == "running"
