"""Classes in JSON files, as earlier versions wrote them, and their import into the database.

A class had a folder with a class.json, and each student a folder below it with a student.json and a prediction.json
beside the results. A class is imported once, with all of its students; its files stay as they are until the class is
deleted. A class whose class.json is damaged is not imported. No other damaged file prevents the import.
"""

import contextlib
import datetime
import json
import sqlite3
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..errors import CrossoverError, DamagedFile, InvalidValue
from ..files import documents
from . import codes
from .database import insert_row
from .question import ClassQuestion
from .students import RESULTS, Prediction

CLASS_FILE, STUDENT_FILE, PREDICTION_FILE = "class.json", "student.json", "prediction.json"

MOST_FILE_BYTES = 256 * 1024
"""Size of a class.json beyond which it is not read."""

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
    """Insert every class that is in files of a folder and not in the database yet, unless its file is damaged."""
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
        return sorted(path.name for path in folder.iterdir() if codes.is_id(path.name))
    return []


def _read_class(folder: Path) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
    """Return the columns of a class, and those of each student by id.

    Raises:
        DamagedFile: the class has no file, or one that cannot be read.
    """
    found = documents.read_json(folder / CLASS_FILE, _ClassFile, most_bytes=MOST_FILE_BYTES)
    if found is None:
        raise DamagedFile(folder.name, f"the database does not have this class, and there is no {CLASS_FILE}")
    try:
        question = ClassQuestion.from_json(found.question)
    except (CrossoverError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise DamagedFile(CLASS_FILE, f"its question cannot be read: {error}".rstrip(".")) from error
    if codes.class_id(found.code) != folder.name:
        raise DamagedFile(CLASS_FILE, "it belongs to another folder")
    times = {name: getattr(found, name).isoformat() for name in ("created_at", "expires_at")}
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    values |= times | {"code": codes.format_code(found.code), "question": json.dumps(question.to_json())}
    places = {name: folder / "students" / name for name in _list_ids(folder / "students")}
    return values, {name: _read_student(place, question) for name, place in places.items()}


def _read_student(folder: Path, question: ClassQuestion) -> dict[str, object]:
    """Return the columns of a student, with what is wrong with the files."""
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
