"""Charts of one run: losses, epoch times, timed blocks, step breakdown, start-up, accuracy, remedies, expectations.

The charts are Vega-Lite specifications, for a page or a file. Only the columns named here reach a chart.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ... import units
from ...progress import Progress
from ...question.catalog import dataset
from ...question.experiment import display_name
from ...question.fields import axis_title
from ...results.schema import Trial
from .. import causes, speedup, training_cost
from ..accuracy import confusion_rows
from ..expectations import ExpectedSpeedup
from ..judgement import Crossover
from ..remedies import Remedies, Remedy
from . import alt, look
from .look import ChartRow, Spec
from .study_charts import size_axis, size_channel, speedup_axis

MOST_EPOCHS = 200
MOST_BLOCKS = 1_000
"""Maximum marks on one chart before neighbours are grouped; with more, browsers become slow."""

BAR_FIGURE_MARGIN = 1.3
"""Length of the axis relative to the longest bar, which leaves space for the figure at its end."""

MOST_POINTS = 60
"""Number of values of a curve from which only its line is shown, without points."""

FLAT = 1.3
"""Values within this factor do not fill the height of a chart, which would exaggerate their scatter."""

MOST_TICKS = 8
"""Approximate number of ticks of an axis that is not logarithmic."""

LOSS, TRAINED_FOR = "training loss (nats, log scale)", "training time without start-up (s)"
CUSTOM_LOSS = "its own loss (log scale)"
"""Titles of axes; the unit of the loss of a custom training script is unknown."""

STEP_TOOLTIP, NATS, CUSTOM_LOSS_TOOLTIP = (
    ("step", "steps", ",d"),
    ("y", "loss (nats)", ".4g"),
    ("y", "its own loss", ".4g"),
)
"""Lines of a tooltip: field, title and format."""


def loss_over_epochs_chart(trials: Sequence[Trial]) -> Spec:
    """Chart the training loss of each segment against epochs trained, one curve per trial."""
    rows = [
        _point(trial, x=step / trial.steps_per_epoch, y=loss, step=step)
        for trial in trials
        for step, loss in zip(trial.loss_step, trial.loss, strict=True)
    ]
    return _curves_chart(
        rows, _series(trials), x="epochs trained", y=LOSS, tooltip=(STEP_TOOLTIP, ("x", "epochs", ".2f"), NATS)
    )


def loss_over_time_chart(trials: Sequence[Trial]) -> Spec:
    """Chart the training loss of trials with timed blocks against seconds of training, without start-up."""
    rows = [
        _point(trial, x=seconds, y=loss, step=step)
        for trial in trials
        for seconds, step, loss in zip(
            training_cost.training_seconds(trial, trial.loss_step), trial.loss_step, trial.loss, strict=False
        )
    ]
    y, value = (CUSTOM_LOSS, CUSTOM_LOSS_TOOLTIP) if trials[0].training else (LOSS, NATS)
    return _curves_chart(
        rows, _series(trials), x=TRAINED_FOR, y=y, tooltip=(STEP_TOOLTIP, ("x", "seconds", ".4g"), value)
    )


def live_loss_chart(progress: Progress, *, kinds: Mapping[str, str] | None = None, custom: bool = False) -> Spec:
    """Chart the training loss of a running measurement over seconds.

    Args:
        progress: state of the measurement.
        kinds: kind of each device; without it the kind follows from the name: `cuda:0` for an NVIDIA device.
        custom: whether the loss is that of a custom training script, in an unknown unit.
    """
    known = kinds or {}
    devices = {entry.contender: entry.contender.partition("@")[0] for entry in progress.contenders}
    series = {display_name(name): known.get(device, device.partition(":")[0]) for name, device in devices.items()}
    rows = [
        {"contender": display_name(entry.contender), "x": x, "y": loss, "step": step}
        for entry in progress.contenders
        for x, step, loss in zip(entry.loss_seconds, entry.loss_steps, entry.losses, strict=False)
    ]
    y, value = (CUSTOM_LOSS, CUSTOM_LOSS_TOOLTIP) if custom else (LOSS, NATS)
    return _curves_chart(rows, series, x=TRAINED_FOR, y=y, tooltip=(STEP_TOOLTIP, value))


def epoch_times_chart(trials: Sequence[Trial]) -> Spec:
    """Chart the time of each epoch, one curve per trial; above `MOST_EPOCHS`, median and range of neighbours."""
    times = [list(enumerate(training_cost.epoch_times(trial), 1)) for trial in trials]
    size = _group_size(max(map(len, times), default=0), MOST_EPOCHS)
    title = "time per epoch" if size == 1 else f"median time per epoch of every {size}"
    unit, rows = _group_points(trials, times, size)
    tooltip = (("x", "epoch", ",d"), ("y", f"time ({unit})", ".4g"))
    y = f"{title} ({unit}, log scale)"
    return _curves_chart(rows, _series(trials), x="epoch", y=y, tooltip=tooltip, grouped=size > 1, whole_numbers=True)


def blocks_chart(trials: Sequence[Trial]) -> Spec:
    """Chart the time per step of every timed block against its pair: the raw values behind the verdict.

    Above `MOST_BLOCKS` points, the chart shows the median of neighbouring blocks with their range.
    """
    size = _group_size(sum(len(trial.block_steps) for trial in trials), MOST_BLOCKS)
    each = _step_noun(trials)
    title = f"time per {each}" if size == 1 else f"median time per {each} of every {size} blocks"
    unit, rows = _group_points(
        trials, [list(zip(trial.block_pair, trial.step_s, strict=True)) for trial in trials], size
    )
    tooltip = (("x", "pair", ",d"), ("y", f"time per {each} ({unit})", ".4g"))
    y = f"{title} ({unit}, log scale)"
    return _curves_chart(rows, _series(trials), x="pair of blocks", y=y, tooltip=tooltip, grouped=size > 1, line=False)


def _step_noun(trials: Sequence[Trial]) -> str:
    return "fit" if any(map(causes.is_fit, trials)) else "step"


def step_bars_chart(trials: Sequence[Trial]) -> Spec:
    """Chart the time of a step, one bar per device, with the 95 % interval of the median; empty without any time."""
    known = [(trial, speedup.step_time(trial)) for trial in trials]
    timed = [(trial, step.median_s, step) for trial, step in known if step.median_s]
    unit, scale = look.choose_time_unit(seconds for _, seconds, _ in timed)
    rows: list[ChartRow] = [
        {
            "contender": display_name(trial.contender),
            "time": seconds * scale,
            "low": (step.low_s or seconds) * scale,
            "high": (step.high_s or seconds) * scale,
            "shown": units.format_duration(seconds),
            "interval": units.format_interval(step.low_s, step.high_s, units.format_duration) or "unknown",
        }
        for trial, seconds, step in timed
    ]
    names = [row["contender"] for row in rows]
    longest = max((row["high"] for row in rows), default=1.0) * BAR_FIGURE_MARGIN
    scale_x, axis = alt.Scale(domain=[0, longest]), alt.Axis(tickCount=4)
    x = alt.X("time:Q", title=f"time per {_step_noun(trials)} ({unit}), shorter is faster", scale=scale_x, axis=axis)
    tooltip = look.tooltips(("contender", "device"), ("shown", "median step"), ("interval", "95 % interval"))
    base = alt.Chart().encode(y=_bar_names(names), tooltip=tooltip)
    colours = look.contender_colours([trial.device_kind for trial, _, _ in timed])
    colour = look.names_channel(alt.Color, "contender", names, colours, legend=None)
    layers = [
        base.mark_bar(size=look.BAR_HEIGHT // 2, opacity=0.75).encode(x=x, color=colour),
        base.mark_rule(strokeWidth=2, color=look.NEUTRAL).encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_text(align="left", dx=8, fontSize=13, fontWeight="bold", color=look.NEUTRAL).encode(
            x=alt.X("high:Q"), text="shown:N"
        ),
    ]
    return look.finish_chart(layers, rows, height=alt.Step(look.BAR_HEIGHT))


def breakdown_chart(trials: Sequence[Trial]) -> Spec:
    """Chart the step breakdown: stacked bars of the parts timed separately, with a tick at the undisturbed step."""
    timed = [(trial, causes.part_times(trial), speedup.step_time(trial).median_s) for trial in trials]
    known = [(trial, step, whole_s) for trial, step, whole_s in timed if step and whole_s]
    unit, scale = look.choose_time_unit(
        seconds for _, step, whole_s in known for seconds in (sum(step.values()), whole_s)
    )
    rows = [
        {
            "contender": display_name(trial.contender),
            "part": part,
            "rank": rank,
            "time": seconds * scale,
            "share": seconds / sum(step.values()),
            "step": whole_s * scale,
        }
        for trial, step, whole_s in known
        for rank, (part, seconds) in enumerate(step.items())
    ]
    names = [display_name(trial.contender) for trial, _, _ in known]
    tick = (
        alt.Chart()
        .transform_filter("datum.rank == 0")
        .mark_tick(color=look.NEUTRAL, thickness=4, size=look.BAR_HEIGHT)
        .encode(
            x=alt.X("step:Q"),
            y=_bar_names(names),
            tooltip=look.tooltips(("contender", "device"), ("step", f"undisturbed step ({unit})", ".4g")),
        )
    )
    title = [f"time per step ({unit})", "grey tick: the undisturbed step"]
    bars = _bars(title=title, colours=look.part_colours(step for _, step, _ in known), unit=unit, names=names)
    return look.finish_chart([bars, tick], rows, height=alt.Step(look.BAR_HEIGHT))


def startup_chart(trials: Sequence[Trial]) -> Spec:
    """Chart the parts of the start-up of each trial as stacked bars; parts that were not measured are left out."""
    times = {display_name(trial.contender): _startup(trial) for trial in trials}
    unit, scale = look.choose_time_unit(seconds for known in times.values() for seconds in known if seconds is not None)
    rows = [
        {
            "contender": contender,
            "part": part,
            "rank": rank,
            "time": seconds * scale,
            "share": seconds / (sum(filter(None, known)) or 1),
        }
        for contender, known in times.items()
        for rank, (part, seconds) in enumerate(zip(look.START_UP_COLOURS, known, strict=True))
        if seconds is not None
    ]
    bars = _bars(title=f"start-up ({unit})", colours=look.START_UP_COLOURS, unit=unit, names=list(times))
    return look.finish_chart(bars, rows, height=alt.Step(look.BAR_HEIGHT))


def confusion_chart(trial: Trial) -> Spec:
    """Chart the confusion matrix: test items by true and predicted class, with counts; empty if not tested."""
    names = list(dataset(trial.dataset).classes)
    rows = [
        {"true": names[label], "predicted": names[answer], "items": items}
        for label, row in enumerate(confusion_rows(trial))
        for answer, items in enumerate(row)
    ]
    colours = [look.PALEST, look.mix_colours(look.PALEST, look.DEVICE_COLOURS[trial.device_kind], look.TINT)]
    slant = 0 if max(map(len, names)) <= look.SHORT_NAME else -45
    axis, whole_pixels = alt.Axis(labelAngle=slant), alt.Scale(round=True)  # no gaps between cells
    base = alt.Chart().encode(
        x=alt.X("predicted:N", sort=names, title="predicted class", axis=axis, scale=whole_pixels),
        y=alt.Y("true:N", sort=names, title="true class"),
        tooltip=look.tooltips(("true", "true class"), ("predicted", "predicted"), ("items", "items", ",d")),
    )
    # Errors are few compared with right answers: a square root makes them visible.
    scale = alt.Scale(type="sqrt", range=colours, domainMin=0)
    # Cells without items are transparent: a light cell would be too bright in the dark theme.
    filled = base.transform_filter("datum.items > 0").mark_rect()
    cells = filled.encode(color=alt.Color("items:Q", scale=scale, legend=None))
    # Black is readable in every theme, since a filled cell is always light.
    ink = alt.condition("datum.items > 0", alt.value("black"), alt.value(look.NEUTRAL))
    figures = base.mark_text(fontSize=11).encode(text=alt.Text("items:Q", format=",d"), color=ink)
    return look.finish_chart([cells, figures], rows, height=alt.Step(look.CELL_HEIGHT_PX))


def _startup(trial: Trial) -> tuple[float | None, ...]:
    compiling = trial.startup_compile_s or None  # nothing is compiled in an eager variant
    first = (trial.startup_device_s, trial.startup_build_s, trial.startup_transfer_s)
    return (*first, compiling, trial.startup_first_step_s)


def _curves_chart(
    rows: list[ChartRow],
    series: Mapping[str, str],
    *,
    x: str,
    y: str,
    tooltip: tuple[tuple[str, ...], ...],
    grouped: bool = False,
    line: bool = True,
    whole_numbers: bool = False,
) -> Spec:
    """Chart values of several contenders over a common axis, on a log scale.

    Values that such a scale cannot show are counted in the axis title.
    """
    drawn = [row for row in rows if math.isfinite(row["x"]) and math.isfinite(row["y"]) and row["y"] > 0]
    values = [row[end] for row in drawn for end in ("y", "low", "high") if end in row]
    ticks = tuple(look.log_ticks(values)) if drawn else ()
    flat = tuple(look.log_scale(values)["domain"]) if drawn and max(values) < FLAT * min(values) else ()
    pointed = not line or len(drawn) <= MOST_POINTS * max(1, len(series))
    left_out, names = len(rows) - len(drawn), tuple(series.items())
    frame = _frame(names, x, y, ticks, flat, left_out, tooltip, grouped, line, pointed, whole_numbers)
    return {**frame, "data": {"values": drawn}}


@functools.lru_cache(maxsize=128)
def _frame(
    series: tuple[tuple[str, str], ...],
    x: str,
    y: str,
    ticks: tuple[float, ...],
    flat: tuple[float, ...],
    left_out: int,
    tooltip: tuple[tuple[str, ...], ...],
    grouped: bool,
    line: bool,
    pointed: bool,
    whole_numbers: bool,
) -> Spec:
    """Return the chart without its rows, which change every second during training; Altair's checks take long."""
    kinds = dict(series)
    names = list(kinds)
    key = look.names_legend(names, symbolSize=120, symbolOpacity=1, symbolStrokeWidth=0 if pointed else 2)
    across: dict[str, Any] = {"tickMinStep": 1, "format": ",d"} if whole_numbers else {}
    scale = alt.Scale(type="log", nice=False, domain=list(flat)) if flat else look.altair_log_scale()
    up = alt.Axis(labelExpr=look.NUMBER_LABEL, values=list(ticks) if ticks else alt.Undefined)
    base = alt.Chart().encode(
        x=alt.X(
            "x:Q",
            title=x,
            axis=alt.Axis(tickCount=MOST_TICKS, grid=False, **across),
            scale=alt.Scale(zero=False, nice=False, padding=look.EDGE),
        ),
        y=alt.Y("y:Q", title=look.axis_title_with_omissions(y, left_out), scale=scale, axis=up),
        color=look.names_channel(
            alt.Color, "contender", names, look.contender_colours(list(kinds.values())), legend=key
        ),
        tooltip=look.tooltips(("contender", "device"), *tooltip),
    )
    layers = []
    if grouped:
        layers.append(base.mark_rule(opacity=0.4).encode(y="low:Q", y2="high:Q"))
    if line:
        dash = look.names_channel(alt.StrokeDash, "contender", names, look.DASHES, legend=None if pointed else key)
        layers.append(base.mark_line(strokeWidth=2).encode(strokeDash=dash))
    if pointed:
        points = base.mark_point(filled=True, size=40, opacity=0.9)
        layers.append(
            points.encode(shape=look.names_channel(alt.Shape, "contender", names, look.POINT_SHAPES, legend=key))
        )
    return look.finish_chart(layers, [], height=look.CHART_HEIGHT)


def _bar_names(names: Sequence[str]) -> alt.Y:
    """Build an axis with the names of configurations next to their bars, in their order."""
    return alt.Y("contender:N", sort=list(names), title=None, axis=look.bar_names_axis(names))


def _bars(*, title: str | list[str], colours: Mapping[str, str], unit: str, names: Sequence[str]) -> alt.Chart:
    x = alt.X("time:Q", title=title, stack="zero", axis=alt.Axis(tickCount=5))
    figures = (("time", f"time ({unit})", ".4g"), ("share", "share", ".1%"))
    lines = look.tooltips(("contender", "device"), ("part", "part"), *figures)
    bars = alt.Chart().mark_bar(size=look.BAR_HEIGHT // 2).encode(x=x, y=_bar_names(names), tooltip=lines)
    return look.stack_parts(bars, colours, look.parts_legend(names))


def _series(trials: Sequence[Trial]) -> dict[str, str]:
    """Return contender → device kind, in the order of the trials."""
    return {display_name(trial.contender): trial.device_kind for trial in trials}


def _point(trial: Trial, **values: float) -> ChartRow:
    return {"contender": display_name(trial.contender), "device_name": trial.device_name, **values}


def _group_points(
    trials: Sequence[Trial], times: Sequence[Sequence[tuple[int, float]]], size: int
) -> tuple[str, list[ChartRow]]:
    """Return a suitable unit for the (number, seconds) pairs of each trial, and one point per `size` neighbours."""
    unit, scale = look.choose_time_unit(seconds for known in times for _, seconds in known)
    pairs = zip(trials, times, strict=True)
    return unit, [
        _summarize_group(trial, known[at : at + size], scale)
        for trial, known in pairs
        for at in range(0, len(known), size)
    ]


def _summarize_group(trial: Trial, group: Sequence[tuple[int, float]], scale: float) -> ChartRow:
    """Summarize neighbouring (number, seconds) as one point: the first number, the median time and its range."""
    times = [seconds * scale for _, seconds in group]
    return _point(trial, x=group[0][0], y=statistics.median(times), low=min(times), high=max(times))


def _group_size(count: int, limit: int) -> int:
    return max(1, math.ceil(count / limit))


HELP_COLOUR, NO_HELP_COLOUR = "#009E73", look.NEUTRAL
"""Colours of a variant that is faster beyond the noise, and of one that is not."""

TICK_DISTANCE = 1.15
"""Minimum factor from 1 to the next tick."""

LANE_NAMES_WIDTH = 220
"""Width of the names of variants, in pixels."""


def lane_effects_chart(remedies: Remedies) -> Spec:
    """Chart the effects of the measured variants of one device, the largest at the top; empty if none was measured."""
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
    return look.finish_chart([one, interval, dot], rows, height=alt.Step(look.CELL_HEIGHT_PX))


def _axis(ends: Sequence[float]) -> dict[str, Any]:
    """Return the axis of the speedup, without ticks close to 1 whose labels would overlap on a narrow chart."""
    x = speedup_axis("times as fast as the default loop", ends)
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


EXPECTATION_CHART_HEIGHT = 260
"""Height of the chart with its axes, in pixels."""

EXPECTATION_COLOUR = "#CC3377"
"""Colour of values that were not measured; no device has this colour."""


def expectation_chart(answer: Crossover, expectation: ExpectedSpeedup) -> Spec:
    """Chart the measured speedups of a study, with the predicted speedup at one size in another colour and shape."""
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
    return look.finish_chart(layers, [*measured, here], height=EXPECTATION_CHART_HEIGHT, resolve=look.OWN_SIZE_AXES)
