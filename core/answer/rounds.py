"""The interval of a run measured in rounds, which covers the result of another run of the same experiment.

Pairs of one round share the state of the machine: placement of memory and threads, clock frequency. Therefore the
medians of rounds vary by more than the noise of pairs. The interval is averaged over candidate values of this
additional variation. Each value is weighted by its probability given the run's rounds, repeated runs on the machine and
a prior, as in `curve_estimate`.

A run may end at any of four looks, including one that happens to favour a device. An interval for a single look would
be too narrow. Each interval leaves out `ROUNDS_TAIL` at either end: Pocock's level for four looks (Biometrika 64, 1977,
doi 10.1093/biomet/64.2.191). With it, the intervals of all looks cover the truth together in 95 % of runs. Such
repeated confidence intervals are valid however the run ends (Jennison & Turnbull, J. R. Stat. Soc. B 51, 1989).
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .curve_estimate import Vector, factor_weights, median_spread, mixture_quantile, pool_noise, posterior_sd

ROUNDS_TAIL = 0.0182 / 2
"""Share outside an interval at either end: half of Pocock's level for each of four looks, which is 1.82 %."""

SHIFTS = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Candidate values for the shift of all pairs of a round (standard deviation of the logarithm)."""

SHIFT_CHANCES = (0.45, 0.1, 0.08, 0.08, 0.1, 0.12, 0.05, 0.02)
"""Prior probabilities of `SHIFTS`; with a quieter prior, a few rounds that happen to agree count as a quiet machine
(tests/benchmarks/round_coverage.py)."""

LEAST_SHIFT = 0.01
"""Shift below which machines are treated as equal, because a smaller one would be estimated from noise."""

MOST_FREEDOM = 6.0
"""Maximum number of repeated runs that count against a run's own rounds, because the machine may have changed."""


@dataclass(frozen=True, kw_only=True)
class Repeatability:
    """How well results on a machine repeat, estimated from repeated runs of the same experiments.

    Attributes:
        shift: standard deviation of the shift between rounds that explains how much the runs differed.
        freedom: number of runs used, without the first of each question; 0 if no question was repeated.
        reach: relative distance from the middle of a question within which 95 % of its results lie.
    """

    shift: float = 0.0
    freedom: int = 0
    reach: float = 0.0


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
        machine: prior knowledge of the shift between rounds on this machine.
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
    reach = float(mixture_quantile(totals.reshape(1, -1) ** -0.5, shares.reshape(1, -1), ROUNDS_TAIL)[0])
    return min(middle - reach, median), max(middle + reach, median)


def estimate_repeatability(questions: Sequence[Sequence[tuple[Sequence[float], Sequence[int]]]]) -> Repeatability:
    """Estimate how well results repeat, from repeated runs of the same experiments.

    Args:
        questions: runs of each question: logarithms of the ratios of all pairs, and the round number of each pair; no
            round numbers if the run had only one round.
    """
    repeated = [[run for run in runs if run[0]] for runs in questions]
    repeated = [runs for runs in repeated if len(runs) > 1]
    between = pool_noise([np.array([statistics.median(values) for values, _ in runs]) for runs in repeated])
    if between.sd is None:
        return UNKNOWN_REPEATABILITY
    every = [run for runs in repeated for run in runs]
    within = statistics.median(_median_variance(*run) for run in every)
    counted = statistics.median(len(set(rounds)) or 1 for _, rounds in every)
    shift = math.sqrt(max(0.0, between.sd**2 - within) * counted)
    return Repeatability(shift=shift, freedom=between.freedom, reach=math.expm1(1.96 * between.sd))


def _group_by_round(values: Sequence[float], rounds: Sequence[int]) -> list[Vector]:
    named = list(zip(values, rounds, strict=True))
    return [np.array([value for value, of in named if of == each]) for each in sorted(set(rounds))]


def _median_variance(values: Sequence[float], rounds: Sequence[int]) -> float:
    """Return the variance of a run's median, estimated only from the scatter of pairs within its rounds."""
    noise = pool_noise(_group_by_round(values, rounds or [0] * len(values)))
    return float(median_spread(len(values))) * (noise.sd or 0.0) ** 2


def _shift_weights(machine: Repeatability) -> Vector:
    """Return the log probability of each of `SHIFTS`, from the prior and from repeated questions (chi-square)."""
    variances = np.array(SHIFTS) ** 2 + LEAST_SHIFT**2
    freedom = min(MOST_FREEDOM, machine.freedom)
    said = -freedom / 2 * (np.log(variances) + (machine.shift**2 + LEAST_SHIFT**2) / variances)
    return np.asarray(np.log(SHIFT_CHANCES) + said)
