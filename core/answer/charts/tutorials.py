"""Charts of tutorials and lessons: published beside measured, clocks beside ours, epochs in parts, seeds, launches.

Draws what `core.answer` found. Published numbers are hollow and dashed wherever they stand beside measured ones, so
that neither is taken for the other.
"""

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from core import units
from core.answer.charts import look
from core.answer.charts.look import Row, Spec
from core.answer.charts.studies import SECONDS
from core.answer.lesson.bottleneck import Bottleneck
from core.answer.lesson.launches import TwoBatches
from core.answer.lesson.seed_band import SeedBand
from core.answer.lesson.tutorial import Number, PublishedBeside
from core.answer.run.causes import PARTS
from core.results.exhibit import Clock
from core.results.schema import Trial

HEIGHT = 400
"""Pixels of a chart with axes, legend included."""

LABEL_LETTERS = 17
"""Letters of a name beside a bar before it goes on in the next line."""

TIMES = "format(datum.value, '~r') + '×'"
"""Expression that writes a tick as a speedup."""

FIXED, GROWING = "the same whatever the batch", "grows with the batch"
WAITING, COMPUTING = "waits for launches", "computes"
SHARE_COLOURS = {FIXED: "#EE8866", GROWING: "#77AADD", WAITING: "#EE8866", COMPUTING: "#77AADD"}


def times(of: PublishedBeside) -> Spec:
    """Seconds of a training or an epoch, published and measured, against what the tutorial varies."""
    y = {
        "title": f"time per {of.per} (log scale)",
        "scale": look.log(_ends(of.times)),
        "axis": alt.Axis(labelExpr=SECONDS, values=look.ticks(_ends(of.times))),
    }
    return _side_by_side(of, of.times, y, units.duration)


def speedups(of: PublishedBeside) -> Spec:
    """Speedup of the challenger, published and measured; the line at 1 is where neither wins."""
    values = [*_ends(of.speedups), 1.0]
    y = {
        "title": "speedup (log scale)",
        "scale": look.log(values),
        "axis": alt.Axis(labelExpr=TIMES, values=look.ticks(values)),
    }
    return _side_by_side(of, of.speedups, y, units.ratio, even=True)


def clocks(clock: Clock, kinds: Mapping[str, str]) -> Spec:
    """Seconds an epoch by every clock: each reading, and a line at the median of ours.

    Args:
        clock: what was shown.
        kinds: contender → device kind.
    """
    contenders = list(dict.fromkeys(variant.contender for variant in clock.variants))
    rows: list[Row] = []
    for variant in clock.variants:
        ours = clock.of(variant.contender)[0].epoch_s
        middle = sorted(ours)[len(ours) // 2]
        rows += [
            {
                "clock": variant.title,
                "device": variant.contender,
                "time": seconds,
                "shown": units.duration(seconds),
                "against": units.ratio(seconds / middle),
                "ours": middle,
            }
            for seconds in variant.epoch_s
        ]
    names = list(dict.fromkeys(variant.title for variant in clock.variants))
    colour = _devices(contenders, kinds)
    seconds = [row["time"] for row in rows]
    axis = alt.Axis(labelExpr=SECONDS, values=look.ticks(seconds), labelOverlap="greedy")
    x = alt.X("time:Q", title="an epoch, by this clock (log scale)", scale=look.log(seconds), axis=axis)
    base = alt.Chart().encode(color=alt.Color("device:N", **colour, legend=look.legend(contenders, symbolOpacity=1)))
    rule = base.mark_rule(strokeWidth=2, strokeDash=[6, 3]).encode(x=alt.X("ours:Q", scale=look.log(seconds)))
    points = base.mark_point(filled=True, size=60, opacity=0.8).encode(
        x=x,
        y=alt.Y("clock:N", sort=names, title=None, axis=_wrapped(names)),
        yOffset=alt.YOffset("device:N", sort=contenders),
        shape=alt.Shape(
            "device:N",
            scale=alt.Scale(domain=contenders, range=list(look.SHAPES[: len(contenders)])),
            legend=look.legend(contenders, symbolOpacity=1),
        ),
        tooltip=[
            look.tooltip("clock", "clock"),
            look.tooltip("device", "device"),
            look.tooltip("shown", "an epoch"),
            look.tooltip("against", "of ours"),
        ],
    )
    return look.finished(alt.layer(rule, points), rows, height=alt.Step(look.BAR_HEIGHT // 2))


def epoch_parts(of: Bottleneck) -> Spec:
    """An epoch in its parts for each way of delivering data, a tick at the undisturbed epoch."""
    unit, scale = look.unit_of([max((sum(way.parts_s.values()), way.epoch_s)) for way in of.ways])
    rows: list[Row] = [
        {
            "way": way.title,
            "part": part,
            "rank": rank,
            "time": way.parts_s.get(part, 0.0) * scale,
            "shown": units.duration(way.parts_s[part]) if part in way.parts_s else "not measured",
            "epoch": way.epoch_s * scale,
            "took": units.duration(way.epoch_s),
        }
        for way in of.ways
        for rank, part in enumerate(PARTS)
    ]
    names = [way.title for way in of.ways]
    y = alt.Y("way:N", sort=names, title=None, axis=_wrapped(names))
    colour = alt.Scale(domain=list(look.PART_COLOURS), range=list(look.PART_COLOURS.values()))
    tooltip = [
        look.tooltip("way", "data"),
        look.tooltip("part", "part"),
        look.tooltip("shown", "timed apart"),
        look.tooltip("took", "undisturbed epoch"),
    ]
    title = f"an epoch on {of.contender} ({unit})"
    bars = (
        alt.Chart()
        .mark_bar(size=look.BAR_HEIGHT // 2)
        .encode(
            x=alt.X("time:Q", title=title, stack="zero", axis=alt.Axis(tickCount=5)),
            y=y,
            color=alt.Color("part:N", scale=colour, legend=alt.Legend(orient="top", title=None, columns=3)),
            order=alt.Order("rank:Q"),
            tooltip=tooltip,
        )
    )
    tick = alt.Chart().transform_filter("datum.rank == 0").mark_tick(thickness=2, color=look.NEUTRAL)
    whole = tick.encode(x="epoch:Q", y=y, tooltip=tooltip)
    return look.finished(alt.layer(bars, whole), rows, height=alt.Step(look.BAR_HEIGHT))


def seed_band(of: SeedBand, trials: Sequence[Trial]) -> Spec:
    """Loss curves of the challenger on the band that the baseline's seeds draw.

    Args:
        of: the band.
        trials: rows of the challenger, one a seed.
    """
    band: list[Row] = [
        {"layer": "band", "step": step, "low": low, "high": high, "band": f"{of.baseline}, all seeds"}
        for step, low, high in zip(of.steps, of.low, of.high, strict=True)
        if 0 < low <= high < math.inf
    ]
    curves: list[Row] = [
        {"layer": "curve", "step": step, "loss": loss, "seed": str(trial.seed)}
        for trial in trials
        for step, loss in zip(trial.loss_step, trial.loss, strict=True)
        if 0 < loss < math.inf
    ]
    x = alt.X("step:Q", title="steps", scale=alt.Scale(zero=False, nice=False))
    y: dict[str, Any] = {"title": "training loss (nats, log scale)", "scale": look.log()}
    kind = trials[0].device_kind if trials else ""
    colour = look.DEVICE_COLOURS.get(kind, look.NEUTRAL)
    name = f"{of.baseline}, all seeds"
    area = (
        alt.Chart()
        .transform_filter("datum.layer == 'band'")
        .mark_area(opacity=0.35)
        .encode(
            x=x,
            y=alt.Y("low:Q", **y),
            y2="high:Q",
            color=alt.Color("band:N", scale=alt.Scale(domain=[name], range=[look.NEUTRAL]), legend=look.legend([name])),
        )
    )
    lines = (
        alt.Chart()
        .transform_filter("datum.layer == 'curve'")
        .mark_line(color=colour, strokeWidth=1.5)
        .encode(
            x=x,
            y=alt.Y("loss:Q", **y),
            strokeDash=alt.StrokeDash("seed:N", title=f"seed on {of.challenger}", legend=alt.Legend(orient="top")),
            tooltip=[
                look.tooltip("seed", "seed"),
                look.tooltip("step", "steps", ",d"),
                look.tooltip("loss", "loss", ".4g"),
            ],
        )
    )
    return look.finished(alt.layer(area, lines), [*band, *curves], height=HEIGHT)


def step_shares(found: Sequence[TwoBatches]) -> Spec:
    """What a step consists of at both batch sizes, as shares: what it costs in any case, and what grows with it."""
    rows: list[Row] = []
    for two in found:
        for of in (two.small, two.large):
            fixed = min(1.0, two.fixed_s / of.step_s)
            name = f"{of.contender}, batch {units.count(of.batch_size)}"
            rows += [
                {"step": name, "part": FIXED, "share": fixed, "rank": 0, "took": units.duration(of.step_s)},
                {"step": name, "part": GROWING, "share": 1 - fixed, "rank": 1, "took": units.duration(of.step_s)},
            ]
    return _shares(rows, (FIXED, GROWING))


def device_shares(found: Sequence[TwoBatches]) -> Spec:
    """For how much of a step an accelerator computes; those that were not asked, as CPUs, are left out."""
    rows: list[Row] = []
    for of in (of for two in found for of in (two.small, two.large)):
        if of.busy_s is not None:
            busy = min(1.0, of.busy_s / of.step_s)
            name = f"{of.contender}, batch {units.count(of.batch_size)}"
            rows += [
                {"step": name, "part": WAITING, "share": 1 - busy, "rank": 0, "took": units.duration(of.step_s)},
                {"step": name, "part": COMPUTING, "share": busy, "rank": 1, "took": units.duration(of.step_s)},
            ]
    return _shares(rows, (WAITING, COMPUTING))


def _shares(rows: list[Row], parts: Sequence[str]) -> Spec:
    names = list(dict.fromkeys(row["step"] for row in rows))
    colour = alt.Scale(domain=list(parts), range=[SHARE_COLOURS[part] for part in parts])
    bars = (
        alt.Chart()
        .mark_bar(size=look.BAR_HEIGHT // 2)
        .encode(
            x=alt.X("share:Q", title="share of a step", stack="zero", axis=alt.Axis(format=".0%", tickCount=5)),
            y=alt.Y("step:N", sort=names, title=None, axis=_wrapped(names)),
            color=alt.Color("part:N", scale=colour, legend=look.legend(parts)),
            order=alt.Order("rank:Q"),
            tooltip=[
                look.tooltip("step", "step"),
                look.tooltip("part", "part"),
                look.tooltip("share", "share", ".1%"),
                look.tooltip("took", "a step takes"),
            ],
        )
    )
    return look.finished(bars, rows, height=alt.Step(look.BAR_HEIGHT))


def _side_by_side(
    of: PublishedBeside, marks: Sequence[Number], y: dict[str, Any], shown: Any, *, even: bool = False
) -> Spec:
    placed = [mark for mark in marks if mark.place is not None]
    rows: list[Row] = [_row(mark, shown) for mark in placed]
    x = _places(of, placed)
    series = list(dict.fromkeys(mark.series for mark in placed))
    layers = [*_rules(of, marks, x, y, even=even), *_series_layers(series, placed, x, y, line=of.axis_kind != "names")]
    rules: list[Row] = [{"layer": "even", "value": 1.0}] if even else []
    rules += [{"layer": "claim", "value": mark.value, "series": mark.series} for mark in marks if mark.place is None]
    if of.wins_from is not None:
        rules.append({"layer": "wins", "place": of.wins_from, "said": "published: GPU wins from here"})
    return look.finished(alt.layer(*layers), [*rules, *rows], height=HEIGHT)


def _row(mark: Number, shown: Any) -> Row:
    spread = "" if mark.low is None or mark.high is None else f" ({shown(mark.low)} to {shown(mark.high)})"
    return {
        "layer": "mark",
        "series": mark.series,
        "place": mark.place,
        "label": mark.label,
        "value": mark.value,
        "low": mark.low,
        "high": mark.high,
        "shown": f"{shown(mark.value)}{spread}",
    }


def _places(of: PublishedBeside, marks: Sequence[Number]) -> alt.X:
    if of.axis_kind == "names":
        names = list(dict.fromkeys(mark.label for mark in sorted(marks, key=lambda mark: mark.place or 0.0)))
        axis = alt.Axis(labelAngle=-35, labelLimit=150)
        return alt.X("label:N", sort=names, title=of.axis, axis=axis, scale=alt.Scale(padding=0.5))
    places = [mark.place for mark in marks if mark.place is not None]
    if of.axis_kind == "log":
        return alt.X("place:Q", title=f"{of.axis} (log scale)", scale=look.log(places), axis=_log_axis(places))
    whole = alt.Axis(tickMinStep=1, format="d")
    return alt.X("place:Q", title=of.axis, scale=alt.Scale(zero=False, nice=False, padding=look.EDGE * 2), axis=whole)


def _log_axis(places: Sequence[float]) -> alt.Axis:
    return alt.Axis(labelExpr=look.COMPACT, values=look.ticks(places), labelOverlap="greedy", grid=False)


def _rules(
    of: PublishedBeside, marks: Sequence[Number], x: alt.X, y: dict[str, Any], *, even: bool
) -> list[alt.Chart | alt.LayerChart]:
    """Lines across the chart: neither wins, what is said of the whole axis, and where the GPU is said to win."""
    layers: list[alt.Chart | alt.LayerChart] = []
    grey: dict[str, Any] = {"color": look.NEUTRAL, "strokeWidth": 1.5}
    if even:
        rule = alt.Chart().transform_filter("datum.layer == 'even'").mark_rule(**grey)
        layers.append(rule.encode(y=alt.Y("value:Q", **y)))
    if any(mark.place is None for mark in marks):
        base = alt.Chart().transform_filter("datum.layer == 'claim'").encode(y=alt.Y("value:Q", **y))
        text = base.mark_text(align="left", dx=4, dy=-6, color=look.NEUTRAL)
        layers += [
            base.mark_rule(strokeDash=[6, 3], **grey),
            text.encode(text="series:N", x=alt.value(0)),
        ]
    if of.wins_from is not None:
        base = alt.Chart().transform_filter("datum.layer == 'wins'").encode(x=x)
        layers.append(base.mark_rule(strokeDash=[6, 3], **grey))
        text = base.mark_text(align="right", dx=-4, color=look.NEUTRAL)
        layers.append(text.encode(text="said:N", y=alt.value(8)))
    return layers


def _series_layers(
    series: Sequence[str], marks: Sequence[Number], x: alt.X, y: dict[str, Any], *, line: bool
) -> list[alt.Chart]:
    first = {mark.series: mark for mark in reversed(marks)}
    origins = {name: first[name].origin for name in series}
    colours = _series_colours(series, first)
    scale = alt.Scale(domain=list(series), range=colours)
    shapes = alt.Scale(domain=list(series), range=[look.SHAPES[at % len(look.SHAPES)] for at in range(len(series))])
    dashes = [[5, 4] if origins[name] == "published" else [1, 0] for name in series]
    legend = look.legend(series, symbolSize=100, symbolOpacity=1, symbolStrokeWidth=0)
    base = alt.Chart().transform_filter("datum.layer == 'mark'")
    base = base.encode(
        x=x,
        color=alt.Color("series:N", scale=scale, legend=legend),
        tooltip=[look.tooltip("series", "from"), look.tooltip("label", "at"), look.tooltip("shown", "value")],
    )
    value = alt.Y("value:Q", **y)
    layers = [
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", **y), y2="high:Q")
    ]
    if line:
        dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=list(series), range=dashes), legend=None)
        layers.append(base.mark_line(strokeWidth=2).encode(y=value, strokeDash=dash))
    shape = alt.Shape("series:N", scale=shapes, legend=legend)
    filled = [name for name in series if origins[name] != "published"]
    solid = alt.condition(alt.FieldOneOfPredicate(field="series", oneOf=filled), alt.value(1.0), alt.value(0.0))
    points = base.mark_point(size=60, strokeWidth=2).encode(
        y=value, shape=shape, fill=alt.Fill("series:N", scale=scale, legend=legend), fillOpacity=solid
    )
    return [*layers, points]


def _series_colours(series: Sequence[str], first: Mapping[str, Number]) -> list[str]:
    """By device kind; the second of one kind and origin has a lighter shade."""
    found: dict[str, str] = {}
    for origin in ("published", "measured", "recorded"):
        names = [name for name in series if first[name].origin == origin]
        found |= dict(zip(names, look.colours([first[name].kind for name in names]), strict=True))
    return [found[name] for name in series]


def _devices(contenders: Sequence[str], kinds: Mapping[str, str]) -> dict[str, Any]:
    colours = look.colours([kinds.get(name, "") for name in contenders])
    return {"scale": alt.Scale(domain=list(contenders), range=colours)}


def _wrapped(names: Sequence[str]) -> alt.Axis:
    """Names beside bars in several lines where they are long: the chart needs the room more."""
    cases = [
        f"datum.value == {_quoted(name)} ? [{', '.join(map(_quoted, textwrap.wrap(name, LABEL_LETTERS)))}] : "
        for name in names
        if len(name) > LABEL_LETTERS
    ]
    return alt.Axis(labelExpr="".join(cases) + "datum.label", labelLimit=140)


def _quoted(text: str) -> str:
    """`text` as a string of Vega's expression language."""
    return json.dumps(text)


def _ends(marks: Sequence[Number]) -> list[float]:
    return [value for mark in marks for value in (mark.value, mark.low, mark.high) if value]
