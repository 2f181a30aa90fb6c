"""The synchronized timer on a device whose work is delayed, and the drain of every kind of device."""

import gc

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.measure import devices, timer
from core.measure.timer import Reading, Timer
from tests.fakes import FakeClock, FakeDevice, Undrained, queueing


def delayed(launch_s: float = 1e-5) -> tuple[FakeDevice, Timer]:
    clock = FakeClock()
    device = FakeDevice(clock=clock, launch_s=launch_s)
    return device, Timer(device=device, clock=clock)


def test_all_of_the_delayed_work_is_timed():
    device, synchronized = delayed()
    assert synchronized.time(queueing(device, 0.01, 8)).seconds == pytest.approx(0.08, rel=0.01)


def test_without_a_drain_only_the_queueing_is_timed():
    device, synchronized = delayed()
    unsynchronized = Timer(device=Undrained(device), clock=synchronized.clock)
    assert unsynchronized.time(queueing(device, 0.01, 8)).seconds == pytest.approx(8e-5)


def test_work_left_over_from_before_is_not_charged_to_the_block():
    device, synchronized = delayed()
    device.launch(5.0)
    assert synchronized.time(queueing(device, 0.01, 1)).seconds == pytest.approx(0.01, rel=0.01)


def test_the_order_is_drain_work_drain():
    device, synchronized = delayed()
    synchronized.time(queueing(device, 0.01, 2))
    assert device.log == ["drain", "work", "work", "drain"]


@pytest.mark.parametrize("name", ["cuda:0", "cuda:1", "xpu:0", "mps"])
def test_every_kind_of_accelerator_is_drained_itself(name, monkeypatch):
    """ROCm devices are called cuda by PyTorch, so they are among these."""
    drained = []
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda device: drained.append(str(device)))
    Timer(device=devices.Device(torch.device(name))).time(lambda: drained.append("work"))
    assert drained == [name, "work", name]


@pytest.mark.parametrize("name", ["cuda:0", "cuda:1", "xpu:0", "mps"])
def test_a_missing_drain_is_caught_on_every_kind_of_accelerator(name, monkeypatch):
    device, synchronized = delayed()
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda _: device.synchronize())
    real = Timer(device=devices.Device(torch.device(name)), clock=synchronized.clock)
    with_drain = real.time(queueing(device, 0.01, 8)).seconds
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda _: None)
    without = real.time(queueing(device, 0.01, 8)).seconds
    assert with_drain == pytest.approx(0.08, rel=0.01)
    assert without < 0.01 * with_drain


def test_the_cpu_has_no_queue_and_asks_no_accelerator(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda _: pytest.fail("the CPU is not an accelerator"))
    devices.Device(torch.device("cpu")).synchronize()


def test_the_garbage_collector_rests_during_a_block_and_comes_back():
    _, synchronized = delayed()
    seen = []
    synchronized.time(lambda: seen.append(gc.isenabled()))
    assert (seen, gc.isenabled()) == ([False], True)


def test_the_garbage_collector_comes_back_after_an_error():
    _, synchronized = delayed()
    with pytest.raises(ZeroDivisionError):
        synchronized.time(lambda: 1 / 0)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    _, synchronized = delayed()
    gc.disable()
    try:
        synchronized.time(lambda: None)
        assert not gc.isenabled()
    finally:
        gc.enable()


@given(st.floats(min_value=1e-7, max_value=100))
def test_a_block_is_long_enough_and_has_enough_steps(step_s):
    steps = timer.block_steps(step_s)
    assert steps >= timer.MIN_BLOCK_STEPS
    assert steps * step_s >= timer.MIN_BLOCK_S
    assert steps == timer.MIN_BLOCK_STEPS or (steps - 1) * step_s <= timer.BLOCK_MARGIN * timer.MIN_BLOCK_S * 1.01


def test_a_clock_too_coarse_to_see_a_step_gives_the_smallest_block():
    assert timer.block_steps(0.0) == timer.MIN_BLOCK_STEPS


def test_seconds_are_those_between_the_readings():
    assert Reading(begin_ns=5, end_ns=2_000_000_005).seconds == 2.0


@pytest.mark.parametrize(("step_s", "steps"), [(1e-3, 111), (1e-2, 12), (0.02, 6), (0.03, 5), (1.0, 5)])
def test_a_block_lasts_a_tenth_longer_than_a_tenth_of_a_second_and_is_five_steps_at_least(step_s, steps):
    assert timer.block_steps(step_s) == steps


@pytest.mark.parametrize(("step_s", "steps"), [(1e-3, 20), (0.05, 2), (1.0, 2), (0.0, 2)])
def test_a_block_is_led_in_for_so_long_and_so_many_steps(step_s, steps):
    assert timer.lead_in_steps(step_s) == steps


@pytest.mark.parametrize(("idle_s", "steps"), [(0.0, 20), (0.1, 20), (0.5, 50), (2.0, 200), (5, 500), (60, 500)])
def test_a_lead_in_grows_with_the_time_idled_up_to_a_longest(idle_s, steps):
    assert timer.lead_in_steps(1e-3, idle_s=idle_s) == steps
