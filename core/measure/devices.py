"""The devices PyTorch sees: describe, first use, synchronize, memory; failures that end one contender only.

All through `torch.accelerator`; where PyTorch answers for a kind in its own way, that way is in `_BACKENDS`. Before a
device is timed, `check_synchronization` verifies that waiting for it really waits.
"""

import contextlib
import functools
import logging
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import psutil
import torch
from torch import nn
from torch.nn import functional

from .. import units
from ..errors import CrossoverError, CustomTrainingFailed, DeviceUnavailable, LaneUnavailable, OutOfMemory
from ..question.devices import DEVICE_KINDS, OTHER
from ..question.experiment import Contender
from ..question.lanes import PLAIN
from ..results import environment
from ..results.environment import DeviceInfo
from ..results.schema import Outcome
from ..text import as_line
from . import capabilities, gpu_telemetry, missing_gpu
from .timer import Clock, Synchronizable

WORK_S = 0.3
"""Work that is queued, in seconds: so long that neither queueing it nor reading one value passes for it."""

NOTICEABLE = 0.1
"""Share of the work that may be left: reading a value takes far less than a tenth of `WORK_S` on any bus."""

TRIES = 3
"""Tries before a device is refused: on a busy machine reading a value may wait, but not every time."""

SIZES = 512, 4096
"""Rows and columns of the products that are tried first, and of the largest, whose matrices take 64 MiB each."""

MOST_PRODUCTS = 512
"""Products in a row; queues of launches are full at about a thousand, and who queues more waits without a drain."""

Queue = Callable[[int, int], Callable[[], object]]
"""Queues products of matrices of a size, so many in a row, each of the one before; returns what reads a value."""


def check_synchronization(device: Synchronizable, handle: torch.device) -> None:
    """Refuse a device that is not done when it says so.

    Raises:
        DeviceUnavailable: work was left.
    """
    queue = partial(_queue, handle)
    least = 1.0
    for _ in range(TRIES):
        least = min(least, share_left(device, queue))
        if least <= NOTICEABLE:
            return
    raise DeviceUnavailable(
        f"The device {handle} is not timed: when PyTorch said that it had done all its work, "
        f"{units.format_share(least)} "
        "of the work was left, so every time would be too short."
    )


def share_left(device: Synchronizable, queue: Queue, clock: Clock = time.perf_counter_ns) -> float:
    """Share of its work that a device had left when it was said to be drained.

    The work is doubled until it takes `WORK_S` up to the value that is read, so an early drain cannot make it short.
    """
    (size, largest), products = SIZES, 1
    while True:
        queue(size, products)()  # what is done for the first time loads libraries, or is compiled when it is read
        device.synchronize()
        began = clock()
        read = queue(size, products)
        device.synchronize()
        drained = clock()
        read()
        ended = clock()
        whole_s = (ended - began) / 1e9
        if whole_s >= WORK_S or products >= MOST_PRODUCTS:
            return (ended - drained) / max(1, ended - began)
        size, products = (2 * size, products) if size < largest else (size, 2 * products)


def _queue(device: torch.device, size: int, products: int) -> Callable[[], object]:
    factor = torch.full((size, size), 1 / size, device=device)
    product = factor
    for _ in range(products):
        product = torch.mm(product, factor)
    return lambda: product[0, 0].item()


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
            capabilities.set_memory_retention(keep=False)
            return
        with contextlib.suppress(Exception):  # not by torch.accelerator, whose cache is not that of MPS
            torch.get_device_module(self.torch).empty_cache()


def discover() -> tuple[DeviceInfo, ...]:
    """Every device that can be trained on, the CPU first."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if accelerator is None:
        return (_info("cpu", "cpu"),)
    kind, count = _kind(accelerator.type), torch.accelerator.device_count()
    useless = {index for index in range(count) if accelerator.type == "cuda" and missing_gpu.no_kernels(index)}
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
    raise DeviceUnavailable(f"The device {device} is not on this machine{listed}. {missing_gpu.hint()}".strip())


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
        check_synchronization(handle, handle.torch)
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
        driver = str(gpu_telemetry.nvml().nvmlSystemGetDriverVersion())
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


_OUT_OF_MEMORY = (
    *("out of memory", "not enough memory", "not enough free memory"),  # CUDA, HIP, XPU, MPS, the allocator of Windows
    *("can't allocate memory", "cannot allocate memory"),  # DefaultCPUAllocator, with the system's own words
    *("failed to allocate", "invalid buffer size", "insufficient memory", "outofmemory"),  # MPS and Metal
    *("out_of_memory", "erroroutofmemory"),  # CUDA and HIP by the names of their codes
    *("out_of_device_memory", "out_of_host_memory", "out_of_resources"),  # UR_RESULT_ERROR_ and PI_ERROR_ of XPU
    *("alloc_failed", "allocation_failed"),  # CUBLAS_STATUS_, CUDNN_STATUS_, CUSOLVER_STATUS_, HIPBLAS_STATUS_
    *("status_memory_error", "miopenstatusallocfailed", "resource_exhausted"),  # rocBLAS, MIOpen, XLA
)
"""What allocators and libraries write, in small letters, where they raise a plain RuntimeError."""

_MOST_WORDS = 300
"""Letters of an error that a row's message quotes."""

_log = logging.getLogger(__name__)

Interpretation = TypeVar("Interpretation")


def attempt(
    work: Callable[[], object], interpret: Callable[[Exception], Interpretation | None]
) -> Interpretation | None:
    """Do work that may fail.

    Args:
        work: what to do.
        interpret: what to make of its error; nothing where the error is not known, which is then raised.

    Returns:
        What `interpret` made of the error; None if there was none. Nothing holds on to what had been allocated.
    """
    try:
        work()
    except Exception as error:
        found = interpret(error)
        if not found:
            raise
    else:
        found = None
    return found


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocator refused: that of the host, of a device, or of one of its libraries."""
    if isinstance(error, OutOfMemory | MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _OUT_OF_MEMORY)


def ending(contender: Contender, error: Exception) -> tuple[Outcome, str] | None:
    """How an error ends this contender alone, and the sentence that says so; None if it concerns the run.

    Whatever goes wrong in a lane other than the plain one is taken for the lane's: no compiler, a graph that cannot be
    recorded. It counts as interrupted, an outcome that readers of earlier versions know and do not build on.
    """
    if is_out_of_memory(error):
        return "out_of_memory", str(error) if isinstance(error, OutOfMemory) else "The device ran out of memory."
    if isinstance(error, LaneUnavailable):
        return "interrupted", str(error)
    if contender.lane == PLAIN or (isinstance(error, CrossoverError) and not isinstance(error, CustomTrainingFailed)):
        return None
    _log.warning("%s failed.", contender, exc_info=error)
    return "interrupted", f"{contender} failed: {_words(error)}."


def _words(error: Exception) -> str:
    """An error by its kind and its first line; of one that only announces another, by the one that it announces."""
    inner = getattr(error, "inner_exception", None)
    told = inner if isinstance(inner, Exception) else error
    lines = [line.strip() for line in str(told).splitlines() if line.strip()]
    if isinstance(told, CustomTrainingFailed):  # whose last line is the error itself
        return as_line("".join(lines[-1:]), _MOST_WORDS).rstrip(".")
    return as_line(": ".join([type(told).__name__, *lines[:1]]), _MOST_WORDS).rstrip(".")
