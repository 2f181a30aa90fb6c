"""Compaction: many files of a store, most of one row, merged into few large ones.

A part is written whole, flushed and given its name before any file that it was made from is removed, so that a process
that is killed at any moment loses no row; a row that is in two files then counts once for every reader, and the next
compaction drops the copy. Rows are put in another order and not changed. What is torn, foreign, of a newer version or
not a plain file is left as it is and named.
"""

import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyarrow as pa
from filelock import FileLock, Timeout

from core.errors import ForeignFile, StoreError
from core.files import atomic
from core.results import writing
from core.results.finding import index, lookup, mirrored
from core.results.finding.index import SUFFIX, File, Skipped
from core.results.finding.mirrored import NAMES_SUFFIX
from core.results.reading import read_piece
from core.results.schema import SCHEMA_VERSION
from core.results.store import GALLERY
from core.results.writing import PART_BYTES, SIZE_KEY

LOCK = ".compaction.lock"
"""Name of the file that one compaction at a time holds locked; the system lets go of it when its holder dies."""

PREFIX = "compacted"
"""Beginning of a part's name."""

SMALL_BYTES = PART_BYTES // 4
"""Size in memory below which a part is merged again; those that are written at a time are larger, but for the last.
Beside a larger one lie the names of its runs (`core.results.finding.lookup`): no compaction opens it again."""

BATCH_BYTES = 2 * PART_BYTES
"""Rows that are sorted at a time, in memory; several times that is needed meanwhile."""

ORDER = ("machine_id", "dataset", "model", "started_at", "run_id", "trial_id")
"""What one crossover is computed from was measured on one machine, one after the other: it comes to lie together."""


@dataclass(frozen=True, kw_only=True)
class Compacted:
    """What became of a store.

    Attributes:
        merged: files that were merged and removed.
        parts: files that were made of them.
        rows: that these hold.
        copies: rows that were there twice, exactly alike, and are there once now.
        left: files that were left as they are for a reason.
    """

    merged: int = 0
    parts: int = 0
    rows: int = 0
    copies: int = 0
    left: tuple[Skipped, ...] = ()

    def __add__(self, other: Self) -> Self:
        return type(self)(**{name: value + getattr(other, name) for name, value in vars(self).items()})


def compact(folder: Path) -> Compacted:
    """Merge the small files of a store; readers and writers may go on meanwhile.

    Args:
        folder: of the store.

    Raises:
        StoreError: another compaction is under way, the folder cannot be read or written, or it is the gallery's.
    """
    if folder.resolve() == GALLERY.resolve():
        raise StoreError("The gallery that ships with the project is kept as it is; compact a copy of it.")
    if not folder.is_dir():
        return Compacted()
    try:
        with FileLock(folder / LOCK, timeout=0), mirrored.held(folder) as require_held:
            return _compact(folder, require_held)
    except Timeout as error:
        raise StoreError(f"The store {folder} is being compacted already; wait until that is done.") from error
    except OSError as error:
        raise StoreError(f"The store {folder} cannot be written: {error.strerror or error}.") from error


def _compact(folder: Path, require_held: Callable[[], None]) -> Compacted:
    for abandoned in folder.glob(f".{PREFIX}-*.tmp"):  # by a compaction that was killed
        abandoned.unlink(missing_ok=True)
    left: list[Skipped] = []
    merged = (_merged(folder, files, table, require_held) for files, table in _batches(folder, left))
    done = sum(merged, Compacted())
    return done + Compacted(left=tuple(left))


def _batches(folder: Path, left: list[Skipped]) -> Iterator[tuple[list[File], pa.Table]]:
    """Small files with their rows, as many at a time as can be sorted in memory; others are named in `left`."""
    files: list[File] = []
    tables: list[pa.Table] = []
    size = 0
    for file in sorted(index.listed(folder), key=lambda file: file.path.name):
        try:
            table = _small(file)
        except (ForeignFile, OSError) as error:
            reason = str(error) if isinstance(error, ForeignFile) else index.unreadable_because(error)
            left.append(Skipped(name=file.path.name, reason=reason))
            continue
        if table is None:
            continue
        files, tables, size = [*files, file], [*tables, table], size + table.nbytes
        if size >= BATCH_BYTES:
            yield files, pa.concat_tables(tables)
            files, tables, size = [], [], 0
    if files:
        yield files, pa.concat_tables(tables)


def _small(file: File) -> pa.Table | None:
    """The rows of a file that is to be merged; None for a part that is large enough.

    Raises:
        ForeignFile: it is to be left as it is.
        OSError: the system does not let it be read.
    """
    if file.path.is_symlink():
        raise ForeignFile("it is a link to another file")
    if file.path.with_suffix(NAMES_SUFFIX).exists():
        return None
    if file.path.name.startswith(PREFIX):
        known = read_piece(file.path, columns=(*lookup.KEYS, "started_at"))
        hint = known.metadata.get(SIZE_KEY, b"")
        if hint.isdigit() and int(hint) >= SMALL_BYTES:
            if known.version <= SCHEMA_VERSION:  # an earlier version put no names beside it, or was killed before
                writing.write_names(file.path, known.table, lookup.names_of(known.table, known.groups))
            return None
    piece = read_piece(file.path)
    if piece.version > SCHEMA_VERSION:
        raise ForeignFile("it was written by a newer version, which knows more of it")
    if not piece.whole:
        raise ForeignFile("it has columns that are not known here")
    return piece.table


def _merged(folder: Path, files: Sequence[File], table: pa.Table, require_held: Callable[[], None]) -> Compacted:
    """Write the rows of some files into parts, then remove the files."""
    rows = _without_copies(folder, files, table)
    copies = table.num_rows - rows.num_rows
    if len(files) == 1 and not copies:
        return Compacted()
    ordered = rows.sort_by([(name, "ascending") for name in ORDER])
    targets = [_written(folder, part) for part in writing.split(ordered) if part.num_rows]
    mirrored.require_sent([*targets, *(folder.glob(f"*{SUFFIX}") if copies else ())])
    require_held()
    unchanged = [file for file in files if _unchanged(file)]
    mirrored.remove([file.path for file in unchanged])
    gone = [file for file in unchanged if _removed(file)]
    atomic.flush_folder(folder)
    return Compacted(merged=len(gone), parts=len(targets), rows=rows.num_rows, copies=copies)


def _without_copies(folder: Path, files: Sequence[File], table: pa.Table) -> pa.Table:
    """The rows without those that come twice among them, or that another file of the folder has exactly so."""
    several = lookup.several(folder, set(table["trial_id"].to_pylist()))
    if not several:
        return table
    elsewhere = lookup.rows(folder, {"trial_id": several}, besides={file.path for file in files})
    seen = {repr(row) for row in elsewhere.to_pylist()}
    kept = []
    for place, name in enumerate(table["trial_id"].to_pylist()):
        row = repr(table.slice(place, 1).to_pylist()[0]) if name in several else ""
        kept.append(not row or row not in seen)
        seen.add(row)
    return table.filter(pa.array(kept, pa.bool_()))


def _written(folder: Path, table: pa.Table) -> Path:
    """A new part with these rows, read once more before anything relies on it."""
    newest = writing.dated(max(table["started_at"].to_pylist()))
    target = folder / f"{PREFIX}-{newest}-{uuid.uuid4().hex}{SUFFIX}"
    writing.write(target, table)
    try:
        piece = read_piece(target)
        if piece.table.num_rows == table.num_rows:
            if table.nbytes >= SMALL_BYTES:
                writing.write_names(target, table, lookup.names_of(table, piece.groups))
            return target
        reason = "it has not all rows"
    except ForeignFile as error:
        reason = str(error)
    target.unlink()
    raise StoreError(f"The store {folder} was not compacted: the new file cannot be read, because {reason}.")


def _unchanged(file: File) -> bool:
    """Whether a file is as it was read, and nobody wrote it anew."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        facts = file.path.stat()
        return (facts.st_size, facts.st_mtime_ns) == (file.size, file.written_ns)
    return False


def _removed(file: File) -> bool:
    """Remove a file whose rows are in a part now; on Windows not if somebody reads it just now."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        file.path.unlink()
        return True
    return False
