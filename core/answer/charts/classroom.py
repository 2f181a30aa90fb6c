"""Many answers to one question: everybody's in a class, by device, before what was expected; and those of machines.

Takes plain rows and not the class's own types, so that it lies below them. Nicknames, and names of machines, are data
of the chart, never its markup.
"""

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from core.answer.charts import look
from core.answer.charts.look import Row, Spec
from core.answer.charts.studies import size_axis, size_channel
from core.answer.study import wording
from core.answer.study.result import Crossover
from core.question.fields import axis_title

MOST_MARKS = 200
"""Students that are drawn one by one."""

MOST_RATIO = 1e4
"""Speedup, and its inverse, up to which one is drawn where it is: one row from a file must not flatten all the others.
A crossover is drawn up to a tenth of the smallest size and ten times the largest."""

ROW = 46
"""Pixels of a pair of devices."""

ENDS = {"gpu_always": "faster at every size", "cpu_always": "faster at no size"}

MOST_MACHINES = 40
"""Machines on one chart."""

MACHINE = 26
"""Pixels of a machine."""

FOUND = ("crossover", *ENDS.values())
LOOKS = ("circle", "triangle-left", "triangle-right")
"""What a machine found, with the mark that says so; one that found several, or nothing, has none."""


@dataclass(frozen=True, kw_only=True)
class StudentResult:
    """One student's result, grouped by pair of devices: size of the crossover, or the speedup, with its interval.

    `outcome` is a key of `core.answer.study.result.OUTCOMES`, `said` the answer in words.
    """

    who: str
    devices: str
    kind: str
    value: float | None
    low: float | None
    high: float | None
    outcome: str
    said: str


def crossovers(marks: Sequence[StudentResult], expected: Mapping[float, int], axis: str) -> Spec:
    """Everybody's crossover by pair of devices over the sizes, and how many expected it at each.

    Who found the challenger faster at every size, or at none, stands at the end. `axis` is its name for people.
    """
    places = sorted(expected)
    drawn = [mark for mark in marks[:MOST_MARKS] if mark.value or mark.outcome in ENDS]
    rows = [_within(_placed(mark, places[0], places[-1]), places[0] / 10, places[-1] * 10) for mark in drawn]
    counted: list[Row] = [{"size": size, "students": expected[size]} for size in places if expected[size]]
    values = [*places, *(row["at"] for row in rows)]
    x = look.logged(axis, values, look.COMPACT, labelOverlap="greedy", grid=False)
    return _layered(rows, counted, x, "crossover")


def speedups(marks: Sequence[StudentResult]) -> Spec:
    """Everybody's speedup by pair of devices; at 1 neither device is faster."""
    drawn = [mark for mark in marks[:MOST_MARKS] if mark.value]
    rows = [_within(_placed(mark, 1, 1), 1 / MOST_RATIO, MOST_RATIO) for mark in drawn]
    values = [row[end] for row in rows for end in ("at", "low", "high")] + [0.5, 2]
    return _layered(rows, [], look.logged("speedup", values, look.EVEN, grid=False), "speedup")


def height(groups: int) -> int:
    """Pixels that a chart of so many pairs of devices takes, its legend included."""
    return look.HEIGHT + ROW * groups


def _placed(mark: StudentResult, lowest: float, highest: float) -> Row:
    at = mark.value or (highest if mark.outcome == "cpu_always" else lowest)
    return {
        "who": mark.who,
        "devices": mark.devices,
        "kind": mark.kind,
        "at": at,
        "low": mark.low or at,
        "high": mark.high or at,
        "found": ENDS.get(mark.outcome, "crossover") if not mark.value else "measured",
        "said": mark.said,
    }


def _within(row: Row, lowest: float, highest: float) -> Row:
    return row | {end: min(max(row[end], lowest), highest) for end in ("at", "low", "high")}


def _layered(rows: list[Row], counted: list[Row], x: dict[str, Any], what: str) -> Spec:
    """Intervals and points in a lane for each pair of devices; the tally behind, with an axis of its own."""
    devices = list(dict.fromkeys(row["devices"] for row in rows))
    seen: collections.Counter[str] = collections.Counter()
    sizes = collections.Counter(row["devices"] for row in rows)
    for row in rows:  # side by side within their lane, in the order of joining
        pair = row["devices"]
        row["lane"] = devices.index(pair) + 0.15 + 0.7 * (seen[pair] + 0.5) / sizes[pair]
        seen[pair] += 1
    chart = alt.layer(_tally(counted, x), *_students(rows, devices, x, what)).resolve_scale(y="independent")
    return look.finished(chart, [*counted, *rows], height=height(len(devices)))


def _tally(counted: list[Row], x: dict[str, Any]) -> alt.Chart:
    y = alt.Y(
        "students:Q",
        title="students who expect it there",
        axis=alt.Axis(orient="right", tickMinStep=1, format="d", grid=False) if counted else None,
        scale=alt.Scale(domainMin=0, domainMax=max((row["students"] for row in counted), default=1) * 1.3),
    )
    rules: alt.Chart = alt.Chart().transform_filter("isValid(datum.students)")
    rules = rules.mark_rule(color=look.NEUTRAL, opacity=0.35, strokeWidth=22)
    tooltip = look.tooltips(("size", "expected from", "~r"), ("students", "students", "d"))
    return rules.encode(x=alt.X("size:Q", **x), y=y, y2=alt.datum(0), tooltip=tooltip)


def _students(rows: list[Row], devices: list[str], x: dict[str, Any], what: str) -> list[alt.Chart]:
    kinds = {row["devices"]: row["kind"] for row in rows}
    colours = look.colours([kinds[name] for name in devices])
    lanes = alt.Scale(domain=[0, max(1, len(devices))], nice=False, zero=False)
    legend = look.legend(devices, symbolSize=120, symbolOpacity=1, symbolStrokeWidth=0)
    tooltip = look.tooltips(("who", "student"), ("devices", "devices"), ("at", what, ".3~s"), ("said", "answer"))
    base = (
        alt.Chart()
        .transform_filter("isValid(datum.at)")
        .encode(
            x=alt.X("at:Q", **x),
            y=alt.Y("lane:Q", title=None, scale=lanes, axis=None),
            color=look.by(alt.Color, "devices", devices, colours, legend=legend),
            tooltip=tooltip,
        )
    )
    ends = ("circle", "triangle-left", "triangle-right")
    shape = look.by(alt.Shape, "found", ["measured", *ENDS.values()], ends, legend=None)
    return [
        base.mark_rule(opacity=0.6, strokeWidth=2).encode(x=alt.X("low:Q", **x), x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(shape=shape),
    ]


def by_machine(answers: Mapping[str, Crossover], kinds: Mapping[str, str]) -> Spec:
    """Where each machine's crossover lies; faster at every size, or at none, stands at the end of its own."""
    names = list(answers)[:MOST_MACHINES]
    axis = answers[names[0]].axis
    sizes = [size.size for name in names for size in answers[name].sizes]
    rows = [row for name in names for row in _machine_rows(name, answers[name])]
    values = [*sizes, *(row[end] for row in rows for end in ("low", "high"))]
    known = list(dict.fromkeys(kinds[name] for name in names))
    hues = dict(zip(known, look.colours(known), strict=True))
    x, ticks = size_channel(axis, values), size_axis(values)
    base = alt.Chart().encode(
        y=alt.Y(
            "machine:N",
            title=None,
            scale=alt.Scale(domain=names, padding=0.6),
            axis=alt.Axis(labelLimit=150, labelOverlap=False, grid=True),
        ),
        color=look.by(alt.Color, "machine", names, [hues[kinds[name]] for name in names], legend=None),
        tooltip=look.tooltips(("machine", "machine"), ("where", axis_title(axis)), ("found", "answer")),
    )
    there = [found for found in FOUND if any(row["found"] == found for row in rows)]
    marks = dict(zip(FOUND, LOOKS, strict=True))
    mark: dict[str, Any] = {
        "symbolSize": 120,
        "symbolOpacity": 1,
        "symbolFillColor": look.NEUTRAL,
        "symbolStrokeWidth": 0,
    }
    legend = look.legend(there, **mark) if there != ["crossover"] else None
    shape = look.by(alt.Shape, "found", there, [marks[found] for found in there], legend=legend)
    spans = base.mark_rule(strokeWidth=6, opacity=0.5).encode(x=x("low", axis=ticks), x2="high:Q")
    points = base.mark_point(filled=True, size=90, opacity=1).encode(x=x("at", axis=ticks), shape=shape)
    return look.finished(alt.layer(spans, points), rows, height=alt.Step(MACHINE))


def _machine_rows(name: str, answer: Crossover) -> list[Row]:
    """The marks of one machine: a crossing each, or the end of its sizes up to which its curves do not cross."""
    if answer.outcome in ENDS:
        at = (max if answer.outcome == "cpu_always" else min)(size.size for size in answer.sizes)
        return [_machine_row(name, at, at, at, ENDS[answer.outcome])]
    found = [_machine_row(name, one.estimate, one.low, one.high, FOUND[0]) for one in answer.crossings]
    return [row for row in found if row["at"]]


def _machine_row(name: str, at: float, low: float, high: float, found: str) -> Row:
    return {
        "machine": name,
        "at": at,
        "low": low,
        "high": high,
        "found": found,
        "where": f"{wording.size(at)} ({wording.size(low)} to {wording.size(high)})" if high > low else found,
    }
