"""What rounds over the sizes are worth where a machine differs from visit to visit: simulated sweeps.

    python -m tests.benchmarks.crossover_visits [--sweeps 200] [--processes 2]

The curves and the noise of a reading (2 %) are those of `simulated_machine`. On top, one device is slower or faster by
a log-normal factor of 0, 5, 10 or 15 %, which is drawn anew at each visit, or wanders with a memory of so many pairs.
*one visit*: all pairs of a size in one go. *rounds*: a pair a visit, as sweeps are measured. Nothing is measured.
"""

import argparse
import math
import multiprocessing
import random
import statistics
from collections import Counter
from dataclasses import dataclass, field

from core.answer.crossover import locate_crossover
from core.answer.judgement import Crossover, Evidence
from core.answer.search import next_step
from core.question.fields import ADAPTIVE_PAIRS, GRID_PAIRS
from tests.benchmarks.crossover_coverage import GRID, LATTICE
from tests.benchmarks.simulated_machine import Machine

NOISE = 0.02
VISITS = (0.0, 0.05, 0.1, 0.15)
MEMORIES = {"each visit": 0, "10 pairs": 10, "60 pairs": 60}
"""Pairs after which a noise that wanders has forgotten two thirds of what it was."""

SCENARIOS = ("affine", "cache cliff", "strong CPU, weak GPU", "all three")


@dataclass
class Visited:
    """One simulated machine, visited size by size.

    Attributes:
        machine: without noise from visit to visit.
        sd: of that noise, as a logarithm.
        memory: pairs after which it is another, where it wanders; 0 where it is drawn anew.
        readings: size → seconds of both contenders, pair by pair.
        visits: size → how often it was come to.
        state: logarithm of what the machine does now.
    """

    machine: Machine
    sd: float
    memory: int
    readings: dict[float, list[tuple[float, float]]] = field(default_factory=dict)
    visits: Counter[float] = field(default_factory=Counter)
    state: float = 0.0

    def visit(self, size: float, pairs: int) -> None:
        """So many pairs in one go."""
        self.visits[size] += 1
        factor = self._wandered(0)
        for _ in range(pairs):
            found = self.machine.measure(size, 1)
            factor = self._wandered(1) if self.memory else factor
            pair = found.baseline_s[0], found.challenger_s[0] * math.exp(factor)
            self.readings.setdefault(size, []).append(pair)

    @property
    def evidence(self) -> list[Evidence]:
        return [
            Evidence(
                size=size,
                baseline_s=tuple(a for a, _ in pairs),
                challenger_s=tuple(b for _, b in pairs),
                visits=self.visits[size],
            )
            for size, pairs in self.readings.items()
        ]

    def _wandered(self, pairs: int) -> float:
        """The logarithm of the factor now, `pairs` after the last; one drawn anew knows nothing of it."""
        kept = math.exp(-pairs / self.memory) if self.memory else 0.0
        self.state = kept * self.state + math.sqrt(1 - kept**2) * self.machine.draw.normal(0, self.sd)
        return self.state


def grid_in_one_visit(visited: Visited) -> None:
    for size in GRID:
        visited.visit(size, GRID_PAIRS)


def grid_rounds(visited: Visited) -> None:
    order = random.Random(visited.machine.shift)
    for _ in range(GRID_PAIRS):
        for size in order.sample(GRID, len(GRID)):
            visited.visit(size, 1)


def search_in_one_visit(visited: Visited) -> None:
    while (size := next_step(LATTICE, visited.evidence).size) is not None:
        visited.visit(size, ADAPTIVE_PAIRS)


def search_rounds(visited: Visited, pairs: int = ADAPTIVE_PAIRS) -> None:
    """As `core.jobs.worker.sweep`: beside each new size the one that waits longest, then all that lack pairs."""
    order, last = random.Random(visited.machine.shift), dict[float, int]()
    turn = 0

    def visit(size: float) -> None:
        nonlocal turn
        turn += 1
        last[size] = turn
        visited.visit(size, 1)

    def lacking() -> list[float]:
        return [size for size, found in visited.readings.items() if len(found) < pairs]

    while True:
        size = next_step(LATTICE, visited.evidence).size
        if size is not None:
            waiting = sorted(lacking(), key=last.__getitem__)
            visit(size)
            for other in waiting[:1]:
                visit(other)
        elif left := lacking():
            for other in order.sample(left, len(left)):
                visit(other)
        else:
            return


METHODS = {
    ("grid", "one visit"): grid_in_one_visit,
    ("grid", "rounds"): grid_rounds,
    ("search", "one visit"): search_in_one_visit,
    ("search", "rounds"): search_rounds,
}


def simulate(task: tuple[tuple[str, str], str, float, int, int]) -> tuple[str, bool | None, float, float, int, int]:
    """Outcome, whether the interval holds the truth, its width, the error as a logarithm, pairs and sizes."""
    method, scenario, sd, memory, seed = task
    visited = Visited(Machine(scenario, NOISE, seed, 0.0), sd, memory)
    visited.state = visited.machine.draw.normal(0, sd)
    METHODS[method](visited)
    found: Crossover = locate_crossover(visited.evidence, axis="hidden_size", baseline="cpu", challenger="gpu")
    (truth,) = visited.machine.truth
    counted = sum(map(len, visited.readings.values())), len(visited.readings)
    if found.estimate is None or found.low is None or found.high is None:
        return found.outcome, None, 0.0, 0.0, *counted
    return (
        found.outcome,
        found.low <= truth <= found.high,
        found.high / found.low,
        math.log(found.estimate / truth),
        *counted,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sweeps", type=int, default=200, help="of each row, shared by the kinds of curves")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    print("| noise | another after | method | taken in | crossing | coverage | width | rms error | pairs | sizes |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with multiprocessing.Pool(options.processes) as pool:
        for sd in VISITS:
            for kind, memory in list(MEMORIES.items())[: 3 if sd else 1]:
                for method in METHODS:
                    each = max(1, options.sweeps // len(SCENARIOS))
                    tasks = [(method, name, sd, memory, seed) for name in SCENARIOS for seed in range(each)]
                    print(row(sd, kind, method, pool.map(simulate, tasks, chunksize=5)), flush=True)


def row(sd: float, kind: str, method: tuple[str, str], results: list) -> str:
    known = [result for result in results if result[1] is not None]
    coverage = f"{100 * statistics.fmean(result[1] for result in known):.0f} %" if known else "–"
    width = f"{statistics.median(result[2] for result in known):.2f}×" if known else "–"
    error = f"{100 * math.sqrt(statistics.fmean(result[3] ** 2 for result in known)):.0f} %" if known else "–"
    pairs, sizes = (statistics.median(result[place] for result in results) for place in (4, 5))
    shown = (f"{100 * sd:.0f} %", kind if sd else "–", *method, f"{100 * len(known) / len(results):.0f} %")
    return "| " + " | ".join(map(str, (*shown, coverage, width, error, f"{pairs:.0f}", f"{sizes:.0f}"))) + " |"


if __name__ == "__main__":
    main()
