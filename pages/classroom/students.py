"""The students of a class as their teacher sees them: who is in and who waits, and what can be done with them."""

import collections
import csv
import functools
import io
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from core.classroom.classes import Class, Student
from core.classroom.pooled import Result
from core.classroom.question import WINNERS
from core.errors import CrossoverError
from core.results.intake.exchange import Format
from core.text import as_line, in_csv
from pages.classroom import access, findings, view
from pages.classroom.findings import Entry, Pool
from pages.shared.draw import tables
from pages.shared.draw.text import plain

NAMED = 12
"""Students that wait and are named in a sentence; all are in the table."""

COLUMNS = (
    *("Nickname", "Admitted", "What is wrong", "Expects to be faster", "Expects the accelerator faster", "Measured"),
    *("As expected", "Devices", "Found"),
)
SELDOM = ("Admitted", "What is wrong")
"""Columns of the table of students, and those that are left out where nobody has them."""


def draw(of: Class) -> None:
    """Draw the table of students, what can be done with them, and their results to take along."""
    pool = findings.pool(of)
    if pool.unread:
        st.caption(f"Students whose results are still being read: {pool.unread}. Reload the page to see them.")
    lines = [*(_line(of, entry) for entry in pool.entries), *(_waits(student) for student in pool.waiting)]
    if pool.waiting:
        _admission(of, pool.waiting)
    if lines:
        tables.table(
            _without_empty(lines),
            column_config={name: st.column_config.TextColumn(width="medium") for name in ("What is wrong", "Found")},
            alt="Who has joined, what they expect and what they found",
        )
        _choice(of, pool)
    else:
        st.caption("Nobody has joined yet.")
    _downloads(of, pool, lines)


def do(of: Class, action: Callable[[], object]) -> None:
    """Change something about a class and draw the page anew, or say why it cannot be done."""
    try:
        action()
    except CrossoverError as error:
        st.error(plain(str(error)))
        return
    findings.changed(of)
    st.rerun()


def _admission(of: Class, waiting: Sequence[Student]) -> None:
    names = ", ".join(student.nickname for student in waiting[:NAMED])
    more = f" and {len(waiting) - NAMED} more" if len(waiting) > NAMED else ""
    verb = "waits" if len(waiting) == 1 else "wait"
    with st.container(border=True):
        st.markdown(f"**{len(waiting)} {verb} to be admitted:** {plain(names)}{more}")
        with st.container(horizontal=True):
            if st.button("Admit all", type="primary", icon=":material/how_to_reg:"):
                do(of, lambda: access.roster(of).admit(waiting))
            if st.button("Turn all away", icon=":material/person_off:"):
                do(of, lambda: access.roster(of).remove(waiting))


def _choice(of: Class, pool: Pool) -> None:
    everybody = {entry.student.id: entry.student for entry in pool.entries} | {one.id: one for one in pool.waiting}
    labels = _labels(list(everybody.values()))
    ids: list[str] = st.multiselect(
        "Admit, remove or put together",
        list(everybody),
        format_func=lambda one: labels.get(one, ""),
        key=f"chosen_{of.id}",
        placeholder="Choose students",
    )
    chosen = [everybody[one] for one in ids if one in everybody]
    if not chosen:
        return
    with st.container(horizontal=True):
        if any(student.waiting for student in chosen) and st.button("Admit", icon=":material/how_to_reg:"):
            do(of, lambda: access.roster(of).admit(chosen))
        with st.popover("Remove", icon=":material/person_remove:"):
            st.markdown(f"Dropped with all results and expectations: {plain(', '.join(s.nickname for s in chosen))}.")
            if st.button("Remove now", type="primary"):
                do(of, lambda: access.roster(of).remove(chosen))
        if len(chosen) == 2:
            with st.popover("Put together", icon=":material/merge:"):
                _merge(of, chosen)


def _labels(students: Sequence[Student]) -> dict[str, str]:
    """Ids with what is chosen by: the nickname as it is seen, and part of the id where two are seen alike."""
    seen = {student.id: as_line(student.nickname) for student in students}
    times = collections.Counter(seen.values())
    return {name: shown if times[shown] == 1 else f"{shown} ({name[:6]})" for name, shown in seen.items()}


def _merge(of: Class, two: Sequence[Student]) -> None:
    st.markdown("For one person who joined twice. All results go to the one who is kept.")
    by_label = dict(zip(map(plain, _labels(two).values()), two, strict=True))
    kept = by_label[st.radio("Who is kept?", list(by_label), index=1)]
    gone = next(student for student in two if student.id != kept.id)
    if st.button("Put together now", type="primary"):
        do(of, lambda: access.roster(of).merge(gone, kept))


def _line(of: Class, entry: Entry) -> dict[str, str]:
    said, found = entry.student.prediction, entry.result
    return {
        "Nickname": entry.student.nickname,
        "Expects to be faster": WINNERS[said.winner] if said else "",
        "Expects the accelerator faster": (view.place_label(of, said.place) if said and said.place is not None else ""),
        "Measured": "" if found is None else "on an own machine" if found.from_file else "on this host",
        "As expected": _as_expected(of, entry.student, found),
        "Devices": found.devices if found else "",
        "Found": found.sentence if found else "",
        "What is wrong": entry.fault,
    }


def _waits(student: Student) -> dict[str, str]:
    return {"Nickname": student.nickname, "Admitted": "not yet", "What is wrong": student.fault}


def _as_expected(of: Class, student: Student, found: Result | None) -> str:
    said = student.prediction
    if not said or not found:
        return ""
    place = found.place(of.question) if of.question.places else found.winner
    given = said.place if of.question.places else said.winner
    return "" if place is None else "yes" if place == given else "no"


def _without_empty(lines: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Lines without the columns that are there for what is seldom, where none has it."""
    names = [name for name in COLUMNS if name not in SELDOM or any(line.get(name) for line in lines)]
    return [{name: line.get(name, "") for name in names} for line in lines]


def _downloads(of: Class, pool: Pool, lines: Sequence[Mapping[str, str]]) -> None:
    kinds: tuple[tuple[Format, str, str], ...] = (
        ("parquet", "parquet", "application/vnd.apache.parquet"),
        ("csv", "CSV", "text/csv"),
    )
    with st.container(horizontal=True):
        for kind, title, media in kinds:
            st.download_button(
                f"All rows as {title}",
                functools.partial(findings.everything, of, pool, kind),
                file_name=f"class-{of.code}.{kind}",
                mime=media,
                on_click="ignore",
                icon=":material/download:",
            )
        st.download_button(
            "The table as CSV",
            _csv(lines),
            file_name=f"class-{of.code}-students.csv",
            mime="text/csv",
            on_click="ignore",
            icon=":material/download:",
        )


def _csv(lines: Sequence[Mapping[str, str]]) -> bytes:
    text = io.StringIO(newline="")
    shown = _without_empty(lines)
    writer = csv.DictWriter(text, list(shown[0]) if shown else COLUMNS[:1])
    writer.writeheader()
    writer.writerows({name: in_csv(value) for name, value in line.items()} for line in shown)
    return text.getvalue().encode()
