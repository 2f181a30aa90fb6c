"""Elements of a page: text made safe for Markdown, dates, tables, charts, downloads and timelines.

Text from a file, a device or an error is made safe for Markdown.

Every text in a table is cleaned, because a click saves a table as a file for spreadsheets.

A chart is a specification whose rows are packed once for all visitors.

Downloads are rows, charts and a script as files, made after the click and not before.

A timeline plays: rows of work that fill as time passes, with the moments at which clocks are read. The server sends all
data once and the browser plays them. A visitor who prefers reduced motion sees the end at once.
"""

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import streamlit as st

from core import units
from core.answer.charts import look
from core.answer.export import rendering
from core.answer.export import run_files as script_file
from core.answer.lessons.timeline import ClockMark, Timeline, TimelineRow
from core.errors import CrossoverError
from core.question import describe
from core.question.experiment import Experiment
from core.question.sweep import Sweep
from core.results import exchange
from core.results.parquet import to_table
from core.results.schema import Trial
from core.text import as_label, as_line, to_file_name, to_page_markdown, to_table_cell
from pages.shared import session
from pages.shared.cache import cache_answers

plain = to_page_markdown
"""The name that pages use; `core.text` has other functions for text outside Markdown."""


def bind_percent(text: str) -> str:
    """Return a text in which no line breaks between a figure and its %."""
    return text.replace(" %", "\u00a0%").replace(" \\%", "\u00a0\\%")


@contextlib.contextmanager
def show_errors(box: Callable[[str], object] = st.error) -> Iterator[None]:
    """Show an error of a part of a page or of a function in a box; the rest of the page still appears."""
    try:
        yield
    except CrossoverError as error:
        box(plain(describe.format_page_error(error)))


_titles: ContextVar[list[str] | None] = ContextVar("titles", default=None)


def draw_heading(title: str) -> None:
    """Draw the heading of a section, which the index of its result links to."""
    st.header(title, anchor=_make_anchor(title))
    if (titles := _titles.get()) is not None:
        titles.append(title)


@contextlib.contextmanager
def draw_index() -> Iterator[None]:
    """Draw links to the sections of a result above it; a result is several windows long."""
    place, titles = st.empty(), list[str]()
    place.markdown("\u00a0")  # the line exists from the beginning, so nothing moves at the end
    before = _titles.set(titles)
    try:
        yield
    finally:
        _titles.reset(before)
    place.markdown(" · ".join(f"[{title}](#{_make_anchor(title)})" for title in titles))


def _make_anchor(title: str) -> str:
    return re.sub("[^a-z0-9]+", "-", title.lower()).strip("-")


def parse_date(started_at: str) -> datetime | None:
    """Return when a row's run began; None if the text is not a date."""
    try:
        return datetime.fromisoformat(started_at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def format_date(started_at: str) -> str:
    """Return when a row's run began in readable form; a text that is not a date stays unchanged.

    Example: "21 November 2026, 09:30 UTC".
    """
    when = parse_date(started_at)
    return f"{when:%d %B %Y, %H:%M} UTC" if when else started_at


Rows: TypeAlias = Sequence[Mapping[str, Any]] | Mapping[str, Iterable[Any]] | pa.Table
"""Rows of a table: a mapping per line, a mapping of columns, or an Arrow table."""

EDGES, LETTER, CAPITAL = 18, 5.5, 7.4
"""Widths in pixels: the margins of a table cell, an average letter, and an average capital or digit."""


def draw_table(rows: Rows, *, alt: str, place: Any = st, **options: Any) -> None:
    """Draw a table without line numbers; `alt` describes it for screen readers.

    Texts and column names can come from any file. Keys of `column_config` are column names of `rows`.
    """
    if "column_config" in options:
        options["column_config"] = {to_table_cell(name): entry for name, entry in options["column_config"].items()}
    cleaned = _pack_table(id(rows), rows)[1] if isinstance(rows, pa.Table) else _clean_lines(rows)
    place.dataframe(cleaned, hide_index=True, alt=as_label(alt), **options)


def measure_column(texts: Iterable[str]) -> int:
    """Return the width in pixels of a column that shows the longest of these texts in full.

    By default a table treats a text that is much longer than the others as an exception and cuts it.
    """
    return math.ceil(EDGES + max(map(_measure_text, texts), default=0.0))


def _measure_text(text: str) -> float:
    wide = sum(letter.isupper() or letter.isdigit() for letter in text)
    return CAPITAL * wide + LETTER * (len(text) - wide)


@cache_answers(32)
def _pack_table(key: int, _rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the table with this identity, made once for all visitors, and its cleaned version.

    The cache stores the first one too, so that no other table can get its identity. If nothing has to be cleaned, both
    are the same.
    """
    lines = _rows.to_pylist()
    return _rows, _rows if (cleaned := _clean_lines(lines)) == lines else pa.Table.from_pylist(cleaned)


def _clean_lines(rows: Sequence[Mapping[str, Any]] | Mapping[str, Iterable[Any]]) -> Any:
    if isinstance(rows, Mapping):
        return {to_table_cell(name): [to_table_cell(value) for value in column] for name, column in rows.items()}
    return [{to_table_cell(name): to_table_cell(value) for name, value in line.items()} for line in rows]


def draw_chart(spec: Mapping[str, Any], *, alt: str, place: Any = st, height: Any = "content") -> None:
    """Draw a finished chart that never changes afterwards; `alt` describes it for screen readers.

    Streamlit sends rows as an Arrow table. From a list it would make a new table at every run of a page, which takes
    longer than all other work for a chart. Here the table is made once and cached with its list. A click saves the rows
    as a file for spreadsheets, so their texts are cleaned like those of a table.

    Without a height, the chart has the height of its specification.
    """
    values = spec["data"]["values"]
    options = {} if height is None else {"height": height}
    place.vega_lite_chart(_pack_chart(id(values), values, spec)[1], width="stretch", alt=as_label(alt), **options)


@cache_answers(256)
def _pack_chart(
    key: int, _values: list[dict[str, Any]], _spec: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the chart whose rows are the list of this identity; the list is cached, so its identity stays unique."""
    texts = {value for row in _values for value in row.values() if isinstance(value, str)}
    names = {text: clean for text in texts if (clean := to_table_cell(text)) != text}
    frame, rows = ({name: part for name, part in _spec.items() if name != "data"}, _values)
    if names:
        frame, rows = (_rename_values(part, names) for part in (frame, rows))
    return _values, {**frame, "data": _to_table(rows)}


def _to_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows of a chart as a table; what a row lacks is null."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: pa.array([row.get(name) for row in rows], from_pandas=True) for name in names})


def _rename_values(part: Any, names: Mapping[str, Any]) -> Any:
    """Return rows, or a part of a specification, with some texts of the rows replaced, also in expressions."""
    match part:
        case str():
            for old, new in () if part in names else names.items():
                part = part.replace(json.dumps(old), json.dumps(new))
            return names.get(part, part)
        case Mapping():
            return {name: _rename_values(entry, names) for name, entry in part.items()}
        case list() | tuple():
            return [_rename_values(entry, names) for entry in part]
    return part


ROW_FORMATS: dict[exchange.Format, str] = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}
"""File formats for downloads of rows, with their media types."""

PICTURES: dict[rendering.Picture, str] = {"png": "image/png", "svg": "image/svg+xml"}
"""Picture formats for downloads of charts, with their media types."""

_ICON = ":material/download:"


def draw_row_downloads(trials: Sequence[Trial], *, name: str, repeats: bool = False) -> None:
    """Draw the buttons that download rows as files called `name`, and a script that repeats a run."""
    noun, name = f"{len(trials)} rows" if len(trials) > 1 else "Row", to_file_name(name)
    with st.container(horizontal=True):
        for kind, media in ROW_FORMATS.items():
            data = partial(_export_rows, tuple(trials), kind)
            draw_download_button(f"{noun} as {kind}", data, f"{name}.{kind}", media, key=f"{kind}-{name}")
        if repeats:
            _draw_script_download(trials)


def draw_chart_downloads(
    spec: dict[str, Any], name: str, *, title: str = "", rows: Sequence[Trial] = (), axis: str = ""
) -> None:
    """Draw the buttons that download a finished chart as a picture or a web page, as files called `name`.

    With rows, the files include the training, the device, the date and the software of the measurement.
    """
    name, title = to_file_name(name), title or name
    if rows:
        spec = look.add_caption(spec, title, look.measurement_lines(rows, axis))
    with st.popover("Save this chart", icon=_ICON, type="tertiary", key=f"save-{name}"):
        for kind, media in PICTURES.items():
            data = partial(rendering.draw_picture, spec, kind)
            draw_download_button(
                f"{kind.upper()} picture", data, f"{name}.{kind}", media, key=f"{kind}-{name}", icon=None
            )
        data, file = partial(rendering.chart_page, spec, title), f"{name}.html"
        draw_download_button("Page with tooltips (HTML)", data, file, "text/html", key=f"html-{name}", icon=None)
        st.caption("The page works offline. Each file takes a few seconds to create.")


@show_errors(st.caption)
def _draw_script_download(trials: Sequence[Trial]) -> None:
    """Draw the button that downloads a script which repeats a run with PyTorch alone; show why if there is none."""
    text = script_file.training_script(trials)
    name = to_file_name(f"crossover-{trials[0].run_id}")
    draw_download_button("Script to repeat it", text, f"{name}.py", "text/x-python", key=f"script-{name}")


def draw_command(request: Experiment | Sweep | None, what: str) -> None:
    """Draw the command that repeats a question; if there is none, show why, and call the question `what`."""
    if request is None:
        st.caption(f"These settings are not offered by this version, so it cannot repeat the {what}.")
        return
    own = request.point.training
    has = f" that has {own.partition(':')[0]} (source {request.point.source_hash[:6]})" if own else ""
    st.caption(plain(f"Repeat it on any machine{has}, without the app:"))
    st.code(describe.build_command(request), language=None, wrap_lines=True)


def draw_link(title: str, parameters: Mapping[str, str | list[str]]) -> None:
    st.caption(title)
    st.code(session.make_address(parameters), language=None, wrap_lines=True)


def draw_download_button(label: str, data: Any, file: str, media: str, *, key: str, icon: str | None = _ICON) -> None:
    """Draw a button that downloads a file; if `data` is a function, it runs after the click."""
    st.download_button(label, data, file, media, key=key, on_click="ignore", icon=icon)


def _export_rows(trials: Sequence[Trial], kind: exchange.Format) -> bytes:
    return exchange.export(to_table(list(trials)), kind)


_HERE = Path(__file__).parent
_timeline = st.components.v2.component(
    "crossover_timeline",
    css=(_HERE / "timeline.css").read_text(encoding="utf-8"),
    js=(_HERE / "timeline.js").read_text(encoding="utf-8"),
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
    _timeline(data=make_timeline_data(timeline, covered=covered, large=large), key=key)


def make_timeline_data(timeline: Timeline, *, covered: bool = False, large: bool = False) -> dict[str, Any]:
    """Return all data that the browser plays, ready for JSON; without the covered moments."""
    hues = iter(look.contender_colours([row.kind for row in timeline.rows if row.kind != "host"]))
    marks = [mark for mark in timeline.marks if not (covered and mark.is_answer)]
    return {
        "title": as_line(timeline.title),
        "origin": as_line(timeline.origin),
        "says": as_line(timeline.question if covered else timeline.sentence),
        "rows": [_make_timeline_row(row, HOST_COLOUR if row.kind == "host" else next(hues)) for row in timeline.rows],
        "marks": [_make_mark(mark, timeline) for mark in marks],
        "end": timeline.end_s,
        "speed": timeline.speed,
        "large": large,
        "covered": covered,
    }


def _make_timeline_row(row: TimelineRow, colour: str) -> dict[str, Any]:
    spans = [[span.start_s, span.end_s, span.start, span.end] for span in row.spans]
    return {"label": as_line(row.label), "colour": colour, "spans": spans, "result": row.result}


def _make_mark(mark: ClockMark, timeline: Timeline) -> dict[str, Any]:
    label = f"{mark.label}: {units.format_duration(mark.at_s)}" if mark.is_answer else mark.label
    return {"at": mark.at_s, "place": mark.at_s / timeline.end_s, "label": as_line(label)}
