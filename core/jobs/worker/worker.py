"""The worker: serves one queue, measures its jobs, and leaves for a successor when its code or context changed."""

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

import psutil
from filelock import BaseFileLock, Timeout

from ...errors import CrossoverError, JobError
from ...files.project import PACKAGE
from ...progress import QUIET_WAIT, WAITING, Progress
from ...question import describe
from ...question.demonstrations import Demonstration
from ...question.experiment import Contender, Experiment
from ...question.sweep import Sweep
from ...results.exhibits import Exhibit
from ...results.schema import Trial
from .. import client, process, recovery
from ..client import COMMAND, start_detached
from ..job import Job
from ..machine import Machine, Serving, UseMeter, measurement_lock
from ..process import ExecutionContext
from ..queue import Queue
from .reporter import Reporter
from .sweep import Begin, Fit, SweepEnd, SweepRun

CODE = PACKAGE


@dataclass(frozen=True)
class Code:
    """The code at the start of this process; rows name the commit that measured them.

    Attributes:
        folder: folder of the code.
        newest_ns: time of the last change of a file.
    """

    folder: Path
    newest_ns: int

    @classmethod
    def scan(cls, folder: Path = CODE) -> Self:
        """Return the present code on disk."""
        newest_ns = 0
        for path in folder.rglob("*.py"):
            with contextlib.suppress(FileNotFoundError):  # an editor's temporary file, already gone
                newest_ns = max(newest_ns, path.stat().st_mtime_ns)
        return cls(folder, newest_ns)

    @property
    def changed(self) -> bool:
        """Whether a file was changed since then."""
        return self.scan(self.folder) != self


_WAITING = """
import os, sys, time
while os.getppid() == int(sys.argv[1]): time.sleep(0.2)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def start_successor(queue: Queue) -> int:
    """Start a process that waits for the end of this one, however it ends, and then becomes the next worker.

    Returns:
        The number of its process; 0 if the system does not notify a child of its parent's end.

    Raises:
        JobError: no process can be started.
    """
    if sys.platform == "win32":
        return 0
    try:
        with queue.worker_file.log.open("ab") as log:
            words = ["-S", "-c", _WAITING, str(os.getpid()), *COMMAND[1:], "--jobs", str(queue.folder)]
            return start_detached([sys.executable, *words], ENVIRONMENT, log).pid
    except OSError as error:
        raise JobError(f"The next measuring process could not be started: {error}.") from error


IDLE_S = 15 * 60.0
"""Seconds that a worker without work stays alive: users return within minutes, and then the memory is needed."""

HOLDING_IDLE_S = 3 * 60.0
"""Seconds that a worker without work stays alive after it used an accelerator, where it occupies some hundred
megabytes.
"""

HOST = Contender().device

SETTLE_EVERY_S, SETTLE_S = 5.0, 120.0
"""Seconds between two attempts to write refused data, and seconds of these attempts at the end of a job."""

HOLD_S = 15 * 60.0
"""Seconds that a worker stays alive for results that full disks refused."""

_POLL_S = 0.1

ENVIRONMENT = dict(os.environ)
"""Environment variables at the start of this process, before libraries and scripts changed any."""

_log = logging.getLogger(__name__)

Ending = Literal["idle", "renew"]
"""Why a worker stopped taking jobs: no work, or a new process must continue."""


@dataclass(frozen=True, kw_only=True)
class MeasurementBackend:
    """The measuring half, as the worker uses it.

    Attributes:
        measure: runs a measurement; returns its rows, whatever their outcome, or raises CrossoverError.
        begin: prepares the measurement of a point of a sweep, which alternates with others.
        fit: returns whether several of these fit into memory at once.
        demonstrate: runs a demonstration; returns its exhibit, None if it was stopped, or raises CrossoverError.
        survey: describes this machine, without using any device.
        initialise: uses a device for the first time; returns the seconds.
    """

    measure: Callable[[Experiment, Reporter], list[Trial]]
    begin: Begin
    fit: Fit
    demonstrate: Callable[[Demonstration, Reporter], Exhibit | None]
    survey: Callable[[], Machine]
    initialise: Callable[[str], float]


class Worker:
    """Takes jobs of one queue until it is idle for long or a new process must continue.

    Attributes:
        queue: queue of the jobs.
        bench: functions that measure.
        machine: description of this machine; start-up costs are added when the machine is free.
        code: the code that this process runs.
        idle_s: seconds without work after which it stops.
        heir: number of the process that replaces this one after it ran a custom script; 0 before.
    """

    def __init__(self, queue: Queue, bench: MeasurementBackend, machine: Machine, *, code: Code, idle_s: float) -> None:
        self.queue, self.bench, self.machine, self.code, self.idle_s = queue, bench, machine, code, idle_s
        self.heir, self._process = 0, process.current_process()
        self._machine_lock, self._used = measurement_lock(), set[str]()
        self.queue.worker_file.report(self.machine, self._process)

    def run(self) -> Ending:
        """Take jobs until there is a reason to stop, then wait for some time if full disks refused results."""
        ending = self._take_jobs()
        deadline = time.monotonic() + HOLD_S
        while self.queue.is_disk_full and time.monotonic() < deadline:
            time.sleep(SETTLE_EVERY_S)
            self._try_to_settle()
        if self.queue.is_disk_full:
            _log.error("Results are lost: the disks of the jobs and of the store are full.")
        return ending

    def _try_to_settle(self) -> None:
        with contextlib.suppress(JobError):  # it is tried again later
            self.queue.settle()

    def _take_jobs(self) -> Ending:
        self._warm_up_if_free([HOST])
        idle_since = settled_at = time.monotonic()
        while True:
            if time.monotonic() - settled_at >= SETTLE_EVERY_S:
                self._try_to_settle()
                settled_at = time.monotonic()
            if following := self.queue.following():
                if self.code.changed or not following.suits(self.machine.surroundings):
                    return "renew"
                job = self.queue.claim(self._process, self.machine.surroundings)
                if job and not self._work(job):
                    return "renew"
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since >= self.patience_s:
                return "idle"
            else:
                time.sleep(_POLL_S)

    @property
    def patience_s(self) -> float:
        """Seconds without work after which it stops, depending on the devices that it has used."""
        return min(self.idle_s, HOLDING_IDLE_S) if self._used - {HOST} else self.idle_s

    def _work(self, job: Job) -> bool:
        """Measure one job.

        Return False if this process must not measure another one, for example after a custom script.
        """
        reporter = Reporter(self.queue, job)
        try:
            with self._hold_machine(reporter):
                measured = self._measure(reporter)
        except CrossoverError as error:
            self._fail(reporter, describe.format_page_error(error))
        except Exception as error:
            _log.exception("Job %s met an unexpected error.", job.id)
            self._fail(
                reporter,
                f"Unexpected error in the measuring process: {_describe_error(error)} ({self.queue.worker_file.log}).",
            )
            return False
        else:
            self._end(reporter, measured)
        return not (job.question.point.training or job.question.point.is_fit)

    def _measure(self, reporter: Reporter) -> list[Trial] | SweepEnd | Exhibit | None:
        if reporter.job.question.point.training:
            reporter.heir = self.heir = self.heir or start_successor(self.queue)
        match reporter.job.question:
            case Sweep() as sweep:
                return SweepRun(sweep, reporter, self.machine, begin=self.bench.begin, fit=self.bench.fit).run()
            case Demonstration() as demonstration:
                return None if reporter.should_stop() else self.bench.demonstrate(demonstration, reporter)
            case experiment:
                return [] if reporter.should_stop() else self.bench.measure(experiment, reporter)

    def _end(self, reporter: Reporter, measured: list[Trial] | SweepEnd | Exhibit | None) -> None:
        files, job = self.queue.files(reporter.job.id), reporter.job
        match measured:
            case SweepEnd():
                self._finish_sweep(reporter, measured)
            case Exhibit():
                self._settle(recovery.complete_exhibit(files, job, measured))
            case None:
                self._settle(recovery.rescue(files, job, state="stopped", event="Stopped"))
            case _:
                self._finish(reporter, measured)

    def _settle(self, job: Job) -> None:
        """Store the end of a job, and try again for some time if nothing can be written."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            try:
                return self.queue.end(job)
            except JobError:
                _log.exception("The end of job %s could not be written.", job.id)
                if time.monotonic() >= deadline:
                    raise
                time.sleep(SETTLE_EVERY_S)

    def _finish(self, reporter: Reporter, trials: Sequence[Trial]) -> None:
        """Finish a job that returned."""
        files, job = self.queue.files(reporter.job.id), reporter.job
        if not trials and not reporter.should_stop():
            return self._fail(reporter, "Nothing was measured within the time budget. Allow more time.")
        if trials and all(trial.outcome != "stopped" for trial in trials):
            return self._settle(recovery.complete(files, job, trials))
        if trials:
            reporter.keep(trials)
        return self._settle(recovery.rescue(files, job, state="stopped", event="Stopped"))

    def _finish_sweep(self, reporter: Reporter, ended: SweepEnd) -> None:
        """Finish a sweep; the store has the rows of every point with all pairs."""
        files, job = self.queue.files(reporter.job.id), reporter.job
        refusal = ended.refusal or ("" if ended.stopped else reporter.save_rest())
        job = reporter.job
        if refusal:
            return self._settle(replace(job, state="failed", message=refusal))
        if not ended.stopped:
            if not job.trial_ids:
                return self._fail(reporter, " ".join([*job.missing, ended.summary or "Nothing was measured."]))
            return self._settle(recovery.finish_job(job, ended.summary))
        if ended.rows:
            reporter.keep(ended.rows)
        return self._settle(recovery.rescue(files, job, state="stopped", event="Stopped"))

    def _fail(self, reporter: Reporter, reason: str) -> None:
        """Finish a job that raised an error. Rows measured before are saved."""
        rescued = recovery.rescue(self.queue.files(reporter.job.id), reporter.job, state="failed", event="It failed")
        saved = " Earlier measurements are saved." if rescued.trial_ids else ""
        self._settle(replace(rescued, message=reason + saved))

    @contextlib.contextmanager
    def _hold_machine(self, reporter: Reporter) -> Iterator[None]:
        """Acquire the machine's lock; a job that is to be stopped while it waits continues without the lock."""
        while not (held := self._take_machine()) and not reporter.should_stop():
            reporter.progress(Progress(phase=WAITING))
            time.sleep(_POLL_S)
        try:
            if held:
                self._warm_up([contender.device for contender in reporter.job.question.contenders])
                _wait_for_quiet(reporter)
            yield
        finally:
            self._machine_lock.release()

    def _take_machine(self) -> bool:
        path = self._machine_lock.lock_file
        try:
            self._machine_lock.acquire(timeout=0)
        except Timeout:
            return False
        except OSError as error:
            raise JobError(f"The lock of this machine, {path}, cannot be opened: {error}.") from error
        return True

    def _warm_up_if_free(self, devices: Sequence[str]) -> None:
        with contextlib.suppress(JobError):  # each job will say so
            if self._take_machine():
                try:
                    self._warm_up(devices)
                finally:
                    self._machine_lock.release()

    def _warm_up(self, devices: Sequence[str]) -> None:
        """Use devices for the first time, under the machine's lock; an accelerator only if a job needs it.

        Start-up costs are thus measured on an undisturbed machine, and the memory of an unused GPU stays free.
        """
        there = {info.device for info in self.machine.devices}
        for device in dict.fromkeys(devices):
            if device not in there - self._used:
                continue
            self._used.add(device)
            try:
                startup_s = {**self.machine.startup_s, device: self.bench.initialise(device)}
            except Exception:  # a broken driver must not keep the other devices from being measured
                _log.exception("The device %s could not be used.", device)
                continue
            self.machine = replace(self.machine, startup_s=startup_s)
            with contextlib.suppress(OSError):  # a full disk must not end the worker
                self.queue.worker_file.report(self.machine, self._process)


QUIET_LOOK_S = 0.5
"""Seconds between two readings of the use of the machine, which the system counts in hundredths of a second."""


def _wait_for_quiet(reporter: Reporter) -> None:
    """Wait until the machine is quiet, at most as long as the job allows, and add a note if it is not.

    Programs are named only for the command line and notebooks, because anybody may see a page.
    """
    job = reporter.job
    if not job.quiet_s:
        return
    meter, deadline = UseMeter(), time.monotonic() + job.quiet_s
    while not reporter.should_stop():
        time.sleep(QUIET_LOOK_S)
        use = meter.read()
        if use.is_quiet:
            return
        seen = (replace(use, programs=()) if job.asked_by else use).description
        if time.monotonic() >= deadline:
            reporter.note = (
                f"The machine was not quiet within {job.quiet_s:g} s, so the measurement starts anyway: {seen}."
            )
            return
        reporter.progress(Progress(phase=f"{QUIET_WAIT}: {seen}"))


def serve(
    queue: Queue, load: Callable[[], MeasurementBackend], *, idle_s: float = IDLE_S, code_folder: Path = CODE
) -> None:
    """Serve the queue until idle, or leave at once if another worker serves it.

    Args:
        queue: queue of the jobs.
        load: loads the measuring half; called after the lock is acquired, because importing torch takes seconds.
        idle_s: seconds without work after which to leave.
        code_folder: folder of code; a change in it requires a new process.
    """
    code, worker_file = Code.scan(code_folder), queue.worker_file
    queue.folder.mkdir(parents=True, exist_ok=True)
    lock = worker_file.lock()
    try:
        lock.acquire(timeout=0)
    except Timeout:
        _log.info("Another worker serves the queue in %s.", queue.folder)
        return
    try:
        worker = _begin_to_serve(queue, load, code, idle_s)
    except Exception as error:
        _log.exception("The measuring half could not be loaded.")
        while not _leave(queue, lock, only_if_idle=True):
            queue.fail_waiting(f"The measuring process could not start: {_describe_error(error)} ({worker_file.log}).")
        return
    while worker.run() == "idle":
        if _leave(queue, lock, only_if_idle=True):
            return
    _log.info("A fresh process goes on.")
    for child in psutil.Process().children(recursive=True):  # processes that a custom script has started
        with contextlib.suppress(psutil.Error):
            if child.pid != worker.heir:
                child.kill()
    _leave(queue, lock)
    if not worker.heir:
        client.ensure_worker(queue)


def _begin_to_serve(queue: Queue, load: Callable[[], MeasurementBackend], code: Code, idle_s: float) -> Worker:
    """Load the measuring half; record first that a worker is starting, then that it serves."""
    me, surroundings = process.current_process(), ExecutionContext.capture(whole=True)  # before torch can change them
    with queue.guard():
        last = queue.worker_file.serving
        starts = last.starts if last and not last.ready else 1
        if last and last.process == me:  # the starter of this process has set its purpose
            surroundings = last.surroundings or surroundings
        queue.worker_file.take(Serving(process=me, starts=starts, surroundings=surroundings))
    began = time.monotonic()
    bench = load()
    machine = replace(bench.survey(), surroundings=surroundings)
    machine = replace(machine, loading_s=time.monotonic() - began)
    worker = Worker(queue, bench, machine, code=code, idle_s=idle_s)
    with queue.guard():
        queue.worker_file.take(Serving(process=me, ready=True, surroundings=surroundings))
    return worker


def _leave(queue: Queue, lock: BaseFileLock, *, only_if_idle: bool = False) -> bool:
    """Release the queue's lock, so that a later job finds it free; return False if a job waits for this process."""
    with queue.guard():
        if only_if_idle and queue.waiting():
            return False
        lock.release()
        queue.worker_file.leave(process.current_process())
        return True


def _describe_error(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
