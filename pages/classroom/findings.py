"""What the students of a class expect and find, worked out once for everybody who looks at it."""

import contextlib
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.answer.charts import class_charts as charts
from core.classroom.classes import CLASSES_VARIABLE, MAX_CLASSES, Class, Classes, Student
from core.classroom.results import (
    Finding,
    Result,
    Tally,
    compute_signature,
    count_predictions,
    evaluate_student,
    export_class,
    read_table,
)
from core.errors import CrossoverError
from core.results.exchange import Format
from pages.shared.cache import cache_answers

FINDINGS_KEPT = 5_000
"""Students of all classes whose results are kept computed; some thousand bytes each."""

READING_S = 1.0
"""How long one look at a class reads results that are not known yet; the next look goes on. A row takes some ten
milliseconds, so after a restart of the server a class of thirty is complete after a few looks."""

SHARED_S = 2.0
"""How long everybody who looks at a class is shown what the first of them saw: in a large class all look at once."""

_findings: dict[tuple[str, str], tuple[str, Finding]] = {}
_pools: "dict[str, tuple[float, Pool]]" = {}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A student with what became of their rows, and what is wrong with them; not `known` are those still to be read."""

    student: Student
    result: Result | None
    fault: str
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A class as it stands: who is in and who waits to be admitted, in the order of joining, and what is expected."""

    entries: tuple[Entry, ...]
    waiting: tuple[Student, ...]
    tally: Tally

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple(entry.result for entry in self.entries if entry.result)

    @property
    def unread(self) -> int:
        """Students whose rows a later look reads."""
        return sum(not entry.known for entry in self.entries)

    @property
    def faults(self) -> tuple[str, ...]:
        """Whose files or rows have something wrong with them, and what."""
        return tuple(f"{entry.student.nickname}: {entry.fault}" for entry in self.entries if entry.fault)


def classes() -> Classes:
    return Classes(Path(text) if (text := os.environ.get(CLASSES_VARIABLE)) else None)


def finding(class_: Class, student: Student) -> Finding:
    """What a student's rows say of the class's question, whatever they hold."""
    return _finding(class_, student, until=math.inf) or Finding()


def pool(class_: Class) -> Pool:
    """The class as it stands now, as far as there is time to read it."""
    students, until = classes().students(class_), time.monotonic() + READING_S
    entries = tuple(_entry(class_, student, until) for student in students if not student.waiting)
    expected = [entry.student.prediction for entry in entries if entry.student.prediction]
    waiting = tuple(student for student in students if student.waiting)
    return Pool(entries=entries, waiting=waiting, tally=count_predictions(class_.question, expected))


def shared_pool(class_: Class) -> Pool:
    """The class as somebody saw it a moment ago."""
    seen_s, found = _pools.get(class_.id, (-math.inf, None))
    if found is None or time.monotonic() - seen_s > SHARED_S:
        found = pool(class_)
        _pools[class_.id] = time.monotonic(), found
        _bound(_pools, MAX_CLASSES)
    return found


def changed(class_: Class) -> None:
    """Note that who looks at a class has changed it, so that they see what they did."""
    _pools.pop(class_.id, None)


def everything(class_: Class, pool: Pool, kind: Format) -> bytes:
    """All rows of a class as one file, but those that cannot be read; raises as `export_class` does."""
    return export_class(_tables(class_, pool), kind)


def chart(class_: Class, results: Sequence[Result], tally: Tally) -> dict[str, Any]:
    places = {place: count for place, count in tally.places.items() if not isinstance(place, str)}
    axis = class_.question.axis
    return _chart(results, places, axis.title if axis else "")


def _entry(class_: Class, student: Student, until: float) -> Entry:
    found = _finding(class_, student, until)
    if found is None:
        return Entry(student=student, result=None, fault=student.fault.rstrip("."), known=False)
    return Entry(student=student, result=found.result, fault=student.fault.rstrip(".") or found.fault)


def _finding(class_: Class, student: Student, until: float) -> Finding | None:
    """What a student's rows say; None if they are not known, and it is too late to read them now.

    Kept here and not by Streamlit, whose caches every visitor can empty.
    """
    folder = classes().store(class_, student).folder
    try:
        signature = compute_signature(folder)
    except CrossoverError as error:
        return Finding(fault=str(error).rstrip("."))
    if not signature:
        return Finding()
    known, found = _findings.get((class_.id, student.id), ("", None))
    if known == signature or time.monotonic() > until:
        return found if known == signature else None
    found = evaluate_student(class_.question, student, folder)
    _findings[class_.id, student.id] = signature, found
    _bound(_findings, FINDINGS_KEPT)
    return found


def _bound(kept: dict[Any, Any], most: int) -> None:
    while len(kept) > most:
        with contextlib.suppress(StopIteration, KeyError, RuntimeError):  # another session was quicker
            del kept[next(iter(kept))]


def _tables(class_: Class, pool: Pool) -> Iterator[tuple[str, pa.Table]]:
    for entry in pool.entries:
        try:
            yield entry.student.nickname, read_table(classes().store(class_, entry.student).folder)[0]
        except CrossoverError:  # named in the table of students
            continue


@cache_answers(64)
def _chart(results: Sequence[Result], places: Mapping[float, int], axis: str) -> dict[str, Any]:
    marks = [
        charts.StudentResult(
            who=entry.nickname,
            devices=entry.devices,
            kind=entry.kind,
            value=entry.estimate if axis else entry.speedup,
            low=entry.low if axis else entry.speedup_low,
            high=entry.high if axis else entry.speedup_high,
            outcome=entry.outcome,
            answer=entry.sentence,
        )
        for entry in results
    ]
    return charts.student_crossovers_chart(marks, places, axis) if axis else charts.student_speedups_chart(marks)
