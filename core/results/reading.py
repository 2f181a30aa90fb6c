"""One file of rows, checked before and while it is decoded: torn, foreign and hostile ones are refused with a reason.

A file is only ever data: nothing in it is unpickled or run, and what it claims of its size is not believed. Where
files lie, and which of their rows count, is the business of `core.results.store`.
"""

import dataclasses
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import ForeignFile
from core.results.schema import COLUMNS, DEVICE_KINDS, OUTCOMES, SCHEMA, VERSION_KEY

MAX_FILE_BYTES = 64 * 2**20
MAX_ROWS = 200_000
MAX_COLUMNS = 500
MAX_TABLE_BYTES = 512 * 2**20
MAX_LIST = 1_000_000
"""Bounds of a file that is read. Ours have one row, compacted ones some thousand; a compressed bomb has more."""

BATCH_ROWS = 256
"""Rows decoded at once, at most; what a file declares of its size need not be true, so the decoded size is watched."""

_BLOCK_LISTS = tuple(c.name for c in COLUMNS if c.name.startswith("block_") and c.name != "block_clock_mhz")
_WARM_UP_LISTS = ("warmup_steps", "warmup_s")
_LOSS_LISTS = ("loss_step", "loss")
_EQUALLY_LONG = (_BLOCK_LISTS, _WARM_UP_LISTS, _LOSS_LISTS)
_AT_LEAST_ONE = ("block_steps", "warmup_steps", "steps_per_epoch", "batch_size", "samples", "epochs", "parameters")
_MAY_BE_ANY_NUMBER = ("loss",)
"""Losses may be NaN or infinite; no other number may, and none but these may be negative."""


def read_file(source: Path | pa.BufferReader) -> tuple[int, pa.Table]:
    """One file, checked before and while it is decoded.

    Args:
        source: a file, or the bytes of one.

    Returns:
        The version it was written with, and its rows, of `SCHEMA`.

    Raises:
        ForeignFile: it is torn, not ours, too large, or holds values that cannot be.
        OSError: the system does not let it be read.
    """
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            version, claimed_bytes = _check_outside(file)
            table = _decode(file, claimed_bytes)
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # pyarrow raises OSError for broken bytes too
            raise
        raise ForeignFile("it is torn or not a parquet file") from error
    table = _complete(table)
    _check_values(table)
    return version, table


def _check_outside(file: pq.ParquetFile) -> tuple[int, int]:
    """Refuse by what the file says of itself; returns its version and its claimed bytes before compression."""
    facts, schema = file.metadata, file.schema_arrow
    text = (schema.metadata or {}).get(VERSION_KEY, b"")
    if not re.fullmatch(rb"\d{1,6}", text):
        raise ForeignFile("it was not written by Crossover")
    if facts.num_rows > MAX_ROWS or facts.num_columns > MAX_COLUMNS:
        raise ForeignFile(f"it claims {facts.num_rows:,} rows of {facts.num_columns:,} columns, more than are read")
    # not from the columns' own metadata: on broken ones pyarrow ends the process instead of raising
    claimed = sum(facts.row_group(index).total_byte_size for index in range(facts.num_row_groups))
    if claimed > MAX_TABLE_BYTES:
        raise ForeignFile(f"it claims {claimed:,} bytes, more than the {MAX_TABLE_BYTES:,} that are read")
    _check_types(schema)
    return int(text), claimed


def _check_types(schema: pa.Schema) -> None:
    for wanted in SCHEMA:
        places = schema.get_all_field_indices(wanted.name)
        if len(places) > 1:
            raise ForeignFile(f"it has the column {wanted.name} {len(places)} times")
        if places and schema.field(places[0]).type != wanted.type:
            raise ForeignFile(f"its column {wanted.name} is {schema.field(places[0]).type}, not {wanted.type}")


def _decode(file: pq.ParquetFile, claimed_bytes: int) -> pa.Table:
    """The known columns; so many rows at once that even if each held all the claimed bytes they would fit."""
    present = set(file.schema_arrow.names)
    columns = [name for name in SCHEMA.names if name in present]
    rows = max(1, min(BATCH_ROWS, MAX_TABLE_BYTES // max(1, claimed_bytes)))
    size, batches = 0, []
    for batch in file.iter_batches(batch_size=rows, columns=columns, use_threads=False):
        size += batch.nbytes
        if size > MAX_TABLE_BYTES:
            raise ForeignFile(f"it unpacks to more than the {MAX_TABLE_BYTES:,} bytes that are read")
        batch.validate(full=True)  # text need not be UTF-8 otherwise
        batches.append(batch)
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    table = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema=schema)
    if table.num_rows != file.metadata.num_rows:  # pyarrow ends at a damaged page as if it were the last
        raise ForeignFile(f"it claims {file.metadata.num_rows:,} rows and has {table.num_rows:,}")
    return table


def _complete(table: pa.Table) -> pa.Table:
    """Columns that an older version did not have get their default; a value that nothing stands for is refused."""
    present, columns = dict(zip(table.column_names, table.columns, strict=True)), []
    for entry in COLUMNS:
        kind, default = entry.metadata["type"], _default(entry)
        column = present[entry.name] if entry.name in present else pa.nulls(table.num_rows, kind)
        if column.null_count and default is dataclasses.MISSING:
            raise ForeignFile(f"its column {entry.name} has no value")
        if column.null_count and default is not None:
            column = pc.coalesce(column, pa.scalar(list(default) if isinstance(default, tuple) else default, kind))
        columns.append(column)
    return pa.table(columns, schema=SCHEMA)


def _default(entry: "dataclasses.Field[object]") -> object:
    factory = entry.default_factory
    return entry.default if factory is dataclasses.MISSING else factory()


def _check_values(table: pa.Table) -> None:
    """Refuse rows that no measurement can have written."""
    for name, words in (("outcome", OUTCOMES), ("device_kind", DEVICE_KINDS)):
        known = pc.is_in(table[name], value_set=pa.array(list(words)))
        if not pc.all(known, min_count=0).as_py():
            raise ForeignFile(f"its column {name} has a value that is none of {', '.join(words)}")
    for names in _EQUALLY_LONG:
        lengths = [pc.list_value_length(table[name]) for name in names]
        if any(pc.any(pc.not_equal(lengths[0], other)).as_py() for other in lengths[1:]):
            raise ForeignFile(f"its lists {', '.join(names)} are not equally long")
    for field in SCHEMA:
        _check_numbers(field, table[field.name])
    for name in _AT_LEAST_ONE:
        if pc.any(pc.less(_values(table[name]), 1), min_count=0).as_py():
            raise ForeignFile(f"its column {name} has a value below 1")
    if pc.any(pc.less_equal(_values(table["block_end_ns"]), _values(table["block_begin_ns"])), min_count=0).as_py():
        raise ForeignFile("it has a block that does not end after it begins")


def _values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.list_flatten(column) if pa.types.is_list(column.type) else column


def _check_numbers(field: pa.Field, column: pa.ChunkedArray) -> None:
    kind = field.type
    if pa.types.is_list(kind):
        if (pc.max(pc.list_value_length(column)).as_py() or 0) > MAX_LIST:
            raise ForeignFile(f"its list {field.name} has more than {MAX_LIST:,} entries")
        column, kind = pc.list_flatten(column), kind.value_type
        if column.null_count:
            raise ForeignFile(f"its list {field.name} has an entry without a value")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) or field.name in _MAY_BE_ANY_NUMBER:
        return
    if pa.types.is_floating(kind) and not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise ForeignFile(f"its column {field.name} has a value that is not a finite number")
    if pc.any(pc.less(column, 0), min_count=0).as_py():
        raise ForeignFile(f"its column {field.name} has a negative value")
