"""Do the intervals that set two machines against each other hold the truth as often as they say?

    python -m tests.benchmarks.across_coverage [--runs 20000] [--sweeps 300] [--scatter 0.15]

First the ratio of two medians (`core.answer.statistics`), from log-normal block times of two machines that are
unequally noisy and have unequally many blocks, with and without 3 % of blocks that take 1.3 to 3 times as long. Then
crossovers of a grid whose two devices were timed on two machines, so that nothing pairs and nothing cancels. With
`--scatter` either machine is slower or faster on a visit, by a log-normal factor of that standard deviation: the ratio
is then judged against the machines as they usually are. Nothing is measured: this tests the statistics, not a machine.
"""

import argparse
import math
import statistics

import numpy as np

from core.answer.crossover import locate_crossover
from core.answer.judgement import Evidence
from core.answer.statistics import ratio_interval
from tests.benchmarks.crossover_coverage import GRID, Result, judged, row
from tests.benchmarks.simulated_machine import OUTLIER_FACTORS, OUTLIERS, SCENARIOS, Machine

COUNTS = ((6, 6), (7, 7), (8, 8), (6, 20), (12, 12), (20, 20), (50, 20), (200, 200), (6, 200))
NOISES = ((0.05, 0.05), (0.05, 0.01), (0.01, 0.05))
GRID_BLOCKS = 6
TRUTH = 4.0


class TwoMachines(Machine):
    """As `Machine`, but each device has a noise of its own and nothing is common to both."""

    def __init__(self, scenario: str, noises: tuple[float, float], seed: int, scatter: float) -> None:
        super().__init__(scenario, sum(noises), seed, scatter)
        self.noises_of = noises

    def measure(self, size: float, blocks: int, visits: int = 1) -> Evidence:
        times = zip(self.curves(np.array(size * 2.0**self.shift)), self.noises_of, strict=True)
        cpu_s, gpu_s = (float(step_s) * noisy(self.draw, blocks, noise, outliers=True) for step_s, noise in times)
        gpu_s = gpu_s * math.exp(self.draw.normal(0, self.visit))
        self.noises[size] = sum(self.noises_of) / 2
        self.pairs += blocks
        return Evidence(size=size, baseline_s=tuple(cpu_s.tolist()), challenger_s=tuple(gpu_s.tolist()), paired=False)


def noisy(draw: np.random.Generator, blocks: int, noise: float, *, outliers: bool) -> np.ndarray:
    slow = np.where(draw.random(blocks) < OUTLIERS * outliers, draw.uniform(*OUTLIER_FACTORS, blocks), 1.0)
    return np.exp(draw.normal(0, noise, blocks)) * slow


def ratios(
    counts: tuple[int, int], noises: tuple[float, float], *, outliers: bool, runs: int, scatter: float
) -> tuple[float, float]:
    """Share of intervals that hold the true ratio, and the median ratio of their ends."""
    draw = np.random.default_rng([*counts, *(round(1000 * noise) for noise in noises), outliers])
    held, widths = 0, []
    for _ in range(runs):
        times = [noisy(draw, count, noise, outliers=outliers) for count, noise in zip(counts, noises, strict=True)]
        visits = np.exp(draw.normal(0, scatter, 2))
        low, high = ratio_interval((TRUTH * visits[0] * times[0]).tolist(), (visits[1] * times[1]).tolist())
        held += low <= TRUTH <= high
        widths.append(high / low)
    return held / runs, statistics.median(widths)


def sweep(scenario: str, noises: tuple[float, float], seed: int, scatter: float) -> Result:
    machines = TwoMachines(scenario, noises, seed, scatter)
    evidence = [machines.measure(size, GRID_BLOCKS) for size in GRID]
    return judged(locate_crossover(evidence, axis="hidden_size", baseline="cpu", challenger="gpu"), machines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--sweeps", type=int, default=300)
    parser.add_argument("--only", default="", help="part of a scenario's name")
    parser.add_argument("--scatter", type=float, default=0.0, help="standard deviation from visit to visit")
    options = parser.parse_args()
    print("| blocks | noise of a block | slow blocks | coverage | width |\n|---|---|---|---|---|")
    for counts in COUNTS if options.runs else ():
        for noises in NOISES:
            for outliers in (False, True):
                covered, width = ratios(counts, noises, outliers=outliers, runs=options.runs, scatter=options.scatter)
                named = [f"{counts[0]} and {counts[1]}", f"{noises[0]:.0%} and {noises[1]:.0%}"]
                figures = f"{100 * covered:.1f} % | {width:.3f}×"
                print(f"| {' | '.join(named)} | {'3 %' if outliers else 'none'} | {figures} |", flush=True)
    print("\n| curves | noise | coverage, width; other outcomes | rms error | blocks |\n|---|---|---|---|---|")
    for scenario in (name for name in SCENARIOS if options.only in name and options.sweeps):
        for noises in NOISES:
            results = [sweep(scenario, noises, seed, options.scatter) for seed in range(options.sweeps)]
            print(row(f"{noises[0]:.0%} and {noises[1]:.0%}", scenario, results), flush=True)


if __name__ == "__main__":
    main()
