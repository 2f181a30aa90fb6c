"""The table of pages: where each file is, what the menu calls it, and its address."""

import copy
import functools

import streamlit as st

FRONT = "pages/front/front.py"
COMPARE = "pages/compare/compare.py"
CROSSOVER = "pages/crossover/crossover.py"
DEVICES = "pages/devices/devices.py"
TUTORIALS = "pages/tutorials/tutorials.py"
LESSONS = "pages/lessons/lessons.py"
CASES = "pages/cases/cases.py"
CLASS = "pages/classroom/class.py"
GALLERY = "pages/gallery/gallery.py"

FILES = (FRONT, COMPARE, CROSSOVER, DEVICES, TUTORIALS, LESSONS, CASES, CLASS, GALLERY)


def menu() -> list[st.Page]:
    """The menu's entries, in order; the first page is the one that opens."""
    return [copy.copy(page) for page in _pages()]  # an entry notes whether its page ran, in one run for one visitor


@functools.cache
def _pages() -> tuple[st.Page, ...]:
    """Entries to copy: making one looks through all folders above its file, which need not be done in every run."""
    return (
        st.Page(FRONT, title="Start", icon=":material/home:", default=True),
        st.Page(COMPARE, title="Compare", icon=":material/balance:", url_path="compare"),
        st.Page(CROSSOVER, title="Crossover", icon=":material/timeline:", url_path="crossover"),
        st.Page(TUTORIALS, title="Tutorials", icon=":material/school:", url_path="tutorials"),
        st.Page(LESSONS, title="Lessons", icon=":material/lightbulb:", url_path="lessons"),
        st.Page(CASES, title="Cases", icon=":material/troubleshoot:", url_path="cases"),
        st.Page(GALLERY, title="Gallery", icon=":material/grid_view:", url_path="gallery"),
        st.Page(CLASS, title="Class", icon=":material/groups:", url_path="class"),
        st.Page(DEVICES, title="Devices", icon=":material/memory:", url_path="devices"),
    )
