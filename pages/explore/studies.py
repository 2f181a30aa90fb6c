"""Stored studies and custom timings, as Explore lists them below a result."""

import pyarrow as pa
import streamlit as st

from core.answer import wording
from core.answer.gallery import trust
from core.answer.result import DECIDED, Outcome
from core.answer.study import Study
from core.answer.timings_csv import RolesUnclear, Timings
from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question import describe
from core.question.experiment import display_name
from core.question.fields import axis_title
from core.text import as_label
from pages.explore import shown_settings
from pages.shared import elements, permits, queries, session, study_view
from pages.shared.cache import cache_answers
from pages.shared.elements import plain, show_errors
from pages.shared.queries import LocatedCrossover

TIMINGS_FORMATS = ("csv", "tsv", "txt")
"""Extensions of timing files; the content of a file decides its format."""

MAX_TIMINGS_BYTES = 1_000_000
"""Limit of the text area, in characters; for a file, the server's limit holds."""

WHOLE = ("Vary", "Crossover", "Devices")
"""Columns wide enough for their longest text; the columns to their right need scrolling."""

MAX_STUDIES = 20
"""Maximum number of listed studies; the answer of each needs all its rows."""

SAMPLE = "size,device,seconds\n" + "".join(
    f"{size},{device},{seconds}\n"
    for size, cpu, gpu in (
        (100, (0.11, 0.12, 0.11), (0.50, 0.52, 0.51)),
        (400, (0.24, 0.25, 0.24), (0.51, 0.50, 0.52)),
        (1600, (0.93, 0.95, 0.94), (0.55, 0.57, 0.56)),
        (6400, (3.70, 3.75, 3.72), (0.80, 0.83, 0.81)),
    )
    for device, times in (("cpu", cpu), ("gpu", gpu))
    for seconds in times
)
"""Example of a timing file: four sizes, two devices, three readings of each. The numbers are made up."""


@show_errors()
def draw_studies_table(machine: Machine | None) -> None:
    """Draw the table of stored and shipped studies; selecting one opens it and puts it into the link."""
    lines = queries.list_study_lines()
    with st.spinner("Reading the recorded studies…"):
        found = _sort_studies(list(queries.find_studies(lines[:MAX_STUDIES]).values()))
    if not found:
        st.caption("No sweep is stored yet. The first one that you run appears here.")
        return
    st.markdown("**Measured here or shipped with the app**, decided and trusted ones first. Select a study to see it.")
    shown = _make_study_lines(found)
    elements.draw_table(
        shown,
        column_config={
            name: st.column_config.TextColumn(width=elements.measure_column(shown.column(name).to_pylist()))
            for name in WHOLE
        },
        key="studies",
        on_select=lambda: _select_study(found, machine),
        selection_mode="single-row",
        height="content" if len(found) <= study_view.MAX_SIZE_LINES else 35 * study_view.MAX_SIZE_LINES,
        alt="Recorded studies",
    )
    if len(lines) > MAX_STUDIES:
        st.caption(f"These are the {MAX_STUDIES} studies with the most sizes. All {len(lines):,} are in the Gallery.")


def draw_custom_timings() -> None:
    """Draw the upload of custom timings, from a file or pasted, and their answer."""
    with st.expander("Your own timings", icon=":material/upload_file:", **session.bind_view("timings")):
        st.caption(
            "Any times of two devices at several sizes: a table with the columns size, device and seconds, one row per "
            "reading, or with a size and a column for each device, such as `size,cpu (ms),gpu (ms)`. The noise and the "
            "interval need two or more readings at each size. Nothing is stored."
        )
        file = None if permits.may_upload() else st.file_uploader("CSV file", type=TIMINGS_FORMATS, key="timings_file")
        pasted = st.text_area(
            "Or paste it here", key="timings_text", max_chars=MAX_TIMINGS_BYTES, placeholder=SAMPLE[:60]
        )
        st.download_button("A sample", SAMPLE, "timings.csv", "text/csv", on_click="ignore", icon=":material/download:")
        if file is not None:
            _draw_timings(file.getvalue(), file.name)
        elif pasted.strip():
            _draw_timings(pasted.encode(), "The text")


@show_errors()
def _draw_timings(data: bytes, name: str) -> None:
    read = _read_timings(data, name)
    if read is None:
        return
    timings, located = read
    for note in timings.notes:
        st.caption(plain(note))
    study_view.draw_headline(located.answer)
    study_view.draw_crossover_chart(located)
    study_view.draw_sizes_table(located.answer)
    study_view.draw_speedup_chart(located)


def _read_timings(data: bytes, name: str) -> tuple[Timings, LocatedCrossover] | None:
    """Return the answer of a table; None while the choice of its devices is open."""
    try:
        return queries.locate_timings(data, name)
    except RolesUnclear as unclear:
        roles = _choose_roles(unclear.devices)
        return queries.locate_timings(data, name, roles) if roles else None


def _choose_roles(devices: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the pair of devices, chosen by the visitor if their names leave it open; None until then."""
    st.caption("The names do not show which device is the baseline.")
    columns, asked = st.columns(2), {"baseline": "Baseline (usually the CPU)", "challenger": "Challenger"}
    chosen = [
        column.selectbox(words, devices, index=None, format_func=as_label, key=f"timings_{role}")
        for column, (role, words) in zip(columns, asked.items(), strict=True)
    ]
    return (chosen[0], chosen[1]) if chosen[0] and chosen[1] else None


@cache_answers(4)
def _sort_studies(studies: list[Study]) -> list[Study]:
    """Sort decided studies first, of these the trusted ones first, and keep the order otherwise."""
    levels = list(trust.LEVELS)

    def rank(study: Study) -> tuple[bool, int]:
        rows = [row for run in study.runs for row in run]
        return _find_outcome(study) not in DECIDED, levels.index(trust.trust_mark(rows).level)

    return sorted(studies, key=rank)


def _find_outcome(study: Study) -> Outcome | None:
    """Return the outcome of a study; None if its rows cannot be compared."""
    try:
        return queries.locate_crossover(study, "steady").answer.outcome
    except CrossoverError:
        return None


@cache_answers(4)
def _make_study_lines(studies: list[Study]) -> pa.Table:
    return pa.Table.from_pylist([_make_study_line(study) for study in studies])


def _make_study_line(study: Study) -> dict[str, str]:
    row, sizes = study.runs[0][0], study.sizes
    return {
        "Vary": axis_title(study.axis),
        "Crossover": study_view.summarize_located(lambda: queries.locate_crossover(study, "steady")),
        "Devices": f"{display_name(study.challenger)} against {display_name(study.baseline)}",
        "From … to": f"{wording.format_size(sizes[0])} to {wording.format_size(sizes[-1])} ({len(sizes)} sizes)",
        "Training": describe.describe_training(row) + ("" if row.training else f", batch {row.batch_size:,}"),
        "Machine": f"{row.cpu_name} ({row.machine_id[:6]})",
    }


def _select_study(studies: list[Study], machine: Machine | None) -> None:
    if rows := session.read_selected_rows("studies"):
        shown_settings.open_study(studies[rows[0]].id, machine)
