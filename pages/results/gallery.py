"""Gallery: every stored trial, from this machine and from others, to filter, open, put side by side and take along."""

import streamlit as st

from core.answer import holdings
from core.answer.overview import Overview
from pages.shared import apart, gallery_list, gallery_open, gallery_stock, importing, loaders, navigation, state
from pages.shared.text import plain


def page() -> None:
    """What is here, the filters, and one of the lists or what was opened from it."""
    st.title("Gallery")
    apart.draw(lambda: _shelf(loaders.overview()))
    importing.panel()


def _shelf(overview: Overview) -> None:
    of = gallery_stock.held(overview)
    st.caption(
        plain(holdings.in_one_line(of)) if len(of.trials) else "Results of real machines, to look at and compare."
    )
    apart.draw(gallery_stock.unread, overview)
    if not len(of.trials):
        _empty()
        return
    opened = state.view()
    chosen = gallery_stock.filters(of)
    view = gallery_list.choice()
    if opened is not None and opened[0] == "study":
        gallery_open.study(opened[1], of, gallery_stock.found(of, chosen).studies)
        return
    if opened is None or view == "Trials":
        apart.draw(gallery_list.draw, view, of, chosen)
    if opened is not None:
        gallery_open.back()
        apart.draw(gallery_open.run, opened[1])


def _empty() -> None:
    st.info("No trial is stored yet. The first comparison you run appears here.")
    st.page_link(navigation.COMPARE, label="Run a comparison", icon=":material/balance:")


page()
