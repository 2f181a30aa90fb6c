"""Class: one question for everybody, joined by a code; what all expect and what all find, on one chart."""

import streamlit as st

from core import policy
from core.classroom.classes import Class
from core.errors import CrossoverError
from pages.shared import asking, class_stock, class_teacher, class_view, state
from pages.shared.text import plain

OFF = (
    "Classes are switched off on this host. Whoever runs it can switch them on in its settings file, crossover.toml: "
    "`[class]`, below it `mode = true`. On your own machine they are on unless that file says otherwise."
)


def page() -> None:
    """The class of the link, or the ways into one."""
    st.title("Class")
    st.caption("One question for a whole class: expect first, measure where you like, and see what everybody found.")
    if not policy.current().classes.mode:
        st.info(OFF)
        return
    of = _of_link()
    if of is None:
        _entrance()
        return
    class_teacher.made(of)
    class_view.heading(of)
    _student(of)
    class_teacher.draw(of)


def _of_link() -> Class | None:
    code = state.class_code()
    if not code:
        return None
    try:
        return class_stock.find(code)
    except CrossoverError as error:
        st.error(plain(str(error)))
        state.leave_class()
        return None


def _entrance() -> None:
    left, right = st.columns(2, gap="medium")
    with left, st.form("enter", border=True):
        st.markdown("**Join a class**")
        code = st.text_input("Join code", max_chars=20, placeholder="KX4M-9PQA")
        if st.form_submit_button("Go to the class", type="primary", icon=":material/login:"):
            try:
                state.open_class(class_stock.find(code).code)
            except CrossoverError as error:
                st.error(plain(str(error)))
            else:
                st.rerun()
    with right:
        class_teacher.create()


def _student(of: Class) -> None:
    who = class_stock.me(of)
    if said := state.announced():
        st.success(plain(said))
    if who:
        class_view.student(of, who, asking.machine())
    elif not of.closed:
        class_view.join(of)
    if of.closed or state.teaches(of.id) or (who and who.prediction):
        class_view.everybody(of)
    else:
        st.caption("What everybody expects and finds is shown once you have said what you expect.")


page()
