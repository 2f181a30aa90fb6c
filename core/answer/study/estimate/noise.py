"""Noise of readings: how much single readings of a size differ, and how certain that is.

Medians of differences, so that a few disturbed readings count for little; and a belief from before any reading, so that
few that happen to agree do not make a quiet machine.
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

NOISE_FACTORS = tuple(2.0 ** (power / 2) for power in range(-3, 6))
"""Candidates for the true noise over the estimated one: 0.35 to 5.7."""

PRIOR_NOISE, PRIOR_WEIGHT = 0.05, 2.0
"""What is believed of the noise before any reading, and for how many readings that counts: a few readings that
happen to agree do not make a quiet machine."""

POOL_WEIGHT = 4.0
"""For how many of a size's own readings the pool of all sizes counts, where it is told how noisy that size is."""

POOL_CERTAINTY = 8.0
"""For how many readings the pool counts where it is told how certain that noise is."""

LEAST_NOISE = 1e-6
"""Noise below which readings are of one value: a coarse clock, or made up."""

TRUST = 0.9
"""Information that one reading carries about the noise when its scale is a median of deviations, not a mean square."""

FEW_READINGS = 20
"""Up to so many readings of one size every difference between two of them is used, beyond it those from the median."""

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


def pool_noise(groups: Sequence[Vector]) -> Noise:
    """Noise of single readings, from how those of one size differ; sizes are assumed to be equally noisy.

    The median of absolute deviations, so that a few disturbed readings count for little.

    Args:
        groups: logarithms of the readings of each size.
    """
    deviations = [_deviations(group) for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in groups if len(group) > 1)
    return Noise(sd=float(np.median(np.concatenate(deviations))) if deviations else None, freedom=freedom)


def size_variances(groups: Sequence[Vector], pool: Noise) -> Vector:
    """Variance of one reading of each size: its own readings' as far as they go, and that of all sizes for the rest."""
    common, variances = posterior_sd(pool) ** 2, []
    for group in groups:
        freedom = TRUST * (len(group) - 1)
        own = statistics.median(_deviations(group).tolist()) ** 2 if len(group) > 1 else 0.0
        variances.append((freedom * own + POOL_WEIGHT * common) / (freedom + POOL_WEIGHT))
    return np.array(variances)


def visit_share(readings: int, visits: int) -> float:
    """How much of the variance of a visit is in the median of readings, and not seen in how they scatter."""
    return (readings - visits) / (visits * (readings - 1)) if readings > 1 else 1.0


def combine_noise(first: Noise, second: Noise) -> Noise:
    """Noise of readings of two devices that do not pair, which may be unequally noisy.

    A pool of both would take the noise of the quieter one for that of the other as well. What one of them is not known
    for is taken from the other.

    Returns:
        The noise of a reading on average (root mean square). Its freedom is that of Welch: that of the noisier one
        where the other adds next to nothing.
    """
    known = [noise for noise in (first, second) if noise.sd is not None]
    if len(known) < 2:
        return known[0] if known else first
    variances = [max((noise.sd or 0.0) ** 2, LEAST_NOISE**2) for noise in known]
    rates = [variance**2 / noise.freedom for variance, noise in zip(variances, known, strict=True)]
    return Noise(sd=math.sqrt(sum(variances) / 2), freedom=round(sum(variances) ** 2 / sum(rates)))


def posterior_variance(noise: Noise) -> float:
    """Variance of one reading, with what is believed before any reading mixed in."""
    return posterior_sd(noise) ** 2


def median_spread(count: int) -> float:
    """Variance of the median of `count` normal values over the variance of one; exact for 1, within 3 % for odd."""
    return (math.pi / 2) / (count + math.pi / 2 - 1)


def _deviations(group: Vector) -> Vector:
    """Absolute deviations of readings, each scaled so that their median estimates the standard deviation."""
    if len(group) <= FEW_READINGS:
        pairs = itertools.combinations(group.tolist(), 2)
        return np.array([abs(one - other) for one, other in pairs]) / _PAIR_SCALE
    return np.asarray(np.abs(group - statistics.median(group.tolist())) / _MEDIAN_SCALE)


def posterior_sd(noise: Noise) -> float:
    """Estimated noise with the prior belief mixed in."""
    if noise.sd is None:
        return PRIOR_NOISE
    freedom = TRUST * noise.freedom
    return math.sqrt((freedom * noise.sd**2 + PRIOR_WEIGHT * PRIOR_NOISE**2) / (freedom + PRIOR_WEIGHT))


def factor_weights(readings: Vector | float) -> tuple[Vector, Vector]:
    """Candidate factors on the noise, and the logarithm of their probability: scaled inverse chi-square.

    Args:
        readings: on which the noise rests, beyond the first of each size; of one noise or of several.
    """
    factors, freedom = np.array(NOISE_FACTORS), TRUST * np.asarray(readings)[..., None] + PRIOR_WEIGHT
    logs = -freedom * np.log(factors) - freedom / (2 * factors**2)
    return factors, np.asarray(logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True))
