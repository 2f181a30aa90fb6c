"""The queue of jobs in a folder: who is next, who joins whom, and what becomes of a job whose process died.

People take turns: next is the oldest job of whoever had a turn longest ago (docs/decisions/0006). Every change of
state happens under one lock of the folder, so any number of pages, command lines and workers may look and ask at
once. What a person may ask for is told by `Terms`; who a person is, is the business of who submits. Nothing here
starts a process or measures.
"""

import collections
import contextlib
import dataclasses
import datetime
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from core import policy, units
from core.errors import JobError, NotAllowed
from core.experiment import EVERY_EPOCH, Experiment
from core.jobs import delivery
from core.jobs.job import Job, JobFolder
from core.jobs.ledger import Ledger, Terms
from core.jobs.process import Process
from core.jobs.seat import Seat
from core.policy import Asked
from core.results.store import Store

JOBS = Path(__file__).parents[2] / "data" / "jobs"
"""Folder of jobs unless the environment names another."""

JOBS_VARIABLE = "CROSSOVER_JOBS"
"""Environment variable that names another folder of jobs."""

QUEUE_LIMIT = Terms().queue_length
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
        ledger: who had how much of it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = Path(folder or os.environ.get(JOBS_VARIABLE) or JOBS).absolute()
        self.seat = Seat(self.folder)
        self.ledger = Ledger(self.folder / "people.json")
        self._ended: dict[str, Job] = {}

    def submit(
        self, asked: Asked, store: Store, *, fresh: bool = False, asked_by: str = "", terms: Terms | None = None
    ) -> Job:
        """Queue a measurement, or join an active one of the same question, budget and store, which costs nothing.

        Whether the store already answers an experiment is for the asker to look up first; of a sweep, points that it
        has are not measured again.

        Args:
            asked: what to measure or to show.
            store: where its rows go, or its exhibit.
            fresh: do not continue what an earlier, killed measurement left behind.
            asked_by: who asks, as in `Job`.
            terms: what who asks is held to; by default only to the length of the queue.

        Raises:
            StoreError: the store cannot be written.
            NotAllowed: it is more than who asks may ask for.
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
            limit = terms.queue_length if terms else QUEUE_LIMIT
            if sum(job.state == "queued" for job in waiting) >= limit:
                raise JobError(f"The queue holds {limit} waiting jobs, which is its limit; try again later.")
            if terms and (reason := self.refusal([asked], asked_by, terms)):
                raise NotAllowed(reason)
            self._prune()
            new, now = self._new_id(), _now()
            job = Job(id=new, asked=asked, store=same[1], fresh=fresh, created_at=now, asked_by=asked_by)
            try:
                JobFolder.create(self.folder / job.id, job)
            except OSError as error:
                raise JobError(f"The folder of jobs {self.folder} cannot be written: {error}.") from error
            return self._placed(job)

    def refusal(self, wanted: Sequence[Asked], asked_by: str, terms: Terms) -> str:
        """Why a person may not ask some questions now, all together, in one sentence; empty if they may.

        What was asked for and has not ended counts with all the time that it may take, so that asking for several
        at once, from however many tabs, is no way around a limit.
        """
        if not terms.waiting and not terms.seconds_per_day:
            return ""
        mine = [job for job in self._active() if job.asked_by == asked_by]
        if terms.waiting and len(mine) + len(wanted) > terms.waiting:
            have = f"You have {len(mine)} measurements waiting or running"
            more = f", this would be {len(wanted)} more," if len(wanted) > 1 else ""
            return f"{have}{more} and {terms.waiting} are allowed at once."
        if not terms.seconds_per_day:
            return ""
        used_s = self.ledger.spent_s(asked_by, _today())
        used_s += sum(policy.seconds(job.asked) for job in mine)
        wanted_s, left_s = sum(map(policy.seconds, wanted)), max(0.0, terms.seconds_per_day - used_s)
        if wanted_s <= left_s:
            return ""
        return (
            f"This run may take {units.duration(wanted_s)}, and of your {units.duration(terms.seconds_per_day)} for "
            f"today (UTC) {units.duration(left_s)} are left."
        )

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
        jobs = [job for job_id in self._ids() if (job := self._look(job_id))]
        places = self._places(jobs)
        return [dataclasses.replace(job, place=places[job.id]) if job.id in places else job for job in jobs]

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
            active = self._active()
            places = self._places(active)
            for job in active:
                if places.get(job.id) == 1:
                    with contextlib.suppress(OSError):  # a full disk costs fairness, not the measurement
                        self.ledger.take_turn(job.asked_by)
                    return self._write(dataclasses.replace(job, state="running", worker=worker, began_at=_now()))
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
        if not job.active and job.began_at and (before := self._read(job.id)) and before.active:
            self._charge(job)
        files.write(job)
        if not job.active and not job.unsaved:
            files.drop_rows()
        return job

    def _placed(self, job: Job) -> Job:
        """The job with its place among those that wait."""
        if job.state != "queued":
            return job
        return dataclasses.replace(job, place=self._places(self._active()).get(job.id, 0))

    def _places(self, jobs: Iterable[Job]) -> dict[str, int]:
        """Place of each job that waits: everybody's first before anybody's second, who had a turn last comes last."""
        waiting = [job for job in jobs if job.state == "queued"]
        if not waiting:
            return {}
        turns = self.ledger.turns({job.asked_by for job in waiting})
        asked: collections.Counter[str] = collections.Counter()
        order = []
        for job in waiting:  # in the order of submission
            order.append((asked[job.asked_by], turns[job.asked_by], job.id))
            asked[job.asked_by] += 1
        return {job_id: place for place, (_, _, job_id) in enumerate(sorted(order), start=1)}

    def _charge(self, job: Job) -> None:
        """Write down what a job cost who asked for it, at most what it had asked for; under the guard."""
        began = datetime.datetime.fromisoformat(job.began_at)
        lasted_s = (datetime.datetime.now(datetime.UTC) - began).total_seconds()
        seconds = min(max(0.0, lasted_s), policy.seconds(job.asked))  # start-up and waiting are the host's
        with contextlib.suppress(OSError):  # a full disk must not hide what became of the job
            self.ledger.charge(job.asked_by, seconds, _today())

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


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
