"""Rows as tables of Arrow and as Parquet files: converted, read with checks, and written.

A file is treated only as data: nothing in it is unpickled or run, and its declared size is not trusted. A whole file,
or some columns of some row groups, is checked before and during decoding. Truncated, foreign and hostile files are
refused with a reason. The location of files, and the choice of rows that count, belong to `core.results.store`.
"""

import contextlib
import dataclasses
import errno
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import ForeignFile
from ..files import documents
from ..text import replace_invisible
from . import validation
from .schema import SCHEMA, SCHEMA_VERSION, TRIAL_COLUMNS, VERSION_KEY, Trial

# Tables


OBJECT_BYTES, BYTE_BYTES = 5_000, 4
"""Memory in bytes of a row as an object without its values, and per byte of its values in a table."""

ROWS_PER_BATCH = 256
"""Number of rows that are converted to objects at a time, because the conversion needs twice the memory."""


def to_table(trials: Sequence[Trial]) -> pa.Table:
    """Return rows as an Arrow table of `SCHEMA`."""
    columns = {
        entry.name: pa.array([getattr(trial, entry.name) for trial in trials], type=entry.metadata["type"])
        for entry in TRIAL_COLUMNS
    }
    return pa.table(columns, schema=SCHEMA)


def from_table(table: pa.Table) -> list[Trial]:
    """Return the rows of a table of `SCHEMA`, with lists as tuples; it needs little more memory than `object_bytes`."""
    batches = table.to_batches(max_chunksize=ROWS_PER_BATCH)
    return [Trial(**_with_tuples(row)) for batch in batches for row in batch.to_pylist()]


def object_bytes(table: pa.Table) -> int:
    """Return the approximate memory of rows as Python objects, which is several times that of a table."""
    return int(OBJECT_BYTES * table.num_rows + BYTE_BYTES * table.nbytes)


def _with_tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


# Reading


MAX_FILE_BYTES = 64 * 2**20
MAX_FILE_ROWS = 50_000
MAX_COLUMNS = 500
MAX_TABLE_BYTES = 512 * 2**20
"""Limits of a file that is read. Files of Crossover stay below them, including compacted files; a compressed bomb does
not.
"""

BATCH_ROWS = 256
"""Maximum rows decoded at once; the decoded size is monitored, because the size that a file declares may be wrong."""

_TYPE_LENGTH = 80
"""Maximum quoted characters of a foreign type; nested types list their fields and can have any length."""


Source: TypeAlias = Path | pa.BufferReader


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Contents read from a file.

    Attributes:
        version: version of the schema with which it was written.
        groups: number of rows of each row group of the file, whether it was read or not.
        table: the requested columns, as `SCHEMA` has them, of the requested row groups.
        whole: whether this version knows every column of the file.
    """

    version: int
    groups: tuple[int, ...]
    table: pa.Table
    has_known_columns: bool


def read_file(source: Source, *, most_rows: int | None = None) -> tuple[int, pa.Table]:
    """Read one file, with checks before and during decoding.

    Args:
        source: a file, or its bytes.
        most_rows: maximum rows, checked before decoding; by default `MAX_FILE_ROWS`.

    Returns:
        The version with which it was written, and its rows, of `SCHEMA`.

    Raises:
        ForeignFile: the file is truncated, not Crossover's, too large, or has impossible values.
        OSError: the file cannot be read.
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

    Only decoded values are checked: an error in another column or row group is not detected.
    """
    if isinstance(source, Path):
        _check_on_disk(source)
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            facts = file.metadata
            version = _check_metadata(file, MAX_FILE_ROWS if most_rows is None else most_rows)
            rows = tuple(facts.row_group(index).num_rows for index in range(facts.num_row_groups))
            wanted = range(len(rows)) if groups is None else groups
            table = _decode(file, [name for name in SCHEMA.names if name in columns], list(wanted))
            whole = set(file.schema_arrow.names) <= set(SCHEMA.names)
    except MemoryError as error:  # pyarrow's MemoryError is also an ArrowException
        raise ForeignFile("it unpacks to more memory than there is") from error
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # pyarrow raises OSError for broken bytes too
            raise
        raise ForeignFile("it is incomplete or not a parquet file") from error
    table = _clean_text(_complete(table, columns))
    validation.validate_rows(table, newer=version > SCHEMA_VERSION)
    return Piece(version=version, groups=rows, table=table, has_known_columns=whole)


def _check_on_disk(path: Path) -> None:
    """Raise ForeignFile for a file above the size limit, and for a pipe, on which Arrow would wait without end."""
    facts = path.stat()
    if not stat.S_ISREG(facts.st_mode):
        raise ForeignFile("it is not a regular file")
    if facts.st_size > MAX_FILE_BYTES:
        raise ForeignFile(f"it has {facts.st_size:,} bytes, more than the {MAX_FILE_BYTES:,} that are read")


def _check_metadata(file: pq.ParquetFile, most_rows: int) -> int:
    """Check the metadata of a file; return its version."""
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
    """Return the uncompressed bytes that row groups declare."""
    # not from the metadata of columns: if these are broken, pyarrow ends the process instead of raising
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
    """Return the known columns, decoded in batches that would fit in memory even if a batch had all declared bytes."""
    present = set(file.schema_arrow.names)
    columns = [name for name in columns if name in present]
    rows = max(1, min(BATCH_ROWS, MAX_TABLE_BYTES // max(1, _sum_claimed_bytes(file, groups))))
    size, batches = 0, []
    for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=columns, use_threads=False):
        size += batch.nbytes
        if size > MAX_TABLE_BYTES:
            raise ForeignFile(f"it unpacks to more than the {MAX_TABLE_BYTES:,} bytes that are read")
        batch.validate(full=True)  # checks, among others, that text is UTF-8
        batches.append(batch)
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    alike = [batch if batch.schema.equals(schema) else batch.cast(schema) for batch in batches]
    table = pa.Table.from_batches(alike, schema=schema)
    claimed = sum(file.metadata.row_group(index).num_rows for index in groups)
    if table.num_rows != claimed:  # pyarrow stops at a damaged page as if it were the last
        raise ForeignFile(f"it claims {claimed:,} rows and has {table.num_rows:,}")
    return table


def _complete(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Add defaults of columns that an older version did not have; a missing value without default is refused."""
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
    """Return rows without invisible characters; rows written by Crossover have none."""
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
    """Return why readers would refuse these rows of `SCHEMA` if they were written, as a clause after a colon.

    The result is empty if they would not. Every writer calls this first, because unreadable rows must not be stored.
    """
    try:
        validation.validate_rows(_clean_text(_complete(table, SCHEMA.names)))
    except ForeignFile as error:
        return str(error)
    return ""


def find_refusal(*trials: Trial) -> str:
    """Return why readers would refuse rows that are not in a table yet, whose values may not fit any column."""
    try:
        table = to_table(trials)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        return f"it has values that no column accepts ({error})"
    return refusal(table)


def readable(trials: Sequence[Trial]) -> list[Trial]:
    """Return the rows that readers would accept; they are checked together, and one by one only if the check fails."""
    if not find_refusal(*trials):
        return list(trials)
    return [trial for trial in trials if not find_refusal(trial)]


def read_rows(path: Path) -> list[Trial]:
    """Return the rows in `path`; empty if the file is missing or does not contain rows."""
    with contextlib.suppress(OSError, ForeignFile):
        return from_table(read_file(path)[1])
    return []


# Writing


PART_BYTES = 48 * 2**20
"""Maximum size of a part in memory. Compressed it usually has a third of it, and never exceeds the limit of readers."""

PART_ROWS = 50_000
"""Maximum rows of a part."""

GROUP_ROWS = 512
"""Rows of a row group, which is decoded as a whole to read one of them."""


def split(table: pa.Table) -> Iterator[pa.Table]:
    """Yield rows in order in parts of limited size; a single row, however large, forms one part.

    Consecutive rows of one run stay together, so that a run is never split.
    """
    if table.num_rows <= 1 or (table.nbytes <= PART_BYTES and table.num_rows <= PART_ROWS):
        yield table
        return
    half, runs = table.num_rows // 2, table["run_id"]
    half = next((place for place in range(half, table.num_rows) if runs[place] != runs[place - 1]), half)
    yield from split(table.slice(0, half))
    yield from split(table.slice(half))


def write_table(target: Path, table: pa.Table) -> None:
    """Write rows atomically into a separate file that survives a loss of power.

    Raises:
        OSError: the folder cannot be written, or readers would refuse the file; no file is left behind.
    """
    documents.write_atomically(target, lambda file: encode_rows(table, file))


def encode_rows(table: pa.Table, file: BinaryIO) -> None:
    """Write rows into an open file; raises OSError if readers would refuse it."""
    single = table.num_rows == 1  # statistics of a single value repeat it three times
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
    """Return a time in the form for file names, with only letters, digits and hyphens."""
    return re.sub(r"[^0-9T-]", "", started_at[:19])


def write_rows(path: Path, trials: Sequence[Trial]) -> None:
    """Replace `path` by a parquet file of `trials`, without rows for which the whole file would be refused.

    Raises:
        OSError: the folder cannot be written.
    """
    table = to_table(readable(trials))
    documents.replace(path, lambda file: pq.write_table(table, file, write_page_checksum=True))
