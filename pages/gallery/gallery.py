"""Gallery: stored trials of this and other machines, and published studies, to filter, open and take along."""

import streamlit as st

from core.answer.gallery import filters
from core.answer.gallery.filters import Held
from core.answer.gallery.table import Overview
from pages.gallery import importing, lists, opened, published, stock
from pages.shared.data import reads
from pages.shared.draw.text import plain
from pages.shared.frame import apart, layout, navigation
from pages.shared.link import links, state

NOTHING_YET = (
    "No trial is stored yet. The first comparison you run appears here; figures of others are under Published."
)

CONTROLS = ("view", "filters")
"""Those of the list, which are of no use to what was opened from it and would push its answer down."""


def page() -> None:
    """What is here, the list that is chosen with its filters, or what was opened from it."""
    st.title("Gallery")
    apart.draw(lambda: _shelf(reads.overview()))
    importing.panel()


def _shelf(overview: Overview) -> None:
    held = stock.held(overview)
    st.caption(
        plain(filters.in_one_line(held)) if len(held.trials) else "Results of real machines, to look at and compare."
    )
    apart.draw(stock.unread, overview)
    named = state.view()
    if named is not None and named[1] in published.by_name():
        published.opened(named[1], held)
        return
    view = lists.choice()
    if view == "Published" and named is None:
        published.listed()
    elif len(held.trials):
        _measured(view, held, named)
    else:
        st.info(NOTHING_YET)
        st.page_link(navigation.COMPARE, label="Run a comparison", icon=":material/balance:")


def _measured(view: lists.View, held: Held, named: tuple[links.Kind, str] | None) -> None:
    chosen = stock.draw_filters(stock.options(held, answers=view == "Studies"))
    if named is not None and (named[0] == "study" or view != "Trials"):
        layout.put_away(CONTROLS)
    if named is not None and named[0] == "study":
        opened.study(named[1], held, stock.found(held, chosen).studies)
        return
    if named is None or view == "Trials":
        apart.draw(lists.draw, view, held, chosen)
    if named is not None:
        lists.back()
        apart.draw(opened.run, named[1])


page()
