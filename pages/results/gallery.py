"""Gallery: every stored trial, from this machine and from others, to filter, open and take along."""

import streamlit as st

from core.answer.charts import gallery
from pages.shared import listing, loaders, navigation, result, state
from pages.shared.text import plain


def page() -> None:
    """Filters, the chart, the table, and the run that was opened."""
    st.title("Gallery")
    st.caption("Every trial that was measured here, imported, or came with the app. Select a row to open its run.")
    shelf = loaders.shelf()
    _unread(shelf)
    if not shelf.entries:
        st.info("No trial is stored yet. The first comparison you run appears here.")
        st.page_link(navigation.COMPARE, label="Run a comparison", icon=":material/balance:")
        return
    shown = listing.filtered(shelf.entries)
    st.caption(f"{len(shown):,} of {len(shelf.entries):,} trials")
    if shown:
        trials = [entry.trial for entry in shown]
        spec = loaders.chart(gallery.step_times, trials)
        st.vega_lite_chart(spec, width="stretch", height=result.CURVE_HEIGHT, alt="Time per step by parameters")
        listing.table(shown)
        result.downloads(trials, name="crossover-gallery")
    _opened(shelf)


def _opened(shelf: loaders.Shelf) -> None:
    run_id = state.opened_run()
    if run_id is None:
        return
    trials = shelf.run(run_id)
    if not trials:
        st.warning(f"There is no run {run_id} here; it was measured elsewhere, or its files were removed.")
        return
    st.header("Run")
    result.heading(trials)
    asked = result.experiment_of(trials)
    if asked and st.button("Set this up in Compare", icon=":material/balance:"):
        state.arrive(asked)
        st.switch_page(navigation.COMPARE, query_params=state.settings(asked))
    result.draw(trials)


def _unread(shelf: loaders.Shelf) -> None:
    for name in shelf.newer:
        st.warning(plain(f"{name} was written by a newer version; what this version knows of it is shown."))
    if shelf.skipped:
        with st.expander(f"{len(shelf.skipped)} files could not be read"):
            st.dataframe([{"File": file.name, "Reason": file.reason} for file in shelf.skipped], hide_index=True)


page()
