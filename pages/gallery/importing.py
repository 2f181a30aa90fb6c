"""How rows of another machine come in: a file is checked, what it would add is shown, and a click keeps it."""

import streamlit as st

from core import units
from core.errors import CrossoverError
from core.results.intake import exchange
from core.results.intake.exchange import Proposal
from core.text import as_lines
from pages.shared.data import reads
from pages.shared.draw import tables
from pages.shared.draw.text import date, plain
from pages.shared.frame import permits
from pages.shared.link import state

MOST_LINES = 100
"""New rows that are listed; a file may have thousands."""

FACTS = ("contender", "device_name", "dataset", "model", "parameters", "outcome", "cpu_name", "started_at")


def panel() -> None:
    """Take a file, unless this host takes none."""
    with st.expander("Add rows of another machine", icon=":material/upload_file:", **state.bound_view("add")):
        if reason := permits.may_import():
            st.text(as_lines(reason))
            return
        st.caption(
            "A parquet file that this page or the command line of another machine wrote. It is checked as a whole "
            "before anything of it is shown. Its rows stay marked as imported; rows measured here are never replaced."
        )
        file = st.file_uploader("Parquet file", type="parquet", key="import_file")
        if file is not None:
            _offer(file.getvalue(), file.name)
        st.caption("The same on the command line, for larger files:")
        st.code("python -m core store import rows.parquet", language="bash")


def _offer(data: bytes, name: str) -> None:
    try:
        proposal = reads.proposal(data, name)
    except CrossoverError as error:
        st.error(plain(str(error)))
        return
    if proposal.refused:
        st.error(plain(f"{proposal.refused[0].name} is not taken: {proposal.refused[0].reason}."))
        return
    new, known = proposal.new.num_rows, proposal.duplicates
    st.markdown(f"**{_counted(new)} would be added**, {_counted(known)} of the file are here already.")
    if new:
        _preview(proposal)
        st.button(f"Keep {_counted(new)}", key="import_keep", type="primary", on_click=_keep, args=(proposal,))


def _preview(proposal: Proposal) -> None:
    lines = proposal.new.slice(0, MOST_LINES).select(FACTS).to_pylist()
    shown = [
        {
            "Device": line["contender"],
            "Name": line["device_name"],
            "Data set": line["dataset"],
            "Model": line["model"],
            "Parameters": units.count(line["parameters"]),
            "Outcome": line["outcome"],
            "Machine": line["cpu_name"],
            "Measured": date(line["started_at"]),
        }
        for line in lines
    ]
    tables.table(shown, alt="Rows that would be added")
    if proposal.new.num_rows > MOST_LINES:
        st.caption(f"These are the first {MOST_LINES}.")


def _keep(proposal: Proposal) -> None:
    if reason := permits.may_import():
        st.toast(plain(reason))
        return
    try:
        report = exchange.keep(proposal, reads.results())
    except CrossoverError as error:
        st.toast(plain(str(error)), icon=":material/error:")
        return
    st.toast(f"{_counted(report.added)} added.", icon=":material/check:")


def _counted(number: int) -> str:
    return f"{number:,} row" if number == 1 else f"{number:,} rows"
