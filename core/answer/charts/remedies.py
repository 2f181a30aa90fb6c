"""What lanes gain on one device: a dot and an interval a lane, around the line at 1."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from core import units
from core.answer.charts import look
from core.answer.charts.look import ChartRow, Spec
from core.answer.charts.speedups import speedup_axis
from core.answer.run.remedies import Remedies, Remedy

HELP_COLOUR, NO_HELP_COLOUR = "#009E73", look.NEUTRAL
"""A lane that is faster beyond the noise, and one that is not."""

TICK_DISTANCE = 1.15
"""Factor from 1 to the next tick at least."""

LANE_NAMES_WIDTH = 220
"""Pixels that the names of lanes have."""


def lane_effects_chart(remedies: Remedies) -> Spec:
    """The lanes of one device that were told, the largest effect on top; empty where none was."""
    told = [*_keep_measured(remedies.same), *_keep_measured(remedies.other)]
    if not told:
        return {}
    rows = [_remedy_row(one) for one in sorted(told, key=lambda one: -(one.value or 0.0))]
    y = alt.Y(
        "lane:N",
        sort=[row["lane"] for row in rows],
        title=None,
        axis=alt.Axis(labelLimit=LANE_NAMES_WIDTH, ticks=False),
    )
    ends = [row[end] for row in rows for end in ("low", "value", "high")]
    x = _axis([end for end in ends if end])
    colour = alt.Color(
        "helps:N", scale=alt.Scale(domain=["yes", "no"], range=[HELP_COLOUR, NO_HELP_COLOUR]), legend=None
    )
    tooltip = look.tooltips(("lane", "lane"), ("shown", "speedup"), ("helps", "clearly faster"))
    base = look.layer_chart("lane").encode(y=y, color=colour, tooltip=tooltip)
    one = alt.Chart().mark_rule(color=look.NEUTRAL, strokeWidth=1.5, strokeDash=[4, 3]).encode(x=alt.XDatum(1))
    interval = base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", **x), x2="high:Q")
    dot = base.mark_point(filled=True, size=110, opacity=1).encode(x=alt.X("value:Q", **x))
    return look.finish_chart(alt.layer(one, interval, dot), rows, height=alt.Step(look.CELL_HEIGHT_PX))


def _axis(ends: Sequence[float]) -> dict[str, Any]:
    """The axis of the speedup; no tick so close to 1 that their labels meet where the chart is narrow."""
    x = speedup_axis("times as fast as plain steps", ends)
    values = [tick for tick in x["axis"]["values"] if tick == 1 or not 1 / TICK_DISTANCE < tick < TICK_DISTANCE]
    return {**x, "axis": alt.Axis(labelExpr=look.RATIO_LABEL, values=values, labelOverlap="greedy")}


def _keep_measured(listed: Sequence[Remedy]) -> list[Remedy]:
    return [one for one in listed if one.value and one.low and one.high]


def _remedy_row(one: Remedy) -> ChartRow:
    interval = units.format_interval(one.low, one.high, units.format_ratio)
    return {
        "layer": "lane",
        "lane": one.title + (" *" if one.standing == "other" else ""),
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "helps": "yes" if one.helps else "no",
        "shown": f"{units.format_ratio(one.value or 0.0)} ({interval})",
    }
