"""Which lanes a kind of device has on this machine and why not the others, and how the host keeps freed memory.

Found out without running a lane. Words of refusals go on after "cannot be run:".
"""

import ctypes
import functools
import importlib.util
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from ..question.devices import DEVICE_KINDS

VOLTA, AMPERE = (7, 0), (8, 0)
"""First compute capability that Triton makes code for, and first one with TF32 and bfloat16 in hardware."""

COMPILERS = ("g++", "clang++", "c++")
TRITON_COMPILERS = ("gcc", "clang")
"""What torch.compile uses for a CPU unless the variable CXX names another, and Triton unless CC does."""


def refusals(kind: str, capability: tuple[int, int] = (0, 0)) -> dict[str, str]:
    """Kind of lane → why a device (an NVIDIA GPU of a compute capability) does not have it; the others are left out."""
    asked = {
        "compiled": _no_compiler(kind, capability),
        "graph": "" if DEVICE_KINDS[kind].graphs else "only NVIDIA and AMD GPUs replay CUDA graphs",
        "fused": "" if kind in _find_fused_kinds() else f"this PyTorch has no fused SGD for {kind}",
        "tf32": _no_tf32(kind, capability),
        "bf16": _no_bf16(kind, capability),
        "kept": why_not(kind),
    }
    return {name: reason for name, reason in asked.items() if reason}


def _no_compiler(kind: str, capability: tuple[int, int]) -> str:
    """Why torch.compile cannot make code for a device."""
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
    """Why Triton cannot make code for a device; it has a C compiler build what launches that code."""
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
    """The first compiler that is here: what a variable names, or else one of these."""
    return next(filter(None, map(shutil.which, (os.environ.get(variable) or "", *names))), None)


@functools.cache
def _find_fused_kinds() -> frozenset[str]:
    """Kinds of devices for which this PyTorch has a fused optimizer."""
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


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
"""Numbers of glibc's parameters (malloc.h)."""

_HANDED_BACK = {_MMAP_MAX: 65_536, _MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 64 << 20}
"""glibc's default and the highest limits that it moves to by itself, in bytes on 64-bit systems."""

_KEPT = {_MMAP_MAX: 0, _TRIM_THRESHOLD: -1}
"""No block comes from outside the heap, and the heap never shrinks."""


def set_memory_retention(*, keep: bool) -> None:
    """Keep what is freed from now on, or hand it back, together with all that was kept.

    Without glibc nothing happens: `why_not` says that it cannot be kept there.
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
    """Why memory cannot be kept for a kind of device, such as `cpu` or `cuda`; empty if it can."""
    if kind != "cpu":
        return "PyTorch keeps the memory of this device in any case"
    return "" if _glibc() else "keeping memory needs the C library glibc, which this system does not use"


class _Now:
    """What is set in this process; None before the first use."""

    kept: bool | None = None


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
