"""One file of rows, checked before and while it is decoded: torn, foreign and hostile ones are refused with a reason.

A file is only ever data: nothing in it is unpickled or run, and what it claims of its size is not believed. All of it
is read, or some columns of some row groups: what is decoded is checked. Where files lie, and which of their rows count,
is the business of `core.results.store`.
"""

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

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
MAX_TEXT_BYTES = 20_000
"""Bounds of a file that is read. Ours have one row, compacted ones some thousand; a compressed bomb has more."""

BATCH_ROWS = 256
"""Rows decoded at once, at most; what a file declares of its size need not be true, so the decoded size is watched."""

_BLOCK_LISTS = tuple(c.name for c in COLUMNS if c.name.startswith("block_") and c.name != "block_clock_mhz")
_WARM_UP_LISTS = ("warmup_steps", "warmup_s")
_LOSS_LISTS = ("loss_step", "loss")
_EQUALLY_LONG = (_BLOCK_LISTS, _WARM_UP_LISTS, _LOSS_LISTS)
_AT_LEAST_ONE = ("block_steps", "warmup_steps", "steps_per_epoch", "batch_size", "samples", "epochs", "parameters")
_CLOCK = ("block_begin_ns", "block_end_ns")
_MAY_BE_ANY_NUMBER = ("loss", "lane_loss", "reference_loss")
"""Losses may be NaN or infinite; no other number may, and none but these may be negative."""

_LARGEST = 2**60
"""No count, time or size comes near it, and what is computed from such numbers would not be one any more."""

_TYPE_LENGTH = 80
"""Characters of a foreign type that are quoted; nested ones name their fields, at any length."""


Source: TypeAlias = Path | pa.BufferReader


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What was read of a file.

    Attributes:
        version: of the schema that it was written with.
        groups: number of rows of each row group of the file, whether it was read or not.
        table: the columns that were asked for, as `SCHEMA` has them, of the row groups that were asked for.
        whole: whether the file has no column that is not known here.
        metadata: what else its writer said of it; not checked.
    """

    version: int
    groups: tuple[int, ...]
    table: pa.Table
    whole: bool
    metadata: Mapping[bytes, bytes]


def read_file(source: Source) -> tuple[int, pa.Table]:
    """One file, checked before and while it is decoded.

    Args:
        source: a file, or the bytes of one.

    Returns:
        The version it was written with, and its rows, of `SCHEMA`.

    Raises:
        ForeignFile: it is torn, not ours, too large, or holds values that cannot be.
        OSError: the system does not let it be read.
    """
    piece = read_piece(source)
    return piece.version, piece.table


def read_piece(
    source: Source, *, columns: Collection[str] = tuple(SCHEMA.names), groups: Sequence[int] | None = None
) -> Piece:
    """Some columns of some row groups of a file, all unless said; raises as `read_file` does.

    Values are checked as far as they are decoded: what is wrong in a column or row group that was not asked for does
    not show.
    """
    if isinstance(source, Path) and (size := source.stat().st_size) > MAX_FILE_BYTES:
        raise ForeignFile(f"it has {size:,} bytes, more than the {MAX_FILE_BYTES:,} that are read")
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            facts = file.metadata
            version = _check_outside(file)
            rows = tuple(facts.row_group(index).num_rows for index in range(facts.num_row_groups))
            wanted = range(len(rows)) if groups is None else groups
            table = _decode(file, [name for name in SCHEMA.names if name in columns], list(wanted))
            whole, metadata = set(file.schema_arrow.names) <= set(SCHEMA.names), file.schema_arrow.metadata
    except MemoryError as error:  # pyarrow's own is an ArrowException too
        raise ForeignFile("it unpacks to more memory than there is") from error
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # pyarrow raises OSError for broken bytes too
            raise
        raise ForeignFile("it is torn or not a parquet file") from error
    table = _complete(table, columns)
    _check_values(table)
    return Piece(version=version, groups=rows, table=table, whole=whole, metadata=metadata)


def _check_outside(file: pq.ParquetFile) -> int:
    """Refuse by what the file says of itself; returns its version."""
    facts, schema = file.metadata, file.schema_arrow
    text = (schema.metadata or {}).get(VERSION_KEY, b"")
    if not re.fullmatch(rb"\d{1,6}", text):
        raise ForeignFile("it was not written by Crossover")
    if facts.num_rows > MAX_ROWS or facts.num_columns > MAX_COLUMNS:
        raise ForeignFile(f"it claims {facts.num_rows:,} rows of {facts.num_columns:,} columns, more than are read")
    claimed = _claimed_bytes(file, range(facts.num_row_groups))
    if claimed > MAX_TABLE_BYTES:
        raise ForeignFile(f"it claims {claimed:,} bytes, more than the {MAX_TABLE_BYTES:,} that are read")
    _check_types(schema)
    return int(text)


def _claimed_bytes(file: pq.ParquetFile, groups: Sequence[int]) -> int:
    """Bytes that row groups claim to have before compression."""
    # not from the columns' own metadata: on broken ones pyarrow ends the process instead of raising
    return sum(file.metadata.row_group(index).total_byte_size for index in groups)


def _check_types(schema: pa.Schema) -> None:
    for wanted in SCHEMA:
        places = schema.get_all_field_indices(wanted.name)
        if len(places) > 1:
            raise ForeignFile(f"it has the column {wanted.name} {len(places)} times")
        if places and schema.field(places[0]).type != wanted.type:
            found = str(schema.field(places[0]).type)
            raise ForeignFile(f"its column {wanted.name} is {found[:_TYPE_LENGTH]}, not {wanted.type}")


def _decode(file: pq.ParquetFile, columns: Sequence[str], groups: list[int]) -> pa.Table:
    """The known columns; so many rows at once that even if each held all the claimed bytes they would fit."""
    present = set(file.schema_arrow.names)
    columns = [name for name in columns if name in present]
    rows = max(1, min(BATCH_ROWS, MAX_TABLE_BYTES // max(1, _claimed_bytes(file, groups))))
    size, batches = 0, []
    for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=columns, use_threads=False):
        size += batch.nbytes
        if size > MAX_TABLE_BYTES:
            raise ForeignFile(f"it unpacks to more than the {MAX_TABLE_BYTES:,} bytes that are read")
        batch.validate(full=True)  # text need not be UTF-8 otherwise
        batches.append(batch)
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    alike = [batch if batch.schema.equals(schema) else batch.cast(schema) for batch in batches]
    table = pa.Table.from_batches(alike, schema=schema)
    claimed = sum(file.metadata.row_group(index).num_rows for index in groups)
    if table.num_rows != claimed:  # pyarrow ends at a damaged page as if it were the last
        raise ForeignFile(f"it claims {claimed:,} rows and has {table.num_rows:,}")
    return table


def _complete(table: pa.Table, wanted: Collection[str]) -> pa.Table:
    """Columns that an older version did not have get their default; a value that nothing stands for is refused."""
    present, columns = dict(zip(table.column_names, table.columns, strict=True)), {}
    for entry in COLUMNS:
        if entry.name not in wanted:
            continue
        kind, default = entry.metadata["type"], _default(entry)
        column = present[entry.name] if entry.name in present else pa.nulls(table.num_rows, kind)
        if column.null_count and default is dataclasses.MISSING:
            raise ForeignFile(f"its column {entry.name} has no value")
        if column.null_count and default is not None:
            column = pc.coalesce(column, pa.scalar(list(default) if isinstance(default, tuple) else default, kind))
        columns[entry.name] = column
    schema = pa.schema([SCHEMA.field(name) for name in columns], metadata=SCHEMA.metadata)
    return pa.table(columns, schema=schema)


def _default(entry: "dataclasses.Field[object]") -> object:
    factory = entry.default_factory
    return entry.default if factory is dataclasses.MISSING else factory()


def _check_values(table: pa.Table) -> None:
    """Refuse rows that no measurement can have written, by the columns that a table has."""
    present = set(table.column_names)
    for name, words in (("outcome", OUTCOMES), ("device_kind", DEVICE_KINDS)):
        if name in present and not pc.all(pc.is_in(table[name], pa.array(list(words))), min_count=0).as_py():
            raise ForeignFile(f"its column {name} has a value that is none of {', '.join(words)}")
    for names in _EQUALLY_LONG:
        lengths = [pc.list_value_length(table[name]) for name in names if name in present]
        if any(pc.any(pc.not_equal(lengths[0], other)).as_py() for other in lengths[1:]):
            raise ForeignFile(f"its lists {', '.join(names)} are not equally long")
    for field in table.schema:
        _check_numbers(field, table[field.name])
    for name in present.intersection(_AT_LEAST_ONE):
        if pc.any(pc.less(_values(table[name]), 1), min_count=0).as_py():
            raise ForeignFile(f"its column {name} has a value below 1")
    if present.issuperset(_CLOCK) and _ends_too_soon(table):
        raise ForeignFile("it has a block that does not end after it begins")


def _ends_too_soon(table: pa.Table) -> bool:
    begin, end = (_values(table[name]) for name in _CLOCK)
    return bool(pc.any(pc.less_equal(end, begin), min_count=0).as_py())


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
    if pa.types.is_string(kind) and (pc.max(pc.binary_length(column)).as_py() or 0) > MAX_TEXT_BYTES:
        raise ForeignFile(f"its column {field.name} has a text of more than {MAX_TEXT_BYTES:,} bytes")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) or field.name in _MAY_BE_ANY_NUMBER:
        return
    if pa.types.is_floating(kind) and not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise ForeignFile(f"its column {field.name} has a value that is not a finite number")
    ends = pc.min_max(column).as_py()
    if (ends["min"] or 0) < 0:
        raise ForeignFile(f"its column {field.name} has a negative value")
    if (ends["max"] or 0) > _LARGEST:
        raise ForeignFile(f"its column {field.name} has a value beyond all that is measured")
