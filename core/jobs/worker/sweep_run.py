"""A sweep from its first visit to its last: which point's turn it is, which are begun, and what became of each.

Points are built and warmed once and stay alive while they take turns, a pair of blocks a visit, in rounds over all of
them: what the machine does slowly meets all sizes alike, and shows as spread within each. What the store answers is not
measured; a point that has its pairs is brought to the store at once, so that a sweep that was stopped or killed goes on
behind it. How a pair is measured is the business of `core.measure.trial`, which size is worth measuring that of
`core.answer.study.search`.
"""

import itertools
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core import units
from core.answer.run import certainty
from core.answer.study import search, study
from core.answer.study.result import Evidence
from core.errors import TooSlow
from core.jobs.machine import Machine
from core.jobs.worker import forecast, point_result
from core.jobs.worker.point_result import PointResult
from core.jobs.worker.reporter import Reporter
from core.jobs.worker.under_way import Measurement, UnderWay
from core.progress import SweepProgress
from core.question.experiment import Experiment, Point
from core.question.sweep import Sweep
from core.results.schema import Trial
from core.results.store import Store

MOST_AT_ONCE = 40
"""Points that are kept alive at once, memory permitting: as many as a search may choose."""

KEEP_EVERY_S = 2.0
"""How often the rows so far are written down, for whoever watches and in case the measuring process is killed."""

Begin = Callable[[Experiment, Reporter], Measurement]
"""Makes a measurement of one point, of which nothing is done before its first visit."""

Fit = Callable[[Sequence[Experiment], Sequence[Experiment]], bool]
"""Whether there is memory for the first points at once, beside the second ones, which are alive."""


@dataclass(frozen=True, kw_only=True)
class SweepEnd:
    """How a sweep came to its end.

    Attributes:
        stopped: whether somebody wanted it to end; `rows` are then those of the points that lack pairs.
        rows: of points that were cut off.
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
        results: what became of each point that is settled.
    """

    def __init__(self, sweep: Sweep, reporter: Reporter, machine: Machine, *, begin: Begin, fit: Fit) -> None:
        self.sweep, self.reporter = sweep, reporter
        self.results: dict[Point, PointResult] = {}
        self._begin, self._fit, self._machine = begin, fit, machine
        self._points = sweep.points
        self._alive: dict[Point, UnderWay] = {}
        self._group: Sequence[Point] = ()
        self._full, self._crowded = False, set[Point]()
        self._order, self._numbers = random.Random(reporter.job.id), itertools.count(1)
        self._began = self._kept_at = time.monotonic()
        self._end, self._late = "", False

    def run(self) -> SweepEnd:
        """Visit points until there is a reason to end.

        Raises:
            CrossoverError: a point cannot be measured, or the store cannot be read.
        """
        self._recall()
        try:
            while not self.reporter.should_stop():
                if ended := self._go_on():
                    return ended
            return self._stopped()
        except Exception:
            self._keep()
            raise
        finally:
            for entry in self._alive.values():
                entry.release()

    def _recall(self) -> None:
        """Take from the store what it answers; of a fresh sweep, only what was measured since it was asked for."""
        job, asked = self.reporter.job, {point: self.sweep.experiment(point) for point in self._points}
        since = job.created_at if job.fresh else ""
        answers = Store(job.store).answers(asked.values(), self._machine.here, since=since, accepted=certainty.answers)
        for point, experiment in asked.items():
            if rows := answers.get(experiment.id):
                self.reporter.found(rows)
                self.results[point] = point_result.of_rows(self.sweep, point, rows)

    def _go_on(self) -> SweepEnd | None:
        """Begin a point, or visit all that are alive in a new order; how the sweep ended if it did."""
        fresh = self._next()
        if fresh is None and not self._alive:
            self._tell(None)
            return SweepEnd(summary=self._summary())
        for point in self._turns(fresh):
            if self.reporter.should_stop():
                break
            if ended := self._visit(point):
                return ended
        return None

    def _turns(self, fresh: Point | None) -> Sequence[Point]:
        """Whose turn it is; beside a size that the search chose, that of the one that waits longest."""
        if fresh is None:
            return self._order.sample(list(self._alive), len(self._alive))
        waiting = sorted(self._alive.values(), key=lambda entry: entry.visited) if self.sweep.adaptive else []
        return [fresh, *(entry.point for entry in waiting[:1])]

    def _next(self) -> Point | None:
        """The point to begin now; None if those that are alive go on first, or the sweep is over.

        What is begun beside others must fit into memory and, as far as can be told, be over within the budget.
        """
        left = [point for point in self._points if point not in self.results and point not in self._alive]
        point = self._searched() if left and self.sweep.adaptive else self._of_group(left)
        if point is None:
            return None
        if self._alive:
            self._full = self._full or not self._fits_beside(point)
            return None if self._full else point
        if self._elapsed_s() >= self.sweep.budget_s:
            self._end, self._late = self._out_of_time(), True
            return None
        self._full = point in self._crowded
        return point

    def _searched(self) -> Point | None:
        """The size that the search wants next; None if it is content with what it has."""
        sizes = {self.sweep.size(point): point for point in self._points}
        step = search.next_step(tuple(sizes), evidence(self.sweep, self._known()))
        if step.size is None:
            self._end = "" if self._alive else f"The search ended: {step.reason}."
            return None
        return sizes[step.size]

    def _of_group(self, left: Sequence[Point]) -> Point | None:
        """The next point of those that take turns together: all, or where they do not fit, every second, or fewer.

        Points that do not even fit alone, as far as can be told, come last, one by one.
        """
        if not self._alive and left:
            small = [point for point in left if self._fit_alone([point])] or left[:1]
            strides = range(math.ceil(len(small) / MOST_AT_ONCE), len(small))
            self._group = next((small[::stride] for stride in strides if self._fit_alone(small[::stride])), small[:1])
        return next((point for point in self._group if point in left), None)

    def _fit_alone(self, points: Sequence[Point]) -> bool:
        return self._fit([self.sweep.experiment(point) for point in points], ())

    def _fits_beside(self, point: Point) -> bool:
        """Whether a point can be begun beside those that are alive."""
        alive = [self.sweep.experiment(other) for other in self._alive]
        known, owed_s = self._known(), self._owed_s()
        expected_s = forecast.remaining_s(self.sweep, [point], known, elapsed_s=0.0) or 0.0
        in_time = self._elapsed_s() + owed_s + expected_s <= self.sweep.budget_s
        return in_time and len(alive) < MOST_AT_ONCE and self._fit([self.sweep.experiment(point)], alive)

    def _visit(self, point: Point) -> SweepEnd | None:
        """Visit a point, and settle it if that was the last time; how the sweep ended if it did."""
        self._tell(point)
        if point not in self._alive:
            if reason := forecast.too_slow(self.sweep, point, self._known()):
                self.results[point] = point_result.skipped(self.sweep, point, reason)
                return None
            self._alive[point] = UnderWay(point, self._begin(self.sweep.experiment(point), self.reporter))
        entry = self._alive[point]
        try:
            more = entry.visit(next(self._numbers))
        except TooSlow as error:
            self._give_up(entry)
            self.results[point] = point_result.skipped(self.sweep, point, error.reason, entry.seconds)
            return None
        if len(self._alive) > 1 and any(row.outcome == "out_of_memory" for row in entry.rows):
            self._give_up(entry)  # it is begun again, alone, once nothing else takes memory
            self._crowded.add(point)
            self._full = True
        elif not more:
            return self._settle(entry)
        if time.monotonic() - self._kept_at >= KEEP_EVERY_S:
            self._keep()
        return None

    def _settle(self, entry: UnderWay) -> SweepEnd | None:
        """Bring the rows of a point that came to its end to the store; how the sweep ended if it did."""
        rows = entry.rows
        if any(row.outcome == "stopped" for row in rows) or (not rows and self.reporter.should_stop()):
            return self._stopped()
        self._give_up(entry)
        if rows and (refusal := self.reporter.save(rows)):
            return SweepEnd(refusal=refusal)
        self.results[entry.point] = point_result.of_rows(self.sweep, entry.point, rows, seconds=entry.seconds)
        return None

    def _give_up(self, entry: UnderWay) -> None:
        del self._alive[entry.point]
        entry.release()

    def _stopped(self) -> SweepEnd:
        return SweepEnd(stopped=True, rows=tuple(self._so_far()))

    def _so_far(self) -> list[Trial]:
        """Rows of points that lack pairs."""
        return [row for entry in self._alive.values() for row in entry.rows if row.block_steps]

    def _keep(self) -> None:
        self.reporter.keep(self._so_far())
        self._kept_at = time.monotonic()

    def _known(self) -> dict[Point, PointResult]:
        """What is known of each point, whether it is settled or has its first pairs."""
        alive = {point: entry.result(self.sweep) for point, entry in self._alive.items() if entry.rows}
        return self.results | alive

    def _owed_s(self) -> float:
        return sum(entry.owed_s(self.sweep) for entry in self._alive.values())

    def _tell(self, point: Point | None) -> None:
        """Report how far the sweep is, with the point whose turn it is."""
        known = self._known()
        left = [other for other in self._points if other not in known]
        rest = self._rest_s(left, known) if point else None
        notes = [result.note for result in known.values() if result.note]
        self.reporter.sweep_progress(
            SweepProgress(
                done=len(self.results),
                total=len(self._points),
                alive=len(self._alive),
                pairs=sum(entry.visits for entry in self._alive.values()),
                pairs_each=self.sweep.pairs,
                size_label=point_result.label(self.sweep, point) if point else "",
                remaining_s=rest[1] if rest else None,
                least_s=rest[0] if rest else None,
                notes=tuple([*notes, self._end] if self._end else notes),
            )
        )

    def _rest_s(self, left: Sequence[Point], known: Mapping[Point, PointResult]) -> tuple[float, float] | None:
        """Seconds that the rest may take, at least and at most: of a grid one figure, of a search an estimate."""
        elapsed_s, owed_s = self._elapsed_s(), self._owed_s()
        if self.sweep.adaptive:
            found = forecast.search_s(self.sweep, left, known, elapsed_s=elapsed_s)
            return (found[0] + owed_s, found[1] + owed_s) if found else None
        rest_s = forecast.remaining_s(self.sweep, left, known, elapsed_s=elapsed_s)
        return None if rest_s is None else (rest_s + owed_s, rest_s + owed_s)

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
    rows = {point: result.rows for point, result in results.items()}
    return study.of_sweep(sweep, rows, {point: result.note for point, result in results.items()})


def _points(count: int) -> str:
    return f"{count} point{'' if count == 1 else 's'}"
