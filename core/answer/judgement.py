"""Decisions from readings: the signs of sizes, their changes, and the clear sizes of an undecided study.

The input and output of `core.answer.crossover` are data classes of this module.

Each size has its own noise of single readings. The shift of a measurement round is estimated from the scatter of sizes
(`core.answer.curve_estimate`). If readings change sides more often than is certain despite the shift of rounds, nothing
is decided in between, because a disturbed machine looks the same. The signs of single sizes are reported only under a
condition: the curve through all sizes must make it unlikely that the faster device changes more often. Several
undecided sizes may jointly make it likely.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from . import curve_estimate
from .curve_estimate import Readings, SpeedupCurve, Vector
from .statistics import TIE
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


SIGN_RISK, USUAL_SIZE_COUNT = 0.05, 10
"""Maximum probability of a wrong sign at one size if both devices are equally fast there, for up to `USUAL_SIZE_COUNT`
sizes; with more sizes it is reduced in proportion. Only sizes at a crossing are that close.
"""

CROSSING_TAIL = 0.025
"""Probability outside each end of the interval (simulated in docs/statistics.md)."""

MISFIT = 0.1
"""Probability above which the model contradicts a decided size next to the crossing, so that it is not used."""

CURVE_DECIDES = 0.005
"""Probability below which the curve decides a size that its readings leave undecided."""

DOUBTFUL_SHARE = 0.1
"""Probability of more changes of the faster device than the decided signs have, from which the signs are rejected. Six
undecided sizes in a row may contradict a single crossing.
"""

JUMP = 2.5
"""Ratio of a slope to its neighbouring slopes above which the curve is assumed to jump between two sizes."""

PLACES_PER_OCTAVE = 16
"""Places in each doubling at which the curve is computed between two sizes."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The decisions from readings.

    Attributes:
        curve: posterior of the curve.
        risk: probability with which the sign of a single size may be wrong.
        widths: half-width of the interval of each size's log speedup.
        signs: 1 if the challenger wins, -1 if the baseline wins, 0 if undecided.
        outcome: key of `core.answer.judgement.OUTCOMES`.
        crossings: places where the decided signs change.
        clear: ranges in which one device certainly wins; empty unless the outcome is `undecided`.
        contradicting: indices of sizes that contradict their neighbours by no more than the shift of a round.
        doubtful: sizes (logarithm to base 2) that would show whether the faster device changes more often than the
            decided signs, the most informative first; empty unless this makes the outcome `undecided`.
    """

    curve: SpeedupCurve
    risk: float
    widths: Vector
    signs: Vector
    outcome: Outcome
    crossings: tuple[Crossing, ...] = ()
    clear: tuple[Clear, ...] = ()
    contradicting: tuple[int, ...] = ()
    doubtful: tuple[float, ...] = ()


def judge_readings(readings: Readings) -> Judgement:
    """Decide the outcome from readings of two sizes or more."""
    risk = SIGN_RISK * min(1.0, USUAL_SIZE_COUNT / len(readings.sizes))
    fitted = SpeedupCurve(readings, float(readings.sizes[0]), float(readings.sizes[-1]))
    widths = curve_estimate.half_width(readings, risk / 2, fitted.visits)
    signs = _signs(readings, widths, fitted)
    alone = curve_estimate.half_width(readings, risk / 2) if readings.visits.any() else widths
    contradicting = _contradicting(readings, alone, signs)
    signs[list(contradicting)] = 0
    crossings = () if contradicting else tuple(_crossings(readings, signs, fitted))
    outcome: Outcome = "undecided" if contradicting else _outcome(readings, signs, crossings, fitted)
    doubtful: tuple[float, ...] = ()
    if not contradicting and outcome != "several":
        drawn = fitted.draw_samples()
        changes = _count_changes(drawn)
        often = changes > len(crossings)
        together = _curve_signs(readings, widths, signs, fitted) if (changes < 2).mean() < CROSSING_TAIL else signs
        more = tuple(_crossings(readings, together, fitted))
        if len(more) > 1:
            signs, crossings, outcome = together, more, "several"
        elif outcome != "undecided" and often.mean() > DOUBTFUL_SHARE:
            decided = np.isin(fitted.sizes, readings.sizes[signs != 0])
            doubtful = tuple(fitted.sizes[_rank_telling(drawn, often, decided)].tolist())
            crossings, outcome = (), "undecided"
    return Judgement(
        curve=fitted,
        risk=risk,
        widths=widths,
        signs=signs,
        outcome=outcome,
        crossings=crossings,
        clear=tuple(_clear_ranges(readings, _winning_signs(readings, signs))) if outcome == "undecided" else (),
        contradicting=contradicting,
        doubtful=doubtful,
    )


def _outcome(readings: Readings, signs: Vector, crossings: Sequence[Crossing], fitted: SpeedupCurve) -> Outcome:
    """Return the outcome of signs without contradictions; a winner at all sizes must be certain at both ends."""
    if crossings:
        return "several" if len(crossings) > 1 else "crossing"
    if not (signs[0] and signs[-1]):
        return "undecided"
    above = fitted.evaluate(readings.sizes[[0, -1]]).above
    if signs[0] > 0:
        return "gpu_always" if above.min() > 1 - CROSSING_TAIL else "undecided"
    return "cpu_always" if above.max() < CROSSING_TAIL else "undecided"


def _signs(readings: Readings, widths: Vector, fitted: SpeedupCurve) -> Vector:
    """Return 1 if the challenger wins, -1 if the baseline wins, and 0 if undecided, for each size.

    The readings of a size decide unless close neighbours contradict them, because then one of them was disturbed. The
    curve may decide a size that its readings leave undecided, but never against them.
    """
    own = np.where(np.abs(readings.values) > widths, np.sign(readings.values), 0)
    signs = np.where(own * curve_estimate.nearby_medians(readings) > 0, own, 0)
    above = fitted.evaluate(readings.sizes).above
    certain = np.where(above > 1 - CURVE_DECIDES, 1, np.where(above < CURVE_DECIDES, -1, 0))
    beside = [near.any() for _, near in curve_estimate.with_nearby(readings, own)]
    certain[[0, -1]] *= [beside[0], beside[-1]]  # no sizes lie beyond the ends, so only close sizes count
    return np.asarray(np.where((own == 0) & (certain * readings.values > 0), certain, signs))


def _winning_signs(readings: Readings, signs: Vector) -> Vector:
    """Return the signs of the sizes at which one device wins by enough to matter; 0 elsewhere."""
    return np.where(np.abs(readings.values) > math.log(TIE), signs, 0)


def _count_changes(drawn: Vector) -> Vector:
    """Return the number of times that each curve changes sides, by more than a tie on each side.

    A smaller difference counts as equally fast.
    """
    side, count = np.zeros(len(drawn)), np.zeros(len(drawn))
    for heights in drawn.T:
        now = np.where(np.abs(heights) > math.log(TIE), np.sign(heights), side)
        count += now * side < 0
        side = now
    return count


def _curve_signs(readings: Readings, widths: Vector, signs: Vector, fitted: SpeedupCurve) -> Vector:
    """Return the signs; undecided sizes get the sign of the curve if it is as certain as a crossing's interval."""
    above = fitted.evaluate(readings.sizes).above
    told = np.where(above > 1 - CROSSING_TAIL, 1, np.where(above < CROSSING_TAIL, -1, 0))
    return np.where((signs == 0) & (np.abs(readings.values) <= widths), told, signs)


def _rank_telling(drawn: Vector, often: NDArray[np.bool_], decided: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Rank sizes by how well their winner identifies curves with many changes; decided sizes are last."""
    above = drawn > 0
    told = np.abs((above & often[:, None]).mean(axis=0) - above.mean(axis=0) * often.mean())
    left = np.minimum(above.mean(axis=0), 1 - above.mean(axis=0))
    return np.lexsort((-left, -told, decided))


def _contradicting(readings: Readings, widths: Vector, signs: Vector) -> tuple[int, ...]:
    """Return the indices of sizes between the first and last change of sides, if visits make the changes uncertain.

    Args:
        readings: readings of all sizes.
        widths: half-widths of the intervals of single sizes, assuming that visits have no effect.
        signs: decided signs, allowing for the effect of visits.
    """
    shown = np.where(np.abs(readings.values) > widths, np.sign(readings.values), 0)
    beside = curve_estimate.with_nearby(readings, shown)
    agreed = np.flatnonzero([sign != 0 and not (near * sign < 0).any() for sign, near in beside])
    changes = [at for at, (one, other) in enumerate(itertools.pairwise(shown[agreed])) if one != other]
    decided = signs[signs != 0]
    if len(changes) < 2 or len(changes) <= int(np.count_nonzero(decided[1:] != decided[:-1])):
        return ()
    return tuple(range(int(agreed[changes[0] + 1]), int(agreed[changes[-1]]) + 1))


def _clear_ranges(readings: Readings, signs: Vector) -> Iterable[Clear]:
    """Yield ranges of sizes that one device wins: the ranges that reach an end of the sizes, otherwise the longest."""
    runs = [list(run) for sign, run in itertools.groupby(range(len(signs)), key=lambda at: signs[at]) if sign]
    ends = [run for run in runs if run[0] == 0 or run[-1] == len(signs) - 1]
    for run in ends or sorted(runs, key=len)[-1:]:
        ratios = np.exp(np.abs(readings.values[run]))
        yield Clear(
            begin=float(2 ** readings.sizes[run[0]]),
            end=float(2 ** readings.sizes[run[-1]]),
            challenger_faster=bool(signs[run[0]] > 0),
            least=float(ratios.min()),
            most=float(ratios.max()),
        )


def _crossings(readings: Readings, signs: Vector, fitted: SpeedupCurve) -> Iterable[Crossing]:
    """Yield a crossing between every two neighbouring decided sizes with different winners."""
    decided = np.flatnonzero(signs)
    for before, after in itertools.pairwise(decided):
        if signs[before] != signs[after]:
            yield _locate_crossing(readings, int(before), int(after), fitted, challenger_above=bool(signs[after] > 0))


def _locate_crossing(
    readings: Readings, before: int, after: int, fitted: SpeedupCurve, *, challenger_above: bool
) -> Crossing:
    """Return the interval outside which the curve has the sign of the nearer of the two decided sizes."""
    start, end = readings.sizes[before], readings.sizes[after]
    places = np.linspace(start, end, max(3, math.ceil((end - start) * PLACES_PER_OCTAVE) + 1))
    if len(readings.sizes) > curve_estimate.MAX_CURVE_SIZES:
        fitted = SpeedupCurve(readings, start, end)
    above = fitted.evaluate(places).above
    crossed = above if challenger_above else 1 - above
    first, last = np.maximum.accumulate(crossed), np.minimum.accumulate(crossed[::-1])[::-1]
    low, high = _place_of_level(first, CROSSING_TAIL, places), _place_of_level(last, 1 - CROSSING_TAIL, places)
    middle = _place_of_level((first + last) / 2, 0.5, places)
    if crossed[0] > MISFIT or crossed[-1] < 1 - MISFIT or _has_jump(readings, before, after):
        low, high = float(start), float(end)  # too abrupt for the model: use the whole interval between the two sizes
    return Crossing(estimate=2**middle, low=2**low, high=2**high, challenger_above=challenger_above)


def _has_jump(readings: Readings, before: int, after: int) -> bool:
    """Return whether the curve changes much faster between two neighbours than on either side of them."""
    if after != before + 1:
        return False
    sizes, values = readings.sizes, readings.values * np.sign(readings.values[after])
    beside = [
        (values[one] - values[one - 1]) / (sizes[one] - sizes[one - 1])
        for one in (before, after + 1)
        if 0 < one < len(sizes)
    ]
    slope = (values[after] - values[before]) / (sizes[after] - sizes[before])
    return bool(beside) and slope > JUMP * max(*beside, 0.0)


def _place_of_level(rising: Vector, level: float, places: Vector) -> float:
    """Return the place at which a rising curve reaches a level; the nearer end if it begins above or stays below."""
    after = int(np.searchsorted(rising, level))
    if after in (0, len(rising)):
        return float(places[min(after, len(rising) - 1)])
    return float(np.interp(level, rising[after - 1 : after + 1], places[after - 1 : after + 1]))
