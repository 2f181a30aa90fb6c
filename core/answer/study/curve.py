"""The statistical model below a crossover: the logarithm of the speedup as a noisy curve over the logarithm of size.

A Gaussian process: a straight line, plus an integrated random walk (what bends), plus a little random walk (what
jumps: caches, tiles, thread thresholds). How much it bends and how large the noise is are not fitted but averaged
over, weighted by how well each explains the readings, so that few readings give wide intervals. It interpolates; a
global law of performance (a + b·FLOPs) would be tighter where it holds and confidently wrong where it does not.
Numbers in, numbers out: nothing here knows devices, rows or verdicts.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

BENDS = (0.05, 0.1, 0.2, 0.4)
"""Candidates for how much the slope changes within one unit of size (standard deviation)."""

JUMPS = (0.0, 0.1, 1.0)
"""Candidates for how much the curve moves without a trend within one unit: not at all; by what a coarse grid cannot
see; or in jumps, so that only the sizes on either side of a jump are known."""

SHAPES = tuple(itertools.product(BENDS, JUMPS))

USUAL_SLOPE = 0.55
"""Change of the log speedup per octave of hidden size, as it is usual; it defines the unit of size on other axes."""

NEAR = 0.3
"""Units within which sizes are neighbours that should agree."""

LEAST_UNITS = 0.5
"""Units an octave has at least, however flat the readings."""

NOISE_FACTORS = tuple(2.0 ** (power / 2) for power in range(-3, 6))
"""Candidates for the true noise over the estimated one: 0.35 to 5.7."""

PRIOR_NOISE, PRIOR_WEIGHT = 0.05, 2.0
"""What is believed of the noise before any reading, and for how many readings that counts: a few readings that
happen to agree do not make a quiet machine."""

LEAST_NOISE = 1e-6
"""Noise below which readings are of one value: a coarse clock, or made up."""

TRUST = 0.9
"""Information that one reading carries about the noise when its scale is a median of deviations, not a mean square."""

LINE_SD = (5.0, 2.0)
"""Standard deviations of height and slope of the line: next to nothing is assumed."""

FEW = 20
"""Up to so many readings of one size every difference between two of them is used, beyond it those from the median."""

MOST_SIZES = 48
"""Sizes nearest to the place in question that take part; the cost grows with their third power."""

_PAIR_SCALE = math.sqrt(2) * NormalDist().inv_cdf(0.75)
_MEDIAN_SCALE = NormalDist().inv_cdf(0.75)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Pooled noise of readings.

    Attributes:
        sd: standard deviation of one reading's logarithm, estimated robustly over all sizes; None if no size was
            read twice.
        freedom: readings that it rests on, beyond the first of each size.
    """

    sd: float | None
    freedom: int


@dataclass(frozen=True, kw_only=True)
class Readings:
    """The log speedup at each size, ascending, each size once.

    Attributes:
        sizes: logarithm to base 2.
        values: median log speedup.
        spread: variance of each value in units of the noise's variance.
        noise: of one reading.
    """

    sizes: Vector
    values: Vector
    spread: Vector
    noise: Noise


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """The curve at some places.

    Attributes:
        mean: of the log speedup.
        sd: its standard deviation.
        above: probability that the log speedup is above 0.
    """

    mean: Vector
    sd: Vector
    above: Vector


def pooled_noise(groups: Sequence[Vector]) -> Noise:
    """Noise of single readings, from how those of one size differ; sizes are assumed to be equally noisy.

    The median of absolute deviations, so that a few disturbed readings count for little.

    Args:
        groups: logarithms of the readings of each size.
    """
    deviations = [_deviations(group) for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in groups if len(group) > 1)
    return Noise(sd=float(np.median(np.concatenate(deviations))) if deviations else None, freedom=freedom)


def noise_of_two(first: Noise, second: Noise) -> tuple[Noise, tuple[float, float]]:
    """Noise of readings of two devices that do not pair, which may be unequally noisy.

    A pool of both would take the noise of the quieter one for that of the other as well. What one of them is not known
    for is taken from the other.

    Returns:
        The noise of a reading on average (root mean square), and the share in its variance of either device, 1 where
        both are alike. Its freedom is that of Welch: that of the noisier one where the other adds next to nothing.
    """
    known = [noise for noise in (first, second) if noise.sd is not None]
    if len(known) < 2:
        return (known[0] if known else first), (1.0, 1.0)
    variances = [max((noise.sd or 0.0) ** 2, LEAST_NOISE**2) for noise in known]
    mean = sum(variances) / 2
    rates = [variance**2 / noise.freedom for variance, noise in zip(variances, known, strict=True)]
    pooled = Noise(sd=math.sqrt(mean), freedom=round(sum(variances) ** 2 / sum(rates)))
    return pooled, (variances[0] / mean, variances[1] / mean)


def median_spread(count: int) -> float:
    """Variance of the median of `count` normal values over the variance of one; exact for 1, within 3 % for odd."""
    return (math.pi / 2) / (count + math.pi / 2 - 1)


def chances(readings: Readings) -> Vector:
    """Probability, size by size and without regard to other sizes, that the log speedup is above 0."""
    factors, weights = _noise_weights(readings.noise)
    sds = np.outer(factors, _sd(readings.noise) * np.sqrt(readings.spread))
    return np.asarray(np.exp(weights) @ _normal(readings.values / sds))


def half_width(readings: Readings, tail: float) -> Vector:
    """Half-width of the interval that leaves `tail` on either side of each value; as `chances`, size by size."""
    factors, weights = _noise_weights(readings.noise)
    shares = np.exp(weights)
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        beyond = float(shares @ _normal(-middle / factors))
        low, high = (middle, high) if beyond > tail else (low, middle)
    return np.asarray(high * _sd(readings.noise) * np.sqrt(readings.spread))


def posterior(readings: Readings, places: Vector) -> Posterior:
    """The curve at `places` (logarithm to base 2 of size), from the readings nearest to them."""
    near = _nearest(readings, places)
    scale, origin = _units_per_octave(near), min(near.sizes.min(), places.min())
    at, to = (near.sizes - origin) * scale, (places - origin) * scale
    factors, noise_weights = _noise_weights(near.noise)
    own_noise = np.outer(factors**2, _sd(near.noise) ** 2 * near.spread)
    stack = _covariances(at, at)[:, None] + (own_noise[:, :, None] + 1e-10) * np.eye(len(at))
    across = np.broadcast_to(_covariances(at, to)[:, None], (*stack.shape[:2], len(at), len(to)))
    lower = np.linalg.cholesky(stack)
    white = np.linalg.solve(lower, np.broadcast_to(near.values[:, None], (*stack.shape[:2], len(at), 1)))
    carried = np.linalg.solve(lower, across)
    means = (carried * white).sum(axis=2)
    variances = np.maximum(_variances(to)[:, None] - (carried**2).sum(axis=2), 1e-12)
    heights = np.log(np.diagonal(lower, axis1=2, axis2=3)).sum(axis=2)
    weights = noise_weights - (white**2).sum(axis=(2, 3)) / 2 - heights
    shares = (np.exp(weights - weights.max()) / np.exp(weights - weights.max()).sum())[:, :, None]
    mean, square = (shares * means).sum(axis=(0, 1)), (shares * (variances + means**2)).sum(axis=(0, 1))
    above = (shares * _normal(means / np.sqrt(variances))).sum(axis=(0, 1))
    return Posterior(mean=mean, sd=np.sqrt(np.maximum(square - mean**2, 0.0)), above=above)


def nearby(readings: Readings) -> Vector:
    """Median log speedup around each size: of the readings within `NEAR` units, its own included."""
    places = readings.sizes * _units_per_octave(readings)
    first = np.searchsorted(places, places - NEAR)
    last = np.searchsorted(places, places + NEAR, side="right")
    values = readings.values.tolist()
    return np.array([statistics.median(values[a:b]) for a, b in zip(first, last, strict=True)])


def _deviations(group: Vector) -> Vector:
    """Absolute deviations of readings, each scaled so that their median estimates the standard deviation."""
    if len(group) <= FEW:
        pairs = itertools.combinations(group.tolist(), 2)
        return np.array([abs(one - other) for one, other in pairs]) / _PAIR_SCALE
    return np.asarray(np.abs(group - statistics.median(group.tolist())) / _MEDIAN_SCALE)


def _sd(noise: Noise) -> float:
    """Estimated noise with the prior belief mixed in."""
    if noise.sd is None:
        return PRIOR_NOISE
    freedom = TRUST * noise.freedom
    return math.sqrt((freedom * noise.sd**2 + PRIOR_WEIGHT * PRIOR_NOISE**2) / (freedom + PRIOR_WEIGHT))


def _noise_weights(noise: Noise) -> tuple[Vector, Vector]:
    """Candidate factors on the noise, and the logarithm of their probability: scaled inverse chi-square."""
    factors, freedom = np.array(NOISE_FACTORS), TRUST * noise.freedom + PRIOR_WEIGHT
    weights = -freedom * np.log(factors) - freedom / (2 * factors**2)
    return factors, np.asarray(weights - np.logaddexp.reduce(weights))


def _nearest(readings: Readings, places: Vector) -> Readings:
    if len(readings.sizes) <= MOST_SIZES:
        return readings
    gaps = np.maximum(places.min() - readings.sizes, readings.sizes - places.max())
    chosen = np.sort(np.argsort(gaps, kind="stable")[:MOST_SIZES])
    if gaps[chosen].max() <= 0:  # more lie between the places than may take part: spread them out
        inside = np.flatnonzero(gaps <= 0)
        chosen = inside[np.linspace(0, len(inside) - 1, MOST_SIZES).round().astype(int)]
    return Readings(
        sizes=readings.sizes[chosen],
        values=readings.values[chosen],
        spread=readings.spread[chosen],
        noise=readings.noise,
    )


def _units_per_octave(readings: Readings) -> float:
    """Scale on which the readings rise as steeply as usual, so that the model fits depth and parameters as well."""
    width = float(np.ptp(readings.sizes))
    return max(LEAST_UNITS, float(np.ptp(readings.values)) / width / USUAL_SLOPE) if width else 1.0


def _covariances(a: Vector, b: Vector) -> Vector:
    """Prior covariance of the curve between places, in units from a common origin; (shapes, len(a), len(b))."""
    less, more = np.minimum.outer(a, b), np.maximum.outer(a, b)
    line = LINE_SD[0] ** 2 + LINE_SD[1] ** 2 * np.outer(a, b)
    bent = less**2 * (3 * more - less) / 6
    return np.array([line + bend**2 * bent + jump**2 * less for bend, jump in SHAPES])


def _variances(a: Vector) -> Vector:
    """Prior variance at places; (shapes, len(a))."""
    line = LINE_SD[0] ** 2 + LINE_SD[1] ** 2 * a**2
    return np.array([line + bend**2 * a**3 / 3 + jump**2 * a for bend, jump in SHAPES])


_erf = np.frompyfunc(math.erf, 1, 1)


def _normal(values: Vector) -> Vector:
    """Cumulative distribution of the standard normal."""
    return np.asarray((1 + np.asarray(_erf(values / math.sqrt(2)), dtype=float)) / 2)
