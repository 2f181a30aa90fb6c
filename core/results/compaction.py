"""Compaction: many files of a store, most of one run, merged into few large ones.

What was measured on one machine in one month comes into parts of its own once it is more than a few rows, since
questions ask for that together; what is left lies in parts of several until it is more. It works on the files that
there were when it began, some at a time, and what it has done stays done, whoever writes meanwhile or ends it.

A part is written whole, flushed and given its name before any file that it was made from is removed, so that a process
that is killed at any moment loses no row; a row that is in two files then counts once for every reader, and the next
compaction drops the copy. Rows are put in another order and not changed. What is torn, foreign, of a newer version or
not a plain file is left as it is and named.
"""

import contextlib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock, Timeout

from core.errors import ForeignFile, StoreError, unwritable
from core.files import atomic
from core.results import writing
from core.results.finding import index, keys, lookup, mirrored, sharing
from core.results.finding.index import SUFFIX, File, Skipped
from core.results.finding.keys import Keys
from core.results.finding.mirrored import NAMES_SUFFIX
from core.results.reading import read_piece
from core.results.schema import SCHEMA_VERSION
from core.results.store import GALLERY
from core.results.writing import PART_BYTES, SIZE_KEY

LOCK = ".compaction.lock"
"""Name of the file that one compaction at a time holds locked; the system lets go of it when its holder dies."""

PREFIX = "compacted"
"""Beginning of a part's name."""

OPEN = re.compile(rf"{PREFIX}-(\d{{4}}-\d\d)-\d\dT\d+-([\w-]+)-[0-9a-f]{{32}}\{SUFFIX}", re.ASCII)
"""Name of a small part of one machine and month, with both: it waits for others of them before it is read again."""

BESIDE = (NAMES_SUFFIX, keys.SUFFIX)
"""What files end in that lie beside a part."""

SMALL_BYTES = PART_BYTES // 4
"""Size in memory below which a part is merged again; those that are written at a time are larger, but for the last.
Beside a larger one lie the names of its runs (`core.results.finding.lookup`): no compaction opens it again."""

OWN_ROWS = 64
"""Rows of one machine and month that come into a part of their own: fewer of many machines would be too many files."""

OPEN_PARTS = 8
"""So many small parts of one machine and month are merged at a time: with more of them rows would be written anew less
often, and lie in more files meanwhile."""

BATCH_BYTES, BATCH_FILES = 2 * PART_BYTES, 500
"""Rows that are sorted at a time, for which several times the memory is needed, and files that they come from; a run is
not parted for it. What was done before a compaction is ended stays done."""

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


def compact(folder: Path, keys: Keys | None = None) -> Compacted:
    """Merge the small files of a store; readers and writers may go on meanwhile.

    Args:
        folder: of the store.
        keys: by which rows are found besides their names; they are put beside each part.

    Raises:
        StoreError: another compaction is under way, the folder cannot be read or written, or it is the gallery's.
    """
    if folder.resolve() == GALLERY.resolve():
        raise StoreError("The gallery that ships with the project is kept as it is; compact a copy of it.")
    if not folder.is_dir():
        return Compacted()
    try:
        with FileLock(folder / LOCK, timeout=0), sharing.held(folder) as require_held:
            return _Compaction(folder, keys, require_held).run()
    except Timeout as error:
        raise StoreError(f"The store {folder} is being compacted already; wait until that is done.") from error
    except OSError as error:
        raise StoreError(unwritable(f"The store {folder}", error)) from error


class _Compaction:
    """One compaction of a store.

    Args:
        folder: of the store.
        keys: that are put beside each part.
        require_held: makes sure that no other one has begun.
    """

    def __init__(self, folder: Path, keys: Keys | None, require_held: Callable[[], None]) -> None:
        self._folder, self._keys, self._require_held = folder, keys, require_held
        self._left: list[Skipped] = []

    def run(self) -> Compacted:
        """Merge what is there now."""
        self._sweep()
        done = self._merge(file for file in index.listed(self._folder) if not OPEN.fullmatch(file.path.name))
        for parts in _group_small_parts(index.listed(self._folder)):
            done += self._merge(parts)
        return done + Compacted(left=tuple(self._left))

    def _merge(self, files: Iterable[File]) -> Compacted:
        """Merge the small ones of some files, in the order of their names: rows of a run have names that follow."""
        ordered = sorted(files, key=lambda file: file.path.name)
        return sum((self._merge_batch(*batch) for batch in self._batches(ordered)), Compacted())

    def _sweep(self) -> None:
        """Remove what a compaction left that was killed: half a part, and what lay beside one that is gone."""
        for abandoned in self._folder.glob(f".{PREFIX}-*.tmp"):
            abandoned.unlink(missing_ok=True)
        if mirrored.is_mirror(self._folder):  # its parts may lie elsewhere
            return
        for suffix in BESIDE:
            for beside in self._folder.glob(f"{PREFIX}-*{suffix}"):
                if not beside.with_suffix(SUFFIX).exists():
                    beside.unlink(missing_ok=True)

    def _batches(self, listed: Sequence[File]) -> Iterator[tuple[list[File], pa.Table]]:
        """Small files with their rows, as many at a time as can be sorted in memory, and all of a run at once."""
        files: list[File] = []
        tables: list[pa.Table] = []
        size = 0
        for file in listed:
            if (table := self._rows(file)) is None:
                continue
            if (size >= BATCH_BYTES or len(files) >= BATCH_FILES) and not _is_same_run(tables[-1], table):
                yield files, pa.concat_tables(tables)
                files, tables, size = [], [], 0
            files.append(file)
            tables.append(table)
            size += table.nbytes
        if files:
            yield files, pa.concat_tables(tables)

    def _rows(self, file: File) -> pa.Table | None:
        """The rows of a small file; None for a large part, and for what is left and named as something is wrong."""
        try:
            return self._read_small(file)
        except (ForeignFile, OSError) as error:
            reason = str(error) if isinstance(error, ForeignFile) else index.unreadable_because(error)
            self._left.append(Skipped(name=file.path.name, reason=reason))
            return None

    def _read_small(self, file: File) -> pa.Table | None:
        """The rows of a small file; None for a part that is large enough.

        Raises:
            ForeignFile: it is to be left as it is.
            OSError: the system does not let it be read.
        """
        if file.path.is_symlink():
            raise ForeignFile("it is a link to another file")
        if not OPEN.fullmatch(file.path.name) and _is_full(file.path):
            self._complete(file.path)
            return None
        piece = read_piece(mirrored.here(file.path))
        if piece.version > SCHEMA_VERSION:
            raise ForeignFile("it was written by a newer version, which knows more of it")
        if not piece.has_known_columns:
            raise ForeignFile("it has columns that are not known here")
        return piece.table

    def _complete(self, part: Path) -> None:
        """Put beside a full part what an earlier version did not put there, or a compaction that was killed before."""
        keyed = self._keys is None or part.with_suffix(keys.SUFFIX).exists()
        if keyed and part.with_suffix(NAMES_SUFFIX).exists():
            return
        columns = (*lookup.KEYS, "started_at", *(self._keys.columns if self._keys else ()))
        known = read_piece(mirrored.here(part), columns=columns)
        if known.version <= SCHEMA_VERSION:
            self._write_sidecars(part, known.table, known.groups)

    def _write_sidecars(self, part: Path, table: pa.Table, groups: Sequence[int]) -> None:
        """Names and keys of a part's rows; keys first, as nothing more is asked of a part that has names."""
        if self._keys is not None:
            keys.write(part, table, self._keys.pairs(table, groups))
        if not part.with_suffix(NAMES_SUFFIX).exists():
            writing.write_names(part, table, lookup.names_of(table, groups))

    def _merge_batch(self, files: Sequence[File], table: pa.Table) -> Compacted:
        """Write the rows of some files into parts, then remove the files."""
        rows = _drop_copies(self._folder, files, table)
        copies = table.num_rows - rows.num_rows
        if len(files) == 1 and not copies:
            return Compacted()
        targets = [self._write_part(part, machine) for part, machine in _parts(rows)]
        sharing.require_sent([*targets, *(self._folder.glob(f"*{SUFFIX}") if copies else ())])
        self._require_held()
        unchanged = [file for file in files if _is_unchanged(file)]
        sharing.remove([path for file in unchanged for path in _list_with_sidecars(file.path)])
        gone = [file for file in unchanged if _remove_merged(file)]
        atomic.flush_folder(self._folder)
        return Compacted(merged=len(gone), parts=len(targets), rows=rows.num_rows, copies=copies)

    def _write_part(self, table: pa.Table, machine: str) -> Path:
        """A new part with these rows, read once more before anything relies on it."""
        newest, full = writing.format_file_date(max(table["started_at"].to_pylist())), table.nbytes >= SMALL_BYTES
        whose = f"-{machine}" if machine and not full else ""
        target = self._folder / f"{PREFIX}-{newest}{whose}-{uuid.uuid4().hex}{SUFFIX}"
        writing.write_table(target, table)
        try:
            piece = read_piece(target)
            if piece.table.num_rows == table.num_rows:
                if full or whose:
                    self._write_sidecars(target, table, piece.groups)
                return target
            reason = "it lacks some of the rows"
        except ForeignFile as error:
            reason = str(error)
        target.unlink()
        raise StoreError(f"The store {self._folder} was not compacted: the new file cannot be read, because {reason}.")


def _parts(rows: pa.Table) -> Iterator[tuple[pa.Table, str]]:
    """Rows as they come into parts, with the machine of which they are; it is empty where they are of several.

    Of one machine and month they lie together if they are `OWN_ROWS` or more.
    """
    ordered = rows.sort_by([(name, "ascending") for name in ORDER])
    machine, month = ordered["machine_id"], pc.utf8_slice_codeunits(ordered["started_at"], 0, 7)
    group = pa.table({"machine": machine, "month": month, "place": pa.array(np.arange(len(ordered)))})
    counted = group.group_by(["machine", "month"], use_threads=False).aggregate([("place", "list")])
    several = [np.zeros(0, np.int64)]
    for name, places in zip(counted["machine"].to_pylist(), counted["place_list"], strict=True):
        if len(own := places.values.to_numpy()) < OWN_ROWS:
            several.append(own)
        else:
            plain = re.sub(r"[^\w-]", "", name, flags=re.ASCII)
            yield from ((part, plain) for part in writing.split(ordered.take(pa.array(own))))
    rest = ordered.take(pa.array(np.sort(np.concatenate(several))))
    yield from ((part, "") for part in writing.split(rest) if part.num_rows)


def _is_full(path: Path) -> bool:
    """Whether a file is a part that is large enough: names lie beside it, or it says so itself."""
    if path.with_suffix(NAMES_SUFFIX).exists():
        return True
    if not path.name.startswith(PREFIX):
        return False
    hint = read_piece(mirrored.here(path), columns=("started_at",)).metadata.get(SIZE_KEY, b"")
    return hint.isdigit() and int(hint) >= SMALL_BYTES


def _is_same_run(file: pa.Table, next_file: pa.Table) -> bool:
    """Whether the rows of a run go on in the next file: its keys follow from all of them."""
    return not set(file["run_id"].to_pylist()).isdisjoint(next_file["run_id"].to_pylist())


def _group_small_parts(listed: Iterable[File]) -> list[list[File]]:
    """Small parts of one machine and month, where there are so many of them that they are merged."""
    waiting: dict[tuple[str, ...], list[File]] = {}
    for file in listed:
        if named := OPEN.fullmatch(file.path.name):
            waiting.setdefault(named.groups(), []).append(file)
    return [files for files in waiting.values() if len(files) >= OPEN_PARTS]


def _drop_copies(folder: Path, files: Sequence[File], table: pa.Table) -> pa.Table:
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


def _is_unchanged(file: File) -> bool:
    """Whether a file is as it was listed, by its names if these are beside it, and nobody wrote it anew."""
    names = file.path.with_suffix(NAMES_SUFFIX)
    with contextlib.suppress(FileNotFoundError, PermissionError):
        facts = (names if names.exists() else file.path).stat()
        return (facts.st_size, facts.st_mtime_ns) == (file.size, file.written_ns)
    return False


def _list_with_sidecars(part: Path) -> list[Path]:
    return [part, *(path for suffix in BESIDE if (path := part.with_suffix(suffix)).exists())]


def _remove_merged(file: File) -> bool:
    """Remove a file whose rows are in a part now; on Windows not if somebody reads it just now."""
    with contextlib.suppress(PermissionError):
        for path in _list_with_sidecars(file.path):
            path.unlink(missing_ok=True)  # a part whose names are here may lie in a shared place
        return True
    return False
