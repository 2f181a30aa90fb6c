"""What only a real accelerator can show beyond the instruments: busy time, whole comparisons, memory, and lessons."""

import statistics
import time
from functools import partial

import pytest
import torch

from core.answer import accuracy, causes, speedup
from core.answer.lessons import outcomes
from core.measure import breakdown, devices, startup
from core.measure.custom import op_counter
from core.measure.demonstrations import run_demonstration
from core.measure.timer import MIN_BLOCK_S, Timer
from core.measure.trial import Hooks, measure
from core.question.demonstrations import Demonstration
from core.question.experiment import Contender, Experiment, Point
from core.results.exhibits import Clock, FirstStep, Moving
from tests.gpu.accelerators import ACCELERATOR_MARKS, POINT, start_training

pytestmark = ACCELERATOR_MARKS

SCARCE_BYTES = 2**30
"""What a card may give while it is to run out of memory; a full one would take minutes to fill."""


def test_a_first_use_in_a_fresh_process_takes_longer_than_a_step_here(device):
    point = Point(dataset="digits", model="mlp", epochs=1, samples=300, batch_size=20)
    asked = Experiment(point=point, contenders=(Contender(device=str(device.torch)),), budget_s=20, pairs=2)
    (row,) = measure(asked, hooks=Hooks())
    assert row.startup_fresh
    assert startup.PATIENCE_S > row.startup_device_s > row.startup_first_step_s


def test_steps_are_queued_faster_than_they_are_done_or_nothing_could_be_launch_bound(device):
    big = start_training(device, Point(dataset="disc", model="doubling-mlp", depth=12, batch_size=1_000, epochs=5))
    device.synchronize()
    begin = time.perf_counter()
    big.advance(5)
    queued = time.perf_counter() - begin
    device.synchronize()
    assert queued < time.perf_counter() - begin


def test_the_device_is_busy_for_no_longer_than_a_step_takes(device):
    started, timer = start_training(device), Timer(device=device)
    step_s = timer.time(lambda: started.advance(500)).seconds / 500
    busy = breakdown.busy_step_s(started, timer, device.torch, step_s=step_s)
    assert 0 < statistics.median(busy) < 1.1 * step_s


def test_a_whole_comparison_with_the_cpu(device):
    name = str(device.torch)
    asked = Experiment(point=POINT, contenders=(Contender(), Contender(device=name)), budget_s=60)
    cpu, gpu = measure(asked, hooks=Hooks())
    assert (cpu.outcome, gpu.outcome) == ("completed", "completed")
    assert gpu.block_s
    assert statistics.median(gpu.block_s) >= 0.9 * MIN_BLOCK_S
    assert gpu.loss[0] == pytest.approx(cpu.loss[0], rel=1e-3)
    assert len(gpu.busy_step_s) == breakdown.BUSY_REPEATS
    assert speedup.speedup(cpu, gpu).pairs == 20
    assert causes.difference_cause(cpu, gpu)
    assert accuracy.compare_predictions(cpu, gpu) is not None


def test_too_large_a_model_is_out_of_memory_and_nothing_worse(device, monkeypatch):
    if device.torch.type != "cuda":
        pytest.skip("only CUDA and ROCm can be told to give no more than a part of their memory")
    total = torch.cuda.get_device_properties(device.torch).total_memory
    point = Point(dataset="disc", samples=8_192, model="mlp", hidden_size=8_192, depth=8, batch_size=4_096, epochs=1)
    assert point.network.memory_bytes(point.batch_size) > SCARCE_BYTES
    monkeypatch.setattr(devices.Device, "free_bytes", lambda _: 2**60)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(SCARCE_BYTES / total, device.torch)
    try:
        (row,) = measure(
            Experiment(point=point, contenders=(Contender(device=str(device.torch), threads=1),)), hooks=Hooks()
        )
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device.torch)
    assert row.outcome == "out_of_memory"


def test_the_clock_lesson_without_a_drain_falls_far_short_of_ours(device):
    """A step of large products keeps the device busy for far longer than the host takes to queue it."""
    shape = {"hidden_size": 4_096, "depth": 2, "batch_size": 4_096, "epochs": 1}
    point = Point(dataset="disc", samples=500_000, model="mlp", **shape)  # copying an epoch's order waits: few do
    name = str(device.torch)
    asked = Demonstration(
        kind="clock", point=point, contenders=(Contender(device=name),), budget_s=90, recipes=("no_drain", "disc")
    )
    shown = run_demonstration(asked, hooks=Hooks())
    assert shown is not None
    assert isinstance(shown.content, Clock)
    compared = {entry.variant.name: entry for entry in outcomes.compare_clocks(shown.content, name)}
    assert compared["no_drain"].against_ours < 0.5
    assert compared["disc"].against_ours > 0.5, "printing the errors waits for the device"


def test_the_moving_lesson_names_the_device_in_both_orders(device):
    name = str(device.torch)
    shown = run_demonstration(
        Demonstration(kind="moving", contenders=(Contender(), Contender(device=name))), hooks=Hooks()
    )
    assert shown is not None
    assert isinstance(shown.content, Moving)
    snippets = {snippet.title: snippet for snippet in shown.content.snippets}
    one, other = snippets["A tensor here plus a tensor there"], snippets["A tensor there plus a tensor here"]
    assert one.device == other.device == name
    assert shown.content.notes == ()
    assert all(device.torch.type in snippet.error for snippet in (one, other))
    assert snippets["Does .to() move a module?"].output.endswith(f"its weight lives on: {name}")


def test_the_first_step_of_an_accelerator_differs_by_rounding_alone(device):
    asked = Demonstration(
        kind="first_step",
        point=Point(dataset="digits", hidden_size=256, batch_size=64),
        contenders=(Contender(), Contender(device=str(device.torch))),
    )
    shown = run_demonstration(asked, hooks=Hooks())
    assert shown is not None
    assert isinstance(shown.content, FirstStep)
    assert shown.content.largest < outcomes.SUSPICIOUS_DIFFERENCE


def test_what_makes_the_host_wait_in_a_step_is_counted_by_the_dispatcher_and_by_cuda(device):
    """The dispatcher sees a read and an index by a mask; only CUDA sees a copy from memory that is not pinned."""
    number, paged = torch.ones(64, device=device.torch), torch.ones(64)

    def step() -> None:
        number.sum().item()
        number[number > 0].add_(1)
        paged.to(device.torch)

    def counted(one: op_counter.OperationCounter) -> None:
        with one:
            one.begin()
            step()
            one.add_host_time()

    fresh = partial(op_counter.OperationCounter, device.torch, str, device.synchronize)
    found = op_counter.count_step_operations(fresh, counted, step, 3)
    assert set(found.waits) == {2}
    assert set(found.copies) == {1}
    if device.torch.type == "cuda" and not torch.version.hip:
        told = op_counter.count_syncs(step, 3, device.torch, lambda name: name == __file__)
        assert min(told.times) >= 3
        assert told.place.startswith("test_on_an_accelerator.py:")


def test_an_operation_with_nothing_to_compute_takes_microseconds(device):
    least = op_counter.measure_dispatch_overhead(device.torch, device.synchronize)
    assert 1e-7 < least.call_s < 1e-3
    assert least.inside_s < 1e-3
    assert 1e-7 < least.read_s < 1e-2
