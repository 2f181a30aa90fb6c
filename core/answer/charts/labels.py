"""Names written beside curves: where each stands free of every line, of the other names and of the edges.

Worked out for a narrow and a wide window at once, since a finished chart is drawn at any width. Where one name has no
such place, none is placed, and the chart keeps its legend.
"""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import altair as alt

from core.answer.charts import look

Points = Sequence[tuple[float, float]]
"""Of a curve, both above 0: it is drawn on log scales."""

NARROW_PLOT, WIDE_PLOT = 250.0, 900.0
"""Pixels of the narrowest and the widest plot that a name must fit into, without its axes."""

TALLER = 1.4
"""How much higher a plot may be than is said: axes and legends take more of a narrow one."""

FONT, LETTER, LINE_HEIGHT = 13, 7.3, 15.0
"""Pixels: size of a name's letters, the width of a usual one and the height of their line."""

OWN_CURVE_DISTANCE, OTHER_CURVE_DISTANCE = 3.0, 6.0
"""Pixels that a name stands off its own curve at least, and off every other, so that it is plain whose it is."""

HEADROOM = 0.16
"""Room above the highest value, as a share of a scale's length."""

POINTS_PER_SEGMENT = 12
"""Places on a line between two points that are looked at for a name that lies on it."""

Align = Literal["left", "center", "right"]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True, kw_only=True)
class NamePlace:
    """Where a curve's name stands.

    Attributes:
        align: how the name stands to the point.
        dy: pixels from the point down to the middle of the name; below 0 it stands above.
    """

    at: tuple[float, float]
    align: Align
    dy: float


def place_names(
    curves: Mapping[str, Points], *, x: Sequence[float], y: Sequence[float], height: float
) -> dict[str, NamePlace]:
    """A place for the name of each curve; empty where one has none.

    Args:
        curves: by their names, which are written beside them.
        x: values that the scale of sizes holds.
        y: values that the other one holds.
        height: pixels of the plot at least, without its axes.
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
    """The values of a log scale, and one above them all that leaves room for a name."""
    known = [value for value in values if 0 < value < math.inf]
    low, high = min(known, default=1.0), max(known, default=1.0)
    return [*values, high * max(1.3, (high / low) ** HEADROOM)]


def name_layers(base: alt.Chart, placed: Mapping[str, NamePlace], field: str) -> list[alt.Chart]:
    """The names, of a column, as layers of a chart whose rows say by `named` which point of its curve has the name."""
    return [
        base.transform_filter(f"datum.{field} == {json.dumps(name)} && datum.named")
        .mark_text(align=one.align, dx=_shift(one.align), dy=one.dy, fontSize=FONT, fontWeight="bold")
        .encode(text=f"{field}:N")
        for name, one in placed.items()
    ]


class _Plot:
    """All curves in pixels of a plot of one size."""

    def __init__(
        self, curves: Mapping[str, Points], x: Sequence[float], y: Sequence[float], *, width: float, height: float
    ) -> None:
        self.width, self.height = width, height
        scales = (look.log_scale(values)["domain"] for values in (x, y))
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
    """Every place for a name that is clear of all lines, the best first: at the end, at the begin, between."""
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
    """Pixels by which a name goes beyond its point, outwards."""
    return {"left": -6.0, "center": 0.0, "right": 6.0}[align]


def _is_point_near_box(point: tuple[float, float], box: Box, room: float) -> bool:
    """Whether a point lies in a box, or within so many pixels of it."""
    (x, y), (left, top, right, bottom) = point, box
    return left - room <= x <= right + room and top - room <= y <= bottom + room


def _is_overlapping(plots: Sequence[_Plot], one: tuple[str, NamePlace], placed: Mapping[str, NamePlace]) -> bool:
    """Whether a name touches one that has its place already."""
    name, place = one
    return any(
        _overlap(plot.box(place, name), plot.box(there, other)) for plot in plots for other, there in placed.items()
    )


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
