"""Does the interval of a crossover hold the truth as often as it says? Simulated sweeps with a known crossing.

    python -m tests.benchmarks.crossover_coverage [--sweeps 1000] [--processes 2] [--scatter 0.15]

Ten pairs of curves, two levels of noise, each sweep with its own place of the crossing between the measured sizes,
its own caches and tiles. Times carry log-normal noise, 3 % of them are 1.3 to 3 times as long, and a slow drift of
15 % is common to both devices. A grid of ten sizes with five pairs each is held against the adaptive search with
three pairs a size. Nothing is measured: this tests the statistics, not a machine. With `--scatter` one device is
slower or faster for all readings of a size, by a log-normal factor of that standard deviation: what no repetition at
the same size shows.
"""

import argparse
import math
import multiprocessing
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.answer.study.crossover import locate
from core.answer.study.result import Crossover, Evidence
from core.answer.study.search import next_step
from core.question.sweep import ADAPTIVE_PAIRS, Axis

Curves = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

LOW, HIGH = 8, 4096
GRID = Axis.between("hidden_size", LOW, HIGH).values
LATTICE = Axis.between("hidden_size", LOW, HIGH, adaptive=True).values
GRID_PAIRS = 5

NOISES = (0.02, 0.05)
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
    "sublinear throughput": lambda draw: misspecified(draw, cache=False, tiles=False, throughput=True),
    "all three": lambda draw: misspecified(draw, cache=True, tiles=True, throughput=True),
    "strong CPU, weak GPU": strong_cpu,
    "thread threshold": threshold,
    "GPU always": lambda _: lambda size: (720e-6 + flops(size) / 60e9, 420e-6 + flops(size) / 6e12),
    "CPU always": lambda _: lambda size: (100e-6 + flops(size) / 5.5e12, 420e-6 + flops(size) / 5e12),
    "three crossings": three_crossings,
}


class Machine:
    """One simulated machine and what was spent on it."""

    def __init__(self, scenario: str, noise: float, seed: int, scatter: float) -> None:
        self.draw = np.random.default_rng([seed, round(noise * 1000), sorted(SCENARIOS).index(scenario)])
        self.curves = SCENARIOS[scenario](self.draw)
        self.noise, self.scatter = noise, scatter
        self.shift = self.draw.uniform(-0.5, 0.5)
        self.begin = self.draw.uniform(0, DRIFT_PAIRS)
        self.pairs, self.seconds = 0, 0.0

    @property
    def truth(self) -> list[float]:
        """Sizes at which the curves cross."""
        cpu, gpu = self.curves(2**OCTAVES)
        log_speedup = np.log(cpu / gpu)
        at = np.flatnonzero(np.signbit(log_speedup[1:]) != np.signbit(log_speedup[:-1]))
        step = OCTAVES[1] - OCTAVES[0]
        crossed = OCTAVES[at] - log_speedup[at] * step / (log_speedup[at + 1] - log_speedup[at])
        return [float(2 ** (octave - self.shift)) for octave in crossed]

    def measure(self, size: float, pairs: int) -> Evidence:
        cpu, gpu = self.curves(np.array(size * 2.0**self.shift))
        cpu_s, gpu_s = (float(step_s) * self._disturbed(pairs, late) for step_s, late in ((cpu, 0.0), (gpu, 0.5)))
        gpu_s = gpu_s * math.exp(self.draw.normal(0, self.scatter))
        self.begin += pairs
        self.pairs += pairs
        self.seconds += float(cpu_s.sum() + gpu_s.sum())
        return Evidence(size=size, baseline_s=tuple(cpu_s.tolist()), challenger_s=tuple(gpu_s.tolist()))

    def _disturbed(self, pairs: int, late: float) -> np.ndarray:
        when = self.begin + np.arange(pairs) + late
        drift = np.exp(DRIFT * np.sin(2 * np.pi * when / DRIFT_PAIRS))
        slow = np.where(self.draw.random(pairs) < OUTLIERS, self.draw.uniform(*OUTLIER_FACTORS, pairs), 1.0)
        return np.exp(self.draw.normal(0, self.noise, pairs)) * drift * slow


@dataclass(frozen=True)
class Result:
    """One simulated sweep."""

    outcome: str
    covered: bool | None
    width: float | None
    bias: float | None
    pairs: int
    seconds: float


def grid(machine: Machine) -> Crossover:
    return answer([machine.measure(size, GRID_PAIRS) for size in GRID])


def adaptive(machine: Machine, pairs: int = ADAPTIVE_PAIRS) -> Crossover:
    evidence: list[Evidence] = []
    while (size := next_step(LATTICE, evidence).size) is not None:
        evidence.append(machine.measure(size, pairs))
    return answer(evidence)


METHODS: dict[str, Callable[[Machine], Crossover]] = {"grid": grid, "adaptive": adaptive}


def answer(evidence: list[Evidence]) -> Crossover:
    return locate(evidence, axis="hidden_size", baseline="cpu", challenger="gpu")


def simulate(task: tuple[str, str, float, int, float]) -> Result:
    method, scenario, noise, seed, scatter = task
    machine = Machine(scenario, noise, seed, scatter)
    found, truth = METHODS[method](machine), machine.truth
    if found.estimate is None or found.low is None or found.high is None or len(truth) != 1:
        return Result(found.outcome, None, None, None, machine.pairs, machine.seconds)
    covered, bias = found.low <= truth[0] <= found.high, found.estimate / truth[0] - 1
    return Result(found.outcome, covered, found.high / found.low, bias, machine.pairs, machine.seconds)


def row(method: str, scenario: str, noise: float, results: list[Result]) -> str:
    outcomes = Counter(result.outcome for result in results)
    shown = ", ".join(f"{outcome} {100 * count / len(results):.1f} %" for outcome, count in outcomes.most_common())
    known = [result for result in results if result.covered is not None]
    figures = "– | – | – | –"
    if known:
        biases = [result.bias for result in known if result.bias is not None]
        root = math.sqrt(statistics.fmean(bias**2 for bias in biases))
        figures = (
            f"{100 * statistics.fmean(bool(result.covered) for result in known):.1f} % | "
            f"{statistics.median(result.width or 0 for result in known):.2f}× | "
            f"{100 * statistics.median(biases):+.1f} % | {100 * root:.1f} %"
        )
    pairs = statistics.median(result.pairs for result in results)
    spent = f"{pairs:.0f} | {1e3 * statistics.median(result.seconds for result in results):.0f}"
    return f"| {scenario} | {100 * noise:.0f} % | {method} | {shown} | {figures} | {spent} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sweeps", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="part of a scenario's name")
    parser.add_argument("--scatter", type=float, default=0.0, help="standard deviation from size to size")
    options = parser.parse_args()
    print("| curves | noise | method | outcomes | coverage | width | bias | rms error | pairs | device time (ms) |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with multiprocessing.Pool(options.processes) as pool:
        for scenario in (name for name in SCENARIOS if options.only in name):
            for noise in NOISES:
                for method in METHODS:
                    tasks = [(method, scenario, noise, seed, options.scatter) for seed in range(options.sweeps)]
                    print(row(method, scenario, noise, pool.map(simulate, tasks, chunksize=20)), flush=True)


if __name__ == "__main__":
    main()
