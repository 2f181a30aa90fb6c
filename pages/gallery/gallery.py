"""Gallery: every stored trial, from this machine and from others, to filter, open, put side by side and take along."""

import streamlit as st

from core.answer.gallery import filters
from core.answer.gallery.table import Overview
from pages.gallery import importing, lists, stock
from pages.gallery import opened as gallery_open
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
    of = stock.held(overview)
    st.caption(
        plain(filters.in_one_line(of)) if len(of.trials) else "Results of real machines, to look at and compare."
    )
    apart.draw(stock.unread, overview)
    if not len(of.trials):
        _empty()
        return
    opened = state.view()
    chosen = stock.filters(of)
    view = lists.choice()
    if opened is not None and opened[0] == "study":
        gallery_open.study(opened[1], of, stock.found(of, chosen).studies)
        return
    if opened is None or view == "Trials":
        apart.draw(lists.draw, view, of, chosen)
    if opened is not None:
        gallery_open.back()
        apart.draw(gallery_open.run, opened[1])


def _empty() -> None:
    st.info("No trial is stored yet. The first comparison you run appears here.")
    st.page_link(navigation.COMPARE, label="Run a comparison", icon=":material/balance:")


page()
