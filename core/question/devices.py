"""The kinds of device that a training can run on: the one table of facts about each kind.

The module contains data only and does not import torch. A new kind is an entry here, from which follow its names in
contenders, rows and links, its colour in every chart and its variants. Every kind except the CPU is synchronized by
`torch.accelerator`; where PyTorch reports memory, clock or driver in a special way, `core.measure.devices` has a line
for it.
"""

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class DeviceKind:
    """Facts about all devices of a kind.

    Attributes:
        title: display name.
        torch_type: PyTorch's name of the devices; AMD's devices have the same name as NVIDIA's.
        numbered: whether there may be several, distinguished as `cuda:0` and `cuda:1`.
        colour: colour of the kind in every chart, distinct with all common forms of colour blindness (Okabe & Ito
            2008).
        further: colours of a second and a third training on devices of the kind, equally distinct from the first.
        compiler: compiler that torch.compile needs for the device; empty if torch.compile does not support it.
        foreach: whether torch's SGD by default updates all parameters in one operation.
        graphs: whether the device replays CUDA graphs.
        tf32: whether it has NVIDIA's TF32 precision; like bfloat16, from compute capability 8.0 on.
        bf16: whether autocast to bfloat16 is offered.
        float64: whether tensors may be in float64.
    """

    title: str
    torch_type: str
    numbered: bool = True
    colour: str
    further: tuple[str, ...] = ()
    compiler: Literal["", "C++", "triton"] = "triton"
    foreach: bool = False
    graphs: bool = False
    tf32: bool = False
    bf16: bool = True
    float64: bool = True


DEVICE_KINDS: dict[str, DeviceKind] = {
    "cpu": DeviceKind(
        title="CPU", torch_type="cpu", numbered=False, colour="#0072B2", further=("#A37CE8", "#00A3A3"), compiler="C++"
    ),
    "cuda": DeviceKind(
        title="NVIDIA GPU",
        torch_type="cuda",
        colour="#D55E00",
        further=("#9E4C66", "#C07C92"),
        foreach=True,
        graphs=True,
        tf32=True,
    ),
    "rocm": DeviceKind(
        title="AMD GPU", torch_type="cuda", colour="#CC79A7", further=("#8E44AD",), foreach=True, graphs=True
    ),
    "mps": DeviceKind(
        title="Apple GPU",
        torch_type="mps",
        numbered=False,
        colour="#009E73",
        further=("#8A9A00",),
        compiler="",
        bf16=False,
        float64=False,
    ),
    "xpu": DeviceKind(title="Intel GPU", torch_type="xpu", colour="#E69F00", further=("#A0522D",), foreach=True),
    "other": DeviceKind(
        title="another accelerator", torch_type="other", colour="#56B4E9", further=("#5B78C7",), compiler="", bf16=False
    ),
}
"""The kinds of devices, by their name in rows."""

OTHER = "other"
"""Kind and name of any other device of `torch.accelerator`; PyTorch's own name for it is part of the device's name."""

SINGLE = tuple(kind.torch_type for kind in DEVICE_KINDS.values() if not kind.numbered)
"""Names of devices of which a machine has at most one."""

NUMBERED = tuple(dict.fromkeys(kind.torch_type for kind in DEVICE_KINDS.values() if kind.numbered))
"""Names of devices that are followed by a number."""

TITLES = {"cuda": "GPU", "mps": "Apple GPU", "xpu": "Intel GPU", "other": "Accelerator"}
"""Display names of the devices of a type; other types are displayed by their name."""


def kind_from_name(device: str) -> DeviceKind:
    """Return the kind of a device by its name; AMD's devices have the kind of NVIDIA's."""
    return DEVICE_KINDS[device.partition(":")[0]]


def device_title(device: str, threads: int = 0) -> str:
    """Return a device's name for people: `GPU`, `GPU 1`, `CPU`, `1 CPU thread`, `2 CPU threads`.

    Args:
        device: name of the device, with its number.
        threads: number of CPU threads that train, or that serve the device; 0 to omit them.
    """
    kind, _, number = device.partition(":")
    if kind == "cpu":
        return f"{threads} CPU thread{'' if threads == 1 else 's'}" if threads else "CPU"
    named = f"{TITLES.get(kind, kind)}{f' {number}' if number not in ('', '0') else ''}"
    return f"{named} served by {device_title('cpu', threads)}" if threads else named


_ONLY_ONE = re.compile(rf"(CPU|{'|'.join(TITLES.values())})\b(?! \d)")
_SEVERAL = re.compile(r"\d+ CPU threads\b")


def inline_device_name(name: str) -> str:
    """Return a device within a sentence: `the CPU`, `the GPU (NVIDIA H200)`, but `GPU 1` and `1 CPU thread`."""
    return f"the {name}" if _ONLY_ONE.match(name) else name


def does(name: str, one: str, several: str) -> str:
    """Return a device with its verb: `the GPU trains`, `1 CPU thread trains`, `2 CPU threads train`."""
    return f"{inline_device_name(name)} {several if _SEVERAL.match(name) else one}"


def capitalize_name(name: str) -> str:
    """Return a text that begins with a device, with a capital letter for the beginning of a sentence.

    Names of other origin stay unchanged.
    """
    return f"The{name[3:]}" if name.startswith("the ") else name


DEVICES = " or ".join(", ".join((*SINGLE, *(f"{name}, {name}:N" for name in NUMBERED))).rsplit(", ", 1))
"""Forms of device names, for messages: `cpu, mps, cuda, cuda:N, xpu or xpu:N`; without a number, the first device."""
