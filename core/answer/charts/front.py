"""An answer at one glance: two curves that are named where they end, and the sizes between which they cross."""

import altair as alt

from core import units
from core.answer.charts import look
from core.answer.charts.look import Row, Spec
from core.answer.charts.studies import TIMED, size_axis, size_channel
from core.answer.study.result import Crossover
from core.question.fields import axis_title

HEIGHT = 280
"""Pixels of a chart, with its axes."""

NAMED, EDGE = {"above": -14, "below": 26}, 8
"""Pixels from the end of a curve to its name: of the slower one above, of the faster one below; and beyond the end."""

LINE, PUBLISHED_LINE = 3.0, 1.5
"""Pixels of a line."""

PUBLISHED_COLOURS = ("#A0722A", "#B2508F")
"""Of the CPU and the GPU of others: no colour of a device that was measured."""


def crossing(answer: Crossover, *, kinds: tuple[str, str] | None = None, published: bool = False) -> Spec:
    """Median times of both devices against size, each named at its end, with the interval of the crossing.

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
    sizes, times = [row["size"] for row in rows], [row["time"] for row in rows]
    x, y = size_channel(answer.axis, sizes), alt.Y("time:Q", **look.logged(TIMED[answer.basis], times, look.SECONDS))
    colours = PUBLISHED_COLOURS if published else look.colours(look.kinds_of(names, kinds))
    colour = look.by(alt.Color, "device", names, colours, legend=None)
    shape = look.by(alt.Shape, "device", names, look.SHAPES[:2], legend=None)
    tooltip = look.tooltips(("device", "device"), ("size", axis_title(answer.axis), "~r"), ("shown", "median"))
    curves = look.layer("time").encode(x=x(), y=y, color=colour)
    layers = [
        look.layer("zone").mark_rect(color=look.NEUTRAL, opacity=0.3).encode(x=x("from"), x2="to"),
        curves.mark_line(strokeWidth=PUBLISHED_LINE if published else LINE).encode(x=x(axis=size_axis(sizes))),
        curves.mark_point(filled=not published, size=60, opacity=1, strokeWidth=2).encode(shape=shape, tooltip=tooltip),
        *(
            curves.transform_filter(f"datum.name == '{place}'")
            .mark_text(align="right", dx=EDGE, dy=dy, fontSize=13, fontWeight="bold")
            .encode(text="device:N")
            for place, dy in NAMED.items()
        ),
    ]
    chart = alt.layer(*layers).resolve_axis(x="independent")
    return look.finished(chart, [*zones, *rows], height=HEIGHT)


def _curves(answer: Crossover) -> list[Row]:
    sides = ((answer.baseline, "baseline_s"), (answer.challenger, "challenger_s"))
    timed = [size for size in answer.sizes if size.baseline_s and size.challenger_s]
    last = timed[-1]
    slower = answer.baseline if (last.speedup or 1.0) > 1 else answer.challenger
    rows: list[Row] = []
    for device, side in sides:
        for size in timed:
            time = getattr(size, side)
            name = "" if size is not last else "above" if device == slower else "below"
            row = {"layer": "time", "device": device, "size": size.size, "time": time, "shown": units.duration(time)}
            rows.append({**row, "name": name})
    return rows
