"""A simulated machine with two devices that cross somewhere: families of curves, and what disturbs readings.

Nothing is measured. The benchmarks of the statistics of a crossover take their readings from it.
"""

import math
from collections.abc import Callable

import numpy as np

from core.answer.judgement import Evidence

Curves = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

ALIKE = 0.3
"""How alike both devices are in what a visit of the machine does to their readings."""

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
