"""The kinds of device that a training can run on: the one table that everything asks about a kind.

Plain data, without torch. A new kind is an entry here: what it is called in contenders, in rows and in links, its
colour in every chart and the lanes that it has follow from it. Whatever is not the CPU is drained by
`torch.accelerator`; where PyTorch tells of memory, clock or driver in a way of its own, `core.measure.devices`
has a line for it.
"""

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class DeviceKind:
    """What holds for all devices of a kind.

    Attributes:
        title: name for people.
        torch_type: what PyTorch calls its devices; AMD's answer to the name of NVIDIA's.
        numbered: whether there may be several, told apart as `cuda:0` and `cuda:1`.
        colour: of the kind in every chart, told apart with every common colour blindness (Okabe & Ito 2008).
        further: hues of a second and a third training on devices of the kind, told apart from the first likewise.
        compiler: what torch.compile needs for it; empty where it makes no code for it.
        foreach: whether torch's SGD updates all parameters in one operation on it unless told otherwise.
        graphs: whether it replays CUDA graphs.
        tf32: whether it has NVIDIA's arithmetic of that name, from compute capability 8.0 on, as bfloat16.
        bf16: whether autocast to bfloat16 is offered for it here.
        float64: whether its tensors may be in float64.
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
"""By the name that rows give the kind."""

OTHER = "other"
"""Kind and name of whatever else `torch.accelerator` has, whose own name for it stands in the device's name."""

SINGLE = tuple(kind.torch_type for kind in DEVICE_KINDS.values() if not kind.numbered)
"""Names of devices of which a machine has one at most."""

NUMBERED = tuple(dict.fromkeys(kind.torch_type for kind in DEVICE_KINDS.values() if kind.numbered))
"""Names of devices that are followed by a number."""

TITLES = {"cuda": "GPU", "mps": "Apple GPU", "xpu": "Intel GPU", "other": "Accelerator"}
"""What people call the devices of a type; those left out go by their name."""


def kind_from_name(device: str) -> DeviceKind:
    """The kind that a device's name says; one that answers to the name of another counts as that."""
    return DEVICE_KINDS[device.partition(":")[0]]


def device_title(device: str, threads: int = 0) -> str:
    """A device for people: `GPU`, `GPU 1`, `CPU`, `1 CPU thread`, `2 CPU threads`.

    Args:
        device: as it is written, with its number.
        threads: CPU threads that it trains with, or that serve it; 0 where they are not said.
    """
    kind, _, number = device.partition(":")
    if kind == "cpu":
        return f"{threads} CPU thread{'' if threads == 1 else 's'}" if threads else "CPU"
    named = f"{TITLES.get(kind, kind)}{f' {number}' if number not in ('', '0') else ''}"
    return f"{named} served by {device_title('cpu', threads)}" if threads else named


_ONLY_ONE = re.compile(rf"(CPU|{'|'.join(TITLES.values())})\b(?! \d)")
_SEVERAL = re.compile(r"\d+ CPU threads\b")


def inline_device_name(name: str) -> str:
    """The name of a device within a sentence: `the CPU`, `the GPU (NVIDIA H200)`, but `GPU 1` and `1 CPU thread`."""
    return f"the {name}" if _ONLY_ONE.match(name) else name


def does(name: str, one: str, several: str) -> str:
    """A device within a sentence with its verb: `the GPU trains`, `1 CPU thread trains`, `2 CPU threads train`."""
    return f"{inline_device_name(name)} {several if _SEVERAL.match(name) else one}"


def capitalize_name(name: str) -> str:
    """Words that begin with a device, at the beginning of a sentence; names that others gave stay as they are."""
    return f"The{name[3:]}" if name.startswith("the ") else name


DEVICES = " or ".join(", ".join((*SINGLE, *(f"{name}, {name}:N" for name in NUMBERED))).rsplit(", ", 1))
"""How devices are written, for people: `cpu, mps, cuda, cuda:N, xpu or xpu:N`; without a number the first is meant."""
