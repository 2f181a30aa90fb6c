"""A grid of two axes as a map, each cell in the colour of the device that is faster there.

Colour is never all: a cell that is too close is hatched, and where there is room each has its speedup in figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from core import units
from core.answer.charts import look
from core.answer.charts.look import ChartRow, Spec
from core.answer.run.speedup import Verdict
from core.answer.study import wording
from core.question.fields import axis_title

MOST_FIGURES = 8
CELL_HEIGHT, FIGURE_WIDTH = 36, 40
"""Columns of a map that have room for a figure at any width; beyond, the cell must be `FIGURE_WIDTH` pixels wide."""

GREY = "#BBBBBB"
"""Of a cell without a figure."""

HATCH = ((0.0, 0.5, 0.5, 0.0), (0.0, 1.0, 1.0, 0.0), (0.5, 1.0, 1.0, 0.5))
"""Lines across a cell (x, y, x2, y2 as shares of it) that mark it as too close."""

HATCHED, MISSING = "too close (hatched)", "not measured"
"""What stands in place of a winner."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One point of a grid of two axes; `reason` says why there is no winner, and is empty where there is one."""

    x: float
    y: float
    verdict: Verdict
    speedup: float | None = None
    reason: str = ""


def winners_chart(
    cells: Sequence[Cell], *, axes: tuple[str, str], devices: tuple[str, str], kinds: tuple[str, str] | None = None
) -> Spec:
    """Map of two axes, each cell in the colour of the faster device, hatched where the two are too close.

    The axes are what is varied from left to right, and upwards; the devices baseline and challenger, for people.
    Without their kinds each is taken for what its name says.
    """
    rows = [_cell_row(cell, devices) for cell in cells]
    fills = {
        **dict(zip(devices, _tints(look.resolve_device_kinds(devices, kinds)), strict=True)),
        HATCHED: look.PALEST,
        MISSING: GREY,
    }
    present = [name for name in fills if any(row["winner"] == name for row in rows)]
    across, up = (axis_title(axis) for axis in axes)
    x = alt.X("x:O", title=across, axis=alt.Axis(labelExpr=look.COMPACT_LABEL, labelAngle=0, labelOverlap=True))
    y = alt.Y("y:O", title=up, sort="descending", axis=alt.Axis(labelExpr=look.COMPACT_LABEL))
    legend = look.names_legend(present, symbolType="square", symbolStrokeColor=look.NEUTRAL, symbolStrokeWidth=1)
    said = (("winner", "faster"), ("figure", f"speedup of {wording.short_device(devices[1])}"), ("reason", "reason"))
    base = alt.Chart().encode(x=x, y=y, tooltip=look.tooltips(("x", across), ("y", up), *said))
    colour = look.names_channel(alt.Color, "winner", present, [fills[name] for name in present], legend=legend)
    rects = base.mark_rect(stroke="white", strokeWidth=1).encode(color=colour)
    close = [_hatch(base.transform_filter(f"datum.winner == '{HATCHED}'"), line) for line in HATCH]
    # Black is right in every theme, since the cell below it is always light.
    columns = len({cell.x for cell in cells})
    room = 1.0 if columns <= MOST_FIGURES else {"expr": f"width > {columns * FIGURE_WIDTH} ? 1 : 0"}
    figures = base.mark_text(color="black", fontSize=11, opacity=room).encode(text=alt.Text("text:N"))
    return look.finish_chart(alt.layer(rects, *close, figures), rows, height=alt.Step(CELL_HEIGHT))


def _tints(kinds: tuple[str, str]) -> list[str]:
    """The devices' colours, light enough for black figures."""
    return [look.mix_colours(look.PALEST, colour, look.TINT) for colour in look.contender_colours(kinds)]


def _cell_row(cell: Cell, devices: tuple[str, str]) -> ChartRow:
    speedup = cell.speedup
    if speedup is None:
        return {"x": cell.x, "y": cell.y, "winner": MISSING, "figure": "—", "text": "✕", "reason": cell.reason}
    decided = cell.verdict in ("gpu_faster", "cpu_faster")
    return {
        "x": cell.x,
        "y": cell.y,
        "winner": devices[speedup > 1] if decided else HATCHED if cell.verdict == "too_close" else MISSING,
        "figure": units.format_ratio(speedup),
        "text": f"{speedup:.2f}×" if speedup < 10 else f"{speedup:.0f}×",
        "reason": cell.reason or "—",
    }


def _hatch(cells: alt.Chart, line: tuple[float, float, float, float]) -> alt.Chart:
    """A line across each cell; shares of the cell, since its width is the window's."""
    x, y, x2, y2 = line
    hatched: alt.Chart = cells.mark_rule(color=look.NEUTRAL, strokeWidth=1).encode(
        x=alt.X("x:O", bandPosition=x),
        y=alt.Y("y:O", bandPosition=y, sort="descending"),
        x2=alt.X2("x", bandPosition=x2),
        y2=alt.Y2("y", bandPosition=y2),
    )
    return hatched
