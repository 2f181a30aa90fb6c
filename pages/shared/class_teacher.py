"""The class page for a teacher: make a class, see who has handed in what, take everything, close the class."""

import csv
import functools
import io
from collections.abc import Callable, Mapping

import streamlit as st

from core import policy
from core.classroom import handed_in
from core.classroom.classes import NAME_LENGTH, Class, Student
from core.classroom.pooled import Result
from core.classroom.question import WINNERS, Question
from core.errors import CrossoverError
from core.presets import PRESETS
from core.results.exchange import cell
from pages.shared import class_stock, class_view, state
from pages.shared.text import plain


def create() -> None:
    """Draw what a new class needs, where visitors may make one."""
    held = policy.current().classes
    if held.create == "command_line":
        st.caption("On this host a class is made on the command line: `python -m core class create`.")
        return
    with st.form("create", border=True):
        st.markdown("**Make a class**")
        name = st.text_input("Name of the class", max_chars=NAME_LENGTH)
        preset = st.selectbox("What everybody measures", list(PRESETS), format_func=lambda name: PRESETS[name].title)
        code = st.text_input("The host's code", type="password") if held.create == "code" else ""
        pressed = st.form_submit_button("Make it", icon=":material/group_add:")
    if pressed:
        try:
            if held.create == "code":
                class_stock.require_secret(code, held.code_hash)
            made, secret = class_stock.classes().create(name, Question.of_preset(preset))
        except CrossoverError as error:
            st.error(plain(str(error)))
            return
        state.keep_codes(made.code, secret)
        state.teach(made.id)
        state.open_class(made.code)
        st.rerun()


def made(of: Class) -> None:
    """Draw the codes of a class that was just made in this session."""
    code, secret = of.code, state.kept_secret(of.code)
    if not secret:
        return
    with st.container(border=True):
        st.markdown("**The class is made.** Write the teacher's code down: it is kept nowhere.")
        st.code(f"Join code       {code}\nTeacher's code  {secret}", language=None)
        st.markdown("Link for the class:")
        st.code(state.address({"class": code}), language=None, wrap_lines=True)


def draw(of: Class) -> None:
    """Draw the way in for a teacher, and the view behind it."""
    if not state.teaches(of.id):
        with st.expander("For the teacher", **state.bound_view("teacher")):
            _enter(of)
        return
    st.header("For the teacher")
    pool = class_stock.pool(of)
    by_nickname = {entry.nickname: entry for entry in pool.results}
    lines = [_line(of, student, by_nickname.get(student.nickname)) for student in pool.students]
    if lines:
        st.dataframe(lines, hide_index=True, alt="Who has joined, what they expect and what they found")
    else:
        st.caption("Nobody has joined yet.")
    _downloads(of, pool, lines)
    _end(of)


def _enter(of: Class) -> None:
    with st.form("teach", border=False):
        code = st.text_input("Teacher's code", type="password")
        pressed = st.form_submit_button("Open the teacher's view")
    if not pressed:
        return
    try:
        class_stock.require_secret(code, of.secret_hash)
    except CrossoverError as error:
        st.error(plain(str(error)))
        return
    state.teach(of.id)
    st.rerun()


def _line(of: Class, student: Student, found: Result | None) -> dict[str, str]:
    said = student.prediction
    expects = WINNERS[said.winner] if said and said.winner in WINNERS else ""
    where = class_view.place_label(of, said.place) if said and said.place is not None else ""
    right = ""
    if said and found:
        place = found.place(of.question) if of.question.places else found.winner
        given = said.place if of.question.places else said.winner
        right = "" if place is None else "yes" if place == given else "no"
    return {
        "Nickname": student.nickname,
        "Expects to be faster": expects,
        "Expects the accelerator faster": where,
        "Measured": "" if found is None else "on an own machine" if found.from_file else "on this host",
        "As expected": right,
        "Devices": found.devices if found else "",
        "Found": found.sentence if found else "",
    }


def _downloads(of: Class, pool: class_stock.Pool, lines: list[dict[str, str]]) -> None:
    with st.container(horizontal=True):
        for kind, media in (("parquet", "application/vnd.apache.parquet"), ("csv", "text/csv")):
            st.download_button(
                f"All rows as {kind if kind == 'parquet' else 'CSV'}",
                functools.partial(_rows, of, pool, kind),
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


def _rows(of: Class, pool: class_stock.Pool, kind: str) -> bytes:
    rows = {student.nickname: class_stock.rows(of, student) for student in pool.students}
    return handed_in.everything(rows, "csv" if kind == "csv" else "parquet")


def _csv(lines: list[dict[str, str]]) -> bytes:
    text = io.StringIO(newline="")
    names: Mapping[str, str] = lines[0] if lines else {"Nickname": ""}
    writer = csv.DictWriter(text, list(names))
    writer.writeheader()
    writer.writerows({name: cell(value) for name, value in line.items()} for line in lines)
    return text.getvalue().encode()


def _end(of: Class) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        label = "Open the class again" if of.closed else "Close the class"
        if st.button(label, icon=":material/lock_open:" if of.closed else ":material/lock:"):
            _do(lambda: class_stock.classes().close(of, closed=not of.closed))
        with st.popover("Delete the class", icon=":material/delete:"):
            st.markdown("Everything in it is dropped: nicknames, expectations and results.")
            if st.button("Delete it now", type="primary"):
                _do(lambda: class_stock.classes().delete(of))
    st.caption(f"The class is dropped by itself on {of.expires_at[:10]}.")


def _do(action: Callable[[], object]) -> None:
    try:
        action()
    except CrossoverError as error:
        st.error(plain(str(error)))
        return
    st.rerun()
