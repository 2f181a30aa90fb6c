"""Why an accelerator is not seen, or has no code in this PyTorch, and what would change it, in sentences."""

import contextlib
import os
import platform
import re
import shutil
from collections.abc import Sequence

import torch

from . import gpu_telemetry

HIDING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""Variables that leave a process some of the GPUs, or none."""

STATES = {
    9: "NVIDIA's library is installed, but its driver is not running: in a container, start it with the GPU "
    "(docker run --gpus all); elsewhere, load the driver.",
    18: "NVIDIA's driver was updated and the old one still runs: restart the machine.",
}
"""By NVML's error: NVML_ERROR_DRIVER_NOT_LOADED and NVML_ERROR_LIB_RM_VERSION_MISMATCH."""

_QUOTED = 40
"""Characters of a variable that are quoted."""


def hint() -> str:
    """What stands between this process and accelerators, in a sentence or two; empty where nothing does."""
    if torch.accelerator.is_available():
        found = torch.accelerator.current_accelerator()
        cuda = found is not None and found.type == "cuda"
        return " ".join(filter(None, map(no_kernels, range(torch.accelerator.device_count() if cuda else 0))))
    if sentence := _nvidia():
        return sentence
    if shutil.which("rocm-smi"):
        if torch.version.hip is None:
            return "An AMD driver is installed, but this PyTorch is built without ROCm: install a build with ROCm."
        if sentence := _find_hiding_variable():
            return sentence
    if platform.system() == "Darwin":
        return "PyTorch sees no Apple GPU: MPS needs Apple silicon, macOS 14 or later and a native arm64 Python."
    return (
        "PyTorch sees no accelerator on this machine: there is no NVIDIA or AMD driver. "
        "With a GPU and its driver installed, it appears here after a restart."
    )


def no_kernels(index: int) -> str:
    """Why this PyTorch has nothing that runs on an NVIDIA or AMD GPU, in a sentence; empty if it has."""
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
        f"cuda:{index} ({properties.name}, {name}) is left out: this PyTorch has kernels for {', '.join(built)} only, "
        "so install a build that has them for it."
    )


def has_kernels(capability: tuple[int, int], built: Sequence[str]) -> bool:
    """Whether something that was built runs on an NVIDIA GPU.

    Machine code (`sm_86`) runs on GPUs of its major version from its minor version on, that for one kind alone
    (`sm_90a`) on no other; the intermediate code PTX (`compute_90`) is compiled for any later GPU.
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


def _nvidia() -> str:
    """Why no NVIDIA GPU is seen although there is something of NVIDIA; empty if there is nothing."""
    driver = cuda = ""
    try:
        library = gpu_telemetry.nvml()
        number = library.nvmlSystemGetCudaDriverVersion()
        driver, cuda = library.nvmlSystemGetDriverVersion(), f"{number // 1000}.{number % 1000 // 10}"
    except Exception as error:  # no bindings or no driver; some errors say more
        if sentence := STATES.get(getattr(error, "value", None) or 0):
            return sentence
        if not shutil.which("nvidia-smi"):
            return ""
    built = torch.version.cuda
    if built is None:
        return "An NVIDIA driver is installed, but this PyTorch is built without CUDA: install a build with CUDA."
    if cuda and int(cuda.partition(".")[0]) < int(built.partition(".")[0]):
        return (
            f"The NVIDIA driver {driver} is too old: it runs CUDA {cuda}, and this PyTorch is built for CUDA {built}. "
            "Update the driver, or install a PyTorch built for an older CUDA."
        )
    return _find_hiding_variable() or (
        f"An NVIDIA driver is installed, but PyTorch's CUDA {built} cannot use it: "
        "update the driver, or install a PyTorch built for an older CUDA."
    )


def _find_hiding_variable() -> str:
    """Which variable leaves PyTorch no GPU; empty if none is set."""
    for name in HIDING:
        value = os.environ.get(name)
        if value is not None:
            told = f"set to {ascii(value)[:_QUOTED]}" if value.strip() else "set and empty"
            return f"The variable {name} is {told}, which leaves PyTorch no GPU: unset it, or name one that is there."
    return ""
