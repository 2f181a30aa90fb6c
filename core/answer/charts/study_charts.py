"""Charts of a study: time or speedup against size, with the crossover and the interval, or a grid of several axes.

The charts show the results of `core.answer.crossover` and their readings; medians and ranges of readings are only a
visual aid. Devices differ in colour, dash and shape; shaded areas are named in the legend.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ... import units
from ...question.fields import axis_title
from .. import wording
from ..interference import BUSY_MARK
from ..judgement import Basis, Crossing, Crossover, Evidence, Size
from ..statistics import TIE
from ..verdict import WINNERS, VerdictCode
from . import alt, look
from .look import ChartRow, NamePlace, Spec

BASIS_AXIS_TITLES: dict[Basis, str] = {
    "steady": "time per step",
    "with_transfer": "time per step, copying the data included",
    "cold_start": "time per step, start-up included",
    "as_given": "time",
}
"""Title of the axis of readings, by cost basis."""

MAX_READINGS_DRAWN = 1_000
"""Approximate maximum of raw readings on one chart; more slow a browser down. Readings left out are counted at the
axis.
"""

MOST_MARKED = 60
"""Number of sizes of a curve from which only its line is shown, without points."""

CROSSOVER_CHART_HEIGHT, CROSSOVER_PLOT_HEIGHT = 420, 230
"""Height of a chart with its axes and legends, and height of its plot area, in pixels."""

INTERVAL_ZONE, TIE_ZONE = "95 % interval of the crossover", "difference within ±10 %"
"""Names of the shaded zones in the legend."""

OPEN_ZONE, ASSUMPTION_ZONE = "either may be faster", "crossover, assuming a typical scatter of readings"
"""Names of the shaded zones where no crossover is certain."""

ZONE_FILLS = dict.fromkeys((INTERVAL_ZONE, OPEN_ZONE), "rgba(128, 128, 128, 0.34)") | dict.fromkeys(
    (TIE_ZONE, ASSUMPTION_ZONE), "rgba(128, 128, 128, 0.18)"
)
BAND_OPACITY = 0.2

CROSS = "M-1,-1L1,1M-1,1L1,-1"
"""SVG path of the mark at a size that could not be timed."""

STEP, MOST_LABELS = 16, 4
"""Vertical distance between the labels of two crossings, in pixels, and the maximum number of labels."""

EDGE_SHARE = 0.3
"""Share of the width at either end in which a label is aligned inwards, so that it is not cut off."""


def crossover_chart(
    answer: Crossover, pairs: Sequence[Evidence], *, kinds: tuple[str, str] | None = None, recorded: bool = False
) -> Spec:
    """Chart time against size of both devices: readings, medians, their noise, and where the faster device changes.

    Without `kinds`, the device kinds follow from the names of the devices. The marks of a challenger that was recorded
    on another machine are hollow diamonds.
    """
    shown = [entry for entry in pairs if 0 < entry.size < math.inf]
    readings, number = _readings(answer, shown)
    medians = [row for entry in shown for row in _reading_medians(answer, entry)]
    obstacles: list[ChartRow] = [
        {"layer": "obstacle", "size": entry.size, "reason": entry.obstacle} for entry in shown if entry.obstacle
    ]
    close = [*([answer.tie] if answer.tie else []), *answer.also_close]
    zones = [_zone_row(answer.axis, TIE_ZONE, *zone) for zone in close]  # wider zones first, so that they lie below
    zones += [_zone_row(answer.axis, INTERVAL_ZONE, crossing.low, crossing.high) for crossing in answer.crossings]
    zones += [_zone_row(answer.axis, OPEN_ZONE, *between) for between in _open_ranges(answer)]
    assumed = answer.assumed.crossings if answer.assumed else ()
    zones += [_zone_row(answer.axis, ASSUMPTION_ZONE, crossing.low, crossing.high) for crossing in assumed]
    crossings = crossing_rows(answer)
    sizes = [entry.size for entry in shown] + [row[end] for row in zones for end in ("from", "to")]
    times = [row["time"] for row in (*readings, *medians)]
    times = look.add_headroom(times) if times else times
    placed = _place_curve_names(answer, medians, sizes, times, recorded=recorded)
    x, y = (
        size_channel(answer.axis, sizes),
        look.log_channel(BASIS_AXIS_TITLES[answer.basis], times, look.SECONDS_LABEL),
    )
    if len(readings) < number:
        y["title"] = [y["title"], f"{len(readings):,} of {number:,} readings shown"]
    pointed, bottom = len(shown) <= MOST_MARKED, size_axis(sizes)
    layers = _zone_layers(x, zones)
    layers += _curve_layers(answer, kinds, x, y, placed, bottom=bottom, pointed=pointed, recorded=recorded)
    layers += crossing_layers(x, crossings, sizes) + _obstacle_layers(x, obstacles)
    return look.finish_chart(
        layers,
        [*zones, *medians, *readings, *crossings, *obstacles],
        height=CROSSOVER_CHART_HEIGHT,
        mark=BUSY_MARK if answer.busy else "",
        resolve=look.OWN_SIZE_AXES,
    )


def _place_curve_names(
    answer: Crossover, medians: Sequence[ChartRow], sizes: Sequence[float], times: Sequence[float], *, recorded: bool
) -> dict[str, NamePlace]:
    """Return the positions of names next to the medians, and mark the median that has the name of its curve."""
    written = {name: wording.short_device(name) for name in (answer.baseline, answer.challenger)}
    if recorded:
        written[answer.challenger] += ", recorded"
    for row in medians:
        row["name"] = written[row["device"]]
    curves = {name: [(row["size"], row["time"]) for row in medians if row["name"] == name] for name in written.values()}
    placed = (
        look.place_names(curves, x=sizes, y=times, height=CROSSOVER_PLOT_HEIGHT)
        if medians and len(curves) == len(written)
        else {}
    )
    for row in medians:
        row["named"] = row["name"] in placed and placed[row["name"]].at == (row["size"], row["time"])
    return placed


def size_channel(axis: str, sizes: Sequence[float]) -> Any:
    """Return the horizontal channel, which is the same for every layer except for its axis."""
    title, scale = f"{axis_title(axis)} (log scale)", look.altair_log_scale(sizes)

    def channel(field: str = "size", *, axis: alt.Axis | None = None) -> alt.X:
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)

    return channel


def size_axis(sizes: Sequence[float]) -> alt.Axis:
    """Return the axis of sizes; labels that would touch each other are left out."""
    return alt.Axis(labelExpr=look.COMPACT_LABEL, values=look.log_ticks(sizes), labelOverlap="greedy", grid=False)


def _readings(answer: Crossover, pairs: Sequence[Evidence]) -> tuple[list[ChartRow], int]:
    """Return raw readings, thinned evenly from the fastest to the slowest of each size, and their total number."""
    known = [
        (device, entry.size, times)
        for entry in pairs
        for device, times in ((answer.baseline, entry.baseline_s), (answer.challenger, entry.challenger_s))
        if times
    ]
    each = max(2, MAX_READINGS_DRAWN // max(1, len(known)))
    rows = [
        {"layer": "reading", "device": device, "size": size, "time": time, "shown": units.format_duration(time)}
        for device, size, times in known
        for time in _thin_readings([time for time in times if 0 < time < math.inf], each)
    ]
    return rows[: 2 * MAX_READINGS_DRAWN], sum(len(times) for _, _, times in known)


def _thin_readings(times: Sequence[float], limit: int) -> list[float]:
    if len(times) <= limit:
        return list(times)
    ordered = sorted(times)
    return [ordered[round(place * (len(ordered) - 1) / (limit - 1))] for place in range(limit)]


def _reading_medians(answer: Crossover, entry: Evidence) -> list[ChartRow]:
    rows: list[ChartRow] = []
    for device, times in ((answer.baseline, entry.baseline_s), (answer.challenger, entry.challenger_s)):
        valid = [time for time in times if 0 < time < math.inf]
        if valid:
            middle, low, high = statistics.median(valid), *_interquartile_range(valid)
            rows.append(
                {
                    "layer": "median",
                    "device": device,
                    "size": entry.size,
                    "time": middle,
                    "low": low,
                    "high": high,
                    "shown": units.format_duration(middle),
                    "noise": f"{units.format_duration(low)} to {units.format_duration(high)}",
                    "readings": len(times),
                }
            )
    return rows


def _interquartile_range(times: Sequence[float]) -> tuple[float, float]:
    """Return the interquartile range of the readings."""
    if len(times) < 2:
        return times[0], times[0]
    low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    return low, high


def _zone_row(axis: str, name: str, low: float, high: float) -> ChartRow:
    return {"layer": name, "zone": name, "from": low, "to": high, "shown": _range_label(axis, low, high)}


def _range_label(axis: str, low: float, high: float) -> str:
    """Return an interval of sizes in few characters, with the same rounding as in the sentence."""
    return look.format_size_range(*wording.round_interval_outwards(axis, low, high))


def crossing_rows(answer: Crossover) -> list[ChartRow]:
    """Return the sizes at which the faster device changes, with their labels above a chart."""
    return [_crossing_row(answer.axis, at) for at in answer.crossings]


def _crossing_row(axis: str, crossing: Crossing) -> ChartRow:
    """Return the row of a crossing; on an axis of few whole numbers its label is the next whole number."""
    size, span = (
        look.format_size_compactly(wording.buildable_size(axis, crossing.estimate)),
        _range_label(axis, crossing.low, crossing.high),
    )
    label = f"about {size} ({span})"
    if wording.is_whole_axis(axis) and crossing.high <= wording.MOST_WHOLE:
        label = f"from {size} on" if math.ceil(crossing.low) == math.ceil(crossing.high) else f"from {size} on ({span})"
    return {"layer": "crossing", "size": crossing.estimate, "shown": f"{size}, {span}", "label": label}


def _open_ranges(answer: Crossover) -> list[tuple[float, float]]:
    """Return the ranges of sizes without a clear winner; empty if no size has a clear winner."""
    timed = [size.size for size in answer.sizes if size.speedup is not None]
    edges = (
        [timed[0], *(edge for one in answer.clear for edge in (one.begin, one.end)), timed[-1]] if answer.clear else []
    )
    return [(low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if low < high]


def _zone_layers(x: Any, zones: Sequence[ChartRow]) -> list[alt.Chart]:
    names = list(dict.fromkeys(row["zone"] for row in zones))
    return [
        look.layer_chart(name)
        .mark_rect()
        .encode(
            x=x("from"), x2="to", fill=zone_fill(names), tooltip=look.tooltips(("zone", "shaded"), ("shown", "sizes"))
        )
        for name in names
    ]


def zone_fill(names: Sequence[str]) -> alt.Fill:
    """Return the fill of shaded zones, with their names in the legend."""
    legend = look.names_legend(names, orient="bottom", symbolType="square", symbolStrokeWidth=0)
    fill: alt.Fill = look.names_channel(alt.Fill, "zone", names, [ZONE_FILLS[name] for name in names], legend=legend)
    return fill


def _curve_layers(
    answer: Crossover,
    kinds: tuple[str, str] | None,
    x: Any,
    y: dict[str, Any],
    placed: Mapping[str, NamePlace],
    *,
    bottom: alt.Axis,
    pointed: bool,
    recorded: bool,
) -> list[alt.Chart]:
    """Layer noise, readings, and median lines with names and points; the first layer has the axis of all layers."""
    names, width = [answer.baseline, answer.challenger], 0 if pointed else 2
    legend = None if placed else look.names_legend(names, symbolSize=120, symbolOpacity=1, symbolStrokeWidth=width)
    colours = look.contender_colours(look.resolve_device_kinds((answer.baseline, answer.challenger), kinds))
    colour = look.names_channel(alt.Color, "device", names, colours, legend=legend)
    shapes = [look.POINT_SHAPES[0], look.RECORDED if recorded else look.POINT_SHAPES[1]]
    shape = look.names_channel(alt.Shape, "device", names, shapes, legend=legend)
    dash = look.names_channel(alt.StrokeDash, "device", names, look.DASHES, legend=None if pointed else legend)
    which = (("device", "device"), ("size", axis_title(answer.axis), "~r"))
    summary = (("shown", "median"), ("noise", "interquartile range of the readings"), ("readings", "readings", ",d"))
    base = alt.Chart().encode(color=colour, tooltip=look.tooltips(*which, *summary))
    medians = base.transform_filter("datum.layer == 'median'")
    readings = base.transform_filter("datum.layer == 'reading'")
    at = {"x": x(), "y": alt.Y("time:Q", **y)}
    layers = [
        medians.mark_area(opacity=BAND_OPACITY).encode(x=x(axis=bottom), y=alt.Y("low:Q", **y), y2="high:Q"),
        readings.mark_point(filled=True, size=14, opacity=0.45).encode(
            **at, shape=shape, tooltip=look.tooltips(*which, ("shown", "one reading"))
        ),
        medians.mark_line(strokeWidth=2).encode(**at, strokeDash=dash),
        *look.name_layers(medians.encode(**at), placed, "name"),
    ]
    if not pointed:
        return layers
    points = medians.mark_point(filled=True, size=55, opacity=1).encode(**at, shape=shape)
    if not recorded:
        return [*layers, points]
    ours, theirs = (f"datum.layer == 'median' && datum.device {sign} {json.dumps(names[1])}" for sign in ("!=", "=="))
    hollow = base.mark_point(filled=False, size=90, strokeWidth=2, opacity=1).encode(**at, shape=shape)
    return [*layers, points.transform_filter(ours), hollow.transform_filter(theirs)]


def crossing_layers(x: Any, crossings: Sequence[ChartRow], sizes: Sequence[float]) -> list[alt.Chart]:
    """Return a thin rule at each estimate and, above the chart, its label with the interval, in the theme's colour.

    Each label is higher than the previous one, so that labels do not overlap in a narrow window.
    """
    tooltip = look.tooltips(("shown", "crossover, 95 % interval"), ("label", "so"))
    layers: list[alt.Chart] = []
    for place, row in enumerate(crossings):
        axis = alt.Axis(
            orient="top",
            offset=place * STEP,
            values=[row["size"]],
            labelExpr=json.dumps(row["label"] if place < MOST_LABELS else "", ensure_ascii=False),
            labelAlign=_alignment(row["size"], sizes),
            labelFontWeight="bold",
            labelFontSize=13,
            labelLimit=0,
            title=None,
            grid=False,
            ticks=False,
            domain=False,
        )
        rule = look.layer_chart("crossing").transform_filter(
            f"datum.label == {json.dumps(row['label'], ensure_ascii=False)}"
        )
        layers.append(rule.mark_rule(color=look.NEUTRAL, strokeWidth=1).encode(x=x(axis=axis), tooltip=tooltip))
    return layers


def _alignment(size: float, sizes: Sequence[float]) -> Literal["left", "center", "right"]:
    """Return the alignment of a label: inwards near an end of the axis, where it would be cut off."""
    low, high = math.log(min(sizes)), math.log(max(sizes))
    share = (math.log(size) - low) / (high - low) if high > low else 0.5
    return "left" if share < EDGE_SHARE else "right" if share > 1 - EDGE_SHARE else "center"


def _obstacle_layers(x: Any, obstacles: Sequence[ChartRow]) -> list[alt.Chart]:
    if not obstacles:
        return []
    crosses = look.layer_chart("obstacle").mark_point(
        shape=CROSS, size=90, stroke=look.NEUTRAL, strokeWidth=2, filled=False, opacity=1, yOffset=-8
    )
    tooltip = look.tooltips(("size", "size", "~r"), ("reason", "not timed"))
    return [crosses.encode(x=x(), y=alt.value("height"), tooltip=tooltip)]


CROSSING_CHART_HEIGHT = 280
"""Height of a chart with its axes, in pixels."""

CROSSING_PLOT_HEIGHT = 150
"""Minimum height of the plot area, in pixels."""

LINE, PUBLISHED_LINE = 3.0, 1.5
"""Line widths in pixels, for measured and for published times."""

PUBLISHED_COLOURS = ("#A0722A", "#B2508F")
"""Colours of a published CPU and GPU, which differ from the colours of measured devices."""


def crossing_chart(answer: Crossover, *, kinds: tuple[str, str] | None = None, published: bool = False) -> Spec:
    """Chart the median times of both devices against size, with their names and the interval of the crossing.

    Args:
        answer: the crossover, with names for people.
        kinds: device kinds of baseline and challenger; without them the kind follows from a device's name.
        published: whether others published the times; then points are hollow, lines are thin, and the colours differ
            from those of measured devices.
    """
    names = (answer.baseline, answer.challenger)
    rows = _curve_rows(answer)
    crossings = answer.crossings or (answer.assumed.crossings if answer.assumed else ())
    zones = [{"layer": "zone", "from": one.low, "to": one.high} for one in crossings]
    curved = {name: [(row["size"], row["time"]) for row in rows if row["device"] == name] for name in names}
    estimates = crossing_rows(answer)
    sizes, times = [row["size"] for row in rows], look.add_headroom([row["time"] for row in rows])
    placed = look.place_names(curved, x=sizes, y=times, height=CROSSING_PLOT_HEIGHT)
    for row in rows:
        row["named"] = row["device"] in placed and placed[row["device"]].at[0] == row["size"]
    x, y = (
        size_channel(answer.axis, sizes),
        alt.Y("time:Q", **look.log_channel(BASIS_AXIS_TITLES[answer.basis], times, look.SECONDS_LABEL)),
    )
    colours = PUBLISHED_COLOURS if published else look.contender_colours(look.resolve_device_kinds(names, kinds))
    legend = None if placed else look.names_legend(names, symbolSize=120, symbolOpacity=1, symbolStrokeWidth=0)
    colour = look.names_channel(alt.Color, "device", names, colours, legend=legend)
    shape = look.names_channel(alt.Shape, "device", names, look.POINT_SHAPES[:2], legend=legend)
    tooltip = look.tooltips(("device", "device"), ("size", axis_title(answer.axis), "~r"), ("shown", "median"))
    curves = look.layer_chart("time").encode(x=x(), y=y, color=colour)
    layers = [
        look.layer_chart("zone").mark_rect(color=look.NEUTRAL, opacity=0.3).encode(x=x("from"), x2="to"),
        curves.mark_line(strokeWidth=PUBLISHED_LINE if published else LINE).encode(x=x(axis=size_axis(sizes))),
        curves.mark_point(filled=not published, size=60, opacity=1, strokeWidth=2).encode(shape=shape, tooltip=tooltip),
        *look.name_layers(curves, placed, "device"),
        *crossing_layers(x, estimates, sizes),
    ]
    return look.finish_chart(
        layers, [*zones, *rows, *estimates], height=CROSSING_CHART_HEIGHT, resolve=look.OWN_SIZE_AXES
    )


def _curve_rows(answer: Crossover) -> list[ChartRow]:
    return [
        {"layer": "time", "device": device, "size": size.size, "time": time, "shown": units.format_duration(time)}
        for device, side in ((answer.baseline, "baseline_s"), (answer.challenger, "challenger_s"))
        for size in answer.sizes
        if size.speedup and (time := getattr(size, side))
    ]


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
