"""A question in words: as a line for people, and as the command line asks it."""

import shlex
from collections.abc import Collection, Mapping
from typing import Any

from . import models
from .experiment import Experiment, Point
from .fields import FIELDS, SIZE_AXES, TRAINING, axis_title, short_label, value_label
from .models.boosting import answer_axis_name
from .sweep import Axis, Sweep

SPELT = {"budget_s": "budget", "point_budget_s": "point-budget"}
"""Options that are not called like their field."""


def describe_question(question: Point | Experiment | Sweep, *, without: Collection[str] = ()) -> str:
    """A question in one line, e.g. "Digits, 1,257 samples · Fully connected, hidden size 128 · batch 64 · 5 epochs".

    Args:
        question: a training, alone or with its devices, or a sweep, of which is said first what is varied.
        without: fields of the training that are left out, because they are varied.
    """
    if isinstance(question, Sweep):
        ends = [
            f"{label_axis(axis.name, question.point.model)} {_format_number(axis.values[0])} to "
            f"{_format_number(axis.values[-1])}"
            for axis in question.axes
        ]
        names = [axis.name for axis in question.axes]
        varied = (
            set(names) if question.point.training else fields_set_by_axes(names, models.family(question.point.model))
        )
        along_what = ", ".join(ends)
        return f"{along_what[:1].upper()}{along_what[1:]} · {describe_question(question.point, without=varied)}"
    point = question if isinstance(question, Point) else question.point
    if point.training:
        size = [] if "size" in without else [f"size {point.size:,}"]
        return ", ".join([describe_training(point), *size])
    left_out = {*without} | point.idle
    groups: dict[str, list[str]] = {}
    for name in TRAINING:
        value = getattr(point, name)
        if FIELDS[name].brief and name not in left_out and not _unsaid(name, value):
            group = FIELDS[name].panel if FIELDS[name].panel in ("data", "model") else name
            said = f"{value:,} rows" if name == "samples" and point.is_fit else _brief(name, value)
            groups.setdefault(group, []).append(said)
    return " · ".join(map(", ".join, groups.values()))


def label_axis(axis: str, model: str) -> str:
    """An axis of a training for people: that of a fit's samples is called rows."""
    return axis_title(answer_axis_name(axis, model))


def describe_training(row: Any) -> str:
    """What a row, or a line of a study, trained, in a few words: "Fully connected on Digits", or the name of a file."""
    if row.training:
        return f"{row.training} (one's own, source {row.source_hash[:6]})"
    return f"{value_label('model', row.model)} on {short_label('dataset', row.dataset)}"


def fields_set_by_axes(names: Collection[str], family: models.Family) -> set[str]:
    """Fields that axes set, so that nothing else says what they are."""
    return {*names, *([family.size] if "parameters" in names else [])}


def build_command(question: Experiment | Sweep) -> str:
    """The command line that asks the same; what does not shape the training is left out."""
    if isinstance(question, Sweep):
        limits = {name: format_value(getattr(question, name)) for name in ("point_budget_s", "pairs")}
        what, varied, axes = "sweep", {axis.name for axis in question.axes}, _axes(question)
    else:
        what, varied, axes, limits = "run", set[str](), {}, {}
    fields = ("training", "size") if question.point.training else TRAINING
    idle = varied if question.point.training else varied | question.point.idle
    settings = {name: getattr(question.point, name) for name in fields if name not in idle}
    told = {name: format_value(value) for name, value in settings.items() if not _unsaid(name, value)}
    given = {name: value for name, value in told.items() if value != "0" or name == "seed"}
    devices = {"devices": ",".join(map(str, question.contenders)), "budget_s": format_value(question.budget_s)}
    return f"python -m core {what} {format_options({**given, **axes, **devices, **limits})}"


def format_options(values: Mapping[str, object]) -> str:
    """Values by field as options of the command line, several for a list; what is None, 0 or false is left out."""
    words: list[str] = []
    for name, value in values.items():
        option = f"--{SPELT.get(name, name).replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value not in (None, False, 0):
            words += [word for one in (value if isinstance(value, list) else [value]) for word in (option, str(one))]
    return shlex.join(words)


def simplify_number(value: float) -> float:
    """A number as controls hold and links spell it: 60.0 is 60."""
    return int(value) if value == int(value) else value


def format_value(value: object) -> str:
    """A value as links and the command line spell it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(simplify_number(value)) if isinstance(value, float) else str(value)


def _axes(sweep: Sweep) -> dict[str, object]:
    """What a sweep varies, as values of options."""
    listed = {
        axis.name: ",".join(f"{value:g}" if value % 1 else str(int(value)) for value in axis.values)
        for axis in sweep.axes
    }
    if len(sweep.axes) > 1:
        return {"axis": [f"{name}={values}" for name, values in listed.items()]}
    axis = sweep.axes[0]
    low, high = axis.values[0], axis.values[-1]
    if axis.name in SIZE_AXES and low < high and axis == Axis.from_range(axis.name, low, high, adaptive=sweep.adaptive):
        return {"axis": axis.name, "range": f"{int(low)}:{int(high)}", "adaptive": sweep.adaptive}
    return {"axis": axis.name, "values": listed[axis.name], "adaptive": sweep.adaptive}


def _unsaid(name: str, value: object) -> bool:
    """Whether a field that came later is as it always was, and need not be said."""
    entry = FIELDS.get(name)
    return entry is not None and entry.later and value == entry.absent


def _brief(name: str, value: object) -> str:
    """A field of a training as a line says it: "batch 64", "1 epoch"."""
    shown = f"{value:,}" if isinstance(value, int) else short_label(name, format_value(value))
    said = FIELDS[name].brief.format(shown)
    return said.removesuffix("s") if value == 1 and FIELDS[name].brief.startswith("{} ") else said


def _format_number(value: float) -> str:
    return f"{value:,}" if value == int(value) else f"{value:g}"
