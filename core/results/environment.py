"""Frozen facts of the machine and its versions, and readings of how busy it is. No host name, no user name.

Plain system calls: torch is not imported, its version is read from its metadata. Devices other than the host
are described by `core.devices`, which fills in `DeviceInfo`.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from core import __version__

PROJECT = Path(__file__).parents[2]

QUOTA_FILES = ("sys/fs/cgroup/cpu.max", "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "sys/fs/cgroup/cpu/cpu.cfs_period_us")
"""Processor quota of a container: version 2 in one file, version 1 in two."""

GIT_TIMEOUT_S = 5


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The machine as the columns of a row; see `core.results.schema.Trial` for each field."""

    machine_id: str
    cpu_name: str
    cores: int
    cores_usable: int
    memory_bytes: int
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
        kind: `cpu`, `cuda`, `rocm`, `xpu` or `mps`.
        name: the device's own name.
        memory_bytes: its memory; the host's for a CPU.
        driver: driver and runtime; empty for a CPU.
    """

    device: str
    kind: str
    name: str
    memory_bytes: int
    driver: str = ""


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
        self._process = psutil.Process()
        self._ticks, self._switches = _ticks(), self._involuntary()

    def read(self) -> LoadReading:
        """The load since the last call."""
        (stolen, total), switches = _ticks(), self._involuntary()
        before_stolen, before_total = self._ticks
        passed, new = total - before_total, switches - self._switches
        self._ticks, self._switches = (stolen, total), switches
        steal = (stolen - before_stolen) / passed if passed > 0 else 0.0
        return LoadReading(load=psutil.getloadavg()[0], steal=steal, switches=new)

    def _involuntary(self) -> int:
        return int(self._process.num_ctx_switches().involuntary)


@functools.cache
def read() -> Environment:
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
        omp_wait_policy=os.environ.get("OMP_WAIT_POLICY", ""),
    )


def machine_id(cpu_name: str, cores: int, cores_usable: int, memory_bytes: int, system: str) -> str:
    """Twelve hexadecimal digits that name a machine by what it is, not by what it is called."""
    facts = "|".join((cpu_name, str(cores), str(cores_usable), str(round(memory_bytes / 2**30)), system))
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


def usable_cores(root: Path = Path("/")) -> int:
    """Processor threads that affinity and a container's quota leave to this process, at least 1.

    Args:
        root: of the file system in which the quota is looked up.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1
    quota = _quota(root)
    return max(1, min(allowed, round(quota)) if quota else allowed)


def _quota(root: Path) -> float | None:
    """Processors that a cgroup grants; None where it sets no limit."""
    v2, v1_quota, v1_period = (root / name for name in QUOTA_FILES)
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        if v2.exists():
            quota, period = v2.read_text().split()
            return None if quota == "max" else int(quota) / int(period)
        granted = int(v1_quota.read_text())
        return granted / int(v1_period.read_text()) if granted > 0 else None
    return None


def _ticks() -> tuple[float, float]:
    """Seconds of processor time stolen by other guests, and in total, since the machine started."""
    times = psutil.cpu_times()
    return float(getattr(times, "steal", 0.0)), float(sum(times))


def _cpu_name() -> str:
    system = platform.system()
    if system == "Linux":
        with contextlib.suppress(OSError):
            for line in Path("/proc/cpuinfo").read_text().splitlines():
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
    commit = _output("git", "-C", str(folder), "rev-parse", "--short=12", "HEAD")
    changed = commit and _output("git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no")
    return f"{commit}+" if changed else commit


def _output(*command: str) -> str:
    """What a command prints; empty where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
