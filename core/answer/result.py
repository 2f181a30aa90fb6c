"""What goes into a crossover and what comes out of it: plain data, made by `core.answer.crossover`."""

from dataclasses import dataclass
from typing import Literal

from .speedup import Verdict

Outcome = Literal["crossing", "gpu_always", "cpu_always", "several", "undecided", "not_measurable"]

OUTCOMES: dict[Outcome, str] = {
    "crossing": "one device is faster below, the other above; the size is known with an interval",
    "gpu_always": "the GPU is faster at every size measured",
    "cpu_always": "the CPU is faster at every size measured",
    "several": "the faster device changes more than once, beyond the noise",
    "undecided": "not decided where it matters, or the readings give no noise; `clear` and `assumed` say what is known",
    "not_measurable": "too few sizes could be timed, or the machine was too busy",
}

DECIDED: frozenset[Outcome | None] = frozenset(("crossing", "gpu_always", "cpu_always", "several"))
"""Outcomes that say who is faster, which people look for first."""

Basis = Literal["steady", "with_transfer", "cold_start", "as_given"]

BASES: dict[Basis, str] = {
    "steady": "time of the steps alone",
    "with_transfer": "steps, and copying the data to the device once, over the training that was asked for",
    "cold_start": "steps, and the whole start-up in a fresh process, over the training that was asked for",
}
"""What the times of rows stand for; times that somebody brings along are `as_given`."""

BASIS_TITLES: dict[Basis, str] = {
    "steady": "steps only",
    "with_transfer": "with transfer",
    "cold_start": "with start-up",
    "as_given": "as given",
}
"""The same in a few words."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was timed at one size.

    Attributes:
        baseline_s: seconds, one entry a reading, as `challenger_s`.
        paired: whether readings of equal place were taken back to back, so that disturbances cancel.
        visits: how often the size was come back to while others were measured; readings of one visit share what the
            machine did meanwhile.
        obstacle: why nothing can be said about this size (out of memory, busy machine, skipped); empty if none.
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
        baseline_s: median seconds, as `challenger_s`; None if nothing was timed.
        readings: pairs, or the fewer readings of the two devices where they are not paired.
        speedup: baseline over challenger; above 1 the challenger is faster.
        low: its interval is from there to `high`, of the level that `Crossover.level` says; None where the noise is
            not known.
        reason: why there is no winner; empty where there is one.
    """

    size: float
    baseline_s: float | None
    challenger_s: float | None
    readings: int
    speedup: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """Where the faster device changes.

    Attributes:
        estimate: size at which either is as likely to be the faster one; the 95 % interval is from `low` to `high`.
        challenger_above: whether the challenger wins above it; the baseline does otherwise.
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
    """Sizes at all of which one device is faster for certain, where the whole is undecided.

    Attributes:
        begin: the smallest of them; `end` the largest.
        challenger_faster: whether the challenger is; the baseline is otherwise.
        least: how many times as fast the faster one is at least, by the medians; `most` at most.
    """

    begin: float
    end: float
    challenger_faster: bool
    least: float
    most: float


@dataclass(frozen=True, kw_only=True)
class Assumed:
    """What readings say if they are as noisy as is usual: each size was read once, which does not tell the noise.

    Attributes:
        noise: standard deviation of the logarithm of one device's reading that is assumed.
        outcome: key of `OUTCOMES`, under that assumption, as are `clear` and `crossings`, whose intervals are no
            measured ones.
    """

    noise: float
    outcome: Outcome
    crossings: tuple[Crossing, ...] = ()
    clear: tuple[Clear, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Crossover:
    """The answer along one axis.

    Attributes:
        basis: key of `BASES`.
        baseline: name for people, as of the `challenger`.
        outcome: key of `OUTCOMES`.
        estimate: size of the crossing, with its 95 % interval from `low` to `high`; None exactly unless the outcome is
            `crossing`.
        tie: sizes around the crossing between which the difference is within ±10 %; None if not known or nowhere.
        also_close: other sizes between which it is, away from the crossing.
        crossings: every crossing beyond the noise, ascending.
        clear: where one device is faster for certain; empty unless the outcome is `undecided`.
        contradicting: sizes that contradict their neighbours beyond their readings' noise, by no more than a visit of
            the machine may shift them.
        assumed: what the readings say if they are as noisy as is usual; None unless each size was read once.
        noise: standard deviation of the logarithm of one reading's ratio, pooled over sizes; None if not known.
        level: probability with which the interval of one size holds its speedup.
        reason: in words, why the outcome is not a crossing.
        cautions: what speaks against taking the answer as it stands, a sentence each.
        sentence: the answer in words, computed from the above.
        busy: what was seen of other programs on the machine, a sentence; empty where nothing was.
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
