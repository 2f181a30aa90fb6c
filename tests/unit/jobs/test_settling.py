"""What becomes of jobs whose files are damaged, and of those whose worker is silent or gone."""

import dataclasses
import os
import signal
import sys
import time

import psutil
import pytest

from core.errors import JobError
from core.jobs import client, machine, process, recovery
from core.jobs.job import SILENCE_S
from core.jobs.machine import Serving
from core.jobs.queue import Queue
from tests.unit.jobs.under_way import EXPERIMENT, ME, of, status


@pytest.fixture
def signalled(monkeypatch):
    """Whom a signal was sent to; nobody gets it."""
    sent = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)) if number else None)
    monkeypatch.setattr(os, "killpg", lambda pid, number: sent.append((-pid, number)), raising=False)
    for name in ("kill", "terminate", "send_signal", "suspend"):
        monkeypatch.setattr(psutil.Process, name, lambda self, *_: sent.append((self.pid, signal.SIGKILL)))
    return sent


# Damaged files signal nobody


@pytest.mark.parametrize(
    "worker",
    [
        {"pid": True, "created": 1.0},
        {"pid": True, "born": ME.born},
        {"pid": 0, "born": ME.born},
        {"pid": 1, "born": ME.born},
        {"pid": -1, "born": ME.born},
        {"pid": os.getppid(), "born": ""},
        {"pid": os.getppid(), "created": 0.0},
        {"pid": 10**30, "born": ME.born},
        {"pid": "1", "born": ME.born},
        {"pid": 2**22 + 7, "born": ME.born},
        [],
        1,
    ],
)
@pytest.mark.parametrize("look", [Queue.jobs, Queue.settle, lambda queue: queue.kill(queue.jobs()[0].id)])
def test_no_number_in_a_status_makes_anybody_signal_a_process(queue, running, signalled, worker, look):
    status(queue, running, worker=worker)
    look(Queue(queue.folder))
    assert signalled == []
    (job,) = Queue(queue.folder).jobs()
    assert job.state in ("crashed", "stopped")


def test_a_foreign_process_that_a_status_names_rightly_is_not_signalled(queue, running, signalled):
    status(queue, running, worker=dataclasses.asdict(process.process_from_pid(os.getppid())))
    with pytest.raises(JobError, match="another user"):
        Queue(queue.folder).kill(running.id)
    assert signalled == []


@pytest.mark.parametrize("name", ["worker.json", "machine.json"])
@pytest.mark.parametrize(
    "content", ["", "{", "[1]", '{"process": {"pid": true}}', '{"process": {"pid": 1, "born": ""}}']
)
def test_a_damaged_entry_of_the_worker_signals_nobody_and_is_as_good_as_none(queue, signalled, name, content):
    queue.folder.mkdir()
    (queue.folder / name).write_text(content)
    assert queue.worker_file.serving is None
    assert queue.worker_file.machine is None
    assert not queue.worker_file.is_served
    assert signalled == []


@pytest.mark.parametrize(
    "content", ["", "{", '{"state": "dancing"}', '{"state": "running", "progress": 3}', "[" * 9_000]
)
def test_a_damaged_status_is_named_and_what_was_measured_is_saved(queue, store, running, content):
    queue.files(running.id).keep_partial(of(running, pairs=3, outcome="interrupted"))
    (queue.folder / running.id / "status.json").write_text(content)
    settled = Queue(queue.folder).job(running.id)
    assert settled.state == "crashed"
    assert settled.message.startswith("status.json is damaged: ")
    assert settled.message.endswith(", and nobody measures it after 3 pairs; what was measured by then is saved.")
    assert [row.outcome for row in store.trials()] == ["interrupted"] * 2
    assert Queue(queue.folder).job(running.id) == settled, "what is written down now can be read"


def test_a_damaged_status_is_left_to_the_worker_while_one_serves(queue, running):
    queue.worker_file.take(Serving(process=ME, ready=True))
    path = queue.folder / running.id / "status.json"
    path.write_text("{")
    seen = Queue(queue.folder).job(running.id)
    assert (seen.state, seen.damage[:23]) == ("running", "status.json is damaged:")
    assert path.read_text() == "{"
    queue.report(running)
    assert Queue(queue.folder).job(running.id).damage == ""
    path.write_text("{")
    queue.settle()
    assert Queue(queue.folder).job(running.id).state == "crashed", "the worker itself knows that it measures nothing"


def test_a_job_that_ended_well_keeps_its_rows_when_its_status_is_damaged_later(queue, store, running):
    queue.end(recovery.complete(queue.files(running.id), running, of(running)))
    (queue.folder / running.id / "status.json").write_text("\0\0\0")
    settled = Queue(queue.folder).job(running.id)
    assert (settled.state, settled.message) == ("finished", "")
    assert client.load_job_rows(queue, settled) == of(running)


# Clocks and silence


@pytest.mark.parametrize("offset_s", [-86_400.0, 86_400.0])
def test_a_clock_that_is_set_neither_ends_a_job_nor_charges_anybody(queue, running, monkeypatch, offset_s):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + offset_s)
    monkeypatch.setattr(psutil, "boot_time", lambda: offset_s)
    for _ in range(3):
        assert Queue(queue.folder).job(running.id).state == "running"
        queue.settle()
    assert queue.usage.seconds_on_day("", "") == 0
    assert not (queue.folder / "people.json").read_text().count('"seconds": 1')


def test_a_job_is_charged_once_and_only_by_the_time_that_the_machine_was_awake(queue, store, monkeypatch):
    today = "2026-11-22"
    monkeypatch.setattr("core.jobs.queue._today", lambda: today)
    queue.submit(EXPERIMENT, store, asked_by="ada")
    job = queue.claim(ME)
    assert job.began
    monkeypatch.setattr(machine.time, "monotonic", lambda: job.began.uptime_s + 5.0)
    for state in ("finished", "running", "crashed"):
        queue.end(dataclasses.replace(job, state=state))
    assert queue.usage.seconds_on_day("ada", today) == 5.0


def test_time_before_the_machine_was_started_anew_is_charged_to_nobody(queue, store, monkeypatch):
    monkeypatch.setattr("core.jobs.queue._today", lambda: "2026-11-22")
    queue.submit(EXPERIMENT, store, asked_by="ada")
    job = queue.claim(ME)
    monkeypatch.setattr(process, "boot", lambda: "another boot")
    queue.end(dataclasses.replace(job, state="finished"))
    assert queue.usage.seconds_on_day("ada", "2026-11-22") == 0.0


def test_a_worker_that_finds_its_job_settled_stops_and_changes_nothing(queue, running):
    settled = dataclasses.replace(running, state="crashed", message="Settled by somebody else.")
    queue.end(settled)
    assert not queue.report(running)
    queue.end(dataclasses.replace(running, state="finished"))
    assert Queue(queue.folder).job(running.id) == settled


def test_a_worker_that_says_nothing_for_long_is_ended_and_its_rows_are_kept(queue, store, monkeypatch, sleeper):
    queue.submit(dataclasses.replace(EXPERIMENT, budget_s=1.0), store)
    job = queue.claim(sleeper)
    queue.files(job.id).keep_partial(of(job, pairs=3, outcome="interrupted"))
    assert job.reported
    monkeypatch.setattr(machine.time, "monotonic", lambda: job.reported.uptime_s + SILENCE_S - 1)
    assert Queue(queue.folder).job(job.id).state == "running"
    monkeypatch.setattr(machine.time, "monotonic", lambda: job.reported.uptime_s + SILENCE_S + 1)
    ended = Queue(queue.folder).job(job.id)
    assert ended.state == "crashed"
    assert ended.message.startswith("The measuring process did not respond for 5 min 1 s and was ended after 3 pairs;")
    assert not sleeper.alive
    assert len(store.trials()) == 2


def test_a_silent_process_that_is_none_of_ours_is_left_alone(queue, store, running, monkeypatch, signalled):
    monkeypatch.setattr(machine.time, "monotonic", lambda: running.reported.uptime_s + 10 * SILENCE_S)
    assert Queue(queue.folder).job(running.id).state == "crashed"
    assert signalled == []


def test_a_long_budget_leaves_more_time_for_silence(queue, store, monkeypatch):
    queue.submit(dataclasses.replace(EXPERIMENT, budget_s=3600.0), store)
    job = queue.claim(ME)
    monkeypatch.setattr(machine.time, "monotonic", lambda: job.reported.uptime_s + 4 * 3600.0)
    assert Queue(queue.folder).job(job.id).state == "running"


@pytest.fixture
def sleeper(queue):
    """A process with the command line of a worker of this queue."""
    command = (sys.executable, "-c", "import time; time.sleep(60)", "--jobs", str(queue.folder))
    child = psutil.Popen(command)
    yield process.process_from_pid(child.pid)
    child.kill()
    child.wait()
