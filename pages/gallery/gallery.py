"""Gallery: every stored trial, from this machine and from others, to filter, open, put side by side and take along."""

import streamlit as st

from core.answer.gallery import filters
from core.answer.gallery.table import Overview
from pages.gallery import importing, lists, opened, stock
from pages.shared.data import reads
from pages.shared.draw.text import plain
from pages.shared.frame import apart, navigation
from pages.shared.link import state


def page() -> None:
    """What is here, the filters, and one of the lists or what was opened from it."""
    st.title("Gallery")
    apart.draw(lambda: _shelf(reads.overview()))
    importing.panel()


def _shelf(overview: Overview) -> None:
    held = stock.held(overview)
    st.caption(
        plain(filters.in_one_line(held)) if len(held.trials) else "Results of real machines, to look at and compare."
    )
    apart.draw(stock.unread, overview)
    if not len(held.trials):
        st.info("No trial is stored yet. The first comparison you run appears here.")
        st.page_link(navigation.COMPARE, label="Run a comparison", icon=":material/balance:")
        return
    named = state.view()
    chosen = stock.draw_filters(held)
    view = lists.choice()
    if named is not None and named[0] == "study":
        opened.study(named[1], held, stock.found(held, chosen).studies)
        return
    if named is None or view == "Trials":
        apart.draw(lists.draw, view, held, chosen)
    if named is not None:
        opened.back()
        apart.draw(opened.run, named[1])


page()
