"""Front: the question, an answer that was measured, and what to press."""

import contextlib
from collections.abc import Callable

import streamlit as st

from core.errors import CrossoverError, JobError
from pages.front import choice
from pages.shared import charts, links, navigation, permits, queries
from pages.shared.text import bind_percent, plain

QUESTION = "When does training on a GPU pay off?"
ANSWERED = (
    "A GPU needs enough work to be faster than a CPU. Crossover trains one model on both, in turns, and finds the size "
    "from which the faster one changes, with an interval."
)

DOORS = (
    (navigation.COMPARE, "Measure on this machine", ":material/speed:"),
    (navigation.GALLERY, "Look at results", ":material/grid_view:"),
    (navigation.TUTORIALS, "Learn", ":material/school:"),
    (navigation.CASES, "Why is my GPU not faster?", ":material/troubleshoot:"),
)
"""Page, label and icon."""


def draw_front_page() -> None:
    """The question on top, four doors, and answers below; who can measure here finds that loaded behind them."""
    _forward_old_link()
    _draw_front()
    if permits.on_own_machine():
        with contextlib.suppress(JobError):  # which the page that needs it says
            queries.read_machine()


def _draw_front() -> None:
    st.title(QUESTION, anchor=False)
    st.markdown(ANSWERED)
    with st.container(horizontal=True, key="doors"):
        for file, label, icon in DOORS:
            st.page_link(file, label=f"**{label}**", icon=icon)
    answers = [shown for shown in map(_find_answer, (choice.find_stored_answer, choice.find_published_answer)) if shown]
    if not answers:
        return
    for column, shown in zip(st.columns(len(answers), gap="large"), answers, strict=True):
        with column:
            _draw_front_answer(shown)


def _find_answer(answer: Callable[[], choice.ShownAnswer | None]) -> choice.ShownAnswer | None:
    """An answer; None where there is none, or no way to read it, which is said and keeps no other from its place."""
    try:
        return answer()
    except CrossoverError as error:
        st.warning(plain(str(error)))
        return None


def _forward_old_link() -> None:
    """Take who comes by a link of before, when Compare stood here, to Compare."""
    said = {name: st.query_params.get_all(name) for name in st.query_params}
    if said.keys() & {*links.PAGES["compare"].parameters, "preset"}:
        st.switch_page(navigation.COMPARE, query_params=said)


def _draw_front_answer(answer: choice.ShownAnswer) -> None:
    st.markdown(f"**{bind_percent(plain(answer.sentence))}**")
    charts.draw_chart(answer.chart, height=None, alt=plain(answer.sentence))
    st.caption(plain(answer.source))
    link = {"study": answer.study}
    st.page_link(navigation.GALLERY, label="Open this study", icon=":material/open_in_full:", query_params=link)


draw_front_page()
