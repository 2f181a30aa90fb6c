"""Input and output of `core.answer.crossover`, as data classes."""

from dataclasses import dataclass
from typing import Literal

from .verdict import WINNERS, VerdictCode

Outcome = Literal["crossing", "gpu_always", "cpu_always", "several", "undecided", "not_measurable"]

OUTCOMES: dict[Outcome, str] = {
    "crossing": "one device is faster below a size and the other above it; the size has an interval",
    "gpu_always": "the GPU is faster at every size measured",
    "cpu_always": "the CPU is faster at every size measured",
    "several": "the faster device changes more than once, beyond the noise",
    "undecided": "inconclusive, or the noise of the readings is unknown; `clear` and `assumed` say what is known",
    "not_measurable": "too few sizes could be timed, or the machine was too busy",
}

DECIDED: frozenset[Outcome | None] = frozenset(("crossing", "gpu_always", "cpu_always", "several"))
"""Outcomes that say which device is faster; users look for these first."""

Basis = Literal["steady", "with_transfer", "cold_start", "as_given"]

BASES: dict[Basis, str] = {
    "steady": "time of the steps alone",
    "with_transfer": "steps, plus copying the data to the device once, averaged over the requested training",
    "cold_start": "steps, plus the whole start-up in a fresh process, averaged over the requested training",
}
"""Cost bases: which costs the times of rows include; imported times are `as_given`."""

BASIS_TITLES: dict[Basis, str] = {
    "steady": "steps only",
    "with_transfer": "with transfer",
    "cold_start": "with start-up",
    "as_given": "as given",
}
"""Short titles of the cost bases."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Timings at one size.

    Attributes:
        baseline_s: seconds of the baseline, one entry per reading; `challenger_s` likewise for the challenger.
        paired: whether readings with the same index were timed back to back, so that disturbances cancel.
        visits: number of rounds in which the size was measured, between other sizes; readings of one round share the
            machine's state.
        obstacle: why there is no answer at this size (out of memory, busy machine, skipped); empty if there is one.
    """

    size: float
    baseline_s: tuple[float, ...] = ()
    challenger_s: tuple[float, ...] = ()
    paired: bool = True
    visits: int = 1
    obstacle: str = ""


@dataclass(frozen=True, kw_only=True)
class Size:
    """The answer at one size.

    Attributes:
        baseline_s: median seconds of the baseline; `challenger_s` likewise; None if nothing was timed.
        readings: number of pairs; for unpaired readings, the smaller number of the two devices.
        speedup: baseline over challenger; above 1 the challenger is faster.
        low: lower end of the interval, which ends at `high` and has the level `Crossover.level`; None if the noise is
            unknown.
        reason: text on why there is no winner; empty if there is one, or if each size was read only once.
    """

    size: float
    baseline_s: float | None
    challenger_s: float | None
    readings: int
    speedup: float | None
    low: float | None
    high: float | None
    verdict: VerdictCode
    reason: str = ""

    @property
    def has_winner(self) -> bool:
        """Whether one of the two devices wins at this size."""
        return self.verdict in WINNERS


@dataclass(frozen=True)
class SpeedupAt:
    """A study's answer at one size.

    Attributes:
        basis: "measured", "interpolated" between measured sizes, or "not measured".
        faster: name of the faster device; empty where neither is clearly faster.
        speedup: baseline over challenger, with its 95 % interval from `low` to `high`; None where unknown.
        reason: why no device is named; empty where one is.
    """

    size: float
    basis: Literal["measured", "interpolated", "not measured"]
    faster: str = ""
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """A place on the axis where the faster device changes.

    Attributes:
        estimate: size at which both devices are equally likely to be faster, with its 95 % interval from `low` to
            `high`.
        challenger_above: whether the challenger is faster above this size; otherwise the baseline is.
    """

    estimate: float
    low: float
    high: float
    challenger_above: bool


@dataclass(frozen=True, kw_only=True)
class Band:
    """The speedup between the sizes that were measured, for a chart; never the source of a verdict.

    Attributes:
        speedup: median of the model at each of the `sizes`, with its 95 % band from `low` to `high`.
    """

    sizes: tuple[float, ...] = ()
    speedup: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Clear:
    """A range of sizes where one device is certainly faster, although the outcome as a whole is undecided.

    Attributes:
        begin: smallest size of the range; `end` is the largest.
        challenger_faster: whether the challenger is the faster device; otherwise it is the baseline.
        least: smallest speedup of the faster device in the range, by the medians; `most` is the largest.
    """

    begin: float
    end: float
    challenger_faster: bool
    least: float
    most: float


@dataclass(frozen=True, kw_only=True)
class Assumed:
    """Answer under the assumption of typical noise: each size was read only once, so the noise is unknown.

    Attributes:
        noise: assumed standard deviation of the logarithm of one device's reading.
        outcome: key of `OUTCOMES` under that assumption; `clear` and `crossings` depend on it too, so their intervals
            are not measured.
        estimate: size of the only crossing, from `low` to `high`; None unless there is exactly one.
    """

    noise: float
    outcome: Outcome
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    crossings: tuple[Crossing, ...] = ()
    clear: tuple[Clear, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Crossover:
    """The answer on one axis.

    Attributes:
        basis: key of `BASES`.
        baseline: readable name of the baseline; `challenger` likewise.
        outcome: key of `OUTCOMES`.
        estimate: size of the crossing, with its 95 % interval from `low` to `high`; None unless the outcome is
            `crossing`.
        tie: sizes around the crossing between which the difference is within ±10 %; None if unknown or if there are
            none.
        also_close: other ranges of sizes with a difference within ±10 %, away from the crossing.
        crossings: every crossing beyond the noise, ascending.
        clear: ranges where one device is certainly faster; empty unless the outcome is `undecided`.
        contradicting: sizes that contradict their neighbours by more than the noise of their readings, but by no more
            than the possible shift of a round.
        assumed: the answer if the readings have typical noise; None unless each size was read once.
        noise: standard deviation of the logarithm of one reading's ratio, pooled over sizes; None if unknown.
        level: probability with which the interval of one size contains its speedup.
        reason: text on why the outcome is not a crossing.
        cautions: reasons to doubt the answer, one sentence each.
        sentence: text of the answer, computed from the attributes above.
        busy: sentence on observed interference of other programs; empty if there was none.
        condition: load to which the answer is limited: "with other programs using about half of the processors"; empty
            if the answer is valid for the quiet machine.
    """

    axis: str
    basis: Basis
    baseline: str
    challenger: str
    outcome: Outcome = "not_measurable"
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    tie: tuple[float, float] | None = None
    also_close: tuple[tuple[float, float], ...] = ()
    crossings: tuple[Crossing, ...] = ()
    sizes: tuple[Size, ...] = ()
    band: Band = Band()
    clear: tuple[Clear, ...] = ()
    contradicting: tuple[float, ...] = ()
    assumed: Assumed | None = None
    noise: float | None = None
    level: float = 0.95
    reason: str = ""
    cautions: tuple[str, ...] = ()
    sentence: str = ""
    busy: str = ""
    condition: str = ""

    @property
    def is_conditional(self) -> bool:
        """Whether the answer is valid only for the load of the machine during the measurement."""
        return bool(self.condition)

    @property
    def decided_sizes(self) -> tuple[float, ...]:
        """Sizes at which one device is faster."""
        return tuple(entry.size for entry in self.sizes if entry.has_winner)
