"""Files of rows as others may have written them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.results.parquet import to_table
from core.results.schema import SCHEMA, VERSION_KEY
from core.results.store import Store
from tests.rows import trial

OTHER_RUN = "ba9876543210"


def put(store: Store, table: pa.Table, name: str = "foreign.parquet") -> Path:
    """A file that did not come through `add`."""
    store.folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, store.folder / name)
    return store.folder / name


def having(name: str, column: pa.Array | list[Any], table: pa.Table | None = None) -> pa.Table:
    """A table of one row, or `table`, with one column put in the place of another, whatever its type."""
    table = to_table([trial()]) if table is None else table
    values = column if isinstance(column, pa.Array | pa.ExtensionArray) else pa.array(column, SCHEMA.field(name).type)
    return table.set_column(SCHEMA.get_field_index(name), name, values)


def of_version(table: pa.Table, version: bytes) -> pa.Table:
    return table.replace_schema_metadata({VERSION_KEY: version})
