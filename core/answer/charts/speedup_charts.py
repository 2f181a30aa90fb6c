"""Charts of the speedup over one size, with its interval, and over a grid of several axes.

The charts show the results of `core.answer.crossover`; colour and shape show the verdict at each size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ... import units
from ...question.fields import axis_title
from .. import wording
from ..interference import BUSY_MARK
from ..result import Crossover, Size
from ..statistics import TIE
from ..verdict import WINNERS, VerdictCode
from . import alt, look
from .look import ChartRow, Spec
from .study_charts import BAND_OPACITY, TIE_ZONE, size_axis, size_channel, zone_fill

SPEEDUP_CHART_HEIGHT = 380
"""Height of the chart with its axes and legends, in pixels."""

SIDE = 0.13
"""Share of the axis that is left free at either end for its label."""

CLOSE, UNDECIDED = "too close", "not decided"
"""Texts shown in place of a winner."""


def speedup_chart(answer: Crossover, *, kinds: tuple[str, str] | None = None) -> Spec:
    """Chart the speedup at each size with its interval, the line at 1, and the curve between sizes.

    Without `kinds`, the device kinds follow from the names of the devices.
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
    return look.finish_chart(
        layers, [*tie, *between, *points], height=SPEEDUP_CHART_HEIGHT, mark=BUSY_MARK if answer.busy else ""
    )


def speedup_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """Return title, scale and axis of speedups, with a label at 1; the zone of differences within `TIE` is included."""
    return look.log_channel(title, [*values, 1 / TIE**2, TIE**2], look.SPEEDUP_LABEL, labelOverlap=False)


def _add_margins(values: Sequence[float]) -> list[float]:
    """Return the values and two more beyond them, which leave space for the labels on both sides of the line at 1."""
    low, high = min((*values, 1 / TIE)), max((*values, TIE))
    room = (high / low) ** SIDE
    return [*values, low / room, high * room]


def _sides(answer: Crossover, colours: Sequence[str]) -> list[alt.Chart]:
    """Label the faster device on either side of the line at 1, at the upper and the lower edge."""
    base, other = colours
    edges = (
        (alt.value(0), 9, other, f"↑ {_faster(answer.challenger)}"),
        (alt.value("height"), -9, base, f"↓ {_faster(answer.baseline)}"),
    )
    return [
        look.layer_chart("tie")
        .mark_text(align="left", dx=6, dy=dy, fontSize=look.FONT, fontWeight="bold", color=colour)
        .encode(x=alt.value(0), y=edge, text=alt.datum(said), tooltip=alt.value(None))
        for edge, dy, colour, said in edges
    ]


def _faster(name: str) -> str:
    return f"{wording.short_device(name)} faster"


def _speedup_row(answer: Crossover, size: Size, speedup: float) -> ChartRow:
    decided = size.has_winner
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
        else "unknown",
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
        UNDECIDED: (look.NEUTRAL, look.POINT_SHAPES[0]),
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
    at = {"y": alt.Y("speedup:Q", **y), "shape": shape}
    filled = points.mark_point(filled=True, size=70, opacity=1).transform_filter(alt.datum.verdict != UNDECIDED)
    hollow = points.mark_point(filled=False, size=70, opacity=1, strokeWidth=2)
    return [
        points.mark_rule(strokeWidth=2, clip=True).encode(y=alt.Y("low:Q", **y), y2="high:Q"),
        filled.encode(**at),
        hollow.transform_filter(alt.datum.verdict == UNDECIDED).encode(**at),
    ]


MOST_FIGURES = 8
CELL_HEIGHT, FIGURE_WIDTH = 36, 40
"""Number of columns up to which cells show figures at any width; with more, a cell must be `FIGURE_WIDTH`
pixels wide.
"""

GREY = "#BBBBBB"
"""Colour of a cell without a figure."""

HATCH = ((0.0, 0.5, 0.5, 0.0), (0.0, 1.0, 1.0, 0.0), (0.5, 1.0, 1.0, 0.5))
"""Lines across a cell (x, y, x2, y2 as shares of it) that mark it as too close."""

HATCHED, MISSING = "too close (hatched)", "not measured"
"""Texts shown in place of a winner."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One point of a grid of two axes; `reason` says why there is no winner, and is empty where there is one."""

    x: float
    y: float
    verdict: VerdictCode
    speedup: float | None = None
    reason: str = ""


def winners_chart(
    cells: Sequence[Cell], *, axes: tuple[str, str], devices: tuple[str, str], kinds: tuple[str, str] | None = None
) -> Spec:
    """Chart a map of two axes, each cell in the colour of the faster device, hatched if the two are too close.

    `axes` are the titles of the horizontal and the vertical axis, `devices` the display names of baseline and
    challenger. Without `kinds`, the device kinds follow from these names.
    """
    rows = [_cell_row(cell, devices) for cell in cells]
    fills = {
        **dict(zip(devices, _tints(look.resolve_device_kinds(devices, kinds)), strict=True)),
        HATCHED: look.PALEST,
        MISSING: GREY,
    }
    present = [name for name in fills if any(row["winner"] == name for row in rows)]
    across, up = (axis_title(axis) for axis in axes)
    x = alt.X("x:O", title=across, axis=alt.Axis(labelExpr=look.COMPACT_LABEL, labelAngle=0, labelOverlap=True))
    y = alt.Y("y:O", title=up, sort="descending", axis=alt.Axis(labelExpr=look.COMPACT_LABEL))
    legend = look.names_legend(present, symbolType="square", symbolStrokeColor=look.NEUTRAL, symbolStrokeWidth=1)
    said = (("winner", "faster"), ("figure", f"speedup of {wording.short_device(devices[1])}"), ("reason", "reason"))
    base = alt.Chart().encode(x=x, y=y, tooltip=look.tooltips(("x", across), ("y", up), *said))
    colour = look.names_channel(alt.Color, "winner", present, [fills[name] for name in present], legend=legend)
    rects = base.mark_rect(stroke="white", strokeWidth=1).encode(color=colour)
    close = [_hatch(base.transform_filter(f"datum.winner == '{HATCHED}'"), line) for line in HATCH]
    # Black is readable in every theme, since the cell below it is always light.
    columns = len({cell.x for cell in cells})
    room = 1.0 if columns <= MOST_FIGURES else {"expr": f"width > {columns * FIGURE_WIDTH} ? 1 : 0"}
    figures = base.mark_text(color="black", fontSize=11, opacity=room).encode(text=alt.Text("text:N"))
    return look.finish_chart([rects, *close, figures], rows, height=alt.Step(CELL_HEIGHT))


def _tints(kinds: tuple[str, str]) -> list[str]:
    """Return the devices' colours, light enough for black figures."""
    return [look.mix_colours(look.PALEST, colour, look.TINT) for colour in look.contender_colours(kinds)]


def _cell_row(cell: Cell, devices: tuple[str, str]) -> ChartRow:
    speedup = cell.speedup
    if speedup is None:
        return {"x": cell.x, "y": cell.y, "winner": MISSING, "figure": "—", "text": "✕", "reason": cell.reason}
    decided = cell.verdict in WINNERS
    return {
        "x": cell.x,
        "y": cell.y,
        "winner": devices[speedup > 1] if decided else HATCHED if cell.verdict == "too_close" else MISSING,
        "figure": units.format_ratio(speedup),
        "text": f"{speedup:.2f}×" if speedup < 10 else f"{speedup:.0f}×",
        "reason": cell.reason or "—",
    }


def _hatch(cells: alt.Chart, line: tuple[float, float, float, float]) -> alt.Chart:
    """Return a line across each cell, given in shares of the cell because its width depends on the window."""
    x, y, x2, y2 = line
    hatched: alt.Chart = cells.mark_rule(color=look.NEUTRAL, strokeWidth=1).encode(
        x=alt.X("x:O", bandPosition=x),
        y=alt.Y("y:O", bandPosition=y, sort="descending"),
        x2=alt.X2("x", bandPosition=x2),
        y2=alt.Y2("y", bandPosition=y2),
    )
    return hatched
