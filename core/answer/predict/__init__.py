"""Prediction whether a GPU that is not available would be faster: a range from published timings.

A prediction is never a row, a statistic or a crossover. `predict` predicts one training, and `sample_curve` the values
of a size, with the composition of the network at each, as data for a slider. GPUs, their constants and the prediction
error on published trainings are in `cards`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ...errors import InvalidValue
from ...question.experiment import Point
from ...question.models.operations import StepWork
from ...question.sweep import vary
from .cards import Accuracy, Card, Comparison, Miss, card_of_device, find_card, list_cards, load_accuracy
from .prediction import (
    ANSWERS,
    CONFIDENCE,
    NOT_COVERED,
    PARTS,
    CpuSide,
    CpuStep,
    Prediction,
    Range,
    compare_run,
    compare_runs,
    describe_training,
    predict,
    predict_step,
    read_cpu,
)

__all__ = [
    "ANSWERS",
    "CONFIDENCE",
    "NOT_COVERED",
    "PARTS",
    "Accuracy",
    "Card",
    "Comparison",
    "CpuSide",
    "CpuStep",
    "Miss",
    "Prediction",
    "Range",
    "card_of_device",
    "compare_run",
    "compare_runs",
    "find_card",
    "list_cards",
    "load_accuracy",
    "predict",
    "read_cpu",
    "sample_curve",
    "sample_figures",
]


FIGURES: dict[str, Callable[[Point, StepWork], int]] = {
    "parameters": lambda point, _: point.network.parameters,
    "flops": lambda point, _: point.network.flops_per_step(point.batch_size),
    "memory_bytes": lambda point, _: point.network.memory_bytes(point.batch_size),
    "launches": lambda _, work: work.launches,
}
"""Figures of a step that are known at any size."""

DEGREE = 3
"""Highest power of a size that is tried in the closed form of a figure."""


def sample_curve(
    point: Point,
    axis: str,
    values: Sequence[float],
    card: Card | str,
    cpu: CpuSide | None = None,
    *,
    record: Mapping[str, Comparison] | None = None,
) -> dict[str, Any]:
    """Return predictions and figures of the network at each size of an axis, as lists of the length of `values`.

    Args:
        point: the training whose axis is varied.
        axis: a size of the training.
        values: values of the axis, ascending.
        card: GPU, or its key or name.
        cpu: CPU times of the machine, on this axis and at small sizes.
        record: later runs on GPUs, by key.

    Raises:
        InvalidValue: no GPU has this name, or the axis has no such size.
    """
    points = [vary(point, {axis: int(value)}) for value in values]
    steps = [cpu.interpolate_step(one, axis) if cpu else None for one in points]
    made = [predict_step(one, card, cpu, step, record=record) for one, step in zip(points, steps, strict=True)]
    named = card if isinstance(card, Card) or made[0].answer != "not_covered" else None
    known = find_card(named) if isinstance(named, str) else named
    return {
        "card": known.key if known else str(card),
        "card_name": known.title if known else str(card),
        "axis": axis,
        "values": list(values),
        "cpu_step_s": [step.step_s if step else None for step in steps],
        "measured": [bool(step and step.measured) for step in steps],
        "gpu_step_s": _ends(one.step_s for one in made),
        "speedup": _ends(one.speedup for one in made),
        "parts": {part: _ends(one.parts.get(part) for one in made) for part in PARTS},
        "answer": [one.answer for one in made],
        "bound": [one.bound for one in made],
        "sentence": [one.sentence for one in made],
        "crossover": find_crossover(values, made),
        **sample_figures(point, axis, values),
    }


def sample_figures(point: Point, axis: str, values: Sequence[float]) -> dict[str, Any]:
    """Return parameters, operations, memory and launches at each size, their closed forms, and the layers.

    Raises:
        InvalidValue: the axis has no such size.
    """
    points = [vary(point, {axis: int(value)}) for value in values]
    works = [_describe(one) for one in points]
    return {
        "figures": {
            name: [figure(one, work) for one, work in zip(points, works, strict=True)]
            for name, figure in FIGURES.items()
        },
        "closed_forms": {name: _closed_form(point, axis, values, figure) for name, figure in FIGURES.items()},
        "layers": [
            [
                {
                    "name": layer.name,
                    "shape": layer.shape,
                    "parameters": layer.parameters,
                    "flops": layer.flops,
                    "launches": layer.launches,
                }
                for layer in work.layers
            ]
            for work in works
        ],
    }


def find_crossover(values: Sequence[float], made: Sequence[Prediction]) -> dict[str, float | None] | None:
    """Return the sizes between which the GPU becomes faster: the first where it may be, and the first where it is.

    At the second size the whole range is faster. An end is None if it lies beyond the sizes; the result is None if the
    GPU is faster at no size.
    """
    spans = _ends(one.speedup for one in made)
    return find_level(values, spans["low"], spans["high"], 1.0)


def find_level(
    values: Sequence[float], low: Sequence[float | None], high: Sequence[float | None], level: float
) -> dict[str, float | None] | None:
    """Return the sizes between which a speedup passes a level: the first for its upper end, and for its lower end.

    An end is None if it lies beyond the sizes; the result is None if both do.
    """
    may, must = (_first_above(values, ends, level) for ends in (high, low))
    return None if may is None and must is None else {"low": may, "high": must}


def _first_above(values: Sequence[float], ends: Sequence[float | None], level: float) -> float | None:
    """Return the size from which an end of the range is above a level.

    The result is None if this is true at no size or at every size.
    """
    known = [(value, end / level) for value, end in zip(values, ends, strict=True) if end]
    above = [end > 1 for _, end in known]
    if not above or not above[-1] or all(above):
        return None
    place = len(above) - above[::-1].index(False)
    (before, lower), (after, upper) = known[place - 1], known[place]
    share = -math.log(lower) / (math.log(upper) - math.log(lower))
    return float(before * (after / before) ** share)


def _describe(point: Point) -> StepWork:
    if point.training or point.is_fit:
        raise InvalidValue("model", point.model, "a network of the catalogue, whose operations are known")
    return describe_training(point)


def _ends(ranges: Iterable[Range | None]) -> dict[str, list[float | None]]:
    listed = list(ranges)
    return {
        "low": [one.low if one else None for one in listed],
        "high": [one.high if one else None for one in listed],
    }


def _closed_form(
    point: Point, axis: str, values: Sequence[float], figure: Callable[[Point, StepWork], int]
) -> list[float] | None:
    """Return the coefficients of a figure as a polynomial in the size, the constant first; None if it is none."""
    first, last = int(values[0]), int(values[-1])
    places = sorted({first + round(share * (last - first) / (2 * DEGREE + 1)) for share in range(2 * DEGREE + 2)})
    if len(places) <= DEGREE + 1:
        places = list(range(first, last + 1))
    found = []
    for place in places:
        sized = vary(point, {axis: int(place)})
        found.append((Fraction(place), Fraction(figure(sized, _describe(sized)))))
    if len(found) < 2:
        return None
    degree = min(DEGREE, len(found) - 2) if len(found) > 2 else 1
    coefficients = _interpolate(found[: degree + 1])
    if any(sum(c * x**power for power, c in enumerate(coefficients)) != y for x, y in found):
        return None
    while len(coefficients) > 1 and not coefficients[-1]:
        coefficients.pop()
    return [float(one) for one in coefficients]


def _interpolate(points: Sequence[tuple[Fraction, Fraction]]) -> list[Fraction]:
    """Return the coefficients of the polynomial through points (Newton)."""
    table, xs = [y for _, y in points], [x for x, _ in points]
    for order in range(1, len(xs)):
        for place in range(len(xs) - 1, order - 1, -1):
            table[place] = (table[place] - table[place - 1]) / (xs[place] - xs[place - order])
    coefficients = [Fraction(0)] * len(xs)
    for place in range(len(xs) - 1, -1, -1):
        shifted = [Fraction(0), *coefficients[:-1]]
        coefficients = [up - xs[place] * down for up, down in zip(shifted, coefficients, strict=True)]
        coefficients[0] += table[place]
    return coefficients
