"""Tutorials: four that compare CPU and GPU, each to be expected, run and read beside what was published."""

import streamlit as st

from pages.shared.frame import layout
from pages.shared.job import asking
from pages.shared.learning import frame
from pages.shared.link import choices
from pages.tutorials import content
from pages.tutorials.content import TUTORIALS


def page() -> None:
    """The choice of a tutorial, what it claims and what is expected of it; beside it what came of it here."""
    places = layout.sides("Tutorials", folds=False)
    with places.settings:
        names = list(TUTORIALS)
        bound = choices.bound("tutorial", names, names[0], lambda name: TUTORIALS[name].preset.title)
        chosen = st.segmented_control("Tutorial", names, required=True, **bound)
    content.page_of(TUTORIALS[chosen or next(iter(TUTORIALS))], asking.machine(), places)
    with places.answer:
        frame.unread()


page()
