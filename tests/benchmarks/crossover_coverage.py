"""Does the interval of a crossover hold the truth as often as it says? Simulated sweeps with a known crossing.

    python -m tests.benchmarks.crossover_coverage [--sweeps 1000] [--processes 2] [--only affine]

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
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from core.answer.study import crossover
from core.answer.study.estimate import curve, judging
from core.answer.study.estimate.curve import Readings
from core.answer.study.estimate.noise import Noise, median_spread
from core.answer.study.result import Assumed, Crossover, Evidence
from core.answer.study.search import next_step
from core.question.sweep import ADAPTIVE_PAIRS, Axis

Curves = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

LOW, HIGH = 8, 4096
GRID = Axis.between("hidden_size", LOW, HIGH).values
LATTICE = Axis.between("hidden_size", LOW, HIGH, adaptive=True).values
GRID_PAIRS = 6

NOISES = (0.02, 0.05)
"""Of a reading of either device; every other sweep has the one, the others the other."""

VISITS = (0.0, 0.05, 0.10, 0.15)
"""What a visit of the machine does to all readings of a device (standard deviation), and how alike both devices."""
ALIKE = 0.3

UNEQUAL = 0.7
"""Standard deviation of the logarithm of the noise of a size, where sizes are unequally noisy."""

OFF_TILE = 0.08
"""How much slower a size is that is no power of two, where tiles are."""
OUTLIERS, OUTLIER_FACTORS = 0.03, (1.3, 3.0)
DRIFT, DRIFT_PAIRS = 0.15, 40
"""Amplitude of the common drift, and pairs in which it comes round."""

BUMP = 0.35
"""Half-height of the wave that makes three crossings an octave apart: speedups of up to 1.42 the wrong way."""

OCTAVES = np.linspace(1.5, 13.5, 6001)


def flops(size: np.ndarray) -> np.ndarray:
    """Operations of one step of an MLP on 784 features with two hidden layers, batch 64."""
    return 64 * (6 * (784 * size + size * size + 10 * size) - 2 * 784 * size)


def affine(_draw: np.random.Generator) -> Curves:
    return lambda size: (120e-6 + flops(size) / 60e9, 420e-6 + flops(size) / 6e12)


def misspecified(draw: np.random.Generator, *, cache: bool, tiles: bool, throughput: bool) -> Curves:
    """A CPU with a cache cliff or a throughput that grows with size, a GPU with tiles and a launch floor."""
    cliff_at, phase = 7.0 + draw.uniform(-1.2, 1.2), draw.uniform(0, 2 * math.pi)

    def curves(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        octave, work = np.log2(size), flops(size)
        rate = 60e9 * ((work / flops(np.array(64.0))) ** 0.1 if throughput else 1.0)
        cliff = 1 + 0.45 / (1 + np.exp(-np.clip((octave - cliff_at) / 0.12, -50, 50))) if cache else 1.0
        ripple = 1 + 0.04 * np.sin(2 * np.pi * octave / 0.7 + phase) if tiles else 1.0
        if tiles and not cache:  # a slow accelerator: the crossing lies where tiles matter, not launches
            return 110e-6 + work / rate * cliff, (960e-6 + work / 0.6e12) * ripple
        return 110e-6 + work / rate * cliff, np.maximum(400e-6, 330e-6 + work / 3e12 * ripple)

    return curves


def strong_cpu(draw: np.random.Generator) -> Curves:
    """Many cores against a weak accelerator: they cross late, and both grow."""
    phase = draw.uniform(0, 2 * math.pi)

    def curves(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        octave, work = np.log2(size), flops(size)
        cpu = 60e-6 + work / 800e9 * (1 + 0.1 / (1 + np.exp(-(octave - 10) / 0.3)))
        return cpu, 500e-6 + work / 2.2e12 * (1 + 0.03 * np.sin(2 * np.pi * octave / 0.7 + phase))

    return curves


def threshold(draw: np.random.Generator) -> Curves:
    """A jump: more threads set in at some size and make the second contender a third faster, from a third slower."""
    jump_at = 7.5 + draw.uniform(-2, 2)

    def curves(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        one = 120e-6 + flops(size) / 60e9
        return one, one / np.where(np.log2(size) < jump_at, 0.75, 1.35)

    return curves


def three_crossings(_draw: np.random.Generator) -> Curves:
    """Crossings at 64, 128 and 256: a wave of the log speedup of half-height `BUMP`."""

    def curves(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        away = np.log2(size) - 7
        beyond = np.sign(away) * (1 + 0.5 * (np.abs(away) - 1.5))
        log_speedup = BUMP * np.where(np.abs(away) <= 1.5, -np.sin(np.pi * away), beyond)
        gpu = 420e-6 + flops(size) / 6e12
        return gpu * np.exp(log_speedup), gpu

    return curves


SCENARIOS: dict[str, Callable[[np.random.Generator], Curves]] = {
    "affine": affine,
    "cache cliff": lambda draw: misspecified(draw, cache=True, tiles=False, throughput=False),
    "tile ripple": lambda draw: misspecified(draw, cache=False, tiles=True, throughput=False),
    "all three": lambda draw: misspecified(draw, cache=True, tiles=True, throughput=True),
    "strong CPU, weak GPU": strong_cpu,
    "thread threshold": threshold,
    "GPU always": lambda _: lambda size: (720e-6 + flops(size) / 60e9, 420e-6 + flops(size) / 6e12),
    "CPU always": lambda _: lambda size: (100e-6 + flops(size) / 5.5e12, 420e-6 + flops(size) / 5e12),
    "three crossings": three_crossings,
}


class Machine:
    """One simulated machine and what was spent on it."""

    def __init__(self, scenario: str, noise: float, seed: int, visit: float, *, unequal: bool = False) -> None:
        self.draw = np.random.default_rng([seed, round(noise * 1000), sorted(SCENARIOS).index(scenario)])
        self.curves = SCENARIOS[scenario](self.draw)
        self.noise, self.visit, self.unequal = noise, visit, unequal
        self.shift = self.draw.uniform(-0.5, 0.5)
        self.begin = self.draw.uniform(0, DRIFT_PAIRS)
        self.pairs = 0
        self.noises: dict[float, float] = {}

    @property
    def truth(self) -> list[float]:
        """Sizes at which the curves cross."""
        cpu, gpu = self.curves(2**OCTAVES)
        log_speedup = np.log(cpu / gpu)
        at = np.flatnonzero(np.signbit(log_speedup[1:]) != np.signbit(log_speedup[:-1]))
        step = OCTAVES[1] - OCTAVES[0]
        crossed = OCTAVES[at] - log_speedup[at] * step / (log_speedup[at + 1] - log_speedup[at])
        return [float(2 ** (octave - self.shift)) for octave in crossed]

    def log_speedup(self, size: float) -> float:
        cpu, gpu = self.curves(np.array(size * 2.0**self.shift))
        return math.log(cpu / gpu)

    def measure(self, size: float, pairs: int, visits: int = 1) -> Evidence:
        """Pairs of one size in so many visits, each of which does something of its own to all its readings."""
        times = self.curves(np.array(size * 2.0**self.shift))
        noise = self.noise * (math.exp(self.draw.normal(0, UNEQUAL)) if self.unequal else 1.0)
        self.noises[size] = noise
        common, *own = self.visit * self.draw.normal(size=(3, visits))
        base, other = (
            (
                float(step_s)
                * self._disturbed(pairs, late, noise)
                * np.exp(np.repeat(ALIKE**0.5 * common + (1 - ALIKE) ** 0.5 * alone, pairs // visits))
            ).tolist()
            for step_s, late, alone in zip(times, (0.0, 0.5), own, strict=True)
        )
        self.begin += pairs
        self.pairs += pairs
        return Evidence(size=size, baseline_s=tuple(base), challenger_s=tuple(other), visits=visits)

    def _disturbed(self, pairs: int, late: float, noise: float) -> np.ndarray:
        when = self.begin + np.arange(pairs) + late
        drift = np.exp(DRIFT * np.sin(2 * np.pi * when / DRIFT_PAIRS))
        slow = np.where(self.draw.random(pairs) < OUTLIERS, self.draw.uniform(*OUTLIER_FACTORS, pairs), 1.0)
        return np.exp(self.draw.normal(0, noise, pairs)) * drift * slow


def grid(machine: Machine, visits: int = 1) -> list[Evidence]:
    return [machine.measure(size, GRID_PAIRS, visits) for size in GRID]


def adaptive(machine: Machine, visits: int = 1) -> list[Evidence]:
    evidence: list[Evidence] = []
    while (size := next_step(LATTICE, evidence).size) is not None:
        evidence.append(machine.measure(size, ADAPTIVE_PAIRS, visits))
    return evidence


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
    return machine, METHODS[method](machine)


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
        patched.setattr(curve, "SHAPES", tuple(shapes))
        patched.setattr(curve, "VISITS", (shift,))
        for name in ("VISIT_CHANCES", "NOISE_FACTORS"):
            patched.setattr(curve, name, (1.0,))
        yield


@cache
def best_shape(method: str, scenario: str, visit: float, unequal: bool) -> tuple[float, float]:
    """The candidate that explains many sweeps of a family best."""
    sweeps = [measured(method, scenario, visit, 10_000 + seed, unequal=unequal) for seed in range(TOLD)]
    known = [told(*sweep) for sweep in sweeps]
    likelihoods = {}
    for shape in curve.SHAPES:
        with candidates([shape], visit):
            fits = [curve.Curve(each, float(each.sizes[0]), float(each.sizes[-1])) for each in known]
            likelihoods[shape] = sum(fit.likelihood for fit in fits)
    return max(likelihoods, key=lambda shape: likelihoods[shape])


def oracle(task: tuple[str, str, float, bool, int], machine: Machine, evidence: Sequence[Evidence]) -> float | None:
    """Width of the interval of who is told the true noise and the right candidates; None without one crossing."""
    method, scenario, visit, unequal, _ = task
    with candidates([best_shape(method, scenario, visit, unequal)], visit):
        found = judging.judge(told(machine, evidence))
    return found.crossings[0].high / found.crossings[0].low if len(found.crossings) == 1 else None


def simulate(task: tuple[str, str, float, bool, int]) -> Result:
    method, scenario, visit, unequal, seed = task
    machine, evidence = measured(method, scenario, visit, seed, unequal=unequal)
    blank = Crossover(axis="hidden_size", basis="as_given", baseline="cpu", challenger="gpu")
    found = crossover.decide(evidence, blank)
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
    options = parser.parse_args()
    print(f"| curves | visits | {' | '.join(METHODS)} |")
    print(f"|{'---|' * (len(METHODS) + 2)}")
    rows = [(name, unequal) for name in SCENARIOS for unequal in (False, True) if not unequal or name == "affine"]
    with multiprocessing.Pool(options.processes) as pool:
        for scenario, unequal in rows:
            name = f"{scenario}, unequal noise" if unequal else scenario
            for visit in VISITS if options.only in name else ():
                cells = []
                for method in METHODS:
                    tasks = [(method, scenario, visit, unequal, seed) for seed in range(options.sweeps)]
                    cells.append(cell(pool.map(simulate, tasks, chunksize=20)))
                print(f"| {name} | {100 * visit:.0f} % | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
