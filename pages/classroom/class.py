"""Class: one question for everybody, joined by a code; what all expect and what all find, on one chart."""

import streamlit as st

from core.classroom.classes import Class
from core.errors import CrossoverError
from core.question import policy
from pages.classroom import access, entrance, findings, teacher, view
from pages.shared.draw.text import plain
from pages.shared.frame import apart
from pages.shared.job import asking
from pages.shared.link import membership

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
    access.prune(findings.classes().folder)
    of = entrance.of_link()
    if of is None:
        entrance.draw()
        return
    teacher.made(of)
    apart.draw(view.heading, of)
    apart.draw(_student, of)
    apart.draw(teacher.draw, of)


def _student(of: Class) -> None:
    if said := membership.announced():
        st.success(plain(said))
    try:
        who = access.me(of)
    except CrossoverError as error:
        st.error(plain(str(error)))
        return
    if who:
        view.student(of, who, asking.machine)
    elif not of.closed:
        view.join(of)
    taking_part = who is not None and not who.waiting
    if (
        membership.teaches(of.id)
        or (who and taking_part and who.prediction)
        or (of.closed and taking_part >= of.admission)
    ):
        view.everybody(of)
    else:
        st.caption("What everybody expects and finds is shown once you have said what you expect.")


page()
