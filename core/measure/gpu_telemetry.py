"""Telemetry of a GPU around a block: clocks, power, temperature, throttling, other processes.

NVIDIA's GPUs are queried through NVML, and AMD's through PyTorch's functions for AMD SMI, which comes with ROCm. Other
GPUs have no telemetry. A GPU is identified by its UUID or its place on the PCI bus, since its number depends on
CUDA_VISIBLE_DEVICES. Each value that cannot be read is None, and no refusal of a driver ever disturbs a measurement.
Nothing is queried while a block is timed: the GPU's own counters report what happened within it.
"""

import contextlib
import functools
import re
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

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
