"""The curve of speedup over size with its uncertainty, and the noise of its readings.

The noise is a median of differences, so a few disturbed readings have little effect. It is shrunk toward a prior, so
that a few readings that happen to agree do not suggest a quiet machine.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

NOISE_FACTORS = tuple(2.0 ** (power / 2) for power in range(-3, 6))
"""Candidate ratios of the true noise to the estimated noise: 0.35 to 5.7."""

PRIOR_NOISE, PRIOR_WEIGHT = 0.05, 2.0
"""Prior noise, and its weight in readings."""

POOL_WEIGHT = 4.0
"""Weight of all sizes' pooled noise, in readings, in the noise estimate of one size."""

POOL_CERTAINTY = 8.0
"""Weight of the pooled noise, in readings, in the certainty of that estimate."""

LEAST_NOISE = 1e-6
"""Minimum noise in estimates: readings with less come from a coarse clock or were invented."""

TRUST = 0.9
"""Information of one reading about the noise, relative to a mean square, because the scale is a median of deviations.
"""

FEW_READINGS = 20
"""Maximum number of readings of a size for which all pairwise differences are used; beyond it, differences from the
median are used.
"""

_PAIR_SCALE = math.sqrt(2) * NormalDist().inv_cdf(0.75)
_MEDIAN_SCALE = NormalDist().inv_cdf(0.75)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Pooled noise of readings.

    Attributes:
        sd: standard deviation of a reading's logarithm, estimated robustly over all sizes; None if no size was read
            twice.
        freedom: number of readings in the estimate, beyond the first of each size.
    """

    sd: float | None
    freedom: int


def pool_noise(groups: Sequence[Vector]) -> Noise:
    """Return the noise of single readings from the differences at each size; it is assumed equal at all sizes.

    The estimate is the median of absolute deviations, so that a few disturbed readings have little effect.

    Args:
        groups: logarithms of the readings of each size.
    """
    deviations = [_deviations(group) for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in groups if len(group) > 1)
    return Noise(sd=float(np.median(np.concatenate(deviations))) if deviations else None, freedom=freedom)


def size_variances(groups: Sequence[Vector], pool: Noise) -> Vector:
    """Return the variance of one reading at each size, from the readings of the size and the pool of all sizes."""
    common, variances = posterior_sd(pool) ** 2, []
    for group in groups:
        freedom = TRUST * (len(group) - 1)
        own = statistics.median(_deviations(group).tolist()) ** 2 if len(group) > 1 else 0.0
        variances.append((freedom * own + POOL_WEIGHT * common) / (freedom + POOL_WEIGHT))
    return np.array(variances)


def visit_share(readings: int, visits: int) -> float:
    """Return the share of a visit's variance that is in the median of readings and invisible in their scatter."""
    return (readings - visits) / (visits * (readings - 1)) if readings > 1 else 1.0


def combine_noise(first: Noise, second: Noise) -> Noise:
    """Return the noise of unpaired readings of two devices, which may be unequally noisy.

    A common pool would apply the noise of the quieter device to both. An unknown noise of one device is replaced by the
    noise of the other.

    Returns:
        The root mean square noise of a reading, with Welch's degrees of freedom.
    """
    known = [noise for noise in (first, second) if noise.sd is not None]
    if len(known) < 2:
        return known[0] if known else first
    variances = [max((noise.sd or 0.0) ** 2, LEAST_NOISE**2) for noise in known]
    rates = [variance**2 / noise.freedom for variance, noise in zip(variances, known, strict=True)]
    return Noise(sd=math.sqrt(sum(variances) / 2), freedom=round(sum(variances) ** 2 / sum(rates)))


def posterior_variance(noise: Noise) -> float:
    """Return the variance of one reading, combined with the prior."""
    return posterior_sd(noise) ** 2


def median_spread(count: int) -> float:
    """Return the variance of the median of `count` normal values over the variance of one.

    The formula is exact for 1, and within 3 % for odd counts.
    """
    return (math.pi / 2) / (count + math.pi / 2 - 1)


def _deviations(group: Vector) -> Vector:
    """Return absolute deviations of readings, scaled so that their median estimates the standard deviation."""
    if len(group) <= FEW_READINGS:
        pairs = itertools.combinations(group.tolist(), 2)
        return np.array([abs(one - other) for one, other in pairs]) / _PAIR_SCALE
    return np.asarray(np.abs(group - statistics.median(group.tolist())) / _MEDIAN_SCALE)


def posterior_sd(noise: Noise) -> float:
    """Return the estimated noise, combined with the prior."""
    if noise.sd is None:
        return PRIOR_NOISE
    freedom = TRUST * noise.freedom
    return math.sqrt((freedom * noise.sd**2 + PRIOR_WEIGHT * PRIOR_NOISE**2) / (freedom + PRIOR_WEIGHT))


def factor_weights(readings: Vector | float) -> tuple[Vector, Vector]:
    """Return candidate factors on the noise with their log probability, a scaled inverse chi-square distribution.

    Args:
        readings: number of readings of each noise estimate, beyond the first of each size; one value or several.
    """
    factors, freedom = np.array(NOISE_FACTORS), TRUST * np.asarray(readings)[..., None] + PRIOR_WEIGHT
    logs = -freedom * np.log(factors) - freedom / (2 * factors**2)
    return factors, np.asarray(logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True))


BENDS = (0.05, 0.1, 0.2, 0.4)
"""Candidate values for the change of the slope within one unit of size (standard deviation)."""

JUMPS = (0.0, 0.1, 1.0)
"""Candidate values for the change of the curve without a trend within one unit: none; a change that a coarse grid
cannot resolve; or a jump, which can only be placed between two measured sizes.
"""

CURVE_SHAPES = tuple(itertools.product(BENDS, JUMPS))

USUAL_SLOPE = 0.55
"""Typical change of the log speedup per octave of hidden size, which defines the unit of size on other axes."""

NEIGHBOUR_UNITS = 0.3
"""Distance in units within which sizes are neighbours that should agree."""

LEAST_UNITS = 0.5
"""Minimum number of units per octave, also for flat readings."""

VISITS = (0.0, 0.06, 0.14, 0.3, 0.8)
"""Candidate values for the shift that a visit causes in all readings of a size (standard deviation)."""

VISIT_CHANCES = (0.12, 0.13, 0.5, 0.23, 0.02)
"""Prior probabilities of `VISITS`. Ten sizes determine the shift poorly, and a weak prior makes the interval too
narrow. On a quiet machine this prior widens the interval by a tenth (docs/statistics.md).
"""

LINE_SD = (5.0, 2.0)
"""Prior standard deviations of height and slope of the line, which are nearly uninformative."""

UNLIKELY = 8.0
"""Difference from the highest log probability beyond which a candidate is ignored."""

MAX_CURVE_SIZES = 48
"""Maximum number of sizes nearest to the requested place that are used; the cost grows with the third power."""

MOST_STEPS = 40
"""Maximum steps of Newton's method; eight to fifteen are typical."""

DRAWS = 1000
"""Number of sampled curves whose sign changes are counted; the random numbers are fixed, so that the same readings have
the same answer.
"""


@dataclass(frozen=True, kw_only=True)
class Readings:
    """The log speedup at each size, in ascending order without duplicates.

    Attributes:
        sizes: logarithm to base 2.
        values: median log speedup.
        spread: variance of each value in units of the noise's variance.
        noise: noise of one reading.
        freedom: number of readings, beyond the first, from which the variance of each value is estimated.
        visits: share of a visit's variance in each value: 1 if all readings are of one visit, 0 if each reading is of a
            different visit, because the noise then includes visits.
    """

    sizes: Vector
    values: Vector
    spread: Vector
    noise: Noise
    freedom: Vector
    visits: Vector


@dataclass(frozen=True, kw_only=True)
class CurvePosterior:
    """Posterior of the curve at some places.

    Attributes:
        mean: mean of the log speedup.
        sd: standard deviation of the log speedup.
        above: probability that the log speedup is above 0.
    """

    mean: Vector
    sd: Vector
    above: Vector


def half_width(readings: Readings, tail: float, visits: Vector | None = None) -> Vector:
    """Return the half-width of the interval that leaves `tail` on either side of each value, size by size.

    Args:
        readings: values and their noise.
        tail: probability beyond each end.
        visits: probability of each of `VISITS`; without it, visits are assumed to have no effect.
    """
    taus = np.array(VISITS[: 1 if visits is None else len(visits)])
    own = np.sqrt(readings.spread) * posterior_sd(readings.noise)
    factors, weights = factor_weights(readings.freedom)
    variances = (factors * own[:, None])[:, :, None] ** 2 + readings.visits[:, None, None] * taus**2
    shares = np.exp(weights)[:, :, None] * (np.ones(1) if visits is None else visits)
    sds, shares = np.sqrt(variances).reshape(len(own), -1), shares.reshape(len(own), -1)
    return mixture_quantile(sds, shares, tail)


def mixture_quantile(sds: Vector, shares: Vector, tail: float) -> Vector:
    """Return the value that each row's mixture of zero-mean normal distributions exceeds with probability `tail`.

    Newton's method starts at 0 and never overshoots, because the tail probability is convex.
    """
    width = np.zeros(len(sds))
    for _ in range(MOST_STEPS):
        at = width[:, None] / sds
        beyond = (shares * _normal_cdf(-at)).sum(axis=1) - tail
        step = beyond * math.sqrt(2 * math.pi) / (shares / sds * np.exp(-(at**2) / 2)).sum(axis=1)
        width += step
        if np.abs(step).max() <= 1e-9 * width.max():
            break
    return width


class SpeedupCurve:
    """Posterior of the curve between two places, and of the measurement rounds behind the readings.

    Attributes:
        sizes: sizes in use (logarithm to base 2).
        visits: probability of each of `VISITS`, as far as the values contain visits.
        scatter: estimated shift that a round causes in all readings of a size (standard deviation).
        likelihood: log likelihood of the readings under the best candidate.
    """

    def __init__(self, readings: Readings, low: float, high: float) -> None:
        near = _nearest(readings, low, high)
        self.sizes = near.sizes
        self._side = 1 if near.values.sum() > 0 else -1
        self._scale, self._origin = _units_per_octave(near), min(float(near.sizes[0]), low)
        self._at = (near.sizes - self._origin) * self._scale
        factors, noise_weights = factor_weights(near.noise.freedom)
        likely = noise_weights > noise_weights.max() - UNLIKELY
        own = np.outer(factors[likely] ** 2, posterior_sd(near.noise) ** 2 * near.spread)[:, None]
        shifts, chances = (VISITS, VISIT_CHANCES) if near.visits.any() else (VISITS[:1], (1.0,))
        errors = (own + np.outer(np.array(shifts) ** 2, near.visits)).reshape(-1, len(near.sizes)) + 1e-10
        prior = (noise_weights[likely][:, None] + np.log(chances)).ravel()
        stack = _covariances(self._at, self._at)[:, None] + errors[:, :, None] * np.eye(len(self._at))
        lower = np.linalg.cholesky(stack)
        white = np.linalg.solve(lower, np.broadcast_to(near.values[:, None], (*stack.shape[:2], len(self._at), 1)))
        heights = np.log(np.diagonal(lower, axis1=2, axis2=3)).sum(axis=2)
        weights = prior - (white**2).sum(axis=(2, 3)) / 2 - heights
        self.likelihood = float(weights.max())
        shares = np.exp(weights - self.likelihood)
        self.visits = shares.reshape(-1, len(shifts)).sum(axis=0) / shares.sum()
        self.scatter = math.sqrt(float(self.visits @ np.array(shifts) ** 2))
        shape, noisy = np.nonzero(weights > weights.max() - UNLIKELY)
        self._shapes, self._lower, self._white = shape, lower[shape, noisy], white[shape, noisy]
        self._shares = (shares[shape, noisy] / shares[shape, noisy].sum())[:, None]

    def evaluate(self, places: Vector) -> CurvePosterior:
        """Return the curve at places (logarithm to base 2 of size)."""
        to = (places - self._origin) * self._scale
        carried = np.linalg.solve(self._lower, _covariances(self._at, to)[self._shapes])
        means = (carried * self._white).sum(axis=1)
        variances = np.maximum(_variances(to)[self._shapes] - (carried**2).sum(axis=1), 1e-12)
        mean, square = (self._shares * means).sum(axis=0), (self._shares * (variances + means**2)).sum(axis=0)
        above = (self._shares * _normal_cdf(means / np.sqrt(variances))).sum(axis=0)
        return CurvePosterior(mean=mean, sd=np.sqrt(np.maximum(square - mean**2, 0.0)), above=above)

    def draw_samples(self) -> Vector:
        """Sample curves from the posterior at the sizes in use; shape (`DRAWS`, sizes).

        Mirrored readings give mirrored samples, so that the result does not depend on which device is the challenger.
        """
        prior = _covariances(self._at, self._at)
        ends = np.rint(self._shares[:, 0].cumsum() * DRAWS).astype(int)
        normal = self._side * np.random.default_rng(0).standard_normal((DRAWS, len(self._at)))
        found, begin = np.empty_like(normal), 0
        for shape, lower, white, end in zip(self._shapes, self._lower, self._white, ends, strict=True):
            if end > begin:
                carried = np.linalg.solve(lower, prior[shape])
                left = prior[shape] - carried.T @ carried + 1e-9 * np.eye(len(self._at))
                found[begin:end] = white[:, 0] @ carried + normal[begin:end] @ np.linalg.cholesky(left).T
            begin = end
        return found


def nearby_medians(readings: Readings) -> Vector:
    """Return the median log speedup of all readings within `NEIGHBOUR_UNITS` units of each size."""
    return np.array([statistics.median(near.tolist()) for _, near in with_nearby(readings, readings.values)])


def with_nearby(readings: Readings, values: Vector) -> Iterator[tuple[float, Vector]]:
    """Return the value of each size with the values of all sizes within `NEIGHBOUR_UNITS` units."""
    places = readings.sizes * _units_per_octave(readings)
    first = np.searchsorted(places, places - NEIGHBOUR_UNITS)
    last = np.searchsorted(places, places + NEIGHBOUR_UNITS, side="right")
    return ((float(value), values[a:b]) for value, a, b in zip(values, first, last, strict=True))


def _nearest(readings: Readings, low: float, high: float) -> Readings:
    if len(readings.sizes) <= MAX_CURVE_SIZES:
        return readings
    gaps = np.maximum(low - readings.sizes, readings.sizes - high)
    chosen = np.sort(np.argsort(gaps, kind="stable")[:MAX_CURVE_SIZES])
    if gaps[chosen].max() <= 0:  # too many sizes lie between the places: select them evenly
        inside = np.flatnonzero(gaps <= 0)
        chosen = inside[np.linspace(0, len(inside) - 1, MAX_CURVE_SIZES).round().astype(int)]
    return Readings(
        sizes=readings.sizes[chosen],
        values=readings.values[chosen],
        spread=readings.spread[chosen],
        noise=readings.noise,
        freedom=readings.freedom[chosen],
        visits=readings.visits[chosen],
    )


def _units_per_octave(readings: Readings) -> float:
    """Return the scale on which readings have the typical slope, so that the model also fits depth and parameters."""
    width = float(np.ptp(readings.sizes))
    return max(LEAST_UNITS, float(np.ptp(readings.values)) / width / USUAL_SLOPE) if width else 1.0


def _covariances(a: Vector, b: Vector) -> Vector:
    """Return the prior covariance of the curve between places, from a common origin; shape (shapes, len(a), len(b))."""
    less, more = np.minimum.outer(a, b), np.maximum.outer(a, b)
    line = LINE_SD[0] ** 2 + LINE_SD[1] ** 2 * np.outer(a, b)
    bent = less**2 * (3 * more - less) / 6
    return np.array([line + bend**2 * bent + jump**2 * less for bend, jump in CURVE_SHAPES])


def _variances(a: Vector) -> Vector:
    """Return the prior variance at places; shape (shapes, len(a))."""
    line = LINE_SD[0] ** 2 + LINE_SD[1] ** 2 * a**2
    return np.array([line + bend**2 * a**3 / 3 + jump**2 * a for bend, jump in CURVE_SHAPES])


_ERROR_FUNCTION = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def _normal_cdf(values: Vector) -> Vector:
    """Return the cumulative distribution of the standard normal, to 1e-7 (Abramowitz & Stegun 7.1.26)."""
    distance = np.abs(values) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * distance)
    series = np.full_like(t, _ERROR_FUNCTION[-1])
    for factor in _ERROR_FUNCTION[-2::-1]:
        series *= t
        series += factor
    tail = np.exp(-(distance**2)) / 2 * t * series
    return np.where(values > 0, 1 - tail, tail)
