"""The synchronized timer: synchronize, read, work, synchronize, read; one host clock for every device.

An accelerator only queues its work, so a clock read without waiting for it times the queueing. Both readings therefore
follow a synchronization of the device. Events are not used: a CPU has none and MPS's cannot be relied on, and two
clocks cannot be compared as one. The timer knows nothing of training.
"""

import gc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

MIN_BLOCK_S = 0.1
"""Shortest block that is timed: a synchronization costs up to tens of microseconds, here at most 1 in 10³."""

MIN_BLOCK_STEPS = 5
"""Fewest steps of a block, so that a block is a mean over steps also where steps are slow."""

BLOCK_MARGIN = 1.1
"""Blocks are sized a tenth longer than the minimum, so that noise leaves them above it."""

LEAD_IN_S = 0.02
LEAD_IN_STEPS = 2
"""Untimed training before each block: caches refill, and a device wakes up that idled through the others' blocks."""

LEAD_IN_SHARE, LONGEST_LEAD_IN_S = 0.1, 0.5
"""An accelerator lowers its clocks while it idles, the further the longer, and raises them within tenths of a second
under load. A tenth of the time idled costs a run a tenth more at most; after the longest lead-in, clocks have risen.
Both figures are assumed; `tests.benchmarks.block_length` looks at them on a real one."""

Clock = Callable[[], int]
"""Monotonic nanoseconds."""


class Synchronizable(Protocol):
    """Anything with a queue of work that can be waited for."""

    def synchronize(self) -> None:
        """Return when no work is left."""


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
        device: synchronized before each reading.
        clock: `time.perf_counter_ns`, the highest-resolution monotonic clock (PEP 418), unless a test says otherwise.
    """

    device: Synchronizable
    clock: Clock = time.perf_counter_ns

    def read(self) -> int:
        """Synchronize the device, then read the clock."""
        self.device.synchronize()
        return self.clock()

    def time(self, work: Callable[[], object]) -> Reading:
        """Do `work` once between two synchronized readings; the garbage collector rests meanwhile, as in timeit."""
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
        idle_s: for how long an accelerator had no work; 0 for a CPU, which the others' blocks keep awake.
    """
    if step_s <= 0:
        return LEAD_IN_STEPS
    seconds = max(LEAD_IN_S, min(LEAD_IN_SHARE * idle_s, LONGEST_LEAD_IN_S))
    return max(LEAD_IN_STEPS, math.ceil(seconds / step_s))
