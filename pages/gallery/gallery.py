"""Gallery: stored trials of this and other machines, and published studies, to filter, open and export."""

import streamlit as st

from core.answer.gallery.overview import GalleryData, Overview, gallery_summary
from pages.gallery import lists, view
from pages.shared import layout, links, queries, session
from pages.shared.elements import plain

NOTHING_YET = (
    "No trial is stored yet. Your first comparison appears here. Figures published by others are under Published."
)

CONTROLS = ("view", "filters")
"""Controls of the list, hidden while an item is open: they would push its answer down."""


def draw_gallery_page() -> None:
    """Draw the overview and the chosen list with its filters, or the open item."""
    st.title("Gallery")
    layout.draw_isolated(lambda: _draw_gallery(queries.read_overview()))
    lists.draw_import()


def _draw_gallery(overview: Overview) -> None:
    held = lists.read_contents(overview)
    st.caption(plain(gallery_summary(held)) if len(held.trials) else "Browse and compare results of real machines.")
    layout.draw_isolated(lists.draw_unread_files, overview)
    named = session.read_view()
    if named is not None and named[1] in view.list_published():
        view.draw_published_study(named[1], held)
        return
    kind = lists.choose_list()
    if kind == "Published" and named is None:
        view.draw_published_cards()
    elif len(held.trials):
        _draw_stored(kind, held, named)
    else:
        st.info(NOTHING_YET)
        st.page_link(layout.EXPLORE, label="Run a comparison", icon=":material/balance:")


def _draw_stored(kind: lists.View, contents: GalleryData, item: tuple[links.Kind, str] | None) -> None:
    chosen = lists.draw_filters(lists.list_options(contents, answers=kind == "Studies"))
    if item is not None and (item[0] == "study" or kind != "Trials"):
        layout.put_away(CONTROLS)
    if item is not None and item[0] == "study":
        view.draw_opened_study(item[1], contents, lists.select_contents(contents, chosen).studies)
        return
    if item is None or kind == "Trials":
        layout.draw_isolated(lists.draw_list, kind, contents, chosen)
    if item is not None:
        lists.draw_back_button()
        layout.draw_isolated(view.draw_opened_run, item[1])


draw_gallery_page()
