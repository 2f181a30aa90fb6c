"""The pooled results of a class: everybody's crossover, or speedup, by device, and what was expected behind them.

Takes plain rows and not the class's own types, so that it lies below them. Nicknames are data of the chart, never its
markup.
"""

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from core.answer.charts import look
from core.answer.charts.look import Row, Spec

MOST_MARKS = 200
"""Students that are drawn one by one."""

MOST_RATIO = 1e4
"""Speedup, and its inverse, up to which one is drawn where it is: one row from a file must not flatten all the others.
A crossover is drawn up to a tenth of the smallest size and ten times the largest."""

ROW = 46
"""Pixels of a pair of devices."""

ENDS = {"gpu_always": "faster at every size", "cpu_always": "faster at no size"}


@dataclass(frozen=True, kw_only=True)
class StudentResult:
    """One student's result.

    Attributes:
        who: nickname.
        devices: what results are grouped by.
        kind: of the challenger's device.
        value: size of the crossover, or the speedup; None if there is none.
        low: lower end of its interval.
        high: upper end.
        outcome: key of `core.answer.study.result.OUTCOMES`.
        said: the answer in words.
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
    """Everybody's crossover by pair of devices over the sizes, and how many expected it where.

    Args:
        marks: one a student; who found the challenger faster at every size, or at none, stands at the end.
        expected: each size → how many expect the crossover there.
        axis: name of the axis, for people.
    """
    places = sorted(expected)
    drawn = [mark for mark in marks[:MOST_MARKS] if mark.value or mark.outcome in ENDS]
    rows = [_within(_placed(mark, places[0], places[-1]), places[0] / 10, places[-1] * 10) for mark in drawn]
    counted: list[Row] = [{"size": size, "students": expected[size]} for size in places if expected[size]]
    title = f"{axis} (log scale)"
    values = [*places, *(row["at"] for row in rows)]
    x: dict[str, Any] = {
        "title": title,
        "scale": look.log(values),
        "axis": alt.Axis(labelExpr=look.COMPACT, values=look.ticks(values), labelOverlap="greedy", grid=False),
    }
    return _layered(rows, counted, x, "crossover")


def speedups(marks: Sequence[StudentResult]) -> Spec:
    """Everybody's speedup by pair of devices; at 1 neither device is faster."""
    drawn = [mark for mark in marks[:MOST_MARKS] if mark.value]
    rows = [_within(_placed(mark, 1, 1), 1 / MOST_RATIO, MOST_RATIO) for mark in drawn]
    values = [row[end] for row in rows for end in ("at", "low", "high")] + [0.5, 2]
    x: dict[str, Any] = {
        "title": "speedup (log scale)",
        "scale": look.log(values),
        "axis": alt.Axis(labelExpr="format(datum.value, '~r') + '×'", values=look.ticks(values), grid=False),
    }
    return _layered(rows, [], x, "speedup")


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
    """A row whose places are within bounds."""
    return row | {end: min(max(row[end], lowest), highest) for end in ("at", "low", "high")}


def _layered(rows: list[Row], counted: list[Row], x: dict[str, Any], what: str) -> Spec:
    """Intervals and points in a lane for each pair of devices; the tally behind, with an axis of its own."""
    devices = list(dict.fromkeys(row["devices"] for row in rows))
    seen: collections.Counter[str] = collections.Counter()
    sizes = collections.Counter(row["devices"] for row in rows)
    for row in rows:  # side by side within their lane, in the order of joining
        of = row["devices"]
        row["lane"] = devices.index(of) + 0.15 + 0.7 * (seen[of] + 0.5) / sizes[of]
        seen[of] += 1
    chart = alt.layer(_tally(counted, x), *_students(rows, devices, x, what)).resolve_scale(y="independent")
    return look.finished(chart, [*counted, *rows], height=height(len(devices)))


def _tally(counted: list[Row], x: dict[str, Any]) -> alt.Chart:
    y = alt.Y(
        "students:Q",
        title="students who expect it there",
        axis=alt.Axis(orient="right", tickMinStep=1, format="d", grid=False) if counted else None,
        scale=alt.Scale(domainMin=0, domainMax=max((row["students"] for row in counted), default=1) * 1.3),
    )
    chart: alt.Chart = (
        alt.Chart()
        .transform_filter("isValid(datum.students)")
        .mark_rule(color=look.NEUTRAL, opacity=0.35, strokeWidth=22)
        .encode(
            x=alt.X("size:Q", **x),
            y=y,
            y2=alt.datum(0),
            tooltip=[look.tooltip("size", "expected from", "~r"), look.tooltip("students", "students", "d")],
        )
    )
    return chart


def _students(rows: list[Row], devices: list[str], x: dict[str, Any], what: str) -> list[alt.Chart]:
    of_kind = {row["devices"]: row["kind"] for row in rows}
    colours = look.colours([of_kind[name] for name in devices])
    y = alt.Y(
        "lane:Q",
        title=None,
        scale=alt.Scale(domain=[0, max(1, len(devices))], nice=False, zero=False),
        axis=None,
    )
    found = ["measured", *ENDS.values()]
    legend = look.legend(devices, symbolSize=120, symbolOpacity=1, symbolStrokeWidth=0)
    colour = alt.Color("devices:N", scale=alt.Scale(domain=devices, range=colours), legend=legend)
    base = (
        alt.Chart()
        .transform_filter("isValid(datum.at)")
        .encode(
            x=alt.X("at:Q", **x),
            y=y,
            color=colour,
            tooltip=[
                look.tooltip("who", "student"),
                look.tooltip("devices", "devices"),
                look.tooltip("at", what, ".3~s"),
                look.tooltip("said", "answer"),
            ],
        )
    )
    shape = alt.Shape(
        "found:N",
        scale=alt.Scale(domain=found, range=["circle", "triangle-left", "triangle-right"]),
        legend=None,
    )
    return [
        base.mark_rule(opacity=0.6, strokeWidth=2).encode(x=alt.X("low:Q", **x), x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(shape=shape),
    ]
