"""Tables on a page: every text in them cleaned, since a click makes a file for spreadsheets of a table."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import streamlit as st

from core.text import as_label, to_table_cell
from pages.shared.cache import cache_answers

Rows: TypeAlias = Sequence[Mapping[str, Any]] | Mapping[str, Iterable[Any]] | pa.Table
"""A line each, or a column each."""

EDGES, LETTER, CAPITAL = 18, 5.5, 7.4
"""Pixels that a cell of a table has around its text, and that a letter takes, or a capital or a digit, on average."""


def draw_table(rows: Rows, *, alt: str, place: Any = st, **options: Any) -> None:
    """Draw a table without the numbers of its lines; `alt` says what it shows, for who cannot see it.

    Texts and the names of columns may be anybody's; columns that are configured are named as in `rows`.
    """
    if "column_config" in options:
        options["column_config"] = {to_table_cell(name): entry for name, entry in options["column_config"].items()}
    cleaned = _pack_table(id(rows), rows)[1] if isinstance(rows, pa.Table) else _clean_lines(rows)
    place.dataframe(cleaned, hide_index=True, alt=as_label(alt), **options)


def measure_column(texts: Iterable[str]) -> int:
    """Pixels of a column that shows the longest of these texts whole.

    By itself a table takes a text that is much longer than the others for an exception, and cuts it.
    """
    return math.ceil(EDGES + max(map(_measure_text, texts), default=0.0))


def _measure_text(text: str) -> float:
    wide = sum(letter.isupper() or letter.isdigit() for letter in text)
    return CAPITAL * wide + LETTER * (len(text) - wide)


@cache_answers(32)
def _pack_table(key: int, _rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The table of this identity, which is made once for all visitors, and as it is drawn.

    The first is kept so that no other can take its place; where nothing has to change, both are the same.
    """
    lines = _rows.to_pylist()
    return _rows, _rows if (cleaned := _clean_lines(lines)) == lines else pa.Table.from_pylist(cleaned)


def _clean_lines(rows: Sequence[Mapping[str, Any]] | Mapping[str, Iterable[Any]]) -> Any:
    if isinstance(rows, Mapping):
        return {to_table_cell(name): [to_table_cell(value) for value in column] for name, column in rows.items()}
    return [{to_table_cell(name): to_table_cell(value) for name, value in line.items()} for line in rows]
