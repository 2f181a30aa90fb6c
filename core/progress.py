"""Progress of a running measurement: small data classes that the worker sends to a page.

Progress is written between timed blocks, never inside one. It is not a result: results are rows in the store.
"""

from dataclasses import dataclass

from . import units
from .errors import InvalidValue
from .files.documents import Count, Seconds

WAITING = "waiting for another measurement on this machine"
"""Phase of a measurement that is next in its queue while another measurement uses the machine."""

QUIET_WAIT = "waiting for a quiet machine"
"""Phase of a measurement that could start and waits until other programs use the machine less."""


@dataclass(frozen=True, kw_only=True)
class ContenderProgress:
    """Progress of one contender.

    Attributes:
        contender: name of the contender in questions, e.g. `cpu` or `cuda:0`.
        steps: number of steps trained so far; at most `total_steps` are shown.
        total_steps: number of steps of the whole training; 0 if unknown, as for a custom script.
        step_s: median seconds per step over the blocks so far; None before the first block.
        threads: number of CPU threads in use; None before it is chosen.
        loss_steps: last step of each segment of the loss curve.
        losses: mean training loss of each segment.
        loss_seconds: seconds of training (median step × steps) at each entry of `loss_steps`.
    """

    contender: str
    steps: Count = 0
    total_steps: Count = 0
    step_s: Seconds | None = None
    threads: Count | None = None
    loss_steps: tuple[Count, ...] = ()
    losses: tuple[float, ...] = ()
    loss_seconds: tuple[Seconds, ...] = ()

    def __post_init__(self) -> None:
        if len({len(self.loss_steps), len(self.losses), len(self.loss_seconds) or len(self.losses)}) > 1:
            raise InvalidValue("losses", len(self.losses), "as many as steps and seconds at which they were read")


@dataclass(frozen=True, kw_only=True)
class SweepProgress:
    """Progress of a sweep, whose points take turns.

    Attributes:
        done: number of finished points: measured, found in the store, or skipped.
        total: number of points of a grid; the maximum number for an adaptive sweep.
        alive: number of points that take turns now and lack pairs.
        pairs: total number of pairs of these points.
        pairs_each: number of pairs that each of these points needs.
        size_label: readable label of the current point; empty between points.
        remaining_s: estimated seconds until the end; None without an estimate.
        least_s: estimated seconds if the search ends as early as possible; also None in progress from an earlier
            version.
        notes: one sentence for each point without times, and the reason if the sweep ended early.
    """

    done: Count
    total: Count
    alive: Count = 0
    pairs: Count = 0
    pairs_each: Count = 0
    size_label: str = ""
    remaining_s: Seconds | None = None
    least_s: Seconds | None = None
    notes: tuple[str, ...] = ()

    @property
    def left(self) -> str:
        """Remaining time, as the end of a line; empty without an estimate."""
        return units.format_time_left(self.remaining_s)

    @property
    def share(self) -> float:
        """Share of finished points, 0 to 1; a point with half of its pairs counts half."""
        begun = min(self.alive, self.pairs / self.pairs_each) if self.pairs_each else 0.0
        return min(1.0, (self.done + begun) / self.total) if self.total else 0.0


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of a measurement.

    Attributes:
        phase: readable name of the current activity, e.g. "trying thread counts".
        elapsed_s: seconds since the measurement began.
        budget_s: time budget in seconds.
        pairs: number of finished rounds, each with one block of every contender.
        contenders: progress of each contender, in the order of the experiment.
        sweep: progress of the sweep that the measurement is part of, if any.
        note: a sentence about the machine that applies to the whole measurement; mostly empty.
    """

    phase: str
    elapsed_s: Seconds = 0.0
    budget_s: Seconds = 0.0
    pairs: Count = 0
    contenders: tuple[ContenderProgress, ...] = ()
    sweep: SweepProgress | None = None
    note: str = ""

    @property
    def remaining_s(self) -> Seconds | None:
        """Estimated seconds for the remaining steps, at most the rest of the budget; None before a step was timed."""
        known = [each for each in self.contenders if each.total_steps]
        left = [(each.total_steps - each.steps) * each.step_s for each in known if each.step_s is not None]
        return max(0.0, min(sum(left), self.budget_s - self.elapsed_s)) if left else None

    @property
    def share(self) -> float:
        """Share of finished work, 0 to 1: of the points of a sweep, of the time if known, else of the steps."""
        if self.sweep:
            return self.sweep.share
        if self.remaining_s is not None and self.elapsed_s:
            return self.elapsed_s / (self.elapsed_s + self.remaining_s)
        shares = [entry.steps / entry.total_steps for entry in self.contenders if entry.total_steps]
        return min(1.0, sum(shares) / len(shares)) if shares else 0.0
