"""What a student has measured: rows of their own store, read within bounds, with what is wrong with them.

A store of one student is small. Whatever else lies in it, from an earlier version or by another hand, costs its student
rows and nobody else time: the newest files are read until there are as many rows, or bytes, as one student may have.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import ForeignFile, NotAllowed, StoreError
from core.results.finding.index import File, listed, unreadable_because
from core.results.reading import read_file
from core.results.schema import SCHEMA, Trial
from core.results.store import Store, keep_most_complete
from core.results.tables import from_table

MAX_ROWS = 1_000
"""Rows that a student may bring, and have; a question of a class has some tens."""

MOST_ROWS = 2 * MAX_ROWS
"""Rows that are read: a measurement that was under way when the last row that is allowed came in is still shown."""

MAX_EXCHANGE_BYTES = 16 * 2**20
"""What the rows of a student may take: as Python's own objects it is five times that. A row has some thousand bytes."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a student has: rows that were read, none twice, in the order of run and contender; what was not, and why."""

    rows: tuple[Trial, ...] = ()
    faults: tuple[str, ...] = ()


class StudentStore(Store):
    """The store of a student: nothing makes it anew once the student, or the class, was removed."""

    def check_writable(self) -> None:
        """Find out whether rows can be written, as of any store; raises StoreError, also where the student is gone."""
        if not self.folder.parent.is_dir():
            raise StoreError(f"The store {self.folder} cannot be written: its student or class was removed.")
        super().check_writable()


def read(folder: Path) -> Measured:
    """The rows of a student's store, none of a folder that does not exist; raises as `read_table` does."""
    table, faults = read_table(folder)
    ordered = table.sort_by([("started_at", "ascending"), ("trial_id", "ascending")])
    return Measured(rows=tuple(from_table(ordered)), faults=faults)


def read_table(folder: Path) -> tuple[pa.Table, tuple[str, ...]]:
    """The rows of a student's store as a table of `SCHEMA`, in any order, and what was not read.

    Raises:
        StoreError: the folder cannot be read.
    """
    faults: list[str] = []
    newest_first = sorted(listed(folder), key=lambda file: (file.written_ns, file.path.name), reverse=True)
    tables = list(_read_bounded(newest_first, faults))
    return keep_most_complete(pa.concat_tables([SCHEMA.empty_table(), *tables])), tuple(faults)


def files(folder: Path) -> list[Path]:
    """The files of a student's store; raises as `read_table` does."""
    return sorted(file.path for file in listed(folder))


def count(file: Path) -> int:
    """Rows that a file says it has; none where it cannot be read."""
    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError, ValueError):
        return 0


def require_room(files: Sequence[Path], *, rows: int = 0, size: int = 0) -> None:
    """Raise NotAllowed if some files of rows, with so many rows and bytes beyond, are more than a student may have."""
    rows += sum(map(count, files))
    size += sum(file.stat().st_size for file in files if file.exists())
    if rows > MAX_ROWS or size > MAX_EXCHANGE_BYTES:
        most = f"{MAX_ROWS:,} rows of {MAX_EXCHANGE_BYTES // 2**20} MiB"
        raise NotAllowed(
            f"A student may have {most} in a class, and these would be {rows:,} of {size / 2**20:,.1f} MiB."
        )


def signature(folder: Path) -> str:
    """Changes whenever a file of the folder does, and is empty where there is none; raises as `read_table` does."""
    found = sorted((file.path.name, file.size, file.written_ns) for file in listed(folder))
    return hashlib.sha256(repr(found).encode(errors="surrogatepass")).hexdigest() if found else ""


def _read_bounded(newest_first: Sequence[File], faults: list[str]) -> Iterator[pa.Table]:
    rows = size = 0
    for file in newest_first:
        if rows >= MOST_ROWS:
            faults.append(f"only the newest {MOST_ROWS:,} rows count")
            return
        try:
            table = read_file(file.path, most_rows=MOST_ROWS - rows)[1]
        except FileNotFoundError:  # merged, or removed, since it was listed
            continue
        except ForeignFile as error:
            faults.append(f"a file cannot be read, because {error}")
            continue
        except OSError as error:
            faults.append(f"a file cannot be read, because {unreadable_because(error)}")
            continue
        rows, size = rows + table.num_rows, size + table.nbytes
        if size > MAX_EXCHANGE_BYTES:
            faults.append(f"only the newest rows count, as all take more than {MAX_EXCHANGE_BYTES // 2**20} MiB")
            return
        yield table
