"""The ratio of two medians whose readings do not pair, with its 95 % interval. Numbers in, numbers out.

Each median has the distribution-free interval of order statistics, interpolated between two of them so that it leaves
out 5 % and not less (Hettmansperger & Sheather 1986). From these two the interval of the difference of logarithms is
put together as Welch's test puts two standard errors together (MOVER; Zou & Donner 2008, doi 10.1002/sim.3095).
Simulated by tests/benchmarks/across_coverage.py.
"""

import functools
import math
import statistics
from collections.abc import Sequence
from statistics import NormalDist

TAIL = 0.025
"""Probability left out at either end of the interval."""

MANY = 1_000
"""Values from which the binomial distribution of ranks is as good as normal."""


def ratio_interval(measured_s: Sequence[float], recorded_s: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the ratio of two medians.

    Args:
        measured_s: seconds, `MIN_PAIRS` values at least, above 0.
        recorded_s: the same of the other machine; above 1, it is the faster one.
    """
    sides = [_reach([math.log(value) for value in values]) for values in (measured_s, recorded_s)]
    (middle, below, above), (other, other_below, other_above) = sides
    counts = (len(measured_s), len(recorded_s))
    down, up = _combined(below, other_above, counts), _combined(above, other_below, counts)
    return math.exp(middle - other - down), math.exp(middle - other + up)


def _reach(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, and how far the ends of its 95 % interval lie below and above it."""
    ordered, middle = sorted(values), statistics.median(values)
    rank, share = _ends(len(ordered))
    low = (1 - share) * ordered[rank] + share * ordered[rank + 1]
    high = (1 - share) * ordered[-1 - rank] + share * ordered[-2 - rank]
    return middle, middle - low, high - middle


@functools.cache
def _ends(count: int) -> tuple[int, float]:
    """Values outside each end of the interval of the median of `count`, and how far on to the next value it begins."""
    if count > MANY:
        place = count / 2 - NormalDist().inv_cdf(1 - TAIL) * math.sqrt(count) / 2
        return math.floor(place), place % 1
    chances = [0.5**count]
    while sum(chances) <= TAIL:
        chances.append(chances[-1] * (count - len(chances) + 1) / len(chances))
    wide, narrow = 1 - 2 * sum(chances[:-1]), 1 - 2 * sum(chances)
    outside, share = len(chances) - 1, (wide - (1 - 2 * TAIL)) / (wide - narrow)
    return outside - 1, (count - outside) * share / (outside + (count - 2 * outside) * share)


def _combined(first: float, second: float, counts: tuple[int, int]) -> float:
    """Reach of the interval of a difference, from those of its two sides, with Welch's degrees of freedom."""
    freedoms = [count - 1 for count in counts]
    errors = [reach / _student(freedom) for reach, freedom in zip((first, second), freedoms, strict=True)]
    variance = errors[0] ** 2 + errors[1] ** 2
    if variance == 0:
        return 0.0
    shares = [(error**2 / variance) ** 2 / freedom for error, freedom in zip(errors, freedoms, strict=True)]
    return _student(1 / sum(shares)) * math.sqrt(variance)


def _student(freedom: float) -> float:
    """97.5 % quantile of Student's t, to 0.2 % from 5 degrees of freedom on (Abramowitz & Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(1 - TAIL)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))
