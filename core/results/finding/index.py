"""What follows from the files of a folder, worked out once for each: for stores that are looked at again and again.

Files never change, they only come and go, so what was derived of one stands for as long as it is there. A folder that
is compacted while it is listed loses no row here: a listing counts only if nothing vanished while it was made, and a
file that vanished before it was read makes the folder be listed again. Nothing here writes, or says what is derived.
"""

import functools
import math
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from core.errors import ForeignFile, StoreError
from core.results.finding import mirrored
from core.results.schema import SCHEMA_VERSION
from core.text import as_line

SUFFIX = ".parquet"

FILE = "file"
"""Column that is put beside what was derived: the number of the row's file."""

AT_ONCE = 1_000
"""Small files whose tables are put together at a time; many tables of one row each take more room than their rows."""

UNKNOWN = -1
"""Size of a file that could not be looked at. Why, shows when it is read."""

_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d{6}")

TRIES = 100
"""Times that a folder is listed again because something vanished; a compaction makes that happen once or twice."""


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A file that was not read.

    Attributes:
        name: of the file, without what cannot be seen; a file system takes any bytes for a name.
        reason: in words.
    """

    name: str
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", as_line(self.name))


@dataclass(frozen=True, kw_only=True)
class File:
    """A file as it was when the folder was listed; written anew, it is another one.

    Attributes:
        path: where it is.
        size: in bytes; `UNKNOWN` where the system does not say.
        written_ns: when it was last written.
    """

    path: Path
    size: int
    written_ns: int


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What follows from the files that a folder holds now.

    Attributes:
        table: what was derived of each, with the column `FILE`.
        files: number → file.
        skipped: files that could not be read, by name.
        newer: files of a newer version, by name.
        older: files that were not looked at, as newer ones have as many rows as are wanted.
    """

    table: pa.Table
    files: dict[int, File]
    skipped: tuple[Skipped, ...]
    newer: tuple[str, ...]
    older: tuple[File, ...] = ()


Derive = Callable[[Path], tuple[int, pa.Table]]
"""From a file to its schema version and what is derived of it; raises as `core.results.reading.read_file` does."""


class FolderIndex:
    """What follows from the files of a folder; kept from one look to the next, and shared by threads.

    Args:
        folder: of a store; one that does not exist is empty.
        derive: what to derive.
        empty: what is derived of no file.
        most_rows: how many are wanted, or a few more; then the newest files are looked at, and older ones are not.
    """

    def __init__(self, folder: Path, derive: Derive, empty: pa.Table, most_rows: float = math.inf) -> None:
        self._folder, self._derive, self._lock = folder, derive, threading.Lock()
        self._most_rows, self._older = most_rows, set[File]()
        self._rows: dict[File, int] = {}
        self._empty = self._table = empty.append_column(FILE, pa.array([], pa.int32()))
        self._numbers: dict[File, int] = {}
        self._refused: dict[File, str] = {}
        self._newer: set[File] = set()
        self._next = 0

    def now(self) -> Findings:
        """What follows from what the folder holds now.

        Raises:
            StoreError: the folder itself cannot be read.
        """
        with self._lock:
            gone = set[File]()  # of a file of a mirror that is gone in the place something may stay here for a while
            for _ in range(TRIES):
                unreadable, vanished = self._catch_up(listed(self._folder) - gone)
                if not vanished:
                    break
                gone |= vanished
                mirrored.require_brought(self._folder)
            refused = [Skipped(name=file.path.name, reason=reason) for file, reason in self._refused.items()]
            if failure := mirrored.failure(self._folder):
                refused.append(Skipped(name="what other machines added lately", reason=failure))
            return Findings(
                table=self._table,
                files={number: file for file, number in self._numbers.items()},
                skipped=tuple(sorted([*refused, *unreadable], key=lambda entry: entry.name)),
                newer=tuple(sorted(file.path.name for file in self._newer)),
                older=tuple(self._older),
            )

    @property
    def refused(self) -> tuple[Skipped, ...]:
        """The files that were refused so far, without another look at the folder; by name."""
        with self._lock:
            named = [Skipped(name=file.path.name, reason=reason) for file, reason in self._refused.items()]
        return tuple(sorted(named, key=lambda entry: entry.name))

    def refuse(self, file: File, reason: str) -> None:
        """Leave out a file of which something turned out to be wrong that was not looked at before."""
        with self._lock:
            if file in self._numbers:
                self._forget({file})
                self._refused[file] = reason

    def _catch_up(self, files: Set[File]) -> tuple[list[Skipped], set[File]]:
        """Read what is new, drop what is gone; files that may be readable later, and those that vanished meanwhile."""
        self._forget((self._numbers.keys() | self._refused.keys()) - files)
        limited = self._most_rows < math.inf
        new = files if limited else files - self._numbers.keys() - self._refused.keys()
        unreadable: list[Skipped] = []
        tables: list[pa.Table] = []
        rows, older, vanished = 0, set[File](), set[File]()
        for file in sorted(new, key=_begun if limited else _name, reverse=True):
            if rows >= self._most_rows:
                older.add(file)
                continue
            try:
                if file not in self._numbers and file not in self._refused:
                    tables.insert(0, self._read(file, unreadable))
            except FileNotFoundError:
                vanished.add(file)
            rows += self._rows.get(file, 0)
            if len(tables) == AT_ONCE:
                tables = [pa.concat_tables(tables).combine_chunks()]
        self._older = older
        self._forget(older)
        if tables:
            self._table = pa.concat_tables([self._table, *tables]).combine_chunks()
            del tables
            pa.default_memory_pool().release_unused()  # what was decoded on the way takes several times the room
        return unreadable, vanished

    def _read(self, file: File, unreadable: list[Skipped]) -> pa.Table:
        """What is derived of a file, nothing of one that cannot be read; raises FileNotFoundError if it is gone."""
        try:
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
    """The one index of a folder and of what is derived; those of a few folders are remembered."""
    return FolderIndex(folder, derive, empty(), most_rows)


def listed(folder: Path) -> set[File]:
    """The files of a store, none of those missing that hold its rows, even while it is compacted.

    A listing is not made in one moment: it may miss a new file that was made while it went on, and the old ones that
    were removed for it. But then an old one was there when the listing before was made, and vanished.

    Raises:
        StoreError: the folder cannot be read.
    """
    mirrored.bring(folder)
    now = set(_entries(folder))
    for _ in range(TRIES):
        before, now = now, set(_entries(folder))
        if {file.path for file in before} <= {file.path for file in now}:
            break
    return now


def unreadable_because(error: OSError | StoreError) -> str:
    """Why the system, or a place that is shared, does not let a file be read, in words."""
    return f"it cannot be read: {getattr(error, 'strerror', None) or error}"


def _name(file: File) -> str:
    return file.path.name


def _begun(file: File) -> tuple[str, str]:
    """When the newest row of a file began, as its name says; else when it was written, and a file's name."""
    if file.size == UNKNOWN:
        return "~", file.path.name  # the newest, so that it is named
    if dated := _DATE.search(file.path.name):
        return dated[0], file.path.name
    return time.strftime("%Y-%m-%dT%H%M%S", time.gmtime(file.written_ns / 1e9)), file.path.name


def _entries(folder: Path) -> Iterator[File]:
    """The files of rows; one beside which its names lie is known by these, and in a mirror it may lie elsewhere."""
    beside = mirrored.NAMES_SUFFIX
    try:
        with os.scandir(folder) as opened:
            entries = {entry.name: entry for entry in opened if entry.name.endswith((SUFFIX, beside))}
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"The store {folder} cannot be read: {error.strerror or error}.") from error
    elsewhere = mirrored.is_mirror(folder)
    for name, entry in entries.items():
        if name.endswith(SUFFIX):
            entry = entries.get(name.removesuffix(SUFFIX) + beside, entry)
        elif not elsewhere or (name := name.removesuffix(beside) + SUFFIX) in entries:
            continue
        if file := _looked_at(folder / name, entry):
            yield file


def _looked_at(path: Path, entry: "os.DirEntry[str]") -> File | None:
    """What an entry of a folder is; None where it is no file, or vanished since the folder was opened.

    A link that leads nowhere or in a circle, or whatever else the system will not tell of, is a file all the same: it
    is named with the reason when it is read, and hides no other.
    """
    try:
        facts = entry.stat()
    except OSError as error:
        gone = isinstance(error, FileNotFoundError) and not path.is_symlink()
        return None if gone else File(path=path, size=UNKNOWN, written_ns=UNKNOWN)
    regular = stat.S_ISREG(facts.st_mode)
    return File(path=path, size=facts.st_size, written_ns=facts.st_mtime_ns) if regular else None
