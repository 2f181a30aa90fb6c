"""The asker's side: sees to it that a worker serves the queue, follows jobs, stops them, reads their rows.

For pages and the command line alike. Starts the worker as a process of its own that outlives its starter, and
imports nothing of it; the two meet only in the files of the queue.
"""

import contextlib
import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import psutil

from core.errors import InvalidValue, JobError
from core.files.project import PROJECT
from core.jobs import process
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.process import Surroundings
from core.jobs.queue import Queue
from core.jobs.worker_file import Serving, WorkerFile
from core.question.experiment import Experiment
from core.question.sweep import Sweep, size_of
from core.results.exhibits import exhibit_files
from core.results.exhibits.exhibit import Exhibit
from core.results.schema import Trial
from core.results.store import Store

COMMAND = (sys.executable, "-m", "core.jobs.worker")
"""How a worker is started; the folder of jobs is appended."""

WAITING_POLICY = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "3000", "KMP_BLOCKTIME": "0"}
"""Idle OpenMP threads look for work for some tens of microseconds and then sleep (docs/decisions/0007)."""

STARTS = 3
"""Workers that may die in a row before they are ready; after that it is not bad luck."""

GRACE_S = 1.5
"""How long a stop waits for the end of the block; with the kill after it, a stop takes less than 2 s."""

DRIVER = (sys.executable, "-m", "core.jobs.cluster")
"""The same of the process that drives a cluster."""

MACHINE_TIMEOUT_S = 180
"""A cold start of PyTorch from a slow disk takes a minute; after three something is wrong."""

LOG_BYTES = 1_000_000
"""Size at which the worker's log is put aside when the next worker starts; one older log is kept."""

if sys.platform == "win32":
    _DETACHED = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
else:
    _DETACHED = 0  # there, start_new_session is what lets a child outlive its starter and the starter's terminal

_POLL_S = 0.05
_FOLLOW_S = 0.2

_found: set[str] = set()
"""Modules that are installed, as far as was looked for."""


def has_torch() -> bool:
    """Whether PyTorch is installed here; it is looked for, not imported, and once found is there for good."""
    return "torch" in _found or _find("torch")


def _find(module: str) -> bool:
    try:
        found = importlib.util.find_spec(module) is not None
    except ImportError:
        return False
    _found.update([module] if found else ())
    return found


def ensure_worker(queue: Queue, *, ours: bool = False) -> None:
    """Start a worker unless one serves the queue; waiting jobs fail if workers keep dying before they are ready.

    Args:
        queue: to be served.
        ours: whether an idle worker is ended that sees other devices or processors than this process, or has other
            settings of threads. What a job needs is seen to by the worker itself.

    Raises:
        JobError: the folder of jobs cannot be written, or no process can be started.
    """
    elsewhere = ours and _idle_elsewhere(queue)
    if not elsewhere and queue.worker_file.taken:
        return
    if elsewhere:
        with queue.guard(), contextlib.suppress(PermissionError):  # it is somebody else's
            if _idle_elsewhere(queue):
                queue.worker_file.dismiss()
    _ensure(queue, queue.worker_file, COMMAND, "measuring process")


def ensure_driver(queue: Queue) -> None:
    """Start who drives a cluster unless there is one, as `ensure_worker` does a worker; raises as it does."""
    if not queue.driver_file.taken:
        _ensure(queue, queue.driver_file, DRIVER, "process that drives the cluster")


def _ensure(queue: Queue, served: WorkerFile, command: Sequence[str], what: str) -> None:
    """Start a process unless one has taken its place; waiting jobs fail if it keeps dying before it is ready."""
    elsewhere = served is queue.driver_file
    with queue.guard():
        served.folder.mkdir(exist_ok=True)
        last = served.serving
        if (last and last.process.alive) or served.locked:  # somebody was quicker
            return
        starts = last.starts + 1 if last and not last.ready else 1
        if last is None or starts <= STARTS:
            try:
                served.take(_start(queue, served, command, starts))
            except OSError as error:
                raise JobError(f"The {what} could not be started: {error}.") from error
            return
        served.leave(last.process)
    queue.fail_waiting(f"The {what} died {STARTS} times while it started; {served.log} says more.", elsewhere=elsewhere)


def _idle_elsewhere(queue: Queue) -> bool:
    """Whether the worker that serves has nothing to do, and other surroundings than this process."""
    return not surrounds_us(queue) and not queue.active()


def watch(queue: Queue, job_id: str) -> Job:
    """One job as it is now, after seeing to it that waiting jobs are served; what a page polls.

    Raises:
        JobError: there is no such job, or no worker can be started.
    """
    job = queue.job(job_id)
    if job.elsewhere:
        if job.state == "queued":
            ensure_driver(queue)
    elif job.state != "running" and queue.waiting():  # whoever measures this one also serves the others
        ensure_worker(queue)
    return job


def follow(queue: Queue, job_id: str, on_change: Callable[[Job], None]) -> Job:
    """Watch a job until it ends, and call `on_change` with it whenever it looks different.

    Returns:
        The job, ended.

    Raises:
        JobError: there is no such job, or no worker can be started.
    """
    seen = None
    while True:
        job = watch(queue, job_id)
        if job != seen:
            on_change(job)
        if not job.active:
            return job
        seen = job
        time.sleep(_FOLLOW_S)


def run(asked: Experiment | Sweep, store: Store, queue: Queue | None = None) -> list[Trial]:
    """Measure one question in the measuring process, and wait for its rows; what the store knows is not measured again.

    Args:
        asked: trainings and who contends.
        store: where rows are looked for first, and kept.
        queue: what the job waits in; this machine's unless given.

    Returns:
        The rows, in the order of `rows`.

    Raises:
        InvalidValue: `asked` or `store` is something else.
        JobError: nothing was measured, or only a part; the sentence says why, and what was measured is in the store.
        StoreError: the store cannot be read.
    """
    if not isinstance(asked, Experiment | Sweep):
        raise InvalidValue("asked", asked, "an Experiment or a Sweep")
    if not isinstance(store, Store):
        raise InvalidValue("store", store, "a Store, as Store('my-results') makes one")
    queue = queue or Queue()
    job = follow(queue, queue.submit(asked, store).id, on_change=lambda _: None)
    if not job.complete:
        raise JobError(job.message or f"The measurement has {job.state}.")
    return rows(queue, job)


def stop(queue: Queue, job_id: str) -> Job:
    """End a job within two seconds: at the end of its block if that comes soon, by killing its process if not.

    One that a cluster measures ends once its machines have been told, which its driver does: it is left to that.

    Returns:
        The job, ended; what was measured by then is in the store.

    Raises:
        JobError: there is no such job, or its process belongs to another user.
    """
    deadline = time.monotonic() + GRACE_S
    job = queue.request_stop(job_id)
    while job.active and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        job = queue.job(job_id)
    if job.active and not job.elsewhere:
        job = queue.kill(job_id)
    if queue.waiting():
        ensure_worker(queue)
    return job


def rows(queue: Queue, job: Job) -> list[Trial]:
    """The rows of a job, whether the store took them or not: in the order of points, and of contenders at each.

    Those of a sweep are also the ones that it found in the store. While a job runs they become more, and those that
    lack pairs are among them as they are by now.

    Raises:
        StoreError: the store cannot be read.
    """
    kept = queue.files(job.id).unsaved() if job.unsaved else []
    mine = {trial.trial_id: trial for trial in kept}
    if set(job.trial_ids) - mine.keys():  # a store that refused rows may not be readable either
        mine = {trial.trial_id: trial for trial in Store(job.store).trials(run_id=job.run_ids)} | mine
    found = [mine[trial_id] for trial_id in job.trial_ids if trial_id in mine]
    sweep = job.sweep
    if job.active:
        found += [trial for trial in queue.files(job.id).partial() if trial.trial_id not in job.trial_ids]
    return sorted(found, key=lambda trial: _place(sweep, trial)) if sweep else found


def exhibit(queue: Queue, job: Job) -> Exhibit | None:
    """What a lesson's job showed, whether the store took it or not; None before its end, and for all other jobs.

    Raises:
        StoreError: the store cannot be read, and the job itself has not kept it.
    """
    if not job.exhibit_id:
        return None
    kept = queue.files(job.id).exhibit()
    if kept:
        return kept
    found, _ = exhibit_files.read(job.store)
    return next((entry for entry in found if entry.id == job.exhibit_id), None)


def surrounds_us(queue: Queue) -> bool:
    """Whether the worker that serves has the surroundings of this process; also if it does not say or none is ready."""
    found = machine(queue)
    return not (found and found.live and found.surroundings) or found.surroundings == Surroundings.now()


def await_machine(queue: Queue) -> Machine:
    """What the measuring process sees, which is started if need be.

    Raises:
        JobError: it does not start.
    """
    deadline = time.monotonic() + MACHINE_TIMEOUT_S
    while time.monotonic() < deadline:
        found = machine(queue)
        if found and found.live and (surrounds_us(queue) or queue.active()):
            return found
        ensure_worker(queue, ours=True)
        time.sleep(_POLL_S)
    raise JobError(
        f"The measuring process did not start within {MACHINE_TIMEOUT_S} s; {queue.worker_file.log} says more."
    )


def machine(queue: Queue) -> Machine | None:
    """What a worker found on this machine, `live` if that worker still runs; None before the first one reported."""
    return queue.worker_file.machine


def _place(sweep: Sweep, trial: Trial) -> tuple[float, ...]:
    """What sorts a sweep's rows by its points, and at each point by its contenders."""
    contenders = [str(contender) for contender in sweep.contenders]
    return (*(size_of(trial, axis.name) for axis in sweep.axes), contenders.index(trial.contender))


def _start(queue: Queue, served: WorkerFile, command: Sequence[str], starts: int) -> Serving:
    """Start a process with the surroundings that the next job needs; with ours if none waits. Raises OSError."""
    following = queue.following(elsewhere=served is queue.driver_file)
    surroundings = (following and following.surroundings) or Surroundings.now()
    _put_log_aside(served.log)
    with served.log.open("ab") as log, surroundings.lend_processors():
        child = detached([*command, "--jobs", str(queue.folder)], surroundings.within(os.environ), log)
    try:
        started = process.of(child.pid)
    except psutil.NoSuchProcess:
        started = process.Process(pid=child.pid)  # which counts as dead
    threading.Thread(target=child.wait, name="crossover-worker-reaper", daemon=True).start()
    return Serving(process=started, starts=starts, surroundings=surroundings)


def detached(command: Sequence[str], environment: Mapping[str, str], log: BinaryIO) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one, and whose idle threads sleep soon.

    Raises:
        OSError: none can be started.
    """
    return subprocess.Popen(
        command,
        cwd=PROJECT,
        env={**environment, **WAITING_POLICY},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        creationflags=_DETACHED,
    )


def _put_log_aside(log: Path) -> None:
    with contextlib.suppress(OSError):  # there is none yet, or on Windows a dying worker still has it open
        if log.stat().st_size > LOG_BYTES:
            log.replace(log.with_name(log.name + ".1"))
