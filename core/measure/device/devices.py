"""The devices PyTorch sees, behind one small interface: describe, first use, drain, memory.

All through `torch.accelerator`, by the kinds of `core.question.device_kinds`; where PyTorch answers for a kind in a way
of its own, that way is in `_BACKENDS`. Nothing here times or trains, and nothing moves silently to another device.
"""

import contextlib
import functools
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil
import torch
from torch import nn
from torch.nn import functional

from core.errors import DeviceUnavailable
from core.measure.device import capabilities, cards, host_memory
from core.question.device_kinds import DEVICE_KINDS
from core.results import environment
from core.results.environment import DeviceInfo


@dataclass(frozen=True)
class Device:
    """A device that can be drained.

    Attributes:
        torch: PyTorch's own handle.
    """

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
            host_memory.use(kept=False)
            return
        with contextlib.suppress(Exception):  # not by torch.accelerator, whose cache is not that of MPS
            torch.get_device_module(self.torch).empty_cache()


def discover() -> tuple[DeviceInfo, ...]:
    """Every device that can be trained on, the CPU first."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    kind = _kind(accelerator.type) if accelerator else ""
    count = torch.accelerator.device_count() if kind else 0
    return (_info("cpu"), *(_info(kind, index) for index in range(count)))


def find(device: str) -> DeviceInfo:
    """Facts of one device.

    Raises:
        DeviceUnavailable: PyTorch does not see it; the message says what there is.
    """
    seen = discover()
    for info in seen:
        if info.device == device:
            return info
    listed = ", ".join(info.device for info in seen)
    raise DeviceUnavailable(f"The device {device} is not on this machine, PyTorch sees {listed}. {hint()}".strip())


def open_device(device: str) -> Device:
    """A handle on one device.

    Raises:
        DeviceUnavailable: PyTorch does not see it.
    """
    return Device(torch.device(find(device).device))


@functools.cache
def initialise(device: str) -> float:
    """Use a device for the first time: context, libraries and kernels, by one step through each kind of layer.

    Returns:
        Seconds that it took in this process; the same value at every later call.

    Raises:
        DeviceUnavailable: PyTorch does not see it.
    """
    handle = open_device(device)
    begin = time.perf_counter()
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 2)).to(
        handle.torch
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    samples, labels = torch.randn(4, 1, 8, 8).to(handle.torch), torch.zeros(4, dtype=torch.int64).to(handle.torch)
    functional.cross_entropy(network(samples.index_select(0, labels)), labels).backward()
    optimizer.step()
    handle.synchronize()
    return time.perf_counter() - begin


def use_strict_fp32() -> None:
    """Turn TF32 off for matrix products and convolutions, so that every device computes in fp32."""
    use_tf32(False)


def use_tf32(wanted: bool) -> None:
    """Let matrix products and convolutions of NVIDIA GPUs round their inputs to TF32, or not."""
    precision = "high" if wanted else "highest"
    if torch.get_float32_matmul_precision() != precision:
        torch.set_float32_matmul_precision(precision)
    if torch.backends.cudnn.allow_tf32 != wanted:
        torch.backends.cudnn.allow_tf32 = wanted


def hint() -> str:
    """Why no accelerator is seen and what would change it, in a sentence or two; empty where one is seen."""
    if torch.accelerator.is_available():
        return ""
    if shutil.which("nvidia-smi"):
        if torch.version.cuda is None:
            return "An NVIDIA driver is installed, but this PyTorch is built without CUDA: install a build with CUDA."
        return (
            f"An NVIDIA driver is installed, but PyTorch's CUDA {torch.version.cuda} cannot use it: "
            "update the driver, or install a PyTorch built for an older CUDA."
        )
    if shutil.which("rocm-smi") and torch.version.hip is None:
        return "An AMD driver is installed, but this PyTorch is built without ROCm: install a build with ROCm."
    if platform.system() == "Darwin":
        return "PyTorch sees no Apple GPU: MPS needs Apple silicon, macOS 14 or later and a native arm64 Python."
    return (
        "PyTorch sees no accelerator on this machine: there is no NVIDIA or AMD driver. "
        "With a GPU and its driver installed, it appears here after a restart."
    )


def _kind(torch_type: str) -> str:
    """The kind of the accelerators that PyTorch calls by this name; empty where it is not one of ours."""
    if torch_type == "cuda" and torch.version.hip:
        return "rocm"
    return next((name for name, kind in DEVICE_KINDS.items() if kind.torch_type == torch_type), "")


def _info(kind: str, index: int = 0) -> DeviceInfo:
    facts = DEVICE_KINDS[kind]
    backend = _backend(facts.torch_type)
    name, memory_bytes, capability = backend.describe(facts.torch_type, index)
    return DeviceInfo(
        device=f"{facts.torch_type}:{index}" if facts.numbered else facts.torch_type,
        kind=kind,
        name=name,
        memory_bytes=memory_bytes,
        driver=backend.driver(facts.torch_type),
        refusals=capabilities.refusals(kind, capability),
    )


_Description = tuple[str, int, tuple[int, int]]
"""A device's own name, its memory in bytes, and its compute capability."""


def _by_properties(torch_type: str, index: int) -> _Description:
    properties = torch.get_device_module(torch_type).get_device_properties(index)
    capability = getattr(properties, "major", 0), getattr(properties, "minor", 0)
    return str(properties.name), int(properties.total_memory), capability


def _cuda_driver(_: str) -> str:
    if torch.version.hip:
        return f"ROCm {torch.version.hip}"
    return f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, driver {_nvidia_driver()}"


def _nvidia_driver() -> str:
    """The driver's own version."""
    try:
        return str(cards.nvml().nvmlSystemGetDriverVersion())
    except Exception:  # no bindings, or the driver refuses: the row says so
        return "unknown"


@dataclass(frozen=True, kw_only=True)
class _Backend:
    """What PyTorch is asked about the devices of a type, as most of them answer it.

    Attributes:
        describe: from the type and a device's number.
        driver: driver and runtime, from the type.
        free_bytes: memory that is free now.
    """

    describe: Callable[[str, int], _Description] = _by_properties
    driver: Callable[[str], str] = lambda torch_type: str(getattr(torch.version, torch_type, None) or "")
    free_bytes: Callable[[torch.device], int] = lambda _: int(psutil.virtual_memory().available)


_BACKENDS = {
    "cpu": _Backend(
        describe=lambda *_: (environment.read().cpu_name, int(psutil.virtual_memory().total), (0, 0)),
    ),
    "cuda": _Backend(
        driver=_cuda_driver,
        free_bytes=lambda device: int(torch.cuda.mem_get_info(device)[0]),
    ),
    "mps": _Backend(
        describe=lambda *_: (f"{environment.read().cpu_name} GPU", int(torch.mps.recommended_max_memory()), (0, 0)),
        driver=lambda _: f"macOS {platform.mac_ver()[0]}",
    ),
}
"""By PyTorch's name of the type; those left out answer like most."""


def _backend(torch_type: str) -> _Backend:
    return _BACKENDS.get(torch_type) or _Backend()
