"""What a demonstration showed: plain data that the measuring half makes and the pages draw.

Kept as JSON by `core.results.exhibits`, so that what was recorded on one machine can be shown on another. What is
read back is checked as any foreign input. Nothing here measures, and nothing imports torch.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from core.demonstration import Demonstration, Kind
from core.errors import InvalidValue

MAX_TEXT = 20_000
"""Characters of any one text; the longest are PyTorch's own messages."""

MAX_ENTRIES = 10_000
"""Entries of any one list."""

MAX_NUMBER = 1e12
"""Seconds and ratios beyond it are nobody's measurement."""

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Participant:
    """One contender of a demonstration.

    Attributes:
        contender: written form, as asked: `cpu`, `cpu@1`, `cuda:0`.
        device: `cpu`, `cuda:0`, `xpu:0` or `mps`.
        kind: `cpu`, `cuda`, `rocm`, `xpu` or `mps`.
        device_name: the device's own name.
        threads: CPU threads that served it.
        startup_s: seconds of the first use of the device in the process, None where it was not used.
    """

    contender: str
    device: str
    kind: str
    device_name: str
    threads: int
    startup_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to time a training, with what it gave on one contender.

    Attributes:
        name: key of `core.demonstration.RECIPES`.
        title: label for people.
        explains: what is done, and what comes of it.
        switched: keys of `core.demonstration.SHORTCUTS`.
        epoch_s: seconds of an epoch by this clock, one entry a reading. A reading covers `steps` steps and is scaled
            to an epoch.
        steps: training steps of one reading.
        contender: whose training it was.
    """

    name: str
    title: str
    explains: str
    switched: tuple[str, ...]
    epoch_s: tuple[float, ...]
    steps: int
    contender: str

    def __post_init__(self) -> None:
        if not self.epoch_s or min(self.epoch_s) <= 0:
            raise InvalidValue("epoch_s", self.epoch_s, "at least one number of seconds above 0")


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A training timed in several ways.

    Attributes:
        variants: contender by contender, `ours` first.
        notes: a sentence for each that was left out.
    """

    variants: tuple[Variant, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [(variant.contender, variant.name) for variant in self.variants]
        wanting = {contender for contender, _ in names} - {contender for contender, name in names if name == "ours"}
        if not names or wanting or len(set(names)) < len(names):
            raise InvalidValue("variants", names, "for each contender each name once, ours among them")

    def of(self, contender: str) -> tuple[Variant, ...]:
        """The variants of one contender, `ours` first."""
        found = [variant for variant in self.variants if variant.contender == contender]
        return tuple(sorted(found, key=lambda variant: variant.name != "ours"))


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """A few lines of Python that were run, with what they said.

    Attributes:
        title: what is asked.
        code: that was run as it stands.
        output: what it printed.
        error: what PyTorch raised, its type and message; empty if nothing.
        device: that is used beside the CPU: `cuda:0`, …; `meta`, PyTorch's device without memory, where there is no
            accelerator; `cpu` where the lines need numbers and there is none.
    """

    title: str
    code: str
    output: str
    error: str
    device: str


@dataclass(frozen=True, kw_only=True)
class Moving:
    """What moving does.

    Attributes:
        snippets: in the order in which they are read.
        notes: what must be known beside them: where the device `meta` stands for an accelerator, that it does.
    """

    snippets: tuple[Snippet, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FirstStep:
    """How far two contenders are apart after one step from the same weights with the same batch.

    Attributes:
        parameters: name of each parameter with the relative difference of its gradients: the length of the
            difference over that of the first contender's gradient.
        loss_difference: of the loss of the first batch, relative to that of the first contender.
        contenders: written form of the two.
    """

    parameters: tuple[tuple[str, float], ...]
    loss_difference: float
    contenders: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.parameters:
            raise InvalidValue("parameters", self.parameters, "at least one")
        if len(self.contenders) != 2:
            raise InvalidValue("contenders", self.contenders, "two")

    @property
    def largest(self) -> float:
        """Largest relative difference of a gradient."""
        return max(difference for _, difference in self.parameters)


Content = Clock | Moving | FirstStep

CONTENTS: dict[Kind, type[Clock] | type[Moving] | type[FirstStep]] = {
    "clock": Clock,
    "moving": Moving,
    "first_step": FirstStep,
}
"""What each kind of demonstration shows."""


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """What one demonstration showed, when and on what.

    Attributes:
        id: its name, 12 hexadecimal digits.
        demonstration: what was asked.
        measured_at: when it began, ISO 8601, UTC.
        cpu_name: of the machine.
        machine_id: of the machine.
        torch_version: that showed it.
        app_commit: of the code that showed it.
        participants: one a contender, in the order asked.
        content: what it showed; of the type that `CONTENTS` names for its kind.
    """

    id: str
    demonstration: Demonstration
    measured_at: str
    cpu_name: str
    machine_id: str
    torch_version: str
    app_commit: str
    participants: tuple[Participant, ...]
    content: Content

    def __post_init__(self) -> None:
        if len(self.id) != 12 or set(self.id) - set("0123456789abcdef"):
            raise InvalidValue("id", self.id, "12 hexadecimal digits")
        if not isinstance(self.content, CONTENTS[self.kind]):
            raise InvalidValue("content", type(self.content).__name__, f"what the lesson {self.kind} shows")

    @property
    def kind(self) -> Kind:
        """Key of `core.demonstration.KINDS`."""
        return self.demonstration.kind

    @property
    def device_names(self) -> dict[str, str]:
        """Contender → its device's own name."""
        return {entry.contender: entry.device_name for entry in self.participants}

    def to_json(self) -> dict[str, Any]:
        """Plain data for a file; `from_json` reads it back to an equal exhibit."""
        return {**dataclasses.asdict(self), "demonstration": self.demonstration.to_json()}

    @classmethod
    def from_json(cls, data: object) -> Self:
        """An exhibit from `to_json`'s data.

        Raises:
            InvalidValue: the data are not those of an exhibit.
        """
        fields = _object("exhibit", data)
        demonstration = Demonstration.from_json(fields.get("demonstration"))
        texts = ("id", "measured_at", "cpu_name", "machine_id", "torch_version", "app_commit")
        return cls(
            demonstration=demonstration,
            participants=_list(fields, "participants", _participant),
            content=_CONTENT_FROM[demonstration.kind](_object("content", fields.get("content"))),
            **{name: _text(fields, name) for name in texts},
        )


def _clock(fields: Mapping[str, object]) -> Clock:
    return Clock(variants=_list(fields, "variants", _variant), notes=_list(fields, "notes", _word))


def _moving(fields: Mapping[str, object]) -> Moving:
    return Moving(snippets=_list(fields, "snippets", _snippet), notes=_list(fields, "notes", _word))


def _first_step(fields: Mapping[str, object]) -> FirstStep:
    return FirstStep(
        parameters=_list(fields, "parameters", _difference),
        loss_difference=_number("loss_difference", fields.get("loss_difference")),
        contenders=_list(fields, "contenders", _word),
    )


_CONTENT_FROM: dict[Kind, Callable[[Mapping[str, object]], Content]] = {
    "clock": _clock,
    "moving": _moving,
    "first_step": _first_step,
}


def _participant(data: object) -> Participant:
    fields = _object("participants", data)
    startup_s = fields.get("startup_s")
    return Participant(
        threads=_count(fields, "threads"),
        startup_s=None if startup_s is None else _number("startup_s", startup_s),
        **{name: _text(fields, name) for name in ("contender", "device", "kind", "device_name")},
    )


def _variant(data: object) -> Variant:
    fields = _object("variants", data)
    return Variant(
        switched=_list(fields, "switched", _word),
        epoch_s=_list(fields, "epoch_s", lambda value: _number("epoch_s", value)),
        steps=_count(fields, "steps"),
        **{name: _text(fields, name) for name in ("name", "title", "explains", "contender")},
    )


def _snippet(data: object) -> Snippet:
    fields = _object("snippets", data)
    return Snippet(**{name: _text(fields, name) for name in ("title", "code", "output", "error", "device")})


def _difference(data: object) -> tuple[str, float]:
    match data:
        case [name, value]:
            return _word(name), _number("parameters", value)
    raise InvalidValue("parameters", data, "a name with a number")


def _object(name: str, data: object) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise InvalidValue(name, data, "an object")
    return data


def _list(fields: Mapping[str, object], name: str, read: Callable[[object], _T]) -> tuple[_T, ...]:
    entries = fields.get(name)
    if not isinstance(entries, list) or len(entries) > MAX_ENTRIES:
        raise InvalidValue(name, entries, f"a list of at most {MAX_ENTRIES:,} entries")
    return tuple(read(entry) for entry in entries)


def _text(fields: Mapping[str, object], name: str) -> str:
    return _word(fields.get(name), name)


def _word(value: object, name: str = "text") -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise InvalidValue(name, value, f"a text of at most {MAX_TEXT:,} characters")
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_NUMBER:
        raise InvalidValue(name, value, f"a number between 0 and {MAX_NUMBER:g}")
    return float(value)


def _count(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 2**31:
        raise InvalidValue(name, value, "a whole number that is not negative")
    return value
