"""Class: one question for everybody, joined by a code; what all expect and what all find, on one chart."""

import streamlit as st

from core import policy
from core.classroom.classes import Class
from core.errors import CrossoverError
from pages.shared import apart, asking, class_entrance, class_stock, class_teacher, class_view, state
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
    class_stock.prune(class_stock.classes().folder)
    of = class_entrance.of_link()
    if of is None:
        class_entrance.draw()
        return
    class_teacher.made(of)
    apart.draw(class_view.heading, of)
    apart.draw(_student, of)
    apart.draw(class_teacher.draw, of)


def _student(of: Class) -> None:
    if said := state.announced():
        st.success(plain(said))
    try:
        who = class_stock.me(of)
    except CrossoverError as error:
        st.error(plain(str(error)))
        return
    if who:
        class_view.student(of, who, asking.machine)
    elif not of.closed:
        class_view.join(of)
    taking_part = who is not None and not who.waiting
    if state.teaches(of.id) or (who and taking_part and who.prediction) or (of.closed and taking_part >= of.admission):
        class_view.everybody(of)
    else:
        st.caption("What everybody expects and finds is shown once you have said what you expect.")


page()
