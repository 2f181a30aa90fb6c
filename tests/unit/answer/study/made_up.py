"""Evidence of made-up speedups, and its answer."""

import math
import random
from dataclasses import replace

from core.answer.crossover import locate_crossover
from core.answer.judgement import Evidence

SIZES = tuple(2.0**power for power in range(3, 13))


def evidence(speedups, *, noise=0.01, pairs=5, seed=0, paired=True, visits=None):
    """Pairs at `SIZES`, measured in turns, whose true speedups are given; None leaves a size out."""
    draw = random.Random(seed)
    found = []
    for size, speedup in zip(SIZES, speedups, strict=False):
        if speedup is not None:
            base = [1e-3 * math.exp(draw.gauss(0, noise)) for _ in range(pairs)]
            other = [1e-3 / speedup * math.exp(draw.gauss(0, noise)) for _ in range(pairs)]
            times = {"baseline_s": tuple(base), "challenger_s": tuple(other)}
            found.append(Evidence(size=size, **times, paired=paired, visits=visits or pairs))
    return found


def answer(found, **changes):
    return locate_crossover(found, **{"axis": "hidden_size", "baseline": "cpu", "challenger": "cuda:0", **changes})


RISING = (0.3, 0.4, 0.55, 0.75, 1.3, 2.0, 3.0, 5.0, 8.0, 12.0)


# What speaks against an answer


def scaled(found, at, factor):
    off = replace(found[at], challenger_s=tuple(factor * s for s in found[at].challenger_s))
    return [off if place == at else entry for place, entry in enumerate(found)]
