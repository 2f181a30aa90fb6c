"""Statistics that several answers share: intervals of medians and of ratios, noise, and when a difference matters.

Functions accept and return numbers only. Times are summarized by medians: no value is ever deleted; outliers are
counted instead. Only the variation between rounds and runs is a variance, because a single different run must count.

The interval of a run measured in rounds covers the result of another run of the same experiment. Pairs of one round
share the state of the machine: placement of memory and threads, clock frequency. Therefore the medians of rounds vary
by more than the noise of pairs. The interval is averaged over candidate values of this additional variation. Each value
is weighted by its probability given the run's rounds, repeated runs on the machine and a prior, as in `curve_estimate`.
Repeated runs can vary by more than their rounds explain; this variation is added.

A run may end at any of four looks, including one that happens to favour a device. An interval for a single look would
be too narrow. Each interval leaves out `ROUNDS_TAIL` at either end: Pocock's level for four looks (Biometrika 64, 1977,
doi 10.1093/biomet/64.2.191). With it, the intervals of all looks cover the truth together in 95 % of runs. Such
repeated confidence intervals are valid however the run ends (Jennison & Turnbull, J. R. Stat. Soc. B 51, 1989).
"""

import functools
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from .curve_estimate import Vector, factor_weights, median_spread, mixture_quantile, pool_noise, posterior_sd

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


ROUNDS_TAIL = 0.0182 / 2
"""Share outside an interval at either end: half of Pocock's level for each of four looks, which is 1.82 %."""

SHIFTS = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Candidate values for the shift of all pairs of a round (standard deviation of the logarithm)."""

SHIFT_CHANCES = (0.45, 0.1, 0.08, 0.08, 0.1, 0.12, 0.05, 0.02)
"""Prior probabilities of `SHIFTS`; with a quieter prior, a few rounds that happen to agree count as a quiet machine
(tests/benchmarks/round_coverage.py)."""

LEAST_SHIFT = 0.01
"""Shift below which machines are treated as equal, because a smaller one would be estimated from noise."""

MOST_SHIFT = 10.0
"""Largest shift that is read from a row, a factor of 20,000; the interval of a larger one would overflow."""

MOST_FREEDOM = 6.0
"""Maximum number of repeated runs that count against a run's own rounds, because the machine may have changed."""

RUN_SHIFT_CHANCES = (0.8, 0.04, 0.04, 0.04, 0.03, 0.03, 0.015, 0.005)
"""Prior probabilities of `SHIFTS` for the shift of a whole run, which its rounds cannot show."""


@dataclass(frozen=True, kw_only=True)
class Repeatability:
    """How well results on a machine repeat, estimated from repeated runs of the same experiments.

    Attributes:
        shift: standard deviation of the shift between rounds of a run.
        run_shift: standard deviation of the shift of a whole run: how much more the runs differed than their rounds
            explain, as where the host of a virtual machine moves its processors.
        freedom: number of runs used, without the first of each question; 0 if no question was repeated.
        reach: relative distance from the middle of a question within which 95 % of its results lie.
    """

    shift: float = 0.0
    run_shift: float = 0.0
    freedom: int = 0
    reach: float = 0.0

    @property
    def columns(self) -> dict[str, float | int | None]:
        """Columns of the rows that are measured next, with their values."""
        shifts = (self.shift, self.run_shift) if self.freedom else (None, None)
        return {"machine_shift": shifts[0], "machine_run_shift": shifts[1], "machine_repeats": self.freedom}


UNKNOWN_REPEATABILITY = Repeatability()


def rounds_interval(
    values: Sequence[float],
    rounds: Sequence[int],
    machine: Repeatability = UNKNOWN_REPEATABILITY,
) -> tuple[float, float]:
    """Return the interval of the mean over rounds; the median of all values is inside.

    Args:
        values: logarithms of ratios, one per pair.
        rounds: round number of each value.
        machine: prior knowledge of how far rounds and whole runs shift on this machine.
    """
    groups = _group_by_round(values, rounds)
    noise = pool_noise(groups)
    medians = np.array([statistics.median(group.tolist()) for group in groups])
    factors, weights = factor_weights(float(noise.freedom))
    own = (factors * posterior_sd(noise))[:, None, None] ** 2 * np.array(
        [median_spread(len(group)) for group in groups]
    )
    precisions = 1 / (np.array(SHIFTS)[:, None] ** 2 + own)
    totals = precisions.sum(axis=2)
    means = (precisions * medians).sum(axis=2) / totals
    misfit = (precisions * (medians - means[:, :, None]) ** 2).sum(axis=2)
    likelihoods = (np.log(precisions).sum(axis=2) - np.log(totals) - misfit) / 2
    logs = likelihoods + weights[:, None] + _shift_weights(machine)
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    middle, median = float((shares * means).sum()), statistics.median(values)
    spreads = np.sqrt(1 / totals + machine.run_shift**2)
    reach = float(mixture_quantile(spreads.reshape(1, -1), shares.reshape(1, -1), ROUNDS_TAIL)[0])
    return min(middle - reach, median), max(middle + reach, median)


def estimate_repeatability(questions: Sequence[Sequence[tuple[Sequence[float], Sequence[int]]]]) -> Repeatability:
    """Estimate how well results repeat, from repeated runs of the same experiments.

    Args:
        questions: runs of each question: logarithms of the ratios of all pairs, and the round number of each pair; no
            round numbers if the run had only one round.
    """
    repeated = [[run for run in runs if run[0]] for runs in questions]
    repeated = [runs for runs in repeated if len(runs) > 1]
    freedom = sum(len(runs) - 1 for runs in repeated)
    if not freedom:
        return UNKNOWN_REPEATABILITY
    medians = [[statistics.median(values) for values, _ in runs] for runs in repeated]
    between = sum((len(each) - 1) * statistics.variance(each) for each in medians) / freedom
    groups = [_group_by_round(values, rounds or [0] * len(values)) for runs in repeated for values, rounds in runs]
    explained = statistics.fmean(map(_median_variance, groups))
    return Repeatability(
        shift=math.sqrt(statistics.fmean(map(_round_variance, groups))),
        run_shift=_estimate_run_shift(between, explained, freedom),
        freedom=freedom,
        reach=math.expm1(1.96 * math.sqrt(between)),
    )


def _group_by_round(values: Sequence[float], rounds: Sequence[int]) -> list[Vector]:
    named = list(zip(values, rounds, strict=True))
    return [np.array([value for value, of in named if of == each]) for each in sorted(set(rounds))]


def _median_variance(groups: Sequence[Vector]) -> float:
    """Return the variance of a run's median, estimated only from the scatter of its rounds, or of its pairs."""
    if len(groups) > 1:
        return _medians_variance(groups) / len(groups)
    return _pair_variance(groups) * median_spread(len(groups[0]))


def _round_variance(groups: Sequence[Vector]) -> float:
    """Return the variance of the shift between a run's rounds: what the scatter of its pairs does not explain."""
    if len(groups) < 2:
        return 0.0
    explained = statistics.fmean(median_spread(len(group)) for group in groups) * _pair_variance(groups)
    return max(0.0, _medians_variance(groups) - explained)


def _medians_variance(groups: Sequence[Vector]) -> float:
    return float(statistics.variance(statistics.median(group.tolist()) for group in groups))


def _pair_variance(groups: Sequence[Vector]) -> float:
    return (pool_noise(groups).sd or 0.0) ** 2


def _estimate_run_shift(between: float, explained: float, freedom: int) -> float:
    """Return the shift of whole runs: of `SHIFTS`, each weighted by its probability, the root mean square.

    Args:
        between: variance between runs of one question.
        explained: the part of it that the rounds of the runs explain.
        freedom: number of runs behind `between`, without the first of each question.
    """
    shifts = np.array(SHIFTS) ** 2
    variances = shifts + explained + LEAST_SHIFT**2
    logs = np.log(RUN_SHIFT_CHANCES) - min(MOST_FREEDOM, freedom) / 2 * (np.log(variances) + between / variances)
    shares = np.exp(logs - logs.max())
    return math.sqrt(float((shares * shifts).sum() / shares.sum()))


def _shift_weights(machine: Repeatability) -> Vector:
    """Return the log probability of each of `SHIFTS`, from the prior and from repeated questions (chi-square)."""
    variances = np.array(SHIFTS) ** 2 + LEAST_SHIFT**2
    freedom = min(MOST_FREEDOM, machine.freedom)
    said = -freedom / 2 * (np.log(variances) + (machine.shift**2 + LEAST_SHIFT**2) / variances)
    return np.asarray(np.log(SHIFT_CHANCES) + said)
