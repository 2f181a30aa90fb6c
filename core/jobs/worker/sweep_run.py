"""A sweep from its first point to its last: which comes next, whether it must be measured, and what became of it.

Each point is an experiment of its own. What the store answers is not measured; the rows of every other point are
brought to the store before the next is begun, so that a sweep that was stopped or killed goes on where it was. How a
point is measured is the business of `core.measure.trial`, which size is worth measuring that of
`core.answer.study.search`.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core import units
from core.answer.study import search, study
from core.answer.study.result import Evidence
from core.errors import TooSlow
from core.jobs.machine import Machine
from core.jobs.worker import forecast, point_result
from core.jobs.worker.point_result import PointResult
from core.jobs.worker.reporter import Reporter
from core.progress import SweepProgress
from core.question.experiment import Experiment, Point
from core.question.sweep import Sweep
from core.results.schema import Trial
from core.results.store import Store

Measure = Callable[[Experiment, Reporter], list[Trial]]
"""Makes a measurement; returns its rows, whatever their outcome, or raises CrossoverError."""


@dataclass(frozen=True, kw_only=True)
class SweepEnd:
    """How a sweep came to its end.

    Attributes:
        stopped: whether somebody wanted it to end; `rows` are then those of the point in which it did.
        rows: of a point that was cut off.
        refusal: why the store did not take the rows of the last point; empty if it did.
        summary: in a sentence, what has no times; empty if everything was timed.
    """

    stopped: bool = False
    rows: tuple[Trial, ...] = ()
    refusal: str = ""
    summary: str = ""


class SweepRun:
    """One sweep under way.

    Attributes:
        sweep: what was asked for.
        reporter: of its job.
        results: what became of each point so far.
    """

    def __init__(self, sweep: Sweep, reporter: Reporter, measure: Measure, machine: Machine) -> None:
        self.sweep, self.reporter = sweep, reporter
        self.results: dict[Point, PointResult] = {}
        self._measure, self._machine = measure, machine
        self._points = sweep.points
        self._began = time.monotonic()
        self._end, self._late = "", False

    def run(self) -> SweepEnd:
        """Measure points until there is a reason to end.

        Raises:
            CrossoverError: a point cannot be measured, or the store cannot be read.
        """
        self._recall()
        while not self.reporter.should_stop():
            point = self._next()
            self._tell(point)
            if point is None:
                return SweepEnd(summary=self._summary())
            if reason := forecast.too_slow(self.sweep, point, self.results):
                self.results[point] = point_result.skipped(self.sweep, point, reason)
                continue
            if ended := self._measure_point(point):
                return ended
        return SweepEnd(stopped=True)

    def _recall(self) -> None:
        """Take from the store what it answers; of a fresh sweep, only what was measured since it was asked for."""
        job, asked = self.reporter.job, {point: self.sweep.experiment(point) for point in self._points}
        since = job.created_at if job.fresh else ""
        answers = Store(job.store).answers(asked.values(), self._machine.here, since=since)
        for point, experiment in asked.items():
            if rows := answers.get(experiment.id):
                self.reporter.found(rows)
                self.results[point] = point_result.of_rows(self.sweep, point, rows)

    def _next(self) -> Point | None:
        """The point to measure next; None if the sweep is over, and why if that is not plain."""
        left = [point for point in self._points if point not in self.results]
        if not left:
            return None
        if self.sweep.adaptive:
            sizes = {self.sweep.size(point): point for point in self._points}
            step = search.next_step(tuple(sizes), evidence(self.sweep, self.results))
            if step.size is None:
                self._end = f"The search ended: {step.reason}."
                return None
            left = [sizes[step.size]]
        if self._elapsed_s() >= self.sweep.budget_s:
            self._end, self._late = self._out_of_time(), True
            return None
        return left[0]

    def _measure_point(self, point: Point) -> SweepEnd | None:
        """Measure a point and bring its rows to the store; how the sweep ended if it did."""
        experiment, began = self.sweep.experiment(point), time.monotonic()
        try:
            rows = self._measure(experiment, self.reporter)
        except TooSlow as error:
            self.results[point] = point_result.skipped(self.sweep, point, error.reason, time.monotonic() - began)
            return None
        if any(row.outcome == "stopped" for row in rows) or (not rows and self.reporter.should_stop()):
            return SweepEnd(stopped=True, rows=tuple(rows))
        if rows and (refusal := self.reporter.save(rows)):
            return SweepEnd(refusal=refusal)
        self.results[point] = point_result.of_rows(self.sweep, point, rows, seconds=time.monotonic() - began)
        return None

    def _tell(self, point: Point | None) -> None:
        """Report how far the sweep is, with the point that is next."""
        left = [other for other in self._points if other not in self.results]
        remaining_s = forecast.remaining_s(self.sweep, left, self.results, elapsed_s=self._elapsed_s())
        notes = [result.note for result in self.results.values() if result.note]
        self.reporter.sweep_progress(
            SweepProgress(
                done=len(self.results),
                total=len(self._points),
                size_label=point_result.label(self.sweep, point) if point else "",
                remaining_s=remaining_s if point else None,
                notes=tuple([*notes, self._end] if self._end else notes),
            )
        )

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def _out_of_time(self) -> str:
        budget = units.duration(self.sweep.budget_s)
        if self.sweep.adaptive:
            return f"The budget of {budget} ended before the search did."
        return f"The budget of {budget} ended before {_points(len(self._points) - len(self.results))} could be begun."

    def _summary(self) -> str:
        """What has no times, counted, in one sentence."""
        troubles = [result.trouble for result in self.results.values()]
        memory, slow = troubles.count("memory"), troubles.count("slow")
        clauses = [f"{_points(memory)} did not fit into memory"] if memory else []
        if slow:
            clauses.append(f"{_points(slow)} {'was' if slow == 1 else 'were'} skipped as too slow")
        counted = f"{' and '.join(clauses)}." if clauses else ""
        return " ".join(filter(None, [counted, self._end if self._late else ""]))


def evidence(sweep: Sweep, results: Mapping[Point, PointResult]) -> list[Evidence]:
    """What is known at each size that was measured or skipped, of the first contender against the last."""
    pair = (str(sweep.contenders[0]), str(sweep.contenders[-1]))
    rows = [row for result in results.values() for row in result.rows]
    others = {sweep.size(point): result.note for point, result in results.items()}
    return study.between(rows, sweep.axes[0].name, pair, others=others)


def _points(count: int) -> str:
    return f"{count} point{'' if count == 1 else 's'}"
