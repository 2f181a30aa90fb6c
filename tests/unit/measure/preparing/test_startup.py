"""The first use of a device in a process of its own: when one is started, what it says, and what becomes of that."""

import itertools
import json
import subprocess
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from core.measure import devices, startup
from core.measure.trial import Hooks, measure
from core.question.experiment import Contender, Experiment, Point

MLP, LINEAR = Point(dataset="digits", model="mlp").network, Point(dataset="digits", model="linear").network
CNN = Point(dataset="fashion-mnist", model="cnn").network
CARD = Contender.parse("cuda:0")


@pytest.fixture
def processes(monkeypatch):
    """Processes that are started, and what each of them says."""
    found = SimpleNamespace(asked=[], said='a warning\n{"context_s": 0.75, "step_s": 0.5}\n', error=None)

    def run(command, **options):
        found.asked.append(command[3:])
        if found.error:
            raise found.error
        return SimpleNamespace(stdout=found.said)

    monkeypatch.setattr(startup.subprocess, "run", run)
    startup._measure_in_fresh_processes.cache_clear()
    yield found
    startup._measure_in_fresh_processes.cache_clear()


def test_three_processes_are_started_for_each_device_kind_of_layers_and_lane(processes):
    asked = [(CARD, MLP), (CARD, LINEAR), (CARD, CNN), (Contender.parse("cuda:1"), MLP), (CARD, MLP)]
    assert [startup.cold_s(*each) for each in asked] == [(1.25,) * 3] * 5
    startup.cold_s(Contender.parse("cuda:0@1+bf16"), MLP)
    startup.cold_s(Contender.parse("cuda:0@2+graph10+bf16"), MLP)
    started = [
        ["cuda:0", "--layers", "fully connected"],
        ["cuda:0", "--layers", "convolution"],
        ["cuda:1", "--layers", "fully connected"],
        ["cuda:0+bf16", "--layers", "fully connected"],
    ]
    assert processes.asked == [each for each in started for _ in range(3)]


def test_a_slow_first_use_is_read_once(processes, monkeypatch):
    now = itertools.count(0.0, startup.READINGS_S + 1)
    monkeypatch.setattr(startup.time, "monotonic", lambda: next(now) / 2)
    assert len(startup.cold_s(CARD, MLP)) == 1


def test_none_is_started_for_a_cpu(processes):
    assert startup.cold_s(Contender.parse("cpu@1"), MLP) == ()
    assert processes.asked == []


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("", None),
        ("no JSON", None),
        ('{"context_s": 1}', None),
        ("[]", None),
        ("{}", OSError("no memory")),
        ("{}", subprocess.CalledProcessError(1, "python")),
        ("{}", subprocess.TimeoutExpired("python", 60)),
    ],
)
def test_where_it_fails_nothing_is_known_and_it_is_not_tried_again(processes, said, error):
    processes.said, processes.error = said, error
    assert startup.cold_s(CARD, MLP) == startup.cold_s(CARD, MLP) == ()
    assert len(processes.asked) == 1


@pytest.mark.parametrize(
    ("network", "kind"), [(MLP, "fully connected"), (LINEAR, "fully connected"), (CNN, "convolution")]
)
def test_networks_are_told_apart_by_their_layers(network, kind):
    assert startup.layers(network) == kind
    assert startup.layers(startup.SMALL[kind]) == kind


@pytest.mark.parametrize(
    ("kind", "lane"),
    [
        *(("fully connected", lane) for lane in ("", "+bf16", "+micro2")),
        *(("convolution", lane) for lane in ("", "+bf16", "+micro2", "+channels_last")),
    ],
)
def test_a_device_is_used_with_one_step_in_its_lane(kind, lane):
    used = startup.first_use(Contender.parse(f"cpu{lane}"), kind)
    assert used["context_s"] > 0
    assert used["step_s"] > 0


@pytest.mark.slow
def test_a_real_process_says_what_a_first_use_takes(monkeypatch):
    """As on an accelerator; the device is the CPU."""
    assert startup._measure_in_fresh_process(Contender.parse("cpu+bf16"), "convolution") > 0


def test_the_command_prints_its_parts(capsys):
    startup.report_first_use(["cpu", "--layers", "convolution"])
    assert set(json.loads(capsys.readouterr().out)) == {"context_s", "step_s"}


@pytest.fixture
def card(machine, monkeypatch):
    """A device that is called cuda:0, and is the CPU, in a measurement whose time is the machine's."""
    info = replace(devices.find("cpu"), device="cuda:0", kind="cuda")
    monkeypatch.setattr(devices, "find", lambda name: info)
    monkeypatch.setattr(devices, "to_torch_device", lambda name: torch.device("cpu"))
    monkeypatch.setattr(devices, "initialise", lambda name: 0.125)
    monkeypatch.setattr(time, "perf_counter", lambda: 1.0 + machine.clock() / 1e9)


def measured(name):
    point = Point(samples=300, hidden_size=8, depth=1, batch_size=20, epochs=1)
    (row,) = measure(Experiment(point=point, contenders=(Contender.parse(name),), pairs=2), hooks=Hooks())
    return row


def test_a_row_has_the_first_use_of_the_fresh_process_and_says_so(card, processes):
    row = measured("cuda:0@1")
    assert (row.startup_device_s, row.startup_fresh) == (1.25, True)
    assert row.startup_device_readings_s == (1.25,) * 3


def test_where_the_process_failed_a_row_has_that_of_the_measuring_process_and_says_so(card, processes):
    processes.error = OSError()
    row = measured("cuda:0@1")
    assert (row.outcome, row.startup_device_s, row.startup_fresh) == ("timed", 0.125, False)


def test_the_first_use_of_a_cpu_is_that_of_the_measuring_process(machine, processes):
    row = measured("cpu@1")
    assert (row.startup_fresh, processes.asked) == (False, [])
    assert row.startup_device_s == devices.initialise("cpu")
