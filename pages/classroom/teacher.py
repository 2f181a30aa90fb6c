"""The class page for a teacher: make a class, see to its students, close and delete it."""

import streamlit as st

from core.classroom.classes import Class
from core.classroom.names import NAME_LENGTH
from core.question import policy
from core.question.presets import PRESETS
from pages.classroom import access, findings, students, view
from pages.shared import membership, session
from pages.shared.frame import apart
from pages.shared.text import format_date, plain, show_errors

ADMISSION = "New students wait until I admit them"

OWN_LINK = (
    "The address of this page has the teacher's code in it: keep it to come back to this view, and do not hand it on. "
    "For the class there is the link above."
)


def create() -> None:
    """Draw what a new class needs, where visitors may make one."""
    held = policy.load_policy().classes
    if held.create == "command_line":
        st.caption("On this host a class is made on the command line: `python -m core class create`.")
        return
    with st.form("create", border=True):
        st.markdown("**Make a class**")
        name = st.text_input("Name of the class", max_chars=NAME_LENGTH)
        preset = st.selectbox("What everybody measures", list(PRESETS), format_func=lambda name: PRESETS[name].title)
        code = st.text_input("The host's code", type="password") if held.create == "code" else ""
        admission = st.checkbox(ADMISSION)
        pressed = st.form_submit_button("Make the class", icon=":material/group_add:")
    if not pressed:
        return
    with show_errors():
        made, secret = access.create(name, preset, admission=admission, code=code)
        membership.list_entered_codes().add(made.code)
        membership.open_class(made.code)
        membership.note_teacher_code(made.id, secret)
        session.set_values({"codes": True})
        st.rerun()


def draw_teacher_view(class_: Class) -> None:
    """Draw the way in for a teacher, and the view behind it, whose table follows what the students do."""
    if not access.teaches(class_):
        with st.expander("For the teacher", **session.bind_view("teacher")):
            _enter(class_)
        return
    st.header("For the teacher")
    st.fragment(apart.draw_isolated, run_every=view.REFRESH_S)(students.draw_students_table, class_)
    apart.draw_isolated(_settings, class_)


def codes(class_: Class) -> None:
    """Draw what a teacher hands out and what they keep to themselves; it folds, as a class may see this screen."""
    if not access.teaches(class_):
        return
    with st.expander("Codes, and the link for the class", icon=":material/key:", **session.bind_view("codes")):
        st.markdown("For the class, its link or its code:")
        st.code(session.make_address({"class": class_.code}), language=None, wrap_lines=True)
        st.code(class_.code, language=None)
        st.markdown("For you alone, the teacher's code. This host does not keep it, so write it down.")
        st.code(membership.find_teacher_code(class_.id), language=None)
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
    """Draw what the teacher decides about the class itself; nothing of a student is read for it."""
    asked = st.toggle(ADMISSION, value=class_.admission)
    if asked != class_.admission:
        students.do(class_, lambda: findings.classes().ask_admission(class_, asked=asked))
    with st.container(horizontal=True, vertical_alignment="center"):
        label = "Open the class again" if class_.closed else "Close the class"
        if st.button(label, icon=":material/lock_open:" if class_.closed else ":material/lock:"):
            students.do(class_, lambda: findings.classes().close(class_, closed=not class_.closed))
        with st.popover("Delete the class", icon=":material/delete:"):
            st.markdown("Everything in it is dropped: nicknames, expectations and results.")
            if st.button("Delete it now", type="primary"):
                students.do(class_, lambda: findings.classes().delete(class_))
    st.caption(f"The class is dropped by itself on {plain(format_date(class_.expires_at))}.")
