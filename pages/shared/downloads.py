"""What can be taken along: rows, charts and a script as files, made when they are clicked and not before."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from core.answer.charts import look
from core.answer.export import pictures
from core.answer.export import script as script_file
from core.question import describe
from core.question.experiment import Experiment
from core.question.sweep import Sweep
from core.results import exchange
from core.results.parquet import to_table
from core.results.schema import Trial
from core.text import to_file_name
from pages.shared import session
from pages.shared.text import plain, show_errors

ROW_FORMATS: dict[exchange.Format, str] = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}
"""Kinds of file that rows are handed out as, with their media types."""

PICTURES: dict[pictures.Picture, str] = {"png": "image/png", "svg": "image/svg+xml"}
"""The same of charts as pictures."""

_ICON = ":material/download:"


def draw_row_downloads(trials: Sequence[Trial], *, name: str, repeats: bool = False) -> None:
    """Draw the buttons that download rows as files called `name`, and beside them a script that repeats a run."""
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
    """Draw what downloads a finished chart as a picture or as a page of its own, as files called `name`.

    With its rows, the files say by themselves what was trained, on what, when, and with what it was measured.
    """
    name, title = to_file_name(name), title or name
    if rows:
        spec = look.add_caption(spec, title, look.measurement_lines(rows, axis))
    with st.popover("Save this chart", icon=_ICON, type="tertiary", key=f"save-{name}"):
        for kind, media in PICTURES.items():
            data = partial(pictures.draw_picture, spec, kind)
            draw_download_button(
                f"{kind.upper()} picture", data, f"{name}.{kind}", media, key=f"{kind}-{name}", icon=None
            )
        data, file = partial(pictures.chart_page, spec, title), f"{name}.html"
        draw_download_button("Page with tooltips (HTML)", data, file, "text/html", key=f"html-{name}", icon=None)
        st.caption("The page needs no network. Each takes a few seconds to make.")


@show_errors(st.caption)
def _draw_script_download(trials: Sequence[Trial]) -> None:
    """Draw what downloads one file that repeats a run with PyTorch alone; or why there is none."""
    text = script_file.training_script(trials)
    name = to_file_name(f"crossover-{trials[0].run_id}")
    draw_download_button("Script that repeats it", text, f"{name}.py", "text/x-python", key=f"script-{name}")


def draw_command(request: Experiment | Sweep | None, what: str) -> None:
    """Draw the command line that repeats a question; or why there is none, with what it is called."""
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
    """Draw what downloads a file; data that are a function are made when it is clicked."""
    st.download_button(label, data, file, media, key=key, on_click="ignore", icon=icon)


def _export_rows(trials: Sequence[Trial], kind: exchange.Format) -> bytes:
    return exchange.export(to_table(list(trials)), kind)
