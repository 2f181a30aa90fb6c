"""What there is to know of one field: its type, range, stops and words."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Panel = Literal["model", "training", "data", "feeding", "route"]
PANELS: tuple[Panel, ...] = ("model", "training", "data", "feeding", "route")
"""Parts of a form, in the order in which axes are offered."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """What there is to know of one field.

    Attributes:
        default: what it is unless asked otherwise; its type is that of the field.
        title: name for people.
        meaning: of its column in the store; empty where it has none of its own.
        unit: of its column.
        words: what a text may be, as links, columns and commands write it; empty for numbers.
        labels: the same words for people.
        low: lowest number.
        high: highest number; samples and depth are narrower for some trainings.
        stops: where its slider stops; without any, at every whole number.
        panel: part of a form that it is drawn in.
        help: shown beside its control on demand.
        brief: how a line about a training says it, as "batch {}"; empty where it is left out.
        axis: whether it can be varied: a size, on which a crossover is looked for, or anything else.
        place: how a place on its axis is called, as "a batch size of {}".
        every: whether a range of it stands for every whole number instead of for doublings.
        usual_range: where a range along it begins and ends unless asked otherwise.
        usual_values: which values are combined with another axis unless asked otherwise.
        axis_stops: values that an axis offers, if others than `stops`.
        later: whether rows, jobs and links of earlier versions do not have it; they mean `absent`.
    """

    default: Any
    title: str
    meaning: str = ""
    unit: str = ""
    words: tuple[str, ...] = ()
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    low: float = 0
    high: float = math.inf
    stops: tuple[float, ...] = ()
    panel: Panel = "training"
    help: str | None = None
    brief: str = ""
    axis: Literal["", "size", "other"] = ""
    place: str = ""
    every: bool = False
    usual_range: tuple[float, float] = (0, math.inf)
    usual_values: tuple[float, ...] = ()
    axis_stops: tuple[float, ...] = ()
    later: bool = False

    @property
    def name(self) -> str:
        """The title as it begins a sentence."""
        return self.title[:1].upper() + self.title[1:]

    @property
    def label(self) -> str:
        """The name of the field's control, with its unit."""
        return f"{self.name} (seconds)" if self.unit == "s" else self.name

    @property
    def absent(self) -> Any:
        """What the field is where nothing is said of it: 0 of a size, as in models without it; else its default."""
        return 0 if self.later and self.axis == "size" and self.panel == "model" else self.default

    @property
    def is_number(self) -> bool:
        """Whether the field is a number with a range."""
        return type(self.default) in (int, float)


def field_with_spec(default: Any, title: str, **facts: Any) -> Any:
    """A dataclass field that carries its entry of the table."""
    return dataclasses.field(default=default, metadata={"field": Field(default=default, title=title, **facts)})
