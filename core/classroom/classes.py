"""Classes as folders: made and found, their students, what each expects, and each one's own store of results.

Everybody writes into a folder of their own, under a temporary name that is then renamed, so that thirty at once lose
nothing and several servers can share the classes. The folder of a class follows from its join code and is not listed
to who does not know it. Stored of a person is the nickname they chose; tokens and secrets are kept as hashes. A class
is dropped when its time is over, and never because its file cannot be read. What is in a file is the business of
`core.classroom.records`, what the results say together that of `core.classroom.pooled`.
"""

import contextlib
import datetime
import logging
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from core.classroom import codes, folders, measured, names, records
from core.classroom.names import NAME_LENGTH, NICKNAME_LENGTH
from core.classroom.question import ClassQuestion
from core.classroom.records import Class, Prediction, Student
from core.errors import DamagedFile, InvalidValue, NotAllowed, StoreError
from core.files import atomic
from core.files.project import PROJECT
from core.results.store import Store

__all__ = ["NAME_LENGTH", "NICKNAME_LENGTH", "Class", "Classes", "Prediction", "Student"]

CLASSES = PROJECT / "data" / "classes"
"""Folder of classes unless the environment names another."""

CLASSES_VARIABLE = "CROSSOVER_CLASSES"
"""Environment variable that names another folder of classes."""

MAX_CLASSES, MAX_STUDENTS = 500, 200

MAX_WAITING = 200
"""Students that wait to be admitted; they take nobody's place."""

DAYS, MAX_DAYS = 30, 365
"""Days that a class lives unless asked otherwise, and at most."""

CLOSED = "This class is closed: its results can be looked at, and nothing more is taken."

UNKNOWN = "This class does not know you; join it again."

_log = logging.getLogger(__name__)


class Classes:
    """The classes of one folder: `CROSSOVER_CLASSES`, or data/classes of the project, unless given."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = Path(folder or os.environ.get(CLASSES_VARIABLE) or CLASSES).absolute()

    def create(
        self, name: str, question: ClassQuestion, *, days: int = DAYS, admission: bool = False
    ) -> tuple[Class, str]:
        """Make a class, to be dropped after some days; with `admission` who joins waits until the teacher admits them.

        Returns:
            It, and the teacher's secret code, which is kept nowhere.

        Raises:
            InvalidValue: the name or the number of days is not allowed.
            NotAllowed: there are as many classes as are kept.
            StoreError: the folder cannot be written.
        """
        name = names.title(name)
        if isinstance(days, bool) or not 1 <= days <= MAX_DAYS:
            raise InvalidValue("days", days, f"a whole number from 1 to {MAX_DAYS}")
        if self.prune() >= MAX_CLASSES:
            raise NotAllowed(f"There are {MAX_CLASSES} classes on this host, which is its limit; delete one first.")
        code, secret, now = codes.join_code(), codes.secret(), records.current_time()
        made = Class(
            id=_class_id(code),
            code=code,
            name=name,
            question=question,
            created_at=now.isoformat(),
            expires_at=(now + datetime.timedelta(days=days)).isoformat(),
            closed=False,
            secret_hash=codes.hash_code(secret),
            admission=admission,
        )
        with folders.writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with folders.placing(self.folder / made.id) as draft:
                (draft / "students").mkdir()
                records.write_class(draft, made)
        return made, secret

    def find(self, code: str) -> Class:
        """The class with a join code.

        Raises:
            NotAllowed: there is none, or its time is over.
            StoreError: its file is damaged.
        """
        found = self._read(_class_id(codes.format_code(code)))
        if found is None or found.expired:
            raise NotAllowed("There is no class with this code; it was mistyped, or the class is over.")
        return found

    def close(self, class_: Class, *, closed: bool = True) -> Class:
        """Take nothing more for a class, or take it again; raises as `ask_admission` does."""
        return self._change(replace(self._now(class_), closed=closed))

    def ask_admission(self, class_: Class, *, asked: bool = True) -> Class:
        """Let who joins from now on wait until the teacher admits them, or not.

        Raises:
            NotAllowed: the class is over.
            StoreError: the folder cannot be written.
        """
        return self._change(replace(self._now(class_), admission=asked))

    def delete(self, class_: Class) -> None:
        """Drop a class with everything in it; raises as `delete_by_code` does."""
        with folders.writing(self.folder):
            folders.remove(self.folder / class_.id)

    def delete_by_code(self, code: str) -> str:
        """Drop a class, also one whose file is damaged; what it is called.

        Raises:
            NotAllowed: there is none.
            StoreError: it cannot be removed; then it is as it was.
        """
        folder = self.folder / _class_id(codes.format_code(code))
        with folders.writing(self.folder):
            if not folder.is_dir():
                raise NotAllowed("There is no class with this code.")
            name = folder.name
            with contextlib.suppress(DamagedFile):
                name = found.name if (found := records.read_class(folder)) else name
            folders.remove(folder)
        return name

    def all(self) -> list[Class]:
        """Every class whose time is not over, the newest first; for who has the host."""
        live = [class_ for _, class_, _ in self._looked_through() if class_ and not class_.expired]
        return sorted(live, key=lambda class_: class_.created_at, reverse=True)

    def damaged(self) -> dict[str, str]:
        """Folders of classes whose file cannot be read → the reason in one sentence; nothing of them is removed."""
        return {folder: reason for folder, _, reason in self._looked_through() if reason}

    def prune(self) -> int:
        """Drop classes whose time is over, and what writers that died left behind; the number of those that remain.

        A class whose file cannot be read is named in the log, stays, and counts.
        """
        remain = 0
        folders.sweep(self.folder)
        for name, class_, reason in self._looked_through():
            if class_ and class_.expired:
                with contextlib.suppress(OSError):
                    folders.remove(self.folder / name)
                    continue
            if reason:
                _log.warning("The class in %s is left as it is: %s", self.folder / name, reason)
            remain += 1
            folders.sweep(self.folder / name)
            students = self.folder / name / "students"
            folders.sweep(students)
            for student_id in folders.ids_in(students):
                folders.sweep(students / student_id)
        return remain

    def join(self, class_: Class, nickname: str) -> tuple[Student, str]:
        """Take part in a class, or wait to be admitted where the teacher asks for it.

        Returns:
            Who one is there, and a token that proves it, of which only a hash is kept.

        Raises:
            InvalidValue: the nickname is not allowed.
            NotAllowed: it is taken, or the class is closed or full.
            StoreError: the folder cannot be written.
        """
        nickname, now = names.nickname(nickname), self.require_open(class_)
        alike, everybody = names.fold_name(nickname), self.students(class_)
        taken = NotAllowed(f"Somebody in this class is called {nickname!r} already; choose another nickname.")
        if any(
            names.fold_name(student.nickname) == alike for student in everybody
        ):  # by the rule of an earlier version
            raise taken
        require_place(everybody, waiting=now.admission)
        token = secrets.token_urlsafe(16)
        student = Student(
            id=folders.sha(alike)[:16],
            nickname=nickname,
            joined_at=records.current_time().isoformat(),
            waiting=now.admission,
            # of its own, so that a late result of somebody who was removed is not theirs who come by the same name
            results=f"{records.RESULTS}-{secrets.token_hex(4)}",
        )
        folder = self.place(class_, student.id)
        with folders.writing(self.folder):
            try:
                with folders.placing(folder) as draft:
                    (draft / student.results).mkdir()
                    records.write_student(draft, student, folders.sha(token))
            except FileExistsError:
                raise taken from None
        return student, token

    def recognise(self, class_: Class, student_id: str, token: str) -> Student:
        """The student whose token this is.

        Raises:
            NotAllowed: it is nobody's.
            StoreError: the file of the student is damaged.
        """
        if not folders.is_id(student_id):
            raise NotAllowed(UNKNOWN)
        folder = self.place(class_, student_id)
        try:
            kept = records.token_hash(folder)
        except DamagedFile as error:
            raise StoreError(f"Your results are kept, but {error} Tell your teacher.") from error
        if not secrets.compare_digest(kept, folders.sha(token)):
            raise NotAllowed(UNKNOWN)
        return records.read_student(folder, class_.question)

    def predict(self, class_: Class, student: Student, prediction: Prediction) -> Student:
        """Write down what a student expects, in place of what they expected before.

        Raises:
            InvalidValue: it is not one of the question's answers.
            NotAllowed: the class is closed, or the student waits to be admitted or has results already.
            StoreError: the folder cannot be written.
        """
        self.require_part(class_, student)
        records.check_prediction(prediction, class_.question)
        if measured.files(self.store(class_, student).folder):
            raise NotAllowed("Your result is in already, and nothing is predicted afterwards.")
        atomic.remove_abandoned_files(self.place(class_, student.id))
        with folders.writing(self.folder):
            records.write_prediction(self.place(class_, student.id), prediction)
        return replace(student, prediction=prediction)

    def students(self, class_: Class) -> list[Student]:
        """Everybody who has joined or waits to be admitted, in the order of joining."""
        ids = folders.ids_in(self.folder / class_.id / "students")
        found = [records.read_student(self.place(class_, name), class_.question) for name in ids]
        return sorted(found, key=lambda student: (student.joined_at, student.nickname))

    def store(self, class_: Class, student: Student) -> Store:
        """The store of a student's results, which nobody else writes to."""
        return measured.StudentStore(self.place(class_, student.id) / student.results)

    def require_open(self, class_: Class) -> Class:
        """The class as it stands now; raises NotAllowed if results are not taken any more."""
        now = self._now(class_)
        if now.closed:
            raise NotAllowed(CLOSED)
        return now

    def require_part(self, class_: Class, student: Student) -> None:
        """Raise NotAllowed if the class is closed by now, or the student waits to be admitted or was removed."""
        self.require_open(class_)
        folder = self.place(class_, student.id)
        now = records.read_student(folder, class_.question) if folder.is_dir() else None
        if now is None or now.results != student.results:
            raise NotAllowed(UNKNOWN)
        if now.waiting:
            raise NotAllowed("Your teacher has not admitted you to this class yet.")

    def place(self, class_: Class, student_id: str) -> Path:
        """The folder of a student."""
        return self.folder / class_.id / "students" / student_id

    def _now(self, class_: Class) -> Class:
        """A class as it stands now; raises as `require_open` does, but not for one that is closed."""
        now = self._read(class_.id)
        if now is None or now.expired:
            raise NotAllowed("This class is over.")
        return now

    def _change(self, class_: Class) -> Class:
        with folders.writing(self.folder):
            records.write_class(self.folder / class_.id, class_)
        return class_

    def _read(self, class_id: str) -> Class | None:
        try:
            return _class_of(self.folder / class_id) if folders.is_id(class_id) else None
        except DamagedFile as error:
            raise StoreError(f"Nothing of this class is lost, but {error} Tell whoever runs this host.") from error

    def _looked_through(self) -> Iterator[tuple[str, Class | None, str]]:
        """Every folder of a class, with the class, or with the reason why it cannot be read; nothing else is."""
        for name in sorted(folders.ids_in(self.folder)):
            try:
                class_ = _class_of(self.folder / name)
                yield name, class_, "" if class_ else f"{records.CLASS_FILE} is missing."
            except DamagedFile as error:
                yield name, None, str(error)


def require_place(everybody: Iterable[Student], *, waiting: bool) -> None:
    """Raise NotAllowed unless a class has room for one more, among those who wait or among the others."""
    count = sum(student.waiting == waiting for student in everybody)
    if waiting and count >= MAX_WAITING:
        raise NotAllowed(f"{MAX_WAITING} wait to be admitted to this class, which is its limit; try again later.")
    if not waiting and count >= MAX_STUDENTS:
        raise NotAllowed(f"This class has {MAX_STUDENTS} students, which is its limit.")


def _class_of(folder: Path) -> Class | None:
    """The class of a folder; raises DamagedFile, also where the file is that of another class."""
    class_ = records.read_class(folder)
    if class_ and _class_id(codes.format_code(class_.code)) != folder.name:
        raise DamagedFile(records.CLASS_FILE, "it belongs to another folder")
    return class_


def _class_id(code: str) -> str:
    return folders.sha(f"class {code}")[:16]
