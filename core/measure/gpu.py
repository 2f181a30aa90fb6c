"""GPUs of this machine: telemetry around a block, and why a GPU is missing.

Telemetry is clocks, power, temperature, throttling and other processes. NVIDIA's GPUs are queried through NVML, and
AMD's through PyTorch's functions for AMD SMI, which comes with ROCm. Other GPUs have no telemetry. A GPU is identified
by its UUID or its place on the PCI bus, since its number depends on CUDA_VISIBLE_DEVICES. Each value that cannot be
read is None, and no refusal of a driver ever disturbs a measurement. Nothing is queried while a block is timed: the
GPU's own counters report what happened within it.

If an accelerator is not seen, or not supported by this PyTorch, sentences say why, and name the command that helps.
"""

import contextlib
import functools
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

HIDING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""Environment variables that hide some or all GPUs from a process."""

STATES = {
    9: "NVIDIA's library is installed, but its driver is not running: in a container, start it with the GPU "
    "(docker run --gpus all); elsewhere, load the driver.",
    18: "NVIDIA's driver was updated, but the old one is still running. Restart the machine.",
}
"""Explanation by NVML's error: NVML_ERROR_DRIVER_NOT_LOADED and NVML_ERROR_LIB_RM_VERSION_MISMATCH."""

WHEELS = "https://download.pytorch.org/whl"
"""Address of PyTorch's indexes, one for each build that is not on PyPI."""

BUILD, OLD_BUILD, OLDEST_DRIVER = "cu130", "cu126", (12, 0)
"""Builds for NVIDIA GPUs: with CUDA 13, and with CUDA 12.6 for drivers and GPUs that CUDA 13 does not support.

The third is the lowest CUDA version of a driver for which PyTorch 2.9 or later has a build.
"""

ROCM_BUILD, XPU_BUILD = "rocm7.2", "xpu"

OLDEST_CAPABILITY, TURING = (5, 0), (7, 5)
"""Lowest compute capabilities that PyTorch's builds with CUDA 12.6 and with CUDA 13 support."""

VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
"""PCI numbers of vendors, as Linux writes them."""

AMD_TOOLS = ("amd-smi", "rocm-smi", "rocminfo")

NOTEBOOK_HOSTS = {"COLAB_RELEASE_TAG": "Colab", "KAGGLE_KERNEL_RUN_TYPE": "Kaggle"}
"""Environment variables of notebook hosts whose Python already has a PyTorch for their GPU."""

_QUOTED = 40
"""Maximum number of quoted characters of a variable."""


def missing_gpu_hint() -> str:
    """Explain in a sentence or two why this process cannot use an accelerator; empty if it can."""
    if torch.accelerator.is_available():
        found = torch.accelerator.current_accelerator()
        cuda = found is not None and found.type == "cuda"
        return " ".join(filter(None, map(no_kernels, range(torch.accelerator.device_count() if cuda else 0))))
    vendors = _find_vendors()
    if sentence := _explain_notebook_host() or _explain_nvidia() or _explain_amd(vendors) or _explain_intel(vendors):
        return sentence
    if platform.system() == "Darwin":
        return "PyTorch sees no Apple GPU: MPS needs Apple silicon, macOS 14 or later and a native arm64 Python."
    if "NVIDIA" in vendors:
        return "An NVIDIA GPU is installed without NVIDIA's driver: install version 580 or later, then restart."
    return "PyTorch sees no GPU on this machine. If it has one, install its maker's driver, then restart."


def install_command(build: str) -> str:
    """Return the command that replaces PyTorch by another build, such as `cu126`; with uv if installed."""
    if shutil.which("uv"):
        return f"uv pip install --reinstall torch torchvision --torch-backend={build}"
    return f"pip install --force-reinstall torch torchvision --index-url {WHEELS}/{build}"


def _find_vendors(root: Path = Path("/")) -> set[str]:
    """Return the vendors of the GPUs that Linux sees, with or without installed tools."""
    found = {"AMD"} if (root / "dev/kfd").exists() else set[str]()
    for vendor in root.glob("sys/class/drm/card*/device/vendor"):
        with contextlib.suppress(OSError):
            found.add(VENDORS.get(vendor.read_text(encoding="ascii", errors="replace").strip(), ""))
    return found - {""}


def _explain_notebook_host() -> str:
    """Return why a virtual environment on a notebook host sees no GPU; empty elsewhere."""
    host = next((name for variable, name in NOTEBOOK_HOSTS.items() if os.environ.get(variable)), "")
    if not host or sys.prefix == sys.base_prefix:
        return ""
    return (
        f"This virtual environment hides the PyTorch that {host} has for its GPU. "
        f"Use {host}'s own Python, and install there: pip install -r requirements.txt"
    )


def _explain_amd(vendors: set[str]) -> str:
    """Return why an AMD GPU is not seen; empty without an AMD GPU or its tools."""
    if "AMD" not in vendors and not any(map(shutil.which, AMD_TOOLS)):
        return ""
    if torch.version.hip is None:
        what = "An AMD GPU is installed" if "AMD" in vendors else "An AMD driver is installed"
        return f"{what}, but this PyTorch is built without ROCm. Install one with it: {install_command(ROCM_BUILD)}"
    return _find_hiding_variable() or (
        "PyTorch cannot open the AMD GPU: it needs the kernel's driver (amdgpu) and access to /dev/kfd, "
        "which members of the groups render and video have."
    )


def _explain_intel(vendors: set[str]) -> str:
    """Return why an Intel GPU is not seen; empty without an Intel GPU."""
    if "Intel" not in vendors:
        return ""
    if getattr(torch.version, "xpu", None) is None:
        return (
            "An Intel GPU is installed, but this PyTorch is built without XPU, which trains on Arc and Core Ultra. "
            f"Install one with it: {install_command(XPU_BUILD)}"
        )
    return "PyTorch cannot use the Intel GPU: XPU needs Arc or Core Ultra graphics and Intel's compute runtime."


def no_kernels(index: int) -> str:
    """Return a sentence on why this PyTorch has no kernels for an NVIDIA or AMD GPU; empty if it has some."""
    built: Sequence[str] = ()
    with contextlib.suppress(RuntimeError, AssertionError):  # a card in trouble says so when it is used
        built, properties = torch.cuda.get_arch_list(), torch.cuda.get_device_properties(index)
    if not built:
        return ""
    if torch.version.hip:
        name = properties.gcnArchName.partition(":")[0]
        runs = name in built
    else:
        name = f"compute capability {properties.major}.{properties.minor}"
        runs = has_kernels((properties.major, properties.minor), built)
    if runs:
        return ""
    return (
        f"cuda:{index} ({properties.name}, {name}) is left out: this PyTorch has kernels for {', '.join(built)} only. "
        + ("Install a build with kernels for it." if torch.version.hip else _advise_build(properties))
    )


def _advise_build(properties: Any) -> str:
    """Return advice for an NVIDIA GPU without kernels in a build of PyTorch."""
    capability = properties.major, properties.minor
    if capability < OLDEST_CAPABILITY:
        return "No build of PyTorch 2.9 or later has kernels for it."
    build = OLD_BUILD if capability < TURING else BUILD
    return f"Install a build with kernels for it: {install_command(build)}"


def has_kernels(capability: tuple[int, int], built: Sequence[str]) -> bool:
    """Return whether any built kernel runs on an NVIDIA GPU.

    Machine code (`sm_86`) runs on GPUs of the same major version and the same or a higher minor version. Code for one
    architecture (`sm_90a`) runs only there. The intermediate code PTX (`compute_90`) is compiled for any later GPU.
    Source: https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/#gpu-compilation.
    """
    return any(_can_run_kernel(capability, name) for name in built)


def _can_run_kernel(capability: tuple[int, int], name: str) -> bool:
    match = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", name)
    if match is None:
        return False
    kind, (major, minor), only = match[1], (int(match[2]), int(match[3])), match[4]
    if only == "a":
        return capability == (major, minor)
    if kind == "sm" or only == "f":
        return capability[0] == major and capability[1] >= minor
    return capability >= (major, minor)


def _explain_nvidia() -> str:
    """Return why an NVIDIA GPU is not seen; empty without an NVIDIA GPU or driver."""
    driver, cuda, capability = "", (0, 0), TURING
    try:
        library = nvml()
        number = library.nvmlSystemGetCudaDriverVersion()
        driver, cuda = library.nvmlSystemGetDriverVersion(), (number // 1000, number % 1000 // 10)
    except Exception as error:  # no bindings or no driver; some errors say more
        if sentence := STATES.get(getattr(error, "value", None) or 0):
            return sentence
        if not shutil.which("nvidia-smi"):
            return ""
    else:
        with contextlib.suppress(Exception):  # the first GPU represents all
            capability = tuple(library.nvmlDeviceGetCudaComputeCapability(library.nvmlDeviceGetHandleByIndex(0)))
    runs = f"{cuda[0]}.{cuda[1]}"
    if (0, 0) < cuda < OLDEST_DRIVER:
        return f"The NVIDIA driver {driver} is too old: it runs CUDA {runs}. Update it to version 580 or later."
    build = OLD_BUILD if (0, 0) < cuda < (13, 0) or capability < TURING else BUILD
    built = torch.version.cuda
    if built is None:
        return (
            "An NVIDIA driver is installed, but this PyTorch is built without CUDA. "
            f"Install one with it: {install_command(build)}"
        )
    if cuda > (0, 0) and cuda[0] < int(built.partition(".")[0]):
        return (
            f"The NVIDIA driver {driver} runs CUDA {runs}, and this PyTorch is built for CUDA {built}. "
            f"Update the driver to version 580 or later, or install an older build: {install_command(build)}"
        )
    return _find_hiding_variable() or (
        f"An NVIDIA driver is installed, but PyTorch's CUDA {built} cannot use it. "
        f"Update the driver to version 580 or later, or install an older build: {install_command(OLD_BUILD)}"
    )


def _find_hiding_variable() -> str:
    """Return a sentence on the variable that hides all GPUs from PyTorch; empty if none is set."""
    for name in HIDING:
        value = os.environ.get(name)
        if value is not None:
            told = f"set to {ascii(value)[:_QUOTED]}" if value.strip() else "set and empty"
            return (
                f"The variable {name} is {told}, which hides every GPU from PyTorch. Unset it, or name an existing GPU."
            )
    return ""


SLOWING = ("POWER", "THERMAL", "BOARD_LIMIT", "RELIABILITY")
"""NVML's policies that lower a card's clocks under load; each has a counter of seconds."""

Value = TypeVar("Value")


Columns = dict[str, Any]
"""Values by the name of their column, None if unknown; empty for a device that is not a GPU."""


@dataclass(frozen=True, kw_only=True)
class GpuState:
    """A GPU at one moment; unknown values are None.

    Attributes:
        energy_j: energy used since the driver was loaded.
        throttle: bits of NVML's `nvmlClocksEventReasons`: the limits of its clock.
        throttled_s: seconds for which policies of `SLOWING` lowered its clocks since the driver was loaded.
        use: share of NVML's last sample period, up to a second, in which the GPU worked for any process.
        other_processes: number of visible processes that compute on it, without this one.
    """

    clock_mhz: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    temperature_c: float | None = None
    throttle: int | None = None
    throttled_s: float | None = None
    use: float | None = None
    other_processes: int | None = None


class GpuMonitor:
    """Reads the state of a device before and after each block.

    Attributes:
        limits: limits of the GPU, as `device_…` columns.
    """

    def __init__(self, device: torch.device, clock: Callable[[], float] = time.perf_counter) -> None:
        """Find the GPU of a device; a CPU has none."""
        self._card, self._clock = _find_gpu(device), clock
        self.limits = self._card.limits() if self._card else {}
        self._before, self._began_s = GpuState(), 0.0

    def begin(self) -> None:
        """Read the state before the lead-in of a block."""
        if self._card:
            self._before, self._began_s = self._card.state(), self._clock()

    def end(self) -> Columns:
        """Return the `block_…` columns after the block; counters cover the time between the two readings."""
        if not self._card:
            return {}
        took_s, after, before = self._clock() - self._began_s, self._card.state(), self._before
        energy_j = _since(before.energy_j, after.energy_j)
        others = [each.other_processes for each in (before, after) if each.other_processes is not None]
        return {
            "block_clock_before_mhz": before.clock_mhz,
            "block_clock_mhz": after.clock_mhz,
            "block_power_w": energy_j / took_s if energy_j and took_s > 0 else after.power_w,
            "block_temperature_c": after.temperature_c,
            "block_throttle": after.throttle,
            "block_throttled_s": _since(before.throttled_s, after.throttled_s),
            "block_use_before": before.use,
            "block_other_processes": max(others, default=None),
        }


def nvml() -> Any:
    """Return NVML's functions, ready to be called.

    Raises:
        ImportError: its bindings are missing.
        Exception: an `NVMLError` if there is no driver, or if it does not answer.
    """
    import pynvml

    pynvml.nvmlInit()
    return pynvml


@functools.cache
def _find_gpu(device: torch.device) -> "_NvidiaGpu | _AmdGpu | None":
    """Return the GPU behind a device; None if it cannot be queried."""
    if device.type != "cuda":
        return None
    if torch.version.hip:
        return _AmdGpu(device)
    return _read_or_none(lambda: _NvidiaGpu(nvml(), torch.cuda.get_device_properties(device)))


class _NvidiaGpu:
    """An NVIDIA GPU in NVML; for a part of a GPU (MIG), processes are those of the part, all else is of the whole."""

    def __init__(self, library: Any, properties: Any) -> None:
        self._nvml = library
        self._part = self._handle(properties)
        self._whole = (
            _read_or_none(lambda: library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self._part)) or self._part
        )

    def limits(self) -> Columns:
        library, card = self._nvml, self._whole
        milliwatts = _read_or_none(lambda: library.nvmlDeviceGetEnforcedPowerLimit(card))
        clock_mhz = _read_or_none(lambda: float(library.nvmlDeviceGetMaxClockInfo(card, library.NVML_CLOCK_SM)))
        errors = (library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, library.NVML_VOLATILE_ECC)
        return {
            "device_power_limit_w": _thousandth(milliwatts),
            "device_clock_limit_mhz": clock_mhz,
            "device_ecc_errors": _read_or_none(lambda: int(library.nvmlDeviceGetTotalEccErrors(card, *errors))),
        }

    def state(self) -> GpuState:
        library, card = self._nvml, self._whole
        return GpuState(
            clock_mhz=_read_or_none(lambda: float(library.nvmlDeviceGetClockInfo(card, library.NVML_CLOCK_SM))),
            power_w=_thousandth(_read_or_none(lambda: library.nvmlDeviceGetPowerUsage(card))),
            energy_j=_thousandth(_read_or_none(lambda: library.nvmlDeviceGetTotalEnergyConsumption(card))),
            temperature_c=_read_or_none(
                lambda: float(library.nvmlDeviceGetTemperature(card, library.NVML_TEMPERATURE_GPU))
            ),
            throttle=_read_or_none(self._read_throttle_reasons),
            throttled_s=_read_or_none(self._read_throttled_s),
            use=_read_or_none(lambda: library.nvmlDeviceGetUtilizationRates(card).gpu / 100),
            other_processes=_read_or_none(self._others),
        )

    def _handle(self, properties: Any) -> Any:
        for prefix in ("GPU", "MIG"):
            uuid = f"{prefix}-{getattr(properties, 'uuid', '')}"
            if found := _read_or_none(lambda uuid=uuid: self._nvml.nvmlDeviceGetHandleByUUID(uuid)):  # type: ignore[misc]
                return found
        place = properties.pci_domain_id, properties.pci_bus_id, properties.pci_device_id
        return self._nvml.nvmlDeviceGetHandleByPciBusId("{:08x}:{:02x}:{:02x}.0".format(*place))

    def _read_throttle_reasons(self) -> int:
        """Return the bits of throttle reasons; drivers before 535 only have the function's older name."""
        try:
            return int(self._nvml.nvmlDeviceGetCurrentClocksEventReasons(self._whole))
        except Exception:
            return int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._whole))

    def _read_throttled_s(self) -> float:
        policies = (getattr(self._nvml, f"NVML_PERF_POLICY_{name}") for name in SLOWING)
        ask = self._nvml.nvmlDeviceGetViolationStatus
        return sum(int(ask(self._whole, policy).violationTime) for policy in policies) / 1e9

    def _others(self) -> int | None:
        """Count the other processes that compute, not those that draw windows; None on Windows, which mixes both."""
        if sys.platform == "win32":
            return None
        computing = {process.pid for process in self._nvml.nvmlDeviceGetComputeRunningProcesses(self._part)}
        drawing = _read_or_none(lambda: self._nvml.nvmlDeviceGetGraphicsRunningProcesses(self._part)) or ()
        return _others(computing - {process.pid for process in drawing} if len(computing) > 1 else computing)


@dataclass(frozen=True)
class _AmdGpu:
    """An AMD GPU, read by PyTorch through AMD SMI, which reports 0 for unknown values."""

    device: torch.device

    def limits(self) -> Columns:
        return {}

    def state(self) -> GpuState:
        return GpuState(
            clock_mhz=_read_or_none(lambda: float(torch.cuda.clock_rate(self.device))) or None,
            power_w=_read_or_none(lambda: float(torch.cuda.power_draw(self.device)))
            or None,  # watts of AMD, not milliwatts
            temperature_c=_read_or_none(lambda: float(torch.cuda.temperature(self.device))) or None,
            use=_read_or_none(lambda: torch.cuda.utilization(self.device) / 100),
            other_processes=_read_or_none(self._others),
        )

    def _others(self) -> int | None:
        listed = torch.cuda.list_gpu_processes(self.device)
        return _others([int(pid) for pid in re.findall(r"^process\s+(\d+)", listed, re.MULTILINE)])


def _others(pids: Collection[int]) -> int | None:
    """Count the processes except this one, which is always on the GPU; None if no process is visible.

    In a container some drivers list process ids of the host, so this process appears with another number.
    """
    return len(pids) - 1 if pids else None


def _read_or_none(read: Callable[[], Value]) -> Value | None:
    """Return the value that `read` returns, or None if it fails twice: a driver may refuse any of its functions.

    A second try costs microseconds; without it, a single refusal would empty a whole column.
    """
    for _ in range(2):
        with contextlib.suppress(Exception):
            return read()
    return None


def _thousandth(value: int | None) -> float | None:
    return None if value is None else value / 1000


def _since(before: float | None, after: float | None) -> float | None:
    """Return the increase of a counter; None if it is unknown or was reset in between."""
    return None if before is None or after is None or after < before else after - before
