"""This machine: the worker's report on it, the lock for one measurement at a time, uptime and use.

The worker that imports torch fills in the report, pages and the command line read it.

The files of the worker contain who serves a queue, and what it reported of the machine. The lock decides who serves;
the entry lets others see it without touching the lock. Entries are changed only under the queue's guard. Nothing here
starts or ends a process.
"""

import contextlib
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

import psutil
from filelock import BaseFileLock, FileLock, Timeout
from msgspec import Meta

from .. import units
from ..errors import DamagedFile
from ..files import documents
from ..files.documents import Count, Seconds
from ..results.environment import DeviceInfo, Environment, LoadMeter
from ..results.store import LocalMachine
from . import process
from .process import DEATH_S, ExecutionContext, Process

LOCK_VARIABLE = "CROSSOVER_LOCK"
"""Environment variable that names another lock file, for example one per test."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """This machine as the measuring process sees it.

    Attributes:
        environment: processor, memory and versions.
        devices: devices that PyTorch sees, the CPU first.
        startup_s: device → seconds of its first use in that process; empty until the machine was free.
        hint: why no accelerator is available and what to do; empty if one is available.
        surroundings: the execution context that the process inherited from its starter; None if not reported.
        loading_s: seconds in which the process loaded PyTorch and detected devices; 0 if not reported.
        live: whether the process of this report is still running.
    """

    environment: Environment
    devices: Annotated[tuple[DeviceInfo, ...], Meta(min_length=1)]
    startup_s: Mapping[str, Seconds] = field(default_factory=dict)
    hint: str = ""
    surroundings: ExecutionContext | None = None
    loading_s: Seconds = 0.0
    live: bool = True

    @property
    def device_names(self) -> dict[str, str]:
        """Device → name that it reports."""
        return {info.device: info.name for info in self.devices}

    @property
    def refusals(self) -> dict[str, Mapping[str, str]]:
        """Device → kind of variant → reason why the device does not support it."""
        return {info.device: info.refusals for info in self.devices}

    @property
    def local_machine(self) -> LocalMachine:
        """Identity of this machine, which finds its earlier measurements."""
        facts = self.environment
        return LocalMachine(
            machine_id=facts.machine_id, torch_version=facts.torch_version, device_names=self.device_names
        )

    def to_json(self) -> dict[str, Any]:
        """Return data for a JSON file, without `live`, which the reader determines."""
        data = asdict(self)
        del data["live"]
        return data


def measurement_lock() -> BaseFileLock:
    """Return the lock of all measurements on this machine, for every user, folder and checkout.

    The operating system releases it when its process dies, so it never remains locked.
    """
    path = Path(os.environ.get(LOCK_VARIABLE) or _find_shared_folder() / "crossover-measurement.lock")
    return FileLock(path, mode=0o666)


def _find_shared_folder() -> Path:
    """Return a folder that all users share; on macOS and Windows the temporary folder belongs to one user."""
    if sys.platform == "win32":
        return Path(os.environ.get("PROGRAMDATA") or tempfile.gettempdir())
    return Path("/tmp")


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A reading of the system's uptime.

    Attributes:
        boot: identifier of the boot.
        uptime_s: seconds since the boot.
    """

    boot: str
    uptime_s: Seconds

    @classmethod
    def read_clock(cls) -> Self:
        """Return the present moment."""
        return cls(boot=process.boot(), uptime_s=time.monotonic())

    @property
    def ago_s(self) -> float | None:
        """Seconds since this moment; None if the system was restarted, or if the moment is in the future."""
        passed_s = time.monotonic() - self.uptime_s
        return passed_s if self.boot == process.boot() and passed_s >= 0 else None


QUIET_PROCESSORS = 0.25
"""Number of processors that other programs may use on a quiet machine, for the system and a page that follows a job."""

NAMED_PROCESSORS, MAX_NAMED = 0.1, 3
"""Number of processors above which a program is named, and maximum number of named programs."""

PASSING_RATIO = 1.5
"""Ratio of the present use and the load of the last minute above which a load has just started or ended."""


@dataclass(frozen=True, kw_only=True)
class MachineUse:
    """How busy other programs keep this machine.

    Attributes:
        processors: number of processors that they use on average.
        share: share of all processors that they use, 0 to 1.
        load: load average over the last minute.
        programs: names of the programs with the highest use, the busiest first; empty if the system does not report
            them.
    """

    processors: float = 0.0
    share: float = 0.0
    load: float = 0.0
    programs: tuple[str, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """Whether a measurement would be undisturbed."""
        return self.processors <= QUIET_PROCESSORS

    @property
    def is_passing(self) -> bool:
        """Whether the present load differs from that of the last minute, so that quiet may be near."""
        return not self.is_quiet and not self.load / PASSING_RATIO < self.processors < self.load * PASSING_RATIO

    @property
    def description(self) -> str:
        """Description of the use, to continue after a colon."""
        named = f" ({', '.join(self.programs)})" if self.programs else ""
        return f"other programs use about {units.format_processor_share(self.share)}{named}"


class UseMeter:
    """Reads how busy other programs keep the machine; each reading covers the time since the previous one."""

    def __init__(self) -> None:
        """Make a first reading."""
        self._load, self._read_at, self._used = LoadMeter(), time.monotonic(), _read_programs()

    def read(self) -> MachineUse:
        """Return the use since the last call; that of a quiet machine if the system does not report it."""
        reading, used, now = self._load.read(), _read_programs(), time.monotonic()
        passed_s = max(now - self._read_at, 1e-9)
        spent: dict[str, float] = {}
        for pid, (name, seconds) in used.items():
            since_s = max(0.0, seconds - self._used.get(pid, ("", seconds))[1])
            spent[name] = spent.get(name, 0.0) + since_s / passed_s
        self._read_at, self._used = now, used
        share = reading.other_use or 0.0
        busiest = sorted(spent, key=spent.__getitem__, reverse=True)[:MAX_NAMED]
        named = [name for name in busiest if spent[name] >= NAMED_PROCESSORS]
        return MachineUse(
            processors=share * (psutil.cpu_count() or 1), share=share, load=reading.load, programs=tuple(named)
        )


def _read_programs() -> dict[int, tuple[str, float]]:
    """Return process id → name and processor seconds, for processes other than this one and its children."""
    found, own = dict[int, tuple[str, float]](), {os.getpid()}
    with contextlib.suppress(psutil.Error):
        own |= {child.pid for child in psutil.Process().children(recursive=True)}
    for member in psutil.process_iter(["name", "cpu_times"]):
        times = member.info["cpu_times"]
        if member.pid not in own and times is not None and member.info["name"]:
            found[member.pid] = (member.info["name"], times.user + times.system)
    return found


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
        documents.write_json(self._entry, asdict(serving))

    def leave(self, process: Process) -> None:
        """Write down that `process` does not serve any more; nothing if somebody else serves by now."""
        serving = self.serving
        if serving and serving.process == process:
            self._entry.unlink(missing_ok=True)

    def report(self, machine: Machine, process: Process) -> None:
        """Publish what the worker found on this machine."""
        documents.write_json(self._machine, {**machine.to_json(), "process": asdict(process)})

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
