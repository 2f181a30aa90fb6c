"""The synchronized timer: synchronize, read, work, synchronize, read; one host clock for every device.

An accelerator only queues its work, so a clock read without waiting for it times the queueing. Both readings therefore
follow a synchronization of the device. Events are not used: a CPU has none, those of MPS are unreliable, and all
devices need the same clock. The timer does not depend on training.
"""

import gc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

MIN_BLOCK_S = 0.1
"""Minimum duration of a timed block in seconds: a synchronization takes up to tens of microseconds, at most 1/1,000 of
it.
"""

MIN_BLOCK_STEPS = 5
"""Minimum number of steps of a block, so that a block averages over steps even if steps are slow."""

BLOCK_MARGIN = 1.1
"""Factor by which blocks are sized longer than the minimum, so that noise does not make them too short."""

LEAD_IN_S = 0.02
LEAD_IN_STEPS = 2
"""Number of untimed steps before each block: they refill caches, and wake a device that idled during other blocks."""

LEAD_IN_SHARE, LONGEST_LEAD_IN_S = 0.1, 0.5
"""Lead-in of an accelerator: share of the idle time, and maximum seconds.

An accelerator lowers its clocks while it idles, more after a longer time, and raises them within tenths of a second
under load. A tenth of the idle time makes a run at most a tenth longer; after the maximum, clocks have risen. Both
figures are assumptions; `tests.benchmarks.block_length` checks them on a real device.
"""

Clock = Callable[[], int]
"""Monotonic nanoseconds."""


class Synchronizable(Protocol):
    """A device with a queue of work."""

    def synchronize(self) -> None:
        """Wait until no work is left."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Two readings of the clock with work in between, in nanoseconds."""

    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9


@dataclass(frozen=True, kw_only=True)
class Timer:
    """Times work on one device.

    Attributes:
        device: device that is synchronized before each reading.
        clock: `time.perf_counter_ns`, the monotonic clock with the highest resolution (PEP 418); tests use others.
    """

    device: Synchronizable
    clock: Clock = time.perf_counter_ns

    def read(self) -> int:
        """Synchronize the device, then read the clock."""
        self.device.synchronize()
        return self.clock()

    def time(self, work: Callable[[], object]) -> Reading:
        """Do `work` once between two synchronized readings, without garbage collection, as in timeit."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            begin = self.read()
            work()
            return Reading(begin_ns=begin, end_ns=self.read())
        finally:
            if collecting:
                gc.enable()


def block_steps(step_s: float) -> int:
    """Return the number of steps that make a block long enough, given the seconds of one step."""
    if step_s <= 0:
        return MIN_BLOCK_STEPS
    return max(MIN_BLOCK_STEPS, int(BLOCK_MARGIN * MIN_BLOCK_S / step_s) + 1)


def lead_in_steps(step_s: float, *, idle_s: float = 0.0) -> int:
    """Return the number of untimed steps before a block.

    Args:
        step_s: seconds of one step.
        idle_s: seconds for which an accelerator had no work; 0 for a CPU, which works during other blocks.
    """
    if step_s <= 0:
        return LEAD_IN_STEPS
    seconds = max(LEAD_IN_S, min(LEAD_IN_SHARE * idle_s, LONGEST_LEAD_IN_S))
    return max(LEAD_IN_STEPS, math.ceil(seconds / step_s))
