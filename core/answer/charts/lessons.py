"""Charts of lessons: clocks beside ours, epochs in parts, seeds, launches. Draws what `core.answer` found."""

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
from core.answer.charts.tutorials import HEIGHT
from core.answer.lesson.bottleneck import Bottleneck
from core.answer.lesson.launches import TwoBatches
from core.answer.lesson.seed_band import SeedBand
from core.answer.run.causes import PARTS
from core.results.exhibit import Clock
from core.results.schema import Trial

LABEL_LETTERS = 17
"""Letters of a name beside a bar before it goes on in the next line."""

FIXED, GROWING = "the same whatever the batch", "grows with the batch"
WAITING, COMPUTING = "waits for launches", "computes"
SHARE_COLOURS = {FIXED: "#EE8866", GROWING: "#77AADD", WAITING: "#EE8866", COMPUTING: "#77AADD"}


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


def epoch_parts(bottleneck: Bottleneck) -> Spec:
    """An epoch in its parts for each way of delivering data, a tick at the undisturbed epoch."""
    unit, scale = look.unit_of([max((sum(way.parts_s.values()), way.epoch_s)) for way in bottleneck.ways])
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
        for way in bottleneck.ways
        for rank, part in enumerate(PARTS)
    ]
    names = [way.title for way in bottleneck.ways]
    y = alt.Y("way:N", sort=names, title=None, axis=_wrapped(names))
    colour = alt.Scale(domain=list(look.PART_COLOURS), range=list(look.PART_COLOURS.values()))
    tooltip = [
        look.tooltip("way", "data"),
        look.tooltip("part", "part"),
        look.tooltip("shown", "timed apart"),
        look.tooltip("took", "undisturbed epoch"),
    ]
    title = f"an epoch on {bottleneck.contender} ({unit})"
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


def seed_band(band: SeedBand, trials: Sequence[Trial]) -> Spec:
    """Loss curves of the challenger on the band that the baseline's seeds draw.

    Args:
        band: of the baseline.
        trials: rows of the challenger, one a seed.
    """
    areas: list[Row] = [
        {"layer": "band", "step": step, "low": low, "high": high, "band": f"{band.baseline}, all seeds"}
        for step, low, high in zip(band.steps, band.low, band.high, strict=True)
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
    name = f"{band.baseline}, all seeds"
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
            strokeDash=alt.StrokeDash("seed:N", title=f"seed on {band.challenger}", legend=alt.Legend(orient="top")),
            tooltip=[
                look.tooltip("seed", "seed"),
                look.tooltip("step", "steps", ",d"),
                look.tooltip("loss", "loss", ".4g"),
            ],
        )
    )
    return look.finished(alt.layer(area, lines), [*areas, *curves], height=HEIGHT)


def step_shares(pairs: Sequence[TwoBatches]) -> Spec:
    """What a step consists of at both batch sizes, as shares: what it costs in any case, and what grows with it."""
    rows: list[Row] = []
    for pair in pairs:
        for step in (pair.small, pair.large):
            fixed = min(1.0, pair.fixed_s / step.step_s)
            name = f"{step.contender}, batch {units.count(step.batch_size)}"
            rows += [
                {"step": name, "part": FIXED, "share": fixed, "rank": 0, "took": units.duration(step.step_s)},
                {"step": name, "part": GROWING, "share": 1 - fixed, "rank": 1, "took": units.duration(step.step_s)},
            ]
    return _shares(rows, (FIXED, GROWING))


def device_shares(pairs: Sequence[TwoBatches]) -> Spec:
    """For how much of a step an accelerator computes; those that were not asked, as CPUs, are left out."""
    rows: list[Row] = []
    for step in (step for pair in pairs for step in (pair.small, pair.large)):
        if step.busy_s is not None:
            busy = min(1.0, step.busy_s / step.step_s)
            name = f"{step.contender}, batch {units.count(step.batch_size)}"
            rows += [
                {"step": name, "part": WAITING, "share": 1 - busy, "rank": 0, "took": units.duration(step.step_s)},
                {"step": name, "part": COMPUTING, "share": busy, "rank": 1, "took": units.duration(step.step_s)},
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
