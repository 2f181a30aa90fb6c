"""The one look of every chart: palette, scales, tooltips, labels and captions, and the frame for any page and theme.

A device kind has one family of hues everywhere, and colour is never alone: contenders also differ in dash and point
shape. Text has the colours of the page's theme, the background is transparent, and the width is that of the container.
"""

from __future__ import annotations

import itertools
import json
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ... import units
from ...errors import InvalidValue
from ...question import describe, models
from ...question.experiment import Point
from ...question.lanes import DEVICE_KINDS
from ...question.sweep import size_on_axis
from ...results.schema import Trial
from ...text import as_label, as_line
from .. import wording
from . import alt

Spec = dict[str, Any]
ChartRow = dict[str, Any]

DEVICE_COLOURS = {name: kind.colour for name, kind in DEVICE_KINDS.items()}
"""Colour of each device kind."""

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
"""Fill colours of parts of a whole (Paul Tol's "light" scheme), chosen so that no part looks like a device."""

NEUTRAL = "#808080"
"""Middle grey: the one colour with the same contrast to a light and a dark page."""

PALEST, TINT = "#F5F5F5", 0.6
"""Ends of a heat map's scale: `PALEST`, and this share of the device's colour. Both are light enough for black text."""

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
"""Point shapes by position of the contender in its experiment, one for each possible contender."""

RECORDED = "diamond"
"""Shape of points that were recorded on another machine."""

CHART_HEIGHT = 260
BAR_HEIGHT = 44
CELL_HEIGHT_PX = 28
EDGE = 8
SHORT_NAME = 3
"""Heights in pixels of a chart with axes, a bar and a cell; margin in pixels between the outermost points and the edge.
Class names up to `SHORT_NAME` characters fit below a cell without rotation.
"""

SCALE_MARGIN, SMALLEST_ROOM = 0.04, 1.15
"""Margin between the outermost values of a log scale and its ends: a share of the scale's length, and a minimum factor.
"""

COMPACT_LABEL = (
    "datum.value >= 1e4 && datum.value % 1000 == 0 ? format(datum.value, '.3~s') : format(datum.value, ',~r')"
)
"""Vega expression that formats a size in few characters for an axis."""

SECONDS_LABEL = (
    "datum.value >= 1 ? format(datum.value, ',~r') + ' s' : "
    "replace(format(datum.value, '~s'), regexp('([a-zµ]*)$'), ' $1s')"
)
RATIO_LABEL = "format(datum.value, '~r') + '×'"
NUMBER_LABEL = "format(datum.value, datum.value < 0.001 ? '~e' : ',~r')"
SPEEDUP_LABEL = f"datum.value === 1 ? 'equal, 1×' : {RATIO_LABEL}"
"""Vega expressions that format a tick as a time, a speedup, a number, and a speedup on a chart with a line at 1×."""

TICK_STEPS = ((1,), (1, 2, 5), (1, 2, 3, 5, 7), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9))
FEWEST_TICKS = 4
"""Possible ticks between the powers of ten of a log scale; the first entry that gives at least `FEWEST_TICKS` is used.
"""

SHADE = 0.3
"""Share of white in a hue that a chart uses a second time for one device kind; dash and shape also differ."""

LONG_NAME = 16
"""Length of a bar's name from which a line of a phone's legend has space for two parts instead of three."""

LABEL_LETTERS, LABEL_LINE = 23, 12
"""Maximum letters in one line of a name next to a bar, and line height in pixels."""

FLUSH = 20
"""Distance in pixels from an end of a horizontal axis within which a label is aligned inwards, so that it is not cut
off.
"""

CONFIG: ChartRow = {"view": {"stroke": None}, "axisXQuantitative": {"labelFlush": FLUSH}}
"""Configuration of every chart."""

CHECKED = False
"""Whether each specification is checked against the schema of Vega-Lite, which doubles the time; tests enable this."""

LEGEND_LETTERS, SYMBOL_LETTERS, LEGEND_LIMIT = 48, 4, 330
"""Letters in one row of a legend at the narrowest width, width of a symbol in letters, and longest name in pixels."""


OWN_SIZE_AXES = {"axis": {"x": "independent"}}
"""Argument `resolve` of a chart whose layers have size axes of their own, as labels above a chart do."""


def finish_chart(
    chart: alt.Chart | Sequence[alt.Chart],
    rows: list[ChartRow],
    *,
    height: int | alt.Step,
    mark: str = "",
    resolve: Mapping[str, Mapping[str, str]] | None = None,
) -> Spec:
    """Return the specification of a chart, or of its layers, in the common look and with its rows inline.

    The rows do not pass through Altair, which requires a data frame of at most 5,000 rows. Layers become dictionaries
    one by one: `alt.layer` and its methods copy them several times, which takes half the time of a chart.

    Args:
        chart: a chart, or its layers from back to front.
        rows: the rows of all layers.
        height: height in pixels, or of each step of a discrete axis.
        mark: note on the measurement, shown as the title.
        resolve: scales and axes that layers do not share, as in Vega-Lite.
    """
    layers = [_frameless(layer) for layer in ([chart] if isinstance(chart, alt.Chart) else chart)]
    spec: Spec = layers[0] if isinstance(chart, alt.Chart) else {"layer": layers}
    spec |= {"width": "container", "background": "transparent", "$schema": alt.SCHEMA_URL}
    spec |= {"height": height.to_dict() if isinstance(height, alt.Step) else height}
    spec |= {"resolve": resolve} if resolve else {}
    spec |= {"title": {"text": mark, "anchor": "start", "fontSize": 12, "fontWeight": "normal"}} if mark else {}
    spec = {**limit_titles(spec), "config": CONFIG, "data": {"values": rows}}
    if CHECKED:
        (alt.LayerChart if "layer" in spec else alt.Chart).validate(spec)
    return spec


def _frameless(chart: alt.Chart) -> Spec:
    """Return a chart as a dictionary without what its frame has: schema, look, and Altair's placeholder for data."""
    spec: Spec = chart.to_dict(validate=CHECKED)
    return {name: part for name, part in spec.items() if name not in ("$schema", "config", "data", "datasets")}


def limit_titles(part: Any) -> Any:
    """Return a specification whose titles have one line each and no more letters than fit."""
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
    """Return the lines of a tooltip, each from a field, a title and, for a number, a format."""
    return [_tooltip(*line) for line in lines]


def _tooltip(field: str, title: str, number: str = "") -> alt.Tooltip:
    return alt.Tooltip(f"{field}:Q", title=title, format=number) if number else alt.Tooltip(f"{field}:N", title=title)


def layer_chart(name: str) -> alt.Chart:
    """Return a chart of the rows whose layer has this name."""
    chart: alt.Chart = alt.Chart().transform_filter(f"datum.layer == {json.dumps(name)}")
    return chart


def names_channel(
    channel: Callable[..., Any], field: str, names: Sequence[str], looks: Sequence[Any], **options: Any
) -> Any:
    """Build a channel that gives each name its own look; channels with the same legend are shown in one."""
    scale = alt.Scale(domain=list(names), range=list(looks[: len(names)]))
    return channel(f"{field}:N", scale=scale, **options)


def part_colours(steps: Iterable[Iterable[str]]) -> dict[str, str]:
    """Return the colours of the parts of some steps in order; a step of a custom script is one part."""
    known = {**PART_COLOURS, "step": PART_COLOURS["forward"]}
    return {part: known.get(part, NEUTRAL) for step in steps for part in step} or PART_COLOURS


def parts_legend(names: Sequence[str] = ()) -> alt.Legend:
    """Build a legend of parts that is aligned with the bars and fits a narrow window, also next to long names."""
    columns = 3 if max(map(len, names), default=0) < LONG_NAME else 2
    return alt.Legend(orient="top", title=None, columns=columns)


def stack_parts(bars: alt.Chart, colours: Mapping[str, str], legend: alt.Legend | None = None) -> alt.Chart:
    """Stack bars of parts, in the order in which they happen."""
    legend = legend or parts_legend()
    colour = names_channel(alt.Color, "part", list(colours), list(colours.values()), legend=legend)
    return bars.encode(color=colour, order=alt.Order("rank:Q"))


def log_channel(title: str, values: Sequence[float], label: str, **axis: Any) -> dict[str, Any]:
    """Return title, scale and axis of a log scale; `label` is the expression that formats a tick."""
    labels = alt.Axis(labelExpr=label, values=log_ticks(values), **axis)
    return {"title": f"{title} (log scale)", "scale": altair_log_scale(values), "axis": labels}


def altair_log_scale(values: Iterable[float] = ()) -> alt.Scale:
    """Build a log scale over all of `values` with a margin at both ends, also where the values are all equal."""
    return alt.Scale(**log_scale(values))


def log_scale(values: Iterable[float] = ()) -> ChartRow:
    """Return a logarithmic scale as simple data, for a chart that is built without Altair's checks."""
    known = [value for value in values if 0 < value < math.inf]
    if not known:
        return {"type": "log", "nice": False, "padding": EDGE}
    low, high = min(known), max(known)
    room = max((high / low) ** SCALE_MARGIN, SMALLEST_ROOM)
    return {"type": "log", "nice": False, "domain": [low / room, high * room]}


def log_ticks(values: Iterable[float]) -> Any:
    """Return a few round tick values for a log scale over `values`; `Undefined` if there are no values."""
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
    """Return ticks of two digits on a log scale that is too short for round ones."""
    places = (low * (high / low) ** share for share in (0.15, 0.5, 0.85))
    return sorted({mark for place in places if low <= (mark := float(f"{place:.2g}")) <= high})


def format_size_compactly(value: float, *, shorten_from: float = 10_000) -> str:
    """Format a size in few characters for an axis: 410,337 → "410k", 1,234 → "1,234", 1,342.7 → "1,340"."""
    value = value if value == math.floor(value) else float(f"{value:.3g}")  # an estimate, rounded to three digits
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(shorten_from, size * 0.9995):
            return _format_trimmed(value / size) + letter
    return _format_trimmed(value)


def format_size_range(low: float, high: float) -> str:
    """Return two sizes as an interval, both in the same way: "8k–13k", "190–240"."""
    shorten_from = 1_000 if high >= 10_000 else 10_000
    ends = [format_size_compactly(size, shorten_from=shorten_from) for size in (low, high)]
    return "–".join(ends)


def resolve_device_kinds(devices: tuple[str, str], kinds: tuple[str, str] | None) -> tuple[str, str]:
    """Return the device kinds of two devices; without `kinds`, infer them from the names, or assume a CPU and a GPU."""
    if kinds is not None:
        return kinds
    first, second = (_kind(name) for name in devices)
    return first or "cpu", second or "cuda"


def _kind(name: str) -> str:
    words = name.partition(" (")[0].lower()
    found = next((kind for kind in DEVICE_COLOURS if words.startswith(kind)), "")
    return found or ("cuda" if "gpu" in words else "cpu" if "cpu" in words else "")


def contender_colours(kinds: Sequence[str]) -> list[str]:
    """Return a colour for each contender, in order, from the hues of its device kind."""
    return [_hue(kind, list(kinds[:place]).count(kind)) for place, kind in enumerate(kinds)]


def _hue(kind: str, before: int) -> str:
    known = DEVICE_KINDS.get(kind)
    hues = (known.colour, *known.further) if known else (NEUTRAL,)
    return mix_colours(hues[before % len(hues)], "#FFFFFF", min(0.6, SHADE * (before // len(hues))))


def names_legend(names: Sequence[str], *, orient: Literal["top", "bottom"] = "top", **options: Any) -> alt.Legend:
    """Build a legend with as many names in a line as fit a narrow window."""
    return alt.Legend(**plain_legend(names, orient=orient, **options))


def plain_legend(names: Sequence[str], *, orient: Literal["top", "bottom"] = "top", **options: Any) -> ChartRow:
    """Return a legend as simple data."""
    widths = [len(name) + SYMBOL_LETTERS for name in names]
    fits = (
        count
        for count in range(len(names), 1, -1)
        if sum(max(widths[place::count]) for place in range(count)) <= LEGEND_LETTERS
    )
    return {"orient": orient, "title": None, "columns": next(fits, 1), "labelLimit": LEGEND_LIMIT, **options}


def bar_names_axis(names: Sequence[str]) -> alt.Axis:
    """Build an axis of names next to bars that wraps long names to leave more width for the chart.

    Vega puts the first of several lines next to the bar, so the lines are moved up until their middle is there.
    """
    lines = {name: textwrap.wrap(name, LABEL_LETTERS) for name in names if len(name) > LABEL_LETTERS}
    said = {name: f"datum.value == {json.dumps(name)}" for name in lines}
    cases = [f"{said[name]} ? {json.dumps(lines[name])} : " for name in lines]
    up = [{"test": said[name], "value": -LABEL_LINE * (len(lines[name]) - 1) / 2} for name in lines]
    moved: dict[str, Any] = {"labelOffset": {"condition": up, "value": 0}} if up else {}
    return alt.Axis(labelExpr="".join(cases) + "datum.label", labelLimit=150, **moved)


def axis_title_with_omissions(title: str, number: int) -> str | list[str]:
    """Return an axis title that also says how many values a log scale could not show."""
    return [title, f"{number} not above 0 or not finite: not shown"] if number else title


def choose_time_unit(seconds: Iterable[float]) -> tuple[str, float]:
    """Return a readable unit for the largest of these times, and the number of these units in a second."""
    largest = max((s for s in seconds if math.isfinite(s)), default=1.0)
    if largest >= 1:
        return "s", 1.0
    return ("ms", 1e3) if largest >= 1e-3 else ("µs", 1e6)


def mix_colours(first: str, second: str, share: float) -> str:
    """Mix `share` of the second colour into the first, both as #RRGGBB."""
    pairs = ((int(first[at : at + 2], 16), int(second[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)


def _format_trimmed(value: float) -> str:
    """Format a number to three significant digits, without zeros at the end of a fraction."""
    shown = units.format_significant(value)
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


Points = Sequence[tuple[float, float]]
"""Points of a curve, both coordinates above 0: the scales are logarithmic."""

NARROW_PLOT, WIDE_PLOT = 250.0, 900.0
"""Widths in pixels, without axes, of the narrowest and the widest plot that a name must fit into."""

TALLER = 1.4
"""Factor by which a plot may exceed its stated height, because the size of axes and legends depends on the width."""

FONT, LETTER, LINE_HEIGHT = 13, 7.3, 15.0
"""Font size, typical letter width and line height of a name, in pixels."""

OWN_CURVE_DISTANCE, OTHER_CURVE_DISTANCE = 3.0, 6.0
"""Minimum distances in pixels from a name to its own curve and to every other curve."""

HEADROOM = 0.16
"""Space above the highest value, as a share of a scale's length."""

POINTS_PER_SEGMENT = 12
"""Number of points that are checked on each line segment for an overlap with a name."""

Align = Literal["left", "center", "right"]
Box = tuple[float, float, float, float]
"""Left, top, right and bottom of a box, in pixels."""


@dataclass(frozen=True, kw_only=True)
class NamePlace:
    """Position of a curve's name.

    Attributes:
        align: alignment of the name to the point.
        dy: pixels from the point down to the middle of the name; the name is above the point if negative.
    """

    at: tuple[float, float]
    align: Align
    dy: float


def place_names(
    curves: Mapping[str, Points], *, x: Sequence[float], y: Sequence[float], height: float
) -> dict[str, NamePlace]:
    """Return a position for the name of each curve; empty if one name has no free position.

    Args:
        curves: points of each curve by its name.
        x: values that the scale of sizes includes.
        y: values that the other scale includes.
        height: minimum height of the plot in pixels, without its axes.
    """
    drawn = {name: points for name, points in curves.items() if points}
    plots = [_Plot(drawn, x, y, width=width, height=height) for width in (NARROW_PLOT, WIDE_PLOT)]
    plots += [_Plot(drawn, x, y, width=width, height=TALLER * height) for width in (NARROW_PLOT, WIDE_PLOT)]
    free = {name: list(_find_free_places(name, points, plots)) for name, points in drawn.items()}
    placed: dict[str, NamePlace] = {}
    for name in sorted(free, key=lambda name: len(free[name])):
        clear = (one for one in free[name] if not _is_overlapping(plots, (name, one), placed))
        if (found := next(clear, None)) is None:
            return {}
        placed[name] = found
    return placed


def add_headroom(values: Sequence[float]) -> list[float]:
    """Return the values of a log scale and one higher value, which leaves space for a name."""
    known = [value for value in values if 0 < value < math.inf]
    low, high = min(known, default=1.0), max(known, default=1.0)
    return [*values, high * max(1.3, (high / low) ** HEADROOM)]


def name_layers(base: alt.Chart, placed: Mapping[str, NamePlace], field: str) -> list[alt.Chart]:
    """Return text layers with the names from a column; the column `named` marks the point with the name."""
    return [
        base.transform_filter(f"datum.{field} == {json.dumps(name)} && datum.named")
        .mark_text(align=one.align, dx=_shift(one.align), dy=one.dy, fontSize=FONT, fontWeight="bold")
        .encode(text=f"{field}:N")
        for name, one in placed.items()
    ]


class _Plot:
    """All curves of a plot of one size, in pixels."""

    def __init__(
        self, curves: Mapping[str, Points], x: Sequence[float], y: Sequence[float], *, width: float, height: float
    ) -> None:
        self.width, self.height = width, height
        scales = (log_scale(values)["domain"] for values in (x, y))
        self._x, self._y = ((math.log(low), math.log(high)) for low, high in scales)
        self.lines = {name: list(self._line_pixels(curve)) for name, curve in curves.items()}

    def _pixel(self, point: tuple[float, float]) -> tuple[float, float]:
        (left, right), (low, high) = self._x, self._y
        x, y = math.log(point[0]), math.log(point[1])
        return (x - left) / (right - left) * self.width, (high - y) / (high - low) * self.height

    def _line_pixels(self, curve: Points) -> Iterator[tuple[float, float]]:
        pixels = [self._pixel(point) for point in curve]
        yield from pixels[:1]
        for (x, y), (to_x, to_y) in itertools.pairwise(pixels):
            yield from (
                (x + (to_x - x) * n / POINTS_PER_SEGMENT, y + (to_y - y) * n / POINTS_PER_SEGMENT)
                for n in range(1, POINTS_PER_SEGMENT + 1)
            )

    def box(self, name: NamePlace, text: str) -> Box:
        (x, y), wide = self._pixel(name.at), LETTER * len(text)
        x += _shift(name.align)
        left = x - {"left": 0.0, "center": wide / 2, "right": wide}[name.align]
        return left, y + name.dy - LINE_HEIGHT / 2, left + wide, y + name.dy + LINE_HEIGHT / 2

    def holds(self, box: Box) -> bool:
        return box[0] >= 0 and box[2] <= self.width and box[1] >= 0 and box[3] <= self.height

    def is_free(self, box: Box, owner: str) -> bool:
        room = {name: OWN_CURVE_DISTANCE if name == owner else OTHER_CURVE_DISTANCE for name in self.lines}
        return not any(
            _is_point_near_box(point, box, room[name]) for name, line in self.lines.items() for point in line
        )


def _find_free_places(name: str, points: Points, plots: Sequence[_Plot]) -> Iterator[NamePlace]:
    """Yield every place for a name that is clear of all lines, the best first: at the end, at the start, in between."""
    ends: list[tuple[tuple[float, float], Align]] = [(points[-1], "right"), (points[0], "left")]
    between: list[tuple[tuple[float, float], Align]] = [
        (point, align) for point in reversed(points) for align in ("right", "left", "center")
    ]
    for (point, align), dy in itertools.product([*ends, *between], (-13.0, 15.0, -21.0, 23.0)):
        one = NamePlace(at=point, align=align, dy=dy)
        boxes = [(plot, plot.box(one, name)) for plot in plots]
        if all(plot.holds(box) and plot.is_free(box, name) for plot, box in boxes):
            yield one


def _shift(align: Align) -> float:
    """Return the horizontal offset in pixels between a name and its point."""
    return {"left": -6.0, "center": 0.0, "right": 6.0}[align]


def _is_point_near_box(point: tuple[float, float], box: Box, room: float) -> bool:
    """Return whether a point lies in a box or within `room` pixels of it."""
    (x, y), (left, top, right, bottom) = point, box
    return left - room <= x <= right + room and top - room <= y <= bottom + room


def _is_overlapping(plots: Sequence[_Plot], one: tuple[str, NamePlace], placed: Mapping[str, NamePlace]) -> bool:
    """Return whether a name overlaps one that is already placed."""
    name, place = one
    return any(
        _overlap(plot.box(place, name), plot.box(there, other)) for plot in plots for other, there in placed.items()
    )


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


CAPTION_LINE_LETTERS, TITLE_LETTERS, MAX_CAPTION_LETTERS = 130, 85, 400
"""Maximum letters in a small line of a picture, in a line of its title, and in one text with all of its lines."""


def add_caption(spec: Spec, title: str, lines: Sequence[str]) -> Spec:
    """Return the chart with a title and small lines above it; the chart's own title follows below them."""
    own = spec.get("title", {}).get("text", [])
    said = [*lines, *(own if isinstance(own, list) else [own])]
    small = [line for text in said for line in textwrap.wrap(as_line(text, MAX_CAPTION_LETTERS), CAPTION_LINE_LETTERS)]
    words = {
        "text": textwrap.wrap(as_line(title, MAX_CAPTION_LETTERS), TITLE_LETTERS),
        "subtitle": small,
        "anchor": "start",
        "offset": 12,
    }
    return {**spec, "title": {**words, "fontSize": 15, "subtitleFontSize": 11, "subtitlePadding": 4}}


def measurement_lines(rows: Sequence[Trial], axis: str = "") -> tuple[str, ...]:
    """Return lines that describe the measurement: the training, each machine, the time and the version.

    The varied axis is shown as a range.
    """
    machines = dict.fromkeys(f"{row.cpu_name} [{row.machine_id[:6]}], {row.system}" for row in rows)
    devices = dict.fromkeys(row.device_name for row in rows if row.device_kind != "cpu")
    days = sorted({row.started_at[:10] for row in rows})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    versions = ", ".join(dict.fromkeys(f"Crossover {row.app_version}, torch {row.torch_version}" for row in rows))
    return _caption_training(rows, axis), "; ".join((*devices, *machines)), f"Measured {when} with {versions}"


def _caption_training(rows: Sequence[Trial], axis: str) -> str:
    """Describe the training in one line, beginning with the range of the varied axis.

    A value that this version does not offer is shown as it is stored.
    """
    try:
        point = Point.from_row(rows[0])
        families = {} if point.training or not axis else describe.fields_set_by_axes([axis], models.family(point.model))
        said = describe.describe_question(point, without={*families, axis})
    except InvalidValue:
        said = f"{rows[0].dataset} · {rows[0].model}"
    if not axis:
        return said
    sizes = [size_on_axis(row, axis) for row in rows]
    return (
        f"{describe.label_axis(axis, rows[0].model)} {wording.format_size(min(sizes))} to "
        f"{wording.format_size(max(sizes))} · {said}"
    )
