"""Statistics that several answers share: intervals of medians and of ratios, noise, and when a difference matters.

Functions accept and return numbers only. Only medians are used: no value is ever deleted; outliers are counted instead.
"""

import functools
import math
import statistics
import sys
from collections.abc import Sequence
from statistics import NormalDist

MIN_PAIRS = 6
"""Minimum number of values for a 95 % interval of the median by order statistics: 5 values reach at most 93.75 %."""

INTERVAL_TAIL = 1 / 40
"""Share outside a 95 % interval at either end."""

TIE = 1.10
"""Ratios between 1/TIE and TIE are too close to matter; PyTorch's own benchmark calls 10 % a fluctuation."""

OUTLIER = 14.83
"""Distance from the median, in median absolute deviations, of an outlier: ten standard deviations (hyperfine)."""

NORMAL_FROM = 1_000
"""Number of values above which the binomial distribution of ranks is approximated by the normal one."""


def median_interval(values: Sequence[float], tail: float = INTERVAL_TAIL) -> tuple[float, float] | None:
    """Return the 95 % interval of the median by order statistics; None below `MIN_PAIRS` values.

    Another `tail` gives the interval that leaves out this share at either end, or None if there are too few values.

    It covers at least 95 % for any distribution, since each value is below the true median with probability
    1/2 (Hoefler & Belli, SC'15, doi 10.1145/2807591.2807644). An interval from the median absolute deviation is a
    little narrower, but in simulations it covers 91–94 % up to 20 values of one point. A coarse clock can make the
    middle values coincide; the interval is then the range of all values, and is a point only if all are equal.
    """
    ordered, rank = sorted(values), most_heads(tail, len(values))
    if rank < 0:
        return None
    low, high = ordered[rank], ordered[-1 - rank]
    return (low, high) if low < high else (ordered[0], ordered[-1])


def ratio_interval(measured_s: Sequence[float], recorded_s: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of two medians of unpaired readings.

    Each median has the distribution-free interval of order statistics, interpolated between two of them so that it
    leaves out 5 % and not less (Hettmansperger & Sheather 1986). The two intervals are combined into the interval of
    the difference of logarithms, as Welch's test combines two standard errors (MOVER; Zou & Donner 2008, doi
    10.1002/sim.3095). The coverage is simulated in tests/benchmarks/across_coverage.py.

    Args:
        measured_s: seconds above 0, at least `MIN_PAIRS` values.
        recorded_s: seconds of the other machine, likewise; if the ratio is above 1, the other machine is faster.
    """
    sides = [_reach([math.log(value) for value in values]) for values in (measured_s, recorded_s)]
    (middle, below, above), (other, other_below, other_above) = sides
    counts = (len(measured_s), len(recorded_s))
    down, up = _combine_reach(below, other_above, counts), _combine_reach(above, other_below, counts)
    return math.exp(middle - other - down), math.exp(middle - other + up)


def relative_noise(times: Sequence[float]) -> float | None:
    """Return the interquartile range over the median; None below two values or if the median is 0."""
    if len(times) < 2:
        return None
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    return (high - low) / median if median else None


def count_outliers(times: Sequence[float]) -> int:
    """Return how many values are further than `OUTLIER` median absolute deviations from the median."""
    if not times:
        return 0
    median = statistics.median(times)
    distances = [abs(time - median) for time in times]
    deviation = statistics.median(distances)
    return sum(distance > OUTLIER * deviation for distance in distances)


def p90_to_median(times: Sequence[float]) -> float:
    """Return the 90th percentile over the median, which shows a busy machine even if stolen time does not."""
    return statistics.quantiles(times, n=10, method="inclusive")[8] / statistics.median(times)


def heads_at_most(heads: int, coins: int) -> float:
    """Return the probability that at most `heads` of `coins` coins show heads, for at most half of the coins.

    The terms are summed from the largest one down, to the precision of floats, because exact integers of a million
    digits take minutes. The relative error is below 1e-8 up to a million coins.
    """
    if heads < 0:
        return 0.0
    total = term = 1.0
    for place in range(heads, 0, -1):
        term *= place / (coins - place + 1)
        total += term
        if term < sys.float_info.epsilon * total:
            break
    ways = math.lgamma(coins + 1) - math.lgamma(heads + 1) - math.lgamma(coins - heads + 1)
    return total * math.exp(ways - coins * math.log(2))


@functools.cache
def most_heads(share: float, coins: int) -> int:
    """Return the most heads for which `heads_at_most` is at most `share`, which is below 0.5; -1 if there are none.

    With as many values as coins, this number of values lies outside each end of the interval of their median.
    """
    heads = math.floor((coins + NormalDist().inv_cdf(share) * math.sqrt(coins)) / 2)  # normal approximation
    while heads >= 0 and heads_at_most(heads, coins) > share:
        heads -= 1
    while heads_at_most(heads + 1, coins) <= share:
        heads += 1
    return heads


def _reach(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, and how far the ends of its 95 % interval lie below and above it."""
    ordered, middle = sorted(values), statistics.median(values)
    rank, share = _interval_rank(len(ordered))
    low = (1 - share) * ordered[rank] + share * ordered[rank + 1]
    high = (1 - share) * ordered[-1 - rank] + share * ordered[-2 - rank]
    return middle, middle - low, high - middle


@functools.cache
def _interval_rank(count: int) -> tuple[int, float]:
    """Return how many values lie outside each end of a median's interval, and the share of the way to the next."""
    if count > NORMAL_FROM:
        place = count / 2 - NormalDist().inv_cdf(1 - INTERVAL_TAIL) * math.sqrt(count) / 2
        return math.floor(place), place % 1
    chances = [0.5**count]
    while sum(chances) <= INTERVAL_TAIL:
        chances.append(chances[-1] * (count - len(chances) + 1) / len(chances))
    wide, narrow = 1 - 2 * sum(chances[:-1]), 1 - 2 * sum(chances)
    outside, share = len(chances) - 1, (wide - (1 - 2 * INTERVAL_TAIL)) / (wide - narrow)
    return outside - 1, (count - outside) * share / (outside + (count - 2 * outside) * share)


def _combine_reach(first: float, second: float, counts: tuple[int, int]) -> float:
    """Return the reach of a difference's interval, from its two sides, with Welch's degrees of freedom."""
    freedoms = [count - 1 for count in counts]
    errors = [reach / _student(freedom) for reach, freedom in zip((first, second), freedoms, strict=True)]
    variance = errors[0] ** 2 + errors[1] ** 2
    if variance == 0:
        return 0.0
    shares = [(error**2 / variance) ** 2 / freedom for error, freedom in zip(errors, freedoms, strict=True)]
    return _student(1 / sum(shares)) * math.sqrt(variance)


def _student(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t, to 0.2 % from 5 degrees on (Abramowitz & Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(1 - INTERVAL_TAIL)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))
