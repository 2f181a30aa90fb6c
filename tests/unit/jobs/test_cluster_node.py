"""A machine of a cluster: what it tells, what it refuses, and that it asks its own queue."""

import dataclasses

import pytest

from core.errors import ForeignFile, JobError, NotAllowed
from core.jobs import client, cluster_node, process
from core.jobs.cluster_node import ASKED_BY, Report, Request, pack_rows, unpack_rows
from core.jobs.machine import Machine
from core.results import environment
from core.results.schema import Trial
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep

ASKED = sweep(sizes=(8, 16))
POINT = ASKED.experiment(ASKED.points[0])
ROWS = scripted_worker.timed(POINT, "a" * 12)


@pytest.fixture
def measures(queue, monkeypatch):
    """Lets a job bring rows, and end, whenever somebody looks at it."""

    def watch(queue, job_id):
        job = queue.job(job_id)
        if job.state == "queued":
            job = queue.claim(process.current_process())
            names = {"run_ids": ("a" * 12,), "trial_ids": tuple(row.trial_id for row in ROWS)}
            for row in ROWS:
                client.Store(job.store).add(row)
            queue.end(dataclasses.replace(job, state="finished", **names))
        return queue.job(job_id)

    monkeypatch.setattr(client, "watch", watch)


def test_a_point_is_measured_by_this_machines_own_queue_and_its_rows_are_told_once(queue, measures):
    said: list[Report] = []
    cluster_node.measure_request(queue, Request(experiment=POINT.to_json()), said.append, lambda: False)
    assert [trial for report in said for trial in unpack_rows(report.rows)] == ROWS
    assert (said[-1].state, said[-1].is_complete) == ("finished", True)
    [job] = queue.jobs()
    assert (job.question, job.asked_by) == (POINT, ASKED_BY)


def test_rows_that_are_known_already_lie_in_the_store_of_the_job_and_are_not_told(queue, measures):
    said: list[Report] = []
    request = Request(sweep=ASKED.to_json(), rows=pack_rows(ROWS))
    cluster_node.measure_request(queue, request, said.append, lambda: False)
    assert [report.rows for report in said] == [""]


def test_code_of_others_is_not_measured(queue):
    point = dataclasses.replace(POINT.point, training="mine.py:build", source_hash="0" * 16, size=8)
    asked = dataclasses.replace(POINT, point=point)
    with pytest.raises(NotAllowed, match="custom training"):
        cluster_node.measure_request(queue, Request(experiment=asked.to_json()), print, lambda: False)


def test_what_a_killed_process_had_measured_is_stopped(queue, store, monkeypatch):
    monkeypatch.setattr(client, "ensure_worker", lambda queue: None)  # which the other job waits for
    job = queue.submit(POINT, store, asked_by=ASKED_BY)
    other = queue.submit(ASKED, store)
    cluster_node.stop_orphans(queue)
    assert (queue.job(job.id).state, queue.job(other.id).state) == ("stopped", "queued")


def test_the_measuring_process_is_ended_unless_somebody_waits_for_it(queue, store, monkeypatch):
    ended = []
    monkeypatch.setattr(type(queue.worker_file), "dismiss", lambda self: ended.append(self))
    job = queue.submit(POINT, store)
    cluster_node.end_idle_worker(queue)
    assert ended == []
    client.stop(queue, job.id)
    cluster_node.end_idle_worker(queue)
    assert ended == [queue.worker_file]


def test_a_machine_whose_measuring_process_does_not_start_says_so(queue, monkeypatch):
    def fail(_):
        raise JobError("The measuring process did not start.")

    monkeypatch.setattr(client, "await_machine", fail)
    report = cluster_node.describe_machine(queue)
    assert (report.machine.devices, report.message) == ({}, "The measuring process did not start.")


def test_a_machine_tells_its_devices_and_a_name_that_its_owner_may_choose(queue, monkeypatch):
    found = Machine(environment=environment.read_environment(), devices=scripted_worker.DEVICES)
    monkeypatch.setattr(client, "await_machine", lambda _: found)
    monkeypatch.setenv(cluster_node.MACHINE_VARIABLE, "lab-3")
    told = cluster_node.describe_machine(queue).machine
    assert (told.host, told.name, list(told.devices)) == (
        "lab-3",
        "lab-3",
        [info.device for info in scripted_worker.DEVICES],
    )


@pytest.mark.parametrize("text", ["!", "AAAA", "é"])
def test_rows_that_are_none_are_refused(text):
    with pytest.raises(ForeignFile):
        unpack_rows(text)


def test_no_rows_are_no_text():
    none: list[Trial] = []
    assert (pack_rows(none), unpack_rows("")) == ("", none)
