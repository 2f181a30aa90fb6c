"""Charts of tutorials: published beside measured.

Draws what `core.answer` found. Published numbers are hollow and dashed wherever they stand beside measured ones, so
that neither is taken for the other.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from core import units
from core.answer.charts import look
from core.answer.charts.look import Row, Spec
from core.answer.charts.speedups import speedup_axis
from core.answer.lesson.claims import Number
from core.answer.lesson.tutorial import PublishedBeside

HEIGHT = 400
"""Pixels of a chart with axes, legend included."""

SPEEDUP = "Speedup over the first device"
"""What the chart of speedups is called; so its legend need not name both devices, which a phone would cut."""


def times(beside: PublishedBeside) -> Spec:
    """Seconds of a training or an epoch, published and measured, against what the tutorial varies."""
    y = look.logged(f"time per {beside.per}", _ends(beside.times), look.SECONDS)
    return _side_by_side(beside, beside.times, y, units.duration)


def speedups(beside: PublishedBeside) -> Spec:
    """Speedup of the challenger, published and measured; the line at 1 is where neither wins."""
    y = speedup_axis("speedup", _ends(beside.speedups))
    return _side_by_side(beside, beside.speedups, y, units.ratio, even=True)


def _side_by_side(
    beside: PublishedBeside, marks: Sequence[Number], y: dict[str, Any], shown: Any, *, even: bool = False
) -> Spec:
    placed = [mark for mark in marks if mark.place is not None]
    rows: list[Row] = [_row(mark, shown) for mark in placed]
    x = _places(beside, placed)
    series = list(dict.fromkeys(mark.series for mark in placed))
    layers = [
        *_rules(beside, marks, x, y, even=even),
        *_series_layers(series, placed, x, y, line=beside.axis_kind != "names"),
    ]
    rules: list[Row] = [{"layer": "even", "value": 1.0}] if even else []
    rules += [{"layer": "claim", "value": mark.value, "series": mark.series} for mark in marks if mark.place is None]
    if beside.wins_from is not None:
        rules.append({"layer": "wins", "place": beside.wins_from, "said": "published: GPU wins from here"})
    return look.finished(alt.layer(*layers), [*rules, *rows], height=HEIGHT)


def _row(mark: Number, shown: Any) -> Row:
    spread = "" if mark.low is None or mark.high is None else f" ({shown(mark.low)} to {shown(mark.high)})"
    return {
        "layer": "mark",
        "series": mark.series,
        "place": mark.place,
        "label": mark.label,
        "value": mark.value,
        "low": mark.low,
        "high": mark.high,
        "shown": f"{shown(mark.value)}{spread}",
    }


def _places(beside: PublishedBeside, marks: Sequence[Number]) -> alt.X:
    if beside.axis_kind == "names":
        names = list(dict.fromkeys(mark.label for mark in sorted(marks, key=lambda mark: mark.place or 0.0)))
        flat = sum(len(name) + 1 for name in names) <= look.LEGEND_LETTERS
        axis = alt.Axis(labelAngle=0 if flat else -35, labelLimit=150, labelOverlap=False)
        return alt.X("label:N", sort=names, title=beside.axis, axis=axis, scale=alt.Scale(padding=0.5))
    places = [mark.place for mark in marks if mark.place is not None]
    if beside.axis_kind == "log":
        return alt.X("place:Q", **look.logged(beside.axis, places, look.COMPACT, labelOverlap="greedy", grid=False))
    scale = alt.Scale(zero=False, nice=False, padding=look.EDGE * 2)
    return alt.X("place:Q", title=beside.axis, scale=scale, axis=alt.Axis(tickMinStep=1, format="d", grid=False))


def _rules(
    beside: PublishedBeside, marks: Sequence[Number], x: alt.X, y: dict[str, Any], *, even: bool
) -> list[alt.Chart | alt.LayerChart]:
    """Lines across the chart: neither wins, what is said of the whole axis, and where the GPU is said to win."""
    layers: list[alt.Chart | alt.LayerChart] = []
    grey: dict[str, Any] = {"color": look.NEUTRAL, "strokeWidth": 1.5}
    if even:
        rule = look.layer("even").mark_rule(**grey)
        layers.append(rule.encode(y=alt.Y("value:Q", **y)))
    if any(mark.place is None for mark in marks):
        base = look.layer("claim").encode(y=alt.Y("value:Q", **y))
        text = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=look.NEUTRAL)
        layers += [base.mark_rule(strokeDash=[6, 3], **grey), text.encode(text="series:N", x=alt.value(0))]
    if beside.wins_from is not None:
        base = look.layer("wins").encode(x=x)
        layers.append(base.mark_rule(strokeDash=[6, 3], **grey))
        text = base.mark_text(align="right", dx=-4, color=look.NEUTRAL)
        layers.append(text.encode(text="said:N", y=alt.value(8)))
    return layers


def _series_layers(
    series: Sequence[str], marks: Sequence[Number], x: alt.X, y: dict[str, Any], *, line: bool
) -> list[alt.Chart]:
    first = {mark.series: mark for mark in reversed(marks)}
    origins = {name: first[name].origin for name in series}
    colours = _series_colours(series, first)
    shapes = [look.SHAPES[at % len(look.SHAPES)] for at in range(len(series))]
    dashes = [[5, 4] if origins[name] == "published" else [1, 0] for name in series]
    legend = look.legend(series, symbolSize=100, symbolOpacity=1, symbolStrokeWidth=0)
    tooltip = look.tooltips(("series", "from"), ("label", "at"), ("shown", "value"))
    colour = look.by(alt.Color, "series", series, colours, legend=legend)
    base = look.layer("mark").encode(x=x, color=colour, tooltip=tooltip)
    value = alt.Y("value:Q", **y)
    layers = [
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", **y), y2="high:Q")
    ]
    if line:
        dash = look.by(alt.StrokeDash, "series", series, dashes, legend=None)
        layers.append(base.mark_line(strokeWidth=2).encode(y=value, strokeDash=dash))
    filled = [name for name in series if origins[name] != "published"]
    solid = alt.condition(alt.FieldOneOfPredicate(field="series", oneOf=filled), alt.value(1.0), alt.value(0.0))
    points = base.mark_point(size=60, strokeWidth=2).encode(
        y=value,
        shape=look.by(alt.Shape, "series", series, shapes, legend=legend),
        fill=look.by(alt.Fill, "series", series, colours, legend=legend),
        fillOpacity=solid,
    )
    return [*layers, points]


def _series_colours(series: Sequence[str], first: Mapping[str, Number]) -> list[str]:
    """By device kind; the second of one kind and origin has a lighter shade."""
    colours: dict[str, str] = {}
    for origin in ("published", "measured", "recorded"):
        names = [name for name in series if first[name].origin == origin]
        colours |= dict(zip(names, look.colours([first[name].kind for name in names]), strict=True))
    return [colours[name] for name in series]


def _ends(marks: Sequence[Number]) -> list[float]:
    return [value for mark in marks for value in (mark.value, mark.low, mark.high) if value]
