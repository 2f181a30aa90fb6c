"""One job: what was asked for, what became of it, and the files in which that is written down.

A job is a folder, so that it outlives the browser, the page's server, the command line and the worker:
`request.json` (written once), `status.json` (replaced whole), `cancel` (a mark that it shall stop),
`partial.parquet` (rows as they would be if it ended now), `unsaved.parquet` (rows on their way into the store, or
refused by it) and `exhibit.json` (what a lesson showed). Which job is next, and who may change what, is decided in
`core.jobs.queue`.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from core.demonstration import Demonstration
from core.errors import InvalidValue
from core.exhibits import Exhibit
from core.experiment import Experiment
from core.jobs import files
from core.jobs.process import Process
from core.policy import Asked
from core.progress import Progress
from core.results.schema import Trial
from core.sweep import Sweep

State = Literal["queued", "running", "finished", "failed", "stopped", "crashed"]

STATES: dict[State, str] = {
    "queued": "waits for its turn",
    "running": "is being measured, or waits until nothing else is measured on this machine",
    "finished": "its rows are complete",
    "failed": "it could not be measured; the message says why",
    "stopped": "stopped by the user; what was measured by then is saved",
    "crashed": "the measuring process was killed; what it had saved by then is saved",
}

ACTIVE: tuple[State, ...] = ("queued", "running")
"""States that end; the others are final."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What one job is at the moment of looking.

    Attributes:
        id: its name, in the order of submission.
        asked: what is measured or shown: one experiment, a sweep of many, or a lesson's demonstration.
        store: folder that its rows go to.
        fresh: whether what an earlier, killed job left behind must not be continued.
        created_at: when it was submitted, ISO 8601, UTC.
        state: key of `STATES`.
        place: 1 for the next in the queue; 0 when it no longer waits there.
        progress: how far the measurement is, or was; None before the first report.
        message: one sentence where there is something to say.
        run_ids: the runs its rows belong to: one for an experiment; for a sweep one a point, those found in the
            store among them, more while it runs.
        trial_ids: its rows, run by run in the order of the contenders.
        exhibit_id: name of what a lesson showed; empty before its end, and for all other jobs.
        unsaved: whether the store refused rows or the exhibit of it, so that only the job has them.
        worker: the process that measures or measured it.
        asked_by: who asked, a name that says nothing about the person; empty for who did on the command line.
        began_at: when its turn came, ISO 8601, UTC; empty before.
    """

    id: str
    asked: Asked
    store: Path
    fresh: bool
    created_at: str
    state: State = "queued"
    place: int = 0
    progress: Progress | None = None
    message: str = ""
    run_ids: tuple[str, ...] = ()
    trial_ids: tuple[str, ...] = ()
    exhibit_id: str = ""
    unsaved: bool = False
    worker: Process | None = None
    asked_by: str = ""
    began_at: str = ""

    @property
    def experiment(self) -> Experiment | None:
        """The experiment that was asked for; None for anything else."""
        return self.asked if isinstance(self.asked, Experiment) else None

    @property
    def sweep(self) -> Sweep | None:
        """The sweep that was asked for; None for anything else."""
        return self.asked if isinstance(self.asked, Sweep) else None

    @property
    def demonstration(self) -> Demonstration | None:
        """What a lesson asked for; None for anything else."""
        return self.asked if isinstance(self.asked, Demonstration) else None

    @property
    def run_id(self) -> str:
        """The run that its newest rows belong to; empty before there are any."""
        return self.run_ids[-1] if self.run_ids else ""

    @property
    def active(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ACTIVE

    @property
    def worker_pid(self) -> int | None:
        """Number of the process that measures or measured it."""
        return self.worker.pid if self.worker else None

    @property
    def lost(self) -> bool:
        """Whether it is said to run in a process that does not live any more."""
        return self.state == "running" and not (self.worker and self.worker.alive)


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
        }
        files.write_json(draft._request, request)
        draft.write(job)
        draft.path.rename(path)
        return cls(path)

    def read(self) -> Job | None:
        """The job as it is written down; None where that cannot be read."""
        request, status = files.read_json(self._request), files.read_json(self._status)
        if request is None:
            return None
        try:
            return _job(self.path.name, request, status or {"state": "failed", "message": "Its status file is torn."})
        except (InvalidValue, KeyError, TypeError, ValueError):  # of another version, or by another hand
            return None

    def write(self, job: Job) -> None:
        """Replace what is written down of the job's state.

        Raises:
            OSError: the folder cannot be written.
        """
        status = {
            "state": job.state,
            "progress": job.progress.to_json() if job.progress else None,
            "message": job.message,
            "run_ids": list(job.run_ids),
            "trial_ids": list(job.trial_ids),
            "exhibit_id": job.exhibit_id,
            "unsaved": job.unsaved,
            "worker": asdict(job.worker) if job.worker else None,
            "began_at": job.began_at,
        }
        files.write_json(self._status, status)

    def ask_to_stop(self) -> None:
        """Leave the mark that the job shall stop."""
        self._cancel.touch()

    @property
    def asked_to_stop(self) -> bool:
        return self._cancel.exists()

    def keep_partial(self, trials: Sequence[Trial]) -> None:
        """Keep rows as they would be if the measurement ended now."""
        files.write_rows(self._partial, trials)

    def partial(self) -> list[Trial]:
        """Rows by the last `keep_partial`; none before."""
        return files.read_rows(self._partial)

    def keep_unsaved(self, trials: Sequence[Trial]) -> None:
        """Keep rows on their way into the store until the job's end is written down."""
        files.write_rows(self._unsaved, trials)

    def unsaved(self) -> list[Trial]:
        """Rows by the last `keep_unsaved`; none once the store has them for certain."""
        return files.read_rows(self._unsaved)

    def keep_exhibit(self, exhibit: Exhibit) -> None:
        """Keep what a lesson showed; it stays for as long as the job."""
        files.write_json(self._exhibit, exhibit.to_json())

    def exhibit(self) -> Exhibit | None:
        """What a lesson showed; None before its end."""
        data = files.read_json(self._exhibit)
        try:
            return Exhibit.from_json(data) if data is not None else None
        except InvalidValue:  # of another version, or by another hand
            return None

    def drop_rows(self) -> None:
        """Drop what was kept of rows that the store has."""
        self._partial.unlink(missing_ok=True)
        self._unsaved.unlink(missing_ok=True)

    @property
    def _request(self) -> Path:
        return self.path / "request.json"

    @property
    def _status(self) -> Path:
        return self.path / "status.json"

    @property
    def _cancel(self) -> Path:
        return self.path / "cancel"

    @property
    def _partial(self) -> Path:
        return self.path / "partial.parquet"

    @property
    def _unsaved(self) -> Path:
        return self.path / "unsaved.parquet"

    @property
    def _exhibit(self) -> Path:
        return self.path / "exhibit.json"


def _job(job_id: str, request: Mapping[str, Any], status: Mapping[str, Any]) -> Job:
    if status["state"] not in STATES:
        raise InvalidValue("state", status["state"], f"one of {', '.join(STATES)}")
    progress, worker = status.get("progress"), status.get("worker")
    run_id = status.get("run_id")  # as earlier versions wrote it
    return Job(
        id=job_id,
        asked=_asked(request),
        store=Path(request["store"]),
        fresh=bool(request["fresh"]),
        created_at=str(request["created_at"]),
        state=status["state"],
        progress=Progress.from_json(progress) if progress else None,
        message=str(status.get("message", "")),
        run_ids=tuple(status.get("run_ids", (run_id,) if run_id else ())),
        trial_ids=tuple(status.get("trial_ids", ())),
        exhibit_id=str(status.get("exhibit_id", "")),
        unsaved=bool(status.get("unsaved", False)),
        worker=Process(**worker) if worker else None,
        asked_by=str(request.get("asked_by", "")),
        began_at=str(status.get("began_at", "")),
    )


def _kind(asked: Asked) -> str:
    """The word under which a request is written down."""
    match asked:
        case Sweep():
            return "sweep"
        case Demonstration():
            return "demonstration"
    return "experiment"


def _asked(request: Mapping[str, Any]) -> Asked:
    if "sweep" in request:
        return _sweep(json.dumps(request["sweep"]))
    if "demonstration" in request:
        return Demonstration.from_json(request["demonstration"])
    return Experiment.from_json(request["experiment"])


@functools.lru_cache(maxsize=64)
def _sweep(text: str) -> Sweep:
    """A sweep from its JSON; checking hundreds of points takes too long for who looks every tenth of a second."""
    return Sweep.from_json(json.loads(text))
