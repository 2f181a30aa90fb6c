"""Rows as tables of Arrow and as Parquet files: converted, read with checks, and written.

A file is only ever data: nothing in it is unpickled or run, and what it claims of its size is not believed. It is
checked before and while it is decoded, as a whole or some columns of some row groups; torn, foreign and hostile files
are refused with a reason. Where files lie, and which of their rows count, is decided in `core.results.store`.
"""

import contextlib
import dataclasses
import errno
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import ForeignFile
from ..files import atomic
from ..text import replace_invisible
from . import validation
from .schema import SCHEMA, SCHEMA_VERSION, TRIAL_COLUMNS, VERSION_KEY, Trial

# Tables


OBJECT_BYTES, BYTE_BYTES = 5_000, 4
"""Bytes of a row as an object, without its values, and of each byte that its values take in a table."""

ROWS_PER_BATCH = 256
"""Rows that become objects at a time: on the way they take twice as much."""


def to_table(trials: Sequence[Trial]) -> pa.Table:
    """Return rows as an Arrow table of `SCHEMA`."""
    columns = {
        entry.name: pa.array([getattr(trial, entry.name) for trial in trials], type=entry.metadata["type"])
        for entry in TRIAL_COLUMNS
    }
    return pa.table(columns, schema=SCHEMA)


def from_table(table: pa.Table) -> list[Trial]:
    """Return the rows of a table of `SCHEMA`; lists become tuples. Needs `object_bytes` of memory, and little more."""
    batches = table.to_batches(max_chunksize=ROWS_PER_BATCH)
    return [Trial(**_with_tuples(row)) for batch in batches for row in batch.to_pylist()]


def object_bytes(table: pa.Table) -> int:
    """Return the approximate memory of rows as Python objects; several times that of a table."""
    return int(OBJECT_BYTES * table.num_rows + BYTE_BYTES * table.nbytes)


def _with_tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


# Reading


MAX_FILE_BYTES = 64 * 2**20
MAX_FILE_ROWS = 50_000
MAX_COLUMNS = 500
MAX_TABLE_BYTES = 512 * 2**20
"""Bounds of a file that is read. Ours have one row, compacted ones as many at most; a compressed bomb has more."""

BATCH_ROWS = 256
"""Rows decoded at once, at most; what a file declares of its size need not be true, so the decoded size is watched."""

_TYPE_LENGTH = 80
"""Characters of a foreign type that are quoted; nested ones name their fields, at any length."""


Source: TypeAlias = Path | pa.BufferReader


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Contents read from a file.

    Attributes:
        version: of the schema that it was written with.
        groups: number of rows of each row group of the file, whether it was read or not.
        table: the requested columns, as `SCHEMA` has them, of the requested row groups.
        whole: whether every column of the file is known here.
    """

    version: int
    groups: tuple[int, ...]
    table: pa.Table
    has_known_columns: bool


def read_file(source: Source, *, most_rows: int | None = None) -> tuple[int, pa.Table]:
    """Read one file, checked before and while it is decoded.

    Args:
        source: a file, or the bytes of one.
        most_rows: rows beyond which it is refused before anything is decoded; `MAX_FILE_ROWS` unless given.

    Returns:
        The version it was written with, and its rows, of `SCHEMA`.

    Raises:
        ForeignFile: it is torn, not Crossover's, too large, or has impossible values.
        OSError: the system does not let it be read.
    """
    piece = read_piece(source, most_rows=most_rows)
    return piece.version, piece.table


def read_piece(
    source: Source,
    *,
    columns: Collection[str] = tuple(SCHEMA.names),
    groups: Sequence[int] | None = None,
    most_rows: int | None = None,
) -> Piece:
    """Read some columns of some row groups of a file, by default all; raises as `read_file` does.

    Values are checked as far as they are decoded: an error in another column or row group does not show.
    """
    if isinstance(source, Path) and (size := source.stat().st_size) > MAX_FILE_BYTES:
        raise ForeignFile(f"it has {size:,} bytes, more than the {MAX_FILE_BYTES:,} that are read")
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            facts = file.metadata
            version = _check_metadata(file, MAX_FILE_ROWS if most_rows is None else most_rows)
            rows = tuple(facts.row_group(index).num_rows for index in range(facts.num_row_groups))
            wanted = range(len(rows)) if groups is None else groups
            table = _decode(file, [name for name in SCHEMA.names if name in columns], list(wanted))
            whole = set(file.schema_arrow.names) <= set(SCHEMA.names)
    except MemoryError as error:  # pyarrow's own is an ArrowException too
        raise ForeignFile("it unpacks to more memory than there is") from error
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # pyarrow raises OSError for broken bytes too
            raise
        raise ForeignFile("it is incomplete or not a parquet file") from error
    table = _clean_text(_complete(table, columns))
    validation.validate_rows(table, newer=version > SCHEMA_VERSION)
    return Piece(version=version, groups=rows, table=table, has_known_columns=whole)


def _check_metadata(file: pq.ParquetFile, most_rows: int) -> int:
    """Refuse by what the file says of itself; returns its version."""
    facts, schema = file.metadata, file.schema_arrow
    text = (schema.metadata or {}).get(VERSION_KEY, b"")
    if not re.fullmatch(rb"\d{1,6}", text):
        raise ForeignFile("it was not written by Crossover")
    if facts.num_columns > MAX_COLUMNS:
        raise ForeignFile(f"it claims {facts.num_columns:,} columns, more than the {MAX_COLUMNS:,} that are read")
    if facts.num_rows > most_rows:
        raise ForeignFile(f"it claims {facts.num_rows:,} rows, more than the {most_rows:,} that are read")
    claimed = _sum_claimed_bytes(file, range(facts.num_row_groups))
    if claimed > MAX_TABLE_BYTES:
        raise ForeignFile(f"it claims {claimed:,} bytes, more than the {MAX_TABLE_BYTES:,} that are read")
    _check_types(schema)
    return int(text)


def _sum_claimed_bytes(file: pq.ParquetFile, groups: Sequence[int]) -> int:
    """Return bytes that row groups claim to have before compression."""
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
    """Return the known columns; with so many rows at once that even rows of all the claimed bytes would fit."""
    present = set(file.schema_arrow.names)
    columns = [name for name in columns if name in present]
    rows = max(1, min(BATCH_ROWS, MAX_TABLE_BYTES // max(1, _sum_claimed_bytes(file, groups))))
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


def _complete(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Add the default of columns that an older version did not have; a value that no default replaces is refused."""
    present, columns = dict(zip(table.column_names, table.columns, strict=True)), {}
    for entry in TRIAL_COLUMNS:
        if entry.name not in names:
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


def _clean_text(table: pa.Table) -> pa.Table:
    """Return rows without invisible letters; Crossover's own rows have none."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            values = filter(None, validation.occurring(table[field.name]))
            if unseen := {value: shown for value in values if (shown := replace_invisible(value)) != value}:
                shown_values = [unseen.get(value, value) for value in table[field.name].to_pylist()]
                table = table.set_column(place, field, pa.chunked_array([pa.array(shown_values, field.type)]))
    return table


def _default(entry: "dataclasses.Field[object]") -> object:
    factory = entry.default_factory
    return entry.default if factory is dataclasses.MISSING else factory()


def refusal(table: pa.Table) -> str:
    """Return why readers would refuse these rows of `SCHEMA` if they were written, in words that go on after a colon.

    Empty if they would not. Whoever writes rows asks first: what nobody can read again must not be stored.
    """
    try:
        validation.validate_rows(_clean_text(_complete(table, SCHEMA.names)))
    except ForeignFile as error:
        return str(error)
    return ""


def find_refusal(*trials: Trial) -> str:
    """Return why readers would refuse rows that are not in a table yet, and may have values that no column takes."""
    try:
        table = to_table(trials)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        return f"it has values that no column accepts ({error})"
    return refusal(table)


def readable(trials: Sequence[Trial]) -> list[Trial]:
    """Return the rows that readers would accept: checked all at once, and one by one only if the check fails."""
    if not find_refusal(*trials):
        return list(trials)
    return [trial for trial in trials if not find_refusal(trial)]


def read_rows(path: Path) -> list[Trial]:
    """Return the rows in `path`; none where it is missing, or holds something else than rows."""
    with contextlib.suppress(OSError, ForeignFile):
        return from_table(read_file(path)[1])
    return []


# Writing


PART_BYTES = 48 * 2**20
"""Largest part in memory. Compressed it is a third of that as a rule, and never more than readers take."""

PART_ROWS = 50_000
"""Most rows of a part."""

GROUP_ROWS = 512
"""Rows of a row group: what is decoded to get at one of them."""


def split(table: pa.Table) -> Iterator[pa.Table]:
    """Yield rows in their order in parts that are not too large; of one row, however large, there is one part.

    Rows of one run that follow each other stay together, so that a run is never found in part.
    """
    if table.num_rows <= 1 or (table.nbytes <= PART_BYTES and table.num_rows <= PART_ROWS):
        yield table
        return
    half, runs = table.num_rows // 2, table["run_id"]
    half = next((place for place in range(half, table.num_rows) if runs[place] != runs[place - 1]), half)
    yield from split(table.slice(0, half))
    yield from split(table.slice(half))


def write_table(target: Path, table: pa.Table) -> None:
    """Write rows into a file of their own, whole or not at all, so that it outlives a loss of power.

    Raises:
        OSError: the folder cannot be written, or no reader would take the file; nothing is left behind.
    """
    atomic.write_atomically(target, lambda file: encode_rows(table, file))


def encode_rows(table: pa.Table, file: BinaryIO) -> None:
    """Write rows into an open file; raises OSError if no reader would take it."""
    single = table.num_rows == 1  # statistics of a single value are that value again, three times
    pq.write_table(
        table,
        file,
        compression="zstd",
        row_group_size=GROUP_ROWS,
        write_page_checksum=True,
        write_statistics=not single,
    )
    if file.tell() > MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, f"it would have more than the {MAX_FILE_BYTES:,} bytes that are read")


def format_file_date(started_at: str) -> str:
    """Return a time as names of files have it, where only letters, digits and hyphens are safe."""
    return re.sub(r"[^0-9T-]", "", started_at[:19])


def write_rows(path: Path, trials: Sequence[Trial]) -> None:
    """Replace `path` by a parquet file of `trials`, without those for which the whole file would be refused.

    Raises:
        OSError: the folder cannot be written.
    """
    table = to_table(readable(trials))
    atomic.replace(path, lambda file: pq.write_table(table, file, write_page_checksum=True))
