"""Rows as charts: Vega-Lite specifications built with Altair, to be drawn by a page or written to a file.

One palette and one look. A device kind has one colour everywhere and never colour alone: contenders also differ in
dash and point shape. Text takes the colours of the page's theme, the background is transparent, the width is the
container's. Only the columns named here reach a chart. Nothing is drawn to a screen and no number is invented.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import altair as alt
import pyarrow as pa

from core.answer import summary
from core.answer.breakdown import PARTS, parts
from core.answer.parity import confusion_rows
from core.catalog import dataset
from core.progress import Progress
from core.results.schema import Trial, to_table

Spec = dict[str, Any]
Row = dict[str, Any]

DEVICE_COLOURS: dict[str, str] = {
    "cpu": "#0072B2",
    "cuda": "#D55E00",
    "rocm": "#CC79A7",
    "mps": "#009E73",
    "xpu": "#E69F00",
}
"""One colour a device kind, told apart with every common colour blindness (Okabe & Ito 2008)."""

PART_COLOURS: dict[str, str] = {
    "loader": "#EEDD88",
    "transfer": "#EE8866",
    "forward": "#77AADD",
    "backward": "#44BB99",
    "optimizer": "#AAAA00",
}
START_UP_COLOURS: dict[str, str] = {
    "device": "#99DDFF",
    "model": "#BBCC33",
    "data": PART_COLOURS["transfer"],
    "first step": "#FFAABB",
}
"""Parts of a whole are filled in light colours (Paul Tol's "light" scheme), so that no part looks like a device."""

NEUTRAL = "#808080"
"""Middle grey: the one colour with the same contrast to a light and a dark page."""

PALEST, TINT = "#F5F5F5", 0.6
"""A heat map goes from `PALEST` to this share of the device's colour, light enough for black figures in any theme."""

DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 6], [10, 4], [1, 4], [12, 3, 3, 3])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right")
"""By the place of the contender in its experiment; as many as an experiment can have."""

HEIGHT = 260
BAR_HEIGHT = 44
CELL = 28
EDGE = 8
SHORT_NAME = 3
"""Pixels: height of a chart with axes, of a bar, of a cell; room between the outermost points and the edge.
Class names up to `SHORT_NAME` characters fit below a cell without a slant."""

MOST_EPOCHS = 200
MOST_BLOCKS = 1_000
"""Marks on one chart before neighbours are put together: beyond, browsers draw slowly and for the mouse alone."""

MOST_POINTS = 60
"""Values of one curve before its points are left out and the line stands alone."""


def loss_over_epochs(trials: Sequence[Trial]) -> Spec:
    """Training loss of each segment against epochs trained, one curve a trial."""
    rows = [
        _point(trial, x=step / trial.steps_per_epoch, y=loss, step=step)
        for trial in trials
        for step, loss in zip(trial.loss_step, trial.loss, strict=True)
    ]
    tooltip = [_tooltip("step", "steps", ",d"), _tooltip("x", "epochs", ".2f"), _tooltip("y", "loss (nats)", ".4g")]
    return _curves(rows, _series(trials), x="epochs trained", y="training loss (nats, log scale)", tooltip=tooltip)


def loss_over_time(trials: Sequence[Trial]) -> Spec:
    """Training loss of each segment against seconds of training, start-up apart; trials without timed blocks lack."""
    rows = [
        _point(trial, x=seconds, y=loss, step=step)
        for trial in trials
        for seconds, step, loss in zip(
            summary.seconds_at(trial, trial.loss_step), trial.loss_step, trial.loss, strict=False
        )
    ]
    tooltip = [_tooltip("step", "steps", ",d"), _tooltip("x", "seconds", ".4g"), _tooltip("y", "loss (nats)", ".4g")]
    return _curves(
        rows,
        _series(trials),
        x="time of training, start-up apart (s)",
        y="training loss (nats, log scale)",
        tooltip=tooltip,
    )


def live_loss(
    progress: Progress, *, by: Literal["steps", "seconds"] = "steps", kinds: Mapping[str, str] | None = None
) -> Spec:
    """Training loss of a running measurement.

    Args:
        progress: what the measurement said last.
        by: what is on the horizontal axis.
        kinds: device → device kind; without it a device is taken for what its name says, which for `cuda:0` is an
            NVIDIA one.
    """
    known = kinds or {}
    devices = {entry.contender: entry.contender.partition("@")[0] for entry in progress.contenders}
    series = {name: known.get(device, device.partition(":")[0]) for name, device in devices.items()}
    rows = [
        {"contender": entry.contender, "x": x, "y": loss, "step": step}
        for entry in progress.contenders
        for x, step, loss in zip(
            entry.loss_steps if by == "steps" else entry.loss_seconds, entry.loss_steps, entry.losses, strict=False
        )
    ]
    title = "steps" if by == "steps" else "time of training, start-up apart (s)"
    tooltip = [_tooltip("step", "steps", ",d"), _tooltip("y", "loss (nats)", ".4g")]
    return _curves(rows, series, x=title, y="training loss (nats, log scale)", tooltip=tooltip)


def epoch_times(trials: Sequence[Trial]) -> Spec:
    """Time of each epoch, one curve a trial; above `MOST_EPOCHS` epochs the median of neighbours with their range."""
    times = {trial.trial_id: summary.epoch_times(trial) for trial in trials}
    size = _group_size(max(map(len, times.values()), default=0), MOST_EPOCHS)
    unit, scale = _unit(itertools.chain.from_iterable(times.values()))
    rows = [
        _grouped(trial, list(enumerate(times[trial.trial_id], 1))[at : at + size], scale)
        for trial in trials
        for at in range(0, len(times[trial.trial_id]), size)
    ]
    of = "time per epoch" if size == 1 else f"median time per epoch of every {size}"
    tooltip = [_tooltip("x", "epoch", ",d"), _tooltip("y", f"time ({unit})", ".4g")]
    y = f"{of} ({unit}, log scale)"
    return _curves(rows, _series(trials), x="epoch", y=y, tooltip=tooltip, grouped=size > 1, whole=True)


def blocks(trials: Sequence[Trial]) -> Spec:
    """Time per step of every timed block against its pair: the raw values behind the verdict.

    Above `MOST_BLOCKS` points the median of neighbouring blocks with their range.
    """
    size = _group_size(sum(len(trial.block_steps) for trial in trials), MOST_BLOCKS)
    unit, scale = _unit(time for trial in trials for time in trial.step_s)
    rows = [
        _grouped(trial, list(zip(trial.block_pair, trial.step_s, strict=True))[at : at + size], scale)
        for trial in trials
        for at in range(0, len(trial.block_steps), size)
    ]
    of = "time per step" if size == 1 else f"median time per step of every {size} blocks"
    tooltip = [_tooltip("x", "pair", ",d"), _tooltip("y", f"time per step ({unit})", ".4g")]
    return _curves(
        rows,
        _series(trials),
        x="pair of blocks",
        y=f"{of} ({unit}, log scale)",
        tooltip=tooltip,
        grouped=size > 1,
        line=False,
    )


def breakdown(trials: Sequence[Trial]) -> Spec:
    """Where the time of a step goes: stacked bars of the parts timed apart, a tick at the undisturbed step."""
    known = [found for found in map(parts, trials) if found is not None]
    unit, scale = _unit(itertools.chain.from_iterable((of.sum_s, of.step_s) for of in known))
    rows = [
        {
            "contender": of.contender,
            "part": part,
            "rank": rank,
            "time": getattr(of, f"{part}_s") * scale,
            "share": of.share(part),
            "step": of.step_s * scale,
        }
        for of in known
        for rank, part in enumerate(PARTS)
    ]
    contenders = alt.Y("contender:N", sort=None, title=None)
    tick = (
        alt.Chart()
        .transform_filter("datum.rank == 0")
        .mark_tick(color=NEUTRAL, thickness=4, size=BAR_HEIGHT)
        .encode(
            x=alt.X("step:Q"),
            y=contenders,
            tooltip=[_tooltip("contender", "device"), _tooltip("step", f"undisturbed step ({unit})", ".4g")],
        )
    )
    title = [f"time per step ({unit})", "grey tick: the undisturbed step"]
    bars = _bars(title=title, colours=PART_COLOURS, unit=unit, y=contenders)
    return _finished(alt.layer(bars, tick), rows, height=alt.Step(BAR_HEIGHT))


def startup(trials: Sequence[Trial]) -> Spec:
    """Start-up of each trial in its parts, as stacked bars; parts that were not measured are left out."""
    times = {
        trial.contender: dict(
            zip(
                START_UP_COLOURS,
                (
                    trial.startup_device_s,
                    trial.startup_build_s,
                    trial.startup_transfer_s,
                    trial.startup_first_step_s,
                ),
                strict=True,
            )
        )
        for trial in trials
    }
    unit, scale = _unit(s for of in times.values() for s in of.values() if s is not None)
    rows = [
        {
            "contender": contender,
            "part": part,
            "rank": rank,
            "time": seconds * scale,
            "share": seconds / (sum(filter(None, of.values())) or 1),
        }
        for contender, of in times.items()
        for rank, (part, seconds) in enumerate(of.items())
        if seconds is not None
    ]
    contenders = alt.Y("contender:N", sort=None, title=None)
    bars = _bars(title=f"start-up ({unit})", colours=START_UP_COLOURS, unit=unit, y=contenders)
    return _finished(bars, rows, height=alt.Step(BAR_HEIGHT))


def confusion(trial: Trial) -> Spec:
    """Confusion matrix: test items by true and predicted class, with the counts; empty if it was not tested."""
    names = list(dataset(trial.dataset).classes)
    rows = [
        {"true": names[label], "predicted": names[answer], "items": items}
        for label, row in enumerate(confusion_rows(trial))
        for answer, items in enumerate(row)
    ]
    colours = [PALEST, _mixed(PALEST, DEVICE_COLOURS[trial.device_kind], TINT)]
    slant = 0 if max(map(len, names)) <= SHORT_NAME else -45
    base = alt.Chart().encode(
        x=alt.X("predicted:N", sort=names, title="predicted class", axis=alt.Axis(labelAngle=slant)),
        y=alt.Y("true:N", sort=names, title="true class"),
        tooltip=[_tooltip("true", "true class"), _tooltip("predicted", "predicted"), _tooltip("items", "items", ",d")],
    )
    # Errors are few beside right answers: a square root lets them show.
    scale = alt.Scale(type="sqrt", range=colours, domainMin=0)
    cells = base.mark_rect().encode(color=alt.Color("items:Q", scale=scale, legend=None))
    # Black is right in every theme, since the cell below it is always light.
    faint = alt.condition("datum.items == 0", alt.value(0.3), alt.value(1.0))
    text = alt.Text("items:Q", format=",d")
    figures = base.mark_text(color="black", fontSize=11).encode(text=text, opacity=faint)
    return _finished(alt.layer(cells, figures), rows, height=alt.Step(CELL))


GALLERY_COLUMNS = (
    "trial_id",
    "started_at",
    "contender",
    "device_kind",
    "device_name",
    "dataset",
    "model",
    "parameters",
    "batch_size",
    "block_steps",
    "block_begin_ns",
    "block_end_ns",
)


def gallery(trials: pa.Table | Sequence[Trial]) -> Spec:
    """Median time per step against parameters, one point a trial; trials without timed blocks have no point.

    Args:
        trials: rows, or a table that has `GALLERY_COLUMNS`.
    """
    table = trials if isinstance(trials, pa.Table) else to_table(list(trials))
    timed = [row | {"step": _median_step_s(row)} for row in table.select(GALLERY_COLUMNS).to_pylist()]
    unit, scale = _unit(row["step"] for row in timed)
    shown = [name for name in GALLERY_COLUMNS if not name.startswith("block_")]
    rows = [{**{name: row[name] for name in shown}, "step": row["step"] * scale} for row in timed if row["step"] > 0]
    kinds = [kind for kind in DEVICE_COLOURS if any(row["device_kind"] == kind for row in rows)]
    places = [list(DEVICE_COLOURS).index(kind) for kind in kinds]
    legend = alt.Legend(orient="top", title="device kind")
    chart = (
        alt.Chart()
        .mark_point(filled=True, size=60, opacity=0.8)
        .encode(
            x=alt.X("parameters:Q", title="parameters (log scale)", scale=_log(), axis=alt.Axis(format="~s")),
            y=alt.Y("step:Q", title=f"time per step ({unit}, log scale)", scale=_log()),
            color=alt.Color(
                "device_kind:N",
                scale=alt.Scale(domain=kinds, range=[DEVICE_COLOURS[kind] for kind in kinds]),
                legend=legend,
            ),
            shape=alt.Shape(
                "device_kind:N", scale=alt.Scale(domain=kinds, range=[SHAPES[place] for place in places]), legend=legend
            ),
            tooltip=[
                _tooltip("device_name", "device"),
                _tooltip("contender", "contender"),
                _tooltip("dataset", "dataset"),
                _tooltip("model", "model"),
                _tooltip("parameters", "parameters", ",d"),
                _tooltip("batch_size", "batch size", ",d"),
                _tooltip("step", f"time per step ({unit})", ".4g"),
                _tooltip("started_at", "measured"),
            ],
        )
    )
    return _finished(chart, rows, height=HEIGHT)


def _curves(
    rows: list[Row],
    series: Mapping[str, str],
    *,
    x: str,
    y: str,
    tooltip: list[alt.Tooltip],
    grouped: bool = False,
    line: bool = True,
    whole: bool = False,
) -> Spec:
    """Values of several contenders over a common axis, on a log scale; what such a scale cannot show is counted."""
    drawn = [row for row in rows if math.isfinite(row["x"]) and math.isfinite(row["y"]) and row["y"] > 0]
    pointed = not line or len(drawn) <= MOST_POINTS * max(1, len(series))
    key = alt.Legend(orient="top", title=None, symbolSize=120, symbolOpacity=1, symbolStrokeWidth=0 if pointed else 2)
    ticks = alt.Axis(tickMinStep=1, format=",d") if whole else alt.Axis()
    base = alt.Chart().encode(
        x=alt.X("x:Q", title=x, axis=ticks, scale=alt.Scale(zero=False, nice=False, padding=EDGE)),
        y=alt.Y("y:Q", title=_counting_left_out(y, len(rows) - len(drawn)), scale=_log()),
        color=_by_contender(alt.Color, series, [DEVICE_COLOURS[kind] for kind in series.values()], key),
        tooltip=[_tooltip("contender", "device"), *tooltip],
    )
    layers = []
    if grouped:
        layers.append(base.mark_rule(opacity=0.4).encode(y="low:Q", y2="high:Q"))
    if line:
        dash = _by_contender(alt.StrokeDash, series, DASHES, None if pointed else key)
        layers.append(base.mark_line(strokeWidth=2).encode(strokeDash=dash))
    if pointed:
        points = base.mark_point(filled=True, size=40, opacity=0.9)
        layers.append(points.encode(shape=_by_contender(alt.Shape, series, SHAPES, key)))
    return _finished(alt.layer(*layers), drawn, height=HEIGHT)


def _by_contender(
    channel: Callable[..., Any], series: Mapping[str, str], values: Sequence[Any], legend: alt.Legend | None
) -> Any:
    """A channel that tells contenders apart; channels with the same legend are shown in one."""
    scale = alt.Scale(domain=list(series), range=list(values[: len(series)]))
    return channel("contender:N", scale=scale, legend=legend)


def _bars(*, title: str | list[str], colours: Mapping[str, str], unit: str, y: alt.Y) -> alt.Chart:
    """Stacked horizontal bars of parts, in the order in which they happen."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    chart: alt.Chart = (
        alt.Chart()
        .mark_bar(size=BAR_HEIGHT // 2)
        .encode(
            x=alt.X("time:Q", title=title, stack="zero", axis=alt.Axis(tickCount=5)),
            y=y,
            color=alt.Color("part:N", scale=scale, legend=alt.Legend(orient="top", title=None, columns=3)),
            order=alt.Order("rank:Q"),
            tooltip=[
                _tooltip("contender", "device"),
                _tooltip("part", "part"),
                _tooltip("time", f"time ({unit})", ".4g"),
                _tooltip("share", "share", ".1%"),
            ],
        )
    )
    return chart


def _finished(chart: alt.Chart | alt.LayerChart | alt.FacetChart, rows: list[Row], *, height: int | alt.Step) -> Spec:
    """The specification in the common look, with its rows inline.

    Altair is not given the rows: it would want a data frame, and refuse more than 5,000. It puts a placeholder where
    data are missing, which is taken out again.
    """
    framed = chart.properties(width="container", height=height, background="transparent")
    spec: Spec = framed.configure_view(stroke=None).to_dict()
    for part in (spec, *spec.get("layer", ())):
        part.pop("data", None)
        part.pop("datasets", None)
    return {**spec, "data": {"values": rows}}


def _series(trials: Sequence[Trial]) -> dict[str, str]:
    """Contender → device kind, in the order of the trials."""
    return {trial.contender: trial.device_kind for trial in trials}


def _point(trial: Trial, **values: float) -> Row:
    return {"contender": trial.contender, "device_name": trial.device_name, **values}


def _grouped(trial: Trial, group: Sequence[tuple[int, float]], scale: float) -> Row:
    """Neighbouring (number, seconds) as one point: the first number, the median time and its range."""
    times = [seconds * scale for _, seconds in group]
    return _point(trial, x=group[0][0], y=statistics.median(times), low=min(times), high=max(times))


def _group_size(count: int, most: int) -> int:
    return max(1, math.ceil(count / most))


def _tooltip(field: str, title: str, number: str = "") -> alt.Tooltip:
    return alt.Tooltip(f"{field}:Q", title=title, format=number) if number else alt.Tooltip(f"{field}:N", title=title)


def _log() -> alt.Scale:
    return alt.Scale(type="log", nice=False, padding=EDGE)


def _counting_left_out(title: str, number: int) -> str | list[str]:
    """An axis title that also says how many values a log scale could not show."""
    return [title, f"{number} not above 0 or not finite: not drawn"] if number else title


def _unit(seconds: Iterable[float]) -> tuple[str, float]:
    """The unit in which the largest of these times reads well, and how many of it a second has."""
    largest = max((s for s in seconds if math.isfinite(s)), default=1.0)
    if largest >= 1:
        return "s", 1.0
    return ("ms", 1e3) if largest >= 1e-3 else ("µs", 1e6)


def _median_step_s(row: Mapping[str, Any]) -> float:
    """Median seconds a step of a table's row, 0 if no block was timed."""
    readings = zip(row["block_begin_ns"], row["block_end_ns"], row["block_steps"], strict=True)
    times: list[float] = [(end - begin) / 1e9 / steps for begin, end, steps in readings]
    return statistics.median(times or [0.0])


def _mixed(first: str, second: str, share: float) -> str:
    """`share` of the second colour in the first, both as #RRGGBB."""
    pairs = ((int(first[at : at + 2], 16), int(second[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)
