"""Constant facts of the machine and its versions, and readings of its load, without host name and user name.

Only system calls are used: torch is not imported, and its version is read from its metadata. Devices other than the
host are described by `core.measure.devices`, which fills in `DeviceInfo`.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated

import psutil
from msgspec import Meta

from .. import __version__
from ..files.documents import Count
from ..files.project import find_origin
from ..question.lanes import DEVICE_KINDS
from .validation import FORMS

if sys.platform != "win32":
    import resource

CGROUPS = ("sys/fs/cgroup", "sys/fs/cgroup/cpu")
"""Mount points of the cgroups that limit processor time: version 2, and the controller of version 1."""

SYSCTL_TIMEOUT_S = 5

MOST_CORES = 2**16
"""Maximum number of processor threads that is accepted from a file that describes a machine."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The machine in the form of the columns of a row; see `core.results.schema.Trial` for each field."""

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
        memory_bytes: memory of the device, or of the host for a CPU.
        driver: driver and runtime; empty for a CPU.
        refusals: kind of unsupported variant → reason in words; see `core.question.lanes`.
    """

    device: Annotated[str, Meta(pattern=f"^({FORMS['device'].pattern})$")]
    kind: Annotated[str, Meta(pattern=f"^({'|'.join(DEVICE_KINDS)})$")]
    name: str
    memory_bytes: Count
    driver: str = ""
    refusals: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class LoadReading:
    """Load of the machine.

    Attributes:
        load: load average over one minute.
        steal: share of processor time that other guests of the host used since the previous reading; 0 if unknown.
        switches: involuntary context switches of this process since the previous reading; None if not counted.
        waiting: average number of threads of this process that were ready and waited for a processor since then; None
            if the system does not count them.
        other_use: share of all processors that other programs and guests used since then, excluding this process and
            its descendants; None if unknown.
    """

    load: float
    steal: float
    switches: int | None
    waiting: float | None = None
    other_use: float | None = None


class LoadMeter:
    """Reads the load; each reading covers the time since the previous one."""

    def __init__(self) -> None:
        """Take a first reading."""
        self._ticks, self._switches, self._waits, self._family = _ticks(), _switches(), _waits(), _ProcessTree()
        self._own_s, self._read_at = self._family.processor_s(), time.monotonic()

    def read(self) -> LoadReading:
        """Return the load since the last call."""
        (stolen, total, busy), switches, waits = _ticks(), _switches(), _waits()
        own_s, now = self._family.processor_s(), time.monotonic()
        before_stolen, before_total, before_busy = self._ticks
        passed, elapsed_s = total - before_total, now - self._read_at
        new = None if switches is None or self._switches is None else switches - self._switches
        # some hypervisors decrease the stolen time again
        steal = max(0.0, (stolen - before_stolen) / passed) if passed > 0 else 0.0
        other_s = None if busy is None or before_busy is None else busy - before_busy - (own_s - self._own_s)
        other_use = None if other_s is None else min(1.0, max(0.0, other_s / passed)) if passed > 0 else 0.0
        waiting = None if waits is None else _count_waiting(self._waits or {}, waits, elapsed_s)
        self._ticks, self._switches, self._waits = (stolen, total, busy), switches, waits
        self._own_s, self._read_at = own_s, now
        return LoadReading(load=psutil.getloadavg()[0], steal=steal, switches=new, waiting=waiting, other_use=other_use)


FAMILY_S = 2.0
"""Seconds for which the list of processes started by this one is reused; a search takes milliseconds."""


class _ProcessTree:
    """Processor time of this process and of all processes that it started."""

    def __init__(self) -> None:
        self._children: list[psutil.Process] = []
        self._found_at = -math.inf

    def processor_s(self) -> float:
        """Return the seconds of processor time so far; ended processes are included once they were waited for."""
        if time.monotonic() - self._found_at > FAMILY_S:
            with contextlib.suppress(psutil.Error):
                self._children = psutil.Process().children(recursive=True)
            self._found_at = time.monotonic()
        own = os.times()
        total = own.user + own.system + own.children_user + own.children_system
        for child in self._children:
            with contextlib.suppress(psutil.Error):
                used = child.cpu_times()
                total += used.user + used.system
        return total


@functools.cache
def read_environment() -> Environment:
    """Return the environment of this process, which is read once."""
    cpu_name, cores, memory_bytes = _cpu_name(), psutil.cpu_count() or 1, int(psutil.virtual_memory().total)
    system = f"{platform.system()} {platform.machine()}{' WSL' if 'microsoft' in platform.release().lower() else ''}"
    usable = usable_cores()
    return Environment(
        machine_id=machine_id(cpu_name, cores, usable, memory_bytes, system, gpus=_read_gpus()),
        cpu_name=cpu_name,
        cores=cores,
        cores_usable=usable,
        memory_bytes=memory_bytes,
        system=system,
        python_version=platform.python_version(),
        torch_version=_version("torch"),
        torchvision_version=_version("torchvision"),
        app_version=__version__,
        app_commit=find_origin().commit,
        omp_wait_policy=_waiting(),
    )


def _waiting() -> str:
    """Return how idle OpenMP threads of this process wait: the policy, and how long they spin before they sleep.

    GNU's runtime, which PyTorch uses on Linux, counts spins; Intel's on Windows and LLVM's on macOS count milliseconds.
    """
    limit = "GOMP_SPINCOUNT" if sys.platform == "linux" and not _has_preloaded_openmp() else "KMP_BLOCKTIME"
    policy, looks = (os.environ.get(name, "") for name in ("OMP_WAIT_POLICY", limit))
    return f"{policy}, {limit}={looks}" if looks else policy


def _has_preloaded_openmp() -> bool:
    """Return whether an OpenMP runtime other than GNU's was preloaded."""
    return "omp5" in os.environ.get("LD_PRELOAD", "")


def machine_id(
    cpu_name: str, cores: int, cores_usable: int, memory_bytes: int, system: str, *, gpus: Sequence[str] = ()
) -> str:
    """Return twelve hexadecimal digits that identify a machine by its hardware, not by its name."""
    facts = (cpu_name, str(cores), str(cores_usable), str(round(memory_bytes / 2**30)), system, *gpus)
    return hashlib.sha256("|".join(facts).encode()).hexdigest()[:12]


def _read_gpus(root: Path = Path("/")) -> list[str]:
    """Return the sorted names of the GPUs of NVIDIA's driver or AMD's kernel module; empty without either."""
    found = [f"AMD {node.read_text(encoding='ascii').strip()}" for node in _find_amd_models(root)]
    with contextlib.suppress(Exception):  # no bindings or no driver, or an error of the driver
        import pynvml

        pynvml.nvmlInit()
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        found += [str(pynvml.nvmlDeviceGetName(handle)) for handle in handles]
    return sorted(found)


def _find_amd_models(root: Path) -> list[Path]:
    """Return the files with the model numbers of AMD GPUs that can compute."""
    if not (root / "dev/kfd").exists():
        return []
    cards = root.glob("sys/class/drm/card*/device")
    return [card / "device" for card in cards if (card / "device").is_file() and _is_amd(card / "vendor")]


def _is_amd(vendor: Path) -> bool:
    with contextlib.suppress(OSError):
        return vendor.read_text(encoding="ascii").strip() == "0x1002"
    return False


def usable_cores(root: Path = Path("/")) -> int:
    """Return the processor threads that affinity and a container's quota leave to this process, at least 1.

    Args:
        root: root of the file system in which the quota is looked up.
    """
    allowed, quota = _count_allowed_threads(), _quota(root)
    return allowed if quota is None else max(1, min(allowed, int(quota)))


_DRIVERS = ("nvidiactl", "nvhost-ctrl", "nvmap", "kfd", "dxg", "dri", "accel")
"""Files in /dev of accelerator drivers: NVIDIA, Jetson boards, AMD, WSL, Intel."""


def has_accelerator_driver(devices: Path = Path("/dev")) -> bool:
    """Return whether the system may have an accelerator; always true on systems other than Linux."""
    return sys.platform != "linux" or any((devices / name).exists() for name in _DRIVERS)


def physical_cores(root: Path = Path("/")) -> int:
    """Return the number of cores of the usable threads, as far as the system reports shared cores, at least 1.

    Args:
        root: root of the file system in which the cores are looked up.
    """
    cores = (
        len(_list_cores(root, processors() or range(psutil.cpu_count() or 1))) or psutil.cpu_count(logical=False) or 1
    )
    return min(cores, usable_cores(root))


def performance_cores(root: Path = Path("/")) -> int:
    """Return the number of fast cores of a processor that also has slower ones; 0 if the system reports no difference.

    Args:
        root: root of the file system in which the cores are looked up.
    """
    if sys.platform == "darwin":
        told = _output("sysctl", "-n", "hw.perflevel0.physicalcpu")
        return min(int(told), usable_cores(root)) if told.isdecimal() else 0
    with contextlib.suppress(OSError, ValueError):
        fast = _parse_numbers((root / "sys/devices/cpu_core/cpus").read_text(encoding="ascii"))
        return min(len(_list_cores(root, fast)), usable_cores(root))
    return 0


def socket_cores(root: Path = Path("/")) -> int:
    """Return the number of usable cores in the socket with the most of them; 0 if the system does not report it.

    Args:
        root: root of the file system in which the cores are looked up.
    """
    sockets: dict[str, list[int]] = {}
    with contextlib.suppress(OSError):
        for thread in processors():
            place = root / f"sys/devices/system/cpu/cpu{thread}/topology/physical_package_id"
            sockets.setdefault(place.read_text(encoding="ascii"), []).append(thread)
    most = max((len(_list_cores(root, threads)) for threads in sockets.values()), default=0)
    return min(most, usable_cores(root))


def _list_cores(root: Path, threads: Iterable[int]) -> set[str]:
    """Return the names of the cores of some processor threads, as far as the system reports shared cores."""
    cores = set()
    with contextlib.suppress(OSError):
        for thread in threads:
            cores.add((root / f"sys/devices/system/cpu/cpu{thread}/topology/thread_siblings_list").read_text())
    return cores


def _parse_numbers(text: str) -> list[int]:
    """Parse a list of numbers in the form `0-3,8` of Linux; raises ValueError."""
    ends = [part.partition("-") for part in text.strip().split(",") if part]
    return [number for low, _, high in ends for number in range(int(low), int(high or low) + 1)]


def _count_allowed_threads() -> int:
    """Return the number of processor threads that affinity allows this process; all if the system has no affinity."""
    return len(processors()) or psutil.cpu_count() or 1


def processors() -> Sequence[int]:
    """Return the numbers of the processor threads on which this process may run.

    The result is empty if the system does not support affinity.
    """
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return psutil.Process().cpu_affinity() if sys.platform == "win32" else ()


def _quota(root: Path) -> float | None:
    """Return the smallest processor limit of the cgroups of this process; None without a limit.

    The caller rounds down, because threads beyond a quota are paused together, in the middle of a block.
    """
    grants = [grant for folder in _groups(root) if (grant := _grant(folder)) is not None]
    return min(grants, default=None)


def _groups(root: Path) -> Iterator[Path]:
    """Yield the folders of the cgroups of this process and their parents, of both versions; some may not exist."""
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
    """Return the processors that one cgroup allows; None if it sets no limit or does not exist."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        return None if quota in ("max", "-1") else int(quota) / int(period)
    return None


IDLE = ("idle", "iowait", "guest", "guest_nice")
"""Fields of the system's processor times that are not work, or are included in another field."""


def _ticks() -> tuple[float, float, float | None]:
    """Return the seconds of stolen, total and working processor time since the machine started."""
    times = psutil.cpu_times()
    named: dict[str, float] = getattr(times, "_asdict", dict)()
    busy = sum(seconds for name, seconds in named.items() if name not in IDLE) if "idle" in named else None
    return float(getattr(times, "steal", 0.0)), float(sum(times)), busy


def _waits(folder: Path = Path("/proc/self/task")) -> dict[str, int] | None:
    """Return the nanoseconds that each thread of this process was ready and waited; None if they are not counted."""
    waits = {}
    try:
        for thread in folder.iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                waits[thread.name] = int((thread / "schedstat").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return waits or None


def _count_waiting(before: Mapping[str, int], waits: Mapping[str, int], elapsed_s: float) -> float:
    """Return the average number of threads that waited for a processor."""
    waited_ns = sum(max(0, now - before.get(thread, 0)) for thread, now in waits.items())
    return waited_ns / 1e9 / elapsed_s if elapsed_s > 0 else 0.0


def _switches() -> int | None:
    """Return the involuntary context switches of all threads of this process so far; None if not counted.

    Windows has no such number. On macOS it includes almost all switches, so every thread
    that waits counts (`calcru` in bsd/kern/kern_resource.c of XNU).
    """
    if sys.platform in ("win32", "darwin"):
        return None
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


def _output(*command: str) -> str:
    """Return the output of a command; empty if it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SYSCTL_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
