"""One question on many machines as a chart: the crossover of each with its interval, a line a machine.

Draws what `core.answer.study.crossover` found for each. Names of machines are data of the chart, never its markup.
"""

from collections.abc import Mapping

import altair as alt

from core.answer.charts import look
from core.answer.charts.classroom import ENDS
from core.answer.charts.look import Row, Spec
from core.answer.charts.studies import size_axis, size_channel
from core.answer.study import wording
from core.answer.study.result import Crossover
from core.question.fields import axis_title

MOST = 40
"""Machines on one chart."""

LINE, EDGES = 26, 76
"""Pixels of a machine, and of the axis with its title and the legend."""

FOUND = ("crossover", *ENDS.values())
LOOKS = ("circle", "triangle-left", "triangle-right")
"""What a machine found, with the mark that says so; one that found several, or nothing, has none."""


def crossovers(answers: Mapping[str, Crossover], kinds: Mapping[str, str]) -> Spec:
    """Where each machine's crossover lies; faster at every size, or at none, stands at the end of the sizes.

    Args:
        answers: by the name of each machine, along one axis.
        kinds: by the same name, the kind of the challenger's device.
    """
    names = list(answers)[:MOST]
    axis = answers[names[0]].axis
    sizes = [size.size for name in names for size in answers[name].sizes]
    rows = [row for name in names for row in _rows(name, answers[name], min(sizes), max(sizes))]
    values = [*sizes, *(row[end] for row in rows for end in ("low", "high"))]
    known = list(dict.fromkeys(kinds[name] for name in names))
    hues = dict(zip(known, look.colours(known), strict=True))
    x, ticks = size_channel(axis, values), size_axis(values)
    base = alt.Chart().encode(
        y=alt.Y(
            "machine:N",
            title=None,
            scale=alt.Scale(domain=names, padding=0.6),
            axis=alt.Axis(labelLimit=170, grid=True),
        ),
        color=look.by(alt.Color, "machine", names, [hues[kinds[name]] for name in names], legend=None),
        tooltip=look.tooltips(("machine", "machine"), ("where", axis_title(axis)), ("found", "answer")),
    )
    there = [found for found in FOUND if any(row["found"] == found for row in rows)]
    marks = dict(zip(FOUND, LOOKS, strict=True))
    legend = look.legend(there, symbolSize=120, symbolOpacity=1) if there != ["crossover"] else None
    shape = look.by(alt.Shape, "found", there, [marks[found] for found in there], legend=legend)
    spans = base.mark_rule(strokeWidth=6, opacity=0.5).encode(x=x("low", axis=ticks), x2="high:Q")
    points = base.mark_point(filled=True, size=90, opacity=1).encode(x=x("at", axis=ticks), shape=shape)
    return look.finished(alt.layer(spans, points), rows, height=EDGES + LINE * len(names))


def _rows(name: str, answer: Crossover, lowest: float, highest: float) -> list[Row]:
    """The marks of one machine: a crossing each, or the end at which its curves do not cross."""
    if answer.outcome in ENDS:
        at = highest if answer.outcome == "cpu_always" else lowest
        return [_row(name, at, at, at, ENDS[answer.outcome])]
    found = [_row(name, one.estimate, one.low, one.high, FOUND[0]) for one in answer.crossings]
    return [row for row in found if row["at"]]


def _row(name: str, at: float, low: float, high: float, found: str) -> Row:
    return {
        "machine": name,
        "at": at,
        "low": low,
        "high": high,
        "found": found,
        "where": f"{wording.size(at)} ({wording.size(low)} to {wording.size(high)})" if high > low else found,
    }
