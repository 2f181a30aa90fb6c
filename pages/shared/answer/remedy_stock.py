"""Remedies that the store already has rows of, and the crossover of best lanes, worked out once for all visitors."""

import functools
from collections.abc import Sequence

import streamlit as st
from pandas import DataFrame

from core.answer import comparable
from core.answer.run import remedies
from core.answer.run.remedies import Remedy
from core.answer.study import best_lanes as best
from core.answer.study.best_lanes import Pick
from core.answer.study.result import Basis
from core.answer.study.study import Study
from core.results.schema import Trial
from pages.shared.data import reads
from pages.shared.data.prepared import Located

MOST = 50
"""Rows of other settings that are read at most, the newest first."""


def apart(row: Trial) -> tuple[Remedy, ...]:
    """What another data path or batch size did on the machine of a row.

    Raises:
        StoreError: the store cannot be read.
    """
    overview = reads.overview()
    return _apart(id(overview.frame), row.trial_id, len(row.block_pair), overview.frame, row)[1]


def best_lanes(of: Study, picks: Sequence[Pick], basis: Basis) -> Located:
    """The crossover of the lanes that were picked at each size, with its charts.

    Raises:
        CrossoverError: the rows cannot be compared.
    """
    key = hash(tuple((pick.size, pick.baseline, pick.challenger) for pick in picks))
    return _best_lanes(key, of.id, basis, of, picks)


@st.cache_resource(max_entries=64, show_spinner=False)
def _apart(
    key: int, trial_id: str, blocks: int, _frame: DataFrame, _row: Trial
) -> tuple[DataFrame, tuple[Remedy, ...]]:
    lines = _alike(_frame, _row)
    return _frame, remedies.apart(_row, reads.rows(trial_ids=lines)) if lines else ()


def _alike(table: DataFrame, row: Trial) -> list[str]:
    """Names of the rows that differ from one in how data reach the device, or in the batch size."""
    fixed = [name for name in comparable.REMEDY if name not in (*comparable.DATA, "batch_size")]
    masks = (table[name] == getattr(row, name) for name in (*fixed, "origin") if name in table)
    found = table.loc[functools.reduce(lambda one, other: one & other, masks) & (table["pairs"] > 0)]
    lines = [line for line in found.itertuples(index=False) if remedies.differs(row, line)]
    return [str(line.trial_id) for line in lines[:MOST]]


@st.cache_resource(max_entries=64, show_spinner=False)
def _best_lanes(key: int, study_id: str, basis: Basis, _of: Study, _picks: Sequence[Pick]) -> Located:
    answer, evidence = best.crossover(_of, _picks, basis)
    kinds = (_of.runs[0][0].device_kind, _of.runs[0][1].device_kind)
    return Located(answer=answer, evidence=tuple(evidence), kinds=kinds)
