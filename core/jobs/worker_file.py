"""The files of the worker: who serves a queue, and what it reported of the machine.

The lock decides who serves; the entry lets others see it without touching the lock. Entries are changed only
under the queue's guard. Nothing here starts or ends a process.
"""

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from ..errors import DamagedFile
from ..files import atomic, documents
from ..files.documents import Count
from .machine import Machine
from .process import DEATH_S, ExecutionContext, Process


@dataclass(frozen=True, kw_only=True)
class Serving:
    """The process that serves the queue, or is about to.

    Attributes:
        process: the worker.
        ready: whether it has loaded its measuring code.
        starts: workers started in a row, this one included, of which none before it became ready.
        surroundings: the execution context that it inherits from the requester of a measurement.
    """

    process: Process
    ready: bool = False
    starts: Count = 1
    surroundings: ExecutionContext | None = None


@dataclass(frozen=True, kw_only=True)
class _Report(Machine):
    """A worker's report on the machine, with the worker's process."""

    process: Process


@dataclass(frozen=True)
class WorkerFile:
    """The worker's files in the folder of jobs.

    Attributes:
        folder: the folder of jobs.
    """

    folder: Path

    def lock(self) -> BaseFileLock:
        """Return the lock that a worker holds for as long as it serves."""
        return FileLock(self.folder / "worker.lock")

    @property
    def log(self) -> Path:
        """The output of workers, tracebacks included."""
        return self.folder / "worker.log"

    @property
    def serving(self) -> Serving | None:
        """The last process that began to serve, alive or not; None before the first, after one left, or if damaged."""
        with contextlib.suppress(DamagedFile):  # then the lock tells whether somebody serves
            return documents.read_json_once(self._entry, Serving)
        return None

    @property
    def is_served(self) -> bool:
        """Whether a live process serves the queue, or is about to, by its entry; cheap."""
        serving = self.serving
        return serving is not None and serving.process.alive

    @property
    def locked(self) -> bool:
        """Whether a process has the lock, independent of the entry; the folder must exist."""
        try:
            with self.lock().acquire(timeout=0):
                return False
        except Timeout:
            return True

    def take(self, serving: Serving) -> None:
        """Write down who serves from now on."""
        atomic.write_json(self._entry, asdict(serving))

    def leave(self, process: Process) -> None:
        """Write down that `process` does not serve any more; nothing if somebody else serves by now."""
        serving = self.serving
        if serving and serving.process == process:
            self._entry.unlink(missing_ok=True)

    def report(self, machine: Machine, process: Process) -> None:
        """Publish what the worker found on this machine."""
        atomic.write_json(self._machine, {**machine.to_json(), "process": asdict(process)})

    @property
    def machine(self) -> Machine | None:
        """The last report of a worker; None before the first report, or if another version wrote it."""
        with contextlib.suppress(DamagedFile):
            if found := documents.read_json_once(self._machine, _Report):
                facts = {name: getattr(found, name) for name in Machine.__dataclass_fields__}
                return Machine(**{**facts, "live": found.process.alive})
        return None

    def dismiss(self) -> None:
        """End who serves, if anybody does, and wait until its lock is free: its last thread may close files late.

        Raises:
            PermissionError: it is a process of somebody else.
        """
        if serving := self.serving:
            serving.process.kill(self.serves, self.log)
            with contextlib.suppress(Timeout), self.lock().acquire(timeout=DEATH_S):
                pass

    def serves(self, command: Sequence[str]) -> bool:
        """Return whether a command line is that of a worker of this queue."""
        wanted = str(self.folder)
        return any((option, folder) == ("--jobs", wanted) for option, folder in itertools.pairwise(command))

    @property
    def _entry(self) -> Path:
        return self.folder / "worker.json"

    @property
    def _machine(self) -> Path:
        return self.folder / "machine.json"
