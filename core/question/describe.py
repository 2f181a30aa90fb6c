"""A question in words: as a line for people, and as the command line asks it."""

import shlex
from collections.abc import Collection, Mapping
from typing import Any

from core.question import models
from core.question.experiment import Experiment, Point
from core.question.fields import FIELDS, SIZE_AXES, TRAINING, axis_title, label, short_label
from core.question.models.boosting import axis_called
from core.question.sweep import Axis, Sweep

SPELT = {"budget_s": "budget", "point_budget_s": "point-budget"}
"""Options that are not called like their field."""


def sentence(asked: Point | Experiment | Sweep, *, without: Collection[str] = ()) -> str:
    """A question in one line, e.g. "Digits, 1,257 samples · Fully connected, hidden size 128 · batch 64 · 5 epochs".

    Args:
        asked: a training, alone or with its devices, or a sweep, of which is said first what is varied.
        without: fields of the training that are left out, because they are varied.
    """
    if isinstance(asked, Sweep):
        ends = [
            f"{along(axis.name, asked.point.model)} {_number(axis.values[0])} to {_number(axis.values[-1])}"
            for axis in asked.axes
        ]
        names = [axis.name for axis in asked.axes]
        varied = set(names) if asked.point.training else taken(names, models.family(asked.point.model))
        along_what = ", ".join(ends)
        return f"{along_what[:1].upper()}{along_what[1:]} · {sentence(asked.point, without=varied)}"
    point = asked if isinstance(asked, Point) else asked.point
    if point.training:
        size = [] if "size" in without else [f"size {point.size:,}"]
        return ", ".join([in_short(point), *size])
    left_out = {*without} | point.idle
    groups: dict[str, list[str]] = {}
    for name in TRAINING:
        value = getattr(point, name)
        if FIELDS[name].brief and name not in left_out and not _unsaid(name, value):
            group = FIELDS[name].panel if FIELDS[name].panel in ("data", "model") else name
            said = f"{value:,} rows" if name == "samples" and point.is_fit else _brief(name, value)
            groups.setdefault(group, []).append(said)
    return " · ".join(map(", ".join, groups.values()))


def along(axis: str, model: str) -> str:
    """An axis of a training for people: that of a fit's samples is called rows."""
    return axis_title(axis_called(axis, model))


def in_short(row: Any) -> str:
    """What a row, or a line of a study, trained, in a few words: "Fully connected on Digits", or the name of a file."""
    if row.training:
        return f"{row.training} (one's own, source {row.source_hash[:6]})"
    return f"{label('model', row.model)} on {short_label('dataset', row.dataset)}"


def taken(names: Collection[str], family: models.Family) -> set[str]:
    """Fields that axes set, so that nothing else says what they are."""
    return {*names, *([family.size] if "parameters" in names else [])}


def command(asked: Experiment | Sweep) -> str:
    """The command line that asks the same; what does not shape the training is left out."""
    if isinstance(asked, Sweep):
        limits = {name: text(getattr(asked, name)) for name in ("point_budget_s", "pairs")}
        what, varied, axes = "sweep", {axis.name for axis in asked.axes}, _axes(asked)
    else:
        what, varied, axes, limits = "run", set[str](), {}, {}
    fields = ("training", "size") if asked.point.training else TRAINING
    idle = varied if asked.point.training else varied | asked.point.idle
    settings = {name: getattr(asked.point, name) for name in fields if name not in idle}
    told = {name: text(value) for name, value in settings.items() if not _unsaid(name, value)}
    given = {name: value for name, value in told.items() if value != "0" or name == "seed"}
    devices = {"devices": ",".join(map(str, asked.contenders)), "budget_s": text(asked.budget_s)}
    return f"python -m core {what} {options({**given, **axes, **devices, **limits})}"


def options(given: Mapping[str, object]) -> str:
    """Values by field as options of the command line, several for a list; what is None, 0 or false is left out."""
    words: list[str] = []
    for name, value in given.items():
        option = f"--{SPELT.get(name, name).replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value not in (None, False, 0):
            words += [word for one in (value if isinstance(value, list) else [value]) for word in (option, str(one))]
    return shlex.join(words)


def plain(value: float) -> float:
    """A number as controls hold and links spell it: 60.0 is 60."""
    return int(value) if value == int(value) else value


def text(value: object) -> str:
    """A value as links and the command line spell it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(plain(value)) if isinstance(value, float) else str(value)


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
    if axis.name in SIZE_AXES and low < high and axis == Axis.between(axis.name, low, high, adaptive=sweep.adaptive):
        return {"axis": axis.name, "range": f"{int(low)}:{int(high)}", "adaptive": sweep.adaptive}
    return {"axis": axis.name, "values": listed[axis.name], "adaptive": sweep.adaptive}


def _unsaid(name: str, value: object) -> bool:
    """Whether a field that came later is as it always was, and need not be said."""
    entry = FIELDS.get(name)
    return entry is not None and entry.later and value == entry.absent


def _brief(name: str, value: object) -> str:
    """A field of a training as a line says it: "batch 64", "1 epoch"."""
    shown = f"{value:,}" if isinstance(value, int) else short_label(name, text(value))
    said = FIELDS[name].brief.format(shown)
    return said.removesuffix("s") if value == 1 and FIELDS[name].brief.startswith("{} ") else said


def _number(value: float) -> str:
    return f"{value:,}" if value == int(value) else f"{value:g}"
