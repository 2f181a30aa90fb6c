"""Communication of one running measurement through the files of its job: reports, and requests to stop.

This is the worker's side of a job. A disk that refuses these files does not end a measurement, because they are needed
only while it runs. `core.jobs.recovery` writes rows to the store.
"""

import contextlib
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import replace

import psutil

from ...errors import JobError
from ...progress import Progress, SweepProgress
from ...remote import is_remote
from ...results.schema import Trial
from .. import recovery
from ..job import Job
from ..queue import Queue

REPORT_S = 0.2
"""Minimum seconds between two reports within a phase; a page reads about once a second."""

_log = logging.getLogger(__name__)


class Reporter:
    """Reports of a measurement and requests to it, in the files of its job.

    Attributes:
        job: the job as last written.
        heir: number of the process that replaces this one; 0 if there is none yet.
        note: sentence that every report contains from now on; empty for none.
    """

    def __init__(self, queue: Queue, job: Job) -> None:
        self.job, self.heir, self.note = job, 0, ""
        self._queue = queue
        self._files = queue.files(job.id)
        self._settled = False
        self._unsaved: list[Trial] = []
        self._sweep: SweepProgress | None = None
        self._reported_at = -REPORT_S

    def progress(self, progress: Progress) -> None:
        """Report the progress, which is written at most every `REPORT_S` and at every change of phase."""
        same_phase = self.job.progress is not None and self.job.progress.phase == progress.phase
        self.job = replace(self.job, progress=replace(progress, sweep=self._sweep, note=self.note))
        if not same_phase or time.monotonic() - self._reported_at >= REPORT_S:
            self._report()

    def sweep_progress(self, progress: SweepProgress) -> None:
        """Report the progress of a sweep, which is part of every report from now on."""
        self._sweep = progress
        self.job = replace(self.job, progress=replace(self.job.progress or Progress(phase="starting"), sweep=progress))
        self._report()

    def count_cached_rows(self, trials: Sequence[Trial]) -> None:
        """Add rows that are already in the store to the job's rows."""
        self.job = recovery.with_rows(self.job, trials)

    def save(self, trials: Sequence[Trial]) -> str:
        """Write the rows of a sweep's point to the store; return why it refused them, empty if it did not.

        If an address cannot be reached, the sweep continues: the rows stay with the job, and are written with those of
        the next point, or by `save_rest`.
        """
        self._unsaved += trials
        self.job = recovery.with_missing(self.job, trials)
        refusal = self.save_rest()
        return "" if is_remote(self.job.store) else refusal

    def save_rest(self) -> str:
        """Write the rows that the store refused before; return why it refuses them, empty if it has all."""
        if not self._unsaved:
            return ""
        self.job, refusal = recovery.save(self._files, self.job, self._unsaved)
        if not refusal:
            self._unsaved = []
            if self._report():
                self._files.drop_rows(partial=False)  # other points lack pairs
        return refusal

    def should_stop(self) -> bool:
        """Return whether the measurement should end at the next opportunity.

        Also if its job has been settled elsewhere.
        """
        return self._settled or self._files.is_stop_requested

    def keep(self, trials: Sequence[Trial]) -> None:
        """Store the rows as they would be if the measurement ended now."""
        if not self._files.keep_partial(trials):
            _log.warning("The rows measured so far could not be written; they stay in memory.")

    def abandon(self, reason: str) -> None:
        """End the job with a sentence, and this process with all its children, because a script does not react.

        This is called from another thread than the measuring one; the rows so far are saved.
        """
        rescued = recovery.rescue(self._files, self.job, state="failed", event="It failed")
        saved = " Earlier measurements are saved." if rescued.trial_ids else ""
        with contextlib.suppress(JobError, OSError):
            self._queue.end(replace(rescued, message=reason + saved))
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error):
                if child.pid != self.heir:
                    child.kill()
        os._exit(1)

    def _report(self) -> bool:
        """Store the job; return whether that succeeded."""
        self._reported_at = time.monotonic()
        try:
            self._settled = not self._queue.report(self.job)
        except OSError as error:  # a full disk must not end a measurement
            _log.warning("The progress could not be written: %s", error)
            self._files.mark_alive()
            return False
        return not self._settled
