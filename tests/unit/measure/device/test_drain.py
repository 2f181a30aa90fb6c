"""Whether a device that says it is done is done: honest ones, and ones that leave work."""

from dataclasses import dataclass

import pytest
import torch

from core.errors import DeviceUnavailable
from core.measure import devices
from tests.fakes import FakeClock, FakeDevice, Undrained

FLOPS = 5e12


@dataclass
class Hasty:
    """Waits for a part of what is queued, and leaves the rest."""

    device: FakeDevice
    left: float

    def synchronize(self) -> None:
        clock = self.device.clock
        clock.now_ns += round((1 - self.left) * max(0, self.device.busy_until_ns - clock.now_ns))


def products(device: FakeDevice, tried: list[tuple[int, int]], read_s: float = 5e-5):
    """Products on a delayed device, whose value is there when all of them are done."""

    def queue(size, count):
        tried.append((size, count))
        for _ in range(count):
            device.launch(2 * size**3 / FLOPS)

        def read():
            device.synchronize()
            device.clock.pass_s(read_s)

        return read

    return queue


@pytest.fixture
def delayed():
    return FakeDevice(clock=FakeClock(), launch_s=1e-5)


def test_a_device_that_waits_has_nothing_left_but_the_reading_of_a_value(delayed):
    tried = []
    left = devices.share_left(delayed, products(delayed, tried), delayed.clock)
    assert left == pytest.approx(0.0, abs=2e-4)
    size, count = tried[-1]
    assert 2 * size**3 * count / FLOPS >= devices.WORK_S
    assert size == 4096


def test_a_drain_that_returns_at_once_leaves_all_but_the_queueing(delayed):
    assert devices.share_left(Undrained(delayed), products(delayed, []), delayed.clock) > 0.98


@pytest.mark.parametrize("part", [0.61, 0.2])
def test_a_drain_that_waits_for_a_part_leaves_the_rest(delayed, part):
    left = devices.share_left(Hasty(delayed, part), products(delayed, []), delayed.clock)
    assert left == pytest.approx(part, abs=0.01)
    assert left > devices.NOTICEABLE


def test_of_a_device_too_fast_for_any_work_no_more_is_queued_than_fits(delayed):
    tried, quick = [], lambda size, count: tried.append((size, count)) or (lambda: delayed.clock.pass_s(1e-9))
    devices.share_left(delayed, quick, delayed.clock)
    assert tried[-1] == (4096, devices.MOST_PRODUCTS)


@pytest.fixture
def card(monkeypatch):
    """A device that is called cuda:0, and computes at once."""
    monkeypatch.setattr(devices, "open_device", lambda _: devices.Device(torch.device("meta")))
    monkeypatch.setattr(devices, "_first_use", lambda _: 0.5)
    devices.initialise.cache_clear()
    yield
    devices.initialise.cache_clear()


def test_a_device_that_leaves_work_is_refused_when_it_is_used_first(card, monkeypatch):
    monkeypatch.setattr(devices, "share_left", lambda *_: 0.61)
    with pytest.raises(DeviceUnavailable, match=r"61 % of the work was unfinished, so every time would be too short"):
        devices.initialise("cuda:0")


def test_a_device_that_leaves_none_is_used(card, monkeypatch):
    monkeypatch.setattr(devices, "share_left", lambda *_: 0.001)
    assert devices.initialise("cuda:0") == 0.5


def test_reading_a_value_that_waits_now_and_then_refuses_no_device(card, monkeypatch):
    shares = iter((0.13, 0.4, 0.02))
    monkeypatch.setattr(devices, "share_left", lambda *_: next(shares))
    assert devices.initialise("cuda:0") == 0.5


def test_a_cpu_is_not_tried(monkeypatch):
    monkeypatch.setattr(devices, "share_left", lambda *_: pytest.fail("a CPU has no queue"))
    devices.initialise.cache_clear()
    assert devices.initialise("cpu") > 0


def test_the_products_are_real_ones():
    assert devices._queue(torch.device("cpu"), 64, 3)() == pytest.approx(1 / 64)
