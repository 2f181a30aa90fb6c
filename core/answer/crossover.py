"""The crossover: the size on an axis from which one device is faster than the other, with an interval.

The definition. At each size, the readings of that size decide the sign of the speedup; the other sizes contribute to
the noise estimate. The crossover is the place where the decided signs change: the smallest size from which the
challenger wins at all larger sizes measured. A dip within the noise is ignored; any other dip makes the answer
`several`. The change lies between the last size that one device won and the first that the other won.
`core.answer.curve_estimate` locates it there by interpolation and never extrapolates; `core.answer.judgement` decides
the signs.

The functions accept timings from any source; `core.answer.study` prepares rows of the store.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from ..errors import InvalidValue, NotComparable
from . import curve_estimate, interference, wording
from .curve_estimate import (
    POOL_CERTAINTY,
    PRIOR_NOISE,
    Noise,
    Readings,
    SpeedupCurve,
    Vector,
    combine_noise,
    median_spread,
    pool_noise,
    posterior_variance,
    size_variances,
    visit_share,
)
from .judgement import (
    CROSSING_TAIL,
    DECIDED,
    SIGN_RISK,
    Assumed,
    Band,
    Basis,
    Clear,
    Crossover,
    Evidence,
    Judgement,
    Size,
    SpeedupAt,
    judge_readings,
)
from .statistics import TIE
from .verdict import VerdictCode, closeness_reason

TOO_FEW = "{} could be timed on both devices; two are needed"

BAND_PLACES = 121

ASSUMED_FREEDOM = 10
"""Number of readings that the assumed noise counts for if each size was read once."""

DISTURBED = 0.1
"""Scatter of sizes around a curve, beyond the noise of their readings, above which a machine does not count as quiet.
"""

_BY_SIZE = attrgetter("size")


def locate_crossover(
    evidence: Sequence[Evidence],
    *,
    axis: str,
    basis: Basis = "as_given",
    baseline: str,
    challenger: str,
    cautions: Sequence[str] = (),
) -> Crossover:
    """Return the size at which the faster device changes, with an interval and a sentence.

    Args:
        evidence: timings, one entry per size, in any order; duplicate sizes are refused.
        axis: the setting that varies, for the sentence.
        basis: cost basis of the times.
        baseline: display name of the baseline.
        challenger: display name of the challenger.
        cautions: additional sentences about the readings.

    Raises:
        InvalidValue: a size or a time is not above 0 and finite, or a size is given twice.
        NotComparable: some readings are paired and some are not.
    """
    found = decide_crossover(evidence, Crossover(axis=axis, basis=basis, baseline=baseline, challenger=challenger))
    timed = [entry for entry in sorted(evidence, key=_BY_SIZE) if not entry.obstacle]
    found = replace(found, cautions=(*cautions, *interference.caution_sentences(timed, found)))
    if found.noise is not None and len(timed) > 1:
        band = _curve_band(log_speedups(timed))
        zones = _tie_ranges(band) if found.outcome == "crossing" else []
        at = min(band.sizes, key=lambda size: abs(math.log(size / found.crossings[0].estimate))) if zones else 0.0
        tie = next((zone for zone in zones if zone[0] <= at <= zone[1]), None)
        found = replace(found, band=band, tie=tie, also_close=tuple(zone for zone in zones if zone != tie))
    return replace(found, sentence=wording.crossover_sentence(found))


def speedup_at(evidence: Sequence[Evidence], answer: Crossover, size: float) -> SpeedupAt:
    """Return the speedup at one size, measured or interpolated between measured sizes, never extrapolated.

    Args:
        evidence: timings of the study.
        answer: the crossover that follows from it.
        size: place on the axis, above 0.

    Returns:
        The speedup with its interval. A size between measured sizes has a winner only if the study is decided and the
        curve leaves the other device a probability of at most 2.5 %.
    """
    timed = [entry for entry in sorted(evidence, key=_BY_SIZE) if not entry.obstacle]
    if answer.condition:
        return SpeedupAt(size, "not measured", reason=f"measured {answer.condition} only")
    measured = next((one for one in answer.sizes if one.size == size and one.speedup is not None), None)
    if measured is not None:
        winner = {"gpu_faster": answer.challenger, "cpu_faster": answer.baseline}.get(measured.verdict, "")
        figures = (measured.speedup, measured.low, measured.high)
        return SpeedupAt(size, "measured", winner, *figures, reason=measured.reason)
    if len(timed) < 2 or not timed[0].size <= size <= timed[-1].size:
        return SpeedupAt(size, "not measured", reason="outside the measured sizes")
    readings = log_speedups(timed)
    if readings.noise.sd is None:
        return SpeedupAt(size, "not measured", reason="each size was measured once, so the noise is unknown")
    at = SpeedupCurve(readings, math.log2(size), math.log2(size)).evaluate(np.array([math.log2(size)]))
    middle, reach, above = float(at.mean[0]), 1.96 * float(at.sd[0]), float(at.above[0])
    is_certain = answer.outcome in DECIDED and not CROSSING_TAIL <= above <= 1 - CROSSING_TAIL
    reason = closeness_reason(middle, middle - reach, middle + reach) or (
        "" if is_certain else "either could be faster"
    )
    winner = "" if reason else answer.challenger if middle > 0 else answer.baseline
    figures = (math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))
    return SpeedupAt(size, "interpolated", winner, *figures, reason=reason)


def decide_crossover(evidence: Sequence[Evidence], blank: Crossover) -> Crossover:
    """Return the answer without band, tie zone and sentence; `blank` has the names and the cost basis.

    Raises:
        InvalidValue: as in `locate_crossover`.
        NotComparable: as in `locate_crossover`.
    """
    ordered = sorted(evidence, key=_BY_SIZE)
    _check(ordered)
    found = _find_crossover([entry for entry in ordered if not entry.obstacle], blank)
    sizes = sorted([*found.sizes, *(_obstacle_size(entry) for entry in ordered if entry.obstacle)], key=_BY_SIZE)
    return replace(found, sizes=tuple(sizes))


def _check(ordered: Sequence[Evidence]) -> None:
    for entry in ordered:
        if not (math.isfinite(entry.size) and entry.size > 0):
            raise InvalidValue("size", entry.size, "above 0 and finite")
        for seconds in (*entry.baseline_s, *entry.challenger_s):
            if not (math.isfinite(seconds) and seconds > 0):
                raise InvalidValue("seconds", seconds, "above 0 and finite")
        if not entry.obstacle and not (entry.baseline_s and entry.challenger_s):
            raise InvalidValue("readings", entry.size, "of both devices at each size, or an obstacle")
        if not entry.obstacle and entry.paired and len(entry.baseline_s) != len(entry.challenger_s):
            raise InvalidValue("readings", entry.size, "of both devices in pairs")
    for before, after in itertools.pairwise(ordered):
        if before.size == after.size:
            raise InvalidValue("size", after.size, "given once")
    if len({entry.paired for entry in ordered if not entry.obstacle}) > 1:
        raise NotComparable("Paired readings cannot be mixed with unpaired readings.")


def _find_crossover(timed: Sequence[Evidence], blank: Crossover) -> Crossover:
    if not timed:
        return replace(blank, reason=TOO_FEW.format("no size"))
    readings = log_speedups(timed)
    if len(timed) == 1:
        width = None if readings.noise.sd is None else float(curve_estimate.half_width(readings, SIGN_RISK / 2)[0])
        one = _size(timed[0], float(readings.values[0]), width, "two sizes are needed")
        return replace(blank, sizes=(one,), noise=readings.noise.sd, reason=TOO_FEW.format("one size only"))
    if readings.noise.sd is None:
        return _assuming(timed, readings, blank)
    found = judge_readings(readings)
    clear = tuple(_snap_to_sizes(one, timed) for one in found.clear)
    doubts = _winner_doubts(timed, readings, found, clear)
    sizes = tuple(_size(*each) for each in zip(timed, readings.values, found.widths, doubts, strict=True))
    known = replace(
        blank,
        outcome=found.outcome,
        crossings=found.crossings,
        sizes=sizes,
        clear=clear,
        contradicting=tuple(timed[at].size for at in found.contradicting),
        noise=readings.noise.sd,
        level=1 - found.risk,
    )
    if found.outcome in ("gpu_always", "cpu_always") and not known.decided_sizes:
        return replace(known, outcome="undecided", reason=wording.NOWHERE_APART)
    if found.outcome == "crossing":
        (only,) = found.crossings
        return replace(known, estimate=only.estimate, low=only.low, high=only.high)
    return replace(known, reason=_reason(known, found))


def _reason(answer: Crossover, judgement: Judgement) -> str:
    if answer.outcome == "several":
        return wording.several_crossings_reason(
            answer.axis, answer.crossings, disturbed=judgement.curve.scatter > DISTURBED
        )
    if answer.outcome != "undecided":
        return ""
    if judgement.contradicting:
        return wording.contradicting_sizes_reason(answer.contradicting)
    unclear = [size.size for size, sign in zip(answer.sizes, judgement.signs, strict=True) if not sign]
    return wording.unclear_sizes_reason(unclear or [answer.sizes[0].size, answer.sizes[-1].size], answer.noise or 0.0)


def _assuming(timed: Sequence[Evidence], readings: Readings, blank: Crossover) -> Crossover:
    """Return an undecided answer from single readings, with the outcome that typical noise would imply."""
    rows = (_size(entry, value, None) for entry, value in zip(timed, readings.values, strict=True))
    sizes = tuple(replace(row, reason="") for row in rows)  # the sentence gives the reason for all sizes
    usual = replace(
        readings,
        spread=np.full(len(timed), 2.0),  # variance of a ratio: the readings of both devices scatter
        noise=Noise(sd=PRIOR_NOISE, freedom=ASSUMED_FREEDOM),
        freedom=np.full(len(timed), float(ASSUMED_FREEDOM)),
        visits=np.zeros(len(timed)),  # the assumed noise includes visits
    )
    found = judge_readings(usual)
    clear = tuple(_snap_to_sizes(one, timed) for one in found.clear)
    assumed = Assumed(noise=PRIOR_NOISE, outcome=found.outcome, crossings=found.crossings, clear=clear)
    if found.outcome == "crossing":
        (only,) = found.crossings
        assumed = replace(assumed, estimate=only.estimate, low=only.low, high=only.high)
    known = replace(blank, outcome="undecided", sizes=sizes, assumed=assumed)
    return replace(known, reason=_single_readings_reason(known))


def log_speedups(timed: Sequence[Evidence]) -> Readings:
    """Return the log speedup of each size and the estimates of its noise."""
    base, other = ([np.log(np.array(times)) for times in column] for column in zip(*map(_times, timed), strict=True))
    if timed[0].paired:
        ratios = [b - c for b, c in zip(base, other, strict=True)]
        values, noise = _group_medians(ratios), pool_noise(ratios)
        variances = _median_variances(ratios, noise)
    else:
        values = _group_medians(base) - _group_medians(other)
        pools = [pool_noise(groups) for groups in (base, other)]
        noise = combine_noise(*pools)
        known = [pool if pool.sd is not None else noise for pool in pools]
        variances = _median_variances(base, known[0]) + _median_variances(other, known[1])
    counts = [min(map(len, _times(entry))) for entry in timed]
    return Readings(
        sizes=np.log2(np.array([entry.size for entry in timed])),
        values=values,
        spread=variances / posterior_variance(noise),
        noise=noise,
        freedom=np.array([min(noise.freedom, count - 1 + POOL_CERTAINTY) for count in counts]),
        visits=np.array([visit_share(n, min(n, entry.visits)) for n, entry in zip(counts, timed, strict=True)]),
    )


def _median_variances(groups: Sequence[Vector], pool: Noise) -> Vector:
    """Return the variance of the median of each group of readings."""
    spreads = np.array([median_spread(len(group)) for group in groups])
    return np.asarray(size_variances(groups, pool) * spreads)


def _group_medians(groups: Sequence[Vector]) -> Vector:
    """Return the median of each group; for small groups, `numpy.median` takes twenty times as long."""
    return np.array([statistics.median(group.tolist()) for group in groups])


def _times(entry: Evidence) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return entry.baseline_s, entry.challenger_s


def _snap_to_sizes(clear: Clear, timed: Sequence[Evidence]) -> Clear:
    """Return a range whose ends are exact sizes, without the rounding of logarithms."""
    begin, end = (
        min((entry.size for entry in timed), key=lambda size: abs(size - edge)) for edge in (clear.begin, clear.end)
    )
    return replace(clear, begin=begin, end=end)


def _winner_doubts(
    timed: Sequence[Evidence], readings: Readings, judgement: Judgement, clear_ranges: Sequence[Clear]
) -> list[str | None]:
    """Return the objection of the whole study to a winner at each size; empty if the study decides for one.

    None means that the readings of the size decide. A size has a winner in tables and charts exactly if the headline
    counts it for one device.
    """
    own = np.abs(readings.values) > judgement.widths
    doubts = [
        "" if sign else "the sizes around it contradict it" if alone else None
        for sign, alone in zip(judgement.signs, own, strict=True)
    ]
    if judgement.outcome != "undecided":
        return doubts
    told = [any(clear.begin <= entry.size <= clear.end for clear in clear_ranges) for entry in timed]
    return [
        doubt if known or doubt is None else doubt or NOT_SETTLED for doubt, known in zip(doubts, told, strict=True)
    ]


NOT_SETTLED = "the sizes around it do not settle it"


def _size(entry: Evidence, value: float, width: float | None, doubt: str | None = None) -> Size:
    baseline_s, challenger_s = (statistics.median(times) for times in _times(entry))
    verdict, reason = _size_verdict(value, width, doubt)
    return Size(
        size=entry.size,
        baseline_s=baseline_s,
        challenger_s=challenger_s,
        readings=min(len(entry.baseline_s), len(entry.challenger_s)),
        speedup=math.exp(value),
        low=None if width is None else math.exp(value - width),
        high=None if width is None else math.exp(value + width),
        verdict=verdict,
        reason=reason,
    )


def _size_verdict(value: float, width: float | None, doubt: str | None) -> tuple[VerdictCode, str]:
    """Return the verdict at a size and the reason for no winner; an empty `doubt` means that the study decides."""
    if width is None:
        return "missing", "one reading per device does not show the noise"
    reach = 0.0 if doubt == "" else width
    if reason := closeness_reason(value, value - reach, value + reach) or doubt:
        return "too_close", reason
    return ("gpu_faster" if value > 0 else "cpu_faster"), ""


def _obstacle_size(entry: Evidence) -> Size:
    baseline_s, challenger_s = (statistics.median(times) if times else None for times in _times(entry))
    return Size(
        size=entry.size,
        baseline_s=baseline_s,
        challenger_s=challenger_s,
        readings=0,
        speedup=None,
        low=None,
        high=None,
        verdict="missing",
        reason=entry.obstacle,
    )


def _curve_band(readings: Readings) -> Band:
    first, last = float(readings.sizes[0]), float(readings.sizes[-1])
    places = np.linspace(first, last, BAND_PLACES)
    found = SpeedupCurve(readings, first, last).evaluate(places)
    sizes, middle = np.exp2(places), found.mean
    reach = 1.96 * found.sd
    columns = (sizes, np.exp(middle), np.exp(middle - reach), np.exp(middle + reach))
    names = ("sizes", "speedup", "low", "high")
    return Band(**{name: tuple(map(float, column)) for name, column in zip(names, columns, strict=True)})


def _tie_ranges(band: Band) -> list[tuple[float, float]]:
    """Return every range of sizes in which the middle of the band is within ±10 %."""
    groups = itertools.groupby(
        zip(band.sizes, band.speedup, strict=True), key=lambda place: abs(math.log(place[1])) <= math.log(TIE)
    )
    zones = [[size for size, _ in places] for close, places in groups if close]
    return [(sizes[0], sizes[-1]) for sizes in zones]


def _single_readings_reason(answer: Crossover) -> str:
    """Describe between which sizes the faster device changes in single readings, without an interval."""
    wins = [(size.size, (size.speedup or 1.0) > 1) for size in answer.sizes]
    changes = [(below, above) for (below, before), (above, after) in itertools.pairwise(wins) if before != after]
    return wording.single_readings_reason(answer.axis, changes, answer.challenger if wins[0][1] else answer.baseline)
