"""The class page for a teacher: make a class, see to its students, close and delete it."""

import streamlit as st

from core.classroom.classes import Class
from core.classroom.names import NAME_LENGTH
from core.question import policy
from core.question.presets import PRESETS
from pages.classroom import access, findings, students
from pages.shared.draw.text import plain, told
from pages.shared.frame import apart
from pages.shared.link import membership, state

ADMISSION = "Who joins waits until I admit them"


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
        admission = st.checkbox(ADMISSION)
        pressed = st.form_submit_button("Make it", icon=":material/group_add:")
    if not pressed:
        return
    with told():
        made, secret = access.create(name, preset, admission=admission, code=code)
        membership.keep_codes(made.code, secret)
        membership.taught().add(made.id)
        membership.entered().add(made.code)
        membership.open_class(made.code)
        st.rerun()


def made(class_: Class) -> None:
    """Draw the codes of a class that was just made in this session."""
    code, secret = class_.code, membership.kept_secret(class_.code)
    if not secret:
        return
    with st.container(border=True):
        st.markdown("**The class is made.** Write the teacher's code down: it is kept nowhere.")
        st.code(f"Join code       {code}\nTeacher's code  {secret}", language=None)
        st.markdown("Link for the class:")
        st.code(state.address({"class": code}), language=None, wrap_lines=True)


def draw(class_: Class) -> None:
    """Draw the way in for a teacher, and the view behind it."""
    if class_.id not in membership.taught():
        with st.expander("For the teacher", **state.bound_view("teacher")):
            _enter(class_)
        return
    st.header("For the teacher")
    apart.draw(students.draw, class_)
    apart.draw(_settings, class_)


def _enter(class_: Class) -> None:
    with st.form("teach", border=False):
        code = st.text_input("Teacher's code", type="password")
        pressed = st.form_submit_button("Open the teacher's view")
    if not pressed:
        return
    with told():
        access.require_secret(code, class_.secret_hash)
        membership.taught().add(class_.id)
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
    st.caption(f"The class is dropped by itself on {plain(class_.expires_at[:10])}.")
