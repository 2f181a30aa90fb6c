"""The teacher's view of a class: the form to open it, the table of students, the actions on them, and the projector.

The projector shows how to join, the number of students, their predictions, and results after Reveal. It shows nothing
that only the teacher may know, so it can be projected for an hour.
"""

import collections
import csv
import functools
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from core.answer import wording
from core.classroom import results
from core.classroom.classes import Class, Student
from core.classroom.results import Result
from core.classroom.students import NAME_LENGTH
from core.question import policy
from core.question.presets import PRESETS
from core.text import as_line, to_csv_cell
from pages.classroom import access, findings, view
from pages.classroom.findings import Entry, Pool
from pages.shared import elements, layout, permits, session
from pages.shared.elements import format_date, plain, show_errors

NAMED = 12
"""Maximum number of waiting students named in a sentence; all are in the table."""

EXPECTED_FROM = "Predicted crossover"

COLUMNS = (
    *("Nickname", "Admitted", "Problem", "As predicted", "Found", EXPECTED_FROM, "Predicted winner"),
    *("Measured", "Devices", "In words"),
)
SELDOM = ("Admitted", "Problem")
"""Columns of the table of students; its file omits those of `SELDOM` if they are empty."""


def draw_students_table(class_: Class) -> None:
    """Draw the table of students, the actions on them, and the export of their results."""
    pool = findings.pool(class_)
    if pool.unread:
        st.caption(f"Students whose results are still being read: {pool.unread}.")
    words = view.name_winners(pool)
    lines = [_line(class_, entry, words) for entry in pool.entries]
    lines += [{"Nickname": one.nickname, "Admitted": "not yet", "Problem": one.fault} for one in pool.waiting]
    if pool.waiting:
        _admission(class_, pool.waiting)
    if lines:
        elements.draw_table(
            _drop_empty_columns(lines, COLUMNS[1:]),
            column_config={
                "Problem": st.column_config.TextColumn(width="medium"),
                "In words": st.column_config.TextColumn(width="large"),
            },
            alt="Students with their predictions and results",
        )
        _choice(class_, pool)
        _downloads(class_, pool, lines)
    else:
        st.caption("Nobody has joined yet. Share the link or code above.")


def do(class_: Class, action: Callable[[], object]) -> None:
    """Change a class and rerun the page, or show why the change failed."""
    with show_errors():
        action()
        findings.changed(class_)
        st.rerun()


def _admission(class_: Class, waiting: Sequence[Student]) -> None:
    names = ", ".join(student.nickname for student in waiting[:NAMED])
    more = f" and {len(waiting) - NAMED} more" if len(waiting) > NAMED else ""
    verb = "waits" if len(waiting) == 1 else "wait"
    with st.container(border=True):
        st.markdown(f"**{len(waiting)} {verb} to be admitted:** {plain(names)}{more}")
        with st.container(horizontal=True):
            if st.button("Admit all", type="primary", icon=":material/how_to_reg:"):
                do(class_, lambda: findings.classes().admit(class_, waiting))
            if st.button("Reject all", icon=":material/person_off:"):
                do(class_, lambda: findings.classes().remove(class_, waiting))


def _choice(class_: Class, pool: Pool) -> None:
    everybody = {entry.student.id: entry.student for entry in pool.entries} | {one.id: one for one in pool.waiting}
    labels = _labels(list(everybody.values()))
    ids: list[str] = st.multiselect(
        "Admit, remove or merge",
        list(everybody),
        format_func=lambda one: labels.get(one, ""),
        key=f"chosen_{class_.id}",
        placeholder="Choose students",
    )
    chosen = [everybody[one] for one in ids if one in everybody]
    if not chosen:
        return
    with st.container(horizontal=True):
        if any(student.waiting for student in chosen) and st.button("Admit", icon=":material/how_to_reg:"):
            do(class_, lambda: findings.classes().admit(class_, chosen))
        with st.popover("Remove", icon=":material/person_remove:"):
            st.markdown(f"Deleted with all results and predictions: {plain(', '.join(s.nickname for s in chosen))}.")
            if st.button("Remove now", type="primary"):
                do(class_, lambda: findings.classes().remove(class_, chosen))
        if len(chosen) == 2:
            with st.popover("Put together", icon=":material/merge:"):
                _merge(class_, chosen)


def _labels(students: Sequence[Student]) -> dict[str, str]:
    """Return the label of each id: the nickname as displayed, with part of the id if two look the same."""
    seen = {student.id: as_line(student.nickname) for student in students}
    times = collections.Counter(seen.values())
    return {name: shown if times[shown] == 1 else f"{shown} ({name[:6]})" for name, shown in seen.items()}


def _merge(class_: Class, two: Sequence[Student]) -> None:
    st.markdown("For a student who joined twice. The remaining nickname gets all results.")
    by_label = dict(zip(map(plain, _labels(two).values()), two, strict=True))
    kept = by_label[st.radio("Nickname that remains", list(by_label), index=1)]
    gone = next(student for student in two if student.id != kept.id)
    if st.button("Merge", type="primary"):
        do(class_, lambda: findings.classes().merge(class_, gone, kept))


def _line(class_: Class, entry: Entry, winners: Mapping[str, str]) -> dict[str, str]:
    said, found = entry.student.prediction, entry.result
    place = said.place if said else None
    return {
        "Nickname": entry.student.nickname,
        "Predicted winner": winners[said.winner] if said else "",
        EXPECTED_FROM: "" if place is None else view.place_label(class_, place),
        "Measured": "" if found is None else "on their own machine" if found.from_file else "on this host",
        "As predicted": _as_expected(class_, entry.student, found),
        "Devices": found.devices if found else "",
        "Found": view.summarize_student_result(class_, found) if found else "",
        "In words": found.sentence if found else "",
        "Problem": entry.fault,
    }


def _as_expected(class_: Class, student: Student, found: Result | None) -> str:
    said = student.prediction
    if not said or not found:
        return ""
    place = found.place(class_.question) if class_.question.places else found.winner
    given = said.place if class_.question.places else said.winner
    return "" if place is None else "yes" if place == given else "no"


def _drop_empty_columns(lines: Sequence[Mapping[str, str]], seldom: Sequence[str] = SELDOM) -> list[dict[str, str]]:
    """Return the lines without the columns of `seldom` that are empty in all lines."""
    names = [name for name in COLUMNS if name not in seldom or any(line.get(name) for line in lines)]
    return [{name: line.get(name, "") for name in names} for line in lines]


def _downloads(class_: Class, pool: Pool, lines: Sequence[Mapping[str, str]]) -> None:
    name = f"class-{class_.code}"
    with st.container(horizontal=True):
        for kind, media in elements.ROW_FORMATS.items():
            rows = functools.partial(findings.everything, class_, pool, kind)
            elements.draw_download_button(f"All rows as {kind}", rows, f"{name}.{kind}", media, key=f"rows-{kind}")
        elements.draw_download_button(
            "The table as csv", _csv(lines), f"{name}-students.csv", "text/csv", key="students-csv"
        )


def _csv(lines: Sequence[Mapping[str, str]]) -> bytes:
    text = io.StringIO(newline="")
    shown = _drop_empty_columns(lines)
    writer = csv.DictWriter(text, list(shown[0]) if shown else COLUMNS[:1])
    writer.writeheader()
    writer.writerows({name: to_csv_cell(value) for name, value in line.items()} for line in shown)
    return text.getvalue().encode()


ADMISSION = "New students wait until I admit them"

OWN_LINK = (
    "This link opens the teacher's view. Keep it to yourself; the address of this page does not contain the code."
)


def create() -> None:
    """Draw the form for a new class, if visitors may create one."""
    held = policy.load_policy().classes
    if held.create == "command_line":
        st.caption("On this host, create a class on the command line: `python -m core class create`.")
        return
    with st.form("create", border=True):
        st.markdown("**Create a class**")
        name = st.text_input("Class name", max_chars=NAME_LENGTH)
        preset = st.selectbox("Measurement", list(PRESETS), format_func=lambda name: PRESETS[name].title)
        code = st.text_input("The host's code", type="password") if held.create == "code" else ""
        admission = st.checkbox(ADMISSION)
        pressed = st.form_submit_button("Create the class", icon=":material/group_add:")
    if not pressed:
        return
    with show_errors():
        made, secret = access.create(name, preset, admission=admission, code=code)
        permits.list_entered_codes().add(made.code)
        permits.open_class(made.code)
        permits.note_teacher_code(made.id, secret)
        session.set_values({"codes": True})
        st.rerun()


def draw_teacher_view(class_: Class) -> None:
    """Draw the form that opens the teacher's view, or the view, whose table updates as students act."""
    if not access.teaches(class_):
        with st.expander("For the teacher", **session.bind_view("teacher")):
            _enter(class_)
        return
    st.header("For the teacher")
    if st.button(
        "Projector view", icon=":material/present_to_all:", help="A page to project. It shows no secret codes."
    ):
        permits.show_projector()
        st.rerun()
    st.fragment(layout.draw_isolated, run_every=view.REFRESH_S)(draw_students_table, class_)
    layout.draw_isolated(_settings, class_)


def codes(class_: Class) -> None:
    """Draw the codes for the class and the teacher's secret code in an expander, as a class may see this screen."""
    if not access.teaches(class_):
        return
    with st.expander("Codes, and the link for the class", icon=":material/key:", **session.bind_view("codes")):
        st.markdown("Share this link or code with the class:")
        st.code(session.make_address({"class": class_.code}), language=None, wrap_lines=True)
        st.code(class_.code, language=None)
        st.markdown("The teacher's code, for you only. This host does not store it, so write it down.")
        st.code(permits.find_teacher_code(class_.id), language=None)
        secret = permits.find_teacher_code(class_.id)
        own = session.make_address({"class": class_.code, permits.TEACHER: secret})
        st.code(own, language=None, wrap_lines=True)
        st.caption(OWN_LINK)


def _enter(class_: Class) -> None:
    with st.form("teach", border=False):
        code = st.text_input("Teacher's code", type="password")
        pressed = st.form_submit_button("Open the teacher's view")
    if not pressed:
        return
    with show_errors():
        access.teach(class_, code)
        st.rerun()


def _settings(class_: Class) -> None:
    """Draw the settings of the class itself; they read no data of students."""
    asked = st.toggle(ADMISSION, value=class_.admission)
    if asked != class_.admission:
        do(class_, lambda: findings.classes().ask_admission(class_, asked=asked))
    with st.container(horizontal=True, vertical_alignment="center"):
        label = "Open the class again" if class_.closed else "Close the class"
        if st.button(label, icon=":material/lock_open:" if class_.closed else ":material/lock:"):
            do(class_, lambda: findings.classes().close(class_, closed=not class_.closed))
        with st.popover("Delete the class", icon=":material/delete:"):
            st.markdown("Everything in it is deleted: nicknames, predictions and results.")
            if st.button("Delete it now", type="primary"):
                do(class_, lambda: findings.classes().delete(class_))
    st.caption(f"The class is deleted automatically on {plain(format_date(class_.expires_at))}.")


REFRESH_S = 3.0
"""Seconds between two updates of the projected numbers."""

QR_SIZE = 300
"""Pixels of the code that phones scan."""

LETTERS = 18
"""Size of the letters on a chart that is projected."""

NEAREST_NAMED = 3
"""Maximum number of named students whose predictions were nearest to the crossover."""


def draw_projector(class_: Class) -> None:
    """Draw the projector's view, which updates as students join, predict and measure."""
    st.title(plain(class_.name), anchor=False)
    st.markdown(f"**{plain(class_.question.title)}**")
    left, right = st.columns([2, 3], gap="large")
    with left:
        _draw_join_codes(class_)
    with right:
        st.fragment(layout.draw_isolated, run_every=REFRESH_S)(_draw_state, class_)
    _draw_buttons(class_)


@functools.lru_cache(maxsize=64)
def draw_qr_code(address: str) -> str:
    """Return an address as a QR code: the source of an image, black on white in every theme."""
    import segno

    source: str = segno.make(address, error="m").svg_data_uri(scale=4, border=2, dark="#000", light="#fff")
    return source


def _draw_join_codes(class_: Class) -> None:
    address = session.make_address({"class": class_.code})
    layout.draw_picture(draw_qr_code(address), alt="QR code of the address of this class", width=QR_SIZE)
    layout.draw_large_text(class_.code)
    st.markdown(plain(f"Scan the QR code, or open {address.partition('?')[0]} and enter the join code."))


def _draw_state(class_: Class) -> None:
    pool = findings.shared_pool(class_)
    joined, said, done = st.columns(3)
    joined.metric("Joined", len(pool.entries))
    said.metric("Predicted", pool.tally.students)
    done.metric("Measured", len(pool.results))
    if not findings.classes().find(class_.code).revealed:
        _draw_predictions(class_, pool)
    else:
        _draw_answer(class_, pool)


def _draw_predictions(class_: Class, pool: findings.Pool) -> None:
    if not pool.tally.students:
        st.caption("No predictions yet. Predictions appear here as a histogram.")
        return
    words = view.name_winners(pool)
    in_words = view.describe_tally(class_, pool, words)
    _draw_large_chart(findings.predictions_chart(class_, pool.tally, words), alt=in_words)
    st.caption(plain(in_words))


def _draw_answer(class_: Class, pool: findings.Pool) -> None:
    if curve := findings.find_curve(class_, pool):
        st.markdown(f"## {plain(curve.answer.sentence)}")
        _draw_large_chart(curve.spec, alt=curve.answer.sentence)
        sizes = len(class_.question.dealt_sizes)
        st.markdown(f"{len(curve.answer.sizes)} of {sizes} sizes measured by the class on this host.")
        if curve.answer.estimate is not None:
            _draw_nearest(class_, pool, curve.answer.estimate)
    if curve is None or findings.list_whole_results(class_, pool):
        _draw_machines(class_, pool)


def _draw_machines(class_: Class, pool: findings.Pool) -> None:
    """Draw the answers of students who measured every size, and the range of their crossovers."""
    spread = view.describe_spread(class_, pool)
    if spread:
        st.markdown(f"## {plain(spread)}")
    view.draw_results_chart(class_, pool, view.name_winners(pool))


def _draw_large_chart(spec: Mapping[str, Any], *, alt: str) -> None:
    axis = {**spec["config"].get("axis", {}), "labelFontSize": LETTERS, "titleFontSize": LETTERS}
    elements.draw_chart({**spec, "config": {**spec["config"], "axis": axis}}, alt=alt)


def _draw_nearest(class_: Class, pool: findings.Pool, estimate: float) -> None:
    predicted = {
        entry.student.nickname: float(said.place)
        for entry in pool.entries
        if (said := entry.student.prediction) and isinstance(said.place, int | float)
    }
    names = results.find_nearest(predicted, estimate)
    if names:
        more = f" and {len(names) - NEAREST_NAMED} more" if len(names) > NEAREST_NAMED else ""
        place = wording.nearest_size(class_.question.axis.name, estimate) if class_.question.axis else ""
        st.success(plain(f"Closest prediction to {place}: {', '.join(names[:NEAREST_NAMED])}{more}."))


@show_errors()
def _draw_buttons(class_: Class) -> None:
    """Draw the button that leaves the view, and for the teacher the one that shows or hides the results."""
    with st.container(horizontal=True):
        if access.teaches(class_):
            _draw_reveal_button(class_)
        if st.button("Leave the projector view", icon=":material/close:"):
            permits.show_projector(shown=False)
            st.rerun()


def _draw_reveal_button(class_: Class) -> None:
    label = "Hide the result" if class_.revealed else "Reveal"
    icon = ":material/visibility_off:" if class_.revealed else ":material/visibility:"
    if st.button(label, type="secondary" if class_.revealed else "primary", icon=icon):
        findings.classes().reveal(class_, revealed=not class_.revealed)
        st.rerun()
