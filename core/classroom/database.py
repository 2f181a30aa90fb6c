"""The database of a host's classes: one SQLite file, its tables, and what happens when the file cannot be used.

It has the state of classes only: questions, students, predictions. Rows of results stay in parquet files. A write is
one transaction, which is on the disk before it is reported as done, so a killed process loses nothing. Deleted content
is overwritten. A file that is damaged, of another program or of a newer version is named in one sentence and left as
it is.
"""

import contextlib
import datetime
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import StoreError, unwritable
from ..text import as_line

FILE_NAME = "classes.sqlite3"

SCHEMA_VERSION = 1
"""Version of `TABLES`, stored as the file's `user_version`."""

APPLICATION_ID = 0x43524F53
"""Says whose file it is; `file` shows it."""

BUSY_S = 30.0
"""How long a write waits for those of others; one takes some milliseconds."""

MAX_DATABASE_BYTES = 2**20
"""Size of a row beyond which it is not read; a question with 400 values has some ten thousand bytes."""

TABLES = (
    """CREATE TABLE classes (
        id TEXT PRIMARY KEY, code TEXT NOT NULL, name TEXT NOT NULL, question TEXT NOT NULL,
        created_at TEXT NOT NULL, expires_at TEXT NOT NULL, closed INTEGER NOT NULL, admission INTEGER NOT NULL,
        secret_hash TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE students (
        class_id TEXT NOT NULL REFERENCES classes (id) ON DELETE CASCADE, id TEXT NOT NULL,
        nickname TEXT NOT NULL, joined_at TEXT NOT NULL, waiting INTEGER NOT NULL, token_hash TEXT NOT NULL,
        results TEXT NOT NULL, winner TEXT, place ANY, fault TEXT NOT NULL DEFAULT '', PRIMARY KEY (class_id, id)
    ) STRICT, WITHOUT ROWID""",
)

_IDENTITY = {"user_version": SCHEMA_VERSION, "application_id": APPLICATION_ID}
_PRAGMAS = ("foreign_keys", "secure_delete", "cell_size_check")


@dataclass(frozen=True)
class Database:
    """The database in one folder.

    Attributes:
        folder: made, for its owner alone, with the first write.
        fill: inserts what is there already into a new database.
    """

    folder: Path
    fill: Callable[[sqlite3.Connection], object] = lambda connection: None

    @property
    def path(self) -> Path:
        return self.folder / FILE_NAME

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Open the database to read; where there is no file, none is made.

        Raises:
            StoreError: the file cannot be read.
        """
        with self._open(self.path if os.path.lexists(self.path) else None) as connection:
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Open the database for one transaction, which is undone if the block raises; the file is made if needed.

        Raises:
            StoreError: the file cannot be read or written.
        """
        self._make_file()
        with self._open(self.path) as connection, _transaction(connection, "IMMEDIATE"):
            yield connection

    def empty_log(self) -> None:
        """Overwrite the write-ahead log, in which deleted content may still be; later if somebody reads just now."""
        with self._open(self.path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _make_file(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreError(unwritable(f"The folder of classes {self.folder}", error)) from error

    @contextlib.contextmanager
    def _open(self, path: Path | None) -> Iterator[sqlite3.Connection]:
        """Open a file, or a database in memory without one."""
        try:
            if path and not stat.S_ISREG(path.lstat().st_mode):
                raise sqlite3.DatabaseError("it is not a plain file")
            connection = sqlite3.connect(path or ":memory:", timeout=BUSY_S, isolation_level=None)
            with contextlib.closing(connection):
                connection.row_factory = sqlite3.Row
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_DATABASE_BYTES)
                connection.executescript("PRAGMA trusted_schema = OFF; PRAGMA synchronous = FULL;")
                for name in _PRAGMAS:
                    connection.execute(f"PRAGMA {name} = ON")
                with _transaction(connection, "DEFERRED"):  # one moment, while another process makes the tables
                    is_new = not _has_tables(connection)
                if is_new:
                    self._make_tables(connection)
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:
            reason = as_line(str(error))
            message = f"The class database {self.path} cannot be used: {reason}. Nothing of it is deleted."
            raise StoreError(message) from error

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        with _transaction(connection, "IMMEDIATE"):
            if _has_tables(connection):  # another process was quicker
                return
            for statement in TABLES:
                connection.execute(statement)
            for name, value in _IDENTITY.items():
                connection.execute(f"PRAGMA {name} = {value}")
            self.fill(connection)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    """Commit what the block does, or undo it if it raises."""
    connection.execute(f"BEGIN {kind}")
    with connection:
        yield


def _has_tables(connection: sqlite3.Connection) -> bool:
    """Return whether a database has tables; raises DatabaseError unless they are `TABLES`."""
    identity = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _IDENTITY}
    tables = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
    if not tables and not any(identity.values()):
        return False
    if identity["application_id"] != APPLICATION_ID:
        raise sqlite3.DatabaseError("it belongs to another program")
    if identity["user_version"] > SCHEMA_VERSION:
        raise sqlite3.DatabaseError("a newer version of Crossover wrote it, so update Crossover")
    if identity != _IDENTITY or tables != set(TABLES):
        raise sqlite3.DatabaseError(f"its tables are not those of schema {SCHEMA_VERSION}")
    return True


def insert_row(connection: sqlite3.Connection, table: str, **values: object) -> None:
    """Insert a row; the names of the table and its columns must not come from input."""
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))


def read_clock() -> datetime.datetime:
    """Return the time that is stored with everything."""
    return datetime.datetime.now(datetime.UTC)
