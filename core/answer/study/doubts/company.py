"""A busy machine in the answer of many sizes: what was seen over all of them is named, and bounds what is claimed.

Three or six pairs a size tell of no other programs, so blocks of all sizes are looked at together.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from core.answer.run import busy
from core.answer.run.busy import PairInterference
from core.answer.study import wording
from core.answer.study.doubts.cautions import ONLY_POWERS
from core.answer.study.result import Crossover, Evidence
from core.results.schema import Trial


def study_interference(pairs: Sequence[tuple[Trial, Trial]]) -> PairInterference | None:
    """What other programs did to the rows of two devices, a pair a size; None on a quiet machine."""
    if not pairs:
        return None
    baselines, challengers = zip(*pairs, strict=True)
    return busy.pair_interference(busy.row_interference(baselines), busy.row_interference(challengers))


def evidence_interference(evidence: Sequence[Evidence], baseline: str, challenger: str) -> PairInterference | None:
    """The same of somebody's own timings, by how they spread."""
    sides = [entry.baseline_s for entry in evidence], [entry.challenger_s for entry in evidence]
    return busy.pair_interference(
        busy.readings_interference(baseline, sides[0]), busy.readings_interference(challenger, sides[1])
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
