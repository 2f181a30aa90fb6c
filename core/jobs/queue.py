"""The queue of one folder: its jobs, the lock for changes, and the allowed changes of state.

`AllJobs` reads and writes the folder, `Queue` decides. The files of one job are those of `core.jobs.job`.
"""

import contextlib
import dataclasses
import datetime
import logging
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .. import units
from ..errors import DamagedFile, InvalidValue, JobError, NotAllowed, unwritable
from ..files.project import DATA
from ..question import policy
from ..question.policy import AnyQuestion
from ..results.store import Store
from . import recovery, usage
from .job import SILENCE_S, Job, JobFolder, RemoteTarget
from .machine import Moment, WorkerFile
from .process import ExecutionContext, Process
from .usage import Terms, Usage

KEPT_JOBS = 200
"""Number of ended jobs that stay readable; their rows remain in the store."""

MAX_QUIET_S = 3_600
"""Maximum seconds of a wait for a quiet machine, during which later jobs wait too."""

GUARD_S = 10.0
"""Timeout of the folder's lock in seconds; an owner of the lock needs milliseconds, or the time to clean up a killed
process.
"""

_GUARD_POLL_S = 0.01
_JOB_ID = re.compile(r"\d{20}-[0-9a-f]{6}")

_log = logging.getLogger(__name__)


class AllJobs:
    """The jobs of one folder.

    Attributes:
        folder: folder of the jobs.
        damaged: names of jobs that cannot be read; they stay unchanged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: set[str] = set()
        self._read: dict[str, tuple[tuple[int, ...], Job]] = {}
        self._memory: dict[Path, Any] = {}
        self._unwritten: dict[str, Job] = {}

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Acquire the lock for changes of state; it must not be nested.

        Raises:
            JobError: the folder cannot be written, or the lock is not free in time.
        """
        lock = FileLock(self.folder / "queue.lock")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=GUARD_S, poll_interval=_GUARD_POLL_S)
        except Timeout:
            raise JobError(f"The queue in {self.folder} has been locked for {GUARD_S:g} s. Try again later.") from None
        except OSError as error:
            raise JobError(unwritable(f"The folder of jobs {self.folder}", error)) from error
        try:
            yield
        finally:
            lock.release()

    def ids(self) -> list[str]:
        """Return the names of all jobs, in the order of submission."""
        try:
            return sorted(path.name for path in self.folder.iterdir() if _JOB_ID.fullmatch(path.name))
        except FileNotFoundError:
            return []

    def files(self, job_id: str) -> JobFolder:
        """Return the files of a job."""
        return JobFolder(self.folder / job_id, self._memory)

    def read(self, job_id: str) -> Job | None:
        """Read a job; None if it cannot be read. Files that have not changed are not read again.

        Finished jobs never change again.
        """
        if job_id in self._unwritten:
            return self._unwritten[job_id]
        if not _JOB_ID.fullmatch(job_id):
            return None
        files = self.files(job_id)
        seen, known = self._read.get(job_id, ((), None))
        if known and not known.active and not known.unsaved:
            return known
        stamp = files.stamp  # before they are read: if they change meanwhile, they are read again
        if known and stamp and stamp == seen:
            return known
        try:
            job = files.read()
        except DamagedFile as error:
            if job_id not in self.damaged and (self.folder / job_id).exists():
                self.damaged.add(job_id)
                _log.warning("Skipped the job %s: %s", job_id, error)
            return None
        self._read[job_id] = stamp, job
        return job

    def active(self) -> list[Job]:
        """Return the jobs that wait or run."""
        return [job for job in map(self.read, self.ids()) if job and job.active]

    def new_id(self) -> str:
        """Return a name that sorts after all others, even if the clock was set back."""
        newest = max((int(job_id[:20]) for job_id in self.ids()), default=0)
        return f"{max(time.time_ns(), newest + 1):020d}-{secrets.token_hex(3)}"

    def prune(self) -> None:
        """Delete the oldest ended jobs, unless rows depend on them, and temporary files of killed processes.

        Jobs that cannot be read remain.
        """
        JobFolder.sweep(self.folder)
        ended = [job for job in map(self.read, self.ids()) if job and not job.active]
        for job in ended[:-KEPT_JOBS]:
            if not job.unsaved:
                shutil.rmtree(self.folder / job.id, ignore_errors=True)
                self._read.pop(job.id, None)


JOBS = DATA / "jobs"
"""Default folder of jobs."""

JOBS_VARIABLE = "CROSSOVER_JOBS"
"""Environment variable that names another folder of jobs."""

QUEUE_LIMIT = Terms().queue_length
"""Maximum number of waiting jobs: enough for a class of 30 with three requests each."""

POSSIBLY_LOST = "Results that existed only in the memory of the measuring process are lost."
"""Message for a job whose process is gone while its folder cannot be written."""


class Queue(AllJobs):
    """The jobs of one folder.

    Attributes:
        folder: folder of the jobs; by default `CROSSOVER_JOBS`, or data/jobs of the project.
        worker_file: entry of the worker that serves this queue.
        driver_file: entry of the process that drives a cluster. It is separate, because this machine may belong to the
            cluster, and the driver would otherwise wait for itself.
        usage: usage per person.
    """

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(Path(folder or os.environ.get(JOBS_VARIABLE) or JOBS).absolute())
        self.worker_file = WorkerFile(self.folder)
        self.driver_file = WorkerFile(self.folder / "cluster")
        self.usage = Usage(self.folder / "people.json")

    def submit(
        self,
        question: AnyQuestion,
        store: Store,
        *,
        fresh: bool = False,
        asked_by: str = "",
        asked_from: str = "",
        terms: Terms | None = None,
        elsewhere: RemoteTarget | None = None,
        quiet_s: float = 0.0,
    ) -> Job:
        """Queue a measurement, or join an active one with the same question, budget and store, which costs nothing.

        It is measured on the processors and devices that this process may use, with its thread settings.

        The caller checks first whether the store already answers an experiment. Stored points of a sweep are not
        measured again.

        Args:
            question: question to measure or demonstration to show.
            store: store for its rows or its exhibit.
            fresh: whether to measure stored points of a sweep again.
            asked_by: the requester, as in `Job`.
            asked_from: the requester's location, as in `Job`.
            terms: limits of the requester; by default only the length of the queue.
            elsewhere: other place where a sweep is measured.
            quiet_s: maximum seconds to wait for a quiet machine; 0 for no wait.

        Raises:
            InvalidValue: the wait is negative or longer than an hour.
            StoreError: the store cannot be written.
            NotAllowed: the request exceeds the requester's limits.
            JobError: the queue is full, or its folder cannot be written.
        """
        if not 0 <= quiet_s <= MAX_QUIET_S:
            raise InvalidValue("wait-for-quiet", quiet_s, f"0 to {MAX_QUIET_S:,} seconds")
        store.check_writable()
        with self.guard():
            self._mark_lost_jobs()
            waiting = [job for job in self.active() if not self.files(job.id).is_stop_requested]
            is_script = bool(question.point.training)
            here = ExecutionContext.capture(whole=is_script)
            same = (question, store.folder.absolute(), here, elsewhere)
            for job in waiting:
                if (job.question, job.store, job.surroundings or here, job.elsewhere) == same:
                    return self._with_place(job)
            limit = terms.queue_length if terms else QUEUE_LIMIT
            if sum(job.state == "queued" for job in waiting) >= limit:
                raise JobError(f"The queue holds {limit} waiting jobs, which is the limit. Try again later.")
            if terms and (reason := self.refusal([question], asked_by, terms)):
                raise NotAllowed(reason)
            self.prune()
            job = Job(
                id=self.new_id(),
                question=question,
                store=same[1],
                fresh=fresh,
                created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
                asked_by=asked_by,
                asked_from=asked_from,
                surroundings=here,
                elsewhere=elsewhere,
                working_folder=str(Path.cwd()) if is_script and not asked_by else "",
                quiet_s=quiet_s,
            )
            try:
                JobFolder.create(self.folder / job.id, job)
            except OSError as error:
                raise JobError(unwritable(f"The folder of jobs {self.folder}", error)) from error
            return self._with_place(job)

    def refusal(self, questions: Sequence[AnyQuestion], asked_by: str, terms: Terms) -> str:
        """Return why a person may not submit these questions now, in one sentence; empty if they may.

        Unfinished requests count with their maximum time, so several requests at once, from any number of tabs, cannot
        exceed a limit.
        """
        if not terms.waiting and not terms.seconds_per_day:
            return ""
        mine = [policy.question_seconds(job.question) for job in self.active() if job.asked_by == asked_by]
        used_s = self.usage.seconds_on_day(asked_by, _today())
        return terms.refusal([policy.question_seconds(asked) for asked in questions], mine, used_s=used_s)

    def job(self, job_id: str) -> Job:
        """Return the present state of one job; a job whose process died is marked as crashed, with its saved rows.

        Raises:
            JobError: there is no such job, or it cannot be read.
        """
        job = self._look(job_id)
        if job is None:
            if job_id in self.damaged:
                raise JobError(f"The files of the job {job_id} are damaged; they are left as they are.")
            raise JobError(f"There is no job {job_id[:40]!r}; the {KEPT_JOBS} jobs that ended last can be looked up.")
        return self._with_place(job)

    def jobs(self) -> list[Job]:
        """Return the present state of all jobs, in the order of submission."""
        jobs = [job for job_id in self.ids() if (job := self._look(job_id))]
        places = self._places(jobs)
        return [dataclasses.replace(job, place=places[job.id]) if job.id in places else job for job in jobs]

    def waiting(self, *, elsewhere: bool = False) -> bool:
        """Return whether a job is waiting, among those measured here or among the others."""
        return any(job.state == "queued" and bool(job.elsewhere) == elsewhere for job in self.active())

    def following(self, *, elsewhere: bool = False) -> Job | None:
        """Return the next job, among those measured here or among the others; None if none is waiting."""
        active = [job for job in self.active() if bool(job.elsewhere) == elsewhere]
        places = self._places(active)
        return next((job for job in active if places.get(job.id) == 1), None)

    def request_stop(self, job_id: str) -> Job:
        """Remove a waiting job from the queue, or request the worker to end a running one.

        Raises:
            JobError: there is no such job.
        """
        self.job(job_id)
        with self.guard():
            job = self.read(job_id)
            if job and job.state == "queued":
                return self._write(dataclasses.replace(job, state="stopped", message="Stopped before it began."))
            if job and job.active:
                self.files(job_id).request_stop()
        return self.job(job_id)

    def kill(self, job_id: str) -> Job:
        """End a running job by killing its process; saved rows remain.

        Raises:
            JobError: there is no such job, or its process belongs to another user.
        """
        with self.guard():  # so that the worker cannot have gone on to another job
            job = self.read(job_id)
            if job and job.state == "running" and job.worker:
                self.files(job_id).request_stop()
                try:
                    job.worker.kill(self.worker_file.serves, self.worker_file.log)
                except PermissionError:
                    raise JobError(
                        f"Job {job_id} belongs to another user's process. Only that user can stop it."
                    ) from None
                return self._mark_dead(job)
        return self.job(job_id)

    def claim(
        self, worker: Process, surroundings: ExecutionContext | None = None, *, elsewhere: bool = False
    ) -> Job | None:
        """Return the next job and mark it as running in `worker`.

        The result is None if no job is waiting, or if the next one needs another execution context.
        """
        if not self.waiting(elsewhere=elsewhere):
            return None
        with self.guard():
            self._mark_lost_jobs()  # the next sweep must find in the store what the one before had measured
            job = self.following(elsewhere=elsewhere)
            if job is None or not job.suits(surroundings):
                return None
            with contextlib.suppress(OSError):  # a full disk costs fairness, not the measurement
                self.usage.take_turn(job.asked_by, job.asked_from)
            now = Moment.read_clock()
            job = dataclasses.replace(job, state="running", worker=worker, began=now, reported=now)
            return self._write_or_remember(job)

    def report(self, job: Job) -> bool:
        """Store the progress of a running job; only its worker calls this.

        Returns:
            Whether the measurement should continue; False if another process has ended the job.

        Raises:
            OSError: the folder cannot be written.
        """
        files = self.files(job.id)
        if files.settled:
            return False
        files.write(dataclasses.replace(job, reported=Moment.read_clock()))
        return True

    def end(self, job: Job) -> None:
        """Store the end of a job; only its worker calls this. A job that another process has ended stays unchanged.

        If the disk is full, the job is remembered, and `settle` tries again.

        Raises:
            JobError: the queue is locked for too long.
        """
        with self.guard():
            if not self.files(job.id).settled:
                self._write_or_remember(job)

    @property
    def is_disk_full(self) -> bool:
        """Whether only this process has results or the end of a job, because the disk refused them."""
        return bool(self._memory or self._unwritten)

    def settle(self) -> None:
        """Store what a full disk or store refused, and end jobs that no process measures.

        The worker calls this while it is idle.
        """
        with self.guard():
            self._mark_lost_jobs(idle=True)
            for job in map(self.read, self.ids()):
                if job and not job.active and (job.unsaved or job.id in self._unwritten):
                    tried = recovery.try_again(self.files(job.id), job)
                    if tried != job or job.id in self._unwritten:
                        self._write_or_remember(tried)

    def fail_waiting(self, message: str, *, elsewhere: bool = False) -> None:
        """Mark every waiting job as failed, because no worker can serve it."""
        with self.guard():
            for job in self.active():
                if job.state == "queued" and bool(job.elsewhere) == elsewhere:
                    self._write(dataclasses.replace(job, state="failed", message=message))

    def _look(self, job_id: str) -> Job | None:
        job = self.read(job_id)
        if job is None or not self._is_orphaned(job):
            return job
        with self.guard():  # somebody else may have been quicker
            job = self.read(job_id)
            if job and self._is_orphaned(job):
                return self._end_silent(job) if job.silent_too_long else self._mark_dead(job)
            return job

    def _is_orphaned(self, job: Job) -> bool:
        """Return whether a job is marked as running but has no process, as seen from outside the worker."""
        if not job.lost:
            return job.silent_too_long
        known = job.worker is not None and job.worker.born
        return bool(known) or not (self.worker_file.is_served or self.worker_file.locked)

    def _mark_lost_jobs(self, *, idle: bool = False) -> None:
        """End every job whose process is dead; the caller has the lock.

        Args:
            idle: whether the caller is the idle worker; every job marked as running is then lost too.
        """
        for job in self.active():
            if self._is_orphaned(job) or (idle and job.lost):
                self._mark_dead(job)

    def _end_silent(self, job: Job) -> Job:
        """Kill a hung worker, if it is one of Crossover's, and end its job; the caller has the lock.

        A worker whose reports are refused by a full disk does not count as hung.
        """
        if self.files(job.id).marked_s < SILENCE_S:
            return job
        event = f"The measuring process did not respond for {units.format_duration(job.silent_s)} and was ended"
        with contextlib.suppress(PermissionError):
            if job.worker:
                job.worker.kill(self.worker_file.serves, self.worker_file.log)
        return self._mark_dead(job, event=event)

    def _mark_dead(self, job: Job, *, event: str = "") -> Job:
        """End a job whose process is dead; the caller has the lock.

        Args:
            job: job as stored.
            event: reason of the interruption, if it is known better than from the files.
        """
        if job.worker:
            job.worker.kill_orphans(self.worker_file.serves, self.worker_file.log)
        files = self.files(job.id)
        if files.is_stop_requested:
            settled = recovery.rescue(files, job, state="stopped", event="Stopped")
        else:
            settled = recovery.rescue(files, job, state="crashed", event=event or job.cut_off_by)
        settled = dataclasses.replace(settled, damage="")
        try:
            return self._write(settled)
        except OSError as error:  # a full disk must not hide from the looker what became of the job
            if settled.state == "finished" and not settled.unsaved:
                return settled
            reason = unwritable(f"The folder of jobs {self.folder}", error)
            return dataclasses.replace(settled, message=f"{settled.message} {reason} {POSSIBLY_LOST}".strip())

    def _write_or_remember(self, job: Job) -> Job:
        """Store a job; if the disk is full, remember it in this process, which is its worker."""
        try:
            self._write(job)
        except OSError as error:
            _log.warning("The state of the job %s could not be written: %s", job.id, error)
            self._unwritten[job.id] = job
            self.files(job.id).mark_alive()
        else:
            self._unwritten.pop(job.id, None)
        return job

    def _write(self, job: Job) -> Job:
        files = self.files(job.id)
        if not job.active and job.began and (before := self.read(job.id)) and before.active:
            self._charge(job, job.began)
        files.write(job)
        if job.state != "queued":
            files.drop_environment()
        if not job.active and not job.unsaved:
            files.drop_rows()
        return job

    def _with_place(self, job: Job) -> Job:
        """Return the job with its place among the waiting jobs."""
        if job.state != "queued":
            return job
        return dataclasses.replace(job, place=self._places(self.active()).get(job.id, 0))

    def _places(self, jobs: Iterable[Job]) -> dict[str, int]:
        waiting = [job for job in jobs if job.state == "queued"]
        here, there = ([job for job in waiting if bool(job.elsewhere) == other] for other in (False, True))
        return usage.places(here, self.usage) | usage.places(there, self.usage)

    def _charge(self, job: Job, began: Moment) -> None:
        """Charge the requester for a job's seconds, at most the requested time; the caller has the lock."""
        lasted_s = began.ago_s or 0.0  # before the machine was started anew, nobody knows how long
        seconds = min(lasted_s, policy.question_seconds(job.question))  # start-up and waiting are the host's
        with contextlib.suppress(OSError):  # a full disk must not hide what became of the job
            self.usage.charge(job.asked_by, seconds, _today())


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
