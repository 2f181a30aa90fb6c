"""An answer at one glance: two curves with their names beside them, and the sizes between which they cross."""

import altair as alt

from core import units
from core.answer.charts import labels, look
from core.answer.charts.look import Row, Spec
from core.answer.charts.studies import TIMED, crossing_layers, crossing_rows, size_axis, size_channel
from core.answer.study.result import Crossover
from core.question.fields import axis_title

HEIGHT = 280
"""Pixels of a chart, with its axes."""

PLOT = 150
"""Pixels of it that are left for the curves at least."""

LINE, PUBLISHED_LINE = 3.0, 1.5
"""Pixels of a line."""

PUBLISHED_COLOURS = ("#A0722A", "#B2508F")
"""Of the CPU and the GPU of others: no colour of a device that was measured."""


def crossing(answer: Crossover, *, kinds: tuple[str, str] | None = None, published: bool = False) -> Spec:
    """Median times of both devices against size, with their names and the interval of the crossing.

    Args:
        answer: what was found, with names for people.
        kinds: device kinds of baseline and challenger; without them a device is taken for what its name says.
        published: whether others published the times; their points are then hollow, their lines thin, and their
            colours none of a device that was measured.
    """
    names = (answer.baseline, answer.challenger)
    rows = _curves(answer)
    crossings = answer.crossings or (answer.assumed.crossings if answer.assumed else ())
    zones = [{"layer": "zone", "from": one.low, "to": one.high} for one in crossings]
    curved = {name: [(row["size"], row["time"]) for row in rows if row["device"] == name] for name in names}
    estimates = crossing_rows(answer)
    sizes, times = [row["size"] for row in rows], labels.headroom([row["time"] for row in rows])
    placed = labels.names(curved, x=sizes, y=times, height=PLOT)
    for row in rows:
        row["named"] = row["device"] in placed and placed[row["device"]].at[0] == row["size"]
    x, y = size_channel(answer.axis, sizes), alt.Y("time:Q", **look.logged(TIMED[answer.basis], times, look.SECONDS))
    colours = PUBLISHED_COLOURS if published else look.colours(look.kinds_of(names, kinds))
    legend = None if placed else look.legend(names, symbolSize=120, symbolOpacity=1, symbolStrokeWidth=0)
    colour = look.by(alt.Color, "device", names, colours, legend=legend)
    shape = look.by(alt.Shape, "device", names, look.SHAPES[:2], legend=legend)
    tooltip = look.tooltips(("device", "device"), ("size", axis_title(answer.axis), "~r"), ("shown", "median"))
    curves = look.layer("time").encode(x=x(), y=y, color=colour)
    layers = [
        look.layer("zone").mark_rect(color=look.NEUTRAL, opacity=0.3).encode(x=x("from"), x2="to"),
        curves.mark_line(strokeWidth=PUBLISHED_LINE if published else LINE).encode(x=x(axis=size_axis(sizes))),
        curves.mark_point(filled=not published, size=60, opacity=1, strokeWidth=2).encode(shape=shape, tooltip=tooltip),
        *labels.layers(curves, placed, "device"),
        *crossing_layers(x, estimates, sizes),
    ]
    chart = alt.layer(*layers).resolve_axis(x="independent")
    return look.finished(chart, [*zones, *rows, *estimates], height=HEIGHT)


def _curves(answer: Crossover) -> list[Row]:
    return [
        {"layer": "time", "device": device, "size": size.size, "time": time, "shown": units.duration(time)}
        for device, side in ((answer.baseline, "baseline_s"), (answer.challenger, "challenger_s"))
        for size in answer.sizes
        if size.speedup and (time := getattr(size, side))
    ]
