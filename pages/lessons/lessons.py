"""Lessons: five short ones on why timings of a GPU mislead, each with a question first and something to run."""

import streamlit as st

from pages.lessons import lesson
from pages.lessons.content import LESSONS
from pages.shared.frame import layout
from pages.shared.job import asking
from pages.shared.learning import frame
from pages.shared.link import choices


def page() -> None:
    """The choice of a lesson, its question and how to run it; beside it what it shows."""
    places = layout.sides("Lessons", folds=False)
    with places.settings:
        names = list(LESSONS)
        bound = choices.bound("lesson", names, names[0], lambda name: LESSONS[name].title)
        chosen = st.segmented_control("Lesson", names, required=True, **bound)
    lesson.draw(LESSONS[chosen or next(iter(LESSONS))], asking.machine(), places)
    with places.answer:
        frame.unread()


page()
