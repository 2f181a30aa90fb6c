"""Sentences on why an accelerator is not seen, or not supported by this PyTorch, and the command that helps."""

import contextlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from . import gpu_telemetry

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


def hint() -> str:
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
        library = gpu_telemetry.nvml()
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
