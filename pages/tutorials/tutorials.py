"""Tutorials: four that compare CPU and GPU, each to be expected, run and read beside what was published."""

import streamlit as st

from pages.shared.job import asking
from pages.shared.learning import frame
from pages.shared.link import state
from pages.tutorials import content
from pages.tutorials.content import TUTORIALS


def page() -> None:
    """The choice of a tutorial on top, the tutorial below."""
    st.title("Tutorials")
    st.caption(
        "Four tutorials train a network on the CPU and on a GPU. Expect something, run it here, and set your numbers "
        "beside the published ones."
    )
    chosen = st.segmented_control(
        "Tutorial", list(TUTORIALS), default=next(iter(TUTORIALS)), required=True, **state.bound("tutorial")
    )
    content.page_of(TUTORIALS[chosen or next(iter(TUTORIALS))], asking.machine())
    frame.unread()


page()
