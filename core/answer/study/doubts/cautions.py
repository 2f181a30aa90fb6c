"""What speaks against taking a crossover as it stands: times in another unit, and sizes that are all powers of two."""

import math
import statistics
from collections.abc import Iterable, Sequence

from core import units
from core.answer.study import wording
from core.answer.study.result import Crossover, Evidence
from core.question.models.boosting import ROWS

UNIT_FACTOR = 20.0
"""How many times its neighbours' a time is, or a part of theirs, that is told: seconds among milliseconds are more."""

FEWEST_POWERS = 3
"""Powers of two from which a study that has nothing else is said to."""

ONLY_POWERS = "Only powers of two were measured: sizes between them may fill a device worse, and cross elsewhere."
"""Of an answer alone: where there is none, nothing can be elsewhere."""

AXES_WITHOUT_TILES = ("depth", "samples", ROWS)
"""Axes that no tile of a device has to do with."""


def caution_sentences(timed: Sequence[Evidence], answer: Crossover) -> Iterable[str]:
    """A sentence for each; what was timed is ascending by size."""
    for name, times in (
        (answer.baseline, [entry.baseline_s for entry in timed]),
        (answer.challenger, [entry.challenger_s for entry in timed]),
    ):
        yield from _unit_sentences(name, [entry.size for entry in timed], times)
    answered = answer.outcome in ("crossing", "gpu_always", "cpu_always") or answer.clear or answer.assumed
    if answered and answer.axis not in AXES_WITHOUT_TILES and _powers_of_two([entry.size for entry in timed]):
        yield ONLY_POWERS


def _unit_sentences(name: str, sizes: Sequence[float], times: Sequence[Sequence[float]]) -> Iterable[str]:
    """Sizes whose time leaves the range of both neighbours by far; at an end, against the way that times go."""
    middles = [statistics.median(each) for each in times]
    if len(middles) < 3:
        return
    for at, (size, middle) in enumerate(zip(sizes, middles, strict=True)):
        beside = [middles[other] for other in (at - 1, at + 1) if 0 <= other < len(middles)]
        long = middle / max(beside) if at < len(middles) - 1 else 0.0
        short = min(beside) / middle if at > 0 else 0.0
        factor = max(long, short)
        if factor > UNIT_FACTOR:
            way = "longer" if long > short else "shorter"
            yield (
                f"The time of {name} at {wording.format_size(size)} is {units.format_ratio(factor)} {way} than its "
                "neighbours': "
                "was it given in another unit?"
            )


def _powers_of_two(sizes: Sequence[float]) -> bool:
    return len(sizes) >= FEWEST_POWERS and all(math.frexp(size)[0] == 0.5 and size >= 1 for size in sizes)
