"""What is tried out for a contender: threads, and how long an accelerator is led in."""

from dataclasses import replace

import pytest
import torch

from core.measure import devices, preflight
from core.measure.contender import MeasuredContender
from core.measure.training import Training
from core.question.experiment import Contender
from tests.unit.measure.started import CPU, POINT, plain, started, warm

# Threads


@pytest.fixture
def three_cores(monkeypatch):
    monkeypatch.setattr(preflight.environment, "usable_cores", lambda *_: 3)
    monkeypatch.setattr(preflight.environment, "physical_cores", lambda *_: 3)


def by_threads(**seconds):
    """Seconds of so many steps, as each thread count takes them: `by_threads(one=2e-3, …)`."""
    names = ("one", "two", "three")
    return lambda steps: steps * seconds[names[torch.get_num_threads() - 1]]


def test_thread_counts_take_turns_and_the_fastest_is_kept(data, machine, three_cores):
    measured = started(data, "cpu")
    before = measured.training.weights()
    machine.advanced.clear()
    turns, pace = [], by_threads(one=1.2e-3, two=1e-3, three=3e-3)
    machine.seconds = lambda steps: turns.append(torch.get_num_threads()) or pace(steps)
    assert len(list(measured.try_threads())) == 5
    assert turns == [1, 1, 1, 2, 2, 3, 3, 1, 1, 2, 2]
    assert machine.advanced == [1, 2, 25, 1, 25, 1, 30, 1, 10, 1, 25]
    raw = measured.raw
    assert (raw.threads, raw.threads_tried) == (2, [1, 2, 3])
    assert raw.threads_tried_step_s == pytest.approx([1.2e-3, 1e-3, 3e-3])
    assert raw.startup_compile_s == 0.0
    assert measured.steps == 1
    machine.seconds = lambda _: 0.0
    for a, b in zip(measured.training.weights(), before, strict=True):
        assert torch.equal(a, b)
    measured.training.advance(9)
    assert measured.training.read_losses() == plain(data, 10).read_losses()[1:]


def test_long_steps_need_none_before_them_when_threads_are_tried(data, machine, three_cores):
    measured = started(data, "cpu")
    machine.advanced.clear()
    machine.seconds = by_threads(one=3.0, two=1.0, three=1.4)
    list(measured.try_threads())
    assert machine.advanced == [1, 1, 1, 1, 1, 1]
    assert measured.raw.threads == 2


@pytest.mark.slow
def test_a_lane_is_compiled_for_the_two_counts_that_train_plain_steps_fastest(
    data, machine, uncompiled, monkeypatch, three_cores
):
    measured = MeasuredContender(Contender.parse("cpu+compiled"), POINT, data)
    spent = {1: 11.0, 2: 22.0, 3: 33.0}
    monkeypatch.setattr(Training, "prepare", lambda *_, **__: spent[torch.get_num_threads()])
    machine.seconds = by_threads(one=5e-3, two=2e-3, three=1e-3)
    assert list(measured.shortlist_threads())
    measured.start()
    assert (measured.raw.startup_compile_s, measured.steps) == (33.0, 1)
    machine.seconds = by_threads(one=1e-4, two=1e-3, three=2e-3)
    list(measured.try_threads())
    assert (measured.raw.threads, measured.raw.threads_tried) == (2, [2, 3])
    assert measured.raw.startup_compile_s == 22.0
    assert measured.compiling_s == 55.0


@pytest.mark.slow
def test_on_an_accelerator_a_lane_is_compiled_once(data, machine, uncompiled, monkeypatch, three_cores, card):
    measured = MeasuredContender(Contender.parse("cuda:0+compiled"), POINT, data)
    prepared = []
    monkeypatch.setattr(Training, "prepare", lambda *_, **__: prepared.append(torch.get_num_threads()) or 7.0)
    machine.seconds = by_threads(one=3e-3, two=1e-3, three=2e-3)
    list(measured.shortlist_threads())
    measured.start()
    list(measured.try_threads())
    assert prepared == [2]
    assert (measured.raw.threads, measured.raw.threads_tried, measured.raw.startup_compile_s) == (2, [], 7.0)


# Leading in


@pytest.fixture
def card(monkeypatch):
    """A device that is called cuda:0 and is the CPU."""
    info = replace(devices.find("cpu"), device="cuda:0", kind="cuda")
    monkeypatch.setattr(devices, "find", lambda name: info)
    monkeypatch.setattr(devices, "open_device", lambda name: devices.Device(CPU))


def test_the_device_of_a_contender_is_the_current_one_while_it_trains(data, machine, card, monkeypatch):
    """Pinning memory for the second GPU would otherwise take memory of the first."""
    current = []
    monkeypatch.setattr(torch.accelerator, "set_device_index", current.append)
    measured = warm(data, "cuda:0@1")
    assert current == []  # the CPU stands for it
    monkeypatch.setattr(measured, "_device", devices.Device(torch.device("cuda:1")))
    measured._use_settings()
    assert current == [1]


def lead_ins(measured, clock, *idle_s):
    """Steps before each of some blocks, before each of which the device idles for so long."""
    steps = []
    for pair, seconds in enumerate(idle_s):
        clock.pass_s(seconds)
        done = measured.steps
        measured.block(pair)
        steps.append(measured.raw.block_first_step[-1] - done)
    return steps


def test_an_accelerator_that_idled_for_long_is_led_in_for_longer(data, machine, card):
    measured = warm(data, "cuda:0@1", epochs=1000)
    assert lead_ins(measured, machine.clock, 0.1, 2.0, 60.0, 0.1) == [20, 200, 500, 20]
    assert measured.raw.lead_in_steps == 20


def test_an_accelerator_that_others_used_meanwhile_did_not_idle(data, machine, card):
    measured, other = warm(data, "cuda:0@1", epochs=1000), warm(data, "cuda:0@1", epochs=1000)
    machine.clock.pass_s(60.0)
    other.block(0)
    assert lead_ins(measured, machine.clock, 0.1) == [20]


def test_what_is_resident_on_a_device_is_there_once_while_somebody_trains_on_it(data, machine):
    one, other = started(data), started(data)
    assert one._fresh.resident is other._fresh.resident is not None


def test_a_cpu_is_led_in_for_the_same_time_whatever_came_between(data, machine):
    assert lead_ins(warm(data), machine.clock, 0.1, 2.0, 60.0) == [20, 20, 20]
