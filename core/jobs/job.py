"""One job: its request, its status, and the folder of files that contains both.

Jobs outlive the browser, the server and the worker. `core.jobs.queue` decides which job is next, and which process may
change a job.
"""

import contextlib
import functools
import hashlib
import json
import math
import os
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, cast

import msgspec
from msgspec import Meta

from ..errors import CrossoverError, DamagedFile
from ..files import documents
from ..files.documents import Seconds
from ..progress import Progress
from ..question.demonstrations import Demonstration
from ..question.experiment import Experiment
from ..question.policy import AnyQuestion
from ..question.sweep import Sweep
from ..results import parquet
from ..results.exhibits import Exhibit
from ..results.schema import Trial
from .cluster_machine import ClusterMachine, Spread
from .machine import Moment
from .process import ExecutionContext, Process

State = Literal["queued", "running", "finished", "failed", "stopped", "crashed"]
"""State of a job.

- queued: it waits for its turn.
- running: it is being measured, or waits until nothing else is measured on this machine.
- finished: its rows are complete.
- failed: it could not be measured; the message gives the reason.
- stopped: it was stopped by the user; rows measured by then are saved.
- crashed: the measuring process was killed; rows that it had saved by then remain.
"""

ACTIVE: tuple[State, ...] = ("queued", "running")
"""States that are not final."""

SILENCE_S = 300.0
SILENT_BUDGETS = 5.0
"""Minimum seconds, and multiple of the allowed measuring time, after which a silent worker counts as hung.

Compiling a variant takes two minutes on a busy machine, without a report.
"""

MAX_PATH = 4_096
"""Maximum characters of a path in a request: the length limit of a path on Linux."""


@dataclass(frozen=True, kw_only=True)
class RemoteTarget:
    """Target of a sweep that a Ray cluster measures instead of this machine.

    Attributes:
        on: cluster, in the form of `--on` on the command line.
        spread: how the points are spread over its machines.
    """

    on: str
    spread: Spread = "everywhere"


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """The constant part of a job: its requester, and how it is measured. Each field is a key of `request.json`.

    Attributes:
        created_at: time of submission, ISO 8601, UTC.
        fresh: whether rows of an earlier, killed job must not be used.
        asked_by: opaque name of the requester; empty for requests from the command line.
        asked_from: opaque name of the requester's location, which many may share; empty as above.
        surroundings: execution context inherited from the requester; None if not recorded, and any context then fits.
        elsewhere: other place where it is measured; the worker is then the driver of the cluster.
        working_folder: working folder of a custom script; if empty, the folder of its file.
        quiet_s: maximum seconds to wait for a quiet machine before the measurement.
    """

    created_at: str
    fresh: bool
    asked_by: str = ""
    asked_from: str = ""
    surroundings: ExecutionContext | None = None
    elsewhere: RemoteTarget | None = None
    working_folder: str = ""
    quiet_s: Seconds = 0.0


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """The changing part of a job. Each field is a key of `status.json`.

    Attributes:
        state: present state.
        progress: progress of the measurement; None before the first report.
        message: one sentence, or empty.
        run_ids: runs of its rows: one for an experiment; one per finished point for a sweep, including runs found in
            the store.
        trial_ids: its rows, run by run in the order of the contenders.
        exhibit_id: name of a lesson's exhibit; empty before its end, and for all other jobs.
        missing: requested rows that are missing or incomplete, with the reasons, in sentences.
        unsaved: whether the store refused its rows or its exhibit, so that only the job has them.
        worker: process that measures or measured it.
        began: start of the measurement; None before.
        reported: time of the last report of the measuring process.
        machines: machines of the cluster, as last reported.
    """

    state: State
    progress: Progress | None = None
    message: str = ""
    run_ids: tuple[str, ...] = ()
    trial_ids: tuple[str, ...] = ()
    exhibit_id: str = ""
    missing: tuple[str, ...] = ()
    unsaved: bool = False
    worker: Process | None = None
    began: Moment | None = None
    reported: Moment | None = None
    machines: tuple[ClusterMachine, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Job(JobStatus, JobRequest):
    """One job at the moment of reading.

    Attributes:
        id: name of the job; names sort in the order of submission.
        question: the request: an experiment, a sweep, or a lesson's demonstration.
        store: folder of the store for its rows.
        place: place in the queue, 1 for the next; 0 if it is not waiting.
        damage: why its state cannot be read, in one sentence; it then counts as running until it is ended.
    """

    id: str
    question: AnyQuestion
    store: Path
    state: State = "queued"
    place: int = 0
    damage: str = ""

    @property
    def experiment(self) -> Experiment | None:
        """The requested experiment; None for other requests."""
        return self.question if isinstance(self.question, Experiment) else None

    @property
    def sweep(self) -> Sweep | None:
        """The requested sweep; None for other requests."""
        return self.question if isinstance(self.question, Sweep) else None

    @property
    def demonstration(self) -> Demonstration | None:
        """The requested demonstration of a lesson; None for other requests."""
        return self.question if isinstance(self.question, Demonstration) else None

    @property
    def run_id(self) -> str:
        """The run of the job's newest rows; empty before the first row."""
        return self.run_ids[-1] if self.run_ids else ""

    @property
    def share(self) -> float:
        """Finished share of the work, 0 to 1. A custom script counts pairs, because its number of steps is unknown."""
        if self.experiment and self.experiment.point.training and self.progress:
            return min(1.0, self.progress.pairs / self.experiment.pairs)
        return self.progress.share if self.progress else 0.0

    @property
    def active(self) -> bool:
        """Whether the job is waiting or running."""
        return self.state in ACTIVE

    @property
    def complete(self) -> bool:
        """Whether the job has ended with every requested row."""
        return self.state == "finished" and not self.missing

    @property
    def lost(self) -> bool:
        """Whether the job is marked as running in a process that has ended."""
        return self.state == "running" and not (self.worker and self.worker.alive)

    @property
    def silent_s(self) -> float:
        """Seconds since the last report of a running job; 0 if there was no report.

        Counted in the system's uptime: neither a changed clock nor a sleeping machine counts as silence.
        """
        return (self.reported.ago_s or 0.0) if self.reported and self.state == "running" else 0.0

    @property
    def silent_too_long(self) -> bool:
        """Whether the job has not reported for much longer than a measurement may take."""
        budget_s = self.sweep.point_budget_s if self.sweep else self.question.budget_s
        return self.silent_s > max(SILENCE_S, SILENT_BUDGETS * budget_s)

    @property
    def cut_off_by(self) -> str:
        """The reason why the job ended early if its process has ended, as the beginning of a sentence."""
        if self.damage:
            return f"{self.damage.rstrip('.')}, and nobody measures it"
        return "The measuring process was killed"

    def suits(self, surroundings: ExecutionContext | None) -> bool:
        """Return whether a process with this context can measure the job, as far as known."""
        if self.surroundings is None or surroundings is None:
            return True
        return surroundings.suits(self.surroundings)

    def derive_run_id(self, experiment: Experiment) -> str:
        """Derive the name of the run in which this job measures an experiment: 12 hexadecimal digits.

        The name is always the same, so a process that finds the job dead can identify its rows in the store.
        """
        return hashlib.sha256(f"{self.id} {experiment.id}".encode()).hexdigest()[:12]


T = TypeVar("T")


@dataclass(frozen=True)
class JobFolder:
    """The files of one job.

    Attributes:
        path: folder of the job, named after its id.
        memory: file → rows or exhibit that the disk refused; shared by all jobs of a process.
    """

    path: Path
    memory: dict[Path, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def create(cls, path: Path, job: Job) -> Self:
        """Store a new job; other processes see it complete or not at all.

        Raises:
            OSError: the folder cannot be written.
        """
        draft = cls(path.with_name(f".{path.name}.tmp"))
        draft.path.mkdir(parents=True)
        request = {_kind(job.question): job.question.to_json(), "store": str(job.store)}
        documents.write_json(draft._request, request | msgspec.to_builtins(_select_fields(job, JobRequest)))
        draft.write(job)
        if job.surroundings and job.surroundings.environment:
            draft.keep_environment()
        draft.path.rename(path)
        return cls(path)

    @staticmethod
    def sweep(queue: Path) -> None:
        """Delete what killed processes left in the folder of a queue: temporary files, and incomplete jobs.

        Args:
            queue: folder of the queue.
        """
        documents.remove_abandoned_files(queue)
        for draft in queue.glob(".*.tmp"):
            with contextlib.suppress(OSError):
                facts = draft.lstat()
                if stat.S_ISDIR(facts.st_mode) and time.time() - facts.st_mtime > documents.ABANDONED_S:
                    shutil.rmtree(draft)

    @property
    def stamp(self) -> tuple[int, ...]:
        """Return a value that changes with the job's request or state; empty if one of their files cannot be read."""
        request, status = documents.stamp(self._request), documents.stamp(self._status)
        return (*request, *status) if request and status else ()

    def read(self) -> Job:
        """Return the job from its files; a job with a damaged status is marked.

        Raises:
            DamagedFile: the request cannot be read.
        """
        request = documents.read_json(self._request, _Request)
        if request is None:
            raise DamagedFile(self._request.name, "it is not there")
        try:
            asked = request.question
        except (CrossoverError, ArithmeticError, ValueError, TypeError, RecursionError) as error:
            raise DamagedFile(self._request.name, str(error).rstrip(".")) from error
        status, damage = self._read_status()
        known = _select_fields(request, JobRequest) | _select_fields(status, JobStatus)
        return Job(id=self.path.name, question=asked, store=Path(request.store), damage=damage, **known)

    def _read_status(self) -> tuple[JobStatus, str]:
        """Return the status of the job, and a sentence if its file is damaged."""
        try:
            status = documents.read_json(self._status, _Status)
        except DamagedFile as error:
            return JobStatus(state="running"), str(error)
        if status is None:
            return JobStatus(state="running"), f"{self.path.name}/status.json is not there."
        return replace(status, run_ids=status.run_ids or ((status.run_id,) if status.run_id else ())), ""

    def keep_environment(self) -> None:
        """Store all environment variables of this process for the job, readable only by its owner.

        Raises:
            OSError: the folder cannot be written.
        """
        self._environment.touch(mode=0o600)
        self._environment.write_text(json.dumps(dict(os.environ)), encoding="utf-8")

    def read_environment(self) -> dict[str, str] | None:
        """Return the variables of `keep_environment`; None if they are missing, or this user may not read them."""
        with contextlib.suppress(OSError, DamagedFile):
            return documents.read_json(self._environment, dict[str, str])
        return None

    def drop_environment(self) -> None:
        """Delete the variables of `keep_environment`, which may contain secrets, after a process has read them."""
        with contextlib.suppress(OSError):
            self._environment.unlink(missing_ok=True)

    @property
    def settled(self) -> bool:
        """Whether the job is stored as ended."""
        with contextlib.suppress(DamagedFile):
            status = documents.read_json(self._status, _Status)
            return status is not None and status.state not in ACTIVE
        return False

    def write(self, job: Job) -> None:
        """Replace the stored state of the job.

        Raises:
            OSError: the folder cannot be written.
        """
        documents.write_json(self._status, msgspec.to_builtins(_select_fields(job, JobStatus)))

    def mark_alive(self) -> None:
        """Mark the job's process as alive if a full disk refuses reports; an empty file needs no space."""
        with contextlib.suppress(OSError):
            self._alive.touch()

    @property
    def marked_s(self) -> float:
        """Seconds since the last `mark_alive`, by the clock of the machine; infinite without one."""
        with contextlib.suppress(OSError):
            return abs(time.time() - self._alive.stat().st_mtime)
        return math.inf

    def request_stop(self) -> None:
        """Store a mark that requests the job to stop."""
        self._cancel.touch()

    @property
    def is_stop_requested(self) -> bool:
        return self._cancel.exists()

    def keep_partial(self, trials: Sequence[Trial]) -> bool:
        """Store rows as they would be if the measurement ended now; return whether the disk accepted them."""
        return self._keep("partial.parquet", list(trials), parquet.write_rows)

    def read_partial(self) -> list[Trial]:
        """Return the rows of the last `keep_partial`; empty before."""
        return self._read_rows("partial.parquet")

    def keep_unsaved(self, trials: Sequence[Trial]) -> bool:
        """Store rows until the job has ended and the store has them; return whether the disk accepted them."""
        return self._keep("unsaved.parquet", list(trials), parquet.write_rows)

    def read_unsaved(self) -> list[Trial]:
        """Return the rows of the last `keep_unsaved`; empty after the store has them."""
        return self._read_rows("unsaved.parquet")

    def keep_exhibit(self, exhibit: Exhibit) -> bool:
        """Store the exhibit of a lesson for the lifetime of the job; return whether the disk accepted it."""
        return self._keep("exhibit.json", exhibit, lambda path, _: documents.write_json(path, exhibit.to_json()))

    def read_exhibit(self) -> Exhibit | None:
        """Read the exhibit of a lesson; None before its end, or if it is damaged."""
        path = self.path / "exhibit.json"
        if path in self.memory:
            return cast("Exhibit", self.memory[path])
        with contextlib.suppress(CrossoverError):
            data = documents.read_json(path, dict[str, Any])
            return Exhibit.from_json(data) if data is not None else None
        return None

    def drop_rows(self, *, partial: bool = True) -> None:
        """Delete copies of stored rows, and temporary files of killed processes.

        Args:
            partial: whether to delete also the provisional rows of an unfinished measurement.
        """
        names = ("unsaved.parquet", *(("partial.parquet",) if partial else ()))
        for name in (*names, "exhibit.json"):
            self.memory.pop(self.path / name, None)
        for name in (*names, "alive"):
            (self.path / name).unlink(missing_ok=True)
        for left in self.path.glob(".*.tmp"):  # nobody else writes into the folder of a job that ends
            with contextlib.suppress(OSError):
                left.unlink()

    def _keep(self, name: str, content: T, write: Callable[[Path, T], object]) -> bool:
        """Replace a file on the disk, or store its content in memory if the disk refuses it."""
        path = self.path / name
        try:
            write(path, content)
        except OSError:
            self.memory[path] = content
            return False
        self.memory.pop(path, None)
        return True

    def _read_rows(self, name: str) -> list[Trial]:
        path = self.path / name
        return list(self.memory[path]) if path in self.memory else parquet.read_rows(path)

    @property
    def _request(self) -> Path:
        return self.path / "request.json"

    @property
    def _status(self) -> Path:
        return self.path / "status.json"

    @property
    def _alive(self) -> Path:
        return self.path / "alive"

    @property
    def _environment(self) -> Path:
        return self.path / "environment.json"

    @property
    def _cancel(self) -> Path:
        return self.path / "cancel"


@dataclass(frozen=True, kw_only=True)
class _Request(JobRequest):
    """`request.json`: one of the three kinds of questions, and its requester."""

    store: Annotated[str, Meta(max_length=MAX_PATH, pattern=r"^[^\0]+$")]
    experiment: dict[str, Any] | None = None
    sweep: dict[str, Any] | None = None
    demonstration: dict[str, Any] | None = None

    @property
    def question(self) -> AnyQuestion:
        """The question.

        Raises:
            InvalidValue: the question is invalid.
        """
        if self.sweep is not None:
            return _sweep(json.dumps(self.sweep))
        if self.demonstration is not None:
            return Demonstration.from_json(self.demonstration)
        return Experiment.from_json(self.experiment)


@dataclass(frozen=True, kw_only=True)
class _Status(JobStatus):
    """`status.json`: the present status of the job."""

    run_id: str = ""  # as earlier versions wrote it


def _select_fields(source: JobRequest | JobStatus, kind: type[JobRequest | JobStatus]) -> dict[str, Any]:
    """Return the fields that `kind` declares, with their values in `source`."""
    return {field.name: getattr(source, field.name) for field in fields(kind)}


def _kind(question: AnyQuestion) -> str:
    """Return the key of a request in its file."""
    match question:
        case Sweep():
            return "sweep"
        case Demonstration():
            return "demonstration"
    return "experiment"


@functools.lru_cache(maxsize=64)
def _sweep(text: str) -> Sweep:
    """Return a sweep from its JSON.

    The result is cached, because checking hundreds of points takes too long for ten polls per second.
    """
    return Sweep.from_json(json.loads(text))
