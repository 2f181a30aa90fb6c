"""The crossover: along an axis, the size from which one device is faster than the other, with an interval.

The definition. At each size the sign of the speedup is decided by that size's readings alone, with noise pooled over
sizes. The crossover is the place where the decided signs change: the smallest size from which the challenger wins at
all larger sizes measured. A dip that the noise explains decides nothing and is forgiven; one that it does not makes
the answer `several`. Where between the last size that one device won and the first that the other won the change
lies is told by the model of `core.answer.study.curve`, which interpolates and is never asked beyond these two sizes.

Works on anyone's timings; rows of the store are brought here by `core.answer.study.study`.
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from core import units
from core.answer.run.speedup import Verdict
from core.answer.statistics import TIE
from core.answer.study import curve, wording
from core.answer.study.curve import Readings, Vector
from core.answer.study.result import Band, Basis, Crossing, Crossover, Evidence, Outcome, Size
from core.errors import InvalidValue, NotComparable

SIGN_RISK, USUAL_SIZES = 0.05, 10
"""Probability with which the sign of one size may be decided wrongly if both devices are equally fast there, for up to
so many sizes; with more sizes it is lowered in proportion. Only sizes at a crossing are that close."""

TAIL = 0.03
"""Probability that the model leaves out at either end of the interval. Simulated, that covers the truth in 93 to 99 %
of sweeps, by the roughness of the curves (docs/crossover.md); hence "95 %"."""

MISFIT = 0.1
"""Probability at which the model contradicts a decided size beside the crossing, and is not asked any further."""

TOO_FEW = "{} could be timed on both devices, and two are needed"

PER_OCTAVE = 16
"""Places in each doubling at which the curve is computed between two sizes."""

BAND_PLACES = 121


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
    timed = [entry for entry in sorted(evidence, key=_place) if not entry.obstacle]
    if found.noise is not None and len(timed) > 1:
        band = _band(_readings(timed))
        tie = _tie(band, found.crossings[0]) if found.outcome == "crossing" else None
        found = replace(found, band=band, tie=tie)
    return replace(found, sentence=wording.sentence(found))


def decide(evidence: Sequence[Evidence], blank: Crossover) -> Crossover:
    """The answer without what only people need: band, tie zone and sentence.

    Args:
        evidence: as in `locate`.
        blank: names and basis.

    Raises:
        InvalidValue: as in `locate`.
        NotComparable: as in `locate`.
    """
    ordered = sorted(evidence, key=_place)
    _check(ordered)
    found = _answer([entry for entry in ordered if not entry.obstacle], blank)
    sizes = sorted([*found.sizes, *(_without(entry) for entry in ordered if entry.obstacle)], key=lambda one: one.size)
    return replace(found, sizes=tuple(sizes))


def _place(entry: Evidence) -> float:
    return entry.size


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
    readings = _readings(timed)
    if readings.noise.sd is None:
        sizes = tuple(_size(entry, value, None) for entry, value in zip(timed, readings.values, strict=True))
        known = replace(blank, sizes=sizes, reason=TOO_FEW.format("one size only"))
        return replace(known, outcome="undecided", reason=_without_noise(known)) if len(timed) > 1 else known
    risk = SIGN_RISK * min(1.0, USUAL_SIZES / len(timed))
    widths = curve.half_width(readings, risk / 2)
    sizes = tuple(_size(*found) for found in zip(timed, readings.values, widths, strict=True))
    if len(timed) == 1:
        return replace(blank, sizes=sizes, noise=readings.noise.sd, reason=TOO_FEW.format("one size only"))
    signs = _signs(readings, widths)
    known = replace(
        blank,
        sizes=sizes,
        crossings=tuple(_crossings(readings, signs)),
        noise=readings.noise.sd,
        level=1 - risk,
    )
    if len(known.crossings) > 1:
        return replace(known, outcome="several", reason=wording.several(known.axis, known.crossings))
    if known.crossings:
        (only,) = known.crossings
        return replace(known, outcome="crossing", estimate=only.estimate, low=only.low, high=only.high)
    if winner := _winner_throughout(readings, signs):
        return replace(known, outcome=winner)
    return replace(known, outcome="undecided", reason=wording.unclear(_undecided(known, signs), known.noise or 0.0))


def _readings(timed: Sequence[Evidence]) -> Readings:
    """The log speedup of each size with what is known of its noise."""
    base, other = ([np.log(np.array(times)) for times in column] for column in zip(*map(_times, timed), strict=True))
    if timed[0].paired:
        ratios = [b - c for b, c in zip(base, other, strict=True)]
        values = _medians(ratios)
        noise, spread = curve.pooled_noise(ratios), [curve.median_spread(len(ratio)) for ratio in ratios]
    else:
        values = _medians(base) - _medians(other)
        noise, shares = curve.noise_of_two(curve.pooled_noise(base), curve.pooled_noise(other))
        counts = [(len(b), len(c)) for b, c in zip(base, other, strict=True)]
        spread = [sum(part * curve.median_spread(n) for part, n in zip(shares, pair, strict=True)) for pair in counts]
    sizes = np.log2(np.array([entry.size for entry in timed]))
    return Readings(sizes=sizes, values=values, spread=np.array(spread), noise=noise)


def _medians(groups: Sequence[Vector]) -> Vector:
    """The median of each group; of a few values each, for which numpy's takes twenty times as long."""
    return np.array([statistics.median(group.tolist()) for group in groups])


def _signs(readings: Readings, widths: Vector) -> Vector:
    """1 where the challenger wins, -1 where the baseline does, 0 where nothing is decided.

    A size's own readings decide, unless close neighbours contradict them: then one of them was disturbed.
    """
    own = np.where(np.abs(readings.values) > widths, np.sign(readings.values), 0)
    return np.asarray(np.where(own * curve.nearby(readings) > 0, own, 0))


def _winner_throughout(readings: Readings, signs: Vector) -> Outcome | None:
    """Who wins at every size that is decided, if the curve is certain of it at both ends as well."""
    decided = set(signs[signs != 0].tolist())
    above = curve.posterior(readings, readings.sizes[[0, -1]]).above
    if decided == {1.0} and above.min() > 1 - TAIL:
        return "gpu_always"
    if decided == {-1.0} and above.max() < TAIL:
        return "cpu_always"
    return None


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
    medians = (statistics.median(times) if times else None for times in _times(entry))
    baseline_s, challenger_s = medians
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


def _crossings(readings: Readings, signs: Vector) -> Iterable[Crossing]:
    """One between every two neighbouring decided sizes that the two devices share."""
    decided = np.flatnonzero(signs)
    for before, after in itertools.pairwise(decided):
        if signs[before] != signs[after]:
            yield _crossing(readings, int(before), int(after), challenger_above=bool(signs[after] > 0))


def _crossing(readings: Readings, before: int, after: int, *, challenger_above: bool) -> Crossing:
    """The interval outside of which the curve has the sign of the nearer of the two decided sizes."""
    start, end = readings.sizes[before], readings.sizes[after]
    places = np.linspace(start, end, max(3, math.ceil((end - start) * PER_OCTAVE) + 1))
    above = curve.posterior(readings, places).above
    crossed = above if challenger_above else 1 - above
    first, last = np.maximum.accumulate(crossed), np.minimum.accumulate(crossed[::-1])[::-1]
    low, high = _where(first, TAIL, places), _where(last, 1 - TAIL, places)
    middle = _where((first + last) / 2, 0.5, places)
    if crossed[0] > MISFIT or crossed[-1] < 1 - MISFIT:  # too abrupt for the model: the two sizes are all that is known
        low, high = float(start), float(end)
    return Crossing(estimate=2**middle, low=2**low, high=2**high, challenger_above=challenger_above)


def _where(rising: Vector, level: float, places: Vector) -> float:
    """Place at which a rising curve reaches a level; the nearer end where it begins above or stays below."""
    after = int(np.searchsorted(rising, level))
    if after in (0, len(rising)):
        return float(places[min(after, len(rising) - 1)])
    return float(np.interp(level, rising[after - 1 : after + 1], places[after - 1 : after + 1]))


def _band(readings: Readings) -> Band:
    places = np.linspace(readings.sizes[0], readings.sizes[-1], BAND_PLACES)
    found = curve.posterior(readings, places)
    sizes, middle = np.exp2(places), found.mean
    reach = 1.96 * found.sd
    columns = (sizes, np.exp(middle), np.exp(middle - reach), np.exp(middle + reach))
    names = ("sizes", "speedup", "low", "high")
    return Band(**{name: tuple(map(float, column)) for name, column in zip(names, columns, strict=True)})


def _tie(band: Band, crossing: Crossing) -> tuple[float, float] | None:
    """Sizes around the crossing between which the difference is within ±10 %, by the middle of the band."""
    close = [abs(math.log(speedup)) <= math.log(TIE) for speedup in band.speedup]
    at = min(range(len(close)), key=lambda place: abs(math.log(band.sizes[place] / crossing.estimate)))
    if not close[at]:
        return None
    first = next((place + 1 for place in range(at, -1, -1) if not close[place]), 0)
    last = next((place - 1 for place in range(at, len(close)) if not close[place]), len(close) - 1)
    return band.sizes[first], band.sizes[last]


def _undecided(answer: Crossover, signs: Vector) -> list[float]:
    return [size.size for size, sign in zip(answer.sizes, signs, strict=True) if not sign]


def _without_noise(answer: Crossover) -> str:
    """What single readings allow: between which sizes they change sides, without an interval."""
    wins = [(size.size, (size.speedup or 1.0) > 1) for size in answer.sizes]
    changes = [(below, above) for (below, before), (above, after) in itertools.pairwise(wins) if before != after]
    return wording.single_readings(answer.axis, changes, answer.challenger if wins[0][1] else answer.baseline)
