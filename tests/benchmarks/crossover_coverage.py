"""Does the interval of a crossover hold the truth as often as it says? Simulated sweeps with a known crossing.

    python -m tests.benchmarks.crossover_coverage [--sweeps 1000] [--first 0] [--only affine] [--kept FILE]
    python -m tests.benchmarks.crossover_coverage --dips

Families of curves, each sweep with its own place of the crossing between the measured sizes, its own caches and tiles.
Times carry log-normal noise of 2 or 5 %, 3 % of them are 1.3 to 3 times as long, a slow drift of 15 % is common to both
devices, and a visit of a size multiplies all its readings of a device by a factor of its own, which is partly common
to the two. A grid of ten sizes with six pairs each, the adaptive search with three pairs a size, both with the pairs
of a size in turns with other sizes or in one visit, and tables with one reading a size. Nothing is measured: this tests
the statistics, not a machine.

A cell has the share of intervals that hold the truth, the median ratio of their ends, in brackets how many times as
wide (in logarithms) that is as an oracle's, and other outcomes. The oracle has the same data and the same model, but is
told the true noise, what visits shift, and how much this family of curves bends and jumps (that of the candidates
which explains many of its sweeps best).
"""

import argparse
import math
import multiprocessing
import os
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing.pool import Pool
from pathlib import Path

import numpy as np
import pytest

from core.answer import crossover, curve_estimate, judgement
from core.answer.curve_estimate import Noise, Readings, median_spread
from core.answer.judgement import Assumed, Crossover, Evidence
from core.answer.search import next_step
from core.question.fields import ADAPTIVE_PAIRS, GRID_PAIRS
from core.question.sweep import Axis
from tests.benchmarks.simulated_machine import ALIKE, SCENARIOS, Machine

LOW, HIGH = 8, 4096
GRID = Axis.from_range("hidden_size", LOW, HIGH).values
LATTICE = Axis.from_range("hidden_size", LOW, HIGH, adaptive=True).values

NOISES = (0.02, 0.05)
"""Of a reading of either device; every other sweep has the one, the others the other."""

VISITS = (0.0, 0.05, 0.10, 0.15)
"""What a visit of the machine does to all readings of a device (standard deviation)."""


def grid(machine: Machine, visits: int = 1) -> list[Evidence]:
    return [machine.measure(size, GRID_PAIRS, visits) for size in GRID]


def adaptive(machine: Machine, visits: int = 1) -> list[Evidence]:
    evidence: list[Evidence] = []
    while (size := next_step(LATTICE, evidence).size) is not None:
        evidence.append(machine.measure(size, ADAPTIVE_PAIRS, visits))
    return evidence


def dense(sizes: int, pairs: int) -> Callable[[Machine], list[Evidence]]:
    """A grid of so many sizes in each octave, in rounds."""
    steps = range(sizes * round(math.log2(HIGH / LOW)) + 1)
    chosen = [round(LOW * 2 ** (step / sizes)) for step in steps]
    return lambda machine: [machine.measure(size, pairs, pairs) for size in chosen]


def table(machine: Machine) -> list[Evidence]:
    """One reading a size and device, as tables are published; nothing says that they were taken in turns."""
    return [replace(machine.measure(size, 1), paired=False) for size in GRID]


METHODS: dict[str, Callable[[Machine], list[Evidence]]] = {
    "grid": grid,
    "grid in rounds": lambda machine: grid(machine, GRID_PAIRS),
    "search": adaptive,
    "search in rounds": lambda machine: adaptive(machine, ADAPTIVE_PAIRS),
    "table": table,
}

DENSE = {
    f"{sizes} an octave, {pairs} pairs each": dense(sizes, pairs)
    for sizes, pairs in ((1, 6), (1, 12), (2, 3), (2, 6), (3, 3), (3, 6))
}
WAVY = (0.4, 1.0)
"""The candidate that leaves a curve the most freedom."""

TOLD = 40
"""Sweeps from which the oracle learns how much a family of curves bends and jumps."""


@dataclass(frozen=True)
class Result:
    """One simulated sweep."""

    outcome: str
    covered: bool | None
    width: float | None
    bias: float | None
    pairs: int
    oracle: float | None = None


def measured(method: str, scenario: str, visit: float, seed: int, *, unequal: bool) -> tuple[Machine, list[Evidence]]:
    machine = Machine(scenario, NOISES[seed % len(NOISES)], seed, visit, unequal=unequal)
    return machine, (METHODS | DENSE)[method](machine)


def told(machine: Machine, evidence: Sequence[Evidence]) -> Readings:
    """The readings with their true noise."""
    timed = sorted(evidence, key=lambda entry: entry.size)
    shift = 2 * (1 - ALIKE) * machine.visit**2
    variances = np.array([2 * machine.noises[entry.size] ** 2 + shift * (entry.visits > 1) for entry in timed])
    spread = np.array([median_spread(len(entry.baseline_s)) for entry in timed]) * variances
    known = crossover.log_speedups(timed)
    certain = np.full(len(timed), 1e6)
    return replace(known, spread=spread, noise=Noise(sd=1.0, freedom=10**6), freedom=certain)


@contextmanager
def candidates(shapes: Sequence[tuple[float, float]], visit: float) -> Iterator[None]:
    """The model with other candidates for what bends and jumps, and one for what a visit shifts."""
    shift = math.sqrt(2 * (1 - ALIKE)) * visit
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(curve_estimate, "CURVE_SHAPES", tuple(shapes))
        patched.setattr(curve_estimate, "VISITS", (shift,))
        patched.setattr(curve_estimate, "VISIT_CHANCES", (1.0,))
        patched.setattr(curve_estimate, "NOISE_FACTORS", (1.0,))
        yield


@cache
def best_shape(method: str, scenario: str, visit: float, unequal: bool) -> tuple[float, float]:
    """The candidate that explains many sweeps of a family best."""
    sweeps = [measured(method, scenario, visit, 10_000 + seed, unequal=unequal) for seed in range(TOLD)]
    known = [told(*sweep) for sweep in sweeps]
    likelihoods = {}
    for shape in curve_estimate.CURVE_SHAPES:
        with candidates([shape], visit):
            fits = [curve_estimate.SpeedupCurve(each, float(each.sizes[0]), float(each.sizes[-1])) for each in known]
            likelihoods[shape] = sum(fit.likelihood for fit in fits)
    return max(likelihoods, key=lambda shape: likelihoods[shape])


def oracle(task: tuple[str, str, float, bool, int], machine: Machine, evidence: Sequence[Evidence]) -> float | None:
    """Width of the interval of who is told the true noise and the right candidates; None without one crossing."""
    method, scenario, visit, unequal, _ = task
    with candidates([best_shape(method, scenario, visit, unequal)], visit):
        found = judgement.judge_readings(told(machine, evidence))
    return found.crossings[0].high / found.crossings[0].low if len(found.crossings) == 1 else None


def simulate(task: tuple[str, str, float, bool, int]) -> Result:
    method, scenario, visit, unequal, seed = task
    machine, evidence = measured(method, scenario, visit, seed, unequal=unequal)
    blank = Crossover(axis="hidden_size", basis="as_given", baseline="cpu", challenger="gpu")
    found = crossover.decide_crossover(evidence, blank)
    result = judged(found.assumed or found, machine)
    return replace(result, oracle=oracle(task, machine, evidence) if result.width else None)


def judged(found: Crossover | Assumed, machine: Machine) -> Result:
    """What became of a sweep: `false` before an outcome where it says what is not so."""
    truth = [place for place in machine.truth if LOW < place < HIGH]
    if found.outcome == "crossing" and len(truth) == 1:
        (only,) = found.crossings
        return Result(
            "crossing",
            only.low <= truth[0] <= only.high,
            only.high / only.low,
            only.estimate / truth[0] - 1,
            machine.pairs,
        )
    wrong = any(
        (machine.log_speedup(size) > 0) != one.challenger_faster
        for one in found.clear
        for size in machine.noises
        if one.begin <= size <= one.end
    )
    outcome = "bounded" if found.clear else found.outcome
    always = outcome in ("gpu_always", "cpu_always") and bool(truth)
    several = outcome == "several" and len(truth) < 2
    false = wrong or always or several or outcome == "crossing"
    return Result(f"false {outcome}" if false else outcome, None, None, None, machine.pairs)


def cell(results: Sequence[Result]) -> str:
    outcomes = Counter(result.outcome for result in results)
    known = [result for result in results if result.width]
    told = [math.log(each.width or 1) / math.log(each.oracle) for each in known if each.oracle and each.oracle > 1]
    held = 100 * statistics.fmean(bool(result.covered) for result in known) if known else 0.0
    ratio = f" ({statistics.median(told):.1f})" if told else ""
    shown = [f"{held:.1f} %, {statistics.median(each.width or 0 for each in known):.2f}×{ratio}"] if known else []
    others = [
        f"{name} {100 * count / len(results):.0f} %" for name, count in outcomes.most_common() if name != "crossing"
    ]
    return "; ".join(shown + others)


def row(noises: str, scenario: str, results: Sequence[Result]) -> str:
    """One kind of sweep on a line of its own."""
    known = [result.bias for result in results if result.bias is not None]
    root = f"{100 * math.sqrt(statistics.fmean(bias**2 for bias in known)):.1f} %" if known else "–"
    pairs = statistics.median(result.pairs for result in results)
    return f"| {scenario} | {noises} | {cell(results)} | {root} | {pairs:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sweeps", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="part of a family's name")
    parser.add_argument("--first", type=int, default=0, help="seed of the first sweep")
    parser.add_argument("--kept", type=Path, default=Path(os.devnull), help="rows that are done, to go on behind them")
    parser.add_argument("--dips", action="store_true", help="how many sizes an octave show three crossings")
    options = parser.parse_args()
    with multiprocessing.Pool(options.processes) as pool:
        seeds = range(options.first, options.first + options.sweeps)
        if options.dips:
            dips(pool, seeds)
            return
        with options.kept.open("a+") as kept:
            kept.seek(0)
            for line in table_of(pool, seeds, options.only, kept.readlines()):
                print(line, file=kept, flush=True)


def table_of(pool: Pool, seeds: Sequence[int], only: str, kept: Sequence[str]) -> Iterator[str]:
    """Prints every line of the table; yields those that were not kept."""
    print(f"| curves | visits | {' | '.join(METHODS)} |")
    print(f"|{'---|' * (len(METHODS) + 2)}")
    rows = [(name, unequal) for name in SCENARIOS for unequal in (False, True) if not unequal or name == "affine"]
    for scenario, unequal in rows:
        name = f"{scenario}, unequal noise" if unequal else scenario
        for visit in VISITS if only in name else ():
            begin = f"| {name} | {100 * visit:.0f} % |"
            line = next((line.rstrip() for line in kept if line.startswith(begin)), "")
            if not line:
                cells = []
                for method in METHODS:
                    tasks = [(method, scenario, visit, unequal, seed) for seed in seeds]
                    cells.append(cell(pool.map(simulate, tasks, chunksize=20)))
                line = f"{begin} {' | '.join(cells)} |"
                yield line
            print(line, flush=True)


def dips(pool: Pool, seeds: Sequence[int]) -> None:
    """Three crossings an octave apart: how often they are told, and by who knows the true noise."""
    print(f"| sizes | pairs | {' | '.join(f'{100 * visit:.0f} %: told, could be' for visit in VISITS)} |")
    print(f"|{'---|' * (len(VISITS) + 2)}")
    for method in (*DENSE, "search in rounds"):
        seen = [pool.map(dip, [(method, visit, seed) for seed in seeds], chunksize=20) for visit in VISITS]
        shares = [f"{share(each, 1)}, {share(each, 2)}" for each in seen]
        pairs = statistics.median(each[0] for each in seen[0])
        print(f"| {method} | {pairs:.0f} | {' | '.join(shares)} |", flush=True)


def share(results: Sequence[tuple[int, bool, bool]], place: int) -> str:
    return f"{100 * statistics.fmean(each[place] for each in results):.0f} %"


def dip(task: tuple[str, float, int]) -> tuple[int, bool, bool]:
    """Pairs of a sweep of three crossings, whether they are told, and whether they would be at the true noise."""
    method, visit, seed = task
    machine, evidence = measured(method, "three crossings", visit, seed, unequal=False)
    blank = Crossover(axis="hidden_size", basis="as_given", baseline="cpu", challenger="gpu")
    found = crossover.decide_crossover(evidence, blank).outcome == "several"
    with candidates([WAVY], visit):
        return machine.pairs, found, judgement.judge_readings(told(machine, evidence)).outcome == "several"


if __name__ == "__main__":
    main()
