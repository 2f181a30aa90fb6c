"""`machines` and `sweep --on`: what they print, and how they end."""

import dataclasses
import json

import pytest

from core.commands import run as measuring
from core.jobs import cluster
from core.jobs.cluster_machine import ClusterMachine
from core.results import environment
from core.results.store import Store
from tests.integration import scripted_worker

HERE = environment.read_environment()
ONE = ClusterMachine(
    host="lab-1", machine_id=HERE.machine_id, cpu="Test CPU", devices=("Test CPU",), own_id="1" * 12, threads=2
)
SWEEP = (
    *("sweep", "--dataset", "digits", "--axis", "hidden_size", "--values", "8,16,32,64,128,256,512,1024"),
    *("--devices", "cpu@1,cpu", "--seed", str(scripted_worker.CURVE), "--on", "ray"),
)


@pytest.fixture
def run(command, capsys):
    """Status, what was printed and what was said, also where the words were wrong."""

    def call(*words):
        try:
            done = command(*words)
        except SystemExit as left:
            captured = capsys.readouterr()
            return left.code, captured.out, captured.err
        return done.status, done.out, done.err

    return call


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def answering(store, monkeypatch):
    """Machines that have measured everything at once, and say how they ended."""

    def answer(*machines):
        def follow(queue, job):
            is_shared, rows = job.elsewhere.spread == "shared", []
            for machine in machines:
                for number, point in enumerate(job.sweep.points if machine.state == "finished" else ()):
                    run_id = f"{machine.host[-1] * 6}{number:06x}"
                    facts = {"machine_id": machine.machine_id if is_shared else machine.own_id}
                    for row in scripted_worker.timed(job.sweep.experiment(point), run_id, **facts):
                        store.add(row)
                        rows.append(row)
            ids = {
                f"{name}s": tuple(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("run_id", "trial_id")
            }
            return dataclasses.replace(job, state="finished", machines=machines, **ids)

        monkeypatch.setattr(measuring, "show_job_progress", follow)

    return answer


def ended(host, state="finished", **changes):
    return dataclasses.replace(ONE, host=host, state=state, own_id=host[-1] * 12, **changes)


@pytest.mark.slow
def test_each_machine_has_its_answer(run, store, answering):
    answering(ended("lab-1"), ended("lab-2"))
    status, out, _ = run(*SWEEP, "--store", str(store.folder))
    assert status == 0
    first, second = out.splitlines()
    assert first.startswith("lab-1 (Test CPU): ")
    assert second.startswith("lab-2 (Test CPU): ")
    assert "hidden size" in first


@pytest.mark.slow
def test_machines_of_one_kind_that_share_the_points_have_one_answer(run, store, answering):
    answering(ended("lab-1"), ended("lab-2", "failed", message="The cluster lost this machine."))
    status, out, _ = run(*SWEEP, "--store", str(store.folder), "--spread", "shared", "--json")
    assert status == 0
    [machine] = json.loads(out)["machines"]
    assert [each["host"] for each in machine["members"]] == ["lab-1", "lab-2"]
    assert machine["points"] == 8
    assert len(machine["crossovers"]) == 1
    assert [answer["sentence"] for answer in machine["answers"]] == machine["crossovers"]


@pytest.mark.slow
def test_a_machine_that_failed_is_told_with_its_sentence(run, store, answering):
    answering(ended("lab-1"), ended("lab-2", "failed", message="The device cuda:0 is not there."))
    status, out, _ = run(*SWEEP, "--store", str(store.folder))
    assert status == 1
    assert out.splitlines()[1] == "lab-2 (Test CPU): The device cuda:0 is not there."


def test_where_nobody_measured_anything_a_line_says_so(run, store, answering):
    answering()
    status, out, _ = run(*SWEEP, "--store", str(store.folder))
    assert (status, out) == (1, "No machine answered.\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--on", "workers"), "--on must be one of ray, ray://HOST:PORT"),
        (("--on", "ray://host"), "one of ray, ray://HOST:PORT"),
    ],
)
def test_any_other_place_is_refused(run, store, words, sentence):
    for command in (SWEEP[:-2], ("machines",)):
        status, _, err = run(*command, *words)
        assert (status, sentence.partition(": ")[2] in err if ": " in sentence else sentence in err) == (2, True)


def test_a_cluster_is_asked_for_named_devices(run, store):
    status, _, err = run("sweep", "--dataset", "digits", "--axis", "hidden_size", "--values", "8,16", "--on", "ray")
    assert (status, "given with --on" in err) == (2, True)


class Listed:
    """A cluster whose machines are these."""

    def __init__(self, *machines):
        self.machines = machines

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_machines_are_listed_by_kind(run, monkeypatch):
    silent = cluster.name_silent("f" * 40, "It did not answer within 60 s. " * 4)
    listed = Listed(ONE, dataclasses.replace(ONE, host="lab-2"), silent)
    monkeypatch.setattr(cluster, "connect", lambda on: listed)
    monkeypatch.setattr(cluster, "list_machines", lambda connected: list(connected.machines))
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run("machines")
    assert status == 0
    assert f"2 machines of kind {HERE.machine_id}: Test CPU\n  lab-1  2 CPU threads; Test CPU\n  lab-2  2 CPU" in out
    assert "1 machine without an answer\n  node-ffffffff  It did not answer within 60 s." in out
    assert max(len(line) for line in out.splitlines()) <= 80
    document = json.loads(run("machines", "--json")[1])
    assert [machine["host"] for machine in document["machines"]] == ["lab-1", "lab-2", "node-ffffffff"]


def test_a_cluster_without_machines_says_so(run, monkeypatch):
    monkeypatch.setattr(cluster, "connect", lambda on: Listed())
    monkeypatch.setattr(cluster, "list_machines", lambda connected: [])
    assert run("machines")[:2] == (1, "The cluster has no machine.\n")


def test_the_command_of_machines_that_only_shared_a_store_is_gone(run):
    assert run("worker")[0] == 2
