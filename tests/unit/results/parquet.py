"""Parquet files as someone else, an older or newer version, or an attacker would have made them."""

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from core.results.schema import SCHEMA, VERSION_KEY, Trial, to_table
from tests.rows import trial


def altered(
    trials: Sequence[Trial] = (), *, without: Sequence[str] = (), version: bytes | None = None, **columns: pa.Array
) -> bytes:
    """A file of `trials`, or of one ordinary row, that is changed in the named way.

    Args:
        trials: rows.
        without: columns that are left out.
        version: what the file says of its version; empty to say nothing.
        columns: put in place of those of the same name, with their own type, or behind them if they are new.
    """
    table = to_table(list(trials) or [trial()]).drop_columns(list(without))
    for name, values in columns.items():
        field = pa.field(name, values.type)
        place = table.schema.get_field_index(name)
        table = table.append_column(field, values) if place < 0 else table.set_column(place, field, values)
    metadata = SCHEMA.metadata if version is None else {VERSION_KEY: version} if version else None
    return in_parquet(table.replace_schema_metadata(metadata))


def in_parquet(table: pa.Table, **options: object) -> bytes:
    """A table as the bytes of a compressed file."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", **options)
    return buffer.getvalue()
