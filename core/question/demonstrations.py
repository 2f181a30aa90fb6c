"""A lesson's request to the measuring process: a demonstration to show, which is not a result of the store.

As in `core.question.experiment`, every `Demonstration` is valid. Its result is a `core.results.exhibits.Exhibit`, which
`core.measure.demonstrations` produces. Nothing here measures.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from ..errors import InvalidValue, require_choice
from .experiment import Contender, Experiment, Point, hash_question, parse_contenders
from .lanes import PLAIN

Kind = Literal["clock", "moving", "first_step"]

LESSON_KINDS: dict[Kind, str] = {
    "clock": "One training, timed correctly and with common mistakes.",
    "moving": "Moving tensors and modules, and PyTorch's errors for tensors on two devices.",
    "first_step": "Difference of loss and gradients between two devices after the first step.",
}
"""Kinds of demonstrations, each with a display sentence."""

SHORTCUTS: dict[str, str] = {
    "no_drain_before": "The clock is started while the device may still be doing earlier work.",
    "no_drain_after": "The clock is stopped when the work is handed over, not when it is done.",
    "no_warm_up": "The first steps of a fresh network are timed, without a warm-up.",
    "loader_inside": "Samples are read and transformed one by one inside the timed part.",
    "item_every_step": "The loss is read with .item() after every step, so the host waits for the device.",
    "accuracy_every_step": "The accuracy of every batch is read with .item() too.",
    "errors_printed": "Wrong answers are counted batch by batch and printed after each epoch.",
    "tests_inside": "A pass over validation and test samples counts towards the epoch.",
    "wall_clock": "The system's clock, time.time(), is read, which may be changed meanwhile.",
    "one_repeat": "It is timed once.",
}
"""Shortcuts that differ from the recipe `ours`, each with a display sentence."""

Span = Literal["block", "training", "epoch"]
"""Unit that is timed in one piece: a block of steps, a whole training, or each epoch of one."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way to time a training.

    Attributes:
        name: key of `RECIPES`.
        title: label for people.
        explains: one or two sentences on the method and its effect.
        switched: keys of `SHORTCUTS`: the differences from `ours`.
        span: unit that is timed in one piece.
        loader: the data path of the timed part; empty for resident data.
    """

    name: str
    title: str
    explains: str
    switched: tuple[str, ...] = ()
    span: Span = "block"
    loader: str = ""


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="ours",
            title="Ours",
            explains="Warmed up, synchronized before both readings, data on the device: the median of several blocks.",
        ),
        Recipe(
            name="no_drain",
            title="No synchronization",
            explains="The clock does not wait for the device. An accelerator only queues its work, so the clock may"
            " stop while most of the work is unfinished. A CPU has no queue, so it makes no difference there.",
            switched=("no_drain_before", "no_drain_after"),
        ),
        Recipe(
            name="no_warm_up",
            title="No warm-up",
            explains="Each block begins with the first step of a fresh network, which allocates memory and chooses"
            " kernels. A fresh process would also pay for the first use of the device.",
            switched=("no_warm_up",),
        ),
        Recipe(
            name="loader_inside",
            title="Loader inside",
            explains="Each sample is read and transformed one by one while the clock runs. This adds the same time to"
            " every device and hides their difference.",
            switched=("loader_inside",),
            loader="tutorial",
        ),
        Recipe(
            name="item_every_step",
            title=".item() every step",
            explains="Reading the loss waits for the device, so the host cannot queue the next step meanwhile.",
            switched=("item_every_step",),
        ),
        Recipe(
            name="one_repeat",
            title="One repeat",
            explains="The same clock as Crossover's, read once: the spread of the readings is unknown.",
            switched=("one_repeat",),
        ),
        Recipe(
            name="disc",
            title="As the disc tutorial",
            explains="time.time() before and after the whole training, once, without synchronization. Printing the"
            " errors after each epoch waits for the device anyway, so little is lost at the end.",
            switched=("no_drain_before", "no_drain_after", "no_warm_up", "errors_printed", "wall_clock", "one_repeat"),
            span="training",
        ),
        Recipe(
            name="signal",
            title="As the signal tutorial",
            explains="Synchronized at the end only, no warm-up, loss and accuracy of every batch read with .item(), the"
            " whole training once, batches from a DataLoader.",
            switched=(
                "no_drain_before",
                "no_warm_up",
                "loader_inside",
                "item_every_step",
                "accuracy_every_step",
                "wall_clock",
                "one_repeat",
            ),
            span="training",
            loader="loader",
        ),
        Recipe(
            name="mnist-linear",
            title="As the MNIST tutorial",
            explains="Samples are transformed one by one, and an epoch is training, validation and test together."
            " Validation and test read as many training samples instead, because their own are not stored as images.",
            switched=("no_warm_up", "loader_inside", "item_every_step", "tests_inside"),
            span="epoch",
            loader="tutorial",
        ),
        Recipe(
            name="fashion-cnn",
            title="As the Fashion-MNIST tutorial",
            explains="Each run trains a fresh network for one epoch, with samples transformed one by one, and is timed"
            " once.",
            switched=("no_drain_before", "no_drain_after", "no_warm_up", "loader_inside", "wall_clock", "one_repeat"),
            span="epoch",
            loader="tutorial",
        ),
    )
}
"""Ways to time a training, by name: `ours`, each shortcut by itself, and those of the four tutorials."""


@dataclass(frozen=True, kw_only=True)
class Demonstration:
    """A demonstration to show. Fields that do not matter to its kind are set to their defaults.

    Attributes:
        kind: key of `LESSON_KINDS`.
        point: the training (`clock`, `first_step`).
        contenders: distinct contenders. `clock` shows each separately, `moving` the first one other than a CPU,
            `first_step` a pair.
        budget_s: maximum seconds of `clock`; parts that would take longer are omitted.
        recipes: keys of `RECIPES` that `clock` shows, always including `ours`; empty for all.
    """

    kind: Kind
    point: Point = field(default_factory=Point)
    contenders: tuple[Contender, ...] = field(default_factory=lambda: (Contender(),))
    budget_s: float = 60.0
    recipes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_choice("lesson", self.kind, LESSON_KINDS)
        if self.kind == "moving":
            object.__setattr__(self, "point", Point())
        object.__setattr__(self, "recipes", _recipes(self.recipes) if self.kind == "clock" else ())
        checked = Experiment(point=self.point, contenders=tuple(self.contenders), budget_s=self.budget_s)
        object.__setattr__(self, "contenders", checked.contenders)
        object.__setattr__(self, "budget_s", checked.budget_s)
        if any(contender.lane != PLAIN for contender in self.contenders):
            raise InvalidValue("devices", ", ".join(map(str, self.contenders)), "devices without a variant in a lesson")
        if self.kind == "first_step" and len(self.contenders) != 2:
            shown = ", ".join(map(str, self.contenders))
            raise InvalidValue("devices", shown, "two different devices, whose first steps are compared")

    @functools.cached_property
    def id(self) -> str:
        """Name of the demonstration, 16 hexadecimal digits; the budget is not part of it."""
        return hash_question({name: value for name, value in self.to_json().items() if name != "budget_s"})

    def to_json(self) -> dict[str, Any]:
        """Return data for a JSON file; `from_json` reads it back to an equal demonstration."""
        return {
            "kind": self.kind,
            "point": self.point.to_json(),
            "contenders": [str(contender) for contender in self.contenders],
            "budget_s": self.budget_s,
            "recipes": list(self.recipes),
        }

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Build a demonstration from `to_json`'s data, checked as any other input.

        Raises:
            InvalidValue: the data are not those of a demonstration.
        """
        match data:
            case {
                "kind": str(kind),
                "point": dict(point),
                "contenders": list(contenders),
                "budget_s": int() | float() as budget,
                "recipes": list(recipes),
            }:
                known: Any = kind  # checked as any other
                return cls(
                    kind=known,
                    point=Point.parse(point),
                    contenders=parse_contenders(contenders),
                    budget_s=budget,
                    recipes=tuple(recipes),
                )
        raise InvalidValue("demonstration", data, "an object with kind, point, contenders, budget_s and recipes")


def _recipes(names: Iterable[object]) -> tuple[str, ...]:
    """Return the recipes by name, in the order of `RECIPES`, always including `ours`; all if none is named."""
    wanted = [require_choice("recipes", name, RECIPES) for name in names]
    return tuple(name for name in RECIPES if not wanted or name == "ours" or name in wanted)
