"""Charts on a page: a specification drawn with its rows packed once, however many visitors look at it."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import streamlit as st


def chart(spec: Mapping[str, Any], *, alt: str, place: Any = st, height: Any = "content") -> None:
    """Draw a finished chart.

    Streamlit sends rows as an Arrow table. It would make one of a list anew at every run of a page, which takes longer
    than all else of a chart; here it is made once and kept with the list that it was made of.

    Args:
        spec: made by `core.answer.charts`, and never changed afterwards.
        alt: what the chart shows, for who cannot see it.
        place: where it is drawn.
        height: as in `st.vega_lite_chart`; None for what the specification says.
    """
    values = spec["data"]["values"]
    options = {} if height is None else {"height": height}
    place.vega_lite_chart({**spec, "data": _packed(id(values), values)[1]}, width="stretch", alt=alt, **options)


@st.cache_resource(max_entries=256, show_spinner=False)
def _packed(key: int, _values: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], pa.Table]:
    """Of the list of this identity; it is kept, so that no other can take its place."""
    return _values, pa.Table.from_pandas(pd.DataFrame(_values), preserve_index=False)
