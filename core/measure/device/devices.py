"""The devices PyTorch sees, behind one small interface: describe, first use, drain, memory.

All through `torch.accelerator`, by the kinds of `core.question.device_kinds`; where PyTorch answers for a kind in a way
of its own, that way is in `_BACKENDS`. Nothing here times or trains, and nothing moves silently to another device.
"""

import contextlib
import functools
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil
import torch
from torch import nn
from torch.nn import functional

from core.errors import DeviceUnavailable
from core.measure.device import capabilities, cards, drain, host_memory, unseen
from core.question.device_kinds import DEVICE_KINDS, OTHER
from core.results import environment
from core.results.environment import DeviceInfo


@dataclass(frozen=True)
class Device:
    """A device that can be drained."""

    torch: torch.device

    def synchronize(self) -> None:
        """Wait until the device has no work left; a CPU never has, its calls return when they are done."""
        if self.torch.type != "cpu":
            torch.accelerator.synchronize(self.torch)

    def free_bytes(self) -> int:
        """Memory that is free now; the host's for a CPU and for devices that share it or do not tell."""
        return _backend(self.torch.type).free_bytes(self.torch)

    def release(self) -> None:
        """Hand memory that nothing uses back to the device; that of a CPU to the system.

        Never raises: a device in trouble refuses this too, and what was measured on it is worth more.
        """
        if self.torch.type == "cpu":
            host_memory.set_memory_retention(keep=False)
            return
        with contextlib.suppress(Exception):  # not by torch.accelerator, whose cache is not that of MPS
            torch.get_device_module(self.torch).empty_cache()


def discover() -> tuple[DeviceInfo, ...]:
    """Every device that can be trained on, the CPU first."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if accelerator is None:
        return (_info("cpu", "cpu"),)
    kind, count = _kind(accelerator.type), torch.accelerator.device_count()
    useless = {index for index in range(count) if accelerator.type == "cuda" and unseen.no_kernels(index)}
    usable = (index for index in range(count) if index not in useless)
    return (_info("cpu", "cpu"), *(_info(kind, accelerator.type, index) for index in usable))


def find(device: str) -> DeviceInfo:
    """Facts of one device.

    Raises:
        DeviceUnavailable: PyTorch does not see it; the message says what there is.
    """
    seen = discover()
    for info in seen:
        if info.device == device:
            return info
    listed = f": PyTorch sees {', '.join(info.device for info in seen)}" if len(seen) > 1 else ""
    raise DeviceUnavailable(f"The device {device} is not on this machine{listed}. {unseen.hint()}".strip())


def open_device(device: str) -> Device:
    """A handle on one device.

    Raises:
        DeviceUnavailable: PyTorch does not see it.
    """
    return Device(to_torch_device(find(device).device))


def to_torch_device(device: str) -> torch.device:
    """PyTorch's handle on a device by our name for it, whether there is one or not; nothing is used yet."""
    kind, _, number = device.partition(":")
    accelerator = torch.accelerator.current_accelerator() if kind == OTHER else None
    return torch.device(accelerator.type, int(number)) if accelerator else torch.device(device)


@functools.cache
def initialise(device: str) -> float:
    """Use a device for the first time, and see that it can be timed.

    Returns:
        Seconds that its first use took in this process; the same value at every later call.

    Raises:
        DeviceUnavailable: PyTorch does not see it, or it is not done when it says so.
    """
    handle = open_device(device)
    seconds = _first_use(handle)
    if handle.torch.type != "cpu":
        drain.check_synchronization(handle, handle.torch)
    return seconds


def _first_use(handle: Device) -> float:
    """Seconds for context, libraries and kernels, by one step through each kind of layer."""
    begin = time.perf_counter()
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 2)).to(
        handle.torch
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    samples, labels = (
        torch.randn(4, 1, 8, 8).to(handle.torch),
        torch.zeros(4, dtype=torch.int64).to(handle.torch),
    )
    functional.cross_entropy(network(samples.index_select(0, labels)), labels).backward()
    optimizer.step()
    handle.synchronize()
    return time.perf_counter() - begin


def use_strict_fp32() -> None:
    """Turn TF32 off for matrix products and convolutions, so that every device computes in fp32."""
    use_tf32(False)


def use_tf32(enabled: bool) -> None:
    """Let matrix products and convolutions of NVIDIA GPUs round their inputs to TF32, or not."""
    precision = "high" if enabled else "highest"
    if torch.get_float32_matmul_precision() != precision:
        torch.set_float32_matmul_precision(precision)
    if torch.backends.cudnn.allow_tf32 != enabled:
        torch.backends.cudnn.allow_tf32 = enabled


def _kind(torch_type: str) -> str:
    """The kind of the accelerators that PyTorch calls by this name."""
    if torch_type == "cuda" and torch.version.hip:
        return "rocm"
    return next((name for name, kind in DEVICE_KINDS.items() if kind.torch_type == torch_type), OTHER)


def _info(kind: str, torch_type: str, index: int = 0) -> DeviceInfo:
    facts, backend = DEVICE_KINDS[kind], _backend(torch_type)
    name, memory_bytes, capability = backend.describe(torch_type, index)
    return DeviceInfo(
        device=f"{facts.torch_type}:{index}" if facts.numbered else facts.torch_type,
        kind=kind,
        name=f"{torch_type}: {name}" if kind == OTHER else name,
        memory_bytes=memory_bytes,
        driver=backend.driver(torch_type),
        refusals=capabilities.refusals(kind, capability),
    )


_Description = tuple[str, int, tuple[int, int]]
"""A device's own name, its memory in bytes, and its compute capability."""


def _describe_by_properties(torch_type: str, index: int) -> _Description:
    properties: Any = None
    with contextlib.suppress(Exception):  # not every backend has them
        properties = torch.get_device_module(torch_type).get_device_properties(index)
    capability = getattr(properties, "major", 0), getattr(properties, "minor", 0)
    memory_bytes = getattr(properties, "total_memory", None) or psutil.virtual_memory().total
    return str(getattr(properties, "name", "") or f"device {index}"), int(memory_bytes), capability


def _cuda_driver(_: str) -> str:
    if torch.version.hip:
        return f"ROCm {torch.version.hip}"
    driver = "unknown"
    with contextlib.suppress(Exception):  # there are no bindings, or the driver refuses
        driver = str(cards.nvml().nvmlSystemGetDriverVersion())
    return f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, driver {driver}"


def _gpu_free_bytes(device: torch.device) -> int:
    """Memory of a card that is free, with what PyTorch holds of it and does not use: the next training takes that."""
    card = torch.get_device_module(device)
    unused = card.memory_reserved(device) - card.memory_allocated(device)
    return int(card.mem_get_info(device)[0]) + int(unused)


@dataclass(frozen=True, kw_only=True)
class _Backend:
    """What PyTorch is asked about the devices of a type, as most of them answer it.

    Attributes:
        describe: from the type and a device's number.
        driver: driver and runtime, from the type.
    """

    describe: Callable[[str, int], _Description] = _describe_by_properties
    driver: Callable[[str], str] = lambda torch_type: str(getattr(torch.version, torch_type, None) or "")
    free_bytes: Callable[[torch.device], int] = lambda _: int(psutil.virtual_memory().available)


_BACKENDS = {
    "cpu": _Backend(
        describe=lambda *_: (environment.read_environment().cpu_name, int(psutil.virtual_memory().total), (0, 0)),
    ),
    "cuda": _Backend(driver=_cuda_driver, free_bytes=_gpu_free_bytes),
    "xpu": _Backend(free_bytes=_gpu_free_bytes),
    "mps": _Backend(
        describe=lambda *_: (
            f"{environment.read_environment().cpu_name} GPU",
            int(torch.mps.recommended_max_memory()),
            (0, 0),
        ),
        driver=lambda _: f"macOS {platform.mac_ver()[0]}",
    ),
}
"""By PyTorch's name of the type; those left out answer like most."""


def _backend(torch_type: str) -> _Backend:
    return _BACKENDS.get(torch_type) or _Backend()
