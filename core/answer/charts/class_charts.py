"""Charts of many answers to one question: results and predictions of a class, and crossovers of many machines.

The functions accept simple rows instead of the classroom's types, so this module does not depend on them. Nicknames and
machine names are data of the chart, never markup.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...question.fields import axis_title
from .. import wording
from ..result import Crossover
from . import alt, look
from .look import ChartRow, Spec
from .study_charts import size_axis, size_channel

MAX_STUDENTS_DRAWN = 200
"""Maximum number of students shown individually."""

MOST_RATIO = 1e4
"""Largest speedup, and largest inverse speedup, shown at its true position, so that one outlier cannot flatten the
chart. A crossover is clipped to the range from a tenth of the smallest size to ten times the largest.
"""

ROW = 46
"""Height of the row of one pair of devices, in pixels."""

OUTCOMES_WITHOUT_CROSSOVER = {"gpu_always": "faster at every size", "cpu_always": "faster at no size"}

MAX_MACHINES_DRAWN = 40
"""Maximum number of machines on one chart."""

MACHINE_ROW_HEIGHT = 26
"""Height of the row of one machine, in pixels."""

MACHINE_ANSWERS = ("crossover", *OUTCOMES_WITHOUT_CROSSOVER.values())
MACHINE_SHAPES = ("circle", "triangle-left", "triangle-right")
"""Shape of the mark for each entry of `MACHINE_ANSWERS`."""


@dataclass(frozen=True, kw_only=True)
class StudentResult:
    """One student's result, grouped by pair of devices: size of the crossover, or the speedup, with its interval.

    `outcome` is a key of `core.answer.result.OUTCOMES`, `said` is the answer in words.
    """

    who: str
    devices: str
    kind: str
    value: float | None
    low: float | None
    high: float | None
    outcome: str
    answer: str


def student_crossovers_chart(marks: Sequence[StudentResult], expected: Mapping[float, int], axis: str) -> Spec:
    """Chart all students' crossovers by pair of devices, and the number of predictions at each size.

    Students whose challenger was faster at every size, or at none, are at the ends of the axis. `axis` is the display
    name of the axis.
    """
    places = sorted(expected)
    drawn = [mark for mark in marks[:MAX_STUDENTS_DRAWN] if mark.value or mark.outcome in OUTCOMES_WITHOUT_CROSSOVER]
    rows = [_clip_row(_student_row(mark, places[0], places[-1]), places[0] / 10, places[-1] * 10) for mark in drawn]
    counted: list[ChartRow] = [{"size": size, "students": expected[size]} for size in places if expected[size]]
    values = [*places, *(row["at"] for row in rows)]
    x = look.log_channel(axis, values, look.COMPACT_LABEL, labelOverlap="greedy", grid=False)
    return _layer_students(rows, counted, x, "crossover")


def predictions_chart(counts: Mapping[str, int], title: str) -> Spec:
    """Return a histogram of the predictions, with a bar for each answer in the given order, even if nobody chose it."""
    rows: list[ChartRow] = [{"answer": answer, "students": count} for answer, count in counts.items()]
    most = max((*counts.values(), 1))
    base = alt.Chart().encode(
        x=alt.X("answer:N", title=title, sort=list(counts), axis=alt.Axis(labelAngle=0, labelLimit=160)),
        y=alt.Y(
            "students:Q",
            title="students",
            axis=alt.Axis(format="d", tickMinStep=1, grid=False),
            scale=alt.Scale(domain=[0, most * 1.15]),
        ),
        tooltip=look.tooltips(("answer", title), ("students", "students", "d")),
    )
    figures = base.transform_filter("datum.students > 0").mark_text(
        dy=-10, fontSize=16, fontWeight="bold", color=look.NEUTRAL
    )
    bars = base.mark_bar(color=look.NEUTRAL, opacity=0.7)
    return look.finish_chart([bars, figures.encode(text="students:Q")], rows, height=look.CHART_HEIGHT)


def student_speedups_chart(marks: Sequence[StudentResult]) -> Spec:
    """Chart all students' speedups by pair of devices; at 1 neither device is faster."""
    drawn = [mark for mark in marks[:MAX_STUDENTS_DRAWN] if mark.value]
    rows = [_clip_row(_student_row(mark, 1, 1), 1 / MOST_RATIO, MOST_RATIO) for mark in drawn]
    values = [row[end] for row in rows for end in ("at", "low", "high")] + [0.5, 2]
    return _layer_students(rows, [], look.log_channel("speedup", values, look.SPEEDUP_LABEL, grid=False), "speedup")


def student_chart_height(groups: int) -> int:
    """Return the height in pixels, legend included, of a chart with this number of device pairs."""
    return look.CHART_HEIGHT + ROW * groups


def _student_row(mark: StudentResult, lowest: float, highest: float) -> ChartRow:
    at = mark.value or (highest if mark.outcome == "cpu_always" else lowest)
    return {
        "who": mark.who,
        "devices": mark.devices,
        "kind": mark.kind,
        "at": at,
        "low": mark.low or at,
        "high": mark.high or at,
        "found": OUTCOMES_WITHOUT_CROSSOVER.get(mark.outcome, "crossover") if not mark.value else "measured",
        "said": mark.answer,
    }


def _clip_row(row: ChartRow, lowest: float, highest: float) -> ChartRow:
    return row | {end: min(max(row[end], lowest), highest) for end in ("at", "low", "high")}


def _layer_students(rows: list[ChartRow], counted: list[ChartRow], x: dict[str, Any], what: str) -> Spec:
    """Layer intervals and points, in a strip for each pair of devices, over the tally, which has a separate axis."""
    devices = list(dict.fromkeys(row["devices"] for row in rows))
    seen: collections.Counter[str] = collections.Counter()
    sizes = collections.Counter(row["devices"] for row in rows)
    for row in rows:  # side by side within their band, in the order of joining
        pair = row["devices"]
        row["lane"] = devices.index(pair) + 0.15 + 0.7 * (seen[pair] + 0.5) / sizes[pair]
        seen[pair] += 1
    layers = [_tally(counted, x), *_students(rows, devices, x, what)]
    return look.finish_chart(
        layers, [*counted, *rows], height=student_chart_height(len(devices)), resolve={"scale": {"y": "independent"}}
    )


def _tally(counted: list[ChartRow], x: dict[str, Any]) -> alt.Chart:
    y = alt.Y(
        "students:Q",
        title="students who predict it there",
        axis=alt.Axis(orient="right", tickMinStep=1, format="d", grid=False) if counted else None,
        scale=alt.Scale(domainMin=0, domainMax=max((row["students"] for row in counted), default=1) * 1.3),
    )
    rules: alt.Chart = alt.Chart().transform_filter("isValid(datum.students)")
    rules = rules.mark_rule(color=look.NEUTRAL, opacity=0.35, strokeWidth=22)
    tooltip = look.tooltips(("size", "expected from", "~r"), ("students", "students", "d"))
    return rules.encode(x=alt.X("size:Q", **x), y=y, y2=alt.datum(0), tooltip=tooltip)


def _students(rows: list[ChartRow], devices: list[str], x: dict[str, Any], what: str) -> list[alt.Chart]:
    kinds = {row["devices"]: row["kind"] for row in rows}
    colours = look.contender_colours([kinds[name] for name in devices])
    lanes = alt.Scale(domain=[0, max(1, len(devices))], nice=False, zero=False)
    legend = look.names_legend(devices, symbolSize=120, symbolOpacity=1, symbolStrokeWidth=0)
    tooltip = look.tooltips(("who", "student"), ("devices", "devices"), ("at", what, ".3~s"), ("said", "answer"))
    base = (
        alt.Chart()
        .transform_filter("isValid(datum.at)")
        .encode(
            x=alt.X("at:Q", **x),
            y=alt.Y("lane:Q", title=None, scale=lanes, axis=None),
            color=look.names_channel(alt.Color, "devices", devices, colours, legend=legend),
            tooltip=tooltip,
        )
    )
    ends = ("circle", "triangle-left", "triangle-right")
    shape = look.names_channel(
        alt.Shape, "found", ["measured", *OUTCOMES_WITHOUT_CROSSOVER.values()], ends, legend=None
    )
    return [
        base.mark_rule(opacity=0.6, strokeWidth=2).encode(x=alt.X("low:Q", **x), x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(shape=shape),
    ]


def machine_crossovers_chart(answers: Mapping[str, Crossover], kinds: Mapping[str, str]) -> Spec:
    """Chart the crossover of each machine.

    A machine with one winner at every size has its mark at the end of its range of sizes.
    """
    names = list(answers)[:MAX_MACHINES_DRAWN]
    axis = answers[names[0]].axis
    sizes = [size.size for name in names for size in answers[name].sizes]
    rows = [row for name in names for row in _machine_rows(name, answers[name])]
    values = [*sizes, *(row[end] for row in rows for end in ("low", "high"))]
    known = list(dict.fromkeys(kinds[name] for name in names))
    hues = dict(zip(known, look.contender_colours(known), strict=True))
    x, ticks = size_channel(axis, values), size_axis(values)
    base = alt.Chart().encode(
        y=alt.Y(
            "machine:N",
            title=None,
            scale=alt.Scale(domain=names, padding=0.6),
            axis=alt.Axis(labelLimit=150, labelOverlap=False, grid=True),
        ),
        color=look.names_channel(alt.Color, "machine", names, [hues[kinds[name]] for name in names], legend=None),
        tooltip=look.tooltips(("machine", "machine"), ("where", axis_title(axis)), ("found", "answer")),
    )
    there = [found for found in MACHINE_ANSWERS if any(row["found"] == found for row in rows)]
    marks = dict(zip(MACHINE_ANSWERS, MACHINE_SHAPES, strict=True))
    mark: dict[str, Any] = {
        "symbolSize": 120,
        "symbolOpacity": 1,
        "symbolFillColor": look.NEUTRAL,
        "symbolStrokeWidth": 0,
    }
    legend = look.names_legend(there, **mark) if there != ["crossover"] else None
    shape = look.names_channel(alt.Shape, "found", there, [marks[found] for found in there], legend=legend)
    spans = base.mark_rule(strokeWidth=6, opacity=0.5).encode(x=x("low", axis=ticks), x2="high:Q")
    points = base.mark_point(filled=True, size=90, opacity=1).encode(x=x("at", axis=ticks), shape=shape)
    return look.finish_chart([spans, points], rows, height=alt.Step(MACHINE_ROW_HEIGHT))


def _machine_rows(name: str, answer: Crossover) -> list[ChartRow]:
    """Return the marks of one machine: one per crossing, or one at the end of its sizes if its curves do not cross."""
    if answer.outcome in OUTCOMES_WITHOUT_CROSSOVER:
        at = (max if answer.outcome == "cpu_always" else min)(size.size for size in answer.sizes)
        return [_machine_row(name, at, at, at, OUTCOMES_WITHOUT_CROSSOVER[answer.outcome])]
    found = [_machine_row(name, one.estimate, one.low, one.high, MACHINE_ANSWERS[0]) for one in answer.crossings]
    return [row for row in found if row["at"]]


def _machine_row(name: str, place: float, low: float, high: float, answer: str) -> ChartRow:
    return {
        "machine": name,
        "at": place,
        "low": low,
        "high": high,
        "found": answer,
        "where": f"{wording.format_size(place)} ({wording.format_size(low)} to {wording.format_size(high)})"
        if high > low
        else answer,
    }
