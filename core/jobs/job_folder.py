"""The files of one job, so that it outlives the browser, the page's server, the command line and the worker.

`request.json` (written once), `status.json` (replaced whole), `cancel` (a mark that it shall stop), `partial.parquet`
(rows as they would be if it ended now), `unsaved.parquet` (rows on their way into the store, or refused by it) and
`exhibit.json` (what a lesson showed). While the disk takes none of them, they lie in `core.files.spare` memory. Who may
write which, and when, is decided in `core.jobs.queue`.
"""

import contextlib
import functools
import json
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from msgspec import Meta

from core.errors import CrossoverError, DamagedFile
from core.files import atomic, documents, spare
from core.jobs.cluster_machine import ClusterMachine
from core.jobs.job import ACTIVE, Elsewhere, Job, State
from core.jobs.process import Process, Surroundings
from core.jobs.uptime import Moment
from core.progress import Progress
from core.question.demonstration import Demonstration
from core.question.experiment import Experiment
from core.question.policy import Asked
from core.question.sweep import Sweep
from core.results import reading, writing
from core.results.exhibits.exhibit import Exhibit
from core.results.schema import Trial


@dataclass(frozen=True)
class JobFolder:
    """The files of one job.

    Attributes:
        path: the folder; its name is the job's id.
    """

    path: Path

    @classmethod
    def create(cls, path: Path, job: Job) -> Self:
        """Write down a new job; others see it complete or not at all.

        Raises:
            OSError: the folder cannot be written.
        """
        draft = cls(path.with_name(f".{path.name}.tmp"))
        draft.path.mkdir(parents=True)
        request = {
            _kind(job.asked): job.asked.to_json(),
            "store": str(job.store),
            "fresh": job.fresh,
            "created_at": job.created_at,
            "asked_by": job.asked_by,
            "asked_from": job.asked_from,
            "surroundings": asdict(job.surroundings) if job.surroundings else None,
            "elsewhere": asdict(job.elsewhere) if job.elsewhere else None,
        }
        atomic.write_json(draft._request, request)
        draft.write(job)
        draft.path.rename(path)
        return cls(path)

    @staticmethod
    def sweep(queue: Path) -> None:
        """Drop what was left in the folder of a queue by who was killed: temporary files, and jobs half written down.

        Args:
            queue: its folder.
        """
        atomic.sweep(queue)
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
            asked = request.asked
        except (CrossoverError, ArithmeticError, ValueError, TypeError, RecursionError) as error:
            raise DamagedFile(self._request.name, str(error).rstrip(".")) from error
        try:
            status = documents.read_json(self._there("status.json"), _Status)
            damage = "" if status else f"{self.path.name}/status.json is not there."
        except DamagedFile as error:
            status, damage = None, str(error)
        return (status or _Status(state="running")).job(self.path.name, request, asked, damage)

    @property
    def settled(self) -> bool:
        """Whether the job is written down as ended."""
        with contextlib.suppress(DamagedFile):
            status = documents.read_json(self._there("status.json"), _Status)
            return status is not None and status.state not in ACTIVE
        return False

    def write(self, job: Job) -> None:
        """Replace what is written down of the job's state.

        Raises:
            OSError: neither the folder nor memory can be written.
        """
        status = {name: getattr(job, name) for name in _Status.__dataclass_fields__ if name != "run_id"}
        for name in ("progress", "worker", "began", "reported"):
            status[name] = asdict(status[name]) if status[name] else None
        status["machines"] = [asdict(machine) for machine in job.machines]
        self._replace("status.json", lambda path: atomic.write_json(path, status))

    def ask_to_stop(self) -> None:
        """Leave the mark that the job shall stop."""
        self._cancel.touch()

    @property
    def asked_to_stop(self) -> bool:
        return self._cancel.exists()

    def keep_partial(self, trials: Sequence[Trial]) -> None:
        """Keep rows as they would be if the measurement ended now."""
        self._replace("partial.parquet", lambda path: writing.write_rows(path, trials))

    def partial(self) -> list[Trial]:
        """Rows by the last `keep_partial`; none before."""
        return reading.read_rows(self._there("partial.parquet"))

    def keep_unsaved(self, trials: Sequence[Trial]) -> None:
        """Keep rows on their way into the store until the job's end is written down."""
        self._replace("unsaved.parquet", lambda path: writing.write_rows(path, trials))

    def unsaved(self) -> list[Trial]:
        """Rows by the last `keep_unsaved`; none once the store has them for certain."""
        return reading.read_rows(self._there("unsaved.parquet"))

    def keep_exhibit(self, exhibit: Exhibit) -> None:
        """Keep what a lesson showed; it stays for as long as the job."""
        self._replace("exhibit.json", lambda path: atomic.write_json(path, exhibit.to_json()))

    def exhibit(self) -> Exhibit | None:
        """What a lesson showed; None before its end, or where it is damaged."""
        with contextlib.suppress(CrossoverError):
            data = documents.read_json(self._there("exhibit.json"), dict[str, Any])
            return Exhibit.from_json(data) if data is not None else None
        return None

    def drop_rows(self, *, partial: bool = True) -> None:
        """Drop what was kept of rows that the store has, and what writers left here that were killed.

        Args:
            partial: whether also of rows as they would be if the measurement ended now.
        """
        names = ("unsaved.parquet", *(("partial.parquet",) if partial else ()))
        for folder in (self.path, self._twin):
            for name in names:
                (folder / name).unlink(missing_ok=True)
        for left in self.path.glob(".*.tmp"):  # nobody else writes into the folder of a job that ends
            with contextlib.suppress(OSError):
                left.unlink()
        spare.drop_empty(self.path)

    @property
    def in_memory(self) -> bool:
        """Whether some files of the job lie in memory, since the disk did not take them."""
        return self._twin.exists()

    def move_to_disk(self) -> None:
        """Bring what lies in memory to the disk.

        Raises:
            OSError: it still takes none; everything stays where it is.
        """
        if self.in_memory:
            for path in sorted(self._twin.iterdir()):
                atomic.write_bytes(self.path / path.name, path.read_bytes())
            spare.drop(self.path)

    def _there(self, name: str) -> Path:
        """The file of a name, wherever it lies now."""
        return path if (path := self._twin / name).exists() else self.path / name

    def _replace(self, name: str, write: Callable[[Path], None]) -> None:
        """Let `write` replace a file on the disk, or in memory while the disk takes none."""
        try:
            write(self.path / name)
        except OSError:
            write(spare.make(self.path) / name)
        else:
            with contextlib.suppress(FileNotFoundError):
                (self._twin / name).unlink()
                spare.drop_empty(self.path)

    @functools.cached_property
    def _twin(self) -> Path:
        return spare.twin(self.path)

    @property
    def _request(self) -> Path:
        return self.path / "request.json"

    @property
    def _cancel(self) -> Path:
        return self.path / "cancel"


@dataclass(frozen=True, kw_only=True)
class _Request:
    """`request.json`: one of the three questions, and who asked it."""

    store: Annotated[str, Meta(pattern=r"^[^\0]+$")]
    fresh: bool
    created_at: str
    asked_by: str = ""
    asked_from: str = ""
    surroundings: Surroundings | None = None
    elsewhere: Elsewhere | None = None
    experiment: dict[str, Any] | None = None
    sweep: dict[str, Any] | None = None
    demonstration: dict[str, Any] | None = None

    @property
    def asked(self) -> Asked:
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
class _Status:
    """`status.json`: what became of it by now."""

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
    run_id: str = ""  # as earlier versions wrote it

    def job(self, job_id: str, request: _Request, asked: Asked, damage: str) -> Job:
        """The job that the two files tell of."""
        known = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "run_id"}
        return Job(
            id=job_id,
            asked=asked,
            store=Path(request.store),
            fresh=request.fresh,
            created_at=request.created_at,
            asked_by=request.asked_by,
            asked_from=request.asked_from,
            surroundings=request.surroundings,
            elsewhere=request.elsewhere,
            damage=damage,
            **{**known, "run_ids": self.run_ids or ((self.run_id,) if self.run_id else ())},
        )


def _kind(asked: Asked) -> str:
    """The word under which a request is written down."""
    match asked:
        case Sweep():
            return "sweep"
        case Demonstration():
            return "demonstration"
    return "experiment"


@functools.lru_cache(maxsize=64)
def _sweep(text: str) -> Sweep:
    """A sweep from its JSON; checking hundreds of points takes too long for who looks every tenth of a second."""
    return Sweep.from_json(json.loads(text))
