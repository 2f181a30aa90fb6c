"""A timeline that plays: rows of work that fill as time passes, with the moments at which clocks are read.

The server sends all data once and the browser plays them. A visitor who prefers reduced motion sees the end at once.
"""

from pathlib import Path
from typing import Any

import streamlit as st

from core import units
from core.answer.charts import look
from core.answer.lessons.timeline import ClockMark, Timeline, TimelineRow
from core.text import as_line

_HERE = Path(__file__)
_component = st.components.v2.component(
    "crossover_timeline",
    css=_HERE.with_suffix(".css").read_text(encoding="utf-8"),
    js=_HERE.with_suffix(".js").read_text(encoding="utf-8"),
)

HOST_COLOUR = look.NEUTRAL


def draw_timeline(timeline: Timeline, *, key: str, covered: bool = False, large: bool = False) -> None:
    """Draw a timeline with its buttons, and below it a description in words.

    Args:
        timeline: the timeline to play.
        key: key of the element on its page.
        covered: whether to leave out the moments that answer a lesson's question.
        large: whether to use letters for a lecture hall.
    """
    _component(data=make_timeline_data(timeline, covered=covered, large=large), key=key)


def make_timeline_data(timeline: Timeline, *, covered: bool = False, large: bool = False) -> dict[str, Any]:
    """Return all data that the browser plays, ready for JSON; without the covered moments."""
    hues = iter(look.contender_colours([row.kind for row in timeline.rows if row.kind != "host"]))
    marks = [mark for mark in timeline.marks if not (covered and mark.is_answer)]
    return {
        "title": as_line(timeline.title),
        "origin": as_line(timeline.origin),
        "says": as_line(timeline.question if covered else timeline.sentence),
        "rows": [_make_row(row, HOST_COLOUR if row.kind == "host" else next(hues)) for row in timeline.rows],
        "marks": [_make_mark(mark, timeline) for mark in marks],
        "end": timeline.end_s,
        "speed": timeline.speed,
        "large": large,
        "covered": covered,
    }


def _make_row(row: TimelineRow, colour: str) -> dict[str, Any]:
    spans = [[span.start_s, span.end_s, span.start, span.end] for span in row.spans]
    return {"label": as_line(row.label), "colour": colour, "spans": spans, "result": row.result}


def _make_mark(mark: ClockMark, timeline: Timeline) -> dict[str, Any]:
    label = f"{mark.label}: {units.format_duration(mark.at_s)}" if mark.is_answer else mark.label
    return {"at": mark.at_s, "place": mark.at_s / timeline.end_s, "label": as_line(label)}
