"""Classes of a host: create, find, close and delete them, let students join and predict, and manage the students.

State is in the database (`core.classroom.database`). Each student's results are parquet files in a folder to which only
this student's measurements and uploads write. The only personal data is the chosen nickname; tokens and secrets are
stored as hashes. A class is deleted when its time is over, and never because it cannot be read.
"""

import contextlib
import datetime
import functools
import json
import logging
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from ..errors import CrossoverError, DamagedFile, InvalidValue, NotAllowed, StoreError, unwritable
from ..files import documents
from ..files.project import DATA
from ..results.store import Store
from ..text import as_line
from . import database, results, students
from .database import Database, insert_row, read_clock
from .question import ClassQuestion
from .students import RESULTS, Prediction, Student, check_class_name, check_nickname, fold_name

__all__ = ["Class", "Classes", "Prediction", "Student"]

CLASSES = DATA / "classes"
"""Folder of classes unless the environment names another."""

CLASSES_VARIABLE = "CROSSOVER_CLASSES"
"""Environment variable that names another folder of classes."""

MAX_CLASSES, MAX_STUDENTS = 500, 200

MAX_WAITING = 200
"""Maximum number of students who wait to be admitted; they do not count as students of the class."""

DAYS, MAX_DAYS = 30, 365
"""Default and largest number of days until a class is deleted."""

CLOSED = "This class is closed. You can read its results, but it accepts no new ones."

UNKNOWN = "You are not in this class. Join it again."

_HIDDEN = ".gone-"
"""Prefix of a deleted folder until all files in it are removed."""

_SELECT_CLASSES = "SELECT *, EXISTS (SELECT 1 FROM revealed WHERE class_id = classes.id) AS revealed FROM classes"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Class:
    """One class; its times are ISO 8601, UTC.

    Attributes:
        id: derived from the join code.
        closed: whether nothing more is accepted.
        admission: whether new students wait until the teacher admits them.
        revealed: whether the projector shows the measurements.
    """

    id: str
    code: str
    name: str
    question: ClassQuestion
    created_at: str
    expires_at: str
    closed: bool
    secret_hash: str
    admission: bool = False
    revealed: bool = False

    @property
    def expired(self) -> bool:
        """Whether the time of the class is over."""
        return datetime.datetime.fromisoformat(self.expires_at) <= read_clock()

    @classmethod
    def from_row(cls, row: sqlite3.Row) -> Self:
        """Read a row of the database; raises DamagedFile if the row is not a valid class."""
        values = dict(row)
        try:
            if not all(isinstance(values[name], str) for name in values.keys() - {"closed", "admission", "revealed"}):
                raise InvalidValue("id", values["id"], "text, as all columns but three")
            class_ = cls(**values | {"question": _read_question(values["question"])})
            if class_.id != students.class_id(class_.code):
                raise InvalidValue("id", class_.id, "the ID of the class's join code")
            if not datetime.datetime.fromisoformat(class_.expires_at).tzinfo:
                raise InvalidValue("expires_at", class_.expires_at, "a time with its time zone")
        except (CrossoverError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
            raise DamagedFile("its record", as_line(str(error).rstrip("."), 200)) from error
        closed, admission, revealed = bool(class_.closed), bool(class_.admission), bool(class_.revealed)
        return replace(class_, closed=closed, admission=admission, revealed=revealed)


@functools.lru_cache(maxsize=128)
def _read_question(text: str) -> ClassQuestion:
    return ClassQuestion.from_json(json.loads(text))


class Classes:
    """The classes of one folder, by default `CROSSOVER_CLASSES` or data/classes of the project.

    Methods that read raise StoreError if the database cannot be read; methods that write also if it cannot be written.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = Path(folder or os.environ.get(CLASSES_VARIABLE) or CLASSES).absolute()
        self._database = Database(self.folder, functools.partial(database.import_classes, folder=self.folder))

    def create(
        self, name: str, question: ClassQuestion, *, days: int = DAYS, admission: bool = False
    ) -> tuple[Class, str]:
        """Create a class that is deleted after some days.

        Args:
            name: display name.
            question: question that all students measure.
            days: until it is deleted.
            admission: whether new students wait until the teacher admits them.

        Returns:
            The class, and the teacher's secret code, which is not stored.

        Raises:
            InvalidValue: the name or the number of days is not allowed.
            NotAllowed: the host has the maximum number of classes.
        """
        name = check_class_name(name)
        if isinstance(days, bool) or not 1 <= days <= MAX_DAYS:
            raise InvalidValue("days", days, f"a whole number from 1 to {MAX_DAYS}")
        if self.prune() >= MAX_CLASSES:
            raise NotAllowed(f"There are {MAX_CLASSES} classes on this host, which is the limit. Delete one first.")
        code, secret, now = students.join_code(), students.secret(), read_clock()
        class_ = Class(
            id=students.class_id(code),
            code=code,
            name=name,
            question=question,
            created_at=now.isoformat(),
            expires_at=(now + datetime.timedelta(days=days)).isoformat(),
            closed=False,
            secret_hash=students.hash_code(secret),
            admission=admission,
        )
        with self._database.write() as connection:
            stored = {name: value for name, value in vars(class_).items() if name != "revealed"}
            insert_row(connection, "classes", **stored | {"question": json.dumps(question.to_json())})
        return class_, secret

    def find(self, code: str) -> Class:
        """Return the class with a join code.

        Raises:
            NotAllowed: there is no such class, or its time is over.
            StoreError: the class is damaged.
        """
        class_id = students.class_id(code)
        with self._database.read() as connection:
            class_ = _find_class(connection, class_id)
        is_there = (self.folder / class_id).is_dir()  # an invented code costs only one look-up
        if class_ is None and is_there and (reason := self.damaged().get(class_id)):
            raise _name_damage(reason)
        if class_ is None or class_.expired:
            raise NotAllowed("There is no class with this code. Check the code; the class may also have ended.")
        return class_

    def close(self, class_: Class, *, closed: bool = True) -> Class:
        """Stop accepting input for a class, or accept it again; raises NotAllowed if the class is over."""
        return self._update(class_, "closed", closed)

    def ask_admission(self, class_: Class, *, asked: bool = True) -> Class:
        """Let new students wait until the teacher admits them, or not; raises NotAllowed if the class is over."""
        return self._update(class_, "admission", asked)

    def reveal(self, class_: Class, *, revealed: bool = True) -> Class:
        """Let the projector show the measurements, or hide them again; raises NotAllowed if the class is over."""
        with self._database.write() as connection:
            _require_class(connection, class_)
            connection.execute("DELETE FROM revealed WHERE class_id = ?", (class_.id,))
            if revealed:
                insert_row(connection, "revealed", class_id=class_.id)
            return _require_class(connection, class_)

    def delete(self, class_: Class) -> None:
        """Delete a class with all its contents; raises StoreError, and leaves the class unchanged, if this fails."""
        self._delete(class_.id)

    def delete_by_code(self, code: str) -> str:
        """Delete a class, including one that is damaged.

        Returns:
            Its name, or its id if the name is unknown.

        Raises:
            NotAllowed: there is no such class.
        """
        class_id = students.class_id(code)
        with self._database.read() as connection:
            row = connection.execute("SELECT name FROM classes WHERE id = ?", (class_id,)).fetchone()
        if row is None and not (self.folder / class_id).is_dir():
            raise NotAllowed("There is no class with this code.")
        self._delete(class_id)
        return str(row["name"]) if row else class_id

    def all(self) -> list[Class]:
        """Return every class whose time is not over, the newest first, for the administrator of the host."""
        with self._database.read() as connection:
            live = [class_ for _, class_, _ in _list_classes(connection) if class_ and not class_.expired]
        return sorted(live, key=lambda class_: class_.created_at, reverse=True)

    def damaged(self) -> dict[str, str]:
        """Return the ids of classes that cannot be read, with the reason; they are not deleted."""
        with self._database.read() as connection:
            unreadable = {class_id: reason for class_id, class_, reason in _list_classes(connection) if not class_}
            return database.explain_missing(connection, self.folder) | unreadable

    def prune(self) -> int:
        """Import earlier versions' files, delete classes whose time is over, and finish interrupted deletions.

        Returns:
            The number of classes that remain. A class that cannot be read is logged, remains, and counts.
        """
        if not self.folder.is_dir():
            return 0
        with self._change() as connection:
            database.import_classes(connection, self.folder)
            for class_id, class_, _ in _list_classes(connection):
                if class_ and class_.expired:
                    connection.execute("DELETE FROM classes WHERE id = ?", (class_id,))
                    _hide(self.folder / class_id)
        self._remove_hidden()
        damaged = self.damaged()
        for class_id, reason in damaged.items():
            _log.warning("The class in %s is left as it is: %s", self.folder / class_id, reason)
        return len(self.all()) + len(damaged)

    def join(self, class_: Class, nickname: str) -> tuple[Student, str]:
        """Add a student to a class, or to the students who wait to be admitted.

        Returns:
            The student, and a token that proves the student's identity; only its hash is stored.

        Raises:
            InvalidValue: the nickname is not allowed.
            NotAllowed: the nickname is in use, or the class is closed or full.
        """
        nickname = check_nickname(nickname)
        student_id, token = secrets.token_hex(students.ID_LENGTH // 2), secrets.token_urlsafe(16)
        with self._change() as connection:
            now = _require_open(connection, class_)
            everybody = _list_students(connection, now)
            if fold_name(nickname) in {fold_name(student.nickname) for student in everybody}:
                raise NotAllowed(f"The nickname {nickname!r} is already in use in this class. Choose another one.")
            _require_place(everybody, waiting=now.admission)
            joined_at = read_clock().isoformat()
            student = Student(id=student_id, nickname=nickname, joined_at=joined_at, waiting=now.admission)
            stored = {name: getattr(student, name) for name in ("id", "nickname", "joined_at", "waiting", "results")}
            insert_row(connection, "students", class_id=now.id, token_hash=students.hash_text(token), **stored)
            self.place(now, student_id).mkdir(parents=True)
        return student, token

    def recognise(self, class_: Class, student_id: str, token: str) -> Student:
        """Return the student with an id, after checking the token.

        Raises:
            NotAllowed: there is no such student, or the token is wrong.
            StoreError: the student's data are damaged.
        """
        if not students.is_id(student_id):
            raise NotAllowed(UNKNOWN)
        with self._database.read() as connection:
            row = _find_student_row(connection, class_, student_id)
        if row is None:
            raise NotAllowed(UNKNOWN)
        student = _read_student(row, class_.question)
        if student.is_unreadable:
            raise StoreError(f"Your results are saved, but {student.fault} Tell your teacher.")
        if not secrets.compare_digest(str(row["token_hash"]).encode(), students.hash_text(token).encode()):
            raise NotAllowed(UNKNOWN)
        return student

    def predict(self, class_: Class, student: Student, prediction: Prediction) -> Student:
        """Store a student's prediction, which replaces an earlier one.

        Raises:
            InvalidValue: the prediction is not one of the question's answers.
            NotAllowed: the class is closed, or the student is not admitted yet or has results already.
        """
        with self._database.write() as connection:
            _require_part(connection, class_, student)
            prediction.check(class_.question)
            if results.list_files(self.store(class_, student).folder):
                raise NotAllowed("Your result is already in, so you cannot predict any more.")
            _update_student(connection, class_, student, fault="", **vars(prediction))
        return replace(student, prediction=prediction, fault="")

    def students(self, class_: Class) -> list[Student]:
        """Return all students who have joined or wait to be admitted, in the order of joining."""
        with self._database.read() as connection:
            return _list_students(connection, class_)

    def admit(self, class_: Class, students: Sequence[Student]) -> int:
        """Admit waiting students to a class.

        Returns:
            The number of students who were waiting.

        Raises:
            NotAllowed: the class is full; the first students are admitted.
        """
        chosen = {student.id for student in students}
        with self._database.write() as connection:
            everybody = _list_students(connection, class_)
            waiting = [student for student in everybody if student.waiting and student.id in chosen]
            places = MAX_STUDENTS - sum(not student.waiting for student in everybody)
            for student in waiting[: max(0, places)]:
                _update_student(connection, class_, student, waiting=False)
        if len(waiting) > places:
            raise _name_full()
        return len(waiting)

    def remove(self, class_: Class, students: Sequence[Student]) -> None:
        """Delete students with all results; raises StoreError, and leaves all unchanged, if one cannot be deleted."""
        with self._change() as connection:
            for student in students:
                self._delete_student(connection, class_, student)
        self._remove_hidden()

    def merge(self, class_: Class, gone: Student, kept: Student) -> None:
        """Move the results of `gone` to `kept`, such as for somebody who joined twice, and delete `gone`.

        The prediction of `kept` stays, unless there is none. If either was admitted, `kept` is admitted. An
        interruption leaves both students, and each result with one of them; a second call finishes the merge.

        Raises:
            NotAllowed: both are the same student, `kept` is unreadable, or there are more results than one student may
                have.
        """
        if gone.id == kept.id:
            raise NotAllowed("Choose two students to merge.")
        if kept.is_unreadable:
            raise NotAllowed(f"Nothing can be given to {kept.nickname}: {kept.fault}")
        target = self.store(class_, kept).folder
        sources = sorted(self.place(class_, gone.id).glob("results*"))
        files = [file for folder in sources for file in results.list_files(folder)]
        results.require_room([*files, *results.list_files(target)])
        with self._change() as connection:
            for student in (gone, kept):
                _require_student(connection, class_, student)
            target.mkdir(exist_ok=True)
            for file in files:
                file.rename(target / file.name)
            documents.flush_folder(target)
            if kept.prediction is None and gone.prediction is not None:
                _update_student(connection, class_, kept, **vars(gone.prediction))
            if not gone.waiting:
                _update_student(connection, class_, kept, waiting=False)
            self._delete_student(connection, class_, gone)
        self._remove_hidden()

    def store(self, class_: Class, student: Student) -> Store:
        """Return the store of a student's results, to which nobody else writes."""
        return results.StudentStore(self.place(class_, student.id) / student.results)

    def require_part(self, class_: Class, student: Student) -> None:
        """Raise NotAllowed if the class is closed now, or the student is not admitted yet or was removed."""
        with self._database.read() as connection:
            _require_part(connection, class_, student)

    def require_room(self, class_: Class, student: Student) -> None:
        """Raise NotAllowed if a student must not measure: too many results, or as `require_part` does."""
        self.require_part(class_, student)
        results.require_room(results.list_files(self.store(class_, student).folder), rows=1)

    def take_file(self, class_: Class, student: Student, data: bytes, name: str) -> results.Receipt:
        """Add the rows of a file to a student's results.

        Raises:
            NotAllowed: as `require_part` does, or the student would have too many rows.
            StoreError: the store cannot be written.
        """
        self.require_part(class_, student)
        return results.add_file(
            self.store(class_, student),
            data,
            name,
            question=class_.question,
            code=class_.code,
            nickname=student.nickname,
        )

    def place(self, class_: Class, student_id: str) -> Path:
        """Return the folder of a student."""
        return self.folder / class_.id / "students" / student_id

    @contextlib.contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction that also changes folders; raises StoreError where they cannot be written."""
        try:
            with self._database.write() as connection:
                yield connection
        except OSError as error:
            raise StoreError(unwritable(f"The folder of classes {self.folder}", error)) from error

    def _update(self, class_: Class, column: str, value: bool) -> Class:
        with self._database.write() as connection:
            _require_class(connection, class_)
            connection.execute(f"UPDATE classes SET {column} = ? WHERE id = ?", (value, class_.id))
            return _require_class(connection, class_)

    def _delete(self, class_id: str) -> None:
        with self._change() as connection:
            connection.execute("DELETE FROM classes WHERE id = ?", (class_id,))
            _hide(self.folder / class_id)
        self._remove_hidden()

    def _delete_student(self, connection: sqlite3.Connection, class_: Class, student: Student) -> None:
        connection.execute("DELETE FROM students WHERE class_id = ? AND id = ?", (class_.id, student.id))
        _hide(self.place(class_, student.id))

    def _remove_hidden(self) -> None:
        """Remove the folders of deleted classes and students; restore the name of a folder whose row still exists."""
        with self._database.write() as connection:
            known = {name for (name,) in connection.execute("SELECT id FROM classes UNION SELECT id FROM students")}
            for path in [*self.folder.glob(f"{_HIDDEN}*"), *self.folder.glob(f"*/students/{_HIDDEN}*")]:
                name = path.name.removeprefix(_HIDDEN)
                if name in known:
                    path.rename(path.with_name(name))
                else:
                    shutil.rmtree(path, ignore_errors=True)
        self._database.empty_log()


def _hide(folder: Path) -> None:
    """Rename a folder that will be removed, so that nobody can write into it; raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        folder.rename(folder.with_name(_HIDDEN + folder.name))
        documents.flush_folder(folder.parent)


def _list_classes(connection: sqlite3.Connection) -> Iterator[tuple[str, Class | None, str]]:
    """Yield the id of every class with the class, or with the reason why it cannot be read."""
    for row in connection.execute(f"{_SELECT_CLASSES} ORDER BY id").fetchall():
        try:
            yield row["id"], Class.from_row(row), ""
        except DamagedFile as error:
            yield str(row["id"]), None, str(error)


def _find_class(connection: sqlite3.Connection, class_id: str) -> Class | None:
    row = connection.execute(f"{_SELECT_CLASSES} WHERE id = ?", (class_id,)).fetchone()
    try:
        return Class.from_row(row) if row else None
    except DamagedFile as error:
        raise _name_damage(str(error)) from error


def _name_damage(reason: str) -> StoreError:
    return StoreError(f"Nothing of this class is lost, but {reason} Tell the owner of this host.")


def _require_class(connection: sqlite3.Connection, class_: Class) -> Class:
    """Return the current state of a class; raises NotAllowed if it is over or deleted."""
    now = _find_class(connection, class_.id)
    if now is None or now.expired:
        raise NotAllowed("This class has ended.")
    return now


def _require_open(connection: sqlite3.Connection, class_: Class) -> Class:
    now = _require_class(connection, class_)
    if now.closed:
        raise NotAllowed(CLOSED)
    return now


def _require_part(connection: sqlite3.Connection, class_: Class, student: Student) -> None:
    _require_open(connection, class_)
    if _require_student(connection, class_, student)["waiting"]:
        raise NotAllowed("Your teacher has not admitted you to this class yet.")


def _require_student(connection: sqlite3.Connection, class_: Class, student: Student) -> sqlite3.Row:
    row = _find_student_row(connection, class_, student.id)
    if row is None:
        raise NotAllowed(UNKNOWN)
    return row


def _require_place(everybody: Sequence[Student], *, waiting: bool) -> None:
    """Raise NotAllowed unless a class has a place for one more student, admitted or waiting."""
    count = sum(student.waiting == waiting for student in everybody)
    if waiting and count >= MAX_WAITING:
        raise NotAllowed(
            f"{MAX_WAITING} students wait to be admitted to this class, which is the limit. Try again later."
        )
    if not waiting and count >= MAX_STUDENTS:
        raise _name_full()


def _name_full() -> NotAllowed:
    return NotAllowed(f"This class has {MAX_STUDENTS} students, which is the limit.")


def _list_students(connection: sqlite3.Connection, class_: Class) -> list[Student]:
    query = "SELECT * FROM students WHERE class_id = ? ORDER BY joined_at, nickname"
    return [_read_student(row, class_.question) for row in connection.execute(query, (class_.id,))]


def _find_student_row(connection: sqlite3.Connection, class_: Class, student_id: str) -> sqlite3.Row | None:
    query = "SELECT * FROM students WHERE class_id = ? AND id = ?"
    found: sqlite3.Row | None = connection.execute(query, (class_.id, student_id)).fetchone()
    return found


def _read_student(row: sqlite3.Row, question: ClassQuestion) -> Student:
    """Read a row of the database; raises StoreError if the row is not a valid student."""
    values = {name: row[name] for name in ("id", "nickname", "joined_at", "results", "fault")}
    try:
        student = documents.convert_to_type(values | {"waiting": bool(row["waiting"])}, Student)
        student = replace(student, fault=as_line(student.fault, 500))
        if not students.is_id(student.id) or not RESULTS.fullmatch(student.results):
            raise _name_damage("a student in it has a folder with a name that is not allowed.")
    except ValueError as error:
        raise _name_damage(f"a student in it cannot be read: {as_line(str(error), 200)}.") from error
    if row["winner"] is None:
        return student
    try:
        prediction = documents.convert_to_type({"winner": row["winner"], "place": row["place"]}, Prediction)
        prediction.check(question)
    except (InvalidValue, ValueError) as error:
        return replace(student, fault=f"the prediction is damaged: {as_line(str(error), 200)}")
    return replace(student, prediction=prediction)


def _update_student(connection: sqlite3.Connection, class_: Class, student: Student, **values: object) -> None:
    columns = ", ".join(f"{name} = ?" for name in values)
    connection.execute(
        f"UPDATE students SET {columns} WHERE class_id = ? AND id = ?", (*values.values(), class_.id, student.id)
    )
