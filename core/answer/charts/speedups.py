"""A study as a chart of the speedup at each size, with its interval and what lies between the sizes.

Draws what `core.answer.study.crossover` found; the verdict of each size is told by colour and shape.
"""

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from core import units
from core.answer.charts import labels, look
from core.answer.charts.look import ChartRow, Spec
from core.answer.charts.studies import BAND_OPACITY, CROSS, TIE_ZONE, size_axis, size_channel, zone_fill
from core.answer.run.busy import BUSY_MARK
from core.answer.statistics import TIE
from core.answer.study import wording
from core.answer.study.result import Crossover, Size
from core.question.fields import axis_title

SPEEDUP_CHART_HEIGHT = 380
"""Pixels of the chart, with its axes and legends."""

SIDE = 0.13
"""Share of the axis that is left free at either end for what it means."""

CLOSE, UNDECIDED = "too close", "not decided"
"""What stands in place of a winner."""


def speedup_chart(answer: Crossover, *, kinds: tuple[str, str] | None = None) -> Spec:
    """Speedup of the challenger at each size with its interval, the line at 1, and what lies between the sizes.

    Without the kinds of the two devices each is taken for what its name says.
    """
    points = [
        _speedup_row(answer, size, size.speedup) for size in answer.sizes if size.speedup and 0 < size.size < math.inf
    ]
    band = answer.band
    between = [
        {"layer": "band", "size": size, "speedup": middle, "low": low, "high": high}
        for size, middle, low, high in zip(band.sizes, band.speedup, band.low, band.high, strict=True)
    ]
    tie: list[ChartRow] = [{"layer": "tie", "zone": TIE_ZONE, "low": 1 / TIE, "high": TIE}]
    sizes = [row["size"] for row in (*points, *between)]
    values = [row[end] for row in points for end in ("speedup", "low", "high") if row[end] is not None]
    x = size_channel(answer.axis, sizes)(axis=size_axis(sizes))
    y = speedup_axis(f"speedup of {wording.short_device(answer.challenger)}", _add_margins(values))
    colours = look.contender_colours(look.resolve_device_kinds((answer.baseline, answer.challenger), kinds))
    layers = [*_tie_layers(y), *_band_layers(x, y, between), *_sides(answer, colours)]
    layers += _verdict_layers(answer, colours, x, y, points)
    chart = look.add_measurement_mark(alt.layer(*layers), BUSY_MARK if answer.busy else "")
    return look.finish_chart(chart, [*tie, *between, *points], height=SPEEDUP_CHART_HEIGHT)


def speedup_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """Title, scale and axis of speedups; wide enough to tell what is too close to matter, its line at 1 named."""
    return look.log_channel(title, [*values, 1 / TIE**2, TIE**2], look.SPEEDUP_LABEL, labelOverlap=False)


def _add_margins(values: Sequence[float]) -> list[float]:
    """The values, and two beyond them that leave room for what either side of the line at 1 means."""
    low, high = min((*values, 1 / TIE)), max((*values, TIE))
    room = (high / low) ** SIDE
    return [*values, low / room, high * room]


def _sides(answer: Crossover, colours: Sequence[str]) -> list[alt.Chart]:
    """Who is faster above the line at 1, and who below, along the upper and the lower edge."""
    base, other = colours
    edges = (
        (alt.value(0), 9, other, f"↑ {_faster(answer.challenger)}"),
        (alt.value("height"), -9, base, f"↓ {_faster(answer.baseline)}"),
    )
    return [
        look.layer_chart("tie")
        .mark_text(align="left", dx=6, dy=dy, fontSize=labels.FONT, fontWeight="bold", color=colour)
        .encode(x=alt.value(0), y=edge, text=alt.datum(said), tooltip=alt.value(None))
        for edge, dy, colour, said in edges
    ]


def _faster(name: str) -> str:
    return f"{wording.short_device(name)} faster"


def _speedup_row(answer: Crossover, size: Size, speedup: float) -> ChartRow:
    decided = size.verdict in ("gpu_faster", "cpu_faster")
    winner = _faster(answer.challenger if speedup > 1 else answer.baseline)
    known = size.low is not None and size.high is not None
    return {
        "layer": "size",
        "size": size.size,
        "speedup": speedup,
        "low": size.low,
        "high": size.high,
        "verdict": winner if decided else CLOSE if size.verdict == "too_close" else UNDECIDED,
        "figure": units.format_ratio(speedup),
        "interval": f"{units.format_ratio(size.low or 0)} to {units.format_ratio(size.high or 0)}"
        if known
        else "not known",
        "readings": size.readings,
    }


def _tie_layers(y: dict[str, Any]) -> list[alt.Chart]:
    tie = look.layer_chart("tie").encode(tooltip=look.tooltips(("zone", "shaded")))
    return [
        tie.mark_rect().encode(y=alt.Y("low:Q", **y), y2="high:Q", fill=zone_fill([TIE_ZONE])),
        tie.mark_rule(color=look.NEUTRAL, strokeWidth=1.5).encode(y=alt.YDatum(1)),
    ]


def _band_layers(x: alt.X, y: dict[str, Any], between: Sequence[ChartRow]) -> list[alt.Chart]:
    if not between:
        return []
    figures = (("size", "size", ",.3~r"), ("low", "between sizes, from", ".3~r"), ("high", "to", ".3~r"))
    band = look.layer_chart("band").encode(x=x, tooltip=look.tooltips(*figures))
    dotted = band.mark_line(color=look.NEUTRAL, strokeWidth=1, strokeDash=[2, 2], clip=True)
    area = band.mark_area(color=look.NEUTRAL, opacity=BAND_OPACITY, clip=True)
    return [area.encode(y=alt.Y("low:Q", **y), y2="high:Q"), dotted.encode(y=alt.Y("speedup:Q", **y))]


def _verdict_layers(
    answer: Crossover, colours: Sequence[str], x: alt.X, y: dict[str, Any], rows: Sequence[ChartRow]
) -> list[alt.Chart]:
    base, other = colours
    looks = {
        _faster(answer.challenger): (other, look.POINT_SHAPES[1]),
        _faster(answer.baseline): (base, look.POINT_SHAPES[0]),
        CLOSE: (look.NEUTRAL, look.POINT_SHAPES[3]),
        UNDECIDED: (look.NEUTRAL, CROSS),
    }
    names = [name for name in looks if any(row["verdict"] == name for row in rows)]
    nobody = [name for name in names if name in (CLOSE, UNDECIDED)]
    legend = look.names_legend(nobody, values=nobody, symbolSize=120, symbolOpacity=1) if nobody else None
    colour = look.names_channel(alt.Color, "verdict", names, [looks[name][0] for name in names], legend=legend)
    shape = look.names_channel(alt.Shape, "verdict", names, [looks[name][1] for name in names], legend=legend)
    tooltip = look.tooltips(
        ("size", axis_title(answer.axis), "~r"),
        ("figure", "speedup"),
        ("interval", f"{units.format_share(answer.level)} interval"),
        ("readings", "pairs or readings", ",d"),
        ("verdict", "verdict"),
    )
    points = look.layer_chart("size").encode(x=x, color=colour, tooltip=tooltip)
    return [
        points.mark_rule(strokeWidth=2, clip=True).encode(y=alt.Y("low:Q", **y), y2="high:Q"),
        points.mark_point(filled=True, size=70, opacity=1).encode(y=alt.Y("speedup:Q", **y), shape=shape),
    ]
