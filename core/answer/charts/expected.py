"""What is expected at one size, as a marker with its interval among the measured speedups."""

import math

import altair as alt

from core import units
from core.answer.charts import look
from core.answer.charts.look import ChartRow, Spec
from core.answer.charts.speedups import speedup_axis
from core.answer.charts.studies import size_axis, size_channel
from core.answer.study.expected import ExpectedSpeedup
from core.answer.study.result import Crossover
from core.question.fields import axis_title

EXPECTATION_CHART_HEIGHT = 260
"""Pixels of the chart, with its axes."""

EXPECTATION_COLOUR = "#CC3377"
"""The colour of what was not measured: no device has it."""


def expectation_chart(answer: Crossover, expectation: ExpectedSpeedup) -> Spec:
    """The speedups of a study as they were measured, and in another colour and shape what is expected at a size."""
    measured: list[ChartRow] = [
        {"layer": "size", "size": one.size, "speedup": one.speedup, "shown": units.format_ratio(one.speedup)}
        for one in answer.sizes
        if one.speedup and 0 < one.size < math.inf
    ]
    ends = {"low": expectation.low, "high": expectation.high}
    here: ChartRow = {
        "layer": "expected",
        "size": expectation.size,
        "speedup": expectation.speedup,
        "shown": expectation.figures,
        **ends,
    }
    sizes = [row["size"] for row in (*measured, here)]
    values = [*(row["speedup"] for row in measured), expectation.low, expectation.high]
    x = size_channel(answer.axis, sizes)
    y = speedup_axis("speedup", values)
    tooltip = look.tooltips(("size", axis_title(answer.axis), "~r"), ("shown", "speedup"))
    layers = [
        alt.Chart().mark_rule(color=look.NEUTRAL, strokeWidth=1.5).encode(y=alt.YDatum(1)),
        look.layer_chart("size")
        .mark_point(filled=True, size=45, color=look.NEUTRAL, opacity=1)
        .encode(x=x(axis=size_axis(sizes)), y=alt.Y("speedup:Q", **y), tooltip=tooltip),
        look.layer_chart("expected")
        .mark_rule(color=EXPECTATION_COLOUR, strokeWidth=3)
        .encode(x=x(), y=alt.Y("low:Q", **y), y2="high:Q"),
        look.layer_chart("expected")
        .mark_point(shape=look.RECORDED, filled=False, size=160, strokeWidth=2.5, color=EXPECTATION_COLOUR, opacity=1)
        .encode(x=x(), y=alt.Y("speedup:Q", **y), tooltip=tooltip),
    ]
    chart = alt.layer(*layers).resolve_axis(x="independent")
    return look.finish_chart(chart, [*measured, here], height=EXPECTATION_CHART_HEIGHT)
