"""Classes as folders: the class, its students, what each expects, and each one's own store of results.

Everybody writes into a folder of their own, under a temporary name that is then renamed, so that thirty at once lose
nothing and several servers can share the classes. The folder of a class follows from its join code and is not listed
to who does not know it. Stored of a person is the nickname they chose; tokens and secrets are kept as hashes. A class
is dropped when its time is over. What the results say together is the business of `core.classroom.pooled`.
"""

import contextlib
import datetime
import hashlib
import os
import secrets
import shutil
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.classroom import codes
from core.classroom.question import NEVER, WINNERS, Question
from core.errors import InvalidValue, NotAllowed, StoreError
from core.jobs import files
from core.results.store import PROJECT, Store

CLASSES = PROJECT / "data" / "classes"
"""Folder of classes unless the environment names another."""

CLASSES_VARIABLE = "CROSSOVER_CLASSES"
"""Environment variable that names another folder of classes."""

MAX_CLASSES, MAX_STUDENTS = 500, 200
NICKNAME_LENGTH, NAME_LENGTH = 24, 60
DAYS, MAX_DAYS = 30, 365
"""Days that a class lives unless asked otherwise, and at most."""

_ALSO_IN_NAMES = " -_.'"


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a student expects.

    Attributes:
        winner: key of `core.classroom.question.WINNERS`, at the largest size.
        place: size from which on the challenger wins, one of the question's; `NEVER`; None for one training.
    """

    winner: str
    place: float | str | None = None


@dataclass(frozen=True, kw_only=True)
class Student:
    """One student.

    Attributes:
        id: name of the folder; the same for nicknames that look alike.
        nickname: as chosen; nothing else is known of a person.
        joined_at: ISO 8601, UTC.
        prediction: None before there is one.
    """

    id: str
    nickname: str
    joined_at: str
    prediction: Prediction | None = None


@dataclass(frozen=True, kw_only=True)
class Class:
    """One class.

    Attributes:
        id: name of its folder; follows from the join code.
        code: to join by.
        name: for people.
        question: what is measured.
        created_at: ISO 8601, UTC.
        expires_at: when it is dropped.
        closed: whether nothing is taken any more.
        secret_hash: of the teacher's code.
    """

    id: str
    code: str
    name: str
    question: Question
    created_at: str
    expires_at: str
    closed: bool
    secret_hash: str

    @property
    def expired(self) -> bool:
        """Whether its time is over."""
        return self.expires_at <= _now().isoformat()


class Classes:
    """The classes of one folder.

    Attributes:
        folder: where they are; `CROSSOVER_CLASSES`, or data/classes of the project, unless given.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = Path(folder or os.environ.get(CLASSES_VARIABLE) or CLASSES).absolute()

    def create(self, name: str, question: Question, *, days: int = DAYS) -> tuple[Class, str]:
        """Make a class.

        Returns:
            It, and the teacher's secret code, which is kept nowhere.

        Raises:
            InvalidValue: the name or the number of days is not allowed.
            NotAllowed: there are as many classes as are kept.
            StoreError: the folder cannot be written.
        """
        name = _checked_name("name", name, NAME_LENGTH)
        if isinstance(days, bool) or not 1 <= days <= MAX_DAYS:
            raise InvalidValue("days", days, f"a whole number from 1 to {MAX_DAYS}")
        if self.prune() >= MAX_CLASSES:
            raise NotAllowed(f"There are {MAX_CLASSES} classes on this host, which is its limit; delete one first.")
        code, secret, now = codes.join_code(), codes.secret(), _now()
        made = Class(
            id=_class_id(code),
            code=code,
            name=name,
            question=question,
            created_at=now.isoformat(),
            expires_at=(now + datetime.timedelta(days=days)).isoformat(),
            closed=False,
            secret_hash=codes.hashed(secret),
        )
        with _writing(self.folder):
            if not _placed(self.folder / made.id, {"class.json": _class_json(made)}):
                raise StoreError("A class with the new code exists already; try again.")
            (self.folder / made.id / "students").mkdir(exist_ok=True)
        return made, secret

    def find(self, code: str) -> Class:
        """The class with a join code.

        Raises:
            NotAllowed: there is none, or its time is over.
        """
        found = self._read(_class_id(codes.normal(code)))
        if found is None or found.expired:
            raise NotAllowed("There is no class with this code; it was typed differently, or the class is over.")
        return found

    def close(self, of: Class, *, closed: bool = True) -> Class:
        """Take nothing more for a class, or take it again.

        Raises:
            StoreError: the folder cannot be written.
        """
        changed = replace(of, closed=closed)
        with _writing(self.folder):
            files.write_json(self.folder / of.id / "class.json", _class_json(changed))
        return changed

    def delete(self, of: Class) -> None:
        """Drop a class with everything in it."""
        shutil.rmtree(self.folder / of.id, ignore_errors=True)

    def all(self) -> list[Class]:
        """Every class whose time is not over, the newest first; for who has the host."""
        found = [self._read(path.name) for path in self._folders()]
        live = [of for of in found if of and not of.expired]
        return sorted(live, key=lambda of: of.created_at, reverse=True)

    def prune(self) -> int:
        """Drop what is over, and what a class that was deleted left behind; the number of classes that remain."""
        remain = 0
        for path in self._folders():
            found = self._read(path.name)
            if found is None or found.expired:
                shutil.rmtree(path, ignore_errors=True)
            else:
                remain += 1
        return remain

    def _folders(self) -> list[Path]:
        """Folders that can be of classes; nothing else that lies here is touched."""
        with contextlib.suppress(OSError):
            return [path for path in self.folder.iterdir() if _is_id(path.name)]
        return []

    def join(self, of: Class, nickname: str) -> tuple[Student, str]:
        """Take part in a class.

        Returns:
            Who one is there, and a token that proves it, of which only a hash is kept.

        Raises:
            InvalidValue: the nickname is not allowed.
            NotAllowed: it is taken, or the class is closed or full.
            StoreError: the folder cannot be written.
        """
        nickname = _checked_name("nickname", nickname, NICKNAME_LENGTH)
        self._require_open(of)
        if len(self._student_ids(of)) >= MAX_STUDENTS:
            raise NotAllowed(f"This class has {MAX_STUDENTS} students, which is its limit.")
        token, student = secrets.token_urlsafe(16), Student(id=_id(nickname), nickname=nickname, joined_at=_time())
        facts = {"nickname": nickname, "joined_at": student.joined_at, "token_hash": _sha(token)}
        with _writing(self.folder):
            if not _placed(self._student_folder(of, student.id), {"student.json": facts}):
                raise NotAllowed(f"Somebody in this class is called {nickname!r} already; choose another nickname.")
        return student, token

    def recognise(self, of: Class, student_id: str, token: str) -> Student:
        """The student whose token this is.

        Raises:
            NotAllowed: it is nobody's.
        """
        facts = files.read_json(self._student_folder(of, student_id) / "student.json") if _is_id(student_id) else None
        if facts is None or not secrets.compare_digest(str(facts.get("token_hash")), _sha(token)):
            raise NotAllowed("This class does not know you; join it again.")
        return self._student(of, student_id) or _nobody()

    def predict(self, of: Class, student: Student, prediction: Prediction) -> Student:
        """Write down what a student expects, in place of what they expected before.

        Raises:
            InvalidValue: it is not one of the question's answers.
            NotAllowed: the class is closed, or the student has results already.
            StoreError: the folder cannot be written.
        """
        self._require_open(of)
        if prediction.winner not in WINNERS:
            raise InvalidValue("winner", prediction.winner, f"one of {', '.join(WINNERS)}")
        places: tuple[float | str | None, ...] = (*of.question.places, NEVER) if of.question.places else (None,)
        if prediction.place not in places:
            raise InvalidValue("place", prediction.place, f"one of {', '.join(map(str, places))}")
        if any(self.store(of, student).folder.glob("*.parquet")):
            raise NotAllowed("Your result is in already, and nothing is predicted afterwards.")
        said = {"winner": prediction.winner, "place": prediction.place, "at": _time()}
        with _writing(self.folder):
            files.write_json(self._student_folder(of, student.id) / "prediction.json", said)
        return replace(student, prediction=prediction)

    def students(self, of: Class) -> list[Student]:
        """Everybody who has joined, in the order of joining."""
        found = [student for name in self._student_ids(of) if (student := self._student(of, name))]
        return sorted(found, key=lambda student: (student.joined_at, student.nickname))

    def store(self, of: Class, student: Student) -> Store:
        """The store of a student's results, which nobody else writes to."""
        return Store(self._student_folder(of, student.id) / "results")

    def require_open(self, of: Class) -> None:
        """Find out whether results are still taken, as it stands now.

        Raises:
            NotAllowed: they are not.
        """
        self._require_open(of)

    def _require_open(self, of: Class) -> None:
        now = self._read(of.id)
        if now is None or now.expired:
            raise NotAllowed("This class is over.")
        if now.closed:
            raise NotAllowed("This class is closed: its results can be looked at, and nothing more is taken.")

    def _read(self, class_id: str) -> Class | None:
        data = files.read_json(self.folder / class_id / "class.json") if _is_id(class_id) else None
        try:
            return _class_of(class_id, data) if data is not None else None
        except (InvalidValue, KeyError, TypeError, ValueError):  # of another version, or by another hand
            return None

    def _student(self, of: Class, student_id: str) -> Student | None:
        folder = self._student_folder(of, student_id)
        facts, said = files.read_json(folder / "student.json"), files.read_json(folder / "prediction.json")
        if facts is None:
            return None
        prediction = Prediction(winner=str(said["winner"]), place=said["place"]) if said else None
        return Student(
            id=student_id,
            nickname=str(facts["nickname"]),
            joined_at=str(facts["joined_at"]),
            prediction=prediction,
        )

    def _student_ids(self, of: Class) -> list[str]:
        with contextlib.suppress(OSError):
            return [path.name for path in (self.folder / of.id / "students").iterdir() if _is_id(path.name)]
        return []

    def _student_folder(self, of: Class, student_id: str) -> Path:
        return self.folder / of.id / "students" / student_id


def _placed(folder: Path, content: dict[str, Any]) -> bool:
    """Make a folder with JSON files in it, all at once; False if there is one of that name already."""
    draft = folder.with_name(f".{folder.name}-{secrets.token_hex(6)}")
    draft.mkdir(parents=True)
    try:
        for name, data in content.items():
            files.write_json(draft / name, data)
        try:
            draft.rename(folder)  # refused if it is there, as a folder with files in it is never replaced
        except OSError:
            if folder.exists():
                return False
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"The folder of classes {folder} cannot be written: {error.strerror or error}.") from error


def _class_json(of: Class) -> dict[str, Any]:
    names = ("code", "name", "created_at", "expires_at", "closed", "secret_hash")
    return {**{name: getattr(of, name) for name in names}, "question": of.question.to_json()}


def _class_of(class_id: str, data: dict[str, Any]) -> Class:
    return Class(
        id=class_id,
        code=str(data["code"]),
        name=str(data["name"]),
        question=Question.from_json(data["question"]),
        created_at=str(data["created_at"]),
        expires_at=str(data["expires_at"]),
        closed=bool(data["closed"]),
        secret_hash=str(data["secret_hash"]),
    )


def _checked_name(field: str, text: str, length: int) -> str:
    """A name for people: letters and digits of any script, and a few signs between them."""
    name = unicodedata.normalize("NFC", " ".join(text.split()))
    fine = all(letter in _ALSO_IN_NAMES or unicodedata.category(letter)[0] in "LNM" for letter in name)
    if not 1 <= len(name) <= length or not fine or not any(letter.isalnum() for letter in name):
        raise InvalidValue(field, text, f"1 to {length} letters, digits, spaces or any of - _ . '")
    return name


def _id(nickname: str) -> str:
    """The same for nicknames that differ only in what is easily overlooked."""
    return _sha(unicodedata.normalize("NFKC", nickname).casefold())[:16]


def _class_id(code: str) -> str:
    return _sha(f"class {code}")[:16]


def _is_id(text: str) -> bool:
    return len(text) == 16 and all(letter in "0123456789abcdef" for letter in text)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _time() -> str:
    return _now().isoformat()


def _nobody() -> Student:
    raise NotAllowed("This class does not know you; join it again.")
