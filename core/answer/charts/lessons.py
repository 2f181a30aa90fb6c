"""Charts of lessons: clocks beside ours, epochs in parts, seeds, launches. Draws what `core.answer` found."""

import math
import statistics
from collections.abc import Mapping, Sequence

import altair as alt

from core import units
from core.answer.charts import look
from core.answer.charts.look import ChartRow, Spec
from core.answer.charts.tutorials import TUTORIAL_CHART_HEIGHT
from core.answer.lesson.bottleneck import Bottleneck
from core.answer.lesson.launches import Launches, TwoBatches
from core.answer.lesson.seed_band import SeedBand
from core.answer.run.causes import PART_TITLES
from core.question.experiment import display_name, inline_name
from core.results.exhibits.exhibit import Clock
from core.results.schema import Trial

FIXED_PART, GROWING_PART = "the same whatever the batch", "grows with the batch"
WAITING_PART, COMPUTING_PART = "waits for launches", "computes"
SHARE_COLOURS = {FIXED_PART: "#EE8866", GROWING_PART: "#77AADD", WAITING_PART: "#EE8866", COMPUTING_PART: "#77AADD"}


def clocks_chart(clock: Clock, kinds: Mapping[str, str]) -> Spec:
    """Seconds an epoch by every clock: each reading, and a line at the median of ours; with each contender's kind."""
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
        "an epoch, by this clock", [row["time"] for row in rows], look.SECONDS_LABEL, labelOverlap="greedy"
    )
    base = alt.Chart().encode(color=look.names_channel(alt.Color, "device", contenders, colours, legend=legend))
    rule = base.mark_rule(strokeWidth=2, strokeDash=[6, 3]).encode(x=alt.X("ours:Q", scale=x["scale"]))
    points = base.mark_point(filled=True, size=60, opacity=0.8).encode(
        x=alt.X("time:Q", **x),
        y=alt.Y("clock:N", sort=names, title=None, axis=look.bar_names_axis(names)),
        yOffset=alt.YOffset("device:N", sort=contenders),
        shape=look.names_channel(alt.Shape, "device", contenders, look.POINT_SHAPES, legend=legend),
        tooltip=look.tooltips(("clock", "clock"), ("device", "device"), ("shown", "an epoch"), ("against", "of ours")),
    )
    return look.finish_chart(alt.layer(rule, points), rows, height=alt.Step(look.BAR_HEIGHT // 2))


def epoch_parts_chart(bottleneck: Bottleneck) -> Spec:
    """An epoch in its parts for each way of delivering data, a tick at the undisturbed epoch."""
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
    figures = (("shown", "timed apart"), ("took", "undisturbed epoch"))
    base = alt.Chart().encode(y=y, tooltip=look.tooltips(("way", "data"), ("part", "part"), *figures))
    title = f"an epoch on {inline_name(bottleneck.contender)} ({unit})"
    x = alt.X("time:Q", title=title, stack="zero", axis=alt.Axis(tickCount=5))
    legend = alt.Legend(orient="top", title=None, columns=2)  # the names beside the bars leave no room for three
    bars = look.stack_parts(base.mark_bar(size=look.BAR_HEIGHT // 2).encode(x=x), look.PART_COLOURS, legend)
    tick = base.transform_filter("datum.rank == 0").mark_tick(thickness=2, color=look.NEUTRAL)
    return look.finish_chart(alt.layer(bars, tick.encode(x="epoch:Q")), rows, height=alt.Step(look.BAR_HEIGHT))


def seed_band_chart(band: SeedBand, trials: Sequence[Trial]) -> Spec:
    """Loss curves of the challenger, a row a seed, on the band that the baseline's seeds draw."""
    name = f"{display_name(band.baseline)}, all seeds"
    areas: list[ChartRow] = [
        {"layer": "band", "step": step, "low": low, "high": high, "band": name}
        for step, low, high in zip(band.steps, band.low, band.high, strict=True)
        if 0 < low <= high < math.inf
    ]
    curves: list[ChartRow] = [
        {"layer": "curve", "step": step, "loss": loss, "seed": str(trial.seed)}
        for trial in trials
        for step, loss in zip(band.steps, trial.loss, strict=False)  # a curve may go on where the band has ended
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
    return look.finish_chart(alt.layer(area, lines), [*areas, *curves], height=TUTORIAL_CHART_HEIGHT)


def step_shares_chart(pairs: Sequence[TwoBatches]) -> Spec:
    """What a step consists of at both batch sizes, as shares: what it costs in any case, and what grows with it."""
    steps = [(step, pair.fixed_s) for pair in pairs for step in (pair.small, pair.large)]
    return _shares([(step, min(1.0, fixed_s / step.step_s)) for step, fixed_s in steps], (FIXED_PART, GROWING_PART))


def device_shares_chart(pairs: Sequence[TwoBatches]) -> Spec:
    """For how much of a step an accelerator computes; those that were not asked, as CPUs, are left out."""
    steps = [(step, step.busy_s) for pair in pairs for step in (pair.small, pair.large) if step.busy_s is not None]
    waiting = [(step, 1 - min(1.0, busy_s / step.step_s)) for step, busy_s in steps]
    return _shares(waiting, (WAITING_PART, COMPUTING_PART))


def _shares(steps: Sequence[tuple[Launches, float]], parts: tuple[str, str]) -> Spec:
    """A bar for each step: its share of the first part, and what is left for the second."""
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
