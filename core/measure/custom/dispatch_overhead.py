"""Dispatch overhead: the time of operations without computation, counted and timed as in any other training.

A step of many small operations consists of this overhead, whatever they compute. The remaining time is arithmetic.
"""

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from .op_counter import Clock, OperationCounter

TAKES_NS = 2e7
"""Target duration of the search for the overhead, in nanoseconds."""

LAYERS = 3
WARM_UP, STEPS, REPEATS, WATCHED, READS = 5, 10, 5, 5, 100


@dataclass(frozen=True, kw_only=True)
class DispatchOverhead:
    """Seconds of one operation of a training that computes almost nothing.

    Attributes:
        call_s: seconds of a step divided by the number of its operations, including Python.
        inside_s: seconds within the operation while it is counted, with a synchronization after it.
        read_s: seconds for the host to read a value that is already computed.
    """

    call_s: float
    inside_s: float
    read_s: float


def measure_dispatch_overhead(
    device: torch.device, synchronize: Callable[[], object], clock: Clock = time.perf_counter_ns
) -> DispatchOverhead:
    """Measure the dispatch overhead of a device, in some hundredths of a second, without random numbers.

    Args:
        device: device of the training.
        synchronize: function that waits for the device.
        clock: clock in monotonic nanoseconds.
    """
    with _as_usual(device):
        step = _build_tiny_step(device)
        for _ in range(WARM_UP):
            step()
        step_s = statistics.median(_time_work(step, STEPS, synchronize, clock) for _ in range(REPEATS))
        watched = [_count_one_step(step, OperationCounter(device, str, synchronize, clock)) for _ in range(WATCHED)]
        number = torch.zeros((), device=device)
        read_s, call_s = (
            statistics.median(_time_work(work, READS, synchronize, clock) for _ in range(REPEATS))
            for work in (lambda: number.item(), lambda: number)
        )
    operations = watched[-1].counts["operations"]
    inside_ns = statistics.median(each.inside_ns for each in watched)
    return DispatchOverhead(
        call_s=step_s / operations, inside_s=inside_ns / 1e9 / operations, read_s=max(0.0, read_s - call_s)
    )


def find_dispatch_overhead(device: torch.device, synchronize: Callable[[], object], clock: Clock) -> DispatchOverhead:
    """Return the dispatch overhead of a device and a number of threads, measured once in a process."""
    if clock is not time.perf_counter_ns:
        return measure_dispatch_overhead(device, synchronize, clock)
    key = str(device), torch.get_num_threads()
    if key not in _KNOWN:
        _KNOWN[key] = measure_dispatch_overhead(device, synchronize)
    return _KNOWN[key]


def estimate_overhead_cost_ns(device: torch.device, clock: Clock) -> float:
    """Estimate the nanoseconds that `find_dispatch_overhead` will take; 0 if cached or with another clock."""
    known_now = clock is not time.perf_counter_ns or (str(device), torch.get_num_threads()) in _KNOWN
    return 0.0 if known_now else TAKES_NS


_KNOWN: dict[tuple[str, int], DispatchOverhead] = {}


@functools.cache
def rehearse() -> None:
    """Count a step on the CPU, once per process, so that the start-up of counting is not part of a later step.

    This uses no other device, whose work may be recorded at the moment, and no random numbers.
    """
    host = torch.device("cpu")
    with _as_usual(host):
        _count_one_step(_build_tiny_step(host), OperationCounter(host, str))


@contextmanager
def _as_usual(device: torch.device) -> Iterator[None]:
    """Record gradients in float32 without autocast, whatever the script has set."""
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device.type, enabled=False):
        yield


def _build_tiny_step(device: torch.device) -> Callable[[], object]:
    layers: list[nn.Module] = []
    for _ in range(LAYERS):
        layer = nn.utils.skip_init(nn.Linear, 1, 1, device=device, dtype=torch.float32)
        layers += [layer, nn.Tanh()]
    network = nn.Sequential(*layers)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(0.5)
    number = torch.full((1, 1), 0.5, device=device, dtype=torch.float32)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        functional.mse_loss(network(number), number).backward()
        optimizer.step()

    return step


def _time_work(work: Callable[[], object], times: int, synchronize: Callable[[], object], clock: Clock) -> float:
    """Return the seconds of one call."""
    synchronize()
    begin = clock()
    for _ in range(times):
        work()
    synchronize()
    return (clock() - begin) / 1e9 / times


def _count_one_step(step: Callable[[], object], watching: OperationCounter) -> OperationCounter:
    with watching:
        watching.begin()
        step()
        watching.add_host_time()
    return watching
