"""The one look of every chart: palette, scales, tooltips, and the frame in which it fits any page and theme.

A device kind has one family of hues everywhere, and colour is never alone: contenders also differ in dash and point
shape. Text takes the colours of the page's theme, the background is transparent, the width is the container's. Knows
no row.
"""

import json
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import altair as alt

from core import units
from core.question.device_kinds import DEVICE_KINDS
from core.text import as_label

Spec = dict[str, Any]
ChartRow = dict[str, Any]

DEVICE_COLOURS = {name: kind.colour for name, kind in DEVICE_KINDS.items()}
"""One colour a device kind."""

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
    "compiling": "#DDDDDD",
    "first step": "#FFAABB",
}
"""Parts of a whole are filled in light colours (Paul Tol's "light" scheme), so that no part looks like a device."""

NEUTRAL = "#808080"
"""Middle grey: the one colour with the same contrast to a light and a dark page."""

PALEST, TINT = "#F5F5F5", 0.6
"""A heat map goes from `PALEST` to this share of the device's colour, light enough for black figures in any theme."""

DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 6], [10, 4], [1, 4], [12, 3, 3, 3])
POINT_SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
    "triangle-right",
)
"""By the place of the contender in its experiment; as many as an experiment can have."""

RECORDED = "diamond"
"""Shape of what was recorded on another machine."""

CHART_HEIGHT = 260
BAR_HEIGHT = 44
CELL_HEIGHT_PX = 28
EDGE = 8
SHORT_NAME = 3
"""Pixels: height of a chart with axes, of a bar, of a cell; room between the outermost points and the edge.
Class names up to `SHORT_NAME` characters fit below a cell without a slant."""

SCALE_MARGIN, SMALLEST_ROOM = 0.04, 1.15
"""Room between the outermost values of a log scale and its ends, as a share of its length, and at least this factor."""

COMPACT_LABEL = (
    "datum.value >= 1e4 && datum.value % 1000 == 0 ? format(datum.value, '.3~s') : format(datum.value, ',~r')"
)
"""Expression that writes a size in as few characters as there is room for."""

SECONDS_LABEL = (
    "datum.value >= 1 ? format(datum.value, ',~r') + ' s' : "
    "replace(format(datum.value, '~s'), regexp('([a-zµ]*)$'), ' $1s')"
)
RATIO_LABEL = "format(datum.value, '~r') + '×'"
NUMBER_LABEL = "format(datum.value, datum.value < 0.001 ? '~e' : ',~r')"
SPEEDUP_LABEL = f"datum.value === 1 ? 'equal, 1×' : {RATIO_LABEL}"
"""Expressions that write a tick in the unit of time that suits it, as a speedup, as a number, and as a
speedup along a line at 1×."""

TICK_STEPS = ((1,), (1, 2, 5), (1, 2, 3, 5, 7), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9))
FEWEST_TICKS = 4
"""Ticks between the powers of ten of a log scale, the first of them that gives so many."""

SHADE = 0.3
"""White in a hue that a chart needs a second time for devices of one kind; from there on dash and shape tell more."""

LONG_NAME = 16
"""Letters of a name beside bars from which a phone has room for two parts in a line of the legend, not for three."""

LABEL_LETTERS, LABEL_LINE = 23, 12
"""Letters of a name beside a bar before it goes on in the next line, and pixels from that line to the next."""

FLUSH = 20
"""Pixels from an end of a horizontal axis within which a label is aligned inwards, so that it is not cut off."""

CONFIG: ChartRow = {"view": {"stroke": None}, "axisXQuantitative": {"labelFlush": FLUSH}}
"""What holds for every chart."""

CHECKED = False
"""Whether each specification is checked against the schema of Vega-Lite, which takes as long as making it; tests do."""

LEGEND_LETTERS, SYMBOL_LETTERS, LEGEND_LIMIT = 48, 4, 330
"""Letters in one row of a legend at the narrowest width, those that a symbol takes, and pixels of the longest name."""


def finish_chart(
    chart: alt.Chart | alt.LayerChart | alt.FacetChart, rows: list[ChartRow], *, height: int | alt.Step
) -> Spec:
    """The specification in the common look, with its rows inline.

    Altair is not given the rows: it would want a data frame, and refuse more than 5,000. It puts a placeholder where
    data are missing, which is taken out again.
    """
    framed = chart.properties(width="container", height=height, background="transparent")
    spec: Spec = framed.to_dict(validate=CHECKED)
    for part in (spec, *spec.get("layer", ())):
        part.pop("data", None)
        part.pop("datasets", None)
    return {**limit_titles(spec), "config": CONFIG, "data": {"values": rows}}


def add_measurement_mark(chart: alt.LayerChart | alt.FacetChart, mark: str) -> alt.LayerChart | alt.FacetChart:
    """The chart with what has to be said of how it was measured above it; as it is where that is nothing."""
    return chart.properties(title=alt.Title(mark, anchor="start", fontSize=12, fontWeight="normal")) if mark else chart


def limit_titles(part: Any) -> Any:
    """A specification whose titles have one line each and no more letters than there is room for."""
    match part:
        case dict():
            return {
                name: _limit_title(entry) if name == "title" else limit_titles(entry) for name, entry in part.items()
            }
        case list():
            return [limit_titles(entry) for entry in part]
    return part


def _limit_title(title: Any) -> Any:
    match title:
        case str():
            return as_label(title)
        case list():
            return [_limit_title(line) for line in title]
    return title


def tooltips(*lines: tuple[str, ...]) -> list[alt.Tooltip]:
    """Lines of a tooltip: field and title of a name, or of a number with its format."""
    return [_tooltip(*line) for line in lines]


def _tooltip(field: str, title: str, number: str = "") -> alt.Tooltip:
    return alt.Tooltip(f"{field}:Q", title=title, format=number) if number else alt.Tooltip(f"{field}:N", title=title)


def layer_chart(name: str) -> alt.Chart:
    """A chart of the rows that say they are of this layer."""
    chart: alt.Chart = alt.Chart().transform_filter(f"datum.layer == {json.dumps(name)}")
    return chart


def names_channel(
    channel: Callable[..., Any], field: str, names: Sequence[str], looks: Sequence[Any], **options: Any
) -> Any:
    """A channel that tells names apart, each by its own look; channels with the same legend are shown in one."""
    scale = alt.Scale(domain=list(names), range=list(looks[: len(names)]))
    return channel(f"{field}:N", scale=scale, **options)


def part_colours(steps: Iterable[Iterable[str]]) -> dict[str, str]:
    """The colours of the parts that some steps have, in the order in which they happen; one's own step is one part."""
    known = {**PART_COLOURS, "step": PART_COLOURS["forward"]}
    return {part: known.get(part, NEUTRAL) for step in steps for part in step} or PART_COLOURS


def parts_legend(names: Sequence[str] = ()) -> alt.Legend:
    """A legend of parts, which begins where their bars do: it stays in a narrow window beside long names too."""
    columns = 3 if max(map(len, names), default=0) < LONG_NAME else 2
    return alt.Legend(orient="top", title=None, columns=columns)


def stack_parts(bars: alt.Chart, colours: Mapping[str, str], legend: alt.Legend | None = None) -> alt.Chart:
    """Bars of parts, in the order in which they happen."""
    legend = legend or parts_legend()
    colour = names_channel(alt.Color, "part", list(colours), list(colours.values()), legend=legend)
    return bars.encode(color=colour, order=alt.Order("rank:Q"))


def log_channel(title: str, values: Sequence[float], label: str, **axis: Any) -> dict[str, Any]:
    """Title, scale and axis of what is drawn on a log scale; `label` is the expression that writes a tick."""
    labels = alt.Axis(labelExpr=label, values=log_ticks(values), **axis)
    return {"title": f"{title} (log scale)", "scale": altair_log_scale(values), "axis": labels}


def altair_log_scale(values: Iterable[float] = ()) -> alt.Scale:
    """A log scale; over all of `values`, with room at both ends, also where they are one and the same."""
    return alt.Scale(**log_scale(values))


def log_scale(values: Iterable[float] = ()) -> ChartRow:
    """A logarithmic scale as plain data, for a chart that is written out without Altair's checks."""
    known = [value for value in values if 0 < value < math.inf]
    if not known:
        return {"type": "log", "nice": False, "padding": EDGE}
    low, high = min(known), max(known)
    room = max((high / low) ** SCALE_MARGIN, SMALLEST_ROOM)
    return {"type": "log", "nice": False, "domain": [low / room, high * room]}


def log_ticks(values: Iterable[float]) -> Any:
    """Round values for a log scale over `values`, as few as tell; `Undefined` where there are none to choose from."""
    known = [value for value in values if 0 < value < math.inf]
    low, high = (min(known), max(known)) if known else (1.0, 1.0)
    if low == high:
        return [low] if known else alt.Undefined
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    room = max((high / low) ** SCALE_MARGIN, SMALLEST_ROOM)
    tried: list[list[float]] = []
    for steps in TICK_STEPS:
        marks = [float(f"{step}e{power}") for power in powers for step in steps]
        tried.append([mark for mark in marks if low / room <= mark <= high * room])
    enough = next((found for found in tried if len(found) >= FEWEST_TICKS), tried[-1])
    return enough if len(enough) > 1 else _short_scale_ticks(low / room, high * room)


def _short_scale_ticks(low: float, high: float) -> list[float]:
    """Ticks of two digits on a log scale that is too short for round ones."""
    places = (low * (high / low) ** share for share in (0.15, 0.5, 0.85))
    return sorted({mark for place in places if low <= (mark := float(f"{place:.2g}")) <= high})


def format_size_compactly(value: float, *, shorten_from: float = 10_000) -> str:
    """A size in as few characters as an axis has room for: 410,337 → "410k", 1,234 → "1,234", 1,342.7 → "1,340"."""
    value = value if value == math.floor(value) else float(f"{value:.3g}")  # an estimate, to three digits
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(shorten_from, size * 0.9995):
            return _format_trimmed(value / size) + letter
    return _format_trimmed(value)


def format_size_range(low: float, high: float) -> str:
    """Two sizes as an interval, both in the same way: "8k–13k", "190–240"."""
    shorten_from = 1_000 if high >= 10_000 else 10_000
    ends = [format_size_compactly(size, shorten_from=shorten_from) for size in (low, high)]
    return "–".join(ends)


def resolve_device_kinds(devices: tuple[str, str], kinds: tuple[str, str] | None) -> tuple[str, str]:
    """Device kinds of two devices; where they are not known, what the names tell, or else a CPU and a GPU."""
    if kinds is not None:
        return kinds
    first, second = (_kind(name) for name in devices)
    return first or "cpu", second or "cuda"


def _kind(name: str) -> str:
    words = name.partition(" (")[0].lower()
    found = next((kind for kind in DEVICE_COLOURS if words.startswith(kind)), "")
    return found or ("cuda" if "gpu" in words else "cpu" if "cpu" in words else "")


def contender_colours(kinds: Sequence[str]) -> list[str]:
    """A colour for each of several contenders by their kinds, in their order: each has a hue of its kind's family."""
    return [_hue(kind, list(kinds[:place]).count(kind)) for place, kind in enumerate(kinds)]


def _hue(kind: str, before: int) -> str:
    known = DEVICE_KINDS.get(kind)
    hues = (known.colour, *known.further) if known else (NEUTRAL,)
    return mix_colours(hues[before % len(hues)], "#FFFFFF", min(0.6, SHADE * (before // len(hues))))


def names_legend(names: Sequence[str], *, orient: Literal["top", "bottom"] = "top", **options: Any) -> alt.Legend:
    """A legend that stays within a narrow window: as many names beside each other as fit there."""
    return alt.Legend(**plain_legend(names, orient=orient, **options))


def plain_legend(names: Sequence[str], *, orient: Literal["top", "bottom"] = "top", **options: Any) -> ChartRow:
    """A legend as plain data."""
    widths = [len(name) + SYMBOL_LETTERS for name in names]
    fits = (
        count
        for count in range(len(names), 1, -1)
        if sum(max(widths[place::count]) for place in range(count)) <= LEGEND_LETTERS
    )
    return {"orient": orient, "title": None, "columns": next(fits, 1), "labelLimit": LEGEND_LIMIT, **options}


def bar_names_axis(names: Sequence[str]) -> alt.Axis:
    """Names beside bars in several lines where they are long: the chart needs the room more.

    Vega puts the first of several lines beside the bar, so they are moved up until the middle of all of them is there.
    """
    lines = {name: textwrap.wrap(name, LABEL_LETTERS) for name in names if len(name) > LABEL_LETTERS}
    said = {name: f"datum.value == {json.dumps(name)}" for name in lines}
    cases = [f"{said[name]} ? {json.dumps(lines[name])} : " for name in lines]
    up = [{"test": said[name], "value": -LABEL_LINE * (len(lines[name]) - 1) / 2} for name in lines]
    moved: dict[str, Any] = {"labelOffset": {"condition": up, "value": 0}} if up else {}
    return alt.Axis(labelExpr="".join(cases) + "datum.label", labelLimit=150, **moved)


def axis_title_with_omissions(title: str, number: int) -> str | list[str]:
    """An axis title that also says how many values a log scale could not show."""
    return [title, f"{number} not above 0 or not finite: not drawn"] if number else title


def choose_time_unit(seconds: Iterable[float]) -> tuple[str, float]:
    """The unit in which the largest of these times reads well, and how many of it a second has."""
    largest = max((s for s in seconds if math.isfinite(s)), default=1.0)
    if largest >= 1:
        return "s", 1.0
    return ("ms", 1e3) if largest >= 1e-3 else ("µs", 1e6)


def mix_colours(first: str, second: str, share: float) -> str:
    """`share` of the second colour in the first, both as #RRGGBB."""
    pairs = ((int(first[at : at + 2], 16), int(second[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)


def _format_trimmed(value: float) -> str:
    """To three significant digits, without zeros at the end of a fraction."""
    shown = units.format_significant(value)
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
