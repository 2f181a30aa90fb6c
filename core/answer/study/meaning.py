"""What one crossing means to who asked: how many parameters that is, and what the faster device saves beyond it.

The saving at twice the size comes from what is expected there (`core.answer.study.expected`), so it is said within the
measured sizes only.
"""

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from core import units
from core.answer.study import wording
from core.answer.study.expected import expect_speedup
from core.answer.study.result import Crossover, Evidence
from core.errors import InvalidValue
from core.question import models
from core.question.device_kinds import inline_device_name
from core.question.experiment import Point
from core.question.models.boosting import field_of_answer_axis

UNKNOWN_AXIS = "size"
"""An axis of which nobody but its owner knows what a size is."""

SAVING_FACTOR = 2
"""Times the size of the crossing at which the saving is told: far enough for one device to be clearly ahead."""


def meaning_sentences(training: Point, answer: Crossover, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """What a crossing means, a sentence each, for a training of any size; none where there is no single one."""
    if answer.outcome != "crossing" or answer.estimate is None or answer.axis == UNKNOWN_AXIS:
        return ()
    begin = math.ceil(answer.estimate) if wording.is_whole_axis(answer.axis) else answer.estimate
    return (*_parameters(training, answer.axis, begin), *_saving(training, answer, evidence, SAVING_FACTOR * begin))


def _parameters(training: Point, axis: str, size: float) -> Iterable[str]:
    if axis not in models.AXES:
        return
    with contextlib.suppress(InvalidValue):
        count = _point_at_size(training, axis, size).network.parameters
        where = wording.place_on_axis(axis, wording.format_size(size))
        yield f"{where[:1].upper()}{where[1:]} makes {units.format_count(count)} parameters."


def _saving(training: Point, answer: Crossover, evidence: Sequence[Evidence], size: float) -> Iterable[str]:
    timed = sorted((one for one in answer.sizes if one.speedup and one.baseline_s), key=lambda one: one.size)
    where = wording.place_on_axis(answer.axis, wording.format_size(float(f"{size:.3g}") if size >= 1_000 else size))
    if size > timed[-1].size:
        yield (
            f"Twice that, {where}, lies beyond the measured sizes, which end at {wording.format_size(timed[-1].size)}: "
            "what is saved there is not known."
        )
        return
    told, steps = expect_speedup(evidence, size), _epoch_steps(training, answer.axis, size)
    if told is None or steps is None:
        return
    sizes_log, steps_log = np.log([one.size for one in timed]), np.log([one.baseline_s or 0.0 for one in timed])
    step_s = math.exp(float(np.interp(math.log(size), sizes_log, steps_log)))
    baseline_s, saved = step_s * steps, [1 - 1 / ratio for ratio in (told.low, told.speedup, told.high)]
    winner, loser, whole_s = answer.challenger, answer.baseline, baseline_s
    if not answer.crossings[0].challenger_above:
        winner, loser, whole_s = answer.baseline, answer.challenger, baseline_s / told.speedup
        saved = [1 - ratio for ratio in (told.high, told.speedup, told.low)]
    low, middle, high = (whole_s * share for share in saved)
    each = "a fit" if training.is_fit else "an epoch"
    saves = (
        f"should be saved on {inline_device_name(wording.short_device(winner))} ({_saving_range(low, high)}), "
        f"{told.source}"
    )
    yield (
        f"At twice that, {where}, about {_rough_duration(max(middle, 0.0))} of the {_rough_duration(whole_s)} that "
        f"{each} takes on {inline_device_name(wording.short_device(loser))} {saves}."
    )


def _saving_range(low: float, high: float) -> str:
    if low >= 0:
        return f"{_rough_duration(low)} to {_rough_duration(high)}"
    return f"between {_rough_duration(-low)} lost and {_rough_duration(max(high, 0.0))} saved"


def _rough_duration(seconds: float) -> str:
    """A time that is expected and not measured, no finer than its interval."""
    return units.format_duration(seconds, digits=2)


def _epoch_steps(training: Point, axis: str, size: float) -> int | None:
    """Steps of an epoch at a size; None where no training has it."""
    if axis == "parameters":
        return training.steps_per_epoch
    try:
        return _point_at_size(training, field_of_answer_axis(axis), size).steps_per_epoch
    except InvalidValue:
        return None


def _point_at_size(training: Point, axis: str, size: float) -> Point:
    sized: dict[str, Any] = {axis: int(size)}
    return replace(training, **sized)
