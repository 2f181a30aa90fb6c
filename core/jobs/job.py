"""One job: what was requested, its status, and the folder of files in which both are kept.

Jobs outlive the browser, the server and the worker. Which job is next, and who may change what, is decided in
`core.jobs.queue`.
"""

import contextlib
import functools
import hashlib
import json
import math
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
from ..files import atomic, documents
from ..progress import Progress
from ..question.demonstrations import Demonstration
from ..question.experiment import Experiment
from ..question.policy import AnyQuestion
from ..question.sweep import Sweep
from ..results import parquet
from ..results.exhibits import Exhibit
from ..results.schema import Trial
from .machine import Moment
from .process import ExecutionContext, Process
from .shared.members import Member, Spread

State = Literal["queued", "running", "finished", "failed", "stopped", "crashed"]
"""How a job stands.

- queued: it waits for its turn.
- running: it is being measured, or waits until nothing else is measured on this machine.
- finished: its rows are complete.
- failed: it could not be measured; the message says why.
- stopped: by the user; what was measured by then is saved.
- crashed: the measuring process was killed; what it had saved by then is saved.
"""

ACTIVE: tuple[State, ...] = ("queued", "running")
"""States that end; the others are final."""

SILENCE_S = 300.0
SILENT_BUDGETS = 5.0
"""A worker that has said nothing for so long, and for so many times what a measurement may take, has lost its way.

Compiling a lane takes two minutes on a busy machine, and nothing is said meanwhile."""


@dataclass(frozen=True, kw_only=True)
class RemoteTarget:
    """That other machines measure a sweep, and not this one.

    Attributes:
        on: which, as `--on` of the command line has it.
        spread: how it is spread over them.
    """

    on: str
    spread: Spread = "everywhere"


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What never changes of a job: who wants it, and how it is measured. Each field is a key of `request.json`.

    Attributes:
        created_at: when it was submitted, ISO 8601, UTC.
        fresh: whether what an earlier, killed job left behind must not be continued.
        asked_by: who asked, a name that says nothing about the person; empty for who did on the command line.
        asked_from: where from, a name that says nothing either and that many may share; empty as above.
        surroundings: what it takes over from who asked; None where that was not written down: then any are right.
        elsewhere: where it is measured, if not here; the worker then is who asks the machines.
        measured_as: `machine_id` of its rows, where machines that are alike answer a question each for itself; empty
            where they bear that of this kind of machine.
    """

    created_at: str
    fresh: bool
    asked_by: str = ""
    asked_from: str = ""
    surroundings: ExecutionContext | None = None
    elsewhere: RemoteTarget | None = None
    measured_as: str = ""


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """What became of a job by now. Each field is a key of `status.json`.

    Attributes:
        state: how it stands.
        progress: how far the measurement is, or was; None before the first report.
        message: one sentence where there is something to say.
        run_ids: the runs its rows belong to: one for an experiment; for a sweep one a point, those found in the
            store among them, more while it runs.
        trial_ids: its rows, run by run in the order of the contenders.
        exhibit_id: name of what a lesson showed; empty before its end, and for all other jobs.
        missing: which rows that were asked for it has not, or not whole, and why; a sentence each.
        unsaved: whether the store refused rows or the exhibit of it, so that only the job has them.
        worker: the process that measures or measured it.
        began: when its turn came; None before.
        reported: when the process that measures it last said so.
        machines: the machines that measure it, if others do, as they told of themselves last.
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
    machines: tuple[Member, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Job(JobStatus, JobRequest):
    """What one job is at the moment of looking.

    Attributes:
        id: its name, in the order of submission.
        asked: what is measured or shown: one experiment, a sweep of many, or a lesson's demonstration.
        store: folder that its rows go to.
        place: 1 for the next in the queue; 0 when it no longer waits there.
        damage: why its state cannot be read, in one sentence; it then counts as running until it is settled.
    """

    id: str
    question: AnyQuestion
    store: Path
    state: State = "queued"
    place: int = 0
    damage: str = ""

    @property
    def experiment(self) -> Experiment | None:
        """The experiment that was asked for; None for anything else."""
        return self.question if isinstance(self.question, Experiment) else None

    @property
    def sweep(self) -> Sweep | None:
        """The sweep that was asked for; None for anything else."""
        return self.question if isinstance(self.question, Sweep) else None

    @property
    def demonstration(self) -> Demonstration | None:
        """What a lesson asked for; None for anything else."""
        return self.question if isinstance(self.question, Demonstration) else None

    @property
    def run_id(self) -> str:
        """The run that the job's newest rows belong to; empty before there are any."""
        return self.run_ids[-1] if self.run_ids else ""

    @property
    def share(self) -> float:
        """Share of the work that is done, 0 to 1: of one's own training, of whose steps nobody knows, of its pairs."""
        if self.experiment and self.experiment.point.training and self.progress:
            return min(1.0, self.progress.pairs / self.experiment.pairs)
        return self.progress.share if self.progress else 0.0

    @property
    def active(self) -> bool:
        """Whether the job waits or runs."""
        return self.state in ACTIVE

    @property
    def complete(self) -> bool:
        """Whether the job has ended with every row that was asked for."""
        return self.state == "finished" and not self.missing

    @property
    def lost(self) -> bool:
        """Whether the job is said to run in a process that does not live any more."""
        return self.state == "running" and not (self.worker and self.worker.alive)

    @property
    def silent_s(self) -> float:
        """Seconds for which nothing was heard of the job while it runs; 0 where that is not known.

        Of the system's uptime: neither a clock that is set nor a machine that sleeps makes anybody silent.
        """
        return (self.reported.ago_s or 0.0) if self.reported and self.state == "running" else 0.0

    @property
    def silent_too_long(self) -> bool:
        """Whether nothing was heard of the job for much longer than a measurement may take: nothing will be."""
        budget_s = self.sweep.point_budget_s if self.sweep else self.question.budget_s
        return self.silent_s > max(SILENCE_S, SILENT_BUDGETS * budget_s)

    @property
    def cut_off_by(self) -> str:
        """What cut the job off if its process is gone, as the beginning of a sentence."""
        if self.damage:
            return f"{self.damage.rstrip('.')}, and nobody measures it"
        return "The measuring process was killed"

    def suits(self, surroundings: ExecutionContext | None) -> bool:
        """Whether the job can be measured by a process with these surroundings, as far as they are known."""
        return None in (self.surroundings, surroundings) or self.surroundings == surroundings

    def derive_run_id(self, experiment: Experiment) -> str:
        """Name of the run in which this job measures an experiment, 12 hexadecimal digits; the same at every call.

        So whoever finds the job dead knows which rows of the store are its own.
        """
        return hashlib.sha256(f"{self.id} {experiment.id}".encode()).hexdigest()[:12]


T = TypeVar("T")


@dataclass(frozen=True)
class JobFolder:
    """The files of one job.

    Attributes:
        path: the folder; its name is the job's id.
        memory: file -> its rows or exhibit, where the disk refused it; the same for all jobs of a process.
    """

    path: Path
    memory: dict[Path, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def create(cls, path: Path, job: Job) -> Self:
        """Write down a new job; others see it complete or not at all.

        Raises:
            OSError: the folder cannot be written.
        """
        draft = cls(path.with_name(f".{path.name}.tmp"))
        draft.path.mkdir(parents=True)
        request = {_kind(job.question): job.question.to_json(), "store": str(job.store)}
        atomic.write_json(draft._request, request | msgspec.to_builtins(_select_fields(job, JobRequest)))
        draft.write(job)
        draft.path.rename(path)
        return cls(path)

    @staticmethod
    def sweep(queue: Path) -> None:
        """Drop what was left in the folder of a queue by who was killed: temporary files, and jobs half written down.

        Args:
            queue: its folder.
        """
        atomic.remove_abandoned_files(queue)
        for draft in queue.glob(".*.tmp"):
            with contextlib.suppress(OSError):
                facts = draft.lstat()
                if stat.S_ISDIR(facts.st_mode) and time.time() - facts.st_mtime > atomic.ABANDONED_S:
                    shutil.rmtree(draft)

    def read(self) -> Job:
        """The job as it is written down; one whose status is damaged says so.

        Raises:
            DamagedFile: there is no request that can be read.
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
        """Return what became of the job, and if its file is damaged, a sentence that says so."""
        try:
            status = documents.read_json(self._status, _Status)
        except DamagedFile as error:
            return JobStatus(state="running"), str(error)
        if status is None:
            return JobStatus(state="running"), f"{self.path.name}/status.json is not there."
        return replace(status, run_ids=status.run_ids or ((status.run_id,) if status.run_id else ())), ""

    @property
    def settled(self) -> bool:
        """Whether the job is written down as ended."""
        with contextlib.suppress(DamagedFile):
            status = documents.read_json(self._status, _Status)
            return status is not None and status.state not in ACTIVE
        return False

    def write(self, job: Job) -> None:
        """Replace what is written down of the job's state.

        Raises:
            OSError: the folder cannot be written.
        """
        atomic.write_json(self._status, msgspec.to_builtins(_select_fields(job, JobStatus)))

    def mark_alive(self) -> None:
        """Show that the job's process lives where a full disk takes no report; an empty file needs no space on it."""
        with contextlib.suppress(OSError):
            self._alive.touch()

    @property
    def marked_s(self) -> float:
        """Seconds since the last `mark_alive`, by the clock of the machine; infinite if there was none."""
        with contextlib.suppress(OSError):
            return abs(time.time() - self._alive.stat().st_mtime)
        return math.inf

    def request_stop(self) -> None:
        """Leave the mark that the job shall stop."""
        self._cancel.touch()

    @property
    def is_stop_requested(self) -> bool:
        return self._cancel.exists()

    def keep_partial(self, trials: Sequence[Trial]) -> bool:
        """Keep rows as they would be if the measurement ended now; return whether the disk took them."""
        return self._keep("partial.parquet", list(trials), parquet.write_rows)

    def read_partial(self) -> list[Trial]:
        """Rows by the last `keep_partial`; none before."""
        return self._read_rows("partial.parquet")

    def keep_unsaved(self, trials: Sequence[Trial]) -> bool:
        """Keep rows until the job's end is written down and the store has them; return whether the disk took them."""
        return self._keep("unsaved.parquet", list(trials), parquet.write_rows)

    def read_unsaved(self) -> list[Trial]:
        """Rows by the last `keep_unsaved`; none once the store has them for certain."""
        return self._read_rows("unsaved.parquet")

    def keep_exhibit(self, exhibit: Exhibit) -> bool:
        """Keep what a lesson showed for as long as the job; return whether the disk took it."""
        return self._keep("exhibit.json", exhibit, lambda path, _: atomic.write_json(path, exhibit.to_json()))

    def read_exhibit(self) -> Exhibit | None:
        """What a lesson showed; None before its end, or where it is damaged."""
        path = self.path / "exhibit.json"
        if path in self.memory:
            return cast("Exhibit", self.memory[path])
        with contextlib.suppress(CrossoverError):
            data = documents.read_json(path, dict[str, Any])
            return Exhibit.from_json(data) if data is not None else None
        return None

    def drop_rows(self, *, partial: bool = True) -> None:
        """Drop what was kept of rows that the store has, and what writers left here that were killed.

        Args:
            partial: whether also of rows as they would be if the measurement ended now.
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
        """Replace a file on the disk, or keep its content in memory if the disk refuses it."""
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
    def _cancel(self) -> Path:
        return self.path / "cancel"


@dataclass(frozen=True, kw_only=True)
class _Request(JobRequest):
    """`request.json`: one of the three questions, and who asked it."""

    store: Annotated[str, Meta(pattern=r"^[^\0]+$")]
    experiment: dict[str, Any] | None = None
    sweep: dict[str, Any] | None = None
    demonstration: dict[str, Any] | None = None

    @property
    def question(self) -> AnyQuestion:
        """The question.

        Raises:
            InvalidValue: it is none that can be asked.
        """
        if self.sweep is not None:
            return _sweep(json.dumps(self.sweep))
        if self.demonstration is not None:
            return Demonstration.from_json(self.demonstration)
        return Experiment.from_json(self.experiment)


@dataclass(frozen=True, kw_only=True)
class _Status(JobStatus):
    """`status.json`: what became of it by now."""

    run_id: str = ""  # as earlier versions wrote it


def _select_fields(source: JobRequest | JobStatus, kind: type[JobRequest | JobStatus]) -> dict[str, Any]:
    """Return the fields that `kind` declares, with their values in `source`."""
    return {field.name: getattr(source, field.name) for field in fields(kind)}


def _kind(question: AnyQuestion) -> str:
    """The word under which a request is written down."""
    match question:
        case Sweep():
            return "sweep"
        case Demonstration():
            return "demonstration"
    return "experiment"


@functools.lru_cache(maxsize=64)
def _sweep(text: str) -> Sweep:
    """A sweep from its JSON; checking hundreds of points takes too long for who looks every tenth of a second."""
    return Sweep.from_json(json.loads(text))
