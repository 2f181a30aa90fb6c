"""The client side of the queue: starts a worker, follows and stops jobs, and reads their rows.

Pages and the command line both use it. The worker is a separate process that outlives its starter. This module imports
nothing of it; the two communicate only through the files of the queue.
"""

import contextlib
import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import psutil

from ..errors import InvalidValue, JobError
from ..files.project import START_FOLDER, locate_module
from ..question.experiment import Experiment
from ..question.sweep import Sweep, size_on_axis
from ..results import exhibits
from ..results.exhibits import Exhibit
from ..results.schema import Trial
from ..results.store import Store
from . import process
from .job import Job
from .machine import Machine, Serving, WorkerFile
from .process import ExecutionContext
from .queue import Queue

COMMAND = (sys.executable, "-P", str(Path(__file__).parent / "worker" / "__main__.py"))
"""Command that starts a worker: by its path, without a folder of Crossover to import from; the jobs folder follows."""

WAITING_POLICY = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "3000", "KMP_BLOCKTIME": "1"}
"""Environment that lets idle OpenMP threads sleep soon (docs/decisions/0007).

Threads spin for a fraction of a millisecond; in Intel's and LLVM's runtimes for one, which is their smallest unit.
"""

STARTS = 3
"""Number of workers that may die in a row before they are ready; then waiting jobs fail."""

GRACE_S = 1.5
"""Seconds that a stop waits for the end of the block; with the kill after it, a stop takes less than 2 s."""

DRIVER = (sys.executable, "-m", locate_module(__package__, "cluster"))
"""Command that starts the process that drives a cluster."""

MACHINE_TIMEOUT_S = 180
"""Maximum seconds until a worker reports its machine: a cold start of PyTorch from a slow disk takes a minute."""

LOG_BYTES = 1_000_000
"""Size in bytes at which the worker's log is rotated when the next worker starts; one older log remains."""

if sys.platform == "win32":
    _DETACHED = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
else:
    _DETACHED = 0  # there, start_new_session is what lets a child outlive its starter and the starter's terminal

_POLL_S = 0.05
_FOLLOW_S = 0.2

_installed_modules: set[str] = set()
"""Modules that were found to be installed."""


def has_torch() -> bool:
    """Return whether PyTorch is installed here; found without importing it, and cached once found."""
    return "torch" in _installed_modules or _find("torch")


def _find(module: str) -> bool:
    try:
        found = importlib.util.find_spec(module) is not None
    except ImportError:
        return False
    _installed_modules.update([module] if found else ())
    return found


def ensure_worker(queue: Queue, *, same_context: bool = False) -> None:
    """Start a worker unless one serves the queue; waiting jobs fail if workers keep dying before they are ready.

    Args:
        queue: queue to serve.
        same_context: whether to end an idle worker that sees other devices or processors than
            this process, or has other thread settings. The worker itself ensures what each job needs.

    Raises:
        JobError: the folder of jobs cannot be written, or no process can be started.
    """
    elsewhere = same_context and _is_idle_with_other_context(queue)
    if not elsewhere and queue.worker_file.is_served:
        return
    if elsewhere:
        with queue.guard(), contextlib.suppress(PermissionError):  # it is somebody else's
            if _is_idle_with_other_context(queue):
                queue.worker_file.dismiss()
    _ensure(queue, queue.worker_file, COMMAND, "measuring process")


def ensure_driver(queue: Queue) -> None:
    """Start the driver of a cluster unless one is running; raises as `ensure_worker`."""
    if not queue.driver_file.is_served:
        _ensure(queue, queue.driver_file, DRIVER, "process that drives the cluster")


def _ensure(queue: Queue, served: WorkerFile, command: Sequence[str], what: str) -> None:
    """Start a process unless another already serves; waiting jobs fail if it keeps dying before it is ready."""
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
    queue.fail_waiting(f"The {what} crashed {STARTS} times while starting. See {served.log}.", elsewhere=elsewhere)


def _is_idle_with_other_context(queue: Queue) -> bool:
    """Return whether the worker that serves is idle, and has another context than this process."""
    return not has_same_context(queue) and not queue.active()


def watch(queue: Queue, job_id: str) -> Job:
    """Return the present state of a job, and ensure that waiting jobs are served; pages poll this function.

    Raises:
        JobError: there is no such job, or no worker can be started.
    """
    job = queue.job(job_id)
    if job.elsewhere:
        if job.state == "queued":
            ensure_driver(queue)
    elif job.state == "queued" or (job.state != "running" and queue.waiting()):  # who measures this one serves all
        ensure_worker(queue)
    return job


def follow_job(queue: Queue, job_id: str, on_change: Callable[[Job], None]) -> Job:
    """Watch a job until it ends, and call `on_change` after every change.

    Returns:
        The ended job.

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


def run(
    question: Experiment | Sweep,
    store: Store,
    queue: Queue | None = None,
    follow: Callable[[Queue, Job], Job] | None = None,
    *,
    quiet_s: float = 0.0,
) -> list[Trial]:
    """Measure one question in the measuring process, and wait for its rows; stored answers are not measured again.

    Args:
        question: trainings and their contenders.
        store: searched for rows first, and written to.
        queue: the queue of the job; this machine's unless given.
        follow: waits for the end of a job, and may show its progress; by default nothing is shown.
        quiet_s: seconds to wait for a quiet machine; the measurement then starts in any case.

    Returns:
        The rows, in the order of `load_job_rows`.

    Raises:
        InvalidValue: `question` or `store` has another type.
        JobError: nothing was measured, or only a part. The message gives the reason; the store has the measured rows.
        StoreError: the store cannot be read.
    """
    if not isinstance(question, Experiment | Sweep):
        raise InvalidValue("asked", question, "an Experiment or a Sweep")
    if not isinstance(store, Store):
        raise InvalidValue("store", store, "a Store, as Store('my-results') makes one")
    queue = queue or Queue()
    job = queue.submit(question, store, quiet_s=quiet_s)
    job = follow(queue, job) if follow else follow_job(queue, job.id, on_change=lambda _: None)
    if not job.complete:
        raise JobError(job.message or f"The measurement has {job.state}.")
    return load_job_rows(queue, job)


def stop(queue: Queue, job_id: str) -> Job:
    """End a job within two seconds: at the end of its block, or by killing its process.

    The driver of a cluster ends its job after it has stopped the machines.

    Returns:
        The ended job; all rows measured by then are in the store.

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


def load_job_rows(queue: Queue, job: Job) -> list[Trial]:
    """Return the rows of a job, stored or not, by point and then by contender.

    For a sweep they include rows found in the store. During a job they include unfinished rows in their present state.

    Raises:
        StoreError: the store cannot be read.
    """
    kept = queue.files(job.id).read_unsaved() if job.unsaved else []
    mine = {trial.trial_id: trial for trial in kept}
    if set(job.trial_ids) - mine.keys():  # a store that refused rows may not be readable either
        mine = {trial.trial_id: trial for trial in Store(job.store).trials(run_id=job.run_ids)} | mine
    found = [mine[trial_id] for trial_id in job.trial_ids if trial_id in mine]
    sweep = job.sweep
    if job.active:
        found += [trial for trial in queue.files(job.id).read_partial() if trial.trial_id not in job.trial_ids]
    return sorted(found, key=lambda trial: _place(sweep, trial)) if sweep else found


def exhibit(queue: Queue, job: Job) -> Exhibit | None:
    """Return the exhibit of a lesson's job, whether the store accepted it or not.

    Returns:
        The exhibit; None before the job ends, and for all other jobs.

    Raises:
        StoreError: the store cannot be read, and the job's folder has no copy.
    """
    if not job.exhibit_id:
        return None
    kept = queue.files(job.id).read_exhibit()
    if kept:
        return kept
    found, _ = exhibits.read_exhibits(job.store)
    return next((entry for entry in found if entry.id == job.exhibit_id), None)


def has_same_context(queue: Queue) -> bool:
    """Return whether the worker has the execution context of this process.

    The result is also True if the worker does not report its context, or if no worker is ready.
    """
    found = load_machine(queue)
    return not (found and found.live and found.surroundings) or found.surroundings.suits(ExecutionContext.capture())


def is_renewed_for(queue: Queue, job: Job) -> bool:
    """Return whether the present worker ends because a job needs other environment variables."""
    found = load_machine(queue)
    return bool(found and found.live and job.state == "queued" and not job.suits(found.surroundings))


def await_machine(queue: Queue) -> Machine:
    """Return the machine as reported by the measuring process; start that process if necessary.

    Raises:
        JobError: the process does not start.
    """
    deadline = time.monotonic() + MACHINE_TIMEOUT_S
    while time.monotonic() < deadline:
        found = load_machine(queue)
        if found and found.live and (has_same_context(queue) or queue.active()):
            return found
        ensure_worker(queue, same_context=True)
        time.sleep(_POLL_S)
    raise JobError(f"The measuring process did not start within {MACHINE_TIMEOUT_S} s. See {queue.worker_file.log}.")


def load_machine(queue: Queue) -> Machine | None:
    """Return the machine that a worker reported, `live` if that worker still runs; None before the first report."""
    return queue.worker_file.machine


def _place(sweep: Sweep, trial: Trial) -> tuple[float, ...]:
    """Return a row's sort key: its point in the sweep, then its contender."""
    contenders = [str(contender) for contender in sweep.contenders]
    return (*(size_on_axis(trial, axis.name) for axis in sweep.axes), contenders.index(trial.contender))


def _start(queue: Queue, served: WorkerFile, command: Sequence[str], starts: int) -> Serving:
    """Start a process in the context that the next job needs, or in the context of this process. Raises OSError."""
    following = queue.following(elsewhere=served is queue.driver_file)
    surroundings = (following and following.surroundings) or ExecutionContext.capture()
    variables = (following and queue.files(following.id).read_environment()) or dict(os.environ)
    if not surroundings.environment:
        surroundings = replace(surroundings, environment=process.hash_environment(variables))
    surroundings = replace(surroundings, interpreter=surroundings.interpreter or command[0])
    _put_log_aside(served.log)
    with served.log.open("ab") as log, surroundings.lend_processors():
        child = start_detached(
            [surroundings.interpreter, *command[1:], "--jobs", str(queue.folder)],
            surroundings.apply_to_environment(variables),
            log,
        )
    try:
        started = process.process_from_pid(child.pid)
    except psutil.NoSuchProcess:
        started = process.Process(pid=child.pid)  # which counts as dead
    threading.Thread(target=child.wait, name="crossover-worker-reaper", daemon=True).start()
    return Serving(process=started, starts=starts, surroundings=surroundings)


def start_detached(command: Sequence[str], environment: Mapping[str, str], log: BinaryIO) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one, and whose idle threads sleep soon.

    Raises:
        OSError: the process cannot be started.
    """
    return subprocess.Popen(
        command,
        cwd=START_FOLDER,
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
