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

from ..errors import InvalidValue, JobError
from ..files.project import PROJECT
from ..question.experiment import Experiment
from ..question.sweep import Sweep, size_on_axis
from ..results import exhibits
from ..results.exhibits import Exhibit
from ..results.schema import Trial
from ..results.store import Store
from . import process
from .job import Job
from .machine import Machine
from .process import ExecutionContext
from .queue import Queue
from .worker_file import Serving, WorkerFile

COMMAND = (sys.executable, "-m", f"{__package__}.worker")
"""How a worker is started; the folder of jobs is appended."""

WAITING_POLICY = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "3000", "KMP_BLOCKTIME": "0"}
"""Idle OpenMP threads look for work for some tens of microseconds and then sleep (docs/decisions/0007)."""

STARTS = 3
"""Workers that may die in a row before they are ready; after that it is not bad luck."""

GRACE_S = 1.5
"""How long a stop waits for the end of the block; with the kill after it, a stop takes less than 2 s."""

ASKER = (sys.executable, "-m", f"{__package__}.shared.asker")
"""The same of the process that has measured elsewhere what other machines shall measure."""

LOG_BYTES = 1_000_000
"""Size at which the worker's log is put aside when the next worker starts; one older log is kept."""

if sys.platform == "win32":
    _DETACHED = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
else:
    _DETACHED = 0  # there, start_new_session is what lets a child outlive its starter and the starter's terminal

_POLL_S = 0.05
_FOLLOW_S = 0.2

_installed_modules: set[str] = set()
"""Modules that are installed, as far as was looked for."""


def has_torch() -> bool:
    """Whether PyTorch is installed here; it is looked for, not imported, and once found is there for good."""
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
        queue: to be served.
        same_context: whether an idle worker is ended that sees other devices or processors than this process, or
            has other settings of threads. What a job needs is seen to by the worker itself.

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


def ensure_asker(queue: Queue) -> None:
    """Start who asks other machines unless there is one, as `ensure_worker` does a worker; raises as it does."""
    if not queue.asker_file.is_served:
        _ensure(queue, queue.asker_file, ASKER, "process that asks other machines")


def _ensure(queue: Queue, served: WorkerFile, command: Sequence[str], what: str) -> None:
    """Start a process unless one has taken its place; waiting jobs fail if it keeps dying before it is ready."""
    elsewhere = served is queue.asker_file
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


def _is_idle_with_other_context(queue: Queue) -> bool:
    """Whether the worker that serves has nothing to do, and other surroundings than this process."""
    return not has_same_context(queue) and not queue.active()


def watch(queue: Queue, job_id: str) -> Job:
    """One job as it is now, after seeing to it that waiting jobs are served; what a page polls.

    Raises:
        JobError: there is no such job, or no worker can be started.
    """
    job = queue.job(job_id)
    if job.elsewhere:
        if job.state == "queued":
            ensure_asker(queue)
    elif job.state != "running" and queue.waiting():  # whoever measures this one also serves the others
        ensure_worker(queue)
    return job


def follow_job(queue: Queue, job_id: str, on_change: Callable[[Job], None]) -> Job:
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


def run(question: Experiment | Sweep, store: Store, queue: Queue | None = None) -> list[Trial]:
    """Measure one question in the measuring process, and wait for its rows; what the store knows is not measured again.

    Args:
        question: trainings and who contends.
        store: where rows are looked for first, and kept.
        queue: what the job waits in; this machine's unless given.

    Returns:
        The rows, in the order of `load_job_rows`.

    Raises:
        InvalidValue: `question` or `store` is something else.
        JobError: nothing was measured, or only a part; the sentence says why, and what was measured is in the store.
        StoreError: the store cannot be read.
    """
    if not isinstance(question, Experiment | Sweep):
        raise InvalidValue("asked", question, "an Experiment or a Sweep")
    if not isinstance(store, Store):
        raise InvalidValue("store", store, "a Store, as Store('my-results') makes one")
    queue = queue or Queue()
    job = follow_job(queue, queue.submit(question, store).id, on_change=lambda _: None)
    if not job.complete:
        raise JobError(job.message or f"The measurement has {job.state}.")
    return load_job_rows(queue, job)


def stop(queue: Queue, job_id: str) -> Job:
    """End a job within two seconds: at the end of its block if that comes soon, by killing its process if not.

    One that other machines measure ends once they have been told, which its process does: it is left to that.

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


def load_job_rows(queue: Queue, job: Job) -> list[Trial]:
    """The rows of a job, whether the store took them or not: in the order of points, and of contenders at each.

    Those of a sweep are also the ones that it found in the store. While a job runs they become more, and those that
    lack pairs are among them as they are by now.

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
    """What a lesson's job showed, whether the store took it or not; None before its end, and for all other jobs.

    Raises:
        StoreError: the store cannot be read, and the job itself has not kept it.
    """
    if not job.exhibit_id:
        return None
    kept = queue.files(job.id).read_exhibit()
    if kept:
        return kept
    found, _ = exhibits.read_exhibits(job.store)
    return next((entry for entry in found if entry.id == job.exhibit_id), None)


def has_same_context(queue: Queue) -> bool:
    """Whether the worker that serves has the surroundings of this process; also if it does not say or none is ready."""
    found = load_machine(queue)
    return not (found and found.live and found.surroundings) or found.surroundings == ExecutionContext.capture()


def load_machine(queue: Queue) -> Machine | None:
    """What a worker found on this machine, `live` if that worker still runs; None before the first one reported."""
    return queue.worker_file.machine


def _place(sweep: Sweep, trial: Trial) -> tuple[float, ...]:
    """What sorts a sweep's rows by its points, and at each point by its contenders."""
    contenders = [str(contender) for contender in sweep.contenders]
    return (*(size_on_axis(trial, axis.name) for axis in sweep.axes), contenders.index(trial.contender))


def _start(queue: Queue, served: WorkerFile, command: Sequence[str], starts: int) -> Serving:
    """Start a process with the surroundings that the next job needs; with ours if none waits. Raises OSError."""
    following = queue.following(elsewhere=served is queue.asker_file)
    surroundings = (following and following.surroundings) or ExecutionContext.capture()
    _put_log_aside(served.log)
    with served.log.open("ab") as log, surroundings.lend_processors():
        child = start_detached(
            [*command, "--jobs", str(queue.folder)], surroundings.apply_to_environment(os.environ), log
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
