"""How rows of another machine come in: a file is checked, what it would add is shown, and a click keeps it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from core import units
from core.question.experiment import titled
from core.question.fields import label
from core.results.intake import exchange
from core.results.intake.exchange import Proposal
from core.text import as_lines
from pages.shared.data import reads
from pages.shared.draw import tables
from pages.shared.draw.text import format_date, plain, show_errors
from pages.shared.frame import permits
from pages.shared.link import state

MAX_PREVIEW_LINES = 100
"""New rows that are listed; a file may have thousands."""

FACTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "Device": ("contender", titled),
    "Name": ("device_name", str),
    "Data set": ("dataset", partial(label, "dataset")),
    "Model": ("model", partial(label, "model")),
    "Parameters": ("parameters", units.count),
    "Outcome": ("outcome", partial(label, "outcome")),
    "Machine": ("cpu_name", str),
    "Measured": ("started_at", format_date),
}
"""Title → column of a row, and how it is written."""


def draw_import() -> None:
    """Take a file, unless this host takes none."""
    with st.expander("Add rows of another machine", icon=":material/upload_file:", **state.bind_view("add")):
        if reason := permits.may_import():
            st.text(as_lines(reason))
            return
        st.caption(
            "A parquet file that this page or the command line of another machine wrote. It is checked as a whole "
            "before anything of it is shown. Its rows stay marked as imported; rows measured here are never replaced."
        )
        file = st.file_uploader("Parquet file", type="parquet", key="import_file")
        if file is not None:
            _offer_import(file.getvalue(), file.name)
        st.caption("The same on the command line, for larger files:")
        st.code("python -m core store import rows.parquet", language=None, wrap_lines=True)


@show_errors()
def _offer_import(data: bytes, name: str) -> None:
    proposal = reads.propose_import(data, name)
    if proposal.refused:
        st.error(plain(f"{proposal.refused[0].name} is not taken: {proposal.refused[0].reason}."))
        return
    new, known = proposal.new.num_rows, proposal.duplicates
    added = units.counted(new, "row")
    there = f", {units.counted(known, 'row')} of the file {'is' if known == 1 else 'are'} here already" if known else ""
    st.markdown(f"**{added} would be added**{there}." if new else "All rows of the file are here already.")
    if new:
        _draw_preview(proposal)
        st.button(f"Keep {added}", key="import_keep", type="primary", on_click=_keep_import, args=(proposal,))


def _draw_preview(proposal: Proposal) -> None:
    lines = proposal.new.slice(0, MAX_PREVIEW_LINES).select([column for column, _ in FACTS.values()]).to_pylist()
    shown = [{title: written(line[column]) for title, (column, written) in FACTS.items()} for line in lines]
    tables.draw_table(shown, alt="Rows that would be added")
    if proposal.new.num_rows > MAX_PREVIEW_LINES:
        st.caption(f"These are the first {MAX_PREVIEW_LINES}.")


def _keep_import(proposal: Proposal) -> None:
    if reason := permits.may_import():
        st.toast(plain(reason))
        return
    with show_errors(partial(st.toast, icon=":material/error:")):
        report = exchange.keep(proposal, reads.open_store())
        st.toast(f"{units.counted(report.added, 'row')} added.", icon=":material/check:")
