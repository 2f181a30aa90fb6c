"""The gallery as charts: all trials in bins, a study in small, several studies on one chart, a step over the sizes.

A chart holds as many marks as can be read, however many rows stand behind it. Only what is named here reaches one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from core import units
from core.answer.charts import look
from core.answer.charts.look import Row, Spec
from core.answer.charts.speedups import speedup_axis
from core.answer.charts.studies import size_axis, size_channel
from core.answer.study import wording
from core.answer.study.result import Crossover
from core.question.device_kinds import DEVICE_KINDS
from core.question.fields import axis_title

if TYPE_CHECKING:
    import pandas as pd

BINS_PER_DECADE = 6
"""Bins of parameters in each factor of ten: at most some 50 a device kind over all that can be asked for."""

MOST_BINS = 1_000
"""More than there can be: counts of parameters end below 10^20."""

COLUMNS = ("device_kind", "parameters", "step_s")
"""Columns of all trials that their chart needs."""

SMALL_HEIGHT, PARTS_HEIGHT, HEIGHT = 240, 320, 420
"""Pixels of a study's chart among others, of the parts of a step, and of one that stands alone, all included."""

MOST_TOGETHER = 4
"""Studies on one chart: each has two curves, and there are eight dashes to tell curves apart."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A study as it is put beside others: its name, and those of its baseline and its challenger, tell it from them."""

    name: str
    devices: tuple[str, str]
    answer: Crossover
    kinds: tuple[str, str]


def step_times(trials: "pd.DataFrame") -> Spec:
    """Median time per step against parameters: a point for each device kind and bin, a rule for its middle half.

    Of lines of `core.answer.gallery.table`; those without timed blocks are left out.
    """
    timed = trials.loc[(trials["step_s"] > 0) & (trials["parameters"] > 0), list(COLUMNS)]
    rows = _bins(timed) if len(timed) else []
    kinds = [kind for kind in look.DEVICE_COLOURS if any(row["kind"] == kind for row in rows)]
    places = [list(look.DEVICE_COLOURS).index(kind) for kind in kinds]
    names = [DEVICE_KINDS[kind].title for kind in kinds]
    legend = look.plain_legend(names, symbolSize=120, symbolOpacity=1)
    x = _log("parameters (log scale)", [row["parameters"] for row in rows], look.COMPACT)
    ends = [row[end] for row in rows for end in ("low", "high")]
    y = _log("time per step (log scale)", ends, look.SECONDS, grid=True)
    colour = _by("kind", names, [look.DEVICE_COLOURS[kind] for kind in kinds], legend)
    shape = _by("kind", names, [look.SHAPES[place] for place in places], legend)
    numbers = (("from", "parameters from", ",d"), ("to", "to", ",d"), ("trials", "trials", ",d"))
    words = (("shown", "median step"), ("half", "middle half of the trials"))
    tooltip = [_line(*line) for line in (("kind", "device kind"), *numbers, *words)]
    at: Row = {"x": {"field": "parameters", **x}, "color": colour, "tooltip": tooltip}
    spans = {**at, "y": {"field": "low", **y}, "y2": {"field": "high"}}
    points = {**at, "y": {"field": "step", **y}, "shape": shape}
    layers: list[Row] = [
        {"mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.5}, "encoding": spans},
        {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.95}, "encoding": points},
    ]
    named = [row | {"kind": DEVICE_KINDS[row["kind"]].title if row["kind"] in kinds else row["kind"]} for row in rows]
    return _written(layers, named, height=look.HEIGHT)


def _bins(timed: "pd.DataFrame") -> list[Row]:
    kinds = timed["device_kind"].astype("category").cat
    sizes, steps = timed["parameters"].to_numpy(float), timed["step_s"].to_numpy(float)
    bins = np.floor(np.log10(sizes) * BINS_PER_DECADE).astype(np.int64)
    group = kinds.codes.to_numpy(np.int64) * MOST_BINS + bins
    order = np.argsort(group, kind="stable")
    rows: list[Row] = []
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
                "step": middle,
                "low": low,
                "high": high,
                "shown": units.duration(middle),
                "half": f"{units.duration(low)} to {units.duration(high)}",
            }
        )
    return rows


def small(answer: Crossover, kinds: tuple[str, str]) -> Spec:
    """A study among others: both devices' median time at each size, and the interval of its crossover shaded."""
    names = (wording.short(answer.baseline), wording.short(answer.challenger))
    rows = _medians(Curve(name="", devices=names, answer=answer, kinds=kinds))
    zones: list[Row] = [{"from": one.low, "to": one.high} for one in answer.crossings]
    sizes = [row["size"] for row in rows] + [zone[end] for zone in zones for end in ("from", "to")]
    x = _log(axis_title(answer.axis), sizes, look.COMPACT)
    y = _log(None, [row["time"] for row in rows], look.SECONDS)
    legend = look.plain_legend(names, symbolSize=80, symbolOpacity=1, symbolStrokeWidth=0)
    said = (("curve", "device"), ("size", axis_title(answer.axis), "~r"), ("shown", "median step"))
    at: Row = {"x": {"field": "size", **x}, "y": {"field": "time", **y}, "tooltip": [_line(*line) for line in said]}
    at["color"] = _by("curve", names, look.colours(kinds), legend)
    dash, shape = _by("curve", names, look.DASHES[:2], None), _by("curve", names, look.SHAPES[:2], legend)
    shaded: Row = {"mark": {"type": "rect", "color": look.NEUTRAL, "opacity": 0.35}, "data": {"values": zones}}
    layers: list[Row] = [
        {**shaded, "encoding": {"x": {"field": "from", **x}, "x2": {"field": "to"}}},
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {**at, "strokeDash": dash}},
        {"mark": {"type": "point", "filled": True, "size": 40, "opacity": 1}, "encoding": {**at, "shape": shape}},
    ]
    return _written(layers, rows, height=SMALL_HEIGHT)


def _written(layers: list[Row], rows: list[Row], *, height: int) -> Spec:
    """A chart in the common look that is written out without Altair, which checks it for longer than a filter may take.

    Tests check it against Vega-Lite's own schema.
    """
    return {
        "$schema": alt.SCHEMA_URL,
        "width": "container",
        "height": height,
        "background": "transparent",
        "config": look.CONFIG,
        "layer": look.bounded(layers),
        "data": {"values": rows},
    }


def _by(field: str, names: Sequence[str], looks: Sequence[Any], legend: Row | None) -> Row:
    """As `look.by`, which Altair does not check."""
    scale = {"domain": list(names), "range": list(looks)}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def _line(field: str, title: str, number: str = "") -> Row:
    """As `look.tooltips`, which Altair does not check."""
    kind = {"type": "quantitative", "format": number} if number else {"type": "nominal"}
    return {"field": field, "title": title, **kind}


def _log(title: str | None, values: Sequence[float], label: str, *, grid: bool = False) -> Row:
    """A channel of numbers with a scale and an axis over values."""
    ticks = look.ticks(values)
    axis = {"labelExpr": label, "labelOverlap": "greedy", "grid": grid}
    axis |= {"values": ticks} if ticks is not alt.Undefined else {}
    return {"type": "quantitative", "title": title, "scale": look.log_scale(values), "axis": axis}


def together(curves: Sequence[Curve]) -> Spec:
    """Time against size of several studies: two curves each, one for each of its devices. `MOST_TOGETHER` at most."""
    shown = curves[:MOST_TOGETHER]
    rows = [row for curve in shown for row in _medians(curve)]
    y = look.logged("time per step", [row["time"] for row in rows], look.SECONDS, labelOverlap="greedy")
    base = _sized(rows, shown[0].answer.axis, ("curve", "device"), ("shown", "median step"))
    line, points = _curves(base, alt.Y("time:Q", **y), _device_colours(shown))
    return look.finished(alt.layer(line, points), rows, height=HEIGHT)


def speedups_together(curves: Sequence[Curve]) -> Spec:
    """Speedup against size of several studies, one curve each with its intervals; at 1 neither device is faster.

    A study has the colour that its challenger has where the times are drawn.
    """
    shown = curves[:MOST_TOGETHER]
    rows: list[Row] = [
        {
            "curve": curve.name,
            "size": size.size,
            "speedup": size.speedup,
            "low": size.low,
            "high": size.high,
            "shown": units.ratio(size.speedup),
        }
        for curve in shown
        for size in curve.answer.sizes
        if size.speedup and 0 < size.size < math.inf
    ]
    of_devices = _device_colours(shown)
    colours = {curve.name: of_devices[curve.devices[1]] for curve in shown}
    y = speedup_axis("speedup", [row[end] for row in rows for end in ("speedup", "low", "high") if row[end]])
    base = _sized(rows, shown[0].answer.axis, ("curve", "study"), ("shown", "speedup"))
    even = alt.Chart().mark_rule(color=look.NEUTRAL, strokeWidth=1.5).encode(y=alt.YDatum(1))
    line, points = _curves(base, alt.Y("speedup:Q", **y), colours)
    spans = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        y=alt.Y("low:Q", **y), y2="high:Q", color=line.encoding.color
    )
    return look.finished(alt.layer(even, spans, line, points), rows, height=HEIGHT)


def parts_over_sizes(steps: Mapping[float, Mapping[str, float]], axis: str) -> Spec:
    """Where the time of a step goes at each size of one device: shares of the parts that were timed apart, stacked."""
    rows: list[Row] = [
        {
            "size": look.compact(size),
            "at": size,
            "part": part,
            "rank": rank,
            "share": seconds / sum(step.values()),
            "shown": units.duration(seconds),
        }
        for size, step in sorted(steps.items())
        for rank, (part, seconds) in enumerate(step.items())
    ]
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    x = alt.X("size:O", sort=sizes, title=axis_title(axis), axis=alt.Axis(labelAngle=0, labelOverlap="greedy"))
    y = alt.Y("share:Q", title="share of the step", stack="normalize", axis=alt.Axis(format="%", tickCount=5))
    figures = (("shown", "time per step"), ("share", "share", ".1%"))
    lines = look.tooltips(("at", axis_title(axis), ",~r"), ("part", "part"), *figures)
    chart = look.stacked(alt.Chart().mark_bar().encode(x=x, y=y, tooltip=lines), look.part_colours(steps.values()))
    return look.finished(chart, rows, height=PARTS_HEIGHT)


def _medians(curve: Curve) -> list[Row]:
    return [
        {"curve": device, "size": at.size, "time": seconds, "shown": units.duration(seconds)}
        for device, field in zip(curve.devices, ("baseline_s", "challenger_s"), strict=True)
        for at in curve.answer.sizes
        if (seconds := getattr(at, field)) and 0 < at.size < math.inf
    ]


def _sized(rows: Sequence[Row], axis: str, curve: tuple[str, str], shown: tuple[str, str]) -> alt.Chart:
    """A chart over the sizes of an axis, with its tooltip."""
    sizes = [row["size"] for row in rows]
    tooltip = look.tooltips(curve, ("size", axis_title(axis), "~r"), shown)
    return alt.Chart().encode(x=size_channel(axis, sizes)(axis=size_axis(sizes)), tooltip=tooltip)


def _device_colours(curves: Sequence[Curve]) -> dict[str, str]:
    """The colour of every device, the same in each chart of these curves, whichever of them are drawn there."""
    kinds = {device: kind for curve in curves for device, kind in zip(curve.devices, curve.kinds, strict=True)}
    return dict(zip(kinds, look.colours(list(kinds.values())), strict=True))


def _curves(base: alt.Chart, y: alt.Y, colours: Mapping[str, str]) -> tuple[alt.Chart, alt.Chart]:
    """A line and points for each curve by its name; curves of one colour still differ in dash and shape."""
    domain = list(colours)
    legend = look.legend(domain, symbolSize=120, symbolOpacity=1, symbolStrokeWidth=0)
    base = base.encode(y=y, color=look.by(alt.Color, "curve", domain, list(colours.values()), legend=legend))
    dash = look.by(alt.StrokeDash, "curve", domain, look.DASHES, legend=None)
    shape = look.by(alt.Shape, "curve", domain, look.SHAPES, legend=legend)
    points = base.mark_point(filled=True, size=55, opacity=1)
    return base.mark_line(strokeWidth=2).encode(strokeDash=dash), points.encode(shape=shape)
