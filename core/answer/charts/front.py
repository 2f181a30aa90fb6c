"""An answer at one glance: two curves with their names beside them, and the sizes between which they cross."""

import altair as alt

from core import units
from core.answer.charts import labels, look
from core.answer.charts.look import ChartRow, Spec
from core.answer.charts.studies import BASIS_AXIS_TITLES, crossing_layers, crossing_rows, size_axis, size_channel
from core.answer.study.result import Crossover
from core.question.fields import axis_title

CROSSING_CHART_HEIGHT = 280
"""Pixels of a chart, with its axes."""

CROSSING_PLOT_HEIGHT = 150
"""Pixels of it that are left for the curves at least."""

LINE, PUBLISHED_LINE = 3.0, 1.5
"""Pixels of a line."""

PUBLISHED_COLOURS = ("#A0722A", "#B2508F")
"""Of the CPU and the GPU of others: no colour of a device that was measured."""


def crossing_chart(answer: Crossover, *, kinds: tuple[str, str] | None = None, published: bool = False) -> Spec:
    """Median times of both devices against size, with their names and the interval of the crossing.

    Args:
        answer: what was found, with names for people.
        kinds: device kinds of baseline and challenger; without them a device is taken for what its name says.
        published: whether others published the times; their points are then hollow, their lines thin, and their
            colours none of a device that was measured.
    """
    names = (answer.baseline, answer.challenger)
    rows = _curve_rows(answer)
    crossings = answer.crossings or (answer.assumed.crossings if answer.assumed else ())
    zones = [{"layer": "zone", "from": one.low, "to": one.high} for one in crossings]
    curved = {name: [(row["size"], row["time"]) for row in rows if row["device"] == name] for name in names}
    estimates = crossing_rows(answer)
    sizes, times = [row["size"] for row in rows], labels.add_headroom([row["time"] for row in rows])
    placed = labels.place_names(curved, x=sizes, y=times, height=CROSSING_PLOT_HEIGHT)
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
        *labels.name_layers(curves, placed, "device"),
        *crossing_layers(x, estimates, sizes),
    ]
    chart = alt.layer(*layers).resolve_axis(x="independent")
    return look.finish_chart(chart, [*zones, *rows, *estimates], height=CROSSING_CHART_HEIGHT)


def _curve_rows(answer: Crossover) -> list[ChartRow]:
    return [
        {"layer": "time", "device": device, "size": size.size, "time": time, "shown": units.format_duration(time)}
        for device, side in ((answer.baseline, "baseline_s"), (answer.challenger, "challenger_s"))
        for size in answer.sizes
        if size.speedup and (time := getattr(size, side))
    ]
