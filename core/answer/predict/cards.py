"""Cards that can be predicted: constants from published timings, and errors of the model on whole trainings.

The time of an operation is a fixed time plus the longer of its arithmetic and its memory traffic. The fewer numbers an
operation computes, the smaller the share of the card's speed that it reaches. `data/predict/README.md` lists the source
of each constant; `tests/benchmarks/fit_predictions.py` fits them.
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
"""Share of the data sheet's bandwidth that is assumed for cards whose traffic was not timed."""

LOWEST_COVERAGE, LEAST_RUNS = 0.7, 10
"""Lowest coverage of a GPU's band, and the minimum number of runs; with lower coverage, the GPU is switched off."""

Vector = NDArray[np.float64]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card, as described by its data sheet.

    Attributes:
        key: name in links and on the command line.
        name: name in the tables of timings.
        title: display name.
        tflops: 10¹² float32 operations per second at the boost clock.
        gb_s: memory bandwidth in 10⁹ bytes per second.
        multiprocessors: units that compute at the same time.
        low_power: whether it uses at most 75 W; such cards reach a smaller share of their data sheet.
        offered: `timed` if its operations and a whole training were timed, `data sheet` for a wider band, or empty.
        checked: whether the figures were compared with a named source.
        sources: addresses of these sources.
        device_names: names of such a card in PyTorch, without manufacturer and brand.
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
    """Use of a card by operations of one kind: arithmetic takes F / (P · gain) · (1 + emptiness · x ^ exponent)."""

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
    """Constants that all cards share.

    Attributes:
        shapes: shapes by kind of operation.
        share: share of the data sheet's arithmetic that cards reach; `low_power_share` is for cards up to 75 W.
        centre: weighted median of published over computed time.
        half_width: factor above and below the centre that includes 90 % of published trainings; `wide` includes all.
    """

    shapes: dict[str, Shape]
    share: float
    low_power_share: float
    centre: float
    half_width: float
    wide: float


@dataclass(frozen=True, kw_only=True)
class Constants:
    """All fitted constants.

    Attributes:
        overhead_s: seconds of an operation before it computes.
        launch_s: shortest and longest published time in seconds that a host takes per operation of a training step.
        host_ratio: smallest and largest ratio of the host's time per operation on a GPU to that on the CPU.
        link_gb_s: slowest and fastest copy from host to device, in 10⁹ bytes per second.
        largest_flops: arithmetic operations of the largest timed operation, by kind.
        fit: fit from all cards.
        speeds: speeds of cards whose operations were timed.
        left_out: for each published card, the fit without the data of this card.
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
    """List the offered GPUs, starting with those whose operations were timed."""
    return tuple(card for card in _all_cards() if card.offered)


def find_card(name: str) -> Card:
    """Return the offered GPU with a key, name or title; case, spaces and punctuation are ignored.

    Raises:
        InvalidValue: no GPU has this name.
    """
    cards = list_cards()
    wanted = _fold(name)
    for card in cards:
        if wanted in {_fold(word) for word in (card.key, card.name, card.title)}:
            return card
    raise InvalidValue("gpu", name, "one of {}", [card.key for card in cards])


def card_named(name: str) -> Card:
    """Return a GPU of the tables by its name, whether it is offered or not."""
    return next(card for card in _all_cards() if card.name == name)


def card_of_device(device_name: str) -> Card | None:
    """Return the offered GPU with this PyTorch name; None if there is none."""
    bare = device_name.removeprefix("NVIDIA ").removeprefix("GeForce ").strip()
    return next((card for card in list_cards() if bare in card.device_names), None)


def _fold(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum()).removeprefix("nvidia")


def reached_speed(card: Card, constants: Constants) -> Speed:
    """Return the reached speed of a GPU: as timed, or else the typical share of its data sheet."""
    return constants.speeds.get(card.name) or data_sheet_speed(card, constants.fit)


def data_sheet_speed(card: Card, fit: Fit) -> Speed:
    """Return the expected speed of a GPU without timings."""
    share = fit.low_power_share if card.low_power else fit.share
    return Speed(tflops=share * card.tflops, gb_s=REACHED_BANDWIDTH * card.gb_s)


def operation_seconds(
    work: "Work", speed: Speed, multiprocessors: float | Vector, shapes: Mapping[str, Shape], overhead_s: float
) -> Vector:
    """Return the seconds of each operation on a GPU, without the time of the host.

    Args:
        work: the operations.
        speed: speed of the card, one number or one per operation.
        multiprocessors: multiprocessors of the card, one number or one per operation.
        shapes: shapes by kind of operation.
        overhead_s: seconds before an operation computes.
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
    """Operations as columns; the kinds are indices in `OPERATION_KINDS`."""

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
        """Build the columns from rows of kind, operations, bytes, outputs and count."""
        columns = np.array(rows, dtype=float).reshape(-1, 5).T
        return cls(columns[0].astype(np.int64), *columns[1:])


def device_seconds(work: Work, card: Card, constants: Constants) -> float:
    """Return the seconds of computation on a GPU for a step, in the middle of its band."""
    each = operation_seconds(
        work, reached_speed(card, constants), card.multiprocessors, constants.fit.shapes, constants.overhead_s
    )
    return constants.fit.centre * float(each @ work.counts)


def band_factor(card: Card, constants: Constants) -> float:
    """Return the factor between the middle of the band and its ends."""
    return constants.fit.half_width if card.offered == "timed" else constants.fit.wide


# Published trainings and their predictions


@dataclass(frozen=True, kw_only=True)
class PublishedStep:
    """A published training step.

    Attributes:
        card: name of the card in the tables.
        ms: milliseconds of a step.
        step: key of `Published.steps`.
        source: publisher of the step.
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
    """Published steps that may be redistributed, with their licences."""

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
        """Relative error of the middle: 0.3 for 1.3 times too long or too short."""
        return math.exp(abs(math.log(self.row.ms / 1e3 / self.middle_s))) - 1

    @property
    def inside(self) -> bool:
        """Whether the published time lies within the band."""
        return self.low_s <= self.row.ms / 1e3 <= self.high_s


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Accuracy of the model on published trainings, each predicted without its card in the fit."""

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
        """Return the accuracy for one GPU; its figures raise ZeroDivisionError if it has no rows."""
        return Accuracy(rows=tuple(row for row in self.rows if row.row.card == name))


def predict_published(row: PublishedStep, counts: StepCounts, fit: Fit, constants: Constants) -> Miss:
    """Predict a published step from the data sheet of its GPU and a fit that may exclude the GPU."""
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


# Later runs and their earlier predictions


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
        """Whether the card is switched off, because too few runs were within the band."""
        return len(self.runs) >= LEAST_RUNS and (self.coverage or 0.0) < LOWEST_COVERAGE

    @property
    def sentence(self) -> str:
        """Accuracy of the predictions, in words; empty without runs."""
        if not self.runs:
            return ""
        held = sum(low <= s <= high for low, high, s in self.runs)
        said = f"{held} of {len(self.runs)} later runs on this card were within their predicted range."
        return f"{said} Predictions for it are switched off." if self.is_off else said
