"""Everybody's results of a class together: one result a student, how they spread by device, and what was expected.

Only rows of the class's own question count; the others are named with the reason, and so is a student whose rows
nothing can be made of: no row of anybody keeps the others' from being shown. Nothing is averaged over machines: each
student's crossover is computed from that student's rows alone, and a spread is of such crossovers.
"""

import collections
import logging
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core import units
from core.answer import speedup
from core.answer import study as studies
from core.answer.result import Outcome
from core.answer.study import Study
from core.classroom import measured
from core.classroom.question import BASELINE, CHALLENGER, NEVER, SAME, ClassQuestion
from core.classroom.records import Prediction, Student
from core.errors import CrossoverError
from core.question.experiment import BEST_THREADS, MAX_CONTENDERS, Contender
from core.results.schema import Trial
from core.text import as_line

NAME_LENGTH, SENTENCE_LENGTH = 80, 500
"""Characters of a device's own name, and of a result in words, that are shown: both may come in a file."""

WithInterval = tuple[float | None, float | None, float | None]
"""A figure with the ends of its interval, as far as they are known."""

UNKNOWN: WithInterval = (None, None, None)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one student measured, with the devices' own names.

    Attributes:
        kind: of the challenger, as in the rows.
        outcome: of the crossover; of one training, `crossing` never, and the others by who was faster.
        estimate: size from which on the challenger is faster, with its 95 % interval from `low` to `high`; None unless
            the outcome is `crossing`.
        speedup: at the largest size that was timed; above 1 the challenger is faster. None if nothing was timed.
        speedup_low: its interval is from there to `speedup_high`; None where the noise is not known.
        sizes: how many were timed.
        from_file: whether it was measured elsewhere and brought in a file.
    """

    nickname: str
    baseline: str
    challenger: str
    kind: str
    outcome: Outcome
    estimate: float | None
    low: float | None
    high: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    sizes: int
    from_file: bool
    sentence: str

    @property
    def devices(self) -> str:
        """Both devices in words: what results are grouped by."""
        return f"{self.challenger} against {self.baseline}"

    def place(self, question: ClassQuestion) -> float | str | None:
        """The place that a prediction should have named; None if the result does not say."""
        if self.outcome == "gpu_always" and question.places:
            return question.places[0]
        if self.outcome == "cpu_always" and question.places:
            return NEVER
        if self.estimate is None:
            return None
        return next((place for place in question.places if place >= self.estimate), NEVER)

    @property
    def winner(self) -> str | None:
        """Who was faster at the largest size; None if nothing was timed."""
        if self.speedup is None or not 0 < self.speedup < math.inf:
            return None
        if abs(math.log(self.speedup)) <= math.log(1.1):
            return SAME
        return CHALLENGER if self.speedup > 1 else BASELINE


@dataclass(frozen=True, kw_only=True)
class Group:
    """Results of one pair of devices, how many of them found a crossover, and where these lie; None without any."""

    devices: str
    results: int
    crossings: int
    median: float | None
    lowest: float | None
    highest: float | None


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How often each thing is expected: key of `WINNERS` → how many; size, or `NEVER`, → how many, none left out."""

    students: int
    winners: Mapping[str, int]
    places: Mapping[float | str, int]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What became of one student's rows; why some or all of them do not count, in words that can follow a colon."""

    result: Result | None = None
    fault: str = ""


def finding(question: ClassQuestion, student: Student, folder: Path) -> Finding:
    """What the rows in a student's folder say of the question; what is wrong with them is said, never raised."""
    try:
        has = measured.read(folder)
        mine, reasons = split_comparable(question, has.rows)
        fault = next(iter(has.faults), "") or (f"a row does not count, because {reasons[0]}" if reasons else "")
        return Finding(result=_result(question, student, mine), fault=fault)
    except Exception as error:  # a row that no check foresaw harms who brought it, and nobody else
        _log.exception("The rows of a student could not be pooled")
        said = str(error).rstrip(".") if isinstance(error, CrossoverError) else type(error).__name__
        return Finding(fault=f"nothing can be made of these rows: {said}")


def result(question: ClassQuestion, student: Student, rows: Sequence[Trial]) -> Result | None:
    """What a student's rows say of the question; None if none of them is of it."""
    return _result(question, student, split_comparable(question, rows)[0])


def _result(question: ClassQuestion, student: Student, mine: Sequence[Trial]) -> Result | None:
    axis = question.axis
    found = studies.studies(mine, axis=axis.name if axis else "samples", least=1)
    if not found:
        return None
    best = max(found, key=lambda entry: (len(entry.runs), not speedup.is_host(entry.runs[-1][1]), entry.newest))
    return _sweep_results(student, best) if axis else _training_results(student, best)


def split_comparable(question: ClassQuestion, rows: Sequence[Trial]) -> tuple[list[Trial], list[str]]:
    """The rows that are pooled, and why others are not, each reason once.

    Of a run each contender counts once, and no more contenders than a run can have had: what is worked out for every
    two of a run must not grow with the square of what a file says was one.
    """
    mine: list[Trial] = []
    reasons: dict[str, None] = {}
    contenders: dict[str, set[str]] = {}
    for row in rows:
        there = contenders.setdefault(row.run_id, set())
        reason = question.objection(row)
        if not reason and row.contender in there:
            reason = f"its run has a second row of {row.contender!r:.40}"
        if not reason and len(there) >= MAX_CONTENDERS:
            reason = f"its run has more than the {MAX_CONTENDERS} contenders that a run can have"
        if reason:
            reasons[reason] = None
            continue
        there.add(row.contender)
        mine.append(row)
    return mine, list(reasons)


def groups(results: Sequence[Result]) -> list[Group]:
    """The spread of crossovers by pair of devices, most results first."""
    by_devices: dict[str, list[Result]] = {}
    for entry in results:
        by_devices.setdefault(entry.devices, []).append(entry)
    found = []
    for devices, entries in by_devices.items():
        places = [entry.estimate for entry in entries if entry.estimate is not None]
        found.append(
            Group(
                devices=devices,
                results=len(entries),
                crossings=len(places),
                median=statistics.median(places) if places else None,
                lowest=min(places, default=None),
                highest=max(places, default=None),
            )
        )
    return sorted(found, key=lambda group: (-group.results, group.devices))


def tally(question: ClassQuestion, predictions: Sequence[Prediction]) -> Tally:
    """How often each answer is expected."""
    places: dict[float | str, int] = dict.fromkeys((*question.places, NEVER) if question.places else (), 0)
    for entry in predictions:
        if entry.place in places and entry.place is not None:
            places[entry.place] += 1
    winners = collections.Counter(entry.winner for entry in predictions)
    return Tally(
        students=len(predictions), winners={name: winners[name] for name in (BASELINE, CHALLENGER, SAME)}, places=places
    )


def _sweep_results(student: Student, study: Study) -> Result:
    try:
        answer = studies.crossover(study)
    except CrossoverError as error:
        return _told(student, study, "not_measurable", str(error))
    timed = [size for size in answer.sizes if size.speedup is not None]
    last = timed[-1] if timed else None
    above = bool(answer.crossings) and answer.crossings[0].challenger_above
    crossing = answer.outcome == "crossing" and above
    # a challenger that wins below a size is an answer, but not to "from which size on"
    outcome = answer.outcome if crossing or answer.outcome != "crossing" else "several"
    place = (answer.estimate, answer.low, answer.high) if crossing else UNKNOWN
    figures = (last.speedup, last.low, last.high) if last else UNKNOWN
    return _told(student, study, outcome, answer.sentence, place=place, speedup=figures)


def _training_results(student: Student, study: Study) -> Result:
    found = speedup.speedup(*study.runs[-1])
    outcomes: dict[str, Outcome] = {"gpu_faster": "gpu_always", "cpu_faster": "cpu_always", "too_close": "undecided"}
    outcome, figures = outcomes.get(found.verdict, "not_measurable"), (found.value, found.low, found.high)
    return _told(student, study, outcome, speedup.verdict_sentence(found), speedup=figures)


def _told(
    student: Student,
    study: Study,
    outcome: Outcome,
    sentence: str,
    *,
    place: WithInterval = UNKNOWN,
    speedup: WithInterval = UNKNOWN,
) -> Result:
    baseline, challenger = study.runs[-1]
    return Result(
        nickname=student.nickname,
        baseline=_device(baseline),
        challenger=_device(challenger),
        kind=challenger.device_kind,
        outcome=outcome,
        estimate=place[0],
        low=place[1],
        high=place[2],
        speedup=speedup[0],
        speedup_low=speedup[1],
        speedup_high=speedup[2],
        sizes=len(study.runs),
        from_file=bool(challenger.origin),
        sentence=as_line(sentence, SENTENCE_LENGTH),
    )


def _device(row: Trial) -> str:
    """A device for people: its own name, and for the CPU how many threads, unless it had all."""
    name = as_line(row.device_name, NAME_LENGTH)
    threads = Contender.parse(row.contender).threads
    return (
        name
        if not speedup.is_host(row) or threads == BEST_THREADS
        else f"{name}, {units.format_quantity(threads, 'thread')}"
    )
