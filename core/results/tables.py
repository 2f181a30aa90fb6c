"""Rows as tables of Arrow, and back as objects, with what they take in memory."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from core.results.schema import SCHEMA, TRIAL_COLUMNS, Trial

OBJECT_BYTES, BYTE_BYTES = 5_000, 4
"""Bytes of a row as an object, without its values, and of each byte that its values take in a table."""

ROWS_PER_BATCH = 256
"""Rows that become objects at a time: on the way they take twice as much."""


def to_table(trials: Sequence[Trial]) -> pa.Table:
    """Rows as an Arrow table of `SCHEMA`."""
    columns = {
        entry.name: pa.array([getattr(trial, entry.name) for trial in trials], type=entry.metadata["type"])
        for entry in TRIAL_COLUMNS
    }
    return pa.table(columns, schema=SCHEMA)


def from_table(table: pa.Table) -> list[Trial]:
    """Rows of a table of `SCHEMA`; lists come back as tuples. They take `object_bytes`, and little more on the way."""
    batches = table.to_batches(max_chunksize=ROWS_PER_BATCH)
    return [Trial(**_with_tuples(row)) for batch in batches for row in batch.to_pylist()]


def object_bytes(table: pa.Table) -> int:
    """Memory that rows take as objects of Python, about; several times what they take as a table."""
    return int(OBJECT_BYTES * table.num_rows + BYTE_BYTES * table.nbytes)


def _with_tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
