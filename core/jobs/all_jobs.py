"""The folder of jobs: which there are, as they are written down, and the lock under which they change.

Which state a job may enter is decided in `core.jobs.queue`; what one job's folder holds, in `core.jobs.job_folder`.
"""

import contextlib
import logging
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from core.errors import DamagedFile, JobError, unwritable
from core.jobs.job import Job
from core.jobs.job_folder import JobFolder

KEPT_JOBS = 200
"""Ended jobs that stay readable; their rows are in the store for good."""

GUARD_S = 10.0
"""How long the folder's lock is waited for; it is held for milliseconds, or while one killed process is buried."""

_GUARD_POLL_S = 0.01
_JOB_ID = re.compile(r"\d{20}-[0-9a-f]{6}")

_log = logging.getLogger(__name__)


class AllJobs:
    """The jobs of one folder.

    Attributes:
        folder: where they are.
        damaged: names of those that cannot be read; they are left as they are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: set[str] = set()
        self._ended: dict[str, Job] = {}
        self._memory: dict[Path, Any] = {}
        self._unwritten: dict[str, Job] = {}

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
            raise JobError(unwritable(f"The folder of jobs {self.folder}", error)) from error
        try:
            yield
        finally:
            lock.release()

    def ids(self) -> list[str]:
        """Names of all jobs, in the order of submission."""
        try:
            return sorted(path.name for path in self.folder.iterdir() if _JOB_ID.fullmatch(path.name))
        except FileNotFoundError:
            return []

    def files(self, job_id: str) -> JobFolder:
        """The files of a job."""
        return JobFolder(self.folder / job_id, self._memory)

    def read(self, job_id: str) -> Job | None:
        """A job as it is written down; None if it cannot be read. Those that ended well never change again."""
        if job_id in self._unwritten:
            return self._unwritten[job_id]
        if job_id in self._ended or not _JOB_ID.fullmatch(job_id):
            return self._ended.get(job_id)
        try:
            job = self.files(job_id).read()
        except DamagedFile as error:
            if job_id not in self.damaged and (self.folder / job_id).exists():
                self.damaged.add(job_id)
                _log.warning("The job %s is passed over: %s", job_id, error)
            return None
        if not job.active and not job.unsaved:
            self._ended[job_id] = job
        return job

    def active(self) -> list[Job]:
        """The jobs that wait or run."""
        return [job for job in map(self.read, self.ids()) if job and job.active]

    def new_id(self) -> str:
        """A name that sorts after all others, even if the clock was set back."""
        newest = max((int(job_id[:20]) for job_id in self.ids()), default=0)
        return f"{max(time.time_ns(), newest + 1):020d}-{secrets.token_hex(3)}"

    def prune(self) -> None:
        """Drop the oldest ended jobs, unless rows depend on them, and what is left of writers that were killed.

        Those that cannot be read stay.
        """
        JobFolder.sweep(self.folder)
        ended = [job for job in map(self.read, self.ids()) if job and not job.active]
        for job in ended[:-KEPT_JOBS]:
            if not job.unsaved:
                shutil.rmtree(self.folder / job.id, ignore_errors=True)
                self._ended.pop(job.id, None)
