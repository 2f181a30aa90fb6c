"""The queue of jobs in a folder: who is next, who joins whom, and what becomes of a job whose process died.

First come, first served. Every change of state happens under one lock of the folder, so any number of pages,
command lines and workers may look and ask at once. Nothing here starts a process or measures.
"""

import contextlib
import dataclasses
import datetime
import hashlib
import itertools
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from core.errors import JobError
from core.experiment import EVERY_EPOCH, Experiment
from core.jobs import delivery
from core.jobs.job import Asked, Job, JobFolder
from core.jobs.process import Process
from core.jobs.seat import Seat
from core.results.store import Store

JOBS = Path(__file__).parents[2] / "data" / "jobs"
"""Folder of jobs unless the environment names another."""

JOBS_VARIABLE = "CROSSOVER_JOBS"
"""Environment variable that names another folder of jobs."""

QUEUE_LIMIT = 100
"""Most jobs that wait at once: a class of 30 with three requests each fits, a runaway script does not."""

KEPT_JOBS = 200
"""Ended jobs that stay readable; their rows are in the store for good."""

GUARD_S = 10.0
"""How long the folder's lock is waited for; it is held for milliseconds, or while one killed process is buried."""

_GUARD_POLL_S = 0.01
_JOB_ID = re.compile(r"\d{20}-[0-9a-f]{6}")


class Queue:
    """The jobs of one folder.

    Attributes:
        folder: where they are; `CROSSOVER_JOBS`, or data/jobs of the project, unless given.
        seat: the place of the worker that serves this queue.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = Path(folder or os.environ.get(JOBS_VARIABLE) or JOBS).absolute()
        self.seat = Seat(self.folder)
        self._ended: dict[str, Job] = {}

    def submit(self, asked: Asked, store: Store, *, fresh: bool = False) -> Job:
        """Queue a measurement, or join an active one of the same question, budget and store.

        Whether the store already answers an experiment is for the asker to look up first; of a sweep, points that it
        has are not measured again.

        Args:
            asked: what to measure or to show.
            store: where its rows go, or its exhibit.
            fresh: do not continue what an earlier, killed measurement left behind.

        Raises:
            StoreError: the store cannot be written.
            JobError: the queue is full, or its folder cannot be written.
        """
        store.check_writable()
        with self.guard():
            self._bury_lost()
            waiting = [job for job in self._active() if not self.files(job.id).asked_to_stop]
            same = (asked, store.folder.absolute())
            for job in waiting:
                if (job.asked, job.store) == same:
                    return self._placed(job)
            if sum(job.state == "queued" for job in waiting) >= QUEUE_LIMIT:
                raise JobError(f"The queue holds {QUEUE_LIMIT} waiting jobs, which is its limit; try again later.")
            self._prune()
            job = Job(id=self._new_id(), asked=asked, store=same[1], fresh=fresh, created_at=_now())
            try:
                JobFolder.create(self.folder / job.id, job)
            except OSError as error:
                raise JobError(f"The folder of jobs {self.folder} cannot be written: {error}.") from error
            return self._placed(job)

    def job(self, job_id: str) -> Job:
        """One job as it is now; one whose process died is marked as crashed, with what it had saved.

        Raises:
            JobError: there is no such job, or no longer.
        """
        job = self._look(job_id) if _JOB_ID.fullmatch(job_id) else None
        if job is None:
            raise JobError(f"There is no job {job_id[:40]!r}; the {KEPT_JOBS} jobs that ended last can be looked up.")
        return self._placed(job)

    def jobs(self) -> list[Job]:
        """All jobs as they are now, in the order of submission."""
        jobs, place = [], itertools.count(1)
        for job_id in self._ids():
            if job := self._look(job_id):
                jobs.append(dataclasses.replace(job, place=next(place)) if job.state == "queued" else job)
        return jobs

    def waiting(self) -> bool:
        """Whether a job waits for its turn."""
        return any(job.state == "queued" for job in self._active())

    def request_stop(self, job_id: str) -> Job:
        """Take a waiting job out of the queue, or ask the worker to end a running one.

        Raises:
            JobError: there is no such job.
        """
        self.job(job_id)
        with self.guard():
            job = self._read(job_id)
            if job and job.state == "queued":
                return self._write(dataclasses.replace(job, state="stopped", message="Stopped before it began."))
            if job and job.active:
                self.files(job_id).ask_to_stop()
        return self.job(job_id)

    def kill(self, job_id: str) -> Job:
        """End a running job by ending its process at once; what it had saved is kept.

        Raises:
            JobError: there is no such job, or its process belongs to somebody else.
        """
        with self.guard():  # so that the worker cannot have gone on to another job
            job = self._read(job_id)
            if job and job.state == "running" and job.worker:
                self.files(job_id).ask_to_stop()
                try:
                    job.worker.kill()
                except PermissionError:
                    raise JobError(
                        f"Job {job_id} is measured by a process of another user, who alone can end it."
                    ) from None
                return self._bury(job)
        return self.job(job_id)

    def claim(self, worker: Process) -> Job | None:
        """The next job, from now on running in `worker`; None if none waits."""
        if not self.waiting():
            return None
        with self.guard():
            self._bury_lost()  # the next sweep must find in the store what the one before had measured
            for job in self._active():
                if job.state == "queued":
                    return self._write(dataclasses.replace(job, state="running", worker=worker))
        return None

    def report(self, job: Job) -> None:
        """Write down how far a running job is; for its worker alone.

        Raises:
            OSError: the folder cannot be written.
        """
        self.files(job.id).write(job)

    def end(self, job: Job) -> None:
        """Write down what became of a job; for its worker alone."""
        with self.guard():
            self._write(job)

    def fail_waiting(self, message: str) -> None:
        """Mark every waiting job as failed, because no worker can serve it."""
        with self.guard():
            for job in self._active():
                if job.state == "queued":
                    self._write(dataclasses.replace(job, state="failed", message=message))

    def files(self, job_id: str) -> JobFolder:
        """The files of a job."""
        return JobFolder(self.folder / job_id)

    def checkpoint(self, job: Job, experiment: Experiment | None = None) -> Path:
        """File from which a measurement of an experiment into the job's store is continued.

        Args:
            job: whose measurement it is.
            experiment: a point of its sweep; what was asked for otherwise.
        """
        asked = experiment or job.asked
        store = hashlib.sha256(str(job.store).encode()).hexdigest()[:8]
        pairs = getattr(asked, "pairs", EVERY_EPOCH)  # a demonstration has none, and nothing to go on from
        kind = "-timed" if pairs else ""  # who wants the times alone must not use up a training
        return self.folder / "checkpoints" / f"{asked.id}-{store}{kind}.pt"

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Hold the lock under which states change. Not to be nested.

        Raises:
            JobError: the folder cannot be written, or somebody holds the lock for too long.
        """
        lock = FileLock(self.folder / "queue.lock")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=GUARD_S, poll_interval=_GUARD_POLL_S)
        except Timeout:
            raise JobError(f"The queue in {self.folder} has been locked for {GUARD_S:g} s; try again later.") from None
        except OSError as error:
            raise JobError(f"The folder of jobs {self.folder} cannot be written: {error}.") from error
        try:
            yield
        finally:
            lock.release()

    def _ids(self) -> list[str]:
        try:
            return sorted(path.name for path in self.folder.iterdir() if _JOB_ID.fullmatch(path.name))
        except FileNotFoundError:
            return []

    def _read(self, job_id: str) -> Job | None:
        """A job as it is written down; those that ended are remembered, they never change again."""
        if job_id in self._ended:
            return self._ended[job_id]
        job = self.files(job_id).read()
        if job and not job.active:
            self._ended[job_id] = job
        return job

    def _active(self) -> list[Job]:
        jobs = (self._read(job_id) for job_id in self._ids())
        return [job for job in jobs if job and job.active]

    def _look(self, job_id: str) -> Job | None:
        job = self._read(job_id)
        if job is None or not job.lost:
            return job
        with self.guard():  # somebody else may have been quicker
            job = self._read(job_id)
            return self._bury(job) if job and job.lost else job

    def _bury_lost(self) -> None:
        """Settle every job whose process is dead; under the guard."""
        for job in self._active():
            if job.lost:
                self._bury(job)

    def _bury(self, job: Job) -> Job:
        """Settle a job whose process is dead; under the guard."""
        if job.worker:
            job.worker.kill_orphans()
        files = self.files(job.id)
        if files.asked_to_stop:
            settled = delivery.rescue(files, job, state="stopped", event="Stopped")
        else:
            settled = delivery.rescue(files, job, state="crashed", event="The measuring process was killed")
        with contextlib.suppress(OSError):  # a full disk must not hide from the looker what became of the job
            self._write(settled)
        return settled

    def _write(self, job: Job) -> Job:
        files = self.files(job.id)
        files.write(job)
        if not job.active and not job.unsaved:
            files.drop_rows()
        return job

    def _placed(self, job: Job) -> Job:
        """The job with its place among those that wait."""
        if job.state != "queued":
            return job
        ahead = sum(other.state == "queued" and other.id < job.id for other in self._active())
        return dataclasses.replace(job, place=ahead + 1)

    def _new_id(self) -> str:
        """A name that sorts after all others, even if the clock was set back."""
        newest = max((int(job_id[:20]) for job_id in self._ids()), default=0)
        return f"{max(time.time_ns(), newest + 1):020d}-{secrets.token_hex(3)}"

    def _prune(self) -> None:
        """Drop the oldest ended jobs, unless rows depend on them."""
        jobs = {job_id: self._read(job_id) for job_id in self._ids()}
        ended = [job_id for job_id, job in jobs.items() if job is None or not job.active]
        for job_id in ended[:-KEPT_JOBS]:
            job = jobs[job_id]
            if job is None or not job.unsaved:
                shutil.rmtree(self.folder / job_id, ignore_errors=True)
                self._ended.pop(job_id, None)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
