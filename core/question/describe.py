"""A question in words: as a display line, and as a command line.

Error messages for invalid values: with names of controls on a page, with options on the command line.
"""

import functools
import shlex
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ..errors import CrossoverError, InvalidValue
from . import models
from .experiment import Experiment, Point
from .fields import FIELDS, SIZE_AXES, TRAINING, axis_title, short_label, value_label
from .models.families import answer_axis_name
from .presets import PRESETS
from .sweep import Axis, Sweep

SPELT = {"budget_s": "budget", "point_budget_s": "point-budget"}
"""Options whose names differ from their field."""


def describe_question(question: Point | Experiment | Sweep, *, without: Collection[str] = ()) -> str:
    """Return a question in one line: "Digits, 1,257 samples · Fully connected, hidden size 128 · batch 64 · 5 epochs".

    Args:
        question: a training, alone or with its devices, or a sweep, whose axes come first.
        without: fields of the training to omit, because they are varied.
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
    """Return the display name of an axis of a training: the samples of a fit are called rows."""
    return axis_title(answer_axis_name(axis, model))


def describe_training(row: Any) -> str:
    """Describe the training of a row or of a study's line: "Fully connected on Digits", or the name of a file."""
    if row.training:
        return f"{row.training} (your script, source {row.source_hash[:6]})"
    return f"{value_label('model', row.model)} on {short_label('dataset', row.dataset)}"


def fields_set_by_axes(names: Collection[str], family: models.Family) -> set[str]:
    """Return the fields that axes set; their values in the point have no meaning."""
    return {*names, *([family.size] if "parameters" in names else [])}


def build_command(question: Experiment | Sweep) -> str:
    """Return the command line of a question, without fields that do not affect the training."""
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
    """Return values by field as options of the command line, several for a list.

    Values that are None, 0 or false are omitted.
    """
    words: list[str] = []
    for name, value in values.items():
        option = f"--{SPELT.get(name, name).replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value not in (None, False, 0):
            words += [word for one in (value if isinstance(value, list) else [value]) for word in (option, str(one))]
    return shlex.join(words)


def simplify_number(value: float) -> float:
    """Return a number as in controls and links: 60.0 becomes 60."""
    return int(value) if value == int(value) else value


def format_value(value: object) -> str:
    """Return a value as written in links and on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(simplify_number(value)) if isinstance(value, float) else str(value)


def _axes(sweep: Sweep) -> dict[str, object]:
    """Return the axes of a sweep as values of options."""
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
    """Return whether a newer field has the value of earlier versions, and can be omitted."""
    entry = FIELDS.get(name)
    return entry is not None and entry.later and value == entry.absent


def _brief(name: str, value: object) -> str:
    """Return a field of a training for a line: "batch 64", "1 epoch"."""
    shown = f"{value:,}" if isinstance(value, int) else short_label(name, format_value(value))
    said = FIELDS[name].brief.format(shown)
    return said.removesuffix("s") if value == 1 and FIELDS[name].brief.startswith("{} ") else said


def _format_number(value: float) -> str:
    return f"{value:,}" if value == int(value) else f"{value:g}"


CONTROLS: dict[str, str] = {
    "adaptive": "Adaptive search",
    "also": "Vary also",
    "axes": "Vary",
    "axis": "Vary",
    "contenders": "Devices",
    "device": "Devices",
    "devices": "Devices",
    "lesson": "Lesson",
    "micro_batch": "Micro-batch",
    "nickname": "Nickname",
    "preset": "Preset",
    "recipes": "Clocks",
    "recorded": "Recorded accelerator",
    "scale": "Scale",
    "spread": "Spread",
    "tutorial": "Tutorial",
    **dict.fromkeys(
        ("lane", "lanes", "execution", "precision", "optimizer", "memory_format", "host_memory", "cudnn"), "Variants"
    ),
    "steps_per_call": "Steps per call",
}
"""Names of controls on pages for values that are not fields."""

_OPTION_OF = {
    **{name: f"--{name.replace('_', '-')}" for name in (*TRAINING, "axis", "devices", "preset", "scale", "spread")},
    **{
        name: f"--{name}"
        for name in ("basis", "clocks", "code", "days", "fair", "gpu", "name", "nickname", "on", "pairs", "price")
    },
    **{name: f"--{name}" for name in ("machine", "range", "size", "store", "study", "training", "unit", "values")},
    "axes": "--axis",
    "budget_s": "--budget",
    "contenders": "--devices",
    "device": "--devices",
    "point_budget_s": "--point-budget",
    "recipes": "--clocks",
    "sweep_budget_s": "--budget",
}
"""Options of the command line by the value that they set."""

_OPTIONS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(("adaptive", "also", "axis"), lambda axis: FIELDS[axis].label),
    **dict.fromkeys(("preset", "tutorial"), lambda name: PRESETS[name].title),
    "scale": str.capitalize,
}
"""Display texts of words in controls that are not fields; fields have their own."""


def format_page_error(error: CrossoverError) -> str:
    """Return the message with the name of the control, and with values as displayed in the control."""
    if not isinstance(error, InvalidValue):
        return str(error)
    return error.format_message(
        control(error.field), _OPTIONS.get(error.field, functools.partial(value_label, error.field))
    )


def format_command_error(error: CrossoverError) -> str:
    """Return the message with the name of the option, and with values as typed on the command line."""
    if not isinstance(error, InvalidValue):
        return str(error)
    return error.format_message(_OPTION_OF.get(error.field) or control(error.field))


def control(field: str) -> str:
    """Return the display name of a control, also for the ends of its range.

    A field without a control, such as a key of a file, is named unchanged.
    """
    bare = field.removesuffix("_range").removesuffix("_values")
    return FIELDS[bare].name if bare in FIELDS else CONTROLS.get(bare, field)
