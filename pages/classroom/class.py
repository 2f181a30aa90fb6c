"""Class: one question for all students, joined by a code, with all predictions and results on one chart."""

import contextlib

import streamlit as st

from core.classroom.classes import Class
from core.question import policy
from pages.classroom import access, findings, teacher, view
from pages.shared import job_view, layout, permits
from pages.shared.elements import plain, show_errors

OFF = (
    "Classes are switched off on this host. The host's owner can switch them on in the settings file crossover.toml: "
    "set `mode = true` under `[class]`. On your own machine they are on by default."
)


def page() -> None:
    """Draw the class of the link, or the forms to join and create one."""
    if not permits.shows_projector():
        st.title("Class")
        st.caption("One question for the whole class: predict, measure, and see everybody's results.")
    if not policy.load_policy().classes.mode:
        st.info(OFF)
        return
    access.prune(findings.classes().folder)
    class_ = access.find_linked_class()
    if class_ is None:
        access.draw_class_entrance()
        return
    if permits.shows_projector():
        layout.draw_isolated(teacher.draw_projector, class_)
        return
    layout.draw_isolated(view.heading, class_)
    layout.draw_isolated(teacher.codes, class_)
    layout.draw_isolated(_student, class_)
    layout.draw_isolated(teacher.draw_teacher_view, class_)


@show_errors()
def _student(class_: Class) -> None:
    if said := permits.take_announcement():
        st.success(plain(said))
    who, teaches = access.me(class_), access.teaches(class_)
    if who:
        view.student(class_, who, job_view.find_machine)
    elif not class_.closed:
        with st.expander("Take part yourself") if teaches else contextlib.nullcontext():
            view.join(class_)
    taking_part = who is not None and not who.waiting
    if teaches or (who and taking_part and who.prediction) or (class_.closed and taking_part >= class_.admission):
        view.everybody(class_)
    else:
        st.caption("Make your prediction to see what everybody predicted and measured.")


page()
