"""Which recorded accelerators the store and the gallery have, worked out once for all visitors.

Caches are keyed by the object that their content follows from, and hold on to it, so that no other object can take
its place.
"""

import streamlit as st

from core.answer.gallery.table import Overview
from core.answer.study import two_machines
from core.answer.study.recorded import COLUMNS, Accelerator, accelerators
from core.answer.study.result import Basis
from core.answer.study.two_machines import Meeting
from pages.shared.data import reads
from pages.shared.data.prepared import Located


def known(but: str) -> tuple[Accelerator, ...]:
    """Every accelerator that something was timed on.

    Args:
        but: id of a machine whose accelerators are left out.

    Raises:
        StoreError: the store cannot be read.
    """
    overview = reads.overview()
    return _known(id(overview), but, overview)[1]


def meeting(of: Meeting, basis: Basis) -> Located:
    """The answer of two machines on a cost basis, with what it rests on and its charts.

    Raises:
        CrossoverError: its rows cannot be compared.
    """
    return _meeting(of.id, tuple(len(row.block_steps) for row in of.measured), basis, of)


@st.cache_resource(max_entries=8, show_spinner=False)
def _known(key: int, but: str, _overview: Overview) -> tuple[Overview, tuple[Accelerator, ...]]:
    frame = _overview.frame
    timed = frame.loc[(frame["device_kind"] != "cpu") & (frame["pairs"] > 0), list(COLUMNS)]
    return _overview, accelerators(timed.itertuples(index=False), but=but)


@st.cache_resource(max_entries=256, show_spinner=False)
def _meeting(key: str, blocks: tuple[int, ...], basis: Basis, _of: Meeting) -> Located:
    answer, evidence = two_machines.crossover(_of, basis), two_machines.evidence(_of, basis)
    kinds = (_of.measured[-1].device_kind, _of.recorded[-1].device_kind)
    return Located(answer=answer, evidence=tuple(evidence), kinds=kinds, recorded=True)
