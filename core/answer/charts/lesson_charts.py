"""Charts of lessons, tutorials and classes: clocks, epochs in parts, seeds, launches, published times, many answers.

The charts show the results of `core.answer`; nothing is computed here.

Some charts show many answers to one question: results and predictions of a class, or crossovers of many machines.
Their functions accept simple rows instead of the classroom's types. Nicknames and machine names are data of the chart,
never markup.
"""

from __future__ import annotations

import collections
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ... import units
from ...question.experiment import display_name, inline_name
from ...question.fields import axis_title
from ...results.exhibits import Clock
from ...results.schema import Trial
from .. import wording
from ..accuracy import SeedBand
from ..causes import PART_TITLES
from ..judgement import Crossover
from ..lessons.limits import Bottleneck, Launches, TwoBatches
from ..lessons.tutorials import ChartNumber, PublishedComparison
from . import alt, look
from .look import ChartRow, Spec
from .study_charts import size_axis, size_channel, speedup_axis

FIXED_PART, GROWING_PART = "the same whatever the batch", "grows with the batch"
WAITING_PART, COMPUTING_PART = "waits for launches", "computes"
SHARE_COLOURS = {FIXED_PART: "#EE8866", GROWING_PART: "#77AADD", WAITING_PART: "#EE8866", COMPUTING_PART: "#77AADD"}


def clocks_chart(clock: Clock, kinds: Mapping[str, str]) -> Spec:
    """Chart the seconds per epoch by each clock: every reading, and a line at the median of the correct clock."""
    contenders = list(dict.fromkeys(variant.contender for variant in clock.variants))
    rows: list[ChartRow] = []
    for variant in clock.variants:
        ours = clock.select_variants(variant.contender)[0].epoch_s
        middle = statistics.median(ours)
        rows += [
            {
                "clock": variant.title,
                "device": display_name(variant.contender),
                "time": seconds,
                "shown": units.format_duration(seconds),
                "against": units.format_ratio(seconds / middle),
                "ours": middle,
            }
            for seconds in variant.epoch_s
        ]
    names = list(dict.fromkeys(variant.title for variant in clock.variants))
    colours = look.contender_colours([kinds.get(name, "") for name in contenders])
    contenders = [display_name(name) for name in contenders]
    legend = look.names_legend(contenders, symbolOpacity=1)
    x = look.log_channel(
        "time per epoch by this clock", [row["time"] for row in rows], look.SECONDS_LABEL, labelOverlap="greedy"
    )
    base = alt.Chart().encode(color=look.names_channel(alt.Color, "device", contenders, colours, legend=legend))
    rule = base.mark_rule(strokeWidth=2, strokeDash=[6, 3]).encode(x=alt.X("ours:Q", scale=x["scale"]))
    points = base.mark_point(filled=True, size=60, opacity=0.8).encode(
        x=alt.X("time:Q", **x),
        y=alt.Y("clock:N", sort=names, title=None, axis=look.bar_names_axis(names)),
        yOffset=alt.YOffset("device:N", sort=contenders),
        shape=look.names_channel(alt.Shape, "device", contenders, look.POINT_SHAPES, legend=legend),
        tooltip=look.tooltips(
            ("clock", "clock"), ("device", "device"), ("shown", "an epoch"), ("against", "relative to Crossover")
        ),
    )
    return look.finish_chart([rule, points], rows, height=alt.Step(look.BAR_HEIGHT // 2))


def epoch_parts_chart(bottleneck: Bottleneck) -> Spec:
    """Chart the parts of an epoch for each way of delivering data, with a tick at the undisturbed epoch."""
    unit, scale = look.choose_time_unit([max((sum(way.parts_s.values()), way.epoch_s)) for way in bottleneck.ways])
    rows: list[ChartRow] = [
        {
            "way": way.title,
            "part": part,
            "rank": rank,
            "time": way.parts_s.get(part, 0.0) * scale,
            "shown": units.format_duration(way.parts_s[part]) if part in way.parts_s else "not measured",
            "epoch": way.epoch_s * scale,
            "took": units.format_duration(way.epoch_s),
        }
        for way in bottleneck.ways
        for rank, part in enumerate(PART_TITLES)
    ]
    names = [way.title for way in bottleneck.ways]
    y = alt.Y("way:N", sort=names, title=None, axis=look.bar_names_axis(names))
    figures = (("shown", "timed separately"), ("took", "undisturbed epoch"))
    base = alt.Chart().encode(y=y, tooltip=look.tooltips(("way", "data"), ("part", "part"), *figures))
    title = f"an epoch on {inline_name(bottleneck.contender)} ({unit})"
    x = alt.X("time:Q", title=title, stack="zero", axis=alt.Axis(tickCount=5))
    legend = alt.Legend(orient="top", title=None, columns=2)  # the names of the bars leave no space for three
    bars = look.stack_parts(base.mark_bar(size=look.BAR_HEIGHT // 2).encode(x=x), look.PART_COLOURS, legend)
    tick = base.transform_filter("datum.rank == 0").mark_tick(thickness=2, color=look.NEUTRAL)
    return look.finish_chart([bars, tick.encode(x="epoch:Q")], rows, height=alt.Step(look.BAR_HEIGHT))


def seed_band_chart(band: SeedBand, trials: Sequence[Trial]) -> Spec:
    """Chart the loss curves of the challenger, one row per seed, on the band of the baseline's seeds."""
    name = f"{display_name(band.baseline)}, all seeds"
    areas: list[ChartRow] = [
        {"layer": "band", "step": step, "low": low, "high": high, "band": name}
        for step, low, high in zip(band.steps, band.low, band.high, strict=True)
        if 0 < low <= high < math.inf
    ]
    curves: list[ChartRow] = [
        {"layer": "curve", "step": step, "loss": loss, "seed": str(trial.seed)}
        for trial in trials
        for step, loss in zip(band.steps, trial.loss, strict=False)  # a curve may continue after the end of the band
        if 0 < loss < math.inf
    ]
    x = alt.X("step:Q", title="steps", scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(tickCount=8, grid=False))
    drawn = [row[end] for row in (*areas, *curves) for end in ("low", "high", "loss") if end in row]
    y = look.log_channel("training loss (nats)", drawn, look.NUMBER_LABEL)
    kind = trials[0].device_kind if trials else ""
    colour = look.DEVICE_COLOURS.get(kind, look.NEUTRAL)
    grey = look.names_channel(alt.Color, "band", [name], [look.NEUTRAL], legend=look.names_legend([name]))
    area = look.layer_chart("band").mark_area(opacity=0.35).encode(x=x, y=alt.Y("low:Q", **y), y2="high:Q", color=grey)
    lines = look.layer_chart("curve").mark_line(color=colour, strokeWidth=1.5)
    dash = alt.StrokeDash("seed:N", title=f"seed on {display_name(band.challenger)}", legend=alt.Legend(orient="top"))
    tooltip = look.tooltips(("seed", "seed"), ("step", "steps", ",d"), ("loss", "loss", ".4g"))
    lines = lines.encode(x=x, y=alt.Y("loss:Q", **y), strokeDash=dash, tooltip=tooltip)
    return look.finish_chart([area, lines], [*areas, *curves], height=TUTORIAL_CHART_HEIGHT)


def step_shares_chart(pairs: Sequence[TwoBatches]) -> Spec:
    """Chart the shares of a step at both batch sizes: the fixed cost, and the part that grows with the batch."""
    steps = [(step, pair.fixed_s) for pair in pairs for step in (pair.small, pair.large)]
    return _shares([(step, min(1.0, fixed_s / step.step_s)) for step, fixed_s in steps], (FIXED_PART, GROWING_PART))


def device_shares_chart(pairs: Sequence[TwoBatches]) -> Spec:
    """Chart the share of a step in which an accelerator computes; devices without this measurement are left out."""
    steps = [(step, step.busy_s) for pair in pairs for step in (pair.small, pair.large) if step.busy_s is not None]
    waiting = [(step, 1 - min(1.0, busy_s / step.step_s)) for step, busy_s in steps]
    return _shares(waiting, (WAITING_PART, COMPUTING_PART))


def _shares(steps: Sequence[tuple[Launches, float]], parts: tuple[str, str]) -> Spec:
    """Return a bar for each step: the share of the first part, and the rest for the second part."""
    rows: list[ChartRow] = [
        {
            "step": f"{display_name(step.contender)}, batch {units.format_count(step.batch_size)}",
            "part": part,
            "share": share,
            "rank": rank,
            "took": units.format_duration(step.step_s),
        }
        for step, first in steps
        for rank, (part, share) in enumerate(zip(parts, (first, 1 - first), strict=True))
    ]
    names = list(dict.fromkeys(row["step"] for row in rows))
    x = alt.X("share:Q", title="share of a step", stack="zero", axis=alt.Axis(format=".0%", tickCount=5))
    y = alt.Y("step:N", sort=names, title=None, axis=look.bar_names_axis(names))
    lines = look.tooltips(("step", "step"), ("part", "part"), ("share", "share", ".1%"), ("took", "a step takes"))
    bars = alt.Chart().mark_bar(size=look.BAR_HEIGHT // 2).encode(x=x, y=y, tooltip=lines)
    colours = {part: SHARE_COLOURS[part] for part in parts}
    return look.finish_chart(
        look.stack_parts(bars, colours, look.names_legend(parts)), rows, height=alt.Step(look.BAR_HEIGHT)
    )


TUTORIAL_CHART_HEIGHT = 400
"""Height of a chart with axes and legend, in pixels."""

SPEEDUP = "Speedup over the first device"
"""Title of the chart of speedups; it keeps the device names out of the legend, which a phone would cut."""


def tutorial_times_chart(comparison: PublishedComparison) -> Spec:
    """Chart the published and measured seconds of a training or an epoch against what the tutorial varies."""
    y = look.log_channel(f"time per {comparison.per}", _interval_ends(comparison.times), look.SECONDS_LABEL)
    return _side_by_side(comparison, comparison.times, y, units.format_duration)


def tutorial_speedups_chart(comparison: PublishedComparison) -> Spec:
    """Chart the published and the measured speedup of the challenger; at the line at 1 neither device is faster."""
    y = speedup_axis("speedup", _interval_ends(comparison.speedups))
    return _side_by_side(comparison, comparison.speedups, y, units.format_ratio, even=True)


def _side_by_side(
    comparison: PublishedComparison,
    marks: Sequence[ChartNumber],
    y: dict[str, Any],
    format_value: Any,
    *,
    even: bool = False,
) -> Spec:
    placed = [mark for mark in marks if mark.place is not None]
    rows: list[ChartRow] = [_number_row(mark, format_value) for mark in placed]
    x = _places_channel(comparison)
    series = list(dict.fromkeys(mark.series for mark in placed))
    layers = [
        *_rules(comparison, marks, x, y, even=even),
        *_series_layers(series, placed, x, y, line=comparison.axis_kind != "names"),
    ]
    rules: list[ChartRow] = [{"layer": "even", "value": 1.0}] if even else []
    rules += [{"layer": "claim", "value": mark.value, "series": mark.series} for mark in marks if mark.place is None]
    if comparison.wins_from is not None:
        rules.append({"layer": "wins", "place": comparison.wins_from, "said": "published: GPU wins from here"})
    return look.finish_chart(layers, [*rules, *rows], height=TUTORIAL_CHART_HEIGHT)


def _number_row(mark: ChartNumber, format_value: Any) -> ChartRow:
    spread = (
        "" if mark.low is None or mark.high is None else f" ({format_value(mark.low)} to {format_value(mark.high)})"
    )
    return {
        "layer": "mark",
        "series": mark.series,
        "place": mark.place,
        "label": mark.label,
        "value": mark.value,
        "low": mark.low,
        "high": mark.high,
        "shown": f"{format_value(mark.value)}{spread}",
    }


def _places_channel(comparison: PublishedComparison) -> alt.X:
    """Return the axis of the varied value, which is the same on both charts of a tutorial."""
    marks = [mark for mark in (*comparison.times, *comparison.speedups) if mark.place is not None]
    if comparison.axis_kind == "names":
        names = list(dict.fromkeys(mark.label for mark in sorted(marks, key=lambda mark: mark.place or 0.0)))
        flat = sum(len(name) + 1 for name in names) <= look.LEGEND_LETTERS
        axis = alt.Axis(labelAngle=0 if flat else -35, labelLimit=150, labelOverlap=False)
        return alt.X("label:N", sort=names, title=comparison.axis, axis=axis, scale=alt.Scale(padding=0.5))
    places = [mark.place for mark in marks if mark.place is not None]
    if comparison.axis_kind == "log":
        return alt.X(
            "place:Q",
            **look.log_channel(comparison.axis, places, look.COMPACT_LABEL, labelOverlap="greedy", grid=False),
        )
    ends = [*places, *([] if comparison.wins_from is None else [comparison.wins_from])]
    scale = alt.Scale(domain=[min(ends), max(ends)], zero=False, nice=False, padding=look.EDGE * 2)
    return alt.X("place:Q", title=comparison.axis, scale=scale, axis=alt.Axis(tickMinStep=1, format="d", grid=False))


def _rules(
    comparison: PublishedComparison, marks: Sequence[ChartNumber], x: alt.X, y: dict[str, Any], *, even: bool
) -> list[alt.Chart]:
    """Layer the lines for equal times, for claims about the whole axis, and for the size where the GPU should win."""
    layers: list[alt.Chart] = []
    grey: dict[str, Any] = {"color": look.NEUTRAL, "strokeWidth": 1.5}
    if even:
        rule = look.layer_chart("even").mark_rule(**grey)
        layers.append(rule.encode(y=alt.Y("value:Q", **y)))
    if any(mark.place is None for mark in marks):
        base = look.layer_chart("claim").encode(y=alt.Y("value:Q", **y))
        text = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=look.NEUTRAL)
        layers += [base.mark_rule(strokeDash=[6, 3], **grey), text.encode(text="series:N", x=alt.value(0))]
    if comparison.wins_from is not None:
        base = look.layer_chart("wins").encode(x=x)
        layers.append(base.mark_rule(strokeDash=[6, 3], **grey))
        text = base.mark_text(align="right", dx=-4, color=look.NEUTRAL)
        layers.append(text.encode(text="said:N", y=alt.value(8)))
    return layers


def _series_layers(
    series: Sequence[str], marks: Sequence[ChartNumber], x: alt.X, y: dict[str, Any], *, line: bool
) -> list[alt.Chart]:
    first = {mark.series: mark for mark in reversed(marks)}
    origins = {name: first[name].origin for name in series}
    colours = _series_colours(series, first)
    shapes = [look.POINT_SHAPES[at % len(look.POINT_SHAPES)] for at in range(len(series))]
    dashes = [[5, 4] if origins[name] == "published" else [1, 0] for name in series]
    legend = look.names_legend(series, symbolSize=100, symbolOpacity=1, symbolStrokeWidth=0)
    tooltip = look.tooltips(("series", "from"), ("label", "at"), ("shown", "value"))
    colour = look.names_channel(alt.Color, "series", series, colours, legend=legend)
    base = look.layer_chart("mark").encode(x=x, color=colour, tooltip=tooltip)
    value = alt.Y("value:Q", **y)
    layers = [
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", **y), y2="high:Q")
    ]
    if line:
        dash = look.names_channel(alt.StrokeDash, "series", series, dashes, legend=None)
        layers.append(base.mark_line(strokeWidth=2).encode(y=value, strokeDash=dash))
    filled = [name for name in series if origins[name] != "published"]
    solid = alt.condition(alt.FieldOneOfPredicate(field="series", oneOf=filled), alt.value(1.0), alt.value(0.0))
    points = base.mark_point(size=60, strokeWidth=2).encode(
        y=value,
        shape=look.names_channel(alt.Shape, "series", series, shapes, legend=legend),
        fill=look.names_channel(alt.Fill, "series", series, colours, legend=legend),
        fillOpacity=solid,
    )
    return [*layers, points]


def _series_colours(series: Sequence[str], first: Mapping[str, ChartNumber]) -> list[str]:
    """Return a colour per series by device kind; the second of one kind and origin has a lighter shade."""
    colours: dict[str, str] = {}
    for origin in ("published", "measured", "recorded"):
        names = [name for name in series if first[name].origin == origin]
        colours |= dict(zip(names, look.contender_colours([first[name].kind for name in names]), strict=True))
    return [colours[name] for name in series]


def _interval_ends(marks: Sequence[ChartNumber]) -> list[float]:
    return [value for mark in marks for value in (mark.value, mark.low, mark.high) if value]


MAX_STUDENTS_DRAWN = 200
"""Maximum number of students shown individually."""

MOST_RATIO = 1e4
"""Largest speedup, and largest inverse speedup, shown at its true position, so that one outlier cannot flatten the
chart. A crossover is clipped to the range from a tenth of the smallest size to ten times the largest.
"""

ROW = 46
"""Height of the row of one pair of devices, in pixels."""

OUTCOMES_WITHOUT_CROSSOVER = {"gpu_always": "faster at every size", "cpu_always": "faster at no size"}

MAX_MACHINES_DRAWN = 40
"""Maximum number of machines on one chart."""

MACHINE_ROW_HEIGHT = 26
"""Height of the row of one machine, in pixels."""

MACHINE_ANSWERS = ("crossover", *OUTCOMES_WITHOUT_CROSSOVER.values())
MACHINE_SHAPES = ("circle", "triangle-left", "triangle-right")
"""Shape of the mark for each entry of `MACHINE_ANSWERS`."""


@dataclass(frozen=True, kw_only=True)
class StudentResult:
    """One student's result, grouped by pair of devices: size of the crossover, or the speedup, with its interval.

    `outcome` is a key of `core.answer.judgement.OUTCOMES`, `said` is the answer in words.
    """

    who: str
    devices: str
    kind: str
    value: float | None
    low: float | None
    high: float | None
    outcome: str
    answer: str


def student_crossovers_chart(marks: Sequence[StudentResult], expected: Mapping[float, int], axis: str) -> Spec:
    """Chart all students' crossovers by pair of devices, and the number of predictions at each size.

    Students whose challenger was faster at every size, or at none, are at the ends of the axis. `axis` is the display
    name of the axis.
    """
    places = sorted(expected)
    drawn = [mark for mark in marks[:MAX_STUDENTS_DRAWN] if mark.value or mark.outcome in OUTCOMES_WITHOUT_CROSSOVER]
    rows = [_clip_row(_student_row(mark, places[0], places[-1]), places[0] / 10, places[-1] * 10) for mark in drawn]
    counted: list[ChartRow] = [{"size": size, "students": expected[size]} for size in places if expected[size]]
    values = [*places, *(row["at"] for row in rows)]
    x = look.log_channel(axis, values, look.COMPACT_LABEL, labelOverlap="greedy", grid=False)
    return _layer_students(rows, counted, x, "crossover")


def predictions_chart(counts: Mapping[str, int], title: str) -> Spec:
    """Return a histogram of the predictions, with a bar for each answer in the given order, even if nobody chose it."""
    rows: list[ChartRow] = [{"answer": answer, "students": count} for answer, count in counts.items()]
    most = max((*counts.values(), 1))
    base = alt.Chart().encode(
        x=alt.X("answer:N", title=title, sort=list(counts), axis=alt.Axis(labelAngle=0, labelLimit=160)),
        y=alt.Y(
            "students:Q",
            title="students",
            axis=alt.Axis(format="d", tickMinStep=1, grid=False),
            scale=alt.Scale(domain=[0, most * 1.15]),
        ),
        tooltip=look.tooltips(("answer", title), ("students", "students", "d")),
    )
    figures = base.transform_filter("datum.students > 0").mark_text(
        dy=-10, fontSize=16, fontWeight="bold", color=look.NEUTRAL
    )
    bars = base.mark_bar(color=look.NEUTRAL, opacity=0.7)
    return look.finish_chart([bars, figures.encode(text="students:Q")], rows, height=look.CHART_HEIGHT)


def student_speedups_chart(marks: Sequence[StudentResult]) -> Spec:
    """Chart all students' speedups by pair of devices; at 1 neither device is faster."""
    drawn = [mark for mark in marks[:MAX_STUDENTS_DRAWN] if mark.value]
    rows = [_clip_row(_student_row(mark, 1, 1), 1 / MOST_RATIO, MOST_RATIO) for mark in drawn]
    values = [row[end] for row in rows for end in ("at", "low", "high")] + [0.5, 2]
    return _layer_students(rows, [], look.log_channel("speedup", values, look.SPEEDUP_LABEL, grid=False), "speedup")


def student_chart_height(groups: int) -> int:
    """Return the height in pixels, legend included, of a chart with this number of device pairs."""
    return look.CHART_HEIGHT + ROW * groups


def _student_row(mark: StudentResult, lowest: float, highest: float) -> ChartRow:
    at = mark.value or (highest if mark.outcome == "cpu_always" else lowest)
    return {
        "who": mark.who,
        "devices": mark.devices,
        "kind": mark.kind,
        "at": at,
        "low": mark.low or at,
        "high": mark.high or at,
        "found": OUTCOMES_WITHOUT_CROSSOVER.get(mark.outcome, "crossover") if not mark.value else "measured",
        "said": mark.answer,
    }


def _clip_row(row: ChartRow, lowest: float, highest: float) -> ChartRow:
    return row | {end: min(max(row[end], lowest), highest) for end in ("at", "low", "high")}


def _layer_students(rows: list[ChartRow], counted: list[ChartRow], x: dict[str, Any], what: str) -> Spec:
    """Layer intervals and points, in a strip for each pair of devices, over the tally, which has a separate axis."""
    devices = list(dict.fromkeys(row["devices"] for row in rows))
    seen: collections.Counter[str] = collections.Counter()
    sizes = collections.Counter(row["devices"] for row in rows)
    for row in rows:  # side by side within their band, in the order of joining
        pair = row["devices"]
        row["lane"] = devices.index(pair) + 0.15 + 0.7 * (seen[pair] + 0.5) / sizes[pair]
        seen[pair] += 1
    layers = [_tally(counted, x), *_students(rows, devices, x, what)]
    return look.finish_chart(
        layers, [*counted, *rows], height=student_chart_height(len(devices)), resolve={"scale": {"y": "independent"}}
    )


def _tally(counted: list[ChartRow], x: dict[str, Any]) -> alt.Chart:
    y = alt.Y(
        "students:Q",
        title="students who predict it there",
        axis=alt.Axis(orient="right", tickMinStep=1, format="d", grid=False) if counted else None,
        scale=alt.Scale(domainMin=0, domainMax=max((row["students"] for row in counted), default=1) * 1.3),
    )
    rules: alt.Chart = alt.Chart().transform_filter("isValid(datum.students)")
    rules = rules.mark_rule(color=look.NEUTRAL, opacity=0.35, strokeWidth=22)
    tooltip = look.tooltips(("size", "expected from", "~r"), ("students", "students", "d"))
    return rules.encode(x=alt.X("size:Q", **x), y=y, y2=alt.datum(0), tooltip=tooltip)


def _students(rows: list[ChartRow], devices: list[str], x: dict[str, Any], what: str) -> list[alt.Chart]:
    kinds = {row["devices"]: row["kind"] for row in rows}
    colours = look.contender_colours([kinds[name] for name in devices])
    lanes = alt.Scale(domain=[0, max(1, len(devices))], nice=False, zero=False)
    legend = look.names_legend(devices, symbolSize=120, symbolOpacity=1, symbolStrokeWidth=0)
    tooltip = look.tooltips(("who", "student"), ("devices", "devices"), ("at", what, ".3~s"), ("said", "answer"))
    base = (
        alt.Chart()
        .transform_filter("isValid(datum.at)")
        .encode(
            x=alt.X("at:Q", **x),
            y=alt.Y("lane:Q", title=None, scale=lanes, axis=None),
            color=look.names_channel(alt.Color, "devices", devices, colours, legend=legend),
            tooltip=tooltip,
        )
    )
    ends = ("circle", "triangle-left", "triangle-right")
    shape = look.names_channel(
        alt.Shape, "found", ["measured", *OUTCOMES_WITHOUT_CROSSOVER.values()], ends, legend=None
    )
    return [
        base.mark_rule(opacity=0.6, strokeWidth=2).encode(x=alt.X("low:Q", **x), x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(shape=shape),
    ]


def machine_crossovers_chart(answers: Mapping[str, Crossover], kinds: Mapping[str, str]) -> Spec:
    """Chart the crossover of each machine.

    A machine with one winner at every size has its mark at the end of its range of sizes.
    """
    names = list(answers)[:MAX_MACHINES_DRAWN]
    axis = answers[names[0]].axis
    sizes = [size.size for name in names for size in answers[name].sizes]
    rows = [row for name in names for row in _machine_rows(name, answers[name])]
    values = [*sizes, *(row[end] for row in rows for end in ("low", "high"))]
    known = list(dict.fromkeys(kinds[name] for name in names))
    hues = dict(zip(known, look.contender_colours(known), strict=True))
    x, ticks = size_channel(axis, values), size_axis(values)
    base = alt.Chart().encode(
        y=alt.Y(
            "machine:N",
            title=None,
            scale=alt.Scale(domain=names, padding=0.6),
            axis=alt.Axis(labelLimit=150, labelOverlap=False, grid=True),
        ),
        color=look.names_channel(alt.Color, "machine", names, [hues[kinds[name]] for name in names], legend=None),
        tooltip=look.tooltips(("machine", "machine"), ("where", axis_title(axis)), ("found", "answer")),
    )
    there = [found for found in MACHINE_ANSWERS if any(row["found"] == found for row in rows)]
    marks = dict(zip(MACHINE_ANSWERS, MACHINE_SHAPES, strict=True))
    mark: dict[str, Any] = {
        "symbolSize": 120,
        "symbolOpacity": 1,
        "symbolFillColor": look.NEUTRAL,
        "symbolStrokeWidth": 0,
    }
    legend = look.names_legend(there, **mark) if there != ["crossover"] else None
    shape = look.names_channel(alt.Shape, "found", there, [marks[found] for found in there], legend=legend)
    spans = base.mark_rule(strokeWidth=6, opacity=0.5).encode(x=x("low", axis=ticks), x2="high:Q")
    points = base.mark_point(filled=True, size=90, opacity=1).encode(x=x("at", axis=ticks), shape=shape)
    return look.finish_chart([spans, points], rows, height=alt.Step(MACHINE_ROW_HEIGHT))


def _machine_rows(name: str, answer: Crossover) -> list[ChartRow]:
    """Return the marks of one machine: one per crossing, or one at the end of its sizes if its curves do not cross."""
    if answer.outcome in OUTCOMES_WITHOUT_CROSSOVER:
        at = (max if answer.outcome == "cpu_always" else min)(size.size for size in answer.sizes)
        return [_machine_row(name, at, at, at, OUTCOMES_WITHOUT_CROSSOVER[answer.outcome])]
    found = [_machine_row(name, one.estimate, one.low, one.high, MACHINE_ANSWERS[0]) for one in answer.crossings]
    return [row for row in found if row["at"]]


def _machine_row(name: str, place: float, low: float, high: float, answer: str) -> ChartRow:
    return {
        "machine": name,
        "at": place,
        "low": low,
        "high": high,
        "found": answer,
        "where": f"{wording.format_size(place)} ({wording.format_size(low)} to {wording.format_size(high)})"
        if high > low
        else answer,
    }
