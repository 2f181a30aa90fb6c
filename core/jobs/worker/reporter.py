"""What one measurement tells of itself and is told while it runs, kept in the files of its job.

The worker's side of a job. A disk that refuses these files does not end a measurement: they are of use only while
it runs. How rows reach the store is the business of `core.jobs.recovery`.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from ...progress import Progress, SweepProgress
from ...remote.local_cache import is_remote
from ...results.schema import Trial
from .. import recovery
from ..job import Job
from ..queue import Queue

REPORT_S = 0.2
"""Shortest time between two reports within a phase; a page looks about once a second."""

_log = logging.getLogger(__name__)


class Reporter:
    """What a measurement tells of itself and is told, kept in the files of its job.

    Attributes:
        job: the job as it was written down last.
    """

    def __init__(self, queue: Queue, job: Job) -> None:
        self.job = job
        self._queue = queue
        self._files = queue.files(job.id)
        self._settled = False
        self._unsaved: list[Trial] = []
        self._sweep: SweepProgress | None = None
        self._reported_at = -REPORT_S

    def progress(self, progress: Progress) -> None:
        """Report how far the measurement is; written at most every `REPORT_S`, and whenever the phase changes."""
        same_phase = self.job.progress is not None and self.job.progress.phase == progress.phase
        self.job = replace(self.job, progress=replace(progress, sweep=self._sweep))
        if not same_phase or time.monotonic() - self._reported_at >= REPORT_S:
            self._report()

    def sweep_progress(self, progress: SweepProgress) -> None:
        """Report how far a sweep is; from now on part of every report."""
        self._sweep = progress
        self.job = replace(self.job, progress=replace(self.job.progress or Progress(phase="starting"), sweep=progress))
        self._report()

    def count_cached_rows(self, trials: Sequence[Trial]) -> None:
        """Count rows that the store has already among the job's."""
        self.job = recovery.with_rows(self.job, trials)

    def save(self, trials: Sequence[Trial]) -> str:
        """Bring the rows of a point of a sweep to the store; why it refused them, empty if it did not.

        While an address cannot be reached, the sweep goes on: the rows stay with the job, and are brought with those of
        the next point, or by `save_rest`.
        """
        self._unsaved += trials
        self.job = recovery.with_missing(self.job, trials)
        refusal = self.save_rest()
        return "" if is_remote(self.job.store) else refusal

    def save_rest(self) -> str:
        """Bring the rows to the store that it did not take before; why it refused them, empty if it has all."""
        if not self._unsaved:
            return ""
        self.job, refusal = recovery.save(self._files, self.job, self._unsaved)
        if not refusal:
            self._unsaved = []
            if self._report():
                self._files.drop_rows(partial=False)  # other points lack pairs
        return refusal

    def should_stop(self) -> bool:
        """Whether the measurement shall end at the next opportunity; also if somebody has settled its job."""
        return self._settled or self._files.is_stop_requested

    def keep(self, trials: Sequence[Trial]) -> None:
        """Keep the rows as they would be if the measurement ended now."""
        if not self._files.keep_partial(trials):
            _log.warning("What was measured so far could not be written; it stays in memory.")

    def _report(self) -> bool:
        """Write the job down; whether that worked."""
        self._reported_at = time.monotonic()
        try:
            self._settled = not self._queue.report(self.job)
        except OSError as error:  # a full disk must not end a measurement
            _log.warning("The progress could not be written: %s", error)
            self._files.mark_alive()
            return False
        return not self._settled
