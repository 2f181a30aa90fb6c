"""Jobs with real processes: queue, worker, kills of either side, and the machine's lock."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from core.errors import JobError
from core.files.project import PROJECT
from core.jobs import client, process
from core.jobs.job import Job
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import Queue
from core.progress import WAITING
from core.results.store import Store
from tests.integration import scripted_worker
from tests.integration.following import PATIENCE_S, ended, kill, measuring, submit, until, watched
from tests.integration.scripted_worker import BROKEN, COMMAND, DEAF, QUICK, RELEASE, UNTIL_RELEASED, experiment

MakeQueue = Callable[[str], Queue]


@pytest.fixture
def make_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeQueue]:
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    monkeypatch.setattr(client, "COMMAND", COMMAND)
    queues: list[Queue] = []

    def make(name: str) -> Queue:
        queues.append(Queue(tmp_path / name))
        return queues[-1]

    yield make
    for queue in queues:
        queue.worker_file.dismiss()


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue("jobs")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def test_jobs_are_measured_in_the_order_of_submission_by_one_warm_process(queue, store):
    jobs = [submit(queue, store, QUICK, width=width) for width in (8, 16, 32)]
    done = [watched(queue, job, ended) for job in jobs]
    assert [job.state for job in done] == ["finished"] * 3
    assert len({job.worker.pid for job in done}) == 1
    notes = scripted_worker.journal().read_text().split("\n")[:-1]
    assert [note.split(" ", 1)[1] for note in notes] == [
        f"{what} {job.id}" for job in jobs for what in ("begin", "end")
    ]
    for job in done:
        assert [trial.outcome for trial in client.load_job_rows(queue, job)] == ["completed"] * 2
    assert client.load_machine(queue).live
    assert client.load_machine(queue).startup_s == {"cpu": 0.25}


def test_the_same_request_joins_the_running_job_and_a_stop_is_quick_and_keeps_the_rows(queue, store, monkeypatch):
    monkeypatch.setattr(client, "GRACE_S", PATIENCE_S)  # a busy machine needs longer to come to the end of a round
    job = submit(queue, store, UNTIL_RELEASED)
    running = watched(queue, job, measuring)
    assert submit(queue, store, UNTIL_RELEASED).id == job.id
    waiting = submit(queue, store, UNTIL_RELEASED, width=8)
    assert (running.place, waiting.place) == (0, 1)
    assert client.stop(queue, waiting.id).state == "stopped"
    stopped = client.stop(queue, job.id)
    assert stopped.state == "stopped"
    assert "saved" in stopped.message
    assert {trial.outcome for trial in store.trials(run_id=stopped.run_id)} == {"stopped"}
    assert process.process_from_pid(running.worker.pid).alive, (
        "a measurement that stops by itself leaves its process warm"
    )


def test_a_measurement_that_does_not_listen_is_killed_and_the_next_job_gets_a_new_process(queue, store):
    job = submit(queue, store, DEAF)
    running = watched(queue, job, measuring)
    following = submit(queue, store, QUICK)
    stopped = client.stop(queue, job.id)
    assert stopped.state == "stopped"
    assert not running.worker.alive
    assert {trial.outcome for trial in client.load_job_rows(queue, stopped)} == {"stopped"}
    done = watched(queue, following, ended)
    assert done.state == "finished"
    assert done.worker.pid != running.worker.pid


def test_a_killed_worker_is_reported_with_what_was_saved_and_a_new_run_begins_anew(queue, store):
    job = submit(queue, store, UNTIL_RELEASED)
    following = submit(queue, store, QUICK)
    running = watched(queue, job, measuring)
    kill(running.worker.pid)
    crashed = watched(queue, job, ended)
    assert crashed.state == "crashed"
    assert crashed.message.startswith("The measuring process was killed after 4 pairs;")
    saved = store.trials(run_id=crashed.run_id)
    assert [(trial.outcome, len(trial.block_s)) for trial in saved] == [("interrupted", 4)] * 2
    assert watched(queue, following, ended).state == "finished", "a new worker goes on with the queue"

    again = submit(queue, store, UNTIL_RELEASED)
    assert again.id != job.id
    watched(queue, again, measuring)
    (queue.folder / RELEASE).touch()
    done = watched(queue, again, ended)
    assert done.state == "finished"
    assert done.run_id != crashed.run_id
    assert {trial.outcome for trial in store.trials(run_id=done.run_id)} == {"completed"}


def test_a_run_goes_on_when_the_process_that_asked_for_it_is_killed(queue, store):
    asker = f"""
import time
from pathlib import Path
from core.jobs import client
from core.jobs.queue import Queue
from core.results.store import Store
from tests.integration import following, scripted_worker
client.COMMAND = scripted_worker.COMMAND
queue, store = Queue(Path({str(queue.folder)!r})), Store(Path({str(store.folder)!r}))
following.submit(queue, store, scripted_worker.UNTIL_RELEASED)
time.sleep({PATIENCE_S})
"""
    server = subprocess.Popen([sys.executable, "-c", asker], cwd=PROJECT, start_new_session=True)
    (job,) = until(queue.jobs, lambda jobs: len(jobs) == 1 and measuring(jobs[0]))
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()
    pairs = job.progress.pairs
    watched(queue, job, lambda now: now.progress.pairs > pairs + 20)
    (queue.folder / RELEASE).touch()
    done = watched(queue, job, ended)
    assert (done.state, done.worker.pid) == ("finished", job.worker.pid)


def test_of_workers_that_race_for_a_queue_one_serves_and_the_others_leave(queue, store):
    queue.folder.mkdir()
    racers = [subprocess.Popen([*COMMAND, "--jobs", str(queue.folder)], cwd=PROJECT) for _ in range(4)]
    try:
        until(
            lambda: [racer.poll() for racer in racers], lambda codes: sorted(map(str, codes)) == ["0", "0", "0", "None"]
        )
        until(lambda: queue.worker_file.serving, lambda serving: serving is not None and serving.ready)
        (winner,) = [racer for racer in racers if racer.poll() is None]
        assert queue.worker_file.serving.process.pid == winner.pid
        job = submit(queue, store, QUICK)
        assert watched(queue, job, ended).worker.pid == winner.pid
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()


def test_measurements_of_two_queues_never_overlap(make_queue, store):
    queues = [make_queue("one"), make_queue("two")]
    first = submit(queues[0], store, UNTIL_RELEASED)
    watched(queues[0], first, measuring)
    second = submit(queues[1], store, QUICK)
    waiting = watched(queues[1], second, lambda job: job.progress is not None)
    assert (waiting.state, waiting.place, waiting.progress.phase) == ("running", 0, WAITING)
    (queues[0].folder / RELEASE).touch()
    assert watched(queues[1], second, ended).state == "finished"
    notes = [note.split(" ", 1)[1] for note in scripted_worker.journal().read_text().splitlines()]
    assert notes == [f"begin {first.id}", f"end {first.id}", f"begin {second.id}", f"end {second.id}"]


def test_a_job_that_waits_for_the_machine_can_be_stopped(make_queue, store):
    queues = [make_queue("one"), make_queue("two")]
    watched(queues[0], submit(queues[0], store, UNTIL_RELEASED), measuring)
    second = submit(queues[1], store, QUICK)
    watched(queues[1], second, lambda job: job.progress is not None)
    stopped = client.stop(queues[1], second.id)
    assert (stopped.state, stopped.message) == ("stopped", "Stopped before anything was measured.")
    assert second.id not in scripted_worker.journal().read_text()


def test_a_bug_in_a_measurement_fails_its_job_and_a_fresh_process_goes_on(queue, store):
    broken, following = submit(queue, store, BROKEN), submit(queue, store, QUICK)
    failed = watched(queue, broken, ended)
    assert failed.state == "failed"
    assert "ZeroDivisionError: a bug" in failed.message
    assert {trial.outcome for trial in client.load_job_rows(queue, failed)} == {"interrupted"}
    assert "Traceback" in queue.worker_file.log.read_text()
    assert watched(queue, following, ended).state == "finished"


def test_a_worker_starts_afresh_before_the_next_job_when_the_code_was_changed(queue, store):
    first = watched(queue, submit(queue, store, QUICK), ended)
    (queue.folder / "code" / "changed.py").write_text("")
    second = watched(queue, submit(queue, store, QUICK, width=8), ended)
    assert (first.state, second.state) == ("finished", "finished")
    assert second.worker.pid != first.worker.pid
    until(lambda: first.worker.alive, lambda alive: not alive)


def test_an_idle_worker_leaves_and_the_next_job_gets_another(queue, store, monkeypatch):
    monkeypatch.setenv("SCRIPTED_IDLE_S", "0.05")
    first = watched(queue, submit(queue, store, QUICK), ended)
    until(lambda: first.worker.alive, lambda alive: not alive)
    assert queue.worker_file.serving is None
    assert not queue.worker_file.machine.live
    second = watched(queue, submit(queue, store, QUICK, width=8), ended)
    assert second.state == "finished"
    assert second.worker.pid != first.worker.pid


ASKER = """
import os, sys
from pathlib import Path
from core.jobs import client
from core.jobs.queue import Queue
from core.results.store import Store
from tests.integration import scripted_worker
from tests.integration.scripted_worker import QUICK, experiment
client.COMMAND = scripted_worker.COMMAND
jobs, results, processor, width, follow = sys.argv[1:]
os.sched_setaffinity(0, {int(processor)})
queue = Queue(Path(jobs))
job = queue.submit(experiment(QUICK, width=int(width)), Store(Path(results)))
if follow:
    client.follow_job(queue, job.id, lambda _: None)
print(job.id)
"""


@pytest.fixture
def ask(queue, store) -> Callable[..., str]:
    """Asks in a process of its own, on one processor, seeing one device; the name of the job."""

    def asked(processor: int, device: str, width: int, *, follow: bool = True) -> str:
        command = [sys.executable, "-c", ASKER, queue.folder, store.folder, str(processor), str(width), "y" * follow]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": device}
        done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return asked


def surroundings() -> list[str]:
    return scripted_worker.journal().with_name(scripted_worker.SURROUNDINGS).read_text().splitlines()


lends = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="there are no two to be lent"
)


@lends
def test_who_asks_is_measured_on_the_processors_and_devices_that_it_may_use(queue, ask):
    first, *_, last = sorted(os.sched_getaffinity(0))
    asked = [(first, "0", 8), (last, "1", 16), (last, "1", 32), (first, "0", 64)]
    ids = [ask(*each) for each in asked]
    assert surroundings() == [
        f"{name} [{processor}] {device}" for name, (processor, device, _) in zip(ids, asked, strict=True)
    ]
    workers = [queue.job(name).worker.pid for name in ids]
    assert workers[1] == workers[2], "a process that fits stays warm"
    assert len(set(workers)) == 3


@lends
def test_jobs_of_several_shells_are_served_in_turns_whoever_starts_the_worker(queue, ask):
    first, *_, last = sorted(os.sched_getaffinity(0))
    asked = [(first, "0", 8), (last, "1", 16), (first, "0", 32)]
    ids = [ask(*each, follow=False) for each in asked]
    client.ensure_worker(queue)
    for name in ids:
        assert watched(queue, queue.job(name), ended).state == "finished"
    assert surroundings() == [
        f"{name} [{processor}] {device}" for name, (processor, device, _) in zip(ids, asked, strict=True)
    ]


def test_an_idle_worker_of_another_shell_makes_room_for_who_wants_to_know_the_machine(queue, store, monkeypatch):
    done = watched(queue, submit(queue, store, QUICK), ended)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert not client.has_same_context(queue)
    client.ensure_worker(queue)
    assert done.worker.alive
    client.ensure_worker(queue, same_context=True)
    until(lambda: done.worker.alive, lambda alive: not alive)
    found = until(lambda: client.load_machine(queue), lambda machine: machine is not None and machine.live)
    assert ("CUDA_VISIBLE_DEVICES", "1") in found.surroundings.variables
    assert client.has_same_context(queue)


def test_a_worker_that_measures_stays_whoever_wants_to_know_the_machine(queue, store, monkeypatch):
    running = watched(queue, submit(queue, store, UNTIL_RELEASED), measuring)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    client.ensure_worker(queue, same_context=True)
    assert running.worker.alive
    (queue.folder / RELEASE).touch()
    assert watched(queue, running, ended).state == "finished"


def test_waiting_jobs_fail_when_workers_keep_dying_at_their_start(queue, store, monkeypatch):
    monkeypatch.setattr(client, "COMMAND", (sys.executable, "-c", "raise SystemExit(3)"))
    job = watched(queue, queue.submit(experiment(QUICK), store), ended)
    assert job.state == "failed"
    assert str(queue.worker_file.log) in job.message
    monkeypatch.setattr(client, "COMMAND", COMMAND)
    assert watched(queue, submit(queue, store, QUICK), ended).state == "finished", "a later try is a new one"


def test_a_worker_that_has_ended_before_anybody_looks_counts_as_one_that_died(queue, store, monkeypatch):
    def gone(pid: int) -> process.Process:
        raise psutil.NoSuchProcess(pid)

    monkeypatch.setattr(client, "COMMAND", (sys.executable, "-c", "raise SystemExit(3)"))
    monkeypatch.setattr(process, "process_from_pid", gone)
    job = watched(queue, queue.submit(experiment(QUICK), store), ended)
    assert job.state == "failed"
    assert f"crashed {client.STARTS} times" in job.message


def test_a_worker_whose_entry_was_lost_is_left_alone(queue, store):
    job = submit(queue, store, UNTIL_RELEASED)
    running = watched(queue, job, measuring)
    queue.worker_file.leave(queue.worker_file.serving.process)
    following = submit(queue, store, QUICK)
    assert queue.worker_file.serving is None, "nobody else was started"
    (queue.folder / RELEASE).touch()
    assert watched(queue, following, ended).worker.pid == running.worker.pid
    running.worker.kill(queue.worker_file.serves)


def test_following_a_job_shows_each_change_until_its_end(queue, store):
    seen: list[Job] = []
    job = queue.submit(experiment(QUICK), store)
    done = client.follow_job(queue, job.id, seen.append)
    assert done.state == "finished"
    assert seen[-1] == done
    assert all(before != after for before, after in itertools.pairwise(seen))


def test_a_worker_that_cannot_be_started_is_an_error_in_one_sentence(queue, store, monkeypatch):
    monkeypatch.setattr(client, "COMMAND", (str(queue.folder / "no-such-python"),))
    job = queue.submit(experiment(QUICK), store)
    with pytest.raises(JobError, match="could not be started"):
        client.watch(queue, job.id)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups of this kind")
def test_children_that_a_killed_worker_leaves_behind_are_ended_too():
    family = "import os, time; pid = os.fork(); print(pid, flush=True) if pid else None; time.sleep(60)"
    leader = subprocess.Popen([sys.executable, "-c", family], start_new_session=True, stdout=subprocess.PIPE, text=True)
    child = process.process_from_pid(int(leader.stdout.readline()))
    mark = process.process_from_pid(leader.pid)
    kill(leader.pid)
    until(lambda: mark.alive, lambda alive: not alive)
    assert child.alive
    mark.kill(lambda command: command[1:] == ["-c", family])
    until(lambda: child.alive, lambda alive: not alive)
    leader.communicate()
    assert not psutil.pid_exists(mark.pid)
