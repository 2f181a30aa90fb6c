"""Frozen facts of the machine and its versions, and readings of how busy it is. No host name, no user name.

Plain system calls: torch is not imported, its version is read from its metadata. Devices other than the host
are described by `core.measure.devices`, which fills in `DeviceInfo`.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated

import psutil
from msgspec import Meta

from .. import __version__
from ..files.documents import Count
from ..files.project import PROJECT
from ..question.devices import DEVICE_KINDS
from .validation import FORMS

if sys.platform != "win32":
    import resource

CGROUPS = ("sys/fs/cgroup", "sys/fs/cgroup/cpu")
"""Where the groups that limit processor time are mounted: version 2, and the controller of version 1."""

GIT_TIMEOUT_S = 5

MOST_CORES = 2**16
"""Processor threads beyond which a file that tells of a machine is not believed."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The machine as the columns of a row; see `core.results.schema.Trial` for each field."""

    machine_id: str
    cpu_name: str
    cores: Annotated[int, Meta(ge=1, le=MOST_CORES)]
    cores_usable: Annotated[int, Meta(ge=1, le=MOST_CORES)]
    memory_bytes: Count
    system: str
    python_version: str
    torch_version: str
    torchvision_version: str
    app_version: str
    app_commit: str
    omp_wait_policy: str


@dataclass(frozen=True, kw_only=True)
class DeviceInfo:
    """Facts of one device.

    Attributes:
        device: `cpu`, `cuda:0`, `xpu:0` or `mps`.
        kind: key of `DEVICE_KINDS`.
        name: the device's own name.
        memory_bytes: its memory; the host's for a CPU.
        driver: driver and runtime; empty for a CPU.
        refusals: kind of lane that it does not have → why, in words; see `core.question.lanes`.
    """

    device: Annotated[str, Meta(pattern=f"^({FORMS['device'].pattern})$")]
    kind: Annotated[str, Meta(pattern=f"^({'|'.join(DEVICE_KINDS)})$")]
    name: str
    memory_bytes: Count
    driver: str = ""
    refusals: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class LoadReading:
    """How busy the machine was.

    Attributes:
        load: load average over one minute.
        steal: share of processor time that other guests of the host took since the reading before; 0 where unknown.
        switches: involuntary context switches of this process since the reading before.
    """

    load: float
    steal: float
    switches: int


class LoadMeter:
    """Reads the load; each reading covers the time since the one before."""

    def __init__(self) -> None:
        """Begin with a first reading."""
        self._ticks, self._switches = _ticks(), _switches()

    def read(self) -> LoadReading:
        """The load since the last call."""
        (stolen, total), switches = _ticks(), _switches()
        before_stolen, before_total = self._ticks
        passed, new = total - before_total, switches - self._switches
        self._ticks, self._switches = (stolen, total), switches
        # some hypervisors take stolen time back
        steal = max(0.0, (stolen - before_stolen) / passed) if passed > 0 else 0.0
        return LoadReading(load=psutil.getloadavg()[0], steal=steal, switches=new)


@functools.cache
def read_environment() -> Environment:
    """The environment of this process, read once."""
    cpu_name, cores, memory_bytes = _cpu_name(), psutil.cpu_count() or 1, int(psutil.virtual_memory().total)
    system = f"{platform.system()} {platform.machine()}"
    usable = usable_cores()
    return Environment(
        machine_id=machine_id(cpu_name, cores, usable, memory_bytes, system),
        cpu_name=cpu_name,
        cores=cores,
        cores_usable=usable,
        memory_bytes=memory_bytes,
        system=system,
        python_version=platform.python_version(),
        torch_version=_version("torch"),
        torchvision_version=_version("torchvision"),
        app_version=__version__,
        app_commit=_commit(PROJECT),
        omp_wait_policy=_waiting(),
    )


def _waiting() -> str:
    """How idle OpenMP threads of this process wait: the policy, and how often they look for work before they sleep."""
    policy, looks = (os.environ.get(name, "") for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"))
    return f"{policy}, GOMP_SPINCOUNT={looks}" if looks else policy


def machine_id(cpu_name: str, cores: int, cores_usable: int, memory_bytes: int, system: str) -> str:
    """Twelve hexadecimal digits that name a machine by what it is, not by what it is called."""
    facts = "|".join((cpu_name, str(cores), str(cores_usable), str(round(memory_bytes / 2**30)), system))
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


def usable_cores(root: Path = Path("/")) -> int:
    """Processor threads that affinity and a container's quota leave to this process, at least 1.

    Args:
        root: of the file system in which the quota is looked up.
    """
    allowed, quota = _count_allowed_threads(), _quota(root)
    return allowed if quota is None else max(1, min(allowed, int(quota)))


def physical_cores(root: Path = Path("/")) -> int:
    """Processor cores among the usable threads, as far as the system tells which threads share one, at least 1.

    Args:
        root: of the file system in which the cores are looked up.
    """
    shared = set()
    with contextlib.suppress(OSError):
        for thread in processors() or range(psutil.cpu_count() or 1):
            shared.add((root / f"sys/devices/system/cpu/cpu{thread}/topology/thread_siblings_list").read_text())
    cores = len(shared) or psutil.cpu_count(logical=False) or 1
    return min(cores, usable_cores(root))


def _count_allowed_threads() -> int:
    """Processor threads that affinity leaves to this process; all where the system has none."""
    return len(processors()) or psutil.cpu_count() or 1


def processors() -> Sequence[int]:
    """Numbers of the processor threads that this process may run on; empty where the system has no such thing."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return psutil.Process().cpu_affinity() if sys.platform == "win32" else ()


def _quota(root: Path) -> float | None:
    """Processors that the groups of this process grant, the tightest of them; None where none sets a limit.

    Rounded down by the caller: threads beyond a quota are paused together, in the middle of a block.
    """
    grants = [grant for folder in _groups(root) if (grant := _grant(folder)) is not None]
    return min(grants, default=None)


def _groups(root: Path) -> Iterator[Path]:
    """Folders of the groups of this process and of those above it, of both versions; not all need to exist."""
    own = {""}
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, _, controllers_and_path = line.partition(":")
            controllers, _, path = controllers_and_path.partition(":")
            if not controllers or "cpu" in controllers.split(","):
                own.add(path.strip("/"))
    for path in own:
        for group in (PurePosixPath(path), *PurePosixPath(path).parents):
            yield from (root / mount / group for mount in CGROUPS)


def _grant(group: Path) -> float | None:
    """Processors that one group grants; None where it sets no limit or is not there."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        return None if quota in ("max", "-1") else int(quota) / int(period)
    return None


def _ticks() -> tuple[float, float]:
    """Seconds of processor time stolen by other guests, and in total, since the machine started."""
    times = psutil.cpu_times()
    return float(getattr(times, "steal", 0.0)), float(sum(times))


def _switches() -> int:
    """Involuntary context switches of all threads of this process so far; 0 on Windows, which does not count them."""
    if sys.platform == "win32":
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _cpu_name(root: Path = Path("/")) -> str:
    system = platform.system()
    if system == "Linux":
        with contextlib.suppress(OSError):
            for line in (root / "proc/cpuinfo").read_text().splitlines():
                if line.startswith(("model name", "Model")):
                    return line.partition(":")[2].strip()
    if system == "Darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _commit(folder: Path) -> str:
    """The commit of the code, with `+` where tracked files were changed; empty outside a checkout."""
    if not (folder / ".git").exists():  # git would answer for a checkout around ours
        return ""
    describe = ("describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+")
    return _output("git", "--no-optional-locks", "-C", str(folder), *describe)


def _output(*command: str) -> str:
    """What a command prints; empty where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
