"""The index of a store: cached facts of each file, and access to rows by the names of their runs.

Files never change, they are only added or removed, so facts read from a file stay valid while it exists. No row is lost
if a folder is compacted while it is listed: a listing counts only if no file vanished meanwhile, and the folder is
listed again if a file vanished before it was read. A row group is decoded and checked when one of its rows is
requested. Nothing here writes.
"""

import contextlib
import functools
import math
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import remote
from ..errors import ForeignFile, StoreError
from ..text import as_line
from .parquet import MAX_FILE_BYTES, object_bytes, read_piece
from .schema import SCHEMA, SCHEMA_VERSION

SUFFIX = ".parquet"

FILE = "file"
"""Name of the column with the number of the row's file."""

AT_ONCE = 1_000
"""Number of small files whose tables are concatenated at a time, because many small tables need much memory."""

UNKNOWN = -1
"""Size of a file that could not be examined. The reason is reported when it is read."""

TRIES = 100
"""Maximum number of listings of a folder after files vanished; a compaction causes one or two."""

OLD_FOLDER = "rows/"
"""Folder at an address in which earlier versions stored their files."""

NAMES = ("run_id", "experiment_id", "machine_id")
"""Columns that are indexed; the name of a trial begins with that of its run."""

RUN_LENGTH = 12
"""Length of the prefix of a trial's name that is the name of its run."""

LINES = pa.schema({**dict.fromkeys(NAMES, pa.string()), "group": pa.int32(), "rows": pa.int64()})
"""Schema of a line of the index: the names of a run, a row group of a file, and the number of its rows there."""

_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d{6}")


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A file that was not read.

    Attributes:
        name: name of the file without invisible characters; a file system allows any bytes in a name.
        reason: reason in words.
    """

    name: str
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", as_line(self.name))


@dataclass(frozen=True, kw_only=True)
class File:
    """A file in the state in which it was listed; a rewritten file is a different object.

    Attributes:
        path: path on this machine, also if the file is not downloaded from its address yet.
        size: size in bytes; `UNKNOWN` if the system does not report it.
        written_ns: time of the last write, in nanoseconds.
    """

    path: Path
    size: int
    written_ns: int


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Facts of the files that a folder currently contains.

    Attributes:
        table: derived facts of each file, with the column `FILE`.
        files: number → file.
        skipped: files that could not be read, by name.
        newer: files of a newer version, by name.
        is_partial: whether older files were not read, because newer files have the required number of rows.
    """

    table: pa.Table
    files: dict[int, File]
    skipped: tuple[Skipped, ...]
    newer: tuple[str, ...]
    is_partial: bool = False


Derive = Callable[[Path], tuple[int, pa.Table]]
"""Function from a file to its schema version and derived facts; raises as `core.results.parquet.read_file` does."""


# Facts of each file


class FolderIndex:
    """Derived facts of the files of a folder, cached between calls and shared by threads.

    Args:
        folder: folder of a store; a missing folder is empty.
        derive: function that derives the facts of a file.
        empty: table of derived facts without rows.
        most_rows: approximate number of rows to read; the newest files are read until it is reached.
    """

    def __init__(self, folder: Path, derive: Derive, empty: pa.Table, most_rows: float = math.inf) -> None:
        self._folder, self._derive, self._lock = folder, derive, threading.Lock()
        self._most_rows, self._is_partial = most_rows, False
        self._rows: dict[File, int] = {}
        self._empty = self._table = empty.append_column(FILE, pa.array([], pa.int32()))
        self._numbers: dict[File, int] = {}
        self._refused: dict[File, str] = {}
        self._newer: set[File] = set()
        self._next = 0

    def now(self) -> Findings:
        """Return the facts of the files that the folder currently contains.

        Raises:
            StoreError: the folder cannot be read, or the address cannot be reached for the first time.
        """
        with self._lock:
            for attempt in range(TRIES):
                unreadable, has_vanished = self._catch_up(list_files(self._folder, now=attempt > 0))
                if not has_vanished:
                    break
            cache = remote.open_cache(self._folder)
            if cache is not None and cache.failure:
                unreadable.append(Skipped(name="recent additions", reason=cache.failure))
            return Findings(
                table=self._table,
                files={number: file for file, number in self._numbers.items()},
                skipped=tuple(sorted([*self._list_refused(), *unreadable], key=lambda entry: entry.name)),
                newer=tuple(sorted(file.path.name for file in self._newer)),
                is_partial=self._is_partial,
            )

    @property
    def refused(self) -> tuple[Skipped, ...]:
        """The files that were refused so far, by name; the folder is not listed again."""
        with self._lock:
            return tuple(sorted(self._list_refused(), key=lambda entry: entry.name))

    def refuse(self, file: File, reason: str) -> None:
        """Exclude a file in which an error was found that was not checked before."""
        with self._lock:
            if file in self._numbers:
                self._forget({file})
                self._refused[file] = reason

    def _list_refused(self) -> list[Skipped]:
        return [Skipped(name=file.path.name, reason=reason) for file, reason in self._refused.items()]

    def _catch_up(self, files: Set[File]) -> tuple[list[Skipped], bool]:
        """Read new files and forget removed ones; return the unreadable files, and whether a file vanished."""
        self._forget((self._numbers.keys() | self._refused.keys()) - files)
        known = self._numbers.keys() | self._refused.keys()
        is_limited = self._most_rows < math.inf
        if not is_limited:
            fetch_files(self._folder, files - known)
        unreadable: list[Skipped] = []
        tables: list[pa.Table] = []
        rows, older, has_vanished = 0, set[File](), False
        for file in sorted(files if is_limited else files - known, key=_sort_by_age, reverse=True):
            if rows >= self._most_rows:
                older.add(file)
                continue
            try:
                if file not in known:
                    tables.insert(0, self._read(file, unreadable))
            except FileNotFoundError:
                has_vanished = True
            rows += self._rows.get(file, 0)
            if len(tables) == AT_ONCE:
                tables = [pa.concat_tables(tables).combine_chunks()]
        self._is_partial = bool(older)
        self._forget(older)
        if tables:
            self._table = pa.concat_tables([self._table, *tables]).combine_chunks()
            del tables
            pa.default_memory_pool().release_unused()  # intermediate tables need several times the memory
        return unreadable, has_vanished

    def _read(self, file: File, unreadable: list[Skipped]) -> pa.Table:
        """Return the derived facts of a file, empty if it cannot be read; raise FileNotFoundError if it was removed."""
        try:
            fetch_file(self._folder, file)
            version, table = self._derive(file.path)
        except ForeignFile as error:
            self._refused[file] = str(error)
            return self._empty
        except (OSError, StoreError) as error:
            if isinstance(error, FileNotFoundError) and file.size != UNKNOWN:
                raise
            unreadable.append(Skipped(name=file.path.name, reason=unreadable_because(error)))
            return self._empty
        number = self._numbers[file] = self._next
        self._rows[file] = table.num_rows
        self._next += 1
        if version > SCHEMA_VERSION:
            self._newer.add(file)
        return table.append_column(FILE, pa.repeat(pa.scalar(number, pa.int32()), table.num_rows))

    def _forget(self, files: Set[File]) -> None:
        numbers = [self._numbers.pop(file) for file in files if file in self._numbers]
        for file in files:
            self._refused.pop(file, None)
            self._rows.pop(file, None)
        self._newer -= files
        if numbers:
            gone = pc.is_in(self._table[FILE], pa.array(numbers, pa.int32()))
            self._table = self._table.filter(pc.invert(gone)).combine_chunks()


@functools.lru_cache(maxsize=16)
def folder_index(
    folder: Path, derive: Derive, empty: Callable[[], pa.Table], most_rows: float = math.inf
) -> FolderIndex:
    """Return the shared index of a folder and derived facts; indexes of a few folders are cached."""
    return FolderIndex(folder, derive, empty(), most_rows)


# Files


def list_files(folder: Path, *, now: bool = False) -> set[File]:
    """Return the files of a store, which together contain all its rows, even during a compaction.

    A listing is not atomic: it may miss a new file that was created during the listing, and the old files that this
    file replaced. But then an old file of the previous listing vanished.

    Args:
        folder: folder of the store.
        now: whether to list a store at an address again even if there is a recent listing.

    Raises:
        StoreError: the folder cannot be read.
    """
    if (cache := remote.open_cache(folder)) is not None:
        return {
            File(path=cache.path_of(name), size=file.size, written_ns=file.written_ns)
            for name, file in cache.list_files(now=now).items()
            if name.endswith(SUFFIX) and ("/" not in name or name.startswith(OLD_FOLDER))
        }
    before, files = {entry.name for entry in _scan_folder(folder)}, set[File]()
    for _ in range(TRIES):
        entries = _scan_folder(folder)
        names = {entry.name for entry in entries}
        with contextlib.suppress(FileNotFoundError):
            files = {file for entry in entries if (file := _look_at(folder / entry.name, entry)) is not None}
            if before <= names:
                break
        before = names
    return files


def fetch_file(folder: Path, file: File) -> None:
    """Download a file of a store at an address unless it exists locally; do nothing for an ordinary folder.

    Raises:
        FileNotFoundError: the file was removed.
        ForeignFile: the file is larger than any file of a store.
        OSError: the cache cannot be written.
        StoreError: the address cannot be reached.
    """
    if (cache := remote.open_cache(folder)) is not None:
        if file.size > MAX_FILE_BYTES:
            raise ForeignFile(f"it has {file.size:,} bytes, more than the {MAX_FILE_BYTES:,} that are read")
        cache.fetch_file(file.path, file.size)


def fetch_files(folder: Path, files: Collection[File]) -> None:
    """Download several files of a store at an address in parallel; errors recur when the files are read."""
    if files and (cache := remote.open_cache(folder)) is not None:
        cache.fetch_files([(file.path, file.size) for file in files if file.size <= MAX_FILE_BYTES])


def is_unchanged(file: File) -> bool:
    """Return whether a file was neither rewritten nor removed since it was listed."""
    try:
        facts = file.path.stat()
    except OSError:
        return False
    return (facts.st_size, facts.st_mtime_ns) == (file.size, file.written_ns)


def unreadable_because(error: OSError | StoreError) -> str:
    """Return why a file cannot be read from the system or an address, in words."""
    return f"it cannot be read: {getattr(error, 'strerror', None) or error}"


def _sort_by_age(file: File) -> tuple[str, str]:
    """Return a sort key: the start time of the newest row in the file's name, or else the write time, and the name."""
    if file.size == UNKNOWN:
        return "~", file.path.name  # sorted as the newest, so that it is reported
    if match := _DATE.search(file.path.name):
        return match[0], file.path.name
    return time.strftime("%Y-%m-%dT%H%M%S", time.gmtime(file.written_ns / 1e9)), file.path.name


def _scan_folder(folder: Path) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as opened:
            return [entry for entry in opened if entry.name.endswith(SUFFIX)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"The store {folder} cannot be read: {error.strerror or error}.") from error


def _look_at(path: Path, entry: "os.DirEntry[str]") -> File | None:
    """Return the file of a folder's entry; None if it is not a file. Raises FileNotFoundError if it vanished.

    A broken or circular link, or an entry that the system does not describe, counts as a file. The reason is reported
    when it is read, and does not affect other files.
    """
    try:
        facts = entry.stat()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not path.is_symlink():
            raise
        return File(path=path, size=UNKNOWN, written_ns=UNKNOWN)
    regular = stat.S_ISREG(facts.st_mode)
    return File(path=path, size=facts.st_size, written_ns=facts.st_mtime_ns) if regular else None


# Rows by name


def find_rows(folder: Path, wanted: Mapping[str, Collection[str]], *, most_bytes: int | None = None) -> pa.Table:
    """Return the rows of a store that have one of the wanted names in each column, with other rows of their runs.

    Args:
        folder: folder of the store.
        wanted: column (`trial_id` or one of `NAMES`) → names.
        most_bytes: maximum memory of the rows as objects.

    Returns:
        A table of `SCHEMA` in any order, in which a trial may occur several times.

    Raises:
        StoreError: the folder cannot be read, the address cannot be reached, or the rows take more than `most_bytes`.
    """
    index, unreadable = _open_index(folder), set[File]()
    for _ in range(TRIES):
        findings = index.now()
        runs = _find_runs(findings.table, wanted)
        tables, size = [SCHEMA.empty_table()], 0
        try:
            for file, group in _find_groups(findings, runs, unreadable):
                fetch_file(folder, file)
                piece = read_piece(file.path, groups=[group]).table
                tables.append(_select_runs(piece, runs, wanted.get("trial_id")))
                size += object_bytes(tables[-1])
                require_room(size, most_bytes)
        except FileNotFoundError:  # merged since the folder was listed
            list_files(folder, now=True)
            unreadable.add(file)
        except ForeignFile as error:
            index.refuse(file, str(error))
        except OSError:
            unreadable.add(file)
        else:
            break
    return pa.concat_tables(tables)


def list_refused(folder: Path) -> tuple[Skipped, ...]:
    """Return the files in which an error was found when their rows were read."""
    return _open_index(folder).refused


def count_rows(folder: Path) -> int:
    """Return the number of rows of a store; a trial with several rows counts each."""
    return int(pc.sum(_open_index(folder).now().table["rows"]).as_py() or 0)


def require_room(size: int, most_bytes: int | None) -> None:
    """Refuse to read rows that would take too much memory; raises StoreError."""
    if most_bytes is not None and size > most_bytes:
        raise StoreError(f"These rows take more than {most_bytes // 2**20:,} MiB of memory and are not read at once.")


def _open_index(folder: Path) -> FolderIndex:
    return folder_index(folder, _read_lines, LINES.empty_table)


def _read_lines(path: Path) -> tuple[int, pa.Table]:
    """Return the schema version of a file, and the lines of its runs; raises as `read_piece` does."""
    piece = read_piece(path, columns=NAMES)
    group = pa.array(np.repeat(np.arange(len(piece.groups)), piece.groups), pa.int32())
    names = piece.table.append_column("group", group)
    counted = names.group_by(names.column_names, use_threads=False).aggregate([([], "count_all")])
    return piece.version, counted.rename_columns({"count_all": "rows"}).select(LINES.names).cast(LINES)


def _find_runs(lines: pa.Table, wanted: Mapping[str, Collection[str]]) -> pa.Array:
    """Return the runs that have one of the wanted names in each column."""
    for column, names in wanted.items():
        if column == "trial_id":
            column, names = "run_id", {name[:RUN_LENGTH] for name in names}
        lines = lines.filter(pc.is_in(lines[column], pa.array(list(names), pa.string())))
    return lines["run_id"].unique()


def _find_groups(findings: Findings, runs: pa.Array, unreadable: Collection[File]) -> list[tuple[File, int]]:
    """Return the files and row groups of all rows of some runs."""
    lines = findings.table.filter(pc.is_in(findings.table["run_id"], runs))
    groups = sorted(set(zip(lines[FILE].to_pylist(), lines["group"].to_pylist(), strict=True)))
    return [(file, group) for number, group in groups if (file := findings.files[number]) not in unreadable]


def _select_runs(table: pa.Table, runs: pa.Array, trials: Collection[str] | None) -> pa.Table:
    """Return the rows of some runs, or only of some of their trials if these are given."""
    chosen = pc.is_in(table["run_id"], runs)
    if trials is not None:
        chosen = pc.and_(chosen, pc.is_in(table["trial_id"], pa.array(list(trials), pa.string())))
    return table.filter(chosen)
