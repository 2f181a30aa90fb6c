"""The queue of jobs in a folder: who is next, who joins whom, and what becomes of a job whose process died.

People take turns: next is the oldest job of whoever had a turn longest ago (docs/decisions/0006). Every change of
state happens under one lock of the folder, so any number of pages, command lines and workers may look and ask at
once. What a person may ask for is told by `Terms`; who a person is, is the business of who submits. Nothing here
starts a process or measures.
"""

import contextlib
import dataclasses
import datetime
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from core import units
from core.errors import JobError, NotAllowed, unwritable
from core.files import spare
from core.files.project import PROJECT
from core.jobs import saving, turns
from core.jobs.all_jobs import KEPT_JOBS, AllJobs
from core.jobs.job import Elsewhere, Job
from core.jobs.job_folder import JobFolder
from core.jobs.process import Process, Surroundings
from core.jobs.uptime import Moment
from core.jobs.usage import Terms, Usage
from core.jobs.worker_file import WorkerFile
from core.question import policy
from core.question.policy import Asked
from core.results.store import Store

JOBS = PROJECT / "data" / "jobs"
"""Folder of jobs unless the environment names another."""

JOBS_VARIABLE = "CROSSOVER_JOBS"
"""Environment variable that names another folder of jobs."""

QUEUE_LIMIT = Terms().queue_length
"""Most jobs that wait at once: a class of 30 with three requests each fits, a runaway script does not."""


class Queue(AllJobs):
    """The jobs of one folder.

    Attributes:
        folder: where they are; `CROSSOVER_JOBS`, or data/jobs of the project, unless given.
        worker_file: the place of the worker that serves this queue.
        driver_file: the place of the process that drives a cluster; beside the other, as this machine may be one of the
            cluster, and would wait for itself.
        usage: who had how much of it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(Path(folder or os.environ.get(JOBS_VARIABLE) or JOBS).absolute())
        self.worker_file = WorkerFile(self.folder)
        self.driver_file = WorkerFile(self.folder / "cluster")
        self.usage = Usage(self.folder / "people.json")

    def submit(
        self,
        asked: Asked,
        store: Store,
        *,
        fresh: bool = False,
        asked_by: str = "",
        asked_from: str = "",
        terms: Terms | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> Job:
        """Queue a measurement, or join an active one of the same question, budget and store, which costs nothing.

        It will be measured on the processors and devices that this process may use, with its settings of threads.

        Whether the store already answers an experiment is for the asker to look up first; of a sweep, points that it
        has are not measured again.

        Args:
            asked: what to measure or to show.
            store: where its rows go, or its exhibit.
            fresh: of a sweep, measure points that the store has as well.
            asked_by: who asks, as in `Job`.
            asked_from: where from, as in `Job`.
            terms: what who asks is held to; by default only to the length of the queue.
            elsewhere: where a sweep is measured, if not here.

        Raises:
            StoreError: the store cannot be written.
            NotAllowed: it is more than who asks may ask for.
            JobError: the queue is full, or its folder cannot be written.
        """
        store.check_writable()
        with self.guard():
            self._bury_lost()
            waiting = [job for job in self.active() if not self.files(job.id).asked_to_stop]
            same = (asked, store.folder.absolute(), Surroundings.now(), elsewhere)
            for job in waiting:
                if (job.asked, job.store, job.surroundings or same[2], job.elsewhere) == same:
                    return self._placed(job)
            limit = terms.queue_length if terms else QUEUE_LIMIT
            if sum(job.state == "queued" for job in waiting) >= limit:
                raise JobError(f"The queue holds {limit} waiting jobs, which is its limit; try again later.")
            if terms and (reason := self.refusal([asked], asked_by, terms)):
                raise NotAllowed(reason)
            self.prune()
            job = Job(
                id=self.new_id(),
                asked=asked,
                store=same[1],
                fresh=fresh,
                created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
                asked_by=asked_by,
                asked_from=asked_from,
                surroundings=same[2],
                elsewhere=elsewhere,
            )
            try:
                JobFolder.create(self.folder / job.id, job)
            except OSError as error:
                raise JobError(unwritable(f"The folder of jobs {self.folder}", error)) from error
            return self._placed(job)

    def refusal(self, wanted: Sequence[Asked], asked_by: str, terms: Terms) -> str:
        """Why a person may not ask some questions now, all together, in one sentence; empty if they may.

        What was asked for and has not ended counts with all the time that it may take, so that asking for several
        at once, from however many tabs, is no way around a limit.
        """
        if not terms.waiting and not terms.seconds_per_day:
            return ""
        mine = [policy.seconds(job.asked) for job in self.active() if job.asked_by == asked_by]
        used_s = self.usage.spent_s(asked_by, _today())
        return terms.refusal([policy.seconds(asked) for asked in wanted], mine, used_s=used_s)

    def job(self, job_id: str) -> Job:
        """One job as it is now; one whose process died is marked as crashed, with what it had saved.

        Raises:
            JobError: there is no such job, or no longer, or it cannot be read.
        """
        job = self._look(job_id)
        if job is None:
            if job_id in self.damaged:
                raise JobError(f"The files of the job {job_id} are damaged; they are left as they are.")
            raise JobError(f"There is no job {job_id[:40]!r}; the {KEPT_JOBS} jobs that ended last can be looked up.")
        return self._placed(job)

    def jobs(self) -> list[Job]:
        """All jobs as they are now, in the order of submission."""
        jobs = [job for job_id in self.ids() if (job := self._look(job_id))]
        places = self._places(jobs)
        return [dataclasses.replace(job, place=places[job.id]) if job.id in places else job for job in jobs]

    def waiting(self, *, elsewhere: bool = False) -> bool:
        """Whether a job waits for its turn, of those that are measured here or of the others."""
        return any(job.state == "queued" and bool(job.elsewhere) == elsewhere for job in self.active())

    def following(self, *, elsewhere: bool = False) -> Job | None:
        """The job whose turn is next, of those that are measured here or of the others; None if none waits."""
        active = [job for job in self.active() if bool(job.elsewhere) == elsewhere]
        places = self._places(active)
        return next((job for job in active if places.get(job.id) == 1), None)

    def request_stop(self, job_id: str) -> Job:
        """Take a waiting job out of the queue, or ask the worker to end a running one.

        Raises:
            JobError: there is no such job.
        """
        self.job(job_id)
        with self.guard():
            job = self.read(job_id)
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
            job = self.read(job_id)
            if job and job.state == "running" and job.worker:
                self.files(job_id).ask_to_stop()
                try:
                    job.worker.kill(self.worker_file.serves)
                except PermissionError:
                    raise JobError(
                        f"Job {job_id} is measured by a process of somebody else, who alone can end it."
                    ) from None
                return self._bury(job)
        return self.job(job_id)

    def claim(
        self, worker: Process, surroundings: Surroundings | None = None, *, elsewhere: bool = False
    ) -> Job | None:
        """The next job, from now on running in `worker`; None if none waits, or the next needs other surroundings."""
        if not self.waiting(elsewhere=elsewhere):
            return None
        with self.guard():
            self._bury_lost()  # the next sweep must find in the store what the one before had measured
            job = self.following(elsewhere=elsewhere)
            if job is None or not job.suits(surroundings):
                return None
            with contextlib.suppress(OSError):  # a full disk costs fairness, not the measurement
                self.usage.take_turn(job.asked_by, job.asked_from)
            now = Moment.now()
            return self._write(dataclasses.replace(job, state="running", worker=worker, began=now, reported=now))

    def report(self, job: Job) -> bool:
        """Write down how far a running job is; for its worker alone.

        Returns:
            Whether it still is to be measured; not if somebody has settled it meanwhile.

        Raises:
            OSError: neither the folder nor memory can be written.
        """
        files = self.files(job.id)
        if files.settled:
            return False
        files.write(dataclasses.replace(job, reported=Moment.now()))
        return True

    def end(self, job: Job) -> None:
        """Write down what became of a job; for its worker alone. What somebody else has settled stays as it is.

        Raises:
            OSError: neither the folder nor memory can be written.
            JobError: the queue is locked for too long.
        """
        with self.guard():
            if not self.files(job.id).settled:
                self._write(job)

    def settle(self) -> None:
        """Bring what a full disk or store refused to where it belongs, and settle what nobody measures any more.

        For the worker, while it has nothing to measure.
        """
        with self.guard():
            self._bury_lost(idle=True)
            in_memory = set(spare.names(self.folder))
            for job in map(self.read, self.ids()):
                if job and not job.active and (job.unsaved or job.id in in_memory):
                    with contextlib.suppress(OSError):  # it is tried again later
                        tried = saving.try_again(self.files(job.id), job)
                        if tried != job:
                            self._write(tried)

    def fail_waiting(self, message: str, *, elsewhere: bool = False) -> None:
        """Mark every waiting job as failed, because no worker can serve it."""
        with self.guard():
            for job in self.active():
                if job.state == "queued" and bool(job.elsewhere) == elsewhere:
                    self._write(dataclasses.replace(job, state="failed", message=message))

    def _look(self, job_id: str) -> Job | None:
        job = self.read(job_id)
        if job is None or not self._is_over(job):
            return job
        with self.guard():  # somebody else may have been quicker
            job = self.read(job_id)
            if job and self._is_over(job):
                return self._end_silent(job) if job.silent_too_long else self._bury(job)
            return job

    def _is_over(self, job: Job) -> bool:
        """Whether a job is said to run that nobody measures any more, as far as anybody but the worker can tell."""
        if not job.lost:
            return job.silent_too_long
        known = job.worker is not None and job.worker.born
        return bool(known) or not (self.worker_file.taken or self.worker_file.locked)

    def _bury_lost(self, *, idle: bool = False) -> None:
        """Settle every job whose process is dead; under the guard.

        Args:
            idle: whether the one who asks is the worker and measures nothing: then what runs nowhere is lost as well.
        """
        for job in self.active():
            if self._is_over(job) or (idle and job.lost):
                self._bury(job)

    def _end_silent(self, job: Job) -> Job:
        """End a worker that has lost its way, if it is one of ours, and settle its job; under the guard."""
        event = f"The measuring process said nothing for {units.duration(job.silent_s)} and was ended"
        with contextlib.suppress(PermissionError):
            if job.worker:
                job.worker.kill(self.worker_file.serves)
        return self._bury(job, event=event)

    def _bury(self, job: Job, *, event: str = "") -> Job:
        """Settle a job whose process is dead; under the guard.

        Args:
            job: as it is written down.
            event: what cut it off, if that is known better than by its files.
        """
        if job.worker:
            job.worker.kill_orphans(self.worker_file.serves)
        files = self.files(job.id)
        if files.asked_to_stop:
            settled = saving.rescue(files, job, state="stopped", event="Stopped")
        else:
            settled = saving.rescue(files, job, state="crashed", event=event or job.cut_off_by)
        settled = dataclasses.replace(settled, damage="")
        with contextlib.suppress(OSError):  # a full disk must not hide from the looker what became of the job
            self._write(settled)
        return settled

    def _write(self, job: Job) -> Job:
        files = self.files(job.id)
        if not job.active and job.began and (before := self.read(job.id)) and before.active:
            self._charge(job, job.began)
        files.write(job)
        if not job.active and not job.unsaved:
            files.drop_rows()
        return job

    def _placed(self, job: Job) -> Job:
        """The job with its place among those that wait."""
        if job.state != "queued":
            return job
        return dataclasses.replace(job, place=self._places(self.active()).get(job.id, 0))

    def _places(self, jobs: Iterable[Job]) -> dict[str, int]:
        waiting = [job for job in jobs if job.state == "queued"]
        here, there = ([job for job in waiting if bool(job.elsewhere) == other] for other in (False, True))
        return turns.places(here, self.usage) | turns.places(there, self.usage)

    def _charge(self, job: Job, began: Moment) -> None:
        """Write down what a job cost who asked for it, at most what it had asked for; under the guard."""
        lasted_s = began.ago_s or 0.0  # before the machine was started anew, nobody knows how long
        seconds = min(lasted_s, policy.seconds(job.asked))  # start-up and waiting are the host's
        with contextlib.suppress(OSError):  # a full disk must not hide what became of the job
            self.usage.charge(job.asked_by, seconds, _today())


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
