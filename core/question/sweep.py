"""A sweep over many points: one training varied on one or several axes, on the same contenders.

A grid measures every point; an adaptive sweep chooses among the values of its one axis. As in
`core.question.experiment`, every `Sweep` is valid, and its identity is a hash of its canonical JSON.
`core.answer.search` and `core.jobs` decide which point comes next; nothing here measures.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Self

from ..errors import InvalidValue, require_choice
from . import models
from .experiment import Contender, Experiment, Point, hash_question, parse_contenders, value_range
from .fields import ADAPTIVE_PAIRS, AXES, FIELDS, GRID_PAIRS, LOADER_PATHS, SIZE_AXES

MAX_AXES = 4
MAX_POINTS = 400
"""Maximum number of points of a grid, and of values that an adaptive sweep may choose from."""

SCRIPT_SIZE = "size"
"""Axis of a custom script, whose valid sizes are unknown."""

PER_OCTAVE = 8
"""Number of values per doubling that an adaptive sweep may choose from: steps of 9 %, finer than its intervals."""

LIMITS: dict[str, tuple[float, float]] = {
    "budget_s": (FIELDS["sweep_budget_s"].low, FIELDS["sweep_budget_s"].high),
    "point_budget_s": (FIELDS["point_budget_s"].low, FIELDS["point_budget_s"].high),
    "pairs": (2, FIELDS["pairs"].high),
}
"""Lowest and highest value of each limit of a sweep."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One varied field and its values.

    Attributes:
        name: key of `AXES`: a field of `Point`, or `parameters`, which sets the model family's own size.
        values: distinct values in ascending order.
    """

    name: str
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        require_choice("axis", self.name, AXES)
        object.__setattr__(self, "values", tuple(sorted({_check_value(self.name, value) for value in self.values})))
        if not self.values:
            raise InvalidValue("values", "", f"at least one value of {self.name}")
        if len(self.values) > MAX_POINTS:
            raise InvalidValue("values", f"{len(self.values)} values", f"at most {MAX_POINTS} values of {self.name}")

    @property
    def title(self) -> str:
        """The display name."""
        return AXES[self.name]

    @classmethod
    def parse(cls, name: str, text: str, *, adaptive: bool = False) -> Self:
        """Parse an axis from its written form: values `8,16,32`, or a range `8:4096`.

        A range means its doublings, and in an adaptive sweep `PER_OCTAVE` values in each. Depth and width have few
        values, so a range includes all of them.

        Raises:
            InvalidValue: the axis is unknown, or the text has another form.
        """
        low, colon, high = text.partition(":")
        if colon:
            return cls.from_range(name, _parse_number(name, low), _parse_number(name, high), adaptive=adaptive)
        return cls(name=name, values=tuple(_parse_number(name, part) for part in text.split(",")))

    def restrict(self, *, multiples_of: int = 1, powers_of_two: bool = False) -> Self:
        """Return the axis with each value replaced by the nearest one that a script can build, within the same ends.

        Args:
            multiples_of: number that divides all values.
            powers_of_two: whether all values are powers of two.

        Raises:
            InvalidValue: there is none between the lowest and the highest value.
        """
        low, high = self.values[0], self.values[-1]
        if powers_of_two:
            found = {2 ** round(math.log2(value)) for value in self.values if value >= 1}
        else:
            found = {multiples_of * max(1, round(value / multiples_of)) for value in self.values}
        if not (inside := tuple(value for value in sorted(found) if low <= value <= high)):
            wanted = "a power of two" if powers_of_two else f"a multiple of {multiples_of}"
            raise InvalidValue("range", f"{low:g}:{high:g}", f"a range with {wanted} in it")
        return type(self)(name=self.name, values=inside)

    @classmethod
    def from_range(cls, name: str, low: float, high: float, *, adaptive: bool = False) -> Self:
        """Return the values of a range, both ends included.

        Raises:
            InvalidValue: the axis is unknown or no size, or the range is empty or too long.
        """
        require_choice("axis", name, SIZE_AXES, "one of {}, the axes that take a range")
        low, high = _check_value(name, low), _check_value(name, high)
        if low >= high:
            raise InvalidValue("range", f"{low:g}:{high:g}", "two values, the lower one first")
        if FIELDS[name].every:
            return cls(name=name, values=tuple(range(int(low), int(high) + 1)))
        if name == SCRIPT_SIZE and adaptive:
            return cls(name=name, values=(low, *_list_even_values(low, high), high))
        steps = PER_OCTAVE if adaptive else 1
        powers = range(math.floor(steps * math.log2(high / low)) + 1)
        return cls(name=name, values=(*(round(low * 2 ** (power / steps)) for power in powers), high))


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One training, varied on its axes, on contenders that are measured together at each point.

    Attributes:
        point: the training; the axes replace some of its values.
        axes: one to `MAX_AXES`, of different names; only one if `adaptive`.
        contenders: distinct contenders; the first is the baseline.
        adaptive: whether to choose among the values instead of measuring all of them.
        pairs: number of pairs of blocks at each point; 0 for the default.
        budget_s: seconds after which no further point is started.
        point_budget_s: maximum seconds of one point; a point that needs more is skipped.
        folder: folder of the custom script's file, as in `Experiment`.
    """

    point: Point
    axes: tuple[Axis, ...]
    contenders: tuple[Contender, ...] = field(default_factory=lambda: (Contender(),))
    adaptive: bool = False
    pairs: int = 0
    budget_s: float = FIELDS["sweep_budget_s"].default
    point_budget_s: float = FIELDS["point_budget_s"].default
    folder: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(self.axes))
        object.__setattr__(self, "contenders", parse_contenders(self.contenders))
        object.__setattr__(self, "pairs", self.pairs or (ADAPTIVE_PAIRS if self.adaptive else GRID_PAIRS))
        names = [axis.name for axis in self.axes]
        if not 1 <= len(names) <= MAX_AXES or len(set(names)) < len(names):
            raise InvalidValue("axes", ", ".join(names), f"between 1 and {MAX_AXES} different axes")
        if self.adaptive and (len(names) > 1 or names[0] not in SIZE_AXES):
            raise InvalidValue("adaptive", ", ".join(names), "used with one axis, one of {}", SIZE_AXES)
        if self.adaptive and len(self.contenders) < 2:
            raise InvalidValue("devices", ", ".join(map(str, self.contenders)), "at least two for an adaptive sweep")
        if "loader_workers" in names and self.point.data_path not in LOADER_PATHS:
            raise InvalidValue("axis", "loader_workers", f"used with the data path {' or '.join(LOADER_PATHS)}")
        _check_sizes(names, self.point)
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise InvalidValue(name, value, f"between {low:,} and {high:,}")
        if math.prod(len(axis.values) for axis in self.axes) > MAX_POINTS:
            raise InvalidValue(
                "values", f"{math.prod(len(a.values) for a in self.axes):,} points", f"at most {MAX_POINTS}"
            )
        vary(self.point, {axis.name: axis.values[-1] for axis in self.axes})  # the end that was typed comes first
        for point in self.points:
            self.experiment(point)  # each must be one that can be tried

    @functools.cached_property
    def points(self) -> tuple[Point, ...]:
        """All distinct points; the first axis varies slowest."""
        values = itertools.product(*(axis.values for axis in self.axes))
        names = [axis.name for axis in self.axes]
        return tuple(dict.fromkeys(vary(self.point, dict(zip(names, some, strict=True))) for some in values))

    @functools.cached_property
    def id(self) -> str:
        """Name of the sweep, 16 hexadecimal digits: a hash of points, contenders, kind and methodology version."""
        question = {
            "points": [point.to_json() for point in self.points],
            "contenders": [str(contender) for contender in self.contenders],
            "adaptive": self.adaptive,
            "pairs": self.pairs,
        }
        return hash_question(question, separators=(", ", ": "))

    def experiment(self, point: Point) -> Experiment:
        """Return one point as an experiment that is only timed, not trained to its end."""
        return Experiment(
            point=point,
            contenders=self.contenders,
            budget_s=self.point_budget_s,
            pairs=self.pairs,
            folder=self.folder,
        )

    def size(self, point: Point) -> float:
        """Return the value of a point on the first axis."""
        return size_on_axis(point, self.axes[0].name)

    def to_json(self) -> dict[str, Any]:
        """Return data for a JSON file; `from_json` reads it back to an equal sweep."""
        return {
            "point": self.point.to_json(),
            "axes": [{"name": axis.name, "values": list(axis.values)} for axis in self.axes],
            "contenders": [str(contender) for contender in self.contenders],
            **{name: getattr(self, name) for name in ("adaptive", *LIMITS)},
            **({"folder": self.folder} if self.folder else {}),
        }

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Build a sweep from `to_json`'s data, checked as any other input.

        Raises:
            InvalidValue: the data do not describe a sweep.
        """
        match data:
            case {
                "point": dict(point),
                "axes": list(axes),
                "contenders": list(contenders),
                "adaptive": bool(adaptive),
                **rest,
            }:
                limits: dict[str, Any] = {name: value for name, value in rest.items() if name in LIMITS}
                return cls(
                    point=Point.from_json(point),
                    axes=tuple(_axis_from_json(axis) for axis in axes),
                    contenders=parse_contenders(contenders),
                    adaptive=adaptive,
                    folder=str(rest.get("folder", "")),
                    **limits,
                )
        raise InvalidValue("sweep", data, "an object with point, axes, contenders and adaptive")


def size_axes(model: str, dataset: str) -> list[str]:
    """List the sizes that can vary for a model on a data set, those of the model first; for a fit, the rows first."""
    shaped, family = models.list_model_sizes(model, dataset), models.family(model)
    if family.library:
        return ["samples", *shaped]
    own = [*shaped, *(["parameters"] if family.size else [])]
    return [*own, *(name for name in SIZE_AXES if FIELDS[name].panel != "model")]


def _check_sizes(names: list[str], point: Point) -> None:
    """Refuse axes that a training does not have, or that set the same field; raises InvalidValue."""
    if point.training:
        if names != ["size"]:
            raise InvalidValue("axis", ", ".join(names), "size, the only axis of a custom script")
    elif point.is_fit and (idle := [name for name in names if name in {*point.idle, "parameters", "size"}]):
        offered = (*size_axes(point.model, point.dataset), "learning_rate")
        raise InvalidValue("axis", ", ".join(idle), "one of {}: a gradient boosting fit has no other axis", offered)
    elif "parameters" in names and models.family(point.model).size in names:
        raise InvalidValue("axes", ", ".join(names), "either the parameters or the size that sets them, not both")


def vary(point: Point, values: Mapping[str, float]) -> Point:
    """Return the point with some of its fields replaced; `parameters` is matched as nearly as the family allows.

    Raises:
        InvalidValue: a value is out of range, or has no effect on the model.
    """
    changes: dict[str, Any] = {name: value for name, value in values.items() if name != "parameters"}
    if point.training:
        return dataclasses.replace(point, **changes)
    for name in changes.keys() & set(models.AXES):
        if name not in models.list_model_sizes(point.model, point.dataset):
            raise _unfit(name, point)
    varied = dataclasses.replace(point, **changes)
    return _with_parameters(varied, values["parameters"]) if "parameters" in values else varied


def _unfit(axis: str, point: Point) -> InvalidValue:
    """Return the error for an axis that does not shape the model of a training."""
    return InvalidValue("axis", axis, "one of {}, the axes of this training", size_axes(point.model, point.dataset))


def size_on_axis(entry: object, axis: str) -> float:
    """Return the value of a point or a row on a size axis."""
    if isinstance(entry, Point) and axis == "parameters":
        return entry.network.parameters
    return float(getattr(entry, axis))


def _with_parameters(point: Point, parameters: float) -> Point:
    """Return the point with the size of the family that gives the nearest number of parameters, by ratio."""
    name = models.family(point.model).size
    if not name:
        raise _unfit("parameters", point)
    low, high = map(int, value_range(name, dataset=point.dataset, model=point.model))
    while high - low > 1:  # parameters grow with the size
        middle = (low + high) // 2
        below = vary(point, {name: middle}).network.parameters <= parameters
        low, high = (middle, high) if below else (low, middle)
    near = [vary(point, {name: size}) for size in (low, high)]
    return min(near, key=lambda found: abs(math.log(found.network.parameters / parameters)))


def _list_even_values(low: float, high: float) -> list[float]:
    """Return eighths of each doubling between two values, multiples of powers of two: 64, 72, 80, … 128, 144."""
    octaves = range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
    values = {2.0**octave * (1 + part / PER_OCTAVE) for octave in octaves for part in range(PER_OCTAVE)}
    return sorted(value for value in values if low < value < high and value == int(value))


def _axis_from_json(data: object) -> Axis:
    match data:
        case {"name": str(name), "values": list(values)}:
            return Axis(name=name, values=tuple(values))
    raise InvalidValue("axes", data, "objects with name and values")


def _parse_number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidValue(name, text.strip(), "a number, several with commas (8,16,32), or a range (8:4096)") from None


def _check_value(name: str, value: Any) -> float:
    """Return a value in the type of its field; the point checks its range."""
    if isinstance(value, bool) or not issubclass(type(value), Real) or not math.isfinite(value) or value < 0:
        raise InvalidValue(name, value, "a number that is not negative")
    if isinstance(FIELDS[name].default, float):
        return float(value)
    if value != int(value):
        raise InvalidValue(name, value, "a whole number")
    if name == "parameters" and value < 1:
        raise InvalidValue(name, value, "at least 1")
    return int(value)
