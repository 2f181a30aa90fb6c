"""The database of a host's classes: one SQLite file, its tables, and errors if the file cannot be used.

It contains only the state of classes: questions, students, predictions. Rows of results stay in parquet files. A write
is one transaction, which is on the disk before it is reported as done, so a killed process loses nothing. Deleted
content is overwritten. A file that is damaged, from another program or of a newer version is named in an error and left
unchanged.

The module also imports the JSON files in which earlier versions stored classes.

A class had a folder with a class.json. Each student had a folder below it with a student.json, a prediction.json and
the results. A class is imported once, with all of its students; its files stay unchanged until the class is deleted. A
class whose class.json is damaged is not imported. No other damaged file prevents the import.
"""

import contextlib
import datetime
import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..errors import CrossoverError, DamagedFile, InvalidValue, StoreError, unwritable
from ..files import documents
from ..text import as_line
from . import students
from .question import ClassQuestion
from .students import RESULTS, Prediction

FILE_NAME = "classes.sqlite3"

SCHEMA_VERSION = 2
"""Version of `TABLES`, stored as the file's `user_version`."""

APPLICATION_ID = 0x43524F53
"""Identifies the program that the file belongs to; the command `file` shows it."""

BUSY_S = 30.0
"""Seconds for which a write waits for other writes; a write takes some milliseconds."""

MAX_DATABASE_BYTES = 2**20
"""Maximum size of a row that is read; a question with 400 values has some ten thousand bytes."""

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
    "CREATE TABLE revealed (class_id TEXT PRIMARY KEY REFERENCES classes (id) ON DELETE CASCADE) STRICT",
)

FIRST_TABLES = TABLES[:2]
"""Tables of version 1, to which the others are added."""

_IDENTITY = {"user_version": SCHEMA_VERSION, "application_id": APPLICATION_ID}
_PRAGMAS = ("foreign_keys", "secure_delete", "cell_size_check")


@dataclass(frozen=True)
class Database:
    """The database in one folder.

    Attributes:
        folder: folder of the file; the first write creates it with access for its owner only.
        fill: inserts existing data into a new database.
    """

    folder: Path
    fill: Callable[[sqlite3.Connection], object] = lambda connection: None

    @property
    def path(self) -> Path:
        return self.folder / FILE_NAME

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Open the database to read; a missing file is not created.

        Raises:
            StoreError: the file cannot be read.
        """
        with self._open(self.path if os.path.lexists(self.path) else None) as connection:
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Open the database for one transaction, which is undone if the block raises; create the file if needed.

        Raises:
            StoreError: the file cannot be read or written.
        """
        self._make_file()
        with self._open(self.path) as connection, _transaction(connection, "IMMEDIATE"):
            yield connection

    def empty_log(self) -> None:
        """Overwrite the write-ahead log, which may contain deleted content; postponed while another process reads."""
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
        """Open a file, or a database in memory if there is no path."""
        try:
            if path and not stat.S_ISREG(path.lstat().st_mode):
                raise sqlite3.DatabaseError("it is not a regular file")
            connection = sqlite3.connect(path or ":memory:", timeout=BUSY_S, isolation_level=None)
            with contextlib.closing(connection):
                connection.row_factory = sqlite3.Row
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_DATABASE_BYTES)
                connection.executescript("PRAGMA trusted_schema = OFF; PRAGMA synchronous = FULL;")
                for name in _PRAGMAS:
                    connection.execute(f"PRAGMA {name} = ON")
                with _transaction(connection, "DEFERRED"):  # a consistent view while another process creates the tables
                    is_new = not _has_tables(connection)
                if is_new:
                    self._make_tables(connection)
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:
            reason = as_line(str(error))
            message = f"The class database {self.path} cannot be used: {reason}. Nothing was deleted."
            raise StoreError(message) from error

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        with _transaction(connection, "IMMEDIATE"):
            if _has_tables(connection):  # another process was quicker
                return
            there = _list_tables(connection)
            for statement in TABLES:
                if statement not in there:
                    connection.execute(statement)
            for name, value in _IDENTITY.items():
                connection.execute(f"PRAGMA {name} = {value}")
            if not there:
                self.fill(connection)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    """Commit the changes of the block, or undo them if it raises."""
    connection.execute(f"BEGIN {kind}")
    with connection:
        yield


def _has_tables(connection: sqlite3.Connection) -> bool:
    """Return whether a database has all tables; raises DatabaseError if its tables differ from `TABLES`."""
    identity = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _IDENTITY}
    tables = _list_tables(connection)
    if not tables and not any(identity.values()):
        return False
    if identity["application_id"] != APPLICATION_ID:
        raise sqlite3.DatabaseError("it belongs to another program")
    if identity["user_version"] > SCHEMA_VERSION:
        raise sqlite3.DatabaseError("it was written by a newer version of Crossover; update Crossover")
    if identity["user_version"] == 1 and tables == set(FIRST_TABLES):
        return False
    if identity != _IDENTITY or tables != set(TABLES):
        raise sqlite3.DatabaseError(f"its tables are not those of schema {SCHEMA_VERSION}")
    return True


def _list_tables(connection: sqlite3.Connection) -> set[str]:
    return {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}


def insert_row(connection: sqlite3.Connection, table: str, **values: object) -> None:
    """Insert a row; names of tables and columns must not come from user input."""
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))


def read_clock() -> datetime.datetime:
    """Return the current time as it is stored."""
    return datetime.datetime.now(datetime.UTC)


CLASS_FILE, STUDENT_FILE, PREDICTION_FILE = "class.json", "student.json", "prediction.json"

MOST_FILE_BYTES = 256 * 1024
"""Maximum size of a class.json that is read."""

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_Moment = Annotated[datetime.datetime, msgspec.Meta(tz=True)]


@dataclass(frozen=True, kw_only=True)
class _ClassFile:
    code: _Name
    name: _Name
    question: dict[str, Any]
    created_at: _Moment
    expires_at: _Moment
    closed: bool
    secret_hash: _Name
    admission: bool = False  # version 0.1.0 let everybody in


@dataclass(frozen=True, kw_only=True)
class _StudentFile:
    nickname: _Name
    joined_at: _Moment
    token_hash: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
    waiting: bool = False
    results: Annotated[str, msgspec.Meta(pattern=RESULTS.pattern)] = "results"


def import_classes(connection: sqlite3.Connection, folder: Path) -> None:
    """Insert every class in the files of a folder that is not in the database yet, unless its file is damaged."""
    for name in _list_missing(connection, folder):
        with contextlib.suppress(DamagedFile):  # named by `explain_missing`
            values, students = _read_class(folder / name)
            insert_row(connection, "classes", id=name, **values)
            for student_id, student in students.items():
                insert_row(connection, "students", class_id=name, id=student_id, **student)


def explain_missing(connection: sqlite3.Connection, folder: Path) -> dict[str, str]:
    """Return the folders of classes that are not in the database, with the reason in one sentence."""
    reasons = {}
    for name in _list_missing(connection, folder):
        try:
            _read_class(folder / name)
        except DamagedFile as error:
            reasons[name] = str(error)
    return reasons


def _list_missing(connection: sqlite3.Connection, folder: Path) -> list[str]:
    """Return the folders of classes that are not in the database."""
    known = {name for (name,) in connection.execute("SELECT id FROM classes")}
    return [name for name in _list_ids(folder) if name not in known]


def _list_ids(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(path.name for path in folder.iterdir() if students.is_id(path.name))
    return []


def _read_class(folder: Path) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
    """Return the columns of a class, and the columns of each student by id.

    Raises:
        DamagedFile: the file of the class is missing or cannot be read.
    """
    found = documents.read_json(folder / CLASS_FILE, _ClassFile, most_bytes=MOST_FILE_BYTES)
    if found is None:
        raise DamagedFile(folder.name, f"the database does not have this class, and there is no {CLASS_FILE}")
    try:
        question = ClassQuestion.from_json(found.question)
    except (CrossoverError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise DamagedFile(CLASS_FILE, f"its question cannot be read: {error}".rstrip(".")) from error
    if students.class_id(found.code) != folder.name:
        raise DamagedFile(CLASS_FILE, "it belongs to another folder")
    times = {name: getattr(found, name).isoformat() for name in ("created_at", "expires_at")}
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    values |= times | {"code": students.format_code(found.code), "question": json.dumps(question.to_json())}
    places = {name: folder / "students" / name for name in _list_ids(folder / "students")}
    return values, {name: _read_student(place, question) for name, place in places.items()}


def _read_student(folder: Path, question: ClassQuestion) -> dict[str, object]:
    """Return the columns of a student, including errors of the files."""
    nickname = f"unreadable {folder.name[:6]}"  # the teacher may give the results to another student
    values: dict[str, object] = {"nickname": nickname, "joined_at": "", "waiting": False, "token_hash": ""}
    values |= {"results": "results", "fault": f"{STUDENT_FILE} is missing."}
    try:
        student = documents.read_json(folder / STUDENT_FILE, _StudentFile)
        if student:
            values |= vars(student) | {"joined_at": student.joined_at.isoformat(), "fault": ""}
        if student and (prediction := documents.read_json(folder / PREDICTION_FILE, Prediction)):
            prediction.check(question)
            values |= vars(prediction)
    except DamagedFile as error:
        values["fault"] = str(error)
    except InvalidValue as error:
        values["fault"] = str(DamagedFile(PREDICTION_FILE, str(error).rstrip(".")))
    return values
