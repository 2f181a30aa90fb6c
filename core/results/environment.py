"""Frozen facts of the machine and its versions, and readings of how busy it is. No host name, no user name.

Plain system calls: torch is not imported, its version is read from its metadata. Devices other than the host
are described by `core.measure.devices`, which fills in `DeviceInfo`.
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
from ..question.devices import DEVICE_KINDS
from .validation import FORMS

if sys.platform != "win32":
    import resource

CGROUPS = ("sys/fs/cgroup", "sys/fs/cgroup/cpu")
"""Where the groups that limit processor time are mounted: version 2, and the controller of version 1."""

SYSCTL_TIMEOUT_S = 5

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
        refusals: kind of unsupported variant → the reason, in words; see `core.question.lanes`.
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
        switches: involuntary context switches of this process since the reading before; None where not counted.
        waiting: threads of this process that were ready to run and waited for a processor, on average since then; None
            where the system does not count it.
        other_use: share of all processors that other programs and guests used since then; this process and all that it
            started are no others. None where the system does not tell.
    """

    load: float
    steal: float
    switches: int | None
    waiting: float | None = None
    other_use: float | None = None


class LoadMeter:
    """Reads the load; each reading covers the time since the one before."""

    def __init__(self) -> None:
        """Begin with a first reading."""
        self._ticks, self._switches, self._waits, self._family = _ticks(), _switches(), _waits(), _ProcessTree()
        self._own_s, self._read_at = self._family.processor_s(), time.monotonic()

    def read(self) -> LoadReading:
        """Return the load since the last call."""
        (stolen, total, busy), switches, waits = _ticks(), _switches(), _waits()
        own_s, now = self._family.processor_s(), time.monotonic()
        before_stolen, before_total, before_busy = self._ticks
        passed, elapsed_s = total - before_total, now - self._read_at
        new = None if switches is None or self._switches is None else switches - self._switches
        # some hypervisors take stolen time back
        steal = max(0.0, (stolen - before_stolen) / passed) if passed > 0 else 0.0
        other_s = None if busy is None or before_busy is None else busy - before_busy - (own_s - self._own_s)
        other_use = None if other_s is None else min(1.0, max(0.0, other_s / passed)) if passed > 0 else 0.0
        waiting = None if waits is None else _count_waiting(self._waits or {}, waits, elapsed_s)
        self._ticks, self._switches, self._waits = (stolen, total, busy), switches, waits
        self._own_s, self._read_at = own_s, now
        return LoadReading(load=psutil.getloadavg()[0], steal=steal, switches=new, waiting=waiting, other_use=other_use)


FAMILY_S = 2.0
"""How long it is believed which processes this one has started; to look for them takes milliseconds."""


class _ProcessTree:
    """The processor time of this process and of all that it started."""

    def __init__(self) -> None:
        self._children: list[psutil.Process] = []
        self._found_at = -math.inf

    def processor_s(self) -> float:
        """Return seconds of processor time so far; those of processes that ended count once they were waited for."""
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
    """Return the environment of this process, read once."""
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
    """Return how idle OpenMP threads of this process wait: the policy, and for how long they spin before they sleep.

    GNU's runtime, which PyTorch has on Linux, counts looks; Intel's on Windows and LLVM's on macOS count milliseconds.
    """
    limit = "GOMP_SPINCOUNT" if sys.platform == "linux" and not _has_preloaded_openmp() else "KMP_BLOCKTIME"
    policy, looks = (os.environ.get(name, "") for name in ("OMP_WAIT_POLICY", limit))
    return f"{policy}, {limit}={looks}" if looks else policy


def _has_preloaded_openmp() -> bool:
    """Return whether another OpenMP runtime than GNU's was preloaded."""
    return "omp5" in os.environ.get("LD_PRELOAD", "")


def machine_id(
    cpu_name: str, cores: int, cores_usable: int, memory_bytes: int, system: str, *, gpus: Sequence[str] = ()
) -> str:
    """Return twelve hexadecimal digits that identify a machine by its hardware, not by its name."""
    facts = (cpu_name, str(cores), str(cores_usable), str(round(memory_bytes / 2**30)), system, *gpus)
    return hashlib.sha256("|".join(facts).encode()).hexdigest()[:12]


def _read_gpus(root: Path = Path("/")) -> list[str]:
    """Return names of the GPUs that NVIDIA's driver or AMD's kernel module has, sorted; empty without either."""
    found = [f"AMD {node.read_text(encoding='ascii').strip()}" for node in _find_amd_models(root)]
    with contextlib.suppress(Exception):  # there are no bindings or no driver, or it refuses
        import pynvml

        pynvml.nvmlInit()
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        found += [str(pynvml.nvmlDeviceGetName(handle)) for handle in handles]
    return sorted(found)


def _find_amd_models(root: Path) -> list[Path]:
    """Return files with the model numbers of AMD GPUs that can compute."""
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
        root: of the file system in which the quota is looked up.
    """
    allowed, quota = _count_allowed_threads(), _quota(root)
    return allowed if quota is None else max(1, min(allowed, int(quota)))


_DRIVERS = ("nvidiactl", "nvhost-ctrl", "nvmap", "kfd", "dxg", "dri", "accel")
"""Files in /dev by drivers of accelerators: NVIDIA's, of Jetson boards, AMD's, WSL's, Intel's."""


def has_accelerator_driver(devices: Path = Path("/dev")) -> bool:
    """Return whether the system may have an accelerator; only Linux says that it has none."""
    return sys.platform != "linux" or any((devices / name).exists() for name in _DRIVERS)


def physical_cores(root: Path = Path("/")) -> int:
    """Processor cores among the usable threads, as far as the system tells which threads share one, at least 1.

    Args:
        root: of the file system in which the cores are looked up.
    """
    cores = (
        len(_list_cores(root, processors() or range(psutil.cpu_count() or 1))) or psutil.cpu_count(logical=False) or 1
    )
    return min(cores, usable_cores(root))


def performance_cores(root: Path = Path("/")) -> int:
    """Count the fast cores of a processor that has slower ones too; 0 where the system tells of no such difference.

    Args:
        root: of the file system in which the cores are looked up.
    """
    if sys.platform == "darwin":
        told = _output("sysctl", "-n", "hw.perflevel0.physicalcpu")
        return min(int(told), usable_cores(root)) if told.isdecimal() else 0
    with contextlib.suppress(OSError, ValueError):
        fast = _parse_numbers((root / "sys/devices/cpu_core/cpus").read_text(encoding="ascii"))
        return min(len(_list_cores(root, fast)), usable_cores(root))
    return 0


def socket_cores(root: Path = Path("/")) -> int:
    """Count the cores of the socket that has most of the usable ones; 0 where the system does not tell.

    Args:
        root: of the file system in which the cores are looked up.
    """
    sockets: dict[str, list[int]] = {}
    with contextlib.suppress(OSError):
        for thread in processors():
            place = root / f"sys/devices/system/cpu/cpu{thread}/topology/physical_package_id"
            sockets.setdefault(place.read_text(encoding="ascii"), []).append(thread)
    most = max((len(_list_cores(root, threads)) for threads in sockets.values()), default=0)
    return min(most, usable_cores(root))


def _list_cores(root: Path, threads: Iterable[int]) -> set[str]:
    """Return names of the cores of some processor threads, as far as the system tells which threads share one."""
    cores = set()
    with contextlib.suppress(OSError):
        for thread in threads:
            cores.add((root / f"sys/devices/system/cpu/cpu{thread}/topology/thread_siblings_list").read_text())
    return cores


def _parse_numbers(text: str) -> list[int]:
    """Return numbers that Linux writes as `0-3,8`; raises ValueError."""
    ends = [part.partition("-") for part in text.strip().split(",") if part]
    return [number for low, _, high in ends for number in range(int(low), int(high or low) + 1)]


def _count_allowed_threads() -> int:
    """Return the processor threads that affinity leaves to this process; all where the system has none."""
    return len(processors()) or psutil.cpu_count() or 1


def processors() -> Sequence[int]:
    """Return numbers of the processor threads that this process may run on.

    Empty where the system has no such thing.
    """
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return psutil.Process().cpu_affinity() if sys.platform == "win32" else ()


def _quota(root: Path) -> float | None:
    """Return the processors that the groups of this process grant, the tightest of them; None without a limit.

    Rounded down by the caller: threads beyond a quota are paused together, in the middle of a block.
    """
    grants = [grant for folder in _groups(root) if (grant := _grant(folder)) is not None]
    return min(grants, default=None)


def _groups(root: Path) -> Iterator[Path]:
    """Yield the folders of the cgroups of this process and those above, of both versions; some may not exist."""
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
    """Return the processors that one group grants; None where it sets no limit or is not there."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        return None if quota in ("max", "-1") else int(quota) / int(period)
    return None


IDLE = ("idle", "iowait", "guest", "guest_nice")
"""Fields of the system's processor times that are no work, or are part of another one."""


def _ticks() -> tuple[float, float, float | None]:
    """Return the seconds of processor time stolen by other guests, in total, and of work, since the machine started."""
    times = psutil.cpu_times()
    named: dict[str, float] = getattr(times, "_asdict", dict)()
    busy = sum(seconds for name, seconds in named.items() if name not in IDLE) if "idle" in named else None
    return float(getattr(times, "steal", 0.0)), float(sum(times)), busy


def _waits(folder: Path = Path("/proc/self/task")) -> dict[str, int] | None:
    """Nanoseconds for which each thread of this process was ready to run and waited; None where it is not counted."""
    waits = {}
    try:
        for thread in folder.iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                waits[thread.name] = int((thread / "schedstat").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return waits or None


def _count_waiting(before: Mapping[str, int], waits: Mapping[str, int], elapsed_s: float) -> float:
    """Return how many threads waited for a processor on average."""
    waited_ns = sum(max(0, now - before.get(thread, 0)) for thread, now in waits.items())
    return waited_ns / 1e9 / elapsed_s if elapsed_s > 0 else 0.0


def _switches() -> int | None:
    """Involuntary context switches of all threads of this process so far; None where the system does not count them.

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
    """Return the output of a command; empty where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SYSCTL_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
