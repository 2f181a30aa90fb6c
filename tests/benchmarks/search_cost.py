"""How long does an adaptive search of a small model take, and what are its seconds spent on? By a scripted clock.

    python -m tests.benchmarks.search_cost [--sweeps 100] [--pairs 3]

One thread against two on an MLP, hidden size 8 to 4,096; how long their steps are is made up, with 5 % noise a reading
and, from visit to visit, as much as stands in the first column. The product chooses the sizes, and how many steps warm
up, lead in and make a block; the seconds are those of its steps alone. Starting the process, loading data, building
networks and writing rows come on top: a tenth of a second a size on a quiet machine. Nothing is measured.
"""

import argparse
import statistics
from types import SimpleNamespace

import numpy as np

from core.measure import breakdown
from core.measure.breakdown import RawValues
from core.measure.contender import MeasuredContender
from core.question.experiment import Contender
from core.question.fields import ADAPTIVE_PAIRS
from tests.benchmarks import crossover_visits
from tests.benchmarks.crossover_visits import Visited
from tests.benchmarks.simulated_machine import Machine, flops

NOISE = 0.05
VISITS = (0.0, 0.05, 0.1, 0.15)
PARTS = ("warm-up", "lead-ins", "blocks", "parts of a step")
ALLOWANCE_S = 10.0


def one_and_two(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of a step with one thread and with two, which cross at a hidden size of about 100."""
    return 120e-6 + flops(size) / 60e9, 420e-6 + flops(size) / 115e9


class Scripted:
    """A contender of which only the clock is made up: `MeasuredContender.warm_up` runs on it."""

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s
        self.raw, self.contender = RawValues(threads=1), Contender.parse("cpu@1")
        self._fresh = SimpleNamespace(prefetched=0)
        self._block_steps = 0

    def _warm_up_block(self, steps: int) -> float:
        self.raw.warmup_steps.append(steps)
        self.raw.warmup_s.append(steps * self.step_s)
        return steps * self.step_s

    def spent(self, pairs: int) -> list[float]:
        """Seconds of each of `PARTS` with so many pairs."""
        for _ in MeasuredContender.warm_up(self, ALLOWANCE_S):  # type: ignore[arg-type]
            pass
        taken_apart = breakdown.clamp(breakdown.PASS_STEPS, breakdown.PASS_S / self.step_s) + 1
        steps = (self.raw.lead_in_steps * pairs, self._block_steps * pairs, taken_apart)
        return [sum(self.raw.warmup_s), *(count * self.step_s for count in steps)]


def searched(visit: float, seed: int, pairs: int) -> tuple[int, int, list[float]]:
    """Sizes, pairs, and seconds of each of `PARTS` of one search in rounds."""
    machine = Machine("affine", NOISE, seed, 0.0)
    machine.curves = one_and_two
    visited = Visited(machine, visit, 0)
    crossover_visits.search_rounds(visited, pairs)
    spent = np.zeros(len(PARTS))
    for size, readings in visited.readings.items():
        for step_s in machine.curves(np.array(size * 2.0**machine.shift)):
            spent += Scripted(float(step_s)).spent(len(readings))
    return len(visited.readings), sum(map(len, visited.readings.values())), spent.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sweeps", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=ADAPTIVE_PAIRS)
    options = parser.parse_args()
    print(f"| visits | sizes | pairs | {' | '.join(PARTS)} | in all | nine of ten within |")
    print(f"|{'---|' * (len(PARTS) + 5)}")
    for visit in VISITS:
        sizes, pairs, spent = zip(
            *(searched(visit, seed, options.pairs) for seed in range(options.sweeps)), strict=True
        )
        totals = sorted(map(sum, spent))
        parts = " | ".join(f"{statistics.median(part):.1f} s" for part in zip(*spent, strict=True))
        counts = f"{statistics.median(sizes):.0f} | {statistics.median(pairs):.0f}"
        ends = f"{statistics.median(totals):.0f} s | {totals[round(0.9 * (len(totals) - 1))]:.0f} s"
        print(f"| {100 * visit:.0f} % | {counts} | {parts} | {ends} |", flush=True)


if __name__ == "__main__":
    main()
