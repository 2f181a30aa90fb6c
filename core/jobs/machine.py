"""This machine for measurements: what the worker found on it, the lock that keeps measurements apart, and its uptime.

Plain data: the worker that imports torch fills it in, pages and the command line read it.
"""

import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

from filelock import BaseFileLock, FileLock, Timeout
from msgspec import Meta

from ..files.documents import Seconds
from ..results.environment import DeviceInfo, Environment
from ..results.store import LocalMachine
from . import process
from .process import ExecutionContext

LOCK_VARIABLE = "CROSSOVER_LOCK"
"""Environment variable that names another lock file: one for all who measure on a machine, or one for each test."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """This machine as the measuring process sees it.

    Attributes:
        environment: processor, memory, versions.
        devices: what PyTorch sees, the CPU first.
        startup_s: device → seconds of its first use in that process; empty until the machine was free to try.
        hint: why no accelerator is seen and what to do; empty when one is.
        surroundings: what that process had taken over from who started it; None where it does not say.
        loading_s: seconds until that process had loaded PyTorch and looked around; 0 where it does not say.
        live: whether the process that said so still runs; what an ended one said is the last that is known.
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
        """Device → the name that it gives itself."""
        return {info.device: info.name for info in self.devices}

    @property
    def refusals(self) -> dict[str, Mapping[str, str]]:
        """Device → kind of lane → why the device does not have it."""
        return {info.device: info.refusals for info in self.devices}

    @property
    def local_machine(self) -> LocalMachine:
        """What would measure on this machine now, to look for what it measured before."""
        facts = self.environment
        return LocalMachine(
            machine_id=facts.machine_id, torch_version=facts.torch_version, device_names=self.device_names
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data; whether the machine is live is for the reader to find out."""
        data = asdict(self)
        del data["live"]
        return data


def measurement_lock() -> BaseFileLock:
    """The lock that whoever measures on this machine holds, whichever user, folder or checkout it is.

    The operating system gives it back when its holder dies, so it can never be left behind.
    """
    path = Path(os.environ.get(LOCK_VARIABLE) or _find_shared_folder() / "crossover-measurement.lock")
    return FileLock(path, mode=0o666)


def is_measuring() -> bool:
    """Whether somebody measures on this machine now; not where that cannot be found out."""
    lock = measurement_lock()
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


def _find_shared_folder() -> Path:
    """A folder that all users of the machine share: macOS and Windows give each user a temporary one of their own."""
    if sys.platform == "win32":
        return Path(os.environ.get("PROGRAMDATA") or tempfile.gettempdir())
    return Path("/tmp")


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A reading of the system's uptime.

    Attributes:
        boot: name of the start that it counts from.
        uptime_s: seconds since then.
    """

    boot: str
    uptime_s: Seconds

    @classmethod
    def read_clock(cls) -> Self:
        """The present moment."""
        return cls(boot=process.boot(), uptime_s=time.monotonic())

    @property
    def ago_s(self) -> float | None:
        """Seconds that passed since; None if the system was started anew, or the moment is yet to come."""
        passed_s = time.monotonic() - self.uptime_s
        return passed_s if self.boot == process.boot() and passed_s >= 0 else None
