"""What the class page reads: classes, who looks at them, and everybody's results, kept where computing costs time.

The only caller of the folder of classes on the pages' side. How often codes are tried, and classes made and joined, is
counted here, for all sessions together; who has been let in is never asked for it again.
"""

import contextlib
import logging
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.answer.charts import classroom as charts
from core.classroom import codes, handed_in, limits, measured, pooled
from core.classroom.classes import CLASSES_VARIABLE, MAX_CLASSES, Class, Classes, Prediction, Student
from core.classroom.limits import Limits, Source
from core.classroom.pooled import Finding, Result, Tally
from core.classroom.question import ClassQuestion
from core.classroom.roster import Roster
from core.errors import CrossoverError, NotAllowed
from core.question import policy
from core.results.intake.exchange import Format
from pages.shared.data.kept import kept
from pages.shared.frame import permits
from pages.shared.link import membership

FINDINGS_KEPT = 5_000
"""Students of all classes whose results are kept computed; some thousand bytes each."""

READING_S = 1.0
"""How long one look at a class reads results that are not known yet; the next look goes on. A row takes some ten
milliseconds, so after a restart of the server a class of thirty is complete after a few looks."""

SHARED_S = 2.0
"""How long everybody who looks at a class is shown what the first of them saw: in a large class all look at once."""

PRUNED_S = 3600.0
"""How often classes whose time is over are looked for, at most."""

_tried = Limits("Too many wrong codes were tried", limits.CODES)
_secrets_tried = Limits("Too many wrong codes were tried", limits.SECRETS)
_joined = Limits("Too many students joined this class", limits.JOINS)
_made = Limits("Too many classes were made", limits.MADE)
_brought = Limits("Too many files were brought", limits.FILES)

_findings: dict[tuple[str, str], tuple[str, Finding]] = {}
_pools: "dict[str, tuple[float, Pool]]" = {}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A student with what became of their rows.

    Attributes:
        student: who.
        result: None before there is one.
        fault: what is wrong with their files or rows, in words; empty if nothing is.
        known: whether their rows were read; if not, a later look does.
    """

    student: Student
    result: Result | None
    fault: str
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A class as it stands.

    Attributes:
        entries: everybody who is in, in the order of joining.
        waiting: everybody who waits to be admitted, in the same order.
        tally: what is expected.
    """

    entries: tuple[Entry, ...]
    waiting: tuple[Student, ...]
    tally: Tally

    @property
    def results(self) -> tuple[Result, ...]:
        """Of those who measured."""
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
    """The classes of this host."""
    return Classes(Path(text) if (text := os.environ.get(CLASSES_VARIABLE)) else None)


def find(code: str) -> Class:
    """The class with a join code.

    Who has opened it before, or proves to have joined it, is never held up by how many codes were tried. A code that
    was typed differently is told so at once; any other wrong one counts, once in a session.

    Raises:
        TooOften: too many wrong codes were tried.
        NotAllowed: there is no such class.
        StoreError: its file is damaged.
    """
    if not codes.may_join(code):
        raise NotAllowed(codes.MISTYPED)
    code = codes.normal(code)
    if membership.entered(code) or _proves_joining(code):
        return classes().find(code)
    if sentence := membership.refused(code):
        raise NotAllowed(sentence)
    with _tried.tried(permits.source()):
        try:
            of = classes().find(code)
        except NotAllowed as error:
            membership.refuse(code, str(error))
            raise
    membership.enter_class(code)
    return of


def require_secret(code: str, kept: str) -> None:
    """Find out whether a secret code is right; a wrong one is counted.

    Raises:
        NotAllowed: it is not, or too many wrong codes were tried.
    """
    wrong = NotAllowed("This is not the right code.")
    if not codes.may_match(code):
        raise wrong
    with _secrets_tried.tried(permits.source()):
        if not codes.matches(code, kept):
            raise wrong


def create(name: str, preset: str, *, admission: bool, code: str) -> tuple[Class, str]:
    """Make a class, as far as the host lets who looks at the page; returns it and the teacher's code.

    Raises:
        InvalidValue: the name is not allowed.
        NotAllowed: the host's code is wrong, or there are too many classes.
        StoreError: the folder cannot be written.
    """
    held = policy.current().classes
    if held.create == "code":
        require_secret(code, held.code_hash)
    source = permits.source()
    _made.take(source)
    try:
        return classes().create(name, ClassQuestion.of_preset(preset), admission=admission)
    except CrossoverError:
        _made.give_back(source)
        raise


def join(of: Class, nickname: str) -> Student:
    """Let who looks at the page take part in a class, or wait to be admitted.

    Raises:
        InvalidValue: the nickname is not allowed.
        NotAllowed: it is taken, the class is closed or full, or too many have joined from here.
        StoreError: the folder cannot be written.
    """
    source = permits.source()
    _joined.take(source, of.id)
    try:
        student, token = classes().join(of, nickname)
    except CrossoverError:
        _joined.give_back(source, of.id)
        raise
    changed(of)
    membership.join_class(of.id, student.id, token)
    return student


def predict(of: Class, student: Student, prediction: Prediction) -> None:
    """Write down what a student expects; raises as `Classes.predict` does."""
    classes().predict(of, student, prediction)
    changed(of)


def me(of: Class) -> Student | None:
    """Who looks at the page, in this class; None who has not joined it, in this session or by this link.

    Raises:
        StoreError: the file of who looks at it is damaged.
    """
    student_id, token = membership.joined(of.id)
    if not student_id:
        return _by_link(of)
    try:
        student = classes().recognise(of, student_id, token)
    except NotAllowed:  # taken out since
        return None
    membership.join_class(of.id, student_id, token)
    return student


def hand_in(of: Class, student: Student, data: bytes, name: str) -> handed_in.Receipt:
    """Add the rows of a student's file; raises as `handed_in.take` does, and TooOften."""
    _brought.take(Source(visitor=f"{of.id} {student.id}", address=of.id))
    receipt = handed_in.take(classes(), of, student, data, name)
    changed(of)
    return receipt


def finding(of: Class, student: Student) -> Finding:
    """What a student's rows say of the class's question, whatever they hold."""
    return _finding(of, student, until=math.inf) or Finding()


def pool(of: Class) -> Pool:
    """The class as it stands now, as far as there is time to read it."""
    students, until = classes().students(of), time.monotonic() + READING_S
    entries = tuple(_entry(of, student, until) for student in students if not student.waiting)
    expected = [entry.student.prediction for entry in entries if entry.student.prediction]
    waiting = tuple(student for student in students if student.waiting)
    return Pool(entries=entries, waiting=waiting, tally=pooled.tally(of.question, expected))


def shared_pool(of: Class) -> Pool:
    """The class as somebody saw it a moment ago."""
    seen_s, found = _pools.get(of.id, (-math.inf, None))
    if found is None or time.monotonic() - seen_s > SHARED_S:
        found = pool(of)
        _pools[of.id] = time.monotonic(), found
        _bound(_pools, MAX_CLASSES)
    return found


def changed(of: Class) -> None:
    """Note that who looks at a class has changed it, so that they see what they did."""
    _pools.pop(of.id, None)


def roster(of: Class) -> Roster:
    """What the teacher can do with the students of a class."""
    return Roster(classes(), of)


def everything(of: Class, pool: Pool, kind: Format) -> bytes:
    """All rows of a class as one file, but those that cannot be read; raises as `handed_in.everything` does."""
    return handed_in.everything(_tables(of, pool), kind)


def chart(of: Class, results: Sequence[Result], tally: Tally) -> dict[str, Any]:
    """Everybody's results and expectations, finished."""
    places = {place: count for place, count in tally.places.items() if not isinstance(place, str)}
    axis = of.question.axis
    return _chart(results, places, axis.title if axis else "")


@kept(16, seconds=PRUNED_S)
def prune(folder: Path) -> None:
    """Drop classes whose time is over, now and then; what cannot be dropped waits for the next time."""
    try:
        Classes(folder).prune()
    except (CrossoverError, OSError):
        _log.exception("Classes could not be looked through")


def _proves_joining(code: str) -> bool:
    """Whether the link says who one is in the class of a code, and proves it; nothing is said of why not."""
    student_id, _, token = membership.class_link().partition(".")
    try:
        of = classes().find(code)
        student = classes().recognise(of, student_id, token)
    except CrossoverError:
        return False
    membership.join_class(of.id, student.id, token)
    membership.enter_class(code)
    return True


def _by_link(of: Class) -> Student | None:
    """Who one is by the link; a wrong proof counts as a wrong code does, once in a session, and stays in the link."""
    link = membership.class_link()
    student_id, _, token = link.partition(".")
    if not link or membership.refused(link):
        return None
    try:
        with _tried.tried(permits.source()):
            student = classes().recognise(of, student_id, token)
    except limits.TooOften:
        return None
    except NotAllowed as error:
        membership.refuse(link, str(error))
        return None
    membership.join_class(of.id, student_id, token)
    return student


def _entry(of: Class, student: Student, until: float) -> Entry:
    found = _finding(of, student, until)
    if found is None:
        return Entry(student=student, result=None, fault=student.fault.rstrip("."), known=False)
    return Entry(student=student, result=found.result, fault=student.fault.rstrip(".") or found.fault)


def _finding(of: Class, student: Student, until: float) -> Finding | None:
    """What a student's rows say; None if they are not known, and it is too late to read them now.

    Kept here and not by Streamlit, whose caches every visitor can empty.
    """
    folder = classes().store(of, student).folder
    try:
        signature = measured.signature(folder)
    except CrossoverError as error:
        return Finding(fault=str(error).rstrip("."))
    if not signature:
        return Finding()
    known, found = _findings.get((of.id, student.id), ("", None))
    if known == signature or time.monotonic() > until:
        return found if known == signature else None
    found = pooled.finding(of.question, student, folder)
    _findings[of.id, student.id] = signature, found
    _bound(_findings, FINDINGS_KEPT)
    return found


def _bound(kept: dict[Any, Any], most: int) -> None:
    """Drop what has been kept for longest."""
    while len(kept) > most:
        with contextlib.suppress(StopIteration, KeyError, RuntimeError):  # another session was quicker
            del kept[next(iter(kept))]


def _tables(of: Class, pool: Pool) -> Iterator[tuple[str, pa.Table]]:
    for entry in pool.entries:
        try:
            yield entry.student.nickname, measured.read_table(classes().store(of, entry.student).folder)[0]
        except CrossoverError:  # named in the table of students
            continue


@kept(64)
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
            said=entry.sentence,
        )
        for entry in results
    ]
    return charts.crossovers(marks, places, axis) if axis else charts.speedups(marks)
