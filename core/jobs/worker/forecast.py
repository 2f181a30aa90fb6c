"""How long the points of a sweep that are still to come will take, from those that were measured.

A forecast decides whether a point is worth beginning, and says when a sweep will be over; it is never a result. Pure
functions of rows and sizes: nothing here reads a clock or a file.
"""

import functools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from core import units
from core.answer.study.search import MAX_SEARCH_SIZES, USUAL_SEARCH_SIZES
from core.jobs.worker.point_result import PointResult, describe_point
from core.measure.readings.timer import MIN_BLOCK_S, MIN_BLOCK_STEPS
from core.question import models
from core.question.experiment import Point
from core.question.models import cost
from core.question.sweep import Sweep
from core.results.schema import Trial

TOO_SLOW = 2.0
"""A point is skipped if its pairs would take over so many times what one point may: less than half could be timed."""

FARTHEST = 16.0
"""Highest ratio of operations over which a step time is stretched. Beyond it a small point, whose time is overhead,
says too little of a large one; that one is tried, and gives up once its budget is spent."""


def too_slow(sweep: Sweep, point: Point, results: Mapping[Point, PointResult]) -> str:
    """Why a point is too slow to be begun, in words that go on after a colon; empty if nothing is known against it.

    What is known comes from points that differ from it on one axis only and have no more operations a step.
    """
    lesser = [
        other for other in results if _work(other) <= _work(point) and _count_axis_differences(sweep, point, other) == 1
    ]
    for other in lesser:
        if results[other].trouble == "slow":
            return f"so was {describe_point(sweep, other)}, which needs no more operations"
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
    """Seconds of the blocks of some pairs, were every step `stretch` times as long as in `rows`; lead-in left out."""
    steps_s = [statistics.median(row.step_s) for row in rows if row.block_steps]
    return pairs * sum(max(MIN_BLOCK_S, MIN_BLOCK_STEPS * step_s * stretch) for step_s in steps_s)


def remaining_s(
    sweep: Sweep, left: Sequence[Point], results: Mapping[Point, PointResult], *, elapsed_s: float
) -> float | None:
    """Seconds that the points of `left` may take, for an adaptive sweep at most; None before one was measured.

    Each takes what the measured one nearest in operations took, its blocks stretched by their ratio, and none takes
    much longer than a point may. The sweep's budget bounds the whole, but for the point that it ends in.
    """
    expected_s = _total_s(sweep, left, results)
    if expected_s is None:
        return None
    return min(expected_s, max(0.0, sweep.budget_s - elapsed_s) + (0.0 if sweep.adaptive else sweep.point_budget_s))


def search_s(
    sweep: Sweep, left: Sequence[Point], results: Mapping[Point, PointResult], *, elapsed_s: float
) -> tuple[float, float] | None:
    """The least and the most seconds that an adaptive sweep will still take; None before a point was measured.

    Which points it will choose is not known: they are taken for the average of those that it may, and for as many as
    searches usually measure.
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
    """Seconds of all that is left, whatever the budget; None before a point was measured."""
    measured = [(_work(point), result) for point, result in results.items() if result.seconds is not None]
    return sum(_point_s(sweep, _work(point), measured) for point in left) if measured else None


def _point_s(sweep: Sweep, flops: int, measured: Sequence[tuple[int, PointResult]]) -> float:
    near, result = min(measured, key=lambda entry: abs(math.log(flops / entry[0])))
    blocks_s = pairs_s(result.rows, sweep.pairs)
    stretched_s = pairs_s(result.rows, sweep.pairs, flops / near)
    return max(0.0, (result.seconds or 0.0) - blocks_s) + min(stretched_s, max(blocks_s, sweep.point_budget_s))


_work = functools.lru_cache(maxsize=1024)(cost.work)


def _count_axis_differences(sweep: Sweep, point: Point, other: Point) -> int:
    """On how many axes two points differ."""
    names = [models.family(point.model).size if axis.name == "parameters" else axis.name for axis in sweep.axes]
    return sum(getattr(point, name) != getattr(other, name) for name in names)
