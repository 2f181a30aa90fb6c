"""Lessons: five short ones on why timings of a GPU mislead, each with a question first and something to run."""

import streamlit as st

from pages.lessons import lesson
from pages.lessons.content import LESSONS
from pages.shared.job import asking
from pages.shared.learning import frame
from pages.shared.link import state


def page() -> None:
    """The choice of a lesson on top, the lesson below."""
    st.title("Lessons")
    st.caption("Five short lessons. Each asks first, then runs something here, then shows what it means.")
    chosen = st.segmented_control(
        "Lesson", list(LESSONS), default=next(iter(LESSONS)), required=True, **state.bound("lesson")
    )
    lesson.draw(LESSONS[chosen or next(iter(LESSONS))], asking.machine())
    frame.unread()


page()
