"""What operations take that have nothing to compute: a training of numbers alone, counted and timed as any other.

A step of many small operations is made of this, whatever they compute; what they take beyond it is arithmetic.
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

from core.measure.own.watching import Clock, Watching

TAKES_NS = 2e7
"""What finding it takes."""

LAYERS = 3
WARM_UP, STEPS, REPEATS, WATCHED, READS = 5, 10, 5, 5, 100


@dataclass(frozen=True, kw_only=True)
class Floor:
    """Seconds of one operation of a training that computes next to nothing.

    Attributes:
        call_s: of a step, by the number of its operations: the operation and what Python does for it.
        inside_s: within the operation, the device drained after it, while it is counted.
        read_s: for the host to read a value that is there already.
    """

    call_s: float
    inside_s: float
    read_s: float


def find(device: torch.device, drain: Callable[[], object], clock: Clock = time.perf_counter_ns) -> Floor:
    """Measure it on a device, in some hundredths of a second. Draws no random number.

    Args:
        device: that trains.
        drain: waits for it.
        clock: monotonic nanoseconds.
    """
    with _as_usual(device):
        step = _training(device)
        for _ in range(WARM_UP):
            step()
        step_s = statistics.median(_timed(step, STEPS, drain, clock) for _ in range(REPEATS))
        watched = [_watched(step, Watching(device, str, drain, clock)) for _ in range(WATCHED)]
        number = torch.zeros((), device=device)
        read_s, call_s = (
            statistics.median(_timed(work, READS, drain, clock) for _ in range(REPEATS))
            for work in (lambda: number.item(), lambda: number)
        )
    operations = watched[-1].found["operations"]
    inside_ns = statistics.median(each.inside_ns for each in watched)
    return Floor(call_s=step_s / operations, inside_s=inside_ns / 1e9 / operations, read_s=max(0.0, read_s - call_s))


def known(device: torch.device, drain: Callable[[], object], clock: Clock) -> Floor:
    """As `find`, but measured once in a process for a device and a number of threads, as loops wait for it."""
    if clock is not time.perf_counter_ns:
        return find(device, drain, clock)
    key = str(device), torch.get_num_threads()
    if key not in _KNOWN:
        _KNOWN[key] = find(device, drain)
    return _KNOWN[key]


def owed_ns(device: torch.device, clock: Clock) -> float:
    """What `known` will take."""
    known_now = clock is not time.perf_counter_ns or (str(device), torch.get_num_threads()) in _KNOWN
    return 0.0 if known_now else TAKES_NS


_KNOWN: dict[tuple[str, int], Floor] = {}


@functools.cache
def rehearse() -> None:
    """Count a step of it on the CPU, once in a process: what counting needs once is no part of others' first step.

    Touches no other device, whose work somebody may be recording, and draws no random number.
    """
    host = torch.device("cpu")
    with _as_usual(host):
        _watched(_training(host), Watching(host, str))


@contextmanager
def _as_usual(device: torch.device) -> Iterator[None]:
    """Gradients are recorded, in plain float32, whatever foreign code has set."""
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device.type, enabled=False):
        yield


def _training(device: torch.device) -> Callable[[], object]:
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


def _timed(work: Callable[[], object], times: int, drain: Callable[[], object], clock: Clock) -> float:
    """Seconds of doing something once."""
    drain()
    begin = clock()
    for _ in range(times):
        work()
    drain()
    return (clock() - begin) / 1e9 / times


def _watched(step: Callable[[], object], watching: Watching) -> Watching:
    with watching:
        watching.begin()
        step()
        watching.pause()
    return watching
