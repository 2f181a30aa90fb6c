"""Progress of a running measurement: small data classes that travel from the worker to a page.

Written between timed blocks, never inside one. Not a result: results are rows in the store.
"""

from dataclasses import dataclass

from . import units
from .errors import InvalidValue
from .files.documents import Count, Seconds

WAITING = "waiting for another measurement on this machine"
"""Phase of a measurement whose turn has come while somebody else measures."""

QUIET_WAIT = "waiting for a quiet machine"
"""Phase of a measurement that has the machine and waits until other programs use it less."""


@dataclass(frozen=True, kw_only=True)
class ContenderProgress:
    """Progress of one contender.

    Attributes:
        contender: written form, e.g. `cpu` or `cuda:0`.
        steps: steps trained so far, at most `total_steps` are shown.
        total_steps: steps of the whole training; 0 if unknown, as for a custom script.
        step_s: median seconds per step over the blocks so far, None before the first.
        threads: CPU threads in use, None before they are chosen.
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
        done: points that are settled: measured, found in the store, or skipped.
        total: points of a grid; of an adaptive sweep the most that may be.
        alive: points that take turns now and lack pairs.
        pairs: pairs that these have, all together.
        pairs_each: pairs that each of them needs.
        size_label: the point whose turn it is, for people; empty between points.
        remaining_s: seconds that the rest may take, None while there is no estimate.
        least_s: the same if the search ends as soon as possible; None as well where an earlier version wrote it.
        notes: a sentence for each point that has no times, and why the sweep ended early.
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
        """Return the remaining time, as the end of a line; empty while there is no estimate."""
        return units.format_time_left(self.remaining_s)

    @property
    def share(self) -> float:
        """Share of the points that are settled, 0 to 1; one that has half its pairs counts as half of one."""
        begun = min(self.alive, self.pairs / self.pairs_each) if self.pairs_each else 0.0
        return min(1.0, (self.done + begun) / self.total) if self.total else 0.0


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a measurement is.

    Attributes:
        phase: what is being done, for people, e.g. "trying thread counts".
        elapsed_s: seconds since the measurement began.
        budget_s: seconds it may take.
        pairs: rounds of blocks done, one block of every contender each.
        contenders: in the order of the experiment.
        sweep: the sweep that the measurement is part of, if it is.
        note: a sentence on the machine that holds for the whole measurement; mostly empty.
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
        """Seconds that the steps left may take, at most those left of the budget; None before one was timed."""
        known = [each for each in self.contenders if each.total_steps]
        left = [(each.total_steps - each.steps) * each.step_s for each in known if each.step_s is not None]
        return max(0.0, min(sum(left), self.budget_s - self.elapsed_s)) if left else None

    @property
    def share(self) -> float:
        """Share of the work that is done, 0 to 1: of the points of a sweep, of the time if known, else of the steps."""
        if self.sweep:
            return self.sweep.share
        if self.remaining_s is not None and self.elapsed_s:
            return self.elapsed_s / (self.elapsed_s + self.remaining_s)
        shares = [entry.steps / entry.total_steps for entry in self.contenders if entry.total_steps]
        return min(1.0, sum(shares) / len(shares)) if shares else 0.0
