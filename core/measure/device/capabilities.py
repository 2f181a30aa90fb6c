"""Which lanes a kind of device has on this machine, and why not the others: found out without running any of them.

Words of refusals go on after "cannot be run:". A lane that is not refused may still fail; then its error is told.
"""

import functools
import importlib.util
import os
import shutil
import sys
import sysconfig
from pathlib import Path

from core.measure.device import host_memory
from core.question.device_kinds import DEVICE_KINDS

AMPERE = (8, 0)
"""First compute capability with TF32 and bfloat16 in hardware."""

COMPILERS = ("g++", "clang++", "c++")
"""What torch.compile uses for a CPU unless the variable CXX names another."""


def refusals(kind: str, capability: tuple[int, int] = (0, 0)) -> dict[str, str]:
    """Kind of lane → why a device does not have it; lanes that it has are left out.

    Args:
        kind: key of `DEVICE_KINDS`.
        capability: compute capability of an NVIDIA GPU.
    """
    asked = {
        "compiled": _no_compiler(kind),
        "graph": "" if DEVICE_KINDS[kind].graphs else "only NVIDIA and AMD GPUs replay CUDA graphs",
        "fused": "" if kind in _fused_kinds() else f"this PyTorch has no fused SGD for {kind}",
        "tf32": _no_tf32(kind, capability),
        "bf16": _no_bf16(kind, capability),
        "kept": host_memory.why_not(kind),
    }
    return {name: reason for name, reason in asked.items() if reason}


def _no_compiler(kind: str) -> str:
    """Why torch.compile cannot make code for a device."""
    compiler = DEVICE_KINDS[kind].compiler
    if not compiler:
        return f"the training step is not compiled for {kind.upper()}"
    if compiler == "triton":
        missing = importlib.util.find_spec("triton") is None
        return "torch.compile needs the package triton for this device" if missing else ""
    if sys.platform == "win32" and not shutil.which("cl"):
        return "torch.compile needs the C++ compiler of Visual Studio (cl), which was not found"
    if sys.platform != "win32" and not _cxx():
        return f"torch.compile needs a C++ compiler for the CPU, and none of {', '.join(COMPILERS)} was found"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "torch.compile needs the header files of Python (Python.h), which are not installed"
    return ""


def _cxx() -> str | None:
    return next(filter(None, map(shutil.which, (os.environ.get("CXX") or "", *COMPILERS))), None)


@functools.cache
def _fused_kinds() -> frozenset[str]:
    """Kinds of devices for which this PyTorch has a fused optimizer."""
    from torch.utils import _foreach_utils

    named = _foreach_utils._get_fused_kernels_supported_devices()
    return frozenset(name for name, kind in DEVICE_KINDS.items() if kind.torch_type in named)


def _no_tf32(kind: str, capability: tuple[int, int]) -> str:
    if not DEVICE_KINDS[kind].tf32:
        return "TF32 is an arithmetic of NVIDIA GPUs"
    if capability < AMPERE:
        return "TF32 needs an NVIDIA GPU of compute capability 8.0 or later"
    return ""


def _no_bf16(kind: str, capability: tuple[int, int]) -> str:
    if DEVICE_KINDS[kind].tf32 and capability < AMPERE:
        return "bfloat16 needs an NVIDIA GPU of compute capability 8.0 or later"
    return "" if DEVICE_KINDS[kind].bf16 else f"autocast to bfloat16 is not offered for {kind.upper()} here"
