"""What the class page reads: classes, who looks at them, and everybody's results, kept where computing costs time.

The only caller of the folder of classes on the pages' side. Wrong codes are counted here, for all sessions together.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from core.answer.charts import classroom as charts
from core.classroom import codes, pooled
from core.classroom.classes import CLASSES_VARIABLE, Class, Classes, Student
from core.classroom.codes import Attempts
from core.classroom.pooled import Result, Tally
from core.classroom.question import Question
from core.errors import NotAllowed
from core.results.schema import Trial
from core.results.store import Store
from pages.shared import permits, state

_attempts = Attempts()

STUDENTS_SHOWN = 500
"""Results that are kept computed."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A class as it stands.

    Attributes:
        students: everybody who joined, in the order of joining.
        results: of those who measured, in the same order.
        tally: what is expected.
    """

    students: tuple[Student, ...]
    results: tuple[Result, ...]
    tally: Tally


def classes() -> Classes:
    """The classes of this host."""
    return Classes(Path(text) if (text := os.environ.get(CLASSES_VARIABLE)) else None)


def find(code: str) -> Class:
    """The class with a join code; a wrong one is counted.

    Raises:
        NotAllowed: there is none, or too many wrong codes were tried.
    """
    visitor = permits.person()
    _attempts.check(visitor)
    try:
        return classes().find(code)
    except NotAllowed:
        _attempts.failed(visitor)
        raise


def require_secret(code: str, kept: str) -> None:
    """Find out whether a secret code is right; a wrong one is counted.

    Raises:
        NotAllowed: it is not, or too many wrong codes were tried.
    """
    visitor = permits.person()
    _attempts.check(visitor)
    if not codes.matches(code, kept):
        _attempts.failed(visitor)
        raise NotAllowed("This is not the right code.")


def me(of: Class) -> Student | None:
    """Who looks at the page, in this class; None who has not joined it, in this session or by this link."""
    student_id, token = state.joined(of.id)
    if not student_id:
        student_id, _, token = state.class_link().partition(".")
    try:
        student = classes().recognise(of, student_id, token)
    except NotAllowed:
        return None
    state.join_class(of.id, student_id, token)
    return student


def rows(of: Class, student: Student) -> list[Trial]:
    """What a student measured."""
    return classes().store(of, student).trials()


def result(of: Class, student: Student) -> Result | None:
    """What a student's rows say of the class's question; None before there are any."""
    folder = classes().store(of, student).folder
    signature = _signature(folder)
    return _result((of.id, student.id, signature), of.question, student, folder) if signature else None


def pool(of: Class) -> Pool:
    """The class as it stands now."""
    students = classes().students(of)
    found = tuple(entry for student in students if (entry := result(of, student)))
    expected = [student.prediction for student in students if student.prediction]
    return Pool(students=tuple(students), results=found, tally=pooled.tally(of.question, expected))


def chart(of: Class, results: Sequence[Result], tally: Tally) -> dict[str, Any]:
    """Everybody's results and expectations, finished."""
    places = tuple((place, count) for place, count in tally.places.items() if not isinstance(place, str))
    axis = of.question.axis
    return _chart(tuple(results), places, axis.title if axis else "")


@st.cache_data(max_entries=STUDENTS_SHOWN, show_spinner=False)
def _result(key: tuple[Any, ...], _question: Question, _student: Student, _folder: Path) -> Result | None:
    return pooled.result(_question, _student, Store(_folder).trials())


@st.cache_resource(max_entries=64, show_spinner=False)
def _chart(results: tuple[Result, ...], places: tuple[tuple[float, int], ...], axis: str) -> dict[str, Any]:
    marks = [
        charts.Mark(
            who=entry.nickname,
            devices=entry.devices,
            kind=entry.kind,
            value=entry.estimate if axis else entry.speedup,
            low=entry.low if axis else entry.speedup_low,
            high=entry.high if axis else entry.speedup_high,
            outcome=entry.outcome,
            said=entry.sentence,
        )
        for entry in results
    ]
    return charts.crossovers(marks, dict(places), axis) if axis else charts.speedups(marks)


def _signature(folder: Path) -> tuple[tuple[str, int], ...]:
    """Changes whenever a file of the folder does; empty where there is none."""
    try:
        return tuple(sorted((path.name, path.stat().st_mtime_ns) for path in folder.glob("*.parquet")))
    except OSError:
        return ()
