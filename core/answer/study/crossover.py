"""The crossover: along an axis, the size from which one device is faster than the other, with an interval.

The definition. At each size the sign of the speedup is decided by that size's readings, with what the other sizes tell
of the noise. The crossover is the place where the decided signs change: the smallest size from which the challenger
wins at all larger sizes measured. A dip that the noise explains decides nothing and is forgiven; one that it does not
makes the answer `several`. Where between the last size that one device won and the first that the other won the change
lies is told by the model of `core.answer.study.estimate`, which interpolates and is never asked beyond these two sizes;
what is decided is the business of its `judging`.

Works on anyone's timings; rows of the store are brought here by `core.answer.study.study`.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from core import units
from core.answer.run.speedup import Verdict
from core.answer.statistics import TIE
from core.answer.study import wording
from core.answer.study.doubts import cautions
from core.answer.study.estimate import curve
from core.answer.study.estimate.curve import Curve, Readings
from core.answer.study.estimate.judging import SIGN_RISK, Judgement, judge
from core.answer.study.estimate.noise import (
    PRIOR_NOISE,
    SURE,
    Noise,
    Vector,
    believed_variance,
    median_spread,
    noise_of_two,
    own_variances,
    pooled_noise,
    visit_share,
)
from core.answer.study.result import Assumed, Band, Basis, Crossover, Evidence, Size
from core.errors import InvalidValue, NotComparable

TOO_FEW = "{} could be timed on both devices, and two are needed"

BAND_PLACES = 121

ASSUMED_FREEDOM = 10
"""For how many readings the usual noise counts where each size was read once, and it is assumed."""

DISTURBED = 0.1
"""Scatter of sizes around a curve, beyond that of their readings, from which the machine does not count as quiet."""

_BY_SIZE = attrgetter("size")


def locate(
    evidence: Sequence[Evidence], *, axis: str, basis: Basis = "as_given", baseline: str, challenger: str
) -> Crossover:
    """Where along `axis` the faster device changes.

    Args:
        evidence: what was timed, a size each, in any order; sizes named twice are refused.
        axis: what is varied, for the sentence.
        basis: what the times stand for.
        baseline: name of the baseline, for people.
        challenger: name of the challenger, for people.

    Raises:
        InvalidValue: a size or a time is not above 0 and finite, or a size is given twice.
        NotComparable: some readings are paired and some are not.
    """
    found = decide(evidence, Crossover(axis=axis, basis=basis, baseline=baseline, challenger=challenger))
    timed = [entry for entry in sorted(evidence, key=_BY_SIZE) if not entry.obstacle]
    found = replace(found, cautions=tuple(cautions.said(timed, found)))
    if found.noise is not None and len(timed) > 1:
        band = _band(log_speedups(timed))
        zones = _close(band) if found.outcome == "crossing" else []
        at = min(band.sizes, key=lambda size: abs(math.log(size / found.crossings[0].estimate))) if zones else 0.0
        tie = next((zone for zone in zones if zone[0] <= at <= zone[1]), None)
        found = replace(found, band=band, tie=tie, also_close=tuple(zone for zone in zones if zone != tie))
    return replace(found, sentence=wording.sentence(found))


def decide(evidence: Sequence[Evidence], blank: Crossover) -> Crossover:
    """The answer without what only people need: band, tie zone and sentence; `blank` has names and basis.

    Raises:
        InvalidValue: as in `locate`.
        NotComparable: as in `locate`.
    """
    ordered = sorted(evidence, key=_BY_SIZE)
    _check(ordered)
    found = _answer([entry for entry in ordered if not entry.obstacle], blank)
    sizes = sorted([*found.sizes, *(_without(entry) for entry in ordered if entry.obstacle)], key=_BY_SIZE)
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
        raise NotComparable("Readings that were taken in pairs cannot be mixed with readings that were not.")


def _answer(timed: Sequence[Evidence], blank: Crossover) -> Crossover:
    if not timed:
        return replace(blank, reason=TOO_FEW.format("no size"))
    readings = log_speedups(timed)
    if len(timed) == 1:
        width = None if readings.noise.sd is None else float(curve.half_width(readings, SIGN_RISK / 2)[0])
        one = _size(timed[0], float(readings.values[0]), width)
        return replace(blank, sizes=(one,), noise=readings.noise.sd, reason=TOO_FEW.format("one size only"))
    if readings.noise.sd is None:
        return _assuming(timed, readings, blank)
    found = judge(readings)
    sizes = tuple(_size(*each) for each in zip(timed, readings.values, found.widths, strict=True))
    known = replace(
        blank,
        outcome=found.outcome,
        crossings=found.crossings,
        sizes=sizes,
        clear=found.clear,
        contradicting=tuple(timed[at].size for at in found.contradicting),
        noise=readings.noise.sd,
        level=1 - found.risk,
    )
    if found.outcome == "crossing":
        (only,) = found.crossings
        return replace(known, estimate=only.estimate, low=only.low, high=only.high)
    return replace(known, reason=_reason(known, found))


def _reason(known: Crossover, found: Judgement) -> str:
    if known.outcome == "several":
        return wording.several(known.axis, known.crossings, disturbed=found.curve.scatter > DISTURBED)
    if known.outcome != "undecided":
        return ""
    if found.contradicting:
        return wording.contradicting(known.contradicting)
    unclear = [size.size for size, sign in zip(known.sizes, found.signs, strict=True) if not sign]
    return wording.unclear(unclear or [known.sizes[0].size, known.sizes[-1].size], known.noise or 0.0)


def _assuming(timed: Sequence[Evidence], readings: Readings, blank: Crossover) -> Crossover:
    """What single readings allow: nothing for certain, and what they would say if they scattered as is usual."""
    sizes = tuple(_size(entry, value, None) for entry, value in zip(timed, readings.values, strict=True))
    usual = replace(
        readings,
        spread=np.full(len(timed), 2.0),  # of a ratio: both devices scatter
        noise=Noise(sd=PRIOR_NOISE, freedom=ASSUMED_FREEDOM),
        freedom=np.full(len(timed), float(ASSUMED_FREEDOM)),
    )
    found = judge(usual)
    assumed = Assumed(noise=PRIOR_NOISE, outcome=found.outcome, crossings=found.crossings, clear=found.clear)
    known = replace(blank, outcome="undecided", sizes=sizes, assumed=assumed)
    return replace(known, reason=_without_noise(known))


def log_speedups(timed: Sequence[Evidence]) -> Readings:
    """The log speedup of each size with what is known of its noise."""
    base, other = ([np.log(np.array(times)) for times in column] for column in zip(*map(_times, timed), strict=True))
    if timed[0].paired:
        ratios = [b - c for b, c in zip(base, other, strict=True)]
        values, noise = _medians(ratios), pooled_noise(ratios)
        variances = _of_medians(ratios, noise)
    else:
        values = _medians(base) - _medians(other)
        pools = [pooled_noise(groups) for groups in (base, other)]
        noise = noise_of_two(*pools)
        known = [pool if pool.sd is not None else noise for pool in pools]
        variances = _of_medians(base, known[0]) + _of_medians(other, known[1])
    counts = [min(map(len, _times(entry))) for entry in timed]
    return Readings(
        sizes=np.log2(np.array([entry.size for entry in timed])),
        values=values,
        spread=variances / believed_variance(noise),
        noise=noise,
        freedom=np.array([min(noise.freedom, count - 1 + SURE) for count in counts]),
        visits=np.array([visit_share(n, min(n, entry.visits)) for n, entry in zip(counts, timed, strict=True)]),
    )


def _of_medians(groups: Sequence[Vector], pool: Noise) -> Vector:
    """Variance of the median of each group of readings."""
    spreads = np.array([median_spread(len(group)) for group in groups])
    return np.asarray(own_variances(groups, pool) * spreads)


def _medians(groups: Sequence[Vector]) -> Vector:
    """The median of each group; of a few values each, for which numpy's takes twenty times as long."""
    return np.array([statistics.median(group.tolist()) for group in groups])


def _times(entry: Evidence) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return entry.baseline_s, entry.challenger_s


def _size(entry: Evidence, value: float, width: float | None) -> Size:
    baseline_s, challenger_s = (statistics.median(times) for times in _times(entry))
    verdict, reason = _verdict(value, width)
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


def _verdict(value: float, width: float | None) -> tuple[Verdict, str]:
    if width is None:
        return "missing", "one reading a device does not tell the noise"
    if abs(value) <= width:
        return "too_close", "either could be faster"
    if abs(value) <= math.log(TIE):
        return "too_close", f"the difference is within {units.share(TIE - 1)}"
    return ("gpu_faster" if value > 0 else "cpu_faster"), ""


def _without(entry: Evidence) -> Size:
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


def _band(readings: Readings) -> Band:
    first, last = float(readings.sizes[0]), float(readings.sizes[-1])
    places = np.linspace(first, last, BAND_PLACES)
    found = Curve(readings, first, last).at(places)
    sizes, middle = np.exp2(places), found.mean
    reach = 1.96 * found.sd
    columns = (sizes, np.exp(middle), np.exp(middle - reach), np.exp(middle + reach))
    names = ("sizes", "speedup", "low", "high")
    return Band(**{name: tuple(map(float, column)) for name, column in zip(names, columns, strict=True)})


def _close(band: Band) -> list[tuple[float, float]]:
    """Every range of sizes in which the difference is within ±10 %, by the middle of the band."""
    groups = itertools.groupby(
        zip(band.sizes, band.speedup, strict=True), key=lambda place: abs(math.log(place[1])) <= math.log(TIE)
    )
    zones = [[size for size, _ in places] for close, places in groups if close]
    return [(sizes[0], sizes[-1]) for sizes in zones]


def _without_noise(answer: Crossover) -> str:
    """What single readings allow: between which sizes they change sides, without an interval."""
    wins = [(size.size, (size.speedup or 1.0) > 1) for size in answer.sizes]
    changes = [(below, above) for (below, before), (above, after) in itertools.pairwise(wins) if before != after]
    return wording.single_readings(answer.axis, changes, answer.challenger if wins[0][1] else answer.baseline)
