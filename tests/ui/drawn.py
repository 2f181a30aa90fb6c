"""Everything that a page has sent to the browser: what is Markdown, what is shown as it is, what is in tables."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google.protobuf.message import Message
from streamlit.testing.v1 import AppTest

AS_IT_IS = {
    *("Text.body", "Code.code_text", "Selectbox.options", "MultiSelect.options", "Slider.options", "Html.body"),
    *("TextInput.placeholder", "TextArea.placeholder", "Selectbox.placeholder", "MultiSelect.placeholder"),
    *("Arrow.alt", "VegaLiteChart.alt", "ArrowVegaLiteChart.alt", "Dataframe.alt"),
}
"""Fields whose text a browser shows as it is, or keeps to itself; every other text may be Markdown."""

UNREAD = {"id", "form_id", "element_id", "url", "url_path", "query_params", "key", "spec", "columns", "selection_mode"}
UNREAD |= {"page_script_hash", "page", "command", "value", "set_value", "default", "raw_values", "icon", "query_string"}
UNREAD |= {
    "js_content",
    "css_content",
    "component_name",
    "query_param_key",
    "theme",
    "type",
    "color",
    "language",
    "raw_value",
    "string_value",
    "user_key",
}
"""Names of fields that nobody reads; of what was typed or chosen, the browser has it from its own visitor."""


@dataclass(frozen=True)
class Drawn:
    """A text that was sent.

    Attributes:
        field: kind of its element and name of its field.
        text: as it was sent.
        markdown: whether a browser reads it as Markdown.
    """

    field: str
    text: str
    markdown: bool


def texts(app: AppTest) -> list[Drawn]:
    """Every text of a page but those in tables and charts."""
    return [drawn for node in _nodes(app) for drawn in _texts(getattr(node, "proto", None))]


def tables(app: AppTest) -> list[pa.Table]:
    """What a page shows as tables, and the rows of its charts, which can be looked at as a table too."""
    sent = (data for node in _nodes(app) for data in _bytes(getattr(node, "proto", None)))
    return [pa.ipc.open_stream(data).read_all() for data in sent]


def _nodes(app: AppTest) -> Iterator[Any]:
    def below(node: Any) -> Iterator[Any]:
        yield node
        for child in getattr(node, "children", {}).values():
            yield from below(child)

    return below(app._tree)


def _texts(proto: Any) -> Iterator[Drawn]:
    if not isinstance(proto, Message):
        return
    for descriptor, value in proto.ListFields():
        values = value if _repeated(descriptor) else [value]
        for one in values:
            if isinstance(one, Message):
                yield from _texts(one)
            elif isinstance(one, str) and descriptor.name not in UNREAD:
                field = f"{proto.DESCRIPTOR.name}.{descriptor.name}"
                if field == "BidiComponent.json":  # whose script makes text of it, and no markup
                    yield from (Drawn(field=field, text=text, markdown=False) for text in _words(json.loads(one)))
                    continue
                yield Drawn(field=field, text=one, markdown=field not in AS_IT_IS)


def _words(picture: Any) -> Iterator[str]:
    """Every text of a picture but the name of its axis, which nobody reads."""
    if isinstance(picture, dict):
        for name, part in picture.items():
            yield from () if name == "part_colours" else _words({**part, "name": ""} if name == "axis" else part)
    elif isinstance(picture, list):
        for part in picture:
            yield from _words(part)
    elif isinstance(picture, str):
        yield picture


def _bytes(proto: Any) -> Iterator[bytes]:
    if not isinstance(proto, Message):
        return
    for descriptor, value in proto.ListFields():
        for one in value if _repeated(descriptor) else [value]:
            if isinstance(one, Message):
                yield from _bytes(one)
            elif isinstance(one, bytes) and one:
                yield one


def _repeated(descriptor: Any) -> bool:
    return bool(descriptor.is_repeated)


def cells(app: AppTest) -> list[str]:
    """Every text in the tables of a page, names of columns included, and in the rows of its charts."""
    return [text for table in tables(app) for text in (*table.column_names, *said(table))]


def said(table: pa.Table) -> list[str]:
    """Every text in the cells of a table."""
    return [value for column in table.columns for value in column.to_pylist() if isinstance(value, str)]


def specs(app: AppTest) -> list[Any]:
    """The charts of a page without their rows."""
    return [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]


def charted(app: AppTest) -> list[pa.Table]:
    """The rows of each chart of a page."""
    return [pa.ipc.open_stream(chart.proto.data.data).read_all() for chart in app.get("vega_lite_chart")]
