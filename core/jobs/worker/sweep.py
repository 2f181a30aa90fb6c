"""A sweep during its measurement: points in progress, the remaining time, the results, and the next point.

Points take turns in rounds of a pair of blocks. A stored point is not measured again.
"""

import functools
import itertools
import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ... import units
from ...answer import search, speedup, study
from ...answer.judgement import Evidence
from ...answer.search import MAX_SEARCH_SIZES, USUAL_SEARCH_SIZES
from ...errors import SizeNotBuilt, TooSlow
from ...measure.timer import MIN_BLOCK_S, MIN_BLOCK_STEPS
from ...progress import SweepProgress
from ...question import describe, models
from ...question.experiment import Experiment, Point
from ...question.models import operations
from ...question.sweep import Sweep, size_on_axis
from ...results.schema import Trial
from ...results.store import Store
from ..machine import Machine
from .reporter import Reporter

Trouble = Literal["", "memory", "slow", "refused"]


@dataclass(frozen=True, kw_only=True)
class PointResult:
    """Result of one point.

    Attributes:
        rows: rows measured or found in the store, one per contender; empty if the point was skipped.
        seconds: duration of the measurement; None if it was not measured by this job.
        trouble: why some contender has no times: it did not fit, or the point was too slow.
        note: sentence on the trouble, or on a failed variant; empty if there was no problem.
    """

    rows: tuple[Trial, ...] = ()
    seconds: float | None = None
    trouble: Trouble = ""
    note: str = ""

    @property
    def timed(self) -> bool:
        """Whether any block was timed."""
        return any(row.block_steps for row in self.rows)


def describe_point(sweep: Sweep, point: Point) -> str:
    """Return the display text of a point: `hidden size 512, batch size 64`."""
    return ", ".join(
        f"{describe.label_axis(axis.name, sweep.point.model)} {size_on_axis(point, axis.name):,.9g}"
        for axis in sweep.axes
    )


def result_from_rows(sweep: Sweep, point: Point, rows: Sequence[Trial], *, seconds: float | None = None) -> PointResult:
    """Build the result of a point from its rows; a measured point without rows was too slow.

    Args:
        sweep: the point's sweep.
        point: values of the point.
        rows: measured or stored rows.
        seconds: duration of the measurement; None if the rows were stored.
    """
    if not rows:
        return build_skipped_result(
            sweep, point, f"nothing could be timed within {units.format_duration(sweep.point_budget_s)}", seconds
        )
    full = [row.contender for row in rows if row.outcome == "out_of_memory"]
    notes = [f"{_where(sweep, point)} did not fit into the memory of {' and '.join(full)}."] if full else []
    notes += [f"{_where(sweep, point)}: {row.message}" for row in rows if row.lane_failed]
    note = " ".join(notes)
    return PointResult(rows=tuple(rows), seconds=seconds, trouble="memory" if full else "", note=note)


def build_skipped_result(sweep: Sweep, point: Point, reason: str, seconds: float | None = None) -> PointResult:
    """Build the result of a point that is too slow; the reason continues a sentence after a colon."""
    note = f"{_where(sweep, point)} was skipped as too slow: {reason}."
    return PointResult(seconds=seconds, trouble="slow", note=note)


def build_refused_result(sweep: Sweep, point: Point, error: SizeNotBuilt) -> PointResult:
    """Return the result of a point whose script cannot build its size."""
    reason = str(error).splitlines()[-1].strip().rstrip(".")
    return PointResult(trouble="refused", note=f"{_where(sweep, point)} could not be built: {reason}.")


MOST_REFUSED = 3
"""Number of sizes that a script may refuse before it has built one; after that the cause must be another one."""


def _where(sweep: Sweep, point: Point) -> str:
    text = describe_point(sweep, point)
    return text[:1].upper() + text[1:]


class Measurement(Protocol):
    """One point during its measurement, a pair of blocks at a time."""

    def run_round(self) -> bool:
        """Time one more pair, the first one after start-up and warm-up; return whether more follow.

        Raises:
            CrossoverError: the point cannot be measured.
        """

    def rows(self) -> list[Trial]:
        """Return the point's rows as they are if it ends now; after all pairs, these are its final rows."""

    def release(self) -> None:
        """Release the memory of the point, whether it has ended or not."""


class ActivePoint:
    """A point under measurement.

    Attributes:
        point: values of the point.
        visits: number of visits so far, with a pair of blocks each.
        visited: number of its last visit among the visits of all points.
        seconds: seconds spent on this point.
        rows: rows after the last visit.
    """

    def __init__(self, point: Point, measurement: Measurement) -> None:
        """Store a measurement that has not started yet."""
        self.point, self._measurement = point, measurement
        self.visits = self.visited = 0
        self.seconds = self._first_s = 0.0
        self.rows: tuple[Trial, ...] = ()

    def run_round(self, number: int) -> bool:
        """Make the next visit, with its number among all visits; return whether more follow.

        Raises:
            CrossoverError: the point cannot be measured.
        """
        began = time.monotonic()
        self.visits, self.visited = self.visits + 1, number
        try:
            more = self._measurement.run_round()
        finally:
            self.seconds += time.monotonic() - began
            self._first_s = self._first_s or self.seconds
        self.rows = tuple(self._measurement.rows())
        return more

    def remaining_s(self, sweep: Sweep) -> float:
        """Expected seconds of the missing pairs and one more for the work after them, from past visits."""
        left = max(0, sweep.pairs - self.visits) + 1
        visit_s = (self.seconds - self._first_s) / max(1, self.visits - 1)
        return max(pairs_s(self.rows, left), left * visit_s)

    def result(self, sweep: Sweep) -> PointResult:
        """Return the point's result so far, as if it had all pairs."""
        return result_from_rows(sweep, self.point, self.rows, seconds=self.seconds + self.remaining_s(sweep))

    def release(self) -> None:
        """Release the memory of the point."""
        self._measurement.release()


TOO_SLOW = 2.0
"""Ratio of the expected time of a point's pairs to its limit above which it is skipped: less than half could be timed.
"""

FARTHEST = 16.0
"""Maximum ratio of operations over which a step time is extrapolated.

Above it a small point, whose time is overhead, says too little about a large one; the large one is tried, and ends when
its budget is spent.
"""


def too_slow(sweep: Sweep, point: Point, results: Mapping[Point, PointResult]) -> str:
    """Return why a point is too slow to start, in words that follow a colon; empty if it is not, or if unknown.

    The estimate comes from points that differ on one axis only and have no more operations per step.
    """
    lesser = [
        other for other in results if _work(other) <= _work(point) and _count_axis_differences(sweep, point, other) == 1
    ]
    for other in lesser:
        if results[other].trouble == "slow":
            return f"{describe_point(sweep, other)} was too slow and needs no more operations"
    timed = [other for other in lesser if results[other].timed]
    if not timed:
        return ""
    near = max(timed, key=_work)
    stretch = _work(point) / _work(near)
    expected_s = pairs_s(results[near].rows, sweep.pairs, stretch)
    if stretch > FARTHEST or expected_s <= TOO_SLOW * sweep.point_budget_s:
        return ""
    limit = units.format_duration(sweep.point_budget_s)
    return f"{sweep.pairs} pairs would take about {units.format_duration(expected_s)}, and a point may take {limit}"


def pairs_s(rows: Iterable[Trial], pairs: int, stretch: float = 1.0) -> float:
    """Return the seconds of the blocks of some pairs, with every step `stretch` times as long as in `rows`.

    The lead-in is omitted.
    """
    steps_s = [statistics.median(row.step_s) for row in rows if row.block_steps]
    return pairs * sum(max(MIN_BLOCK_S, MIN_BLOCK_STEPS * step_s * stretch) for step_s in steps_s)


def remaining_s(
    sweep: Sweep, left: Sequence[Point], results: Mapping[Point, PointResult], *, elapsed_s: float
) -> float | None:
    """Return the expected seconds of the points of `left`; None before one was measured.

    Each estimate comes from the measured point nearest in operations, with its blocks stretched by the ratio of
    operations. It is limited by the time limit of a point, and for an adaptive sweep it is an upper bound. The sweep's
    budget bounds the sum, except for the last point.
    """
    expected_s = _total_s(sweep, left, results)
    if expected_s is None:
        return None
    return min(expected_s, max(0.0, sweep.budget_s - elapsed_s) + (0.0 if sweep.adaptive else sweep.point_budget_s))


def search_s(
    sweep: Sweep, left: Sequence[Point], results: Mapping[Point, PointResult], *, elapsed_s: float
) -> tuple[float, float] | None:
    """Return the minimum and maximum remaining seconds of an adaptive sweep; None before a point was measured.

    Its future points are unknown, so the average of possible points and the usual number of points are used.
    """
    whole_s = _total_s(sweep, left, results)
    if whole_s is None:
        return None
    fewest, usual = USUAL_SEARCH_SIZES
    mean_s, begun = whole_s / max(1, len(left)), len(results)
    least = max(0, fewest - begun)
    most = max(1, (usual if begun < usual else MAX_SEARCH_SIZES) - begun)
    within_s = max(0.0, sweep.budget_s - elapsed_s)
    least_s, most_s = (min(min(count, len(left)) * mean_s, within_s) for count in (least, most))
    return least_s, most_s


def _total_s(sweep: Sweep, left: Sequence[Point], results: Mapping[Point, PointResult]) -> float | None:
    """Return the seconds of all remaining points, without the limit of the budget; None before a point was measured."""
    measured = [(_work(point), result) for point, result in results.items() if result.seconds is not None]
    return sum(_point_s(sweep, _work(point), measured) for point in left) if measured else None


def _point_s(sweep: Sweep, flops: int, measured: Sequence[tuple[int, PointResult]]) -> float:
    near, result = min(measured, key=lambda entry: abs(math.log(flops / entry[0])))
    blocks_s = pairs_s(result.rows, sweep.pairs)
    stretched_s = pairs_s(result.rows, sweep.pairs, flops / near)
    return max(0.0, (result.seconds or 0.0) - blocks_s) + min(stretched_s, max(blocks_s, sweep.point_budget_s))


_work = functools.lru_cache(maxsize=1024)(operations.work)


def _count_axis_differences(sweep: Sweep, point: Point, other: Point) -> int:
    """Return the number of axes on which two points differ."""
    names = [models.family(point.model).size if axis.name == "parameters" else axis.name for axis in sweep.axes]
    return sum(getattr(point, name) != getattr(other, name) for name in names)


MOST_AT_ONCE = 40
"""Maximum number of points in memory at once, if they fit: as many as a search may choose."""

KEEP_EVERY_S = 2.0
"""Interval in seconds at which the current rows are written, for viewers and in case the process is killed."""

Begin = Callable[[Experiment, Reporter], Measurement]
"""Function that prepares the measurement of one point, which starts at its first visit."""

Fit = Callable[[Sequence[Experiment], Sequence[Experiment]], bool]
"""Function that returns whether the first points fit into memory at once, in addition to the second ones, which are in
memory.
"""


@dataclass(frozen=True, kw_only=True)
class SweepEnd:
    """End of a sweep.

    Attributes:
        stopped: whether a stop was requested; `rows` are then those of unfinished points.
        rows: rows of unfinished points.
        refusal: why the store refused the rows of the last point; empty if it did not.
        summary: sentence on the points without times; empty if everything was timed.
    """

    stopped: bool = False
    rows: tuple[Trial, ...] = ()
    refusal: str = ""
    summary: str = ""


class SweepRun:
    """One running sweep.

    Attributes:
        sweep: the requested sweep.
        reporter: reporter of its job.
        results: result of each finished point.
    """

    def __init__(self, sweep: Sweep, reporter: Reporter, machine: Machine, *, begin: Begin, fit: Fit) -> None:
        self.sweep, self.reporter = sweep, reporter
        self.results: dict[Point, PointResult] = {}
        self._begin, self._fit, self._machine = begin, fit, machine
        self._points = sweep.points
        self._alive: dict[Point, ActivePoint] = {}
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
                if ended := self._advance_sweep():
                    return ended
            return self._end_as_stopped()
        except Exception:
            self._keep()
            raise
        finally:
            for entry in self._alive.values():
                entry.release()

    def _recall(self) -> None:
        """Load the stored answers; of a fresh sweep, only rows measured since its submission."""
        job, asked = self.reporter.job, {point: self.sweep.experiment(point) for point in self._points}
        since = job.created_at if job.fresh else ""
        answers = Store(job.store).answers(
            asked.values(), self._machine.local_machine, since=since, accepted=speedup.answers_experiment
        )
        for point, experiment in asked.items():
            if rows := answers.get(experiment.id):
                self.reporter.count_cached_rows(rows)
                self.results[point] = result_from_rows(self.sweep, point, rows)

    def _advance_sweep(self) -> SweepEnd | None:
        """Start a point, or visit all active points in a new order; return the end of the sweep if it has ended."""
        fresh = self._next()
        if fresh is None and not self._alive:
            self._tell(None)
            return SweepEnd(summary=self._summary())
        for point in self._turns(fresh):
            if self.reporter.should_stop():
                break
            if ended := self._run_point_round(point):
                return ended
        return None

    def _turns(self, fresh: Point | None) -> Sequence[Point]:
        """Return the points of the next turn; after a size of a search, also the point that has waited longest."""
        if fresh is None:
            return self._order.sample(list(self._alive), len(self._alive))
        waiting = sorted(self._alive.values(), key=lambda entry: entry.visited) if self.sweep.adaptive else []
        return [fresh, *(entry.point for entry in waiting[:1])]

    def _next(self) -> Point | None:
        """Return the point to start now; None if the active ones continue first, or if the sweep is over.

        A point that starts while others are active must fit into memory and, by estimate, end within the budget.
        """
        left = [point for point in self._points if point not in self.results and point not in self._alive]
        point = self._next_search_point() if left and self.sweep.adaptive else self._next_group_point(left)
        if point is None:
            return None
        if self._alive:
            self._full = self._full or not self._can_join_active(point)
            return None if self._full else point
        if self._read_elapsed_s() >= self.sweep.budget_s:
            self._end, self._late = self._out_of_time(), True
            return None
        self._full = point in self._crowded
        return point

    def _next_search_point(self) -> Point | None:
        """Return the next size of the search; None if it has ended."""
        sizes, known = {self.sweep.size(point): point for point in self._points}, self._provisional_results()
        refused = [point for point, result in known.items() if result.trouble == "refused"]
        candidates = search.select_buildable(
            tuple(sizes),
            [self.sweep.size(point) for point, result in known.items() if result.timed],
            [self.sweep.size(point) for point in refused],
        )
        tried = {point: result for point, result in known.items() if point not in refused}
        if not candidates:
            self._end = "" if self._alive else "The script built none of the sizes."
            return None
        step = search.next_step(tuple(candidates), evidence(self.sweep, tried))
        if step.size is None:
            self._end = "" if self._alive else f"The search ended: {step.reason}."
            return None
        return sizes[step.size]

    def _next_group_point(self, left: Sequence[Point]) -> Point | None:
        """Return the next point of the group that takes turns: all points, or fewer if they do not fit into memory.

        Points that by estimate do not fit even alone come last, one by one.
        """
        if not self._alive and left:
            small = [point for point in left if self._fit_alone([point])] or left[:1]
            strides = range(math.ceil(len(small) / MOST_AT_ONCE), len(small))
            self._group = next((small[::stride] for stride in strides if self._fit_alone(small[::stride])), small[:1])
        return next((point for point in self._group if point in left), None)

    def _fit_alone(self, points: Sequence[Point]) -> bool:
        return self._fit([self.sweep.experiment(point) for point in points], ())

    def _can_join_active(self, point: Point) -> bool:
        """Return whether a point can start while the others are active."""
        alive = [self.sweep.experiment(other) for other in self._alive]
        known, owed_s = self._provisional_results(), self._active_remaining_s()
        expected_s = remaining_s(self.sweep, [point], known, elapsed_s=0.0) or 0.0
        in_time = self._read_elapsed_s() + owed_s + expected_s <= self.sweep.budget_s
        return in_time and len(alive) < MOST_AT_ONCE and self._fit([self.sweep.experiment(point)], alive)

    def _run_point_round(self, point: Point) -> SweepEnd | None:
        """Visit a point, and finish it after its last visit; return the end of the sweep if it has ended."""
        self._tell(point)
        if point not in self._alive:
            if reason := too_slow(self.sweep, point, self._provisional_results()):
                self.results[point] = build_skipped_result(self.sweep, point, reason)
                return None
            self._alive[point] = ActivePoint(point, self._begin(self.sweep.experiment(point), self.reporter))
        entry = self._alive[point]
        try:
            more = entry.run_round(next(self._numbers))
        except SizeNotBuilt as error:
            self._give_up(entry)
            self.results[point] = build_refused_result(self.sweep, point, error)
            if self._has_built_nothing():
                raise
            return None
        except TooSlow as error:
            self._give_up(entry)
            self.results[point] = build_skipped_result(self.sweep, point, error.reason, entry.seconds)
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

    def _has_built_nothing(self) -> bool:
        """Return whether a script refused all sizes or so many that the size is not the cause."""
        refused = [result.trouble == "refused" for result in self.results.values()]
        return not self._alive and all(refused) and len(refused) >= min(MOST_REFUSED, len(self._points))

    def _settle(self, entry: ActivePoint) -> SweepEnd | None:
        """Write the rows of a finished point to the store; return the end of the sweep if it has ended."""
        rows = entry.rows
        if any(row.outcome == "stopped" for row in rows) or (not rows and self.reporter.should_stop()):
            return self._end_as_stopped()
        self._give_up(entry)
        if rows and (refusal := self.reporter.save(rows)):
            return SweepEnd(refusal=refusal)
        self.results[entry.point] = result_from_rows(self.sweep, entry.point, rows, seconds=entry.seconds)
        return None

    def _give_up(self, entry: ActivePoint) -> None:
        del self._alive[entry.point]
        entry.release()

    def _end_as_stopped(self) -> SweepEnd:
        return SweepEnd(stopped=True, rows=tuple(self._so_far()))

    def _so_far(self) -> list[Trial]:
        """Return the rows of unfinished points."""
        return [row for entry in self._alive.values() for row in entry.rows if row.block_steps]

    def _keep(self) -> None:
        self.reporter.keep(self._so_far())
        self._kept_at = time.monotonic()

    def _provisional_results(self) -> dict[Point, PointResult]:
        """Return the result of each point that is finished or has its first pairs."""
        alive = {point: entry.result(self.sweep) for point, entry in self._alive.items() if entry.rows}
        return self.results | alive

    def _active_remaining_s(self) -> float:
        return sum(entry.remaining_s(self.sweep) for entry in self._alive.values())

    def _tell(self, point: Point | None) -> None:
        """Report the progress of the sweep, with the present point."""
        known = self._provisional_results()
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
                size_label=describe_point(self.sweep, point) if point else "",
                remaining_s=rest[1] if rest else None,
                least_s=rest[0] if rest else None,
                notes=tuple([*notes, self._end] if self._end else notes),
            )
        )

    def _rest_s(self, left: Sequence[Point], results: Mapping[Point, PointResult]) -> tuple[float, float] | None:
        """Return the minimum and maximum remaining seconds; equal for a grid, estimates for a search."""
        elapsed_s, owed_s = self._read_elapsed_s(), self._active_remaining_s()
        if self.sweep.adaptive:
            found = search_s(self.sweep, left, results, elapsed_s=elapsed_s)
            return (found[0] + owed_s, found[1] + owed_s) if found else None
        rest_s = remaining_s(self.sweep, left, results, elapsed_s=elapsed_s)
        return None if rest_s is None else (rest_s + owed_s, rest_s + owed_s)

    def _read_elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def _out_of_time(self) -> str:
        budget = units.format_duration(self.sweep.budget_s)
        if self.sweep.adaptive:
            return f"The budget of {budget} ended before the search did."
        return (
            f"The budget of {budget} ended before {_count_points(len(self._points) - len(self.results))} could be "
            "started."
        )

    def _summary(self) -> str:
        """Return a sentence with the number of points without times."""
        troubles = [result.trouble for result in self.results.values()]
        memory, slow = troubles.count("memory"), troubles.count("slow")
        clauses = [f"{_count_points(memory)} did not fit into memory"] if memory else []
        if slow:
            clauses.append(f"{_count_points(slow)} {'was' if slow == 1 else 'were'} skipped as too slow")
        if refused := troubles.count("refused"):
            clauses.append(f"{_count_points(refused)} could not be built")
        counted = f"{' and '.join(clauses)}." if clauses else ""
        return " ".join(filter(None, [counted, self._end if self._late else ""]))


def evidence(sweep: Sweep, results: Mapping[Point, PointResult]) -> list[Evidence]:
    """Return the evidence at each size that was measured or skipped, of the first contender against the last."""
    rows = {point: result.rows for point, result in results.items()}
    return study.sweep_evidence(sweep, rows, {point: result.note for point, result in results.items()})


def _count_points(count: int) -> str:
    return f"{count} point{'' if count == 1 else 's'}"
