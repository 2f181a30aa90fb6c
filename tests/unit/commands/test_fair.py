"""`--fair full`: what is asked for then; nothing is measured."""

import dataclasses

import pytest

from core.commands import run
from core.jobs import client
from core.jobs.machine import Machine
from core.results import environment
from core.results.environment import DeviceInfo

GPU = DeviceInfo(device="cuda:0", kind="cuda", name="Test GPU", memory_bytes=1, refusals={"compiled": "no compiler"})
CPU = DeviceInfo(device="cpu", kind="cpu", name="Test CPU", memory_bytes=1, refusals={"compiled": "no compiler"})


@pytest.fixture
def asked(monkeypatch):
    """What was submitted."""
    submitted = []

    def follow(queue, job):
        submitted.append(job.question)
        return dataclasses.replace(job, state="failed", message="It was not measured.")

    machine = Machine(environment=environment.read_environment(), devices=(CPU, GPU))
    monkeypatch.setattr(run, "require_machine", lambda queue: machine)
    monkeypatch.setattr(client, "load_machine", lambda queue: machine)
    monkeypatch.setattr(run, "show_job_progress", follow)
    monkeypatch.setattr(client, "load_job_rows", lambda queue, job: [])
    return submitted


@pytest.mark.parametrize("words", [("run",), ("sweep", "--axis", "hidden_size", "--values", "8,16")])
def test_each_device_contends_with_the_lanes_that_it_has(command, asked, tmp_path, words):
    ask = (*words, "--devices", "cpu,cuda:0", "--store", tmp_path / "store")
    assert command(*ask, "--fair", "full").status == command(*ask).status == 1
    fair, plain = ([str(contender) for contender in each.contenders] for each in asked)
    assert plain == ["cpu", "cuda:0"]
    assert (fair[0], fair[-1]) == ("cpu", "cuda:0")
    assert {"cpu+kept", "cpu+fused", "cuda:0+graph10", "cuda:0+fused"} <= set(fair)
    assert not any("compiled" in name for name in fair)


def test_without_the_cpu_it_is_refused_in_a_sentence(command, asked, tmp_path):
    done = command("run", "--devices", "cuda:0", "--fair", "full", "--store", tmp_path / "store")
    assert done.status == 2
    assert "with the CPU among the devices" in done.err
    assert asked == []
