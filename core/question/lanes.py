"""The kinds of device that a training can run on, and execution variants, in code `Lane`: the ways to run it on one.

The table of devices contains all facts about each kind. A new kind is an entry there, from which follow its names in
contenders, rows and links, its colour in every chart and its variants. Every kind except the CPU is synchronized by
`torch.accelerator`; where PyTorch reports memory, clock or driver in a special way, `core.measure.devices` has a line
for it.

A variant says whether it changes the numerics of a training. `core.measure.execution` runs a variant;
`core.measure.devices` checks whether a device supports it, and fills in the refusals that `why_not` reads. An omitted
word means its default, so the default eager loop has no name and `cpu` keeps its meaning. The module contains data and
sentences only and does not import torch.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from ..errors import InvalidValue, require_choice
from . import models
from .custom import CUSTOM
from .fields import Training


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


LANE_WORDS: dict[str, dict[str, str]] = {
    "execution": {
        "eager": "",  # step by step, as PyTorch runs what one writes
        "compiled": "compiled",  # the whole step, forward to update, one function by torch.compile
        "graph": "CUDA graph",  # the whole step recorded once and replayed, so that the host launches no kernel
    },
    "optimizer": {
        "default": "",  # the update as PyTorch chooses it for the device
        "foreach": "foreach optimizer",  # of all parameters in a few operations
        "fused": "fused optimizer",  # in one kernel
    },
    "precision": {
        "fp32": "",  # strict 32-bit arithmetic on every device
        "tf32": "TF32",  # matrix products with inputs rounded to 10 bits of mantissa
        "bf16": "bf16",  # forward and backward in bfloat16 where autocast allows it, weights in fp32
        "fp16": "fp16",  # likewise in float16, the loss scaled by GradScaler, with a fused update that needs no wait
    },
    "memory_format": {
        "contiguous": "",  # images as PyTorch stores them: channel by channel
        "channels_last": "channels last",  # pixel by pixel, which some convolutions prefer
    },
    "host_memory": {
        "returned": "",  # what a step frees goes back to the system, as the C library does it with large blocks
        "kept": "memory reused",  # reused by the next step, as PyTorch does on a GPU, not requested anew
    },
    "cudnn": {
        "heuristic": "",  # the library chooses the algorithm of a convolution by its shape
        "benchmark": "cuDNN benchmark",  # it times all of them at first use, and takes the fastest
    },
}
"""Field of a variant → its words, the default first, each with its display name."""

LOWER_PRECISION = frozenset({"tf32", "bf16", "fp16"})
"""Words of variants that compute other numbers; all other variants differ only in the order of summation."""

CUSTOM_LANES = frozenset({"compiled", "bf16", "tf32", "kept"})
"""Kinds of variants of a custom script: those that can be applied to its steps from outside."""

MAX_STEPS_PER_CALL = 100
MAX_MICRO_BATCH = 65_536

_CHOSEN = {name: words for name, words in LANE_WORDS.items() if name != "execution"}
"""Fields whose words have no number; a word of `execution` may have one."""

_TITLES = {word: title for words in LANE_WORDS.values() for word, title in words.items()}

_EXECUTION = re.compile(r"(compiled|graph)([1-9]\d{0,5})?", re.ASCII)
_MICRO = re.compile(r"micro([1-9]\d{0,5})", re.ASCII)


@dataclass(frozen=True, kw_only=True, order=True)
class Lane:
    """One way to run a training, in words of `LANE_WORDS`.

    Attributes:
        execution: how a step is run.
        steps_per_call: number of whole steps in one compiled call or replay; 1 for eager execution.
        optimizer: implementation of the update; `default` if compiled, because the compiled step contains the update.
        precision: precision of the computation.
        memory_format: memory format of images.
        host_memory: whether the process reuses memory that a step frees; only for training on the CPU.
        cudnn: how cuDNN, or AMD's MIOpen, chooses the algorithm of a convolution.
        micro_batch: samples per micro-batch, whose gradients are accumulated; 0 for the whole batch.
    """

    execution: str = "eager"
    steps_per_call: int = 1
    optimizer: str = "default"
    precision: str = "fp32"
    memory_format: str = "contiguous"
    host_memory: str = "returned"
    cudnn: str = "heuristic"
    micro_batch: int = 0

    def __post_init__(self) -> None:
        for name, known in LANE_WORDS.items():
            require_choice(name, getattr(self, name), known)
        _require_whole_number("steps_per_call", self.steps_per_call, 1, MAX_STEPS_PER_CALL)
        _require_whole_number("micro_batch", self.micro_batch, 0, MAX_MICRO_BATCH)
        if self.execution == "eager" and self.steps_per_call > 1:
            raise InvalidValue("steps_per_call", self.steps_per_call, "1 unless the execution is compiled or graph")
        if self.execution == "compiled" and self.optimizer != "default":
            raise InvalidValue("optimizer", self.optimizer, "left out where the step is compiled, which contains it")

    @functools.cached_property
    def words(self) -> tuple[str, ...]:
        """The words that differ from the default variant, in the order of writing: `compiled10`, `bf16`."""
        called = f"{self.steps_per_call}" if self.steps_per_call > 1 else ""
        said = (
            ("" if self.execution == "eager" else f"{self.execution}{called}"),
            *(("" if value == default else value) for value, default in self._choices),
            (f"micro{self.micro_batch}" if self.micro_batch else ""),
        )
        return tuple(word for word in said if word)

    @property
    def title(self) -> str:
        """Display name: `compiled, 10 steps a call`; empty for the default."""
        return ", ".join(_TITLES.get(word) or _title_numbered_word(word) for word in self.words)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The variant's words without their numbers: the features that a device may or may not support."""
        return tuple(re.sub(r"\d+$", "", word) if word not in LANE_WORDS["precision"] else word for word in self.words)

    @property
    def has_same_numerics(self) -> bool:
        """Whether the variant computes the same numbers as the default, except for the order of summation."""
        return not LOWER_PRECISION & set(self.words)

    @property
    def columns(self) -> dict[str, Any]:
        """The variant's fields, named like the columns of a row."""
        return asdict(self)

    def round_up_to_calls(self, steps: int) -> int:
        """Round a number of steps up to whole calls."""
        return -(-steps // self.steps_per_call) * self.steps_per_call

    @property
    def _choices(self) -> Iterable[tuple[str, str]]:
        return ((getattr(self, name), next(iter(known))) for name, known in _CHOSEN.items())

    @classmethod
    def parse(cls, words: Iterable[str]) -> Self:
        """Parse a variant from its words, in any order.

        Raises:
            InvalidValue: a word is unknown, or two of one kind contradict each other.
        """
        return cls._parse_cached(tuple(words))

    @classmethod
    @functools.lru_cache(maxsize=256)  # a page asks for the same few at every run
    def _parse_cached(cls, words: tuple[str, ...]) -> Self:
        found: dict[str, Any] = {}
        for word in words:
            for name, value in _fields_from_word(word).items():
                if found.setdefault(name, value) != value:
                    raise InvalidValue("lane", word, f"left out, as {found[name]} was given already")
        return cls(**found)

    @classmethod
    def from_row(cls, row: object) -> Self:
        """Return the variant of a stored row."""
        return cls(**{name: getattr(row, name) for name in FIELDS})


FIELDS = tuple(Lane.__dataclass_fields__)
"""Names of a variant's fields, which are columns of a row as well."""

CACHED_SAMPLES = 256
"""Samples of a micro-batch worth trying: with the tutorials' networks, about this many fit the cache."""

WORTH_TRYING = {
    True: ("compiled10", "compiled", "kept", "micro", "fused", "bf16", "channels_last", "foreach"),
    False: (
        "graph10",
        "graph",
        "compiled10",
        "compiled",
        "bf16",
        "fp16",
        "tf32",
        "benchmark",
        "fused",
        "channels_last",
    ),
}
"""Words of variants that may help, by whether the device is the host; those that helped most in earlier runs come
first.
"""


LONG_STEP_S = 2e-3
"""Step length from which several steps per compiled call gain nothing over one.

On a CPU, ten per call were fastest up to 0.6 ms per step, and one from 2.7 ms on (docs/internal/results.md).
"""


def drop_unsuited_compiled(lanes: Sequence[Lane], step_s: float | None) -> list[Lane]:
    """Return the variants to try on a CPU, without compiled ones that do not suit the length of the training's steps.

    Args:
        lanes: variants.
        step_s: seconds of a default eager step; None if unknown, and nothing is left out.
    """
    if step_s is None:
        return list(lanes)
    several = step_s < LONG_STEP_S and any(lane.steps_per_call > 1 for lane in lanes)
    return [lane for lane in lanes if lane.execution != "compiled" or (lane.steps_per_call > 1) == several]


def worth_trying(training: Training, *, on_host: bool) -> tuple[Lane, ...]:
    """Return the variants to try with a training, the most promising first; a device may lack support for some.

    Args:
        training: a requested training, or a stored row of it; its batch size is 0 where that is varied.
        on_host: whether the device is the CPU.
    """
    batch_size = training.batch_size
    piece = max((size for size in range(1, CACHED_SAMPLES + 1) if batch_size % size == 0), default=1)
    pieces = f"micro{piece}" if batch_size > CACHED_SAMPLES and piece >= CACHED_SAMPLES // 8 else ""
    words = (pieces if word == "micro" else word for word in WORTH_TRYING[on_host])
    found = (Lane.parse([word]) for word in words if word)
    return tuple(lane for lane in found if not unfit(lane, training))


def why_not(lane: Lane, refusals: Mapping[str, str], contender: str) -> str:
    """Return why a device cannot run a variant, in one sentence; empty if it can.

    Args:
        lane: the requested variant.
        refusals: kind of variant → reason, for one device (`DeviceInfo.refusals`).
        contender: display name of the contender within a sentence.
    """
    reasons = [refusals[kind] for kind in lane.kinds if kind in refusals]
    return f"Training on {contender} is not possible: {reasons[0]}." if reasons else ""


def unfit(lane: Lane, training: Training) -> tuple[str, object, str] | None:
    """Return why a training cannot run in a variant on any device: field, value and a valid choice; None if it can."""
    if training.model == CUSTOM and (lane.steps_per_call > 1 or not set(lane.kinds) <= CUSTOM_LANES):
        return (
            "devices",
            "+".join(lane.words),
            "compiled, bf16, tf32 or kept, which do not change the code of your script",
        )
    size, family = training.batch_size, models.FAMILIES.get(training.model)
    if family and family.library and lane != PLAIN:
        return "devices", "+".join(lane.words), f"left out: {family.library} has its own way of fitting"
    if lane.micro_batch and size == 1:
        return "micro_batch", lane.micro_batch, "left out: a batch of one sample has no pieces"
    if lane.micro_batch and (size % lane.micro_batch or lane.micro_batch == size):
        return "micro_batch", lane.micro_batch, f"a smaller divisor of the batch size {size:,}"
    if training.dtype == "float64" and not lane.has_same_numerics:
        return (
            "precision",
            lane.precision,
            "fp32, the default, because a lower precision would cancel float64",
        )
    if lane.execution == "compiled" and family and family.uncompiled:
        return "execution", "compiled", f"eager or a graph for a recurrent model: {family.uncompiled}"
    return _unfit_precision(lane) or _unfit_convolutions(lane, training)


def _unfit_precision(lane: Lane) -> tuple[str, object, str] | None:
    if lane.precision == "fp16" and (lane.execution != "eager" or lane.optimizer == "foreach"):
        return (
            "precision",
            "fp16",
            "combined with fused only: each step must know whether its update is skipped",
        )
    return None


def _unfit_convolutions(lane: Lane, training: Training) -> tuple[str, object, str] | None:
    family = models.FAMILIES.get(training.model)
    if family and family.convolutions:
        return None
    if lane.memory_format == "channels_last":
        return "memory_format", lane.memory_format, "contiguous for a model without convolutions"
    if lane.cudnn == "benchmark":
        return "cudnn", lane.cudnn, "left out for a model without convolutions"
    return None


def _fields_from_word(word: str) -> dict[str, Any]:
    """Return the fields that one word sets."""
    if match := _EXECUTION.fullmatch(word):
        return {"execution": match[1], "steps_per_call": int(match[2] or 1)}
    if match := _MICRO.fullmatch(word):
        return {"micro_batch": int(match[1])}
    for name, known in _CHOSEN.items():
        if word in known:
            return {name: word}
    wanted = (
        "compiled, compiled10, graph, graph10, foreach, fused, tf32, bf16, fp16, channels_last, kept, benchmark "
        "or micro250"
    )
    raise InvalidValue("lane", word, wanted)


def _title_numbered_word(word: str) -> str:
    if match := _MICRO.fullmatch(word):
        return f"micro-batches of {match[1]}"
    name, steps = re.findall(r"[a-z]+|\d+", word)
    return f"{_TITLES[name]}, {steps} steps a call" if name == "compiled" else f"{_TITLES[name]} of {steps} steps"


def _require_whole_number(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidValue(name, value, f"a whole number between {low:,} and {high:,}")


PLAIN = Lane()
"""Default variant: eager, strict fp32; the baseline of every other variant."""
