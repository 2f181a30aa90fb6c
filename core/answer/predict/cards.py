"""Cards that can be predicted: what published timings say of each, and how far off the model was on whole trainings.

An operation takes a fixed time and its arithmetic or its memory traffic, whichever takes longer; the fewer numbers it
computes, the emptier the card and the less of its speed it reaches. `data/predict/README.md` says where each constant
comes from; `tests/benchmarks/fit_predictions.py` fits them.
"""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidValue
from ...files import documents
from ...files.project import PROJECT
from ...question.models.operations import OPERATION_KINDS, Operation

FOLDER = PROJECT / "data" / "predict"

TILE = 128 * 128
"""Numbers that one multiprocessor computes at a time in a matrix product."""

REACHED_BANDWIDTH = 0.8
"""Share of the data sheet's bandwidth, for cards whose traffic was not timed."""

LOWEST_COVERAGE, LEAST_RUNS = 0.7, 10
"""Lowest coverage of a GPU's band over at least so many runs; below it, the GPU is switched off."""

Vector = NDArray[np.float64]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card, by its data sheet.

    Attributes:
        key: as links and the command line spell it.
        name: as the tables of timings spell it.
        title: for people.
        tflops: 10¹² float32 operations a second at the boost clock.
        gb_s: 10⁹ bytes a second of its memory.
        multiprocessors: units that compute at the same time.
        low_power: at most 75 W, which reach less of their data sheet.
        offered: `timed` where its operations and a whole training were timed, `data sheet` for a wider band, or empty.
        checked: whether the figures were compared with a named source.
        sources: addresses of those.
        device_names: as PyTorch calls such a card, without its maker and brand.
    """

    key: str
    name: str
    title: str
    tflops: float
    gb_s: float
    multiprocessors: int
    memory_gb: float
    low_power: bool
    offered: str
    checked: bool
    sources: tuple[str, ...]
    device_names: tuple[str, ...] = ()
    note: str = ""

    @property
    def basis(self) -> str:
        """Basis of its band: `timed` or `data_sheet`."""
        return self.offered.replace(" ", "_")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How operations of one kind fill a card: arithmetic takes F / (P · gain) · (1 + emptiness · x ^ exponent)."""

    gain: float
    emptiness: float
    exponent: float


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Reached speed of a GPU: 10¹² operations and 10⁹ bytes per second."""

    tflops: float
    gb_s: float


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Constants that cards share.

    Attributes:
        shapes: by kind of operation.
        share: of the data sheet's arithmetic that cards reach; `low_power_share` of those up to 75 W.
        centre: published over computed time in the middle.
        half_width: factor above and below that holds 90 % of published trainings; `wide` holds all.
    """

    shapes: dict[str, Shape]
    share: float
    low_power_share: float
    centre: float
    half_width: float
    wide: float


@dataclass(frozen=True, kw_only=True)
class Constants:
    """All that was fitted.

    Attributes:
        overhead_s: seconds of an operation before it computes.
        launch_s: least and most seconds that a host takes for each operation of a training step, as published.
        host_ratio: least and most by which an operation takes the host longer on a GPU than on the CPU.
        link_gb_s: slowest and fastest copies from host to device.
        largest_flops: by kind, operations of arithmetic of the largest one that was timed.
        fit: from all cards.
        speeds: of cards whose operations were timed.
        left_out: for each published card the same without anything of it.
    """

    overhead_s: float
    launch_s: tuple[float, float]
    host_ratio: tuple[float, float]
    link_gb_s: tuple[float, float]
    largest_flops: dict[str, float]
    fit: Fit
    speeds: dict[str, Speed]
    left_out: dict[str, Fit]


@dataclass(frozen=True, kw_only=True)
class _Cards:
    cards: tuple[Card, ...]


@functools.cache
def load_constants() -> Constants:
    """Return the fitted constants."""
    return _read("constants.json", Constants)


@functools.cache
def _all_cards() -> tuple[Card, ...]:
    return _read("cards.json", _Cards).cards


def _read(name: str, kind: type[T]) -> T:
    found = documents.read_json(FOLDER / name, kind)
    if found is None:
        raise FileNotFoundError(FOLDER / name)
    return found


def list_cards() -> tuple[Card, ...]:
    """List the offered GPUs, those with timings of their own first."""
    return tuple(card for card in _all_cards() if card.offered)


def find_card(name: str) -> Card:
    """Return the offered GPU of a key, or of a name or title in any spelling of its spaces.

    Raises:
        InvalidValue: none is called so.
    """
    cards = list_cards()
    wanted = _fold(name)
    for card in cards:
        if wanted in {_fold(word) for word in (card.key, card.name, card.title)}:
            return card
    raise InvalidValue("gpu", name, "one of {}", [card.key for card in cards])


def card_named(name: str) -> Card:
    """Return any GPU of the tables, offered or not, by its name there."""
    return next(card for card in _all_cards() if card.name == name)


def card_of_device(device_name: str) -> Card | None:
    """Return the offered GPU with this PyTorch name; None where there is none."""
    bare = device_name.removeprefix("NVIDIA ").removeprefix("GeForce ").strip()
    return next((card for card in list_cards() if bare in card.device_names), None)


def _fold(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum()).removeprefix("nvidia")


def reached_speed(card: Card, constants: Constants) -> Speed:
    """Return the reached speed of a GPU: as timed, else the share of their data sheets that others reach."""
    return constants.speeds.get(card.name) or data_sheet_speed(card, constants.fit)


def data_sheet_speed(card: Card, fit: Fit) -> Speed:
    """Return the expected speed of a GPU without timings."""
    share = fit.low_power_share if card.low_power else fit.share
    return Speed(tflops=share * card.tflops, gb_s=REACHED_BANDWIDTH * card.gb_s)


def operation_seconds(
    work: "Work", speed: Speed, multiprocessors: float | Vector, shapes: Mapping[str, Shape], overhead_s: float
) -> Vector:
    """Return the seconds of each operation on a GPU, alone and without its host.

    Args:
        work: the operations.
        speed: of the card; numbers, or one of each operation.
        multiprocessors: of the card, likewise.
        shapes: by kind.
        overhead_s: before it computes.
    """
    empty = multiprocessors * TILE / np.maximum(1.0, work.outputs)
    arithmetic = np.zeros(len(work.kinds))
    for kind, shape in shapes.items():
        chosen = work.kinds == OPERATION_KINDS.index(kind)
        reached = np.broadcast_to(np.asarray(speed.tflops) * 1e12, chosen.shape)[chosen] * shape.gain
        slowed = 1 + shape.emptiness * np.broadcast_to(empty, chosen.shape)[chosen] ** shape.exponent
        arithmetic[chosen] = work.flops[chosen] / reached * slowed
    moved: Vector = work.bytes / (np.asarray(speed.gb_s) * 1e9)
    return np.asarray(overhead_s + np.maximum(arithmetic, moved))


@dataclass(frozen=True, eq=False)
class Work:
    """Operations as columns; the kinds are places in `OPERATION_KINDS`."""

    kinds: NDArray[np.int64]
    flops: Vector
    bytes: Vector
    outputs: Vector
    counts: Vector

    @classmethod
    def from_operations(cls, operations: Iterable[Operation]) -> "Work":
        """Return the operations of a step."""
        listed = [(OPERATION_KINDS.index(one.kind), one.flops, one.bytes, one.outputs, one.count) for one in operations]
        return cls.from_rows(listed)

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[float]]) -> "Work":
        """Build it from rows of kind, operations, bytes, outputs and count."""
        columns = np.array(rows, dtype=float).reshape(-1, 5).T
        return cls(columns[0].astype(np.int64), *columns[1:])


def device_seconds(work: Work, card: Card, constants: Constants) -> float:
    """Return the seconds that a GPU computes for a step, in the middle of its band."""
    each = operation_seconds(
        work, reached_speed(card, constants), card.multiprocessors, constants.fit.shapes, constants.overhead_s
    )
    return constants.fit.centre * float(each @ work.counts)


def band_factor(card: Card, constants: Constants) -> float:
    """Return the factor above and below the middle that the band reaches."""
    return constants.fit.half_width if card.offered == "timed" else constants.fit.wide


# Published trainings against what is predicted for them


@dataclass(frozen=True, kw_only=True)
class PublishedStep:
    """A published training step.

    Attributes:
        card: its name in the tables.
        ms: milliseconds of a step.
        step: key of `Published.steps`.
        source: who published it.
    """

    source: str
    family: str
    card: str
    ms: float
    step: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class StepCounts:
    """Operations that a published step dispatches, and its work as rows of kind, operations, bytes, outputs, count."""

    launches: int
    work: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Published:
    """Published steps that may be shipped, with their licences."""

    licences: dict[str, str]
    rows: tuple[PublishedStep, ...]
    steps: dict[str, StepCounts]


@dataclass(frozen=True, kw_only=True)
class Miss:
    """A published step and its prediction, whose GPU was left out of the fit; seconds."""

    row: PublishedStep
    low_s: float
    middle_s: float
    high_s: float

    @property
    def error(self) -> float:
        """How far the middle was off, as a share: 0.3 for 1.3 times too long or too short."""
        return math.exp(abs(math.log(self.row.ms / 1e3 / self.middle_s))) - 1

    @property
    def inside(self) -> bool:
        """Whether the published time lies within the band."""
        return self.low_s <= self.row.ms / 1e3 <= self.high_s


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How well the model meets published trainings, each card left out of the fit in its turn."""

    rows: tuple[Miss, ...]

    @property
    def coverage(self) -> float:
        """Share of published steps within their band."""
        return sum(row.inside for row in self.rows) / len(self.rows)

    @property
    def median_error(self) -> float:
        """Median of the errors."""
        return float(np.median([row.error for row in self.rows]))

    @property
    def misses(self) -> tuple[Miss, ...]:
        """The steps outside their band."""
        return tuple(row for row in self.rows if not row.inside)

    def of_card(self, name: str) -> "Accuracy":
        """Return the same for one GPU; its figures raise ZeroDivisionError if it has no rows."""
        return Accuracy(rows=tuple(row for row in self.rows if row.row.card == name))


def predict_published(row: PublishedStep, counts: StepCounts, fit: Fit, constants: Constants) -> Miss:
    """Predict a published step from its GPU's data sheet and a fit that may leave the GPU out."""
    card, work = card_named(row.card), Work.from_rows(counts.work)
    each = operation_seconds(work, data_sheet_speed(card, fit), card.multiprocessors, fit.shapes, constants.overhead_s)
    computes = fit.centre * float(each @ work.counts)
    least, most = (counts.launches * each_s for each_s in constants.launch_s)
    return Miss(
        row=row,
        low_s=max(least, computes / fit.half_width),
        middle_s=max(math.sqrt(least * most), computes),
        high_s=max(most, computes * fit.half_width),
    )


@functools.cache
def load_accuracy() -> Accuracy:
    """Load published trainings and their predictions, each from a fit without its GPU."""
    constants, published = load_constants(), _read("published.json", Published)
    return Accuracy(
        rows=tuple(
            predict_published(row, published.steps[row.step], constants.left_out[row.card], constants)
            for row in published.rows
        )
    )


# Later runs against predictions that were made before them


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Runs on a GPU and their predictions; seconds per step: low, high and measured."""

    runs: tuple[tuple[float, float, float], ...] = field(default_factory=tuple)

    @property
    def coverage(self) -> float | None:
        """Share of runs within their band; None without any."""
        return sum(low <= s <= high for low, high, s in self.runs) / len(self.runs) if self.runs else None

    @property
    def is_off(self) -> bool:
        """Whether the card is switched off: too few of enough runs were within the band."""
        return len(self.runs) >= LEAST_RUNS and (self.coverage or 0.0) < LOWEST_COVERAGE

    @property
    def sentence(self) -> str:
        """Accuracy of the predictions, in words; empty without runs."""
        if not self.runs:
            return ""
        held = sum(low <= s <= high for low, high, s in self.runs)
        said = f"{held} of {len(self.runs)} later runs on this card were within their predicted range."
        return f"{said} Predictions for it are switched off." if self.is_off else said
