"""What is known without measuring: the studies of the store and of the gallery, and anyone's own timings."""

import pyarrow as pa
import streamlit as st

from core.answer.gallery import trust
from core.answer.study import wording
from core.answer.study.brought.timings import RolesUnclear, Timings
from core.answer.study.result import DECIDED, Outcome
from core.answer.study.study import Study
from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question import describe
from core.question.experiment import titled
from core.question.fields import axis_title
from core.text import as_label
from pages.crossover import opened
from pages.shared.answer import study_view
from pages.shared.cache import cache_answers
from pages.shared.data import prepared, reads
from pages.shared.data.prepared import LocatedCrossover
from pages.shared.draw import tables
from pages.shared.draw.text import plain, show_errors
from pages.shared.frame import permits
from pages.shared.link import memory, state

TIMINGS_FORMATS = ("csv", "tsv", "txt")
"""How a file of timings may be called; what is in it tells how it is read."""

MAX_TIMINGS_BYTES = 1_000_000
"""Largest text that is taken in the text area, in characters; a file may have as much as the server takes."""

WHOLE = ("Along", "Crossover", "Devices")
"""Columns of the list that are wide enough for all that they say; what is right of them is scrolled to."""

MAX_STUDIES = 20
"""Studies that are listed with what they say, which needs all their rows."""

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
"""A file as it is read: four sizes, two devices, three readings of each. The numbers are made up."""


@show_errors()
def draw_studies_table(machine: Machine | None) -> None:
    """Every study that is stored here or came with the app; selecting one puts it into the link."""
    lines = reads.list_study_lines()
    with st.spinner("Reading the recorded studies…"):
        found = _sort_studies(list(reads.find_studies(lines[:MAX_STUDIES]).values()))
    if not found:
        st.caption("No sweep is stored yet. The first one that you run appears here.")
        return
    st.markdown("**Recorded here or shipped with the app**, decided and trusted ones first. Select one to see it.")
    shown = _make_study_lines(found)
    tables.draw_table(
        shown,
        column_config={
            name: st.column_config.TextColumn(width=tables.measure_column(shown.column(name).to_pylist()))
            for name in WHOLE
        },
        key="studies",
        on_select=lambda: _select_study(found, machine),
        selection_mode="single-row",
        height="content" if len(found) <= study_view.MAX_SIZE_LINES else 35 * study_view.MAX_SIZE_LINES,
        alt="Recorded studies",
    )
    if len(lines) > MAX_STUDIES:
        st.caption(f"These are the {MAX_STUDIES} with the most sizes; all {len(lines):,} are in the Gallery.")


def draw_custom_timings() -> None:
    """Anyone's own timings, from a file or pasted, and the answer that they give."""
    with st.expander("Your own timings", icon=":material/upload_file:", **state.bind_view("timings")):
        st.caption(
            "Any times of two devices at several sizes: a table with the columns size, device and seconds, one row a "
            "reading, or with a size and a column for each device, such as `size,cpu (ms),gpu (ms)`. Two readings or "
            "more at each size tell the noise, and with it the interval. Nothing is stored."
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
    """What a table says; None while it is asked which of its devices is set against which."""
    try:
        return prepared.locate_timings(data, name)
    except RolesUnclear as unclear:
        roles = _choose_roles(unclear.devices)
        return prepared.locate_timings(data, name, roles) if roles else None


def _choose_roles(devices: tuple[str, ...]) -> tuple[str, str] | None:
    """Which device is set against which, asked where their names do not say it; None until it is chosen."""
    st.caption("The names do not say which device is set against which.")
    columns, asked = st.columns(2), {"baseline": "The CPU, or what stands for it", "challenger": "Set against it"}
    chosen = [
        column.selectbox(words, devices, index=None, format_func=as_label, key=f"timings_{role}")
        for column, (role, words) in zip(columns, asked.items(), strict=True)
    ]
    return (chosen[0], chosen[1]) if chosen[0] and chosen[1] else None


@cache_answers(4)
def _sort_studies(studies: list[Study]) -> list[Study]:
    """Those that are decided first, and of these the trusted ones; else as they were."""
    levels = list(trust.LEVELS)

    def rank(study: Study) -> tuple[bool, int]:
        rows = [row for run in study.runs for row in run]
        return _find_outcome(study) not in DECIDED, levels.index(trust.of(rows).level)

    return sorted(studies, key=rank)


def _find_outcome(study: Study) -> Outcome | None:
    """What a study says; None where its rows cannot be compared."""
    try:
        return prepared.locate_crossover(study, "steady").answer.outcome
    except CrossoverError:
        return None


@cache_answers(4)
def _make_study_lines(studies: list[Study]) -> pa.Table:
    return pa.Table.from_pylist([_make_study_line(study) for study in studies])


def _make_study_line(study: Study) -> dict[str, str]:
    row, sizes = study.runs[0][0], study.sizes
    return {
        "Along": axis_title(study.axis),
        "Crossover": study_view.summarize_located(lambda: prepared.locate_crossover(study, "steady")),
        "Devices": f"{titled(study.challenger)} against {titled(study.baseline)}",
        "From … to": f"{wording.size(sizes[0])} to {wording.size(sizes[-1])} ({len(sizes)} sizes)",
        "Training": describe.in_short(row) + ("" if row.training else f", batch {row.batch_size:,}"),
        "Machine": f"{row.cpu_name} ({row.machine_id[:6]})",
    }


def _select_study(studies: list[Study], machine: Machine | None) -> None:
    if rows := memory.read_selected_rows("studies"):
        opened.open_study(studies[rows[0]].id, machine)
