"""Charts of tutorials: published beside measured.

Draws what `core.answer` found. Published numbers are hollow and dashed wherever they stand beside measured ones, so
that neither is taken for the other.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from core import units
from core.answer.charts import look
from core.answer.charts.look import ChartRow, Spec
from core.answer.charts.speedups import speedup_axis
from core.answer.lesson.claims import ChartNumber
from core.answer.lesson.tutorial import PublishedComparison

TUTORIAL_CHART_HEIGHT = 400
"""Pixels of a chart with axes, legend included."""

SPEEDUP = "Speedup over the first device"
"""What the chart of speedups is called; so its legend need not name both devices, which a phone would cut."""


def tutorial_times_chart(comparison: PublishedComparison) -> Spec:
    """Seconds of a training or an epoch, published and measured, against what the tutorial varies."""
    y = look.log_channel(f"time per {comparison.per}", _interval_ends(comparison.times), look.SECONDS_LABEL)
    return _side_by_side(comparison, comparison.times, y, units.format_duration)


def tutorial_speedups_chart(comparison: PublishedComparison) -> Spec:
    """Speedup of the challenger, published and measured; the line at 1 is where neither wins."""
    y = speedup_axis("speedup", _interval_ends(comparison.speedups))
    return _side_by_side(comparison, comparison.speedups, y, units.format_ratio, even=True)


def _side_by_side(
    comparison: PublishedComparison,
    marks: Sequence[ChartNumber],
    y: dict[str, Any],
    format_value: Any,
    *,
    even: bool = False,
) -> Spec:
    placed = [mark for mark in marks if mark.place is not None]
    rows: list[ChartRow] = [_number_row(mark, format_value) for mark in placed]
    x = _places_channel(comparison, placed)
    series = list(dict.fromkeys(mark.series for mark in placed))
    layers = [
        *_rules(comparison, marks, x, y, even=even),
        *_series_layers(series, placed, x, y, line=comparison.axis_kind != "names"),
    ]
    rules: list[ChartRow] = [{"layer": "even", "value": 1.0}] if even else []
    rules += [{"layer": "claim", "value": mark.value, "series": mark.series} for mark in marks if mark.place is None]
    if comparison.wins_from is not None:
        rules.append({"layer": "wins", "place": comparison.wins_from, "said": "published: GPU wins from here"})
    return look.finish_chart(alt.layer(*layers), [*rules, *rows], height=TUTORIAL_CHART_HEIGHT)


def _number_row(mark: ChartNumber, format_value: Any) -> ChartRow:
    spread = (
        "" if mark.low is None or mark.high is None else f" ({format_value(mark.low)} to {format_value(mark.high)})"
    )
    return {
        "layer": "mark",
        "series": mark.series,
        "place": mark.place,
        "label": mark.label,
        "value": mark.value,
        "low": mark.low,
        "high": mark.high,
        "shown": f"{format_value(mark.value)}{spread}",
    }


def _places_channel(comparison: PublishedComparison, marks: Sequence[ChartNumber]) -> alt.X:
    if comparison.axis_kind == "names":
        names = list(dict.fromkeys(mark.label for mark in sorted(marks, key=lambda mark: mark.place or 0.0)))
        flat = sum(len(name) + 1 for name in names) <= look.LEGEND_LETTERS
        axis = alt.Axis(labelAngle=0 if flat else -35, labelLimit=150, labelOverlap=False)
        return alt.X("label:N", sort=names, title=comparison.axis, axis=axis, scale=alt.Scale(padding=0.5))
    places = [mark.place for mark in marks if mark.place is not None]
    if comparison.axis_kind == "log":
        return alt.X(
            "place:Q",
            **look.log_channel(comparison.axis, places, look.COMPACT_LABEL, labelOverlap="greedy", grid=False),
        )
    scale = alt.Scale(zero=False, nice=False, padding=look.EDGE * 2)
    return alt.X("place:Q", title=comparison.axis, scale=scale, axis=alt.Axis(tickMinStep=1, format="d", grid=False))


def _rules(
    comparison: PublishedComparison, marks: Sequence[ChartNumber], x: alt.X, y: dict[str, Any], *, even: bool
) -> list[alt.Chart | alt.LayerChart]:
    """Lines across the chart: neither wins, what is said of the whole axis, and where the GPU is said to win."""
    layers: list[alt.Chart | alt.LayerChart] = []
    grey: dict[str, Any] = {"color": look.NEUTRAL, "strokeWidth": 1.5}
    if even:
        rule = look.layer_chart("even").mark_rule(**grey)
        layers.append(rule.encode(y=alt.Y("value:Q", **y)))
    if any(mark.place is None for mark in marks):
        base = look.layer_chart("claim").encode(y=alt.Y("value:Q", **y))
        text = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=look.NEUTRAL)
        layers += [base.mark_rule(strokeDash=[6, 3], **grey), text.encode(text="series:N", x=alt.value(0))]
    if comparison.wins_from is not None:
        base = look.layer_chart("wins").encode(x=x)
        layers.append(base.mark_rule(strokeDash=[6, 3], **grey))
        text = base.mark_text(align="right", dx=-4, color=look.NEUTRAL)
        layers.append(text.encode(text="said:N", y=alt.value(8)))
    return layers


def _series_layers(
    series: Sequence[str], marks: Sequence[ChartNumber], x: alt.X, y: dict[str, Any], *, line: bool
) -> list[alt.Chart]:
    first = {mark.series: mark for mark in reversed(marks)}
    origins = {name: first[name].origin for name in series}
    colours = _series_colours(series, first)
    shapes = [look.POINT_SHAPES[at % len(look.POINT_SHAPES)] for at in range(len(series))]
    dashes = [[5, 4] if origins[name] == "published" else [1, 0] for name in series]
    legend = look.names_legend(series, symbolSize=100, symbolOpacity=1, symbolStrokeWidth=0)
    tooltip = look.tooltips(("series", "from"), ("label", "at"), ("shown", "value"))
    colour = look.names_channel(alt.Color, "series", series, colours, legend=legend)
    base = look.layer_chart("mark").encode(x=x, color=colour, tooltip=tooltip)
    value = alt.Y("value:Q", **y)
    layers = [
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", **y), y2="high:Q")
    ]
    if line:
        dash = look.names_channel(alt.StrokeDash, "series", series, dashes, legend=None)
        layers.append(base.mark_line(strokeWidth=2).encode(y=value, strokeDash=dash))
    filled = [name for name in series if origins[name] != "published"]
    solid = alt.condition(alt.FieldOneOfPredicate(field="series", oneOf=filled), alt.value(1.0), alt.value(0.0))
    points = base.mark_point(size=60, strokeWidth=2).encode(
        y=value,
        shape=look.names_channel(alt.Shape, "series", series, shapes, legend=legend),
        fill=look.names_channel(alt.Fill, "series", series, colours, legend=legend),
        fillOpacity=solid,
    )
    return [*layers, points]


def _series_colours(series: Sequence[str], first: Mapping[str, ChartNumber]) -> list[str]:
    """By device kind; the second of one kind and origin has a lighter shade."""
    colours: dict[str, str] = {}
    for origin in ("published", "measured", "recorded"):
        names = [name for name in series if first[name].origin == origin]
        colours |= dict(zip(names, look.contender_colours([first[name].kind for name in names]), strict=True))
    return [colours[name] for name in series]


def _interval_ends(marks: Sequence[ChartNumber]) -> list[float]:
    return [value for mark in marks for value in (mark.value, mark.low, mark.high) if value]
