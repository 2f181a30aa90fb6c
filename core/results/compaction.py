"""Compaction: many small files of a store are merged into few large ones, while other processes read and write.

A part is written completely, flushed and read back before any of its source files is removed. So a process that is
killed at any moment loses no row, and readers count a row that is in two files once. A copy is dropped only if both
rows are among the merged files. So two compactions of one address, on different machines, lose no row either. Files
that are truncated, foreign, of a newer version or not regular files are left unchanged and reported.
"""

import contextlib
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from filelock import FileLock, Timeout

from ..errors import ForeignFile, StoreError, unwritable
from ..files import atomic
from ..remote import local_cache
from . import index, parquet
from .index import SUFFIX, File, Skipped
from .parquet import PART_BYTES, read_piece
from .schema import SCHEMA_VERSION
from .store import GALLERY, write_file

LOCK = ".compaction.lock"
"""Name of the lock file of a compaction; the system releases the lock when its process ends."""

PREFIX = "compacted"
"""Prefix of the name of a part."""

OLD_SUFFIXES = (".names", ".keys")
"""Suffixes of obsolete files that earlier versions wrote with parts; nothing reads them."""

SMALL_BYTES = 2 * 2**20
"""Size on disk below which a file is merged; of the parts of a compaction, at most the last is smaller."""

BATCH_BYTES, BATCH_FILES = 2 * PART_BYTES, 500
"""Limits of the bytes of rows that are sorted at a time, which needs several times the memory, and of the number of
files.

If a compaction stops early, its finished batches remain.
"""

ORDER = ("machine_id", "dataset", "model", "started_at", "run_id", "trial_id")
"""Sort order of rows, which groups the rows of one crossover that were measured in sequence on one machine."""


@dataclass(frozen=True, kw_only=True)
class Compacted:
    """Result of a compaction.

    Attributes:
        merged: files that were merged and removed.
        parts: files that were created from them.
        rows: rows in these parts.
        copies: identical duplicates of rows that were removed.
        left: files that were left unchanged, with the reason.
    """

    merged: int = 0
    parts: int = 0
    rows: int = 0
    copies: int = 0
    left: tuple[Skipped, ...] = ()


def compact(folder: Path) -> Compacted:
    """Merge the small files of a store, while readers and writers continue.

    Raises:
        StoreError: another compaction is running on this machine, the folder is the gallery's or cannot be read or
            written, or the address cannot be reached.
    """
    if folder.resolve() == GALLERY.resolve():
        raise StoreError("The gallery of the project cannot be compacted; compact a copy of it.")
    if not folder.is_dir():
        return Compacted()
    try:
        with FileLock(folder / LOCK, timeout=0):
            return _compact_folder(folder)
    except Timeout as error:
        name = local_cache.describe_store(folder)
        raise StoreError(f"The store {name} is already being compacted. Wait until it finishes.") from error
    except OSError as error:
        raise StoreError(unwritable(f"The store {local_cache.describe_store(folder)}", error)) from error


def _compact_folder(folder: Path) -> Compacted:
    for pattern in (f".{PREFIX}-*.tmp", *(f"{PREFIX}-*{suffix}" for suffix in OLD_SUFFIXES)):
        for abandoned in folder.glob(pattern):
            abandoned.unlink(missing_ok=True)
    left: list[Skipped] = []
    done = Compacted()
    for files, table in _read_batches(folder, left):
        done = _merge(folder, files, table, done)
    return replace(done, left=tuple(left))


def _read_batches(folder: Path, left: list[Skipped]) -> Iterator[tuple[list[File], pa.Table]]:
    """Yield small files with their rows, ordered by name, in batches that can be sorted in memory."""
    listing = index.list_files(folder, now=True)
    small = sorted((file for file in listing if file.size < SMALL_BYTES), key=lambda file: file.path.name)
    index.fetch_files(folder, small)
    files: list[File] = []
    tables: list[pa.Table] = []
    size = 0
    for file in small:
        try:
            index.fetch_file(folder, file)
            tables.append(_read_small(file.path))
            files.append(file)
            size += tables[-1].nbytes
        except (ForeignFile, OSError) as error:
            reason = str(error) if isinstance(error, ForeignFile) else index.unreadable_because(error)
            left.append(Skipped(name=file.path.name, reason=reason))
        if size >= BATCH_BYTES or len(files) >= BATCH_FILES:
            yield files, pa.concat_tables(tables)
            files, tables, size = [], [], 0
    if files:
        yield files, pa.concat_tables(tables)


def _read_small(path: Path) -> pa.Table:
    """Return the rows of a file; raise ForeignFile if it must be left unchanged."""
    if path.is_symlink():
        raise ForeignFile("it is a link to another file")
    piece = read_piece(path)
    if piece.version > SCHEMA_VERSION:
        raise ForeignFile("it was written by a newer version")
    if not piece.has_known_columns:
        raise ForeignFile("it has columns that are unknown here")
    return piece.table


def _merge(folder: Path, files: Sequence[File], table: pa.Table, done: Compacted) -> Compacted:
    """Write the rows of some files into parts, then remove the files; return the updated result."""
    rows = _drop_copies(table)
    copies = table.num_rows - rows.num_rows
    if len(files) == 1 and not copies:
        return done
    ordered = rows.sort_by([(name, "ascending") for name in ORDER])
    parts = [_write_part(folder, part) for part in parquet.split(ordered)]
    removed = _remove_files(folder, files)
    return Compacted(
        merged=done.merged + removed,
        parts=done.parts + len(parts),
        rows=done.rows + rows.num_rows,
        copies=done.copies + copies,
    )


def _write_part(folder: Path, table: pa.Table) -> File:
    """Write rows into a new part, and read it back to verify it."""
    newest = parquet.format_file_date(max(table["started_at"].to_pylist()))
    path = write_file(folder, f"{PREFIX}-{newest}-{uuid.uuid4().hex}{SUFFIX}", table)
    part = next(file for file in index.list_files(folder, now=True) if file.path == path)
    try:
        index.fetch_file(folder, part)
        if read_piece(path).table.num_rows == table.num_rows:
            return part
        reason = "it lacks some of the rows"
    except ForeignFile as error:
        reason = str(error)
    _remove_files(folder, [part])
    name = local_cache.describe_store(folder)
    raise StoreError(f"The store {name} was not compacted: the new file cannot be read, because {reason}.")


def _remove_files(folder: Path, files: Sequence[File]) -> int:
    """Remove files unless they were changed; return the number of removed files."""
    if (cache := local_cache.open_cache(folder)) is not None:
        cache.remove_files([file.path for file in files])
        return len(files)
    removed = 0
    for file in filter(index.is_unchanged, files):
        with contextlib.suppress(PermissionError):  # on Windows while it is read; it is removed next time
            file.path.unlink(missing_ok=True)
            removed += 1
    atomic.flush_folder(folder)
    return removed


def _drop_copies(table: pa.Table) -> pa.Table:
    """Return the rows without identical duplicates."""
    names = table["trial_id"].to_pylist()
    counts = Counter(names)
    seen, kept = set[str](), []
    for place, name in enumerate(names):
        row = repr(table.slice(place, 1).to_pylist()[0]) if counts[name] > 1 else ""
        kept.append(not row or row not in seen)
        seen.add(row)
    return table.filter(pa.array(kept, pa.bool_()))
