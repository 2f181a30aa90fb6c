"""An experiment: one training, and the contenders that run it.

Every `Experiment` is valid. Its identity is a hash of its canonical JSON, so the same question always has the same name
in links, jobs and the store. Nothing here measures or depends on this machine.
"""

import dataclasses
import functools
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Self

from ..errors import InvalidValue, require_choice
from . import catalog, custom, lanes, models
from .fields import FIELDS, LOADER_PATHS, TRAINING, Training
from .lanes import DEVICES, NUMBERED, PLAIN, SINGLE, Lane

PROTOCOL_VERSION = 2
"""Version of the methodology, raised whenever a change makes newer rows incomparable with older ones."""

MAX_CONTENDERS = 8

EVERY_EPOCH = 0
"""Value of `pairs` in an experiment that trains every epoch."""

CUSTOM_PAIRS = 20
"""Default pairs of blocks of a custom script: the number of steps of its epoch is unknown."""

BEST_THREADS = 0
"""Value of `threads` in a contender that tries several thread counts and trains with the best."""

_NUMBERS = tuple(name for name in TRAINING if FIELDS[name].is_number)

_DEVICE = re.compile(rf"({'|'.join(SINGLE)})|({'|'.join(NUMBERED)})(?::(\d{{1,2}}))?", re.ASCII)
_CONTENDER = re.compile(
    r"(?P<device>[a-z]{1,8}(?::\d{1,2})?)(?:@(?P<threads>\d{1,4}))?(?P<lane>(?:[+ ]\w{1,32}){0,16})", re.ASCII
)
"""A `+` in a link typed by hand arrives as a space. Each part is bounded, so no text takes long to match."""


@dataclass(frozen=True, kw_only=True)
class Point(Training, custom.CustomFields):
    """One training, without its devices. Sizes that do not affect the model are set to 0."""

    def __post_init__(self) -> None:
        custom.check_custom_fields(self)
        if self.training:
            for name, value in custom.SETTLED.items():
                _settle(self, name, value)
            return
        _settle(self, "samples", self.samples or catalog.dataset(self.dataset).default_samples)
        for name in self.idle:
            _settle(self, name, models.families.SETTLED.get(name, 0) if self.is_fit else 0)
        self._check()

    def _check(self) -> None:
        """Refuse an invalid training; raises InvalidValue."""
        for name in ("data_path", "dtype"):
            require_choice(name, getattr(self, name), FIELDS[name].words)
        if not isinstance(self.shuffle, bool):
            raise InvalidValue("shuffle", self.shuffle, "true or false")
        for name in sorted({*_NUMBERS} - self.idle, key=_NUMBERS.index):
            bounds = value_range(name, dataset=self.dataset, model=self.model)
            _settle(self, name, _check_number(name, getattr(self, name), *bounds))
        if self.batch_size > self.samples:
            raise InvalidValue("batch_size", self.batch_size, f"at most the {self.samples:,} training samples")

    @property
    def is_fit(self) -> bool:
        """Whether a step is a whole fit of another library than torch."""
        return not self.training and bool(models.family(self.model).library)

    @property
    def idle(self) -> set[str]:
        """Fields without effect: sizes of other families, workers without a loader, settings that a fit ignores."""
        found = set(models.AXES) - set(models.list_model_sizes(self.model, self.dataset))
        found |= set() if self.data_path in LOADER_PATHS else {"loader_workers"}
        return found | set(models.families.SETTLED if self.is_fit else ())

    @property
    def network(self) -> models.Network:
        """The network as data, with its parameters, operations and memory.

        Raises:
            InvalidValue: the training is a custom script, whose network is unknown.
        """
        facts = catalog.dataset(self.dataset)
        return models.network(
            self.model,
            input_shape=facts.shape_for_length(self.sequence_length),
            classes=len(facts.classes),
            vocabulary=facts.vocabulary_for_rows(self.embedding_rows),
            dtype=self.dtype,
            **{name: getattr(self, name) for name in models.AXES},
        )

    @property
    def steps_per_epoch(self) -> int:
        """Number of full batches in the training samples; 1 if a step uses all of them."""
        return self.samples // self.batch_size if self.batch_size else 1

    @property
    def total_steps(self) -> int:
        """Number of steps of the whole training."""
        return self.steps_per_epoch * self.epochs

    @classmethod
    def from_row(cls, row: object) -> Self:
        """Build the training of a stored row, whose columns have the names of the fields.

        Raises:
            InvalidValue: this version does not offer its settings.
        """
        return cls(**{entry.name: getattr(row, entry.name) for entry in dataclasses.fields(cls)})

    @classmethod
    def parse(cls, fields: Mapping[str, object]) -> Self:
        """Return a point from a link, a command line or JSON; text is read as the field's type.

        Raises:
            InvalidValue: a field is unknown, of the wrong type or out of range.
        """
        return cls(**{name: _convert_field(name, value) for name, value in fields.items()})

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Self:
        """Build a point from the data of `to_json`; only these may describe a custom script.

        Raises:
            InvalidValue: as `parse`.
        """
        known: dict[str, Any] = {name: data[name] for name in custom.FIELDS if data.get("training") and name in data}
        return cls(**known, **{name: _convert_field(name, value) for name, value in data.items() if name not in known})

    def to_json(self) -> dict[str, Any]:
        """Return data for a JSON file, without defaults of later fields, so that identities stay the same."""
        data = dataclasses.asdict(self)
        if self.training:
            return {name: data[name] for name in custom.FIELDS}
        return {name: data[name] for name in TRAINING if not FIELDS[name].later or data[name] != FIELDS[name].absent}


@dataclass(frozen=True, kw_only=True, order=True)
class Contender:
    """A device, the number of CPU threads that serve it, and its variant.

    Its written form is `cpu`, `cuda:1`, `cpu@1`, `cpu@2+compiled10` or `cuda:0+graph10+bf16`; defaults are omitted.

    Attributes:
        device: `cpu`, `cuda:N` (NVIDIA, and AMD through ROCm), `xpu:N`, `mps` or `other:N`.
        threads: CPU threads, or `BEST_THREADS` to try several and use the fastest.
        lane: execution variant of the training.
    """

    device: str = "cpu"
    threads: int = BEST_THREADS
    lane: Lane = PLAIN

    def __post_init__(self) -> None:
        match = _DEVICE.fullmatch(self.device) if isinstance(self.device, str) else None
        if match is None:
            raise InvalidValue("device", self.device, DEVICES)
        if match[2]:
            _settle(self, "device", f"{match[2]}:{int(match[3] or 0)}")
        _settle(self, "threads", _check_number("threads", self.threads))

    def __str__(self) -> str:
        served = self.device if self.threads == BEST_THREADS else f"{self.device}@{self.threads}"
        return "+".join((served, *self.lane.words))

    @property
    def title(self) -> str:
        """Display name: `2 CPU threads, compiled, 10 steps a call`, `GPU`, `GPU 1, CUDA graph`."""
        return ", ".join(filter(None, (lanes.device_title(self.device, self.threads), self.lane.title)))

    @property
    def spoken(self) -> str:
        """Display name within a sentence: `the CPU`, `1 CPU thread`, `the GPU (bf16)`, `2 CPU threads (compiled)`."""
        device = lanes.inline_device_name(lanes.device_title(self.device, self.threads))
        return f"{device} ({self.lane.title})" if self.lane.title else device

    @property
    def on_host(self) -> bool:
        """Whether the training runs on the CPU."""
        return self.device == "cpu"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return a contender from its written form.

        Raises:
            InvalidValue: `text` is not of that form.
        """
        match = _CONTENDER.fullmatch(text.strip())
        if match is None:
            raise InvalidValue("devices", text, "a device such as cpu, cuda:0 or mps, or cpu@1 for one thread")
        lane = Lane.parse(re.findall(r"\w+", match["lane"]))
        return cls(device=match["device"], threads=int(match["threads"] or BEST_THREADS), lane=lane)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One point on one or several contenders, measured together.

    Attributes:
        point: the training.
        contenders: distinct contenders; the first is the baseline of speedups.
        budget_s: seconds after which training is stopped; earlier measurements are saved.
        pairs: number of pairs of blocks after which it ends even if epochs remain, if only the times matter; or
            `EVERY_EPOCH`. A custom script is measured only for its times.
        folder: folder of the custom script's file; empty if unknown, as in rows.
        whole: whether every epoch is trained; otherwise it ends once the faster device is certain.
    """

    point: Point
    contenders: tuple[Contender, ...] = field(default_factory=lambda: (Contender(),))
    budget_s: float = FIELDS["budget_s"].default
    pairs: int = EVERY_EPOCH
    folder: str = ""
    whole: bool = True

    def __post_init__(self) -> None:
        _settle(self, "contenders", parse_contenders(self.contenders))
        if self.point.training and self.pairs == EVERY_EPOCH:
            _settle(self, "pairs", CUSTOM_PAIRS)
        if not 1 <= len(self.contenders) <= MAX_CONTENDERS or len(set(self.contenders)) < len(self.contenders):
            shown = ", ".join(map(str, self.contenders))
            raise InvalidValue("devices", shown, f"between 1 and {MAX_CONTENDERS} different devices")
        for name in ("budget_s", "pairs"):
            _settle(self, name, _check_number(name, getattr(self, name)))
        for contender in self.contenders:
            if self.point.is_fit:
                models.families.check_device(self.point.model, contender.device)
            if obstacle := lanes.unfit(contender.lane, self.point):
                raise InvalidValue(*obstacle)
            if self.point.dtype == "float64" and not lanes.kind_from_name(contender.device).float64:
                raise InvalidValue("dtype", "float64", f"float32 with {contender.spoken}, which has no float64")

    @functools.cached_property
    def id(self) -> str:
        """Name of the question, 16 hexadecimal digits: a hash of training, contenders and methodology version.

        Budget and pairs are not included: a completed training answers the question for every budget, and for times
        alone.
        """
        return hash_question({"point": self.point.to_json(), "contenders": list(map(str, self.contenders))})

    def to_json(self) -> dict[str, Any]:
        """Return data for a JSON file; `from_json` reads it back to an equal experiment."""
        return {
            "point": self.point.to_json(),
            "contenders": [str(contender) for contender in self.contenders],
            "budget_s": self.budget_s,
            "pairs": self.pairs,
            **({"folder": self.folder} if self.folder else {}),
            **({} if self.whole else {"whole": False}),
        }

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Build an experiment from `to_json`'s data, checked as any other input.

        Raises:
            InvalidValue: the data do not describe an experiment.
        """
        match data:
            case {"point": dict(point), "contenders": list(contenders), "budget_s": int() | float() as budget, **rest}:
                # jobs of earlier versions do not say all of it
                limits: dict[str, Any] = {"budget_s": budget, "pairs": rest.get("pairs", EVERY_EPOCH)}
                limits |= {"folder": str(rest.get("folder", "")), "whole": rest.get("whole", True) is not False}
                return cls(point=Point.from_json(point), contenders=parse_contenders(contenders), **limits)
        raise InvalidValue("experiment", data, "an object with point, contenders and budget_s")


def hash_question(question: Mapping[str, Any], separators: tuple[str, str] = (",", ":")) -> str:
    """Return the name of a question in this methodology, a hash of its identity: 16 hexadecimal digits."""
    canonical = json.dumps({**question, "protocol": PROTOCOL_VERSION}, sort_keys=True, separators=separators)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def parse_contenders(contenders: str | Iterable[object]) -> tuple[Contender, ...]:
    """Return contenders, which may be in their written form; raises InvalidValue if one is invalid."""
    listed = contenders.split(",") if isinstance(contenders, str) else contenders
    return tuple(each if isinstance(each, Contender) else Contender.parse(str(each)) for each in listed)


@functools.lru_cache(maxsize=4_096)
def display_name(text: str) -> str:
    """Return the display name of a contender in its written form; other text stays unchanged."""
    try:
        return Contender.parse(text).title
    except InvalidValue:
        return text


@functools.lru_cache(maxsize=4_096)
def inline_name(text: str) -> str:
    """Return the display name within a sentence of a contender in its written form; other text stays unchanged."""
    try:
        return Contender.parse(text).spoken
    except InvalidValue:
        return text


def value_range(field: str, *, dataset: str, model: str) -> tuple[float, float]:
    """Return the lowest and highest allowed value of a field, with the limits of data set and model family."""
    if field == "samples":
        return FIELDS[field].low, catalog.dataset(dataset).max_samples
    if field == "depth" and model == "doubling-mlp":
        return models.DOUBLING_DEPTH
    return FIELDS[field].low, FIELDS[field].high


def _settle(instance: object, field: str, value: object) -> None:
    """Set a field of a frozen dataclass during its construction."""
    object.__setattr__(instance, field, value)


def _check_number(field: str, value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a number within the range of its field, and within narrower bounds if given.

    Raises:
        InvalidValue: the value is not a number, or out of range.
    """
    entry = FIELDS[field]
    low, high = max(low, entry.low), min(high, entry.high)
    whole = isinstance(entry.default, int)
    if isinstance(value, bool) or not issubclass(type(value), Integral if whole else Real) or not low <= value <= high:
        bounds = f"{low:,} and {high:,}" if whole else f"{low:,g} and {high:,g}"
        raise InvalidValue(field, value, f"a {'whole ' if whole else ''}number between {bounds}")
    return int(value) if whole else float(value)  # numbers of NumPy are such, and no file takes them


def _convert_field(name: str, value: object) -> Any:
    """Convert `value` to the type of field `name`; only text is converted, the checks see the rest."""
    kind = type(FIELDS[require_choice("setting", name, TRAINING)].default)
    if not isinstance(value, str) or kind is str:
        return value
    if kind is bool:
        return {"true": True, "false": False, "1": True, "0": False}.get(value.lower(), value)
    try:
        return kind(value)
    except ValueError:
        raise InvalidValue(name, value, "a number" if kind is float else "a whole number") from None
