"""How often does the 95 % interval of a speedup contain the truth? Order statistics against the pooled-scale formula.

    python -m tests.benchmarks.interval_coverage [--runs 20000]

Log ratios are drawn from a normal distribution, once pure and once with 3 % outliers of 1.3 to 3 times.
"""

import argparse
import math
import random
import statistics

from core.answer.statistics import median_interval

T_975 = {6: 2.571, 8: 2.365, 10: 2.262, 12: 2.201, 16: 2.131, 20: 2.093}
"""97.5 % quantiles of Student's t with n - 1 degrees of freedom."""

NOISE, TRUTH = 0.05, 0.0


def draw(rng: random.Random, pairs: int, *, outliers: bool) -> list[float]:
    values = [rng.gauss(TRUTH, NOISE) for _ in range(pairs)]
    if not outliers:
        return values
    return [
        value + rng.choice((-1, 1)) * math.log(rng.uniform(1.3, 3)) if rng.random() < 0.03 else value
        for value in values
    ]


def by_scale(values: list[float]) -> tuple[float, float]:
    """1.2533 · s · t / √n around the median, s from the median absolute deviation."""
    count, middle = len(values), statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    scale = 1.4826 * deviation * math.sqrt(count / (count - 1))
    half = 1.2533 * scale * T_975[count] / math.sqrt(count)
    return middle - half, middle + half


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    options = parser.parse_args()
    print("| pairs | outliers | order statistics: covers | width | formula: covers | width |")
    print("|---|---|---|---|---|---|")
    for outliers in (False, True):
        for pairs in T_975:
            rng = random.Random(pairs)
            found = {"order": [], "formula": []}
            for _ in range(options.runs):
                values = draw(rng, pairs, outliers=outliers)
                found["order"].append(median_interval(values))
                found["formula"].append(by_scale(values))
            cells = []
            for intervals in found.values():
                covered = statistics.mean(low <= TRUTH <= high for low, high in intervals)
                width = math.exp(statistics.median(high - low for low, high in intervals))
                cells.append(f"{100 * covered:.1f} % | {width:.3f}")
            print(f"| {pairs} | {'3 %' if outliers else 'none'} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
