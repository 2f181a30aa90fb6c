"""Stored trials as a list: filters in the link, a table, and the row that opens its run."""

from collections.abc import Sequence

import streamlit as st

from pages.shared import state
from pages.shared.loaders import Entry
from pages.shared.text import moment

LABELS = {
    "in_dataset": "Dataset",
    "in_model": "Model",
    "in_kind": "Device kind",
    "in_machine": "Machine",
    "in_outcome": "Outcome",
    "in_source": "Source",
}


def filtered(entries: Sequence[Entry]) -> list[Entry]:
    """The entries that every filter lets through; a filter without a choice lets all through."""
    chosen: dict[str, list[str]] = {}
    for column, (key, label) in zip([*st.columns(3), *st.columns(3)], LABELS.items(), strict=True):
        options = sorted({entry.facets[key] for entry in entries})
        chosen[key] = column.multiselect(label, options, key=key, placeholder="all", bind="query-params")
    return [entry for entry in entries if all(not some or entry.facets[key] in some for key, some in chosen.items())]


def table(entries: Sequence[Entry]) -> None:
    """Draw the entries; selecting one puts its run into the link."""
    rows = [
        {
            "Measured (UTC)": moment(entry.trial.started_at),
            "Dataset": entry.trial.dataset,
            "Model": entry.trial.model,
            "Parameters": entry.trial.parameters,
            "Batch": entry.trial.batch_size,
            "Device": entry.trial.contender,
            "Name": entry.trial.device_name,
            "Step (ms)": entry.step_s * 1e3 if entry.step_s else None,
            "Outcome": entry.trial.outcome,
            "Source": entry.facets["in_source"],
        }
        for entry in entries
    ]
    config = {
        "Measured (UTC)": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm", timezone="UTC"),
        "Parameters": st.column_config.NumberColumn(format="localized"),
        "Step (ms)": st.column_config.NumberColumn(format="%.4g"),
    }
    st.dataframe(
        rows,
        hide_index=True,
        key="gallery_rows",
        on_select=lambda: _select([entry.trial.run_id for entry in entries]),
        selection_mode="single-row",
        column_config=config,
        alt="Stored trials",
    )


def _select(run_ids: Sequence[str]) -> None:
    rows = st.session_state["gallery_rows"]["selection"]["rows"]
    state.open_run(run_ids[rows[0]] if rows else None)
