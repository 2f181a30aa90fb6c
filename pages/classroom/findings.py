"""Predictions and results of a class, computed once for all visitors."""

import contextlib
import math
import os
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.answer.charts import lesson_charts as charts
from core.answer.charts import study_charts
from core.answer.judgement import Crossover
from core.classroom.classes import CLASSES_VARIABLE, MAX_CLASSES, Class, Classes, Student
from core.classroom.question import ClassQuestion
from core.classroom.results import (
    Finding,
    Result,
    Tally,
    compute_signature,
    count_predictions,
    evaluate_student,
    export_class,
    pool_rows,
    read_table,
)
from core.errors import CrossoverError
from core.question.sweep import size_on_axis
from core.results.exchange import Format
from core.results.schema import Trial
from pages.shared.cache import cache_answers, make_rows_key

FINDINGS_KEPT = 1_000
"""Cached results of students of all classes, with the rows that count: about ten thousand bytes each."""

READING_S = 1.0
"""Time limit per view for reading results that are not cached; the next view continues. A row takes about ten
milliseconds, so a class of thirty is complete a few views after a restart of the server."""

SHARED_S = 2.0
"""Seconds for which all visitors of a class share one reading: in a large class all open it at the same time."""

_findings: dict[tuple[str, str], tuple[str, Finding]] = {}
_pools: "dict[str, tuple[float, Pool]]" = {}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A student with the result and the fault of their rows; `known` is False until the rows have been read."""

    student: Student
    result: Result | None
    fault: str
    rows: tuple[Trial, ...] = ()
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The present state of a class: students and waiting students in the order of joining, and their predictions."""

    entries: tuple[Entry, ...]
    waiting: tuple[Student, ...]
    tally: Tally

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple(entry.result for entry in self.entries if entry.result)

    @property
    def unread(self) -> int:
        """Number of students whose rows have not been read yet."""
        return sum(not entry.known for entry in self.entries)

    @property
    def faults(self) -> tuple[str, ...]:
        """Nicknames of students with damaged files or rows, with the reasons."""
        return tuple(f"{entry.student.nickname}: {entry.fault}" for entry in self.entries if entry.fault)


def classes() -> Classes:
    return Classes(Path(text) if (text := os.environ.get(CLASSES_VARIABLE)) else None)


def finding(class_: Class, student: Student) -> Finding:
    """Return the result of a student's rows for the class's question, whatever the rows contain."""
    return _finding(class_, student, until=math.inf) or Finding()


def pool(class_: Class) -> Pool:
    """Return the present state of the class, as far as the time limit allows."""
    students, until = classes().students(class_), time.monotonic() + READING_S
    entries = tuple(_entry(class_, student, until) for student in students if not student.waiting)
    expected = [entry.student.prediction for entry in entries if entry.student.prediction]
    waiting = tuple(student for student in students if student.waiting)
    return Pool(entries=entries, waiting=waiting, tally=count_predictions(class_.question, expected))


def shared_pool(class_: Class) -> Pool:
    """Return the state of a class, at most `SHARED_S` old and shared by all visitors."""
    seen_s, found = _pools.get(class_.id, (-math.inf, None))
    if found is None or time.monotonic() - seen_s > SHARED_S:
        found = pool(class_)
        _pools[class_.id] = time.monotonic(), found
        _bound(_pools, MAX_CLASSES)
    return found


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The one curve that the students of this host made together, and its chart."""

    answer: Crossover
    spec: dict[str, Any]


def find_curve(class_: Class, pool: Pool) -> Curve | None:
    """Return the curve of all measurements on this host; None for a single training or fewer than two sizes."""
    rows = tuple(row for entry in pool.entries for row in entry.rows)
    return _curve(class_.question, make_rows_key(rows), rows)


def count_sizes(class_: Class, pool: Pool) -> dict[float, int]:
    """Return the number of students that have measured each size on this host."""
    axis = class_.question.axis
    if axis is None:
        return {}
    return dict(
        Counter(size for entry in pool.entries for size in {size_on_axis(row, axis.name) for row in entry.rows})
    )


def list_whole_results(class_: Class, pool: Pool) -> tuple[Result, ...]:
    """Return the results that answer the whole question, without those of a single dealt size."""
    dealt = bool(class_.question.dealt_sizes)
    return tuple(result for result in pool.results if result.sizes > 1 or not dealt)


def predictions_chart(class_: Class, tally: Tally, words: Mapping[str, str]) -> dict[str, Any]:
    """Return a histogram of the predictions: the sizes, or the faster device for a single training."""
    axis = class_.question.axis
    if axis is None:
        return _predictions_chart({words[name]: count for name, count in tally.winners.items()}, "faster device")
    named = {f"{place:,.0f}" if not isinstance(place, str) else place: count for place, count in tally.places.items()}
    return _predictions_chart(named, f"predicted crossover ({axis.title})")


def changed(class_: Class) -> None:
    """Drop the shared state of a class, so that a visitor sees their own change at once."""
    _pools.pop(class_.id, None)


def everything(class_: Class, pool: Pool, kind: Format) -> bytes:
    """Return all readable rows of a class as one file; raises as `export_class` does."""
    return export_class(_tables(class_, pool), kind)


def chart(class_: Class, results: Sequence[Result], tally: Tally) -> dict[str, Any]:
    places = {place: count for place, count in tally.places.items() if not isinstance(place, str)}
    axis = class_.question.axis
    return _chart(results, places, axis.title if axis else "")


def _entry(class_: Class, student: Student, until: float) -> Entry:
    found = _finding(class_, student, until)
    if found is None:
        return Entry(student=student, result=None, fault=student.fault.rstrip("."), known=False)
    fault = student.fault.rstrip(".") or found.fault
    return Entry(student=student, result=found.result, fault=fault, rows=found.rows)


def _finding(class_: Class, student: Student, until: float) -> Finding | None:
    """Return the result of a student's rows; None if it is not cached and the time limit is over.

    The cache is not Streamlit's, which every visitor can clear.
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
def _curve(question: ClassQuestion, key: Hashable, _rows: tuple[Trial, ...]) -> Curve | None:
    found = pool_rows(question, _rows)
    if found is None or len(found.runs) < 2:
        return None
    answer = found.crossover()
    return Curve(answer=answer, spec=study_charts.crossover_chart(answer, found.evidence("steady")))


@cache_answers(64)
def _predictions_chart(counts: Mapping[str, int], title: str) -> dict[str, Any]:
    return charts.predictions_chart(counts, title)


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
