"""What one measurement tells of itself and is told while it runs, kept in the files of its job.

The worker's side of a job. A disk that refuses these files does not end a measurement: they are of use only while
it runs. How rows reach the store is the business of `core.jobs.delivery`.
"""

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.experiment import Experiment
from core.jobs import delivery
from core.jobs.job import Job
from core.jobs.queue import Queue
from core.progress import Progress, SweepProgress
from core.results.schema import Trial

REPORT_S = 0.2
"""Shortest time between two reports within a phase; a page looks about once a second."""

_log = logging.getLogger(__name__)


class Record:
    """What a measurement tells of itself and is told, kept in the files of its job.

    Attributes:
        job: the job as it was written down last.
    """

    def __init__(self, queue: Queue, job: Job) -> None:
        self.job = job
        self._queue = queue
        self._files = queue.files(job.id)
        self._checkpoint = queue.checkpoint(job)
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

    def begin(self, experiment: Experiment) -> None:
        """Turn to a point of a sweep: what is saved from now on, or was earlier, is saved under its name."""
        self._checkpoint = self._queue.checkpoint(self.job, experiment)
        if self.job.fresh:
            self.forget()

    def found(self, experiment: Experiment, trials: Sequence[Trial]) -> None:
        """Count rows that the store has already among the job's; nothing is to be continued there."""
        self.job = delivery.with_rows(self.job, trials)
        self._queue.checkpoint(self.job, experiment).unlink(missing_ok=True)

    def deliver(self, trials: Sequence[Trial]) -> str:
        """Bring the rows of a point of a sweep to the store; why it refused them, empty if it did not."""
        self.job, refusal = delivery.deliver(self._files, self.job, trials)
        if not refusal and self._report():
            self._files.drop_rows()
        if not refusal:
            self.forget()
        return refusal

    def should_stop(self) -> bool:
        """Whether the measurement shall end at the next opportunity."""
        return self._files.asked_to_stop

    def save(self, state: Mapping[str, Any], trials: Sequence[Trial]) -> None:
        """Keep what is needed to continue after a kill, and the rows as they would be if it ended now."""
        from core.jobs import checkpoint  # imports torch, which a worker does only once it has the seat

        with _forgiven("The checkpoint"):
            checkpoint.write(self._checkpoint, state)
            self._files.keep_partial(trials)

    def saved(self) -> dict[str, Any] | None:
        """State that an earlier, killed measurement of the same experiment saved; None if there is none."""
        from core.jobs import checkpoint

        return None if self.job.fresh else checkpoint.read(self._checkpoint)

    def forget(self) -> None:
        """Drop what was saved to continue from."""
        self._checkpoint.unlink(missing_ok=True)

    def _report(self) -> bool:
        """Write the job down; whether that worked."""
        self._reported_at = time.monotonic()
        with _forgiven("The progress"):
            self._queue.report(self.job)
            return True
        return False


@contextlib.contextmanager
def _forgiven(what: str) -> Iterator[None]:
    """A full disk must not end a measurement whose rows may yet be shown."""
    try:
        yield
    except OSError as error:
        _log.warning("%s could not be written: %s", what, error)
