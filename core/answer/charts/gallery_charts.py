"""Charts of the gallery: trials in bins, study thumbnails, several studies, steps over sizes, published figures.

The number of marks on a chart is limited, whatever the number of rows. Only the columns named here reach a chart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import units
from ...question.fields import axis_title
from ...question.lanes import DEVICE_KINDS
from ...question.published import Figure
from .. import wording
from ..contribution import UNCONFIRMED
from ..gallery.published import PublishedStudy
from ..judgement import Crossover
from . import alt, look, study_charts
from .look import ChartRow, Spec
from .study_charts import size_axis, size_channel, speedup_axis

if TYPE_CHECKING:
    import pandas as pd

BINS_PER_DECADE = 6
"""Bins of parameters in each factor of ten: at most about 50 per device kind over all possible models."""

MOST_BINS = 1_000
"""Upper bound of the bin numbers: counts of parameters are below 10^20."""

STEP_TIME_COLUMNS = ("device_kind", "parameters", "step_s", "source")
"""Columns of the table of all trials that the chart of step times needs."""

SMALL_HEIGHT, PARTS_HEIGHT, COMPARISON_HEIGHT = 240, 320, 420
"""Total heights in pixels of a study's thumbnail, of the step breakdown, and of a single chart."""

MAX_STUDIES_DRAWN = 4
"""Maximum number of studies on one chart: each has two curves, and there are eight dash patterns."""


@dataclass(frozen=True, kw_only=True)
class StudyCurves:
    """A study in a comparison, identified by its name and the names of its baseline and its challenger."""

    name: str
    devices: tuple[str, str]
    answer: Crossover
    kinds: tuple[str, str]


def step_times_chart(trials: pd.DataFrame) -> Spec:
    """Chart the median time per step against parameters.

    A point is the median of one device kind and bin, with the interquartile range as a vertical rule. A point is hollow
    if all of its rows were contributed and no second machine has confirmed them.

    Args:
        trials: lines of `core.answer.gallery.overview`; lines without timed blocks are left out.
    """
    timed = trials.loc[(trials["step_s"] > 0) & (trials["parameters"] > 0), list(STEP_TIME_COLUMNS)]
    rows = _bins(timed) if len(timed) else []
    kinds = [kind for kind in look.DEVICE_COLOURS if any(row["kind"] == kind for row in rows)]
    places = [list(look.DEVICE_COLOURS).index(kind) for kind in kinds]
    names = [DEVICE_KINDS[kind].title for kind in kinds]
    legend = look.plain_legend(names, symbolSize=120, symbolOpacity=1)
    x = _plain_log_channel("parameters (log scale)", [row["parameters"] for row in rows], look.COMPACT_LABEL)
    ends = [row[end] for row in rows for end in ("low", "high")]
    y = _plain_log_channel("time per step (log scale)", ends, look.SECONDS_LABEL, grid=True)
    colour = _plain_names_channel("kind", names, [look.DEVICE_COLOURS[kind] for kind in kinds], legend)
    shape = _plain_names_channel("kind", names, [look.POINT_SHAPES[place] for place in places], legend)
    numbers = (("from", "parameters from", ",d"), ("to", "to", ",d"), ("trials", "trials", ",d"))
    words = (("shown", "median step"), ("half", "interquartile range of the trials"))
    tooltip = [_plain_tooltip(*line) for line in (("kind", "device kind"), *numbers, *words)]
    at: ChartRow = {"x": {"field": "parameters", **x}, "color": colour, "tooltip": tooltip}
    spans = {**at, "y": {"field": "low", **y}, "y2": {"field": "high"}}
    points = {**at, "y": {"field": "step", **y}, "shape": shape}
    point = {"type": "point", "size": 70, "opacity": 0.95}
    layers: list[ChartRow] = [
        {"mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.5}, "encoding": spans},
        {**_keep_rows("!datum.hollow"), "mark": {**point, "filled": True}, "encoding": points},
        {**_keep_rows("datum.hollow"), "mark": {**point, "filled": False, "strokeWidth": 2}, "encoding": points},
    ]
    named = [row | {"kind": DEVICE_KINDS[row["kind"]].title if row["kind"] in kinds else row["kind"]} for row in rows]
    return _plain_spec(layers, named, height=look.CHART_HEIGHT)


def _keep_rows(test: str) -> ChartRow:
    return {"transform": [{"filter": test}]}


def _bins(timed: pd.DataFrame) -> list[ChartRow]:
    kinds = timed["device_kind"].astype("category").cat
    unconfirmed = (timed["source"] == UNCONFIRMED).to_numpy(bool)
    sizes, steps = timed["parameters"].to_numpy(float), timed["step_s"].to_numpy(float)
    bins = np.floor(np.log10(sizes) * BINS_PER_DECADE).astype(np.int64)
    group = kinds.codes.to_numpy(np.int64) * MOST_BINS + bins
    order = np.argsort(group, kind="stable")
    rows: list[ChartRow] = []
    for places in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        low, middle, high = (float(value) for value in np.quantile(steps[places], (0.25, 0.5, 0.75)))
        within = sizes[places]
        rows.append(
            {
                "kind": str(kinds.categories[int(group[places[0]]) // MOST_BINS]),
                "parameters": float(np.exp(np.median(np.log(within)))),
                "from": float(within.min()),
                "to": float(within.max()),
                "trials": len(places),
                "hollow": bool(unconfirmed[places].all()),
                "step": middle,
                "low": low,
                "high": high,
                "shown": units.format_duration(middle),
                "half": f"{units.format_duration(low)} to {units.format_duration(high)}",
            }
        )
    return rows


def study_thumbnail(answer: Crossover, kinds: tuple[str, str]) -> Spec:
    """Return the small chart of a study: both devices' median time at each size, with the crossover interval shaded."""
    names = (wording.short_device(answer.baseline), wording.short_device(answer.challenger))
    rows = _median_rows(StudyCurves(name="", devices=names, answer=answer, kinds=kinds))
    zones: list[ChartRow] = [{"from": one.low, "to": one.high} for one in answer.crossings]
    sizes = [row["size"] for row in rows] + [zone[end] for zone in zones for end in ("from", "to")]
    x = _plain_log_channel(axis_title(answer.axis), sizes, look.COMPACT_LABEL)
    y = _plain_log_channel(None, [row["time"] for row in rows], look.SECONDS_LABEL)
    legend = look.plain_legend(names, symbolSize=80, symbolOpacity=1, symbolStrokeWidth=0)
    said = (("curve", "device"), ("size", axis_title(answer.axis), "~r"), ("shown", "median step"))
    at: ChartRow = {
        "x": {"field": "size", **x},
        "y": {"field": "time", **y},
        "tooltip": [_plain_tooltip(*line) for line in said],
    }
    at["color"] = _plain_names_channel("curve", names, look.contender_colours(kinds), legend)
    dash, shape = (
        _plain_names_channel("curve", names, look.DASHES[:2], None),
        _plain_names_channel("curve", names, look.POINT_SHAPES[:2], legend),
    )
    shaded: ChartRow = {"mark": {"type": "rect", "color": look.NEUTRAL, "opacity": 0.35}, "data": {"values": zones}}
    layers: list[ChartRow] = [
        {**shaded, "encoding": {"x": {"field": "from", **x}, "x2": {"field": "to"}}},
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {**at, "strokeDash": dash}},
        {"mark": {"type": "point", "filled": True, "size": 40, "opacity": 1}, "encoding": {**at, "shape": shape}},
    ]
    return _plain_spec(layers, rows, height=SMALL_HEIGHT)


def _plain_spec(layers: list[ChartRow], rows: list[ChartRow], *, height: int) -> Spec:
    """Return a chart in the common look without Altair, whose checks are too slow for a filter.

    Tests check it against Vega-Lite's own schema.
    """
    return {
        "$schema": alt.SCHEMA_URL,
        "width": "container",
        "height": height,
        "background": "transparent",
        "config": look.CONFIG,
        "layer": look.limit_titles(layers),
        "data": {"values": rows},
    }


def _plain_names_channel(field: str, names: Sequence[str], looks: Sequence[Any], legend: ChartRow | None) -> ChartRow:
    """Return a channel like `look.names_channel`, without Altair's checks."""
    scale = {"domain": list(names), "range": list(looks)}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def _plain_tooltip(field: str, title: str, number: str = "") -> ChartRow:
    """Return a tooltip like `look.tooltips`, without Altair's checks."""
    kind = {"type": "quantitative", "format": number} if number else {"type": "nominal"}
    return {"field": field, "title": title, **kind}


def _plain_log_channel(title: str | None, values: Sequence[float], label: str, *, grid: bool = False) -> ChartRow:
    """Return a channel of numbers with a scale and an axis over values."""
    ticks = look.log_ticks(values)
    axis = {"labelExpr": label, "labelOverlap": "greedy", "grid": grid}
    axis |= {"values": ticks} if ticks is not alt.Undefined else {}
    return {"type": "quantitative", "title": title, "scale": look.log_scale(values), "axis": axis}


def study_times_chart(curves: Sequence[StudyCurves]) -> Spec:
    """Chart time against size for up to `MAX_STUDIES_DRAWN` studies, with one curve per device."""
    shown = curves[:MAX_STUDIES_DRAWN]
    rows = [row for curve in shown for row in _median_rows(curve)]
    y = look.log_channel("time per step", [row["time"] for row in rows], look.SECONDS_LABEL, labelOverlap="greedy")
    base = _sizes_chart(rows, shown[0].answer.axis, ("curve", "device"), ("shown", "median step"))
    line, points = _draw_curves(base, alt.Y("time:Q", **y), _device_colours(shown))
    return look.finish_chart([line, points], rows, height=COMPARISON_HEIGHT)


def study_speedups_chart(curves: Sequence[StudyCurves]) -> Spec:
    """Return a chart of speedup against size, one curve with intervals per study; at 1 neither device is faster.

    A study has the colour of its challenger in the chart of times.
    """
    shown = curves[:MAX_STUDIES_DRAWN]
    rows: list[ChartRow] = [
        {
            "curve": curve.name,
            "size": size.size,
            "speedup": size.speedup,
            "low": size.low,
            "high": size.high,
            "shown": units.format_ratio(size.speedup),
        }
        for curve in shown
        for size in curve.answer.sizes
        if size.speedup and 0 < size.size < math.inf
    ]
    of_devices = _device_colours(shown)
    colours = {curve.name: of_devices[curve.devices[1]] for curve in shown}
    y = speedup_axis("speedup", [row[end] for row in rows for end in ("speedup", "low", "high") if row[end]])
    base = _sizes_chart(rows, shown[0].answer.axis, ("curve", "study"), ("shown", "speedup"))
    even = alt.Chart().mark_rule(color=look.NEUTRAL, strokeWidth=1.5).encode(y=alt.YDatum(1))
    line, points = _draw_curves(base, alt.Y("speedup:Q", **y), colours)
    spans = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        y=alt.Y("low:Q", **y), y2="high:Q", color=line.encoding.color
    )
    return look.finish_chart([even, spans, line, points], rows, height=COMPARISON_HEIGHT)


def parts_over_sizes_chart(steps: Mapping[float, Mapping[str, float]], axis: str) -> Spec:
    """Chart the step breakdown at each size of one device: stacked shares of the parts that were timed separately."""
    rows: list[ChartRow] = [
        {
            "size": look.format_size_compactly(size),
            "at": size,
            "part": part,
            "rank": rank,
            "share": seconds / sum(step.values()),
            "shown": units.format_duration(seconds),
        }
        for size, step in sorted(steps.items())
        for rank, (part, seconds) in enumerate(step.items())
    ]
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    x = alt.X("size:O", sort=sizes, title=axis_title(axis), axis=alt.Axis(labelAngle=0, labelOverlap="greedy"))
    y = alt.Y("share:Q", title="share of the step", stack="normalize", axis=alt.Axis(format="%", tickCount=5))
    figures = (("shown", "time per step"), ("share", "share", ".1%"))
    lines = look.tooltips(("at", axis_title(axis), ",~r"), ("part", "part"), *figures)
    chart = look.stack_parts(alt.Chart().mark_bar().encode(x=x, y=y, tooltip=lines), look.part_colours(steps.values()))
    return look.finish_chart(chart, rows, height=PARTS_HEIGHT)


def _median_rows(curve: StudyCurves) -> list[ChartRow]:
    return [
        {"curve": device, "size": at.size, "time": seconds, "shown": units.format_duration(seconds)}
        for device, field in zip(curve.devices, ("baseline_s", "challenger_s"), strict=True)
        for at in curve.answer.sizes
        if (seconds := getattr(at, field)) and 0 < at.size < math.inf
    ]


def _sizes_chart(rows: Sequence[ChartRow], axis: str, curve: tuple[str, str], figure: tuple[str, str]) -> alt.Chart:
    """Return a chart over the sizes of an axis, with its tooltip."""
    sizes = [row["size"] for row in rows]
    tooltip = look.tooltips(curve, ("size", axis_title(axis), "~r"), figure)
    return alt.Chart().encode(x=size_channel(axis, sizes)(axis=size_axis(sizes)), tooltip=tooltip)


def _device_colours(curves: Sequence[StudyCurves]) -> dict[str, str]:
    """Choose the colour of every device, so that it is the same in each chart of these curves."""
    kinds = {device: kind for curve in curves for device, kind in zip(curve.devices, curve.kinds, strict=True)}
    return dict(zip(kinds, look.contender_colours(list(kinds.values())), strict=True))


def _draw_curves(base: alt.Chart, y: alt.Y, colours: Mapping[str, str]) -> tuple[alt.Chart, alt.Chart]:
    """Return a line and points for each curve by its name; curves of one colour still differ in dash and shape."""
    domain = list(colours)
    legend = look.names_legend(domain, symbolSize=120, symbolOpacity=1, symbolStrokeWidth=0)
    base = base.encode(y=y, color=look.names_channel(alt.Color, "curve", domain, list(colours.values()), legend=legend))
    dash = look.names_channel(alt.StrokeDash, "curve", domain, look.DASHES, legend=None)
    shape = look.names_channel(alt.Shape, "curve", domain, look.POINT_SHAPES, legend=legend)
    points = base.mark_point(filled=True, size=55, opacity=1)
    return base.mark_line(strokeWidth=2).encode(strokeDash=dash), points.encode(shape=shape)


CASE_FIGURE_MARGIN = 1.3
"""Length of the axis relative to the longest bar."""


def chart_published_study(study: PublishedStudy) -> Spec:
    """Chart time against size of the CPU and the GPU, with the source in the picture, so that saved copies have it."""
    spec = study_charts.crossing_chart(study.answer, published=True)
    lines = [f"Published: {study.source.cited}", f"CPU: {study.source.cpu}", f"GPU: {study.source.gpu}"]
    small = {"anchor": "start", "fontSize": 11, "fontWeight": "normal", "offset": 8, "limit": look.LEGEND_LIMIT}
    return {**spec, "title": {"text": lines, **small}}


def case_figures_chart(figures: Sequence[Figure], unit: str) -> Spec:
    """Chart published figures in their own unit, one hollow bar each; return an empty specification without figures."""
    rows: list[ChartRow] = [
        {"name": one.name, "value": one.value, "shown": f"{one.value:,}".removesuffix(".0")} for one in figures
    ]
    if not rows:
        return {}
    names = [row["name"] for row in rows]
    scale = alt.Scale(domain=[0, CASE_FIGURE_MARGIN * max(one.value for one in figures)])
    x = alt.X("value:Q", title=f"{unit}, published", scale=scale, axis=alt.Axis(tickCount=4))
    y = alt.Y("name:N", sort=names, title=None, axis=alt.Axis(ticks=False, labelLimit=140))
    base = alt.Chart().encode(y=y, tooltip=look.tooltips(("name", "of"), ("shown", unit)))
    hues = [study_charts.PUBLISHED_COLOURS[at % 2] for at in range(len(names))]
    bars = base.mark_bar(
        size=look.BAR_HEIGHT // 2, filled=False, strokeWidth=study_charts.PUBLISHED_LINE, strokeDash=[4, 2]
    ).encode(x=x, color=look.names_channel(alt.Color, "name", names, hues, legend=None))
    text = base.mark_text(align="left", dx=8, fontSize=13, fontWeight="bold", color=look.NEUTRAL)
    return look.finish_chart([bars, text.encode(x=x, text="shown:N")], rows, height=alt.Step(look.BAR_HEIGHT))
