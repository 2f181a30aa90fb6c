"""Diagnostics of a whole study: interference by other programs over all sizes, and cautions about its readings.

Three or six pairs per size cannot show interference, so the blocks of all sizes are examined together.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .. import units
from ..question.models.boosting import ROWS
from ..results.schema import Trial
from . import interference, wording
from .interference import PairInterference
from .result import Crossover, Evidence


def study_interference(pairs: Sequence[tuple[Trial, Trial]]) -> PairInterference | None:
    """What other programs did to the rows of two devices, a pair a size; None on a quiet machine."""
    if not pairs:
        return None
    baselines, challengers = zip(*pairs, strict=True)
    return interference.pair_interference(
        interference.row_interference(baselines), interference.row_interference(challengers)
    )


def evidence_interference(evidence: Sequence[Evidence], baseline: str, challenger: str) -> PairInterference | None:
    """The same of somebody's own timings, by how they spread."""
    sides = [entry.baseline_s for entry in evidence], [entry.challenger_s for entry in evidence]
    return interference.pair_interference(
        interference.readings_interference(baseline, sides[0]), interference.readings_interference(challenger, sides[1])
    )


def mark_interference(answer: Crossover, interference: PairInterference | None) -> Crossover:
    """The answer with what was seen of other programs.

    A device that wins everywhere by less than they may explain is not said to; what else explains several crossings is
    not called the usual cause. A crossing stands, marked; what is no answer for that reason says it there.
    """
    if interference is None:
        return answer
    told = replace(answer, busy=interference.sentence, reason=answer.reason.removesuffix(wording.USUAL_CAUSE))
    if answer.outcome in ("gpu_always", "cpu_always") and interference.worse.many:
        speedups = [math.log(size.speedup) for size in answer.sizes if size.speedup]
        if refusal := interference.refusal(min(speedups), max(speedups)):
            left = tuple(each for each in answer.cautions if each != ONLY_POWERS)
            told = replace(told, outcome="undecided", reason=refusal, cautions=left)
            return replace(told, sentence=wording.crossover_sentence(told))
    sentence = answer.sentence if told.reason == answer.reason else wording.crossover_sentence(told)
    return replace(told, sentence=f"{sentence} {interference.sentence}")


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
