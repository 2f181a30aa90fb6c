"""What is written down of a class: a file of its own, and of each student one of joining and one of expecting.

Files are read as frozen classes through `core.files.documents` and written as rows are: whole, and so that they outlive
a loss of power. A file that is damaged is named by who reads it and never takes another one along. Which files there
are, and who may change them, is the business of `core.classroom.classes`.
"""

import datetime
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from core.classroom.question import NEVER, WINNERS, ClassQuestion
from core.errors import CrossoverError, DamagedFile, InvalidValue, require_choice
from core.files import atomic, documents

CLASS_FILE, STUDENT_FILE, PREDICTION_FILE = "class.json", "student.json", "prediction.json"

MAX_RECORD_BYTES = 256 * 1024
"""Size beyond which such a file is not read; a question with 400 values has some ten thousand bytes."""

RESULTS = "results"
"""Folder of a student's results, by itself or as the beginning of its name."""

_RESULTS_FOLDER = re.compile(rf"{RESULTS}(-[0-9a-f]{{1,32}})?")
_NAME_LENGTH = 200
_Moment = Annotated[datetime.datetime, msgspec.Meta(tz=True)]


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a student expects: who wins at the largest size, and from which size on: one, `NEVER`, or None."""

    winner: str
    place: float | str | None = None


@dataclass(frozen=True, kw_only=True)
class Student:
    """One student, of whom nothing else is known.

    Attributes:
        id: name of the folder; the same for nicknames that look alike.
        joined_at: ISO 8601, UTC; empty if it is not known.
        waiting: whether the teacher has not admitted them yet.
        results: name of the folder of their results.
        fault: what is wrong with a file of theirs, in one sentence; empty if nothing is.
    """

    id: str
    nickname: str
    joined_at: str
    waiting: bool = False
    results: str = RESULTS
    prediction: Prediction | None = None
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class Class:
    """One class, in a folder whose name, the `id`, follows from the join code; its times are ISO 8601, UTC.

    Once it is closed nothing is taken any more; with `admission`, who joins waits until the teacher admits them.
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

    @property
    def expired(self) -> bool:
        """Whether the time of the class is over."""
        return datetime.datetime.fromisoformat(self.expires_at) <= current_time()


@dataclass(frozen=True, kw_only=True)
class _ClassFile:
    code: str
    name: str
    question: dict[str, Any]
    created_at: _Moment
    expires_at: _Moment
    closed: bool
    secret_hash: str
    admission: bool = False  # earlier versions let everybody in

    def __post_init__(self) -> None:
        _require_shown("name", self.name)


@dataclass(frozen=True, kw_only=True)
class _StudentFile:
    nickname: str
    joined_at: _Moment
    token_hash: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
    waiting: bool = False
    results: str = RESULTS

    def __post_init__(self) -> None:
        _require_shown("nickname", self.nickname)
        if not _RESULTS_FOLDER.fullmatch(self.results):
            raise InvalidValue("results", self.results, f"{RESULTS}, or {RESULTS}- with digits")


def read_class(folder: Path) -> Class | None:
    """The class of a folder, None where it has no such file; raises DamagedFile where the file holds something else."""
    said = documents.read_json(folder / CLASS_FILE, _ClassFile, most_bytes=MAX_RECORD_BYTES)
    if said is None:
        return None
    try:
        question = ClassQuestion.from_json(said.question)
    except (CrossoverError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise DamagedFile(CLASS_FILE, f"its question cannot be read: {error}".rstrip(".")) from error
    times = {"created_at": said.created_at.isoformat(), "expires_at": said.expires_at.isoformat()}
    return Class(id=folder.name, **{**vars(said), **times, "question": question})


def write_class(folder: Path, class_: Class) -> None:
    """Put a class into a folder; raises OSError."""
    facts = {name: value for name, value in vars(class_).items() if name != "id"}
    write(folder / CLASS_FILE, {**facts, "question": class_.question.to_json()})


def read_student(folder: Path, question: ClassQuestion) -> Student:
    """The student of a folder, with what is wrong with their files where something is."""
    try:
        said = documents.read_json(folder / STUDENT_FILE, _StudentFile)
    except DamagedFile as error:
        return _unknown(folder, str(error))
    if said is None:
        return _unknown(folder, f"{STUDENT_FILE} is missing.")
    prediction, fault = None, ""
    try:
        prediction = _prediction(folder, question)
    except DamagedFile as error:
        fault = str(error)
    return Student(
        id=folder.name,
        nickname=said.nickname,
        joined_at=said.joined_at.isoformat(),
        waiting=said.waiting,
        results=said.results,
        prediction=prediction,
        fault=fault,
    )


def token_hash(folder: Path) -> str:
    """Hash of the token of the student of a folder, empty where there is none; raises as `read_class` does."""
    said = documents.read_json(folder / STUDENT_FILE, _StudentFile)
    return said.token_hash if said else ""


def write_student(folder: Path, student: Student, token_hash: str) -> None:
    """Put a student into a folder; raises OSError."""
    names = ("nickname", "joined_at", "waiting", "results")
    write(folder / STUDENT_FILE, {**{name: getattr(student, name) for name in names}, "token_hash": token_hash})


def write_prediction(folder: Path, prediction: Prediction) -> None:
    """Put what a student expects into their folder; raises OSError."""
    said = {"winner": prediction.winner, "place": prediction.place, "at": current_time().isoformat()}
    write(folder / PREDICTION_FILE, said)


def check_prediction(prediction: Prediction, question: ClassQuestion) -> None:
    """Raise InvalidValue unless what is expected is one of a question's answers."""
    require_choice("winner", prediction.winner, WINNERS)
    places: tuple[float | str | None, ...] = (*question.places, NEVER) if question.places else (None,)
    if prediction.place not in places:
        raise InvalidValue("place", prediction.place, f"one of {', '.join(map(str, places))}")


def write(path: Path, data: Mapping[str, object]) -> None:
    """Replace a file of a class; raises OSError where the folder is gone or cannot be written."""
    atomic.write_atomically(path, lambda file: file.write(json.dumps(data).encode()))


def current_time() -> datetime.datetime:
    """The time that everything is written down with."""
    return datetime.datetime.now(datetime.UTC)


def _require_shown(field: str, name: str) -> None:
    if not name.isprintable() or not 1 <= len(name) <= _NAME_LENGTH:
        raise InvalidValue(field, name, "a name that can be shown")


def _prediction(folder: Path, question: ClassQuestion) -> Prediction | None:
    said = documents.read_json(folder / PREDICTION_FILE, Prediction)
    try:
        if said:
            check_prediction(said, question)
    except InvalidValue as error:
        raise DamagedFile(PREDICTION_FILE, str(error).rstrip(".")) from error
    return said


def _unknown(folder: Path, fault: str) -> Student:
    return Student(id=folder.name, nickname=f"unreadable {folder.name[:6]}", joined_at="", fault=fault)
