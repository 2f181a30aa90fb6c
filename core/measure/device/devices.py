"""The devices PyTorch sees, behind one small interface: describe, first use, drain, memory.

CPU, CUDA, ROCm (which PyTorch calls cuda), XPU and MPS, all through `torch.accelerator`. Nothing here times
or trains, and nothing is ever moved silently to another device.
"""

import contextlib
import functools
import platform
import shutil
import time
from dataclasses import dataclass

import psutil
import torch
from torch import nn
from torch.nn import functional

from core.errors import DeviceUnavailable
from core.measure.device import capabilities, host_memory
from core.results import environment
from core.results.environment import DeviceInfo

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
"""What the allocators of CPU, CUDA, XPU and MPS write where they raise a plain RuntimeError."""


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
        if self.torch.type == "cuda":
            return int(torch.cuda.mem_get_info(self.torch)[0])
        return int(psutil.virtual_memory().available)

    def clock_mhz(self) -> float | None:
        """Clock of the device now in MHz; None where it cannot be read."""
        if self.torch.type != "cuda":
            return None
        with contextlib.suppress(Exception):  # NVML's bindings are optional, and drivers may refuse
            return float(torch.cuda.clock_rate(self.torch))
        return None

    def release(self) -> None:
        """Hand memory that nothing uses back to the device; that of a CPU to the system."""
        if self.torch.type == "cpu":
            host_memory.use(kept=False)
        else:
            torch.accelerator.memory.empty_cache()


def discover() -> tuple[DeviceInfo, ...]:
    """Every device that can be trained on, the CPU first."""
    cpu = DeviceInfo(
        device="cpu",
        kind="cpu",
        name=environment.read().cpu_name,
        memory_bytes=int(psutil.virtual_memory().total),
        refusals=capabilities.refusals("cpu"),
    )
    return (cpu, *_accelerators())


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


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocator refused."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _OUT_OF_MEMORY)


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


def _accelerators() -> tuple[DeviceInfo, ...]:
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if accelerator is None:
        return ()
    if accelerator.type == "mps":
        return (_mps(),)
    if accelerator.type not in ("cuda", "xpu"):
        return ()
    return tuple(_numbered(accelerator.type, index) for index in range(torch.accelerator.device_count()))


def _numbered(kind: str, index: int) -> DeviceInfo:
    properties = torch.get_device_module(kind).get_device_properties(index)
    capability = getattr(properties, "major", 0), getattr(properties, "minor", 0)
    called = "rocm" if kind == "cuda" and torch.version.hip else kind
    return DeviceInfo(
        device=f"{kind}:{index}",
        kind=called,
        name=str(properties.name),
        memory_bytes=int(properties.total_memory),
        driver=_driver(kind),
        refusals=capabilities.refusals(called, capability),
    )


def _driver(kind: str) -> str:
    if kind != "cuda":
        return str(getattr(torch.version, "xpu", None) or "")
    if torch.version.hip:
        return f"ROCm {torch.version.hip}"
    return f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, driver {_nvidia_driver()}"


def _nvidia_driver() -> str:
    """The driver's own version by NVML, whose bindings are optional."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except Exception:  # no bindings, or the driver refuses: the row says so
        return "unknown"


def _mps() -> DeviceInfo:
    return DeviceInfo(
        device="mps",
        kind="mps",
        name=f"{environment.read().cpu_name} GPU",
        memory_bytes=int(torch.mps.recommended_max_memory()),
        driver=f"macOS {platform.mac_ver()[0]}",
        refusals=capabilities.refusals("mps"),
    )
