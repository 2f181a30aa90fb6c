"""One point of a sweep that takes turns with the others: built and warm, a pair of blocks at each visit.

What it has by now counts as its result until it is concluded. Which point is visited when is decided in
`core.jobs.worker.sweep_run`, how a pair is measured in `core.measure.trial`.
"""

import time
from typing import Protocol

from core.jobs.worker import forecast, point_result
from core.jobs.worker.point_result import PointResult
from core.question.experiment import Point
from core.question.sweep import Sweep
from core.results.schema import Trial


class Measurement(Protocol):
    """One point while it is measured, a pair of blocks at a time."""

    def run_round(self) -> bool:
        """Time one more pair, the first time after the start and the warm-up; whether more are to come.

        Raises:
            CrossoverError: the point cannot be measured.
        """

    def rows(self) -> list[Trial]:
        """The point's rows so far, as they are if it ends now; those of its end once no more pairs are to come."""

    def release(self) -> None:
        """Give the memory of the point back, whether it came to its end or not."""


class ActivePoint:
    """A point between its first visit and its last.

    Attributes:
        point: where it is.
        visits: that were made, a pair of blocks each.
        visited: number of the last visit among those of all points; the lowest waits longest.
        seconds: that were spent on it alone.
        rows: as they were after the last visit.
    """

    def __init__(self, point: Point, measurement: Measurement) -> None:
        """Take a measurement of which nothing was done yet."""
        self.point, self._measurement = point, measurement
        self.visits = self.visited = 0
        self.seconds = self._first_s = 0.0
        self.rows: tuple[Trial, ...] = ()

    def run_round(self, number: int) -> bool:
        """Make the next visit, which has this number among all; whether more are to come.

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
        """Seconds of the pairs that the point lacks, and of one more for what follows, from how long visits take."""
        left = max(0, sweep.pairs - self.visits) + 1
        visit_s = (self.seconds - self._first_s) / max(1, self.visits - 1)
        return max(forecast.pairs_s(self.rows, left), left * visit_s)

    def result(self, sweep: Sweep) -> PointResult:
        """What the point has by now, as if it had all its pairs."""
        return point_result.result_from_rows(
            sweep, self.point, self.rows, seconds=self.seconds + self.remaining_s(sweep)
        )

    def release(self) -> None:
        """Give the memory of the point back."""
        self._measurement.release()
