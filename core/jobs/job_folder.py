"""The files of one job, so that it outlives the browser, the page's server, the command line and the worker.

`request.json` (written once), `status.json` (replaced whole), `cancel` (a mark that it shall stop), `alive` (a mark
that its process lives although the disk takes no status), `partial.parquet` (rows as they would be if it ended now),
`unsaved.parquet` (rows on their way into the store, or refused by it) and `exhibit.json` (what a lesson showed). What a
full disk refuses stays in the memory of the process that wrote it, and nowhere else on the machine. Who may write
which, and when, is decided in `core.jobs.queue`.
"""

import contextlib
import functools
import json
import math
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar, cast

import msgspec
from msgspec import Meta

from core.errors import CrossoverError, DamagedFile
from core.files import atomic, documents
from core.jobs.job import ACTIVE, Job, JobRequest, JobStatus
from core.question.demonstration import Demonstration
from core.question.experiment import Experiment
from core.question.policy import AnyQuestion
from core.question.sweep import Sweep
from core.results import reading, writing
from core.results.exhibits.exhibit import Exhibit
from core.results.schema import Trial

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
        return self._keep("partial.parquet", list(trials), writing.write_rows)

    def read_partial(self) -> list[Trial]:
        """Rows by the last `keep_partial`; none before."""
        return self._read_rows("partial.parquet")

    def keep_unsaved(self, trials: Sequence[Trial]) -> bool:
        """Keep rows until the job's end is written down and the store has them; return whether the disk took them."""
        return self._keep("unsaved.parquet", list(trials), writing.write_rows)

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
        return list(self.memory[path]) if path in self.memory else reading.read_rows(path)

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
