"""Charts on a page: a specification drawn with its rows packed once, however many visitors look at it."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import streamlit as st

from core.text import as_label, to_table_cell
from pages.shared.cache import cache_answers


def draw_chart(spec: Mapping[str, Any], *, alt: str, place: Any = st, height: Any = "content") -> None:
    """Draw a finished chart, never changed afterwards; `alt` says what it shows, for who cannot see it.

    Streamlit sends rows as an Arrow table. It would make one of a list anew at every run of a page, which takes longer
    than all else of a chart; here it is made once and kept with the list that it was made of. A click makes a file for
    spreadsheets of the rows, so their texts are cleaned as those of a table are.

    Without a height, the chart has that of its specification.
    """
    values = spec["data"]["values"]
    options = {} if height is None else {"height": height}
    place.vega_lite_chart(_pack_chart(id(values), values, spec)[1], width="stretch", alt=as_label(alt), **options)


@cache_answers(256)
def _pack_chart(
    key: int, _values: list[dict[str, Any]], _spec: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The chart whose rows are the list of this identity; the list is kept, so that no other can take its place."""
    texts = {value for row in _values for value in row.values() if isinstance(value, str)}
    names = {text: clean for text in texts if (clean := to_table_cell(text)) != text}
    frame, rows = ({name: part for name, part in _spec.items() if name != "data"}, _values)
    if names:
        frame, rows = (_rename_values(part, names) for part in (frame, rows))
    return _values, {**frame, "data": pa.Table.from_pandas(pd.DataFrame(rows), preserve_index=False)}


def _rename_values(part: Any, names: Mapping[str, Any]) -> Any:
    """Rows, or a part of a specification, with other names for what is in the rows; in its expressions too."""
    match part:
        case str():
            for old, new in () if part in names else names.items():
                part = part.replace(json.dumps(old), json.dumps(new))
            return names.get(part, part)
        case Mapping():
            return {name: _rename_values(entry, names) for name, entry in part.items()}
        case list() | tuple():
            return [_rename_values(entry, names) for entry in part]
    return part
