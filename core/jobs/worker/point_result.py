"""What became of one point of a sweep, and the sentence that says so where it has no times.

Plain facts; which point is measured next, and when one is too slow to be, is decided elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from core import units
from core.question import describe
from core.question.experiment import Point
from core.question.sweep import Sweep, size_on_axis
from core.results.schema import Trial

Trouble = Literal["", "memory", "slow"]


@dataclass(frozen=True, kw_only=True)
class PointResult:
    """What became of one point.

    Attributes:
        rows: measured or found in the store, one a contender; none if it was skipped.
        seconds: that measuring it took; None if it was not measured by this job.
        trouble: why not every contender has times: one did not fit, or the point was too slow.
        note: the same in a sentence, or that a lane failed; empty if all is well.
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
    """Where a point lies, for people: `hidden size 512, batch size 64`."""
    return ", ".join(
        f"{describe.label_axis(axis.name, sweep.point.model)} {size_on_axis(point, axis.name):,.9g}"
        for axis in sweep.axes
    )


def result_from_rows(sweep: Sweep, point: Point, rows: Sequence[Trial], *, seconds: float | None = None) -> PointResult:
    """What became of a point with these rows; one that was measured and has none was too slow.

    Args:
        sweep: that the point is of.
        point: where it is.
        rows: measured or found.
        seconds: that measuring it took; None if the rows were found.
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
    """What becomes of a point that is too slow, for a reason in words that go on after a colon."""
    note = f"{_where(sweep, point)} was skipped as too slow: {reason}."
    return PointResult(seconds=seconds, trouble="slow", note=note)


def _where(sweep: Sweep, point: Point) -> str:
    text = describe_point(sweep, point)
    return text[:1].upper() + text[1:]
