"""What is known of the steps of a training of one's own, and what their time is made of.

A cost is what a step would be shorter without one thing, all else left as it is. On a CPU that is the thing's own time.
On an accelerator, which works while the host does, the host's time costs only what the device idles meanwhile.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Cause = Literal["loader", "before", "transfer", "host", "waits", "calls", "float64", "arithmetic"]

MOST_CALLS = 3
"""Times that calling operations may take what it takes in a training of numbers: modules do more around each. What is
left beyond counts as arithmetic, since a machine that others use makes all of it longer."""


@dataclass(frozen=True, kw_only=True)
class CustomSteps:
    """What was timed and counted of steps; times in seconds, empty or None where it is not known.

    Attributes:
        on_host: whether the CPU does the work.
        step_s: an undisturbed step, with everything.
        loader_s: of it, waiting for the batch.
        before_s: of it, what comes before the forward pass, where the loader is not known.
        transfer_s: placing it, where that is apart from the step.
        busy_s: for which an accelerator works, if it never waits.
        steps: trained.
        looked: of these, those that were looked at one by one; 0 where that is not done.
        uneven: share of them that take several times as long as the usual one, and of the time what that costs.
        operations: of PyTorch in each step that was watched, and so on below.
        waits: values that the host needed.
        waits_at: file and line where most often.
        syncs: times that CUDA made the host wait.
        syncs_at: file and line where most often.
        copies: tensors copied to the device.
        elsewhere: operations on another device.
        float64: operations in float64.
        kept: tensors alive.
        inside_s: in operations, drained and counted.
        float64_s: of these in float64.
        between_s: in long stretches between them; the least counts, as others only make stretches longer.
        floor_s: of an operation with nothing to compute: with its call; counted; reading a value.
        learns: whether a parameter changes.
        threads_set: whether they set the number of threads.
        printed: lines.
    """

    on_host: bool
    step_s: float | None = None
    loader_s: float | None = None
    before_s: float | None = None
    transfer_s: float | None = None
    busy_s: float | None = None
    steps: int = 0
    looked: int = 0
    uneven: tuple[float, float] = (0.0, 0.0)
    operations: Sequence[int] = ()
    waits: Sequence[int] = ()
    waits_at: str = ""
    syncs: Sequence[int] = ()
    syncs_at: str = ""
    copies: Sequence[int] = ()
    elsewhere: Sequence[int] = ()
    float64: Sequence[int] = ()
    kept: Sequence[int] = ()
    inside_s: Sequence[float] = ()
    float64_s: Sequence[float] = ()
    between_s: Sequence[float] = ()
    floor_s: Sequence[float] = ()
    learns: bool | None = None
    threads_set: bool = False
    printed: int = 0

    @property
    def reads(self) -> bool:
        """Whether each step made the host wait for a value."""
        return bool(self.waits) and min(self.waits) > 0

    @property
    def unseen(self) -> bool:
        """Whether PyTorch does nothing in a step, so that none of what happens there can be seen."""
        return bool(self.operations) and max(self.operations) == 0

    @cached_property
    def costs(self) -> dict[Cause, float]:
        """Share of an undisturbed step that each thing costs; nothing where it is not known."""
        if not self.step_s:
            return {}
        known = self._on_host(self.step_s) if self.on_host else self._on_accelerator(self.step_s)
        return {cause: min(1.0, max(0.0, seconds / self.step_s)) for cause, seconds in known.items()}

    @property
    def idle(self) -> float | None:
        """Share of a step for which an accelerator has nothing to do; None where that is not known, and on a CPU."""
        busy_s = None if self.on_host else self._busy_s
        return None if busy_s is None or not self.step_s else min(1.0, max(0.0, 1 - busy_s / self.step_s))

    @property
    def _outside(self) -> dict[Cause, float]:
        """What was timed apart from the step itself."""
        timed: tuple[tuple[Cause, float | None], ...] = (
            ("loader", self.loader_s),
            ("before", self.before_s),
            ("transfer", self.transfer_s),
        )
        return {cause: seconds for cause, seconds in timed if seconds is not None}

    @property
    def _counted(self) -> bool:
        return bool(self.inside_s and self.between_s and self.floor_s and not self.unseen and self.operations)

    @property
    def _arithmetic_s(self) -> float:
        """In operations, beyond what they take with nothing to compute."""
        return max(0.0, statistics.median(self.inside_s) - statistics.median(self.operations) * self.floor_s[1])

    @property
    def _float64_share(self) -> float:
        """Of the arithmetic, what is done in float64."""
        whole = sum(self.inside_s)
        return sum(self.float64_s) / whole if whole else 0.0

    @property
    def _busy_s(self) -> float | None:
        if self.busy_s is not None:
            return self.busy_s
        return self._arithmetic_s if self._counted else None

    def _on_host(self, step_s: float) -> dict[Cause, float]:
        outside = self._outside
        if not self._counted:
            return outside
        left = max(0.0, step_s - sum(outside.values()))
        reads_s = min(left, _median(self.waits) * self.floor_s[2])
        host_s = min(left - reads_s, min(self.between_s))
        left -= reads_s + host_s
        arithmetic_s = min(self._arithmetic_s, left)
        least_s = (_median(self.operations) - _median(self.waits)) * self.floor_s[0]
        calls_s = min(left, max(least_s, min(left - arithmetic_s, MOST_CALLS * least_s)))
        arithmetic_s = left - calls_s
        in_float64 = arithmetic_s * self._float64_share
        return {
            **outside,
            "host": host_s,
            "waits": reads_s,
            "calls": calls_s,
            "float64": in_float64,
            "arithmetic": arithmetic_s - in_float64,
        }

    def _on_accelerator(self, step_s: float) -> dict[Cause, float]:
        outside, busy_s = self._outside, self._busy_s
        if busy_s is None:
            return outside
        idle_s = max(0.0, step_s - busy_s)
        if not self._counted:
            return {cause: min(seconds, idle_s) for cause, seconds in outside.items()}
        host_s, calls_s = min(self.between_s), _median(self.operations) * self.floor_s[0]
        all_s = sum(outside.values()) + host_s + calls_s
        waits_s = min(idle_s, max(0.0, step_s - all_s)) if self.reads else 0.0
        costs: dict[Cause, float] = {**outside, "host": host_s, "waits": waits_s}
        costs = {cause: min(seconds, idle_s) for cause, seconds in costs.items()}
        costs["calls"] = min(calls_s, idle_s - waits_s)  # calls would be hidden, did the host not wait
        hidden_s = 0.0 if self.reads else min(all_s, step_s)
        costs["float64"] = min(busy_s * self._float64_share, step_s - hidden_s)
        return costs


def _median(counts: Sequence[int]) -> float:
    return statistics.median(counts) if counts else 0.0
