"""Taking a step apart: the parts on a real training, and the busy time on a device whose work is delayed."""

import contextlib
import itertools
import statistics
from collections.abc import Callable

import pytest
import torch

from core.errors import LaneUnavailable
from core.measure import breakdown, datasets, networks
from core.measure.devices import Device
from core.measure.timer import Timer
from core.measure.training import Training
from core.question.experiment import Point
from core.question.lanes import PLAIN, Lane
from core.results import validation
from core.results.parquet import to_table
from tests.fakes import FakeClock, FakeDevice, queueing
from tests.rows import trial

CPU, GPU = torch.device("cpu"), torch.device("cuda:0")
POINT = Point(samples=300, hidden_size=16, batch_size=50)


@pytest.fixture
def training():
    data = datasets.load_dataset("digits", samples=POINT.samples, seed=0)
    feed = datasets.make_feed(POINT, data, data.train, CPU)
    return Training(networks.build(POINT.network, seed=0), feed, learning_rate=0.1)


@pytest.mark.slow
def test_each_part_has_a_time_for_each_step(training):
    parts = breakdown.measure_breakdown(training, Timer(device=Device(CPU)), step_s=0.5 / 12)
    assert list(parts) == ["loader", "transfer", "forward", "backward", "optimizer"]
    assert {len(entry) for entry in parts.values()} == {12}
    assert all(value > 0 for entry in parts.values() for value in entry)


def test_each_part_is_the_time_between_two_readings_and_that_of_the_optimizer_between_four(training):
    ticks = itertools.count(step=1_000_000)
    parts = breakdown.measure_breakdown(training, Timer(device=Device(CPU), clock=lambda: next(ticks)), step_s=1.0)
    optimizer = parts.pop("optimizer")
    assert set(parts.values()) == {(0.001,) * 3}
    assert optimizer == (0.002,) * 3


@pytest.mark.slow
@pytest.mark.parametrize(("step_s", "steps"), [(1e-6, 50), (10.0, 3)])
def test_the_pass_is_bounded_for_quick_and_slow_steps(training, step_s, steps):
    assert len(breakdown.measure_breakdown(training, Timer(device=Device(CPU)), step_s=step_s)["loader"]) == steps


def test_taking_apart_trains_as_any_step_does(training):
    data = datasets.load_dataset("digits", samples=POINT.samples, seed=0)
    plain = Training(
        networks.build(POINT.network, seed=0), datasets.make_feed(POINT, data, data.train, CPU), learning_rate=0.1
    )
    breakdown.measure_breakdown(training, Timer(device=Device(CPU)), step_s=0.5 / 12)
    plain.advance(13)
    assert all(torch.equal(a, b) for a, b in zip(training.weights(), plain.weights(), strict=True))


class FakeTraining:
    """Steps whose launches cost the host more than their work costs the device."""

    def __init__(self, device: FakeDevice, busy_s: float) -> None:
        self._device, self._busy_s = device, busy_s

    lane = PLAIN

    def rehearsal(self) -> Callable[[], None]:
        return queueing(self._device, self._busy_s / 10, 10)


@pytest.mark.parametrize("busy_s", [2e-5, 1e-4, 5e-4, 5e-3])
def test_the_busy_time_leaves_the_launches_out(monkeypatch, busy_s):
    clock = FakeClock()
    device = FakeDevice(clock=clock, launch_s=5e-5)
    monkeypatch.setattr(breakdown, "_filler", lambda timer, _, seconds: lambda: device.launch(seconds))
    step_s = max(busy_s, 10 * device.launch_s)
    values = breakdown.busy_step_s(FakeTraining(device, busy_s), Timer(device=device, clock=clock), GPU, step_s=step_s)
    assert len(values) == 5
    assert statistics.median(values) == pytest.approx(busy_s, rel=0.01)


@pytest.mark.parametrize(
    ("depth", "filler_s"), [(1_000, [0.02]), (30, [0.02, 0.01, 0.005, 0.005]), (5, [0.02, 0.01, 0.005, 0.005, 0.005])]
)
def test_the_filler_takes_twice_as_long_as_its_steps_of_which_half_are_tried_where_they_came_late(
    monkeypatch, depth, filler_s
):
    clock, asked = FakeClock(), []
    device = FakeDevice(clock=clock, launch_s=5e-5, depth=depth)

    def filler(timer, _, seconds):
        asked.append(seconds)
        return lambda: device.launch(seconds)

    monkeypatch.setattr(breakdown, "_filler", filler)
    with contextlib.suppress(LaneUnavailable):
        breakdown.busy_step_s(FakeTraining(device, 1e-4), Timer(device=device, clock=clock), GPU, step_s=5e-4)
    assert asked == pytest.approx(filler_s)


def test_the_busy_time_of_a_call_is_that_of_all_its_steps(monkeypatch):
    clock = FakeClock()
    device = FakeDevice(clock=clock, launch_s=5e-5)
    monkeypatch.setattr(breakdown, "_filler", lambda timer, _, seconds: lambda: device.launch(seconds))
    training = FakeTraining(device, 4e-4)
    monkeypatch.setattr(training, "lane", Lane(execution="graph", steps_per_call=4), raising=False)
    values = breakdown.busy_step_s(training, Timer(device=device, clock=clock), GPU, step_s=2e-4)
    assert values == pytest.approx((1e-4,) * 5, rel=0.01)


def test_a_busy_time_that_noise_hides_is_none_at_all_and_its_row_can_be_read(monkeypatch):
    clock = FakeClock()
    device = FakeDevice(clock=clock)
    noisy_s = itertools.cycle([0.005, 0.006])
    monkeypatch.setattr(breakdown, "_filler", lambda *_, **__: lambda: device.launch(next(noisy_s)))
    work = FakeTraining(device, 1e-6)
    work.rehearsal()()
    device.synchronize()
    next(noisy_s)  # so that the filler with steps is always the quicker one
    values = breakdown.busy_step_s(work, Timer(device=device, clock=clock), GPU, step_s=1e-3)
    assert values == (0.0,) * breakdown.BUSY_REPEATS
    validation.validate_rows(to_table([trial(contender="cuda:0", busy_step_s=values)]))


def test_without_filler_the_launches_would_be_counted_so_that_nothing_is_known(monkeypatch):
    """The mistake that the filler is there against, and that is noticed."""
    clock = FakeClock()
    device = FakeDevice(clock=clock, launch_s=5e-5)
    monkeypatch.setattr(breakdown, "_filler", lambda *_, **__: lambda: None)
    with pytest.raises(LaneUnavailable, match="could not all be queued"):
        breakdown.busy_step_s(FakeTraining(device, 2e-5), Timer(device=device, clock=clock), GPU, step_s=5e-4)


@pytest.mark.parametrize(("depth", "known"), [(1_000, True), (300, True), (30, True), (5, False)])
def test_no_more_is_queued_than_the_queue_of_a_device_holds(monkeypatch, depth, known):
    """Where it is full the host waits, and launches that come late would count to the step."""
    clock = FakeClock()
    device = FakeDevice(clock=clock, launch_s=5e-5, depth=depth)
    monkeypatch.setattr(breakdown, "_filler", lambda timer, _, seconds: lambda: device.launch(seconds))
    with contextlib.nullcontext() if known else pytest.raises(LaneUnavailable, match="the queue may hold fewer"):
        values = breakdown.busy_step_s(FakeTraining(device, 1e-4), Timer(device=device, clock=clock), GPU, step_s=5e-4)
        assert values == pytest.approx((1e-4,) * breakdown.BUSY_REPEATS, rel=0.01)


def test_a_step_of_more_launches_than_a_queue_holds_is_recorded_and_replayed(monkeypatch):
    """As cells of an LSTM on tokens, with 2,284 launches a step, on a queue of 1,024."""
    clock = FakeClock()
    device = FakeDevice(clock=clock, launch_s=5e-6, depth=1_024)
    monkeypatch.setattr(breakdown, "_filler", lambda timer, _, seconds: lambda: device.launch(seconds))
    training, recorded = FakeTraining(device, 2e-3), []
    monkeypatch.setattr(training, "rehearsal", lambda: queueing(device, 2e-3 / 2_284, 2_284))

    def record(work):
        recorded.append(work)
        return lambda: device.launch(2e-3)

    timer = Timer(device=device, clock=clock)
    values = breakdown.busy_step_s(training, timer, GPU, step_s=2_284 * 5e-6, record=record)
    assert values == pytest.approx((2e-3,) * breakdown.BUSY_REPEATS, rel=0.01)
    assert len(recorded) == 1
    breakdown.busy_step_s(FakeTraining(device, 2e-3), timer, GPU, step_s=1e-2, record=record)
    assert len(recorded) == 1, "what can be queued is not recorded"


def test_a_long_filler_is_made_of_few_launches(monkeypatch):
    clock = FakeClock()
    device = FakeDevice(clock=clock, launch_s=1e-6)
    monkeypatch.setattr(torch, "mm", lambda a, *_, **__: device.launch(3e-4 * (len(a) / 2_048) ** 3))
    timer = Timer(device=device, clock=clock)
    fill = breakdown._filler(timer, torch.device("meta"), seconds=2.0)
    device.log.clear()
    assert timer.time(fill).seconds == pytest.approx(2.0, rel=0.1)
    assert device.log.count("work") <= breakdown.FILLER_LAUNCHES


def test_the_filler_is_made_of_matrices_of_one_size_at_most(monkeypatch):
    device, sizes = FakeDevice(clock=FakeClock()), set()

    def multiply(matrix, *_, **__):
        sizes.add(len(matrix))
        device.launch(1e-6)

    monkeypatch.setattr(torch, "mm", multiply)
    breakdown._filler(Timer(device=device, clock=device.clock), torch.device("meta"), seconds=2.0)
    assert sizes == {2_048, 4_096, 8_192, 16_384}


def test_the_filler_lasts_as_long_as_it_should(monkeypatch):
    """Sized by what one product takes on the device."""
    clock = FakeClock()
    device = FakeDevice(clock=clock, launch_s=1e-6)
    monkeypatch.setattr(torch, "mm", lambda *_, **__: device.launch(1e-3))
    timer = Timer(device=device, clock=clock)
    fill = breakdown._filler(timer, torch.device("meta"), seconds=0.05)
    assert timer.time(fill).seconds == pytest.approx(0.051, rel=0.02)


def test_a_cpu_has_no_busy_time_of_its_own(training):
    assert breakdown.busy_step_s(training, Timer(device=Device(CPU)), CPU, step_s=1e-3) == ()
