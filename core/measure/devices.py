"""The devices of PyTorch: description, first use, synchronization, memory, and failures that end one contender only.

Everything goes through `torch.accelerator`; `_BACKENDS` has the exceptions. Before a device is timed,
`check_synchronization` verifies that synchronizing really waits. The module also finds the variants that a device
supports on this machine, without running any, and sets how the host reuses freed memory. The text of a refusal follows
"cannot be run:".
"""

import contextlib
import ctypes
import functools
import importlib.util
import logging
import os
import platform
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import psutil
import torch
from torch import nn
from torch.nn import functional

from .. import units
from ..errors import CrossoverError, CustomTrainingFailed, DeviceUnavailable, LaneUnavailable, OutOfMemory
from ..question.experiment import Contender
from ..question.lanes import DEVICE_KINDS, OTHER, PLAIN
from ..results import environment
from ..results.environment import DeviceInfo
from ..results.schema import Outcome
from ..text import as_line
from . import gpu
from .timer import Clock, Synchronizable

WORK_S = 0.3
"""Duration of the queued work in seconds: much longer than queueing it or reading one value."""

NOTICEABLE = 0.1
"""Maximum share of unfinished work: reading a value takes far less than a tenth of `WORK_S` on any bus."""

TRIES = 3
"""Number of tries before a device is refused: on a busy machine reading a value may be delayed, but not every time."""

SIZES = 512, 4096
"""Number of rows of the first matrices and of the largest ones, which need 64 MiB each."""

MOST_PRODUCTS = 512
"""Maximum number of queued products: a launch queue is full at about a thousand, and queueing more waits without a
synchronization.
"""

Queue = Callable[[int, int], Callable[[], object]]
"""Function that queues a number of products of matrices of a size, each of the previous result; returns a function that
reads a value of the last.
"""


def check_synchronization(device: Synchronizable, handle: torch.device) -> None:
    """Refuse a device that reports to be done too early.

    Raises:
        DeviceUnavailable: work was unfinished after a synchronization.
    """
    queue = partial(_queue, handle)
    least = 1.0
    for _ in range(TRIES):
        least = min(least, share_left(device, queue))
        if least <= NOTICEABLE:
            return
    raise DeviceUnavailable(
        f"The device {handle} is not timed: when PyTorch reported all work as done, {units.format_share(least)} "
        "of the work was unfinished, so every time would be too short."
    )


def share_left(device: Synchronizable, queue: Queue, clock: Clock = time.perf_counter_ns) -> float:
    """Return the share of unfinished work when the device reported to be synchronized.

    The work is doubled until it takes `WORK_S`, measured up to the reading of a value, so that an early synchronization
    cannot shorten it.
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
    """A device that can be synchronized."""

    torch: torch.device

    def synchronize(self) -> None:
        """Wait until the device has finished all work; calls on a CPU return only when they are done."""
        if self.torch.type != "cpu":
            torch.accelerator.synchronize(self.torch)

    def make_current(self) -> None:
        """Make this device PyTorch's default; otherwise pinning memory would occupy the first device too."""
        if self.torch.type != "cpu" and self.torch.index is not None:
            torch.accelerator.set_device_index(self.torch.index)

    def free_bytes(self) -> int:
        """Return the free memory in bytes; the host's for a CPU, or a device that shares it or reports none."""
        return _backend(self.torch.type).free_bytes(self.torch)

    def release(self) -> None:
        """Return unused memory to the device, or for a CPU to the system.

        Never raises: a failing device may refuse this too, and its measurements must not be lost.
        """
        if self.torch.type == "cpu":
            set_memory_retention(keep=False)
            return
        with contextlib.suppress(Exception):  # not by torch.accelerator, whose cache is not that of MPS
            torch.get_device_module(self.torch).empty_cache()


def discover() -> tuple[DeviceInfo, ...]:
    """Return all devices that can train, the CPU first."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if accelerator is None:
        return (_info("cpu", "cpu"),)
    kind, count = _kind(accelerator.type), torch.accelerator.device_count()
    useless = {index for index in range(count) if accelerator.type == "cuda" and gpu.no_kernels(index)}
    usable = (index for index in range(count) if index not in useless)
    return (_info("cpu", "cpu"), *(_info(kind, accelerator.type, index) for index in usable))


def find(device: str) -> DeviceInfo:
    """Return the description of one device.

    Raises:
        DeviceUnavailable: PyTorch does not see the device; the message lists those that it sees.
    """
    seen = discover()
    for info in seen:
        if info.device == device:
            return info
    listed = f": PyTorch sees {', '.join(info.device for info in seen)}" if len(seen) > 1 else ""
    raise DeviceUnavailable(f"The device {device} is not on this machine{listed}. {gpu.missing_gpu_hint()}".strip())


def open_device(device: str) -> Device:
    """Return a handle for one device.

    Raises:
        DeviceUnavailable: PyTorch does not see the device.
    """
    return Device(to_torch_device(find(device).device))


def to_torch_device(device: str) -> torch.device:
    """Return PyTorch's handle for a device by its name in Crossover, without using the device; it need not exist."""
    kind, _, number = device.partition(":")
    accelerator = torch.accelerator.current_accelerator() if kind == OTHER else None
    return torch.device(accelerator.type, int(number)) if accelerator else torch.device(device)


@functools.cache
def initialise(device: str) -> float:
    """Use a device for the first time, and check that it can be timed.

    Returns:
        The seconds of the first use in this process; later calls return the same value.

    Raises:
        DeviceUnavailable: PyTorch does not see the device, or it reports to be done too early.
    """
    handle = open_device(device)
    seconds = _first_use(handle)
    if handle.torch.type != "cpu":
        check_synchronization(handle, handle.torch)
    return seconds


def _first_use(handle: Device) -> float:
    """Return the seconds for context, libraries and kernels, by one step through each kind of layer."""
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


@dataclass(frozen=True, kw_only=True)
class Fp32Precision:
    """How fp32 is computed: `ieee`, or with inputs rounded to `tf32` or `bf16`; `none` means ieee.

    Only `fp32_precision` is read, because the older getters raise an error if a script has used both interfaces. The
    older setters are called too, for code that reads them, such as torch.compile.

    Attributes:
        general: default of the other attributes.
        matmul: matrix products on NVIDIA GPUs.
        convolution: convolutions on NVIDIA GPUs.
        recurrent: recurrent layers on NVIDIA GPUs.
        host: matrix products on a CPU.
    """

    general: str = "none"
    matmul: str = "ieee"
    convolution: str = "ieee"
    recurrent: str = "ieee"
    host: str = "ieee"

    @classmethod
    def read(cls) -> "Fp32Precision":
        """Return the present setting of this process."""
        backends: Any = torch.backends
        return cls(
            general=backends.fp32_precision,
            matmul=backends.cuda.matmul.fp32_precision,
            convolution=backends.cudnn.conv.fp32_precision,
            recurrent=backends.cudnn.rnn.fp32_precision,
            host=backends.mkldnn.matmul.fp32_precision,
        )

    def use(self) -> None:
        """Apply this setting to the process, unless it is already set."""
        if self.read() == self:
            return
        backends: Any = torch.backends
        backends.fp32_precision = self.general
        torch.set_float32_matmul_precision(
            "medium" if self.host == "bf16" else "high" if self.matmul == "tf32" else "highest"
        )
        backends.cudnn.allow_tf32 = "tf32" in (self.convolution, self.recurrent)
        backends.cuda.matmul.fp32_precision, backends.mkldnn.matmul.fp32_precision = self.matmul, self.host
        backends.cudnn.conv.fp32_precision, backends.cudnn.rnn.fp32_precision = self.convolution, self.recurrent

    def describe(self, *, on_host: bool) -> str:
        """Describe the precision on a CPU or an accelerator for a column: one word, or one per kind of operation."""
        named = {"matmul": self.matmul, "convolution": self.convolution, "recurrent": self.recurrent}
        words = {name: "ieee" if word == "none" else word for name, word in named.items()}
        if on_host:
            return "ieee" if self.host == "none" else self.host
        if len(set(words.values())) == 1:
            return words["matmul"]
        return ", ".join(f"{name} {word}" for name, word in words.items())


TF32 = Fp32Precision(matmul="tf32", convolution="tf32", recurrent="tf32", host="tf32")

PYTORCH_FP32 = Fp32Precision.read()
"""PyTorch's precision before anything is set: convolutions and recurrent layers of NVIDIA GPUs use TF32."""


def use_strict_fp32() -> None:
    """Turn TF32 off for matrix products and convolutions, so that every device computes in fp32."""
    use_tf32(False)


def use_tf32(enabled: bool) -> None:
    """Let matrix products and convolutions of NVIDIA GPUs round their inputs to TF32, or not."""
    (TF32 if enabled else Fp32Precision()).use()


def _kind(torch_type: str) -> str:
    """Return the kind of the accelerators with this PyTorch name."""
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
        refusals=refusals(kind, capability),
    )


_Description = tuple[str, int, tuple[int, int]]
"""Name, memory in bytes, and compute capability of a device."""


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
        driver = str(gpu.nvml().nvmlSystemGetDriverVersion())
    return f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, driver {driver}"


def _gpu_free_bytes(device: torch.device) -> int:
    """Return the free memory of a GPU, including unused memory that PyTorch has allocated for the next training.

    Drivers of some Intel GPUs do not report it (pytorch#159728); the result is then all memory that this process does
    not use.
    """
    card = torch.get_device_module(device)
    allocated = card.memory_allocated(device)
    try:
        free = card.mem_get_info(device)[0]
    except RuntimeError:
        return int(card.get_device_properties(device).total_memory - allocated)
    return int(free) + int(card.memory_reserved(device) - allocated)


@dataclass(frozen=True, kw_only=True)
class _Backend:
    """PyTorch's functions that describe the devices of a type; the defaults suit most types.

    Attributes:
        describe: returns the description of a device from its type and number.
        driver: returns driver and runtime of a type.
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
"""Functions by PyTorch's name of the type; other types use the defaults."""


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
"""Lower-case texts by which allocators and libraries report missing memory in a bare RuntimeError."""

_MOST_WORDS = 300
"""Maximum number of characters of an error in a row's message."""

_log = logging.getLogger(__name__)

Interpretation = TypeVar("Interpretation")


def attempt(
    work: Callable[[], object], interpret: Callable[[Exception], Interpretation | None]
) -> Interpretation | None:
    """Do work that may fail.

    Args:
        work: function to call.
        interpret: returns the meaning of an error, or None for an unknown one, which is then raised.

    Returns:
        The result of `interpret`; None without an error. No reference to allocated memory remains.
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
    """Return whether memory was exhausted, by an error of the host's, a device's or a library's allocator."""
    if isinstance(error, OutOfMemory | MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _OUT_OF_MEMORY)


def ending(contender: Contender, error: Exception) -> tuple[Outcome, str] | None:
    """Return the outcome of a contender after an error, and a sentence on it; None if the error concerns the whole run.

    An error in a variant, such as a missing compiler or a graph that cannot be recorded, belongs to the variant. Its
    outcome is `interrupted`, which earlier versions know and exclude.
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
    """Return the type and the first line of an error.

    An error that only announces another is replaced by the other.
    """
    inner = getattr(error, "inner_exception", None)
    told = inner if isinstance(inner, Exception) else error
    lines = [line.strip() for line in str(told).splitlines() if line.strip()]
    if isinstance(told, CustomTrainingFailed):  # whose last line is the error itself
        return as_line("".join(lines[-1:]), _MOST_WORDS).rstrip(".")
    return as_line(": ".join([type(told).__name__, *lines[:1]]), _MOST_WORDS).rstrip(".")


VOLTA, AMPERE = (7, 0), (8, 0)
"""First compute capability that Triton supports, and first one with TF32 and bfloat16 in hardware."""

COMPILERS = ("g++", "clang++", "c++")
TRITON_COMPILERS = ("gcc", "clang")
"""Compilers of torch.compile for a CPU unless CXX names another, and of Triton unless CC does."""


def refusals(kind: str, capability: tuple[int, int] = (0, 0)) -> dict[str, str]:
    """Return the kinds of variants that a device does not support, each with the reason.

    The compute capability matters only for an NVIDIA GPU.
    """
    asked = {
        "compiled": _no_compiler(kind, capability),
        "graph": "" if DEVICE_KINDS[kind].graphs else "only NVIDIA and AMD GPUs replay CUDA graphs",
        "fused": "" if kind in _find_fused_kinds() else f"this PyTorch has no fused SGD for {kind}",
        "tf32": _no_tf32(kind, capability),
        "bf16": _no_bf16(kind, capability),
        "fp16": _no_fp16(kind, capability),
        "benchmark": _no_benchmark(kind),
        "kept": why_not(kind),
    }
    return {name: reason for name, reason in asked.items() if reason}


def _no_compiler(kind: str, capability: tuple[int, int]) -> str:
    """Return why torch.compile cannot generate code for a device; empty if it can."""
    compiler = DEVICE_KINDS[kind].compiler
    if not compiler:
        return f"the training step is not compiled for {kind.upper()}"
    if compiler == "triton":
        return _no_triton(kind, capability)
    if sys.platform == "win32" and not shutil.which("cl"):
        return "torch.compile needs the C++ compiler of Visual Studio (cl), which was not found"
    if sys.platform != "win32" and not _first("CXX", COMPILERS):
        return f"torch.compile needs a C++ compiler for the CPU, and none of {', '.join(COMPILERS)} was found"
    return _no_headers()


def _no_triton(kind: str, capability: tuple[int, int]) -> str:
    """Return why Triton cannot generate code for a device; empty if it can.

    Triton builds its launcher with a C compiler.
    """
    if importlib.util.find_spec("triton") is None:
        return "torch.compile needs the package triton for this device"
    if DEVICE_KINDS[kind].tf32 and capability < VOLTA:
        return "torch.compile needs an NVIDIA GPU of compute capability 7.0 or later"
    if sys.platform == "win32":
        return ""  # it brings its own there
    if not _first("CC", TRITON_COMPILERS):
        return f"torch.compile needs a C compiler for this device, and none of {', '.join(TRITON_COMPILERS)} was found"
    return _no_headers()


def _no_headers() -> str:
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "torch.compile needs the header files of Python (Python.h), which are not installed"
    return ""


def _first(variable: str, names: Sequence[str]) -> str | None:
    """Return the first installed compiler: the one that a variable names, or else one of the given names."""
    return next(filter(None, map(shutil.which, (os.environ.get(variable) or "", *names))), None)


@functools.cache
def _find_fused_kinds() -> frozenset[str]:
    """Return the kinds of devices for which this PyTorch has a fused optimizer."""
    from torch.utils import _foreach_utils

    named = _foreach_utils._get_fused_kernels_supported_devices()
    return frozenset(name for name, kind in DEVICE_KINDS.items() if kind.torch_type in named)


def _no_tf32(kind: str, capability: tuple[int, int]) -> str:
    if not DEVICE_KINDS[kind].tf32:
        return "only NVIDIA GPUs compute in TF32"
    if capability < AMPERE:
        return "TF32 needs an NVIDIA GPU of compute capability 8.0 or later"
    return ""


def _no_bf16(kind: str, capability: tuple[int, int]) -> str:
    if DEVICE_KINDS[kind].tf32 and capability < AMPERE:
        return "bfloat16 needs an NVIDIA GPU of compute capability 8.0 or later"
    return "" if DEVICE_KINDS[kind].bf16 else f"autocast to bfloat16 is not offered for {kind.upper()} here"


def _no_fp16(kind: str, capability: tuple[int, int]) -> str:
    if DEVICE_KINDS[kind].tf32 and capability < VOLTA:
        return "fast float16 needs an NVIDIA GPU of compute capability 7.0 or later"
    if DEVICE_KINDS[kind].torch_type != "cuda":
        return f"training in float16 is not offered for {kind.upper()} here, only for NVIDIA and AMD GPUs"
    return "" if kind in _find_fused_kinds() else "float16 needs the fused SGD, which this PyTorch lacks for the device"


def _no_benchmark(kind: str) -> str:
    return "" if DEVICE_KINDS[kind].torch_type == "cuda" else "only NVIDIA and AMD GPUs time their convolutions"


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
"""Numbers of glibc's parameters (malloc.h)."""

_HANDED_BACK = {_MMAP_MAX: 65_536, _MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 64 << 20}
"""glibc's default number of mappings, and the highest limits that it adapts to by itself, in bytes on 64-bit systems.
"""

_KEPT = {_MMAP_MAX: 0, _TRIM_THRESHOLD: -1}
"""Limits with which all memory comes from the heap, and the heap never shrinks."""


def set_memory_retention(*, keep: bool) -> None:
    """Reuse memory that is freed from now on, or return it to the system together with all that was retained.

    Without glibc this does nothing: `why_not` returns the reason.
    """
    library = _glibc()
    if library is None or _Now.kept is keep:
        return
    for parameter, value in (_KEPT if keep else _HANDED_BACK).items():
        library.mallopt(parameter, value)
    if not keep:
        library.malloc_trim(0)
    _Now.kept = keep


def why_not(kind: str) -> str:
    """Return why memory cannot be retained for a kind of device, such as `cpu` or `cuda`; empty if it can."""
    if kind != "cpu":
        return "PyTorch always keeps the memory of this device"
    return "" if _glibc() else "keeping memory needs the C library glibc, which this system does not use"


class _Now:
    """The setting of this process; None before the first use."""

    kept: bool | None = None


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
