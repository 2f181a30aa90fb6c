"""The four tutorials that Crossover grew from, as experiments with their exact settings, and what each varies.

Each preset has two scales: `full`, as published, and `class`, small enough for a lesson on a laptop. The module
contains neither published numbers (see `core.question.published`) nor measurements. If text and code of a tutorial
disagree, Crossover follows the code, and the note says so.

It also has the default contenders, the variants added to them, and the length of a run, the same on pages and on the
command line.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import InvalidValue, require_choice
from . import catalog, lanes
from .experiment import MAX_CONTENDERS, Contender, Experiment, Point
from .lanes import PLAIN
from .sweep import Axis, Sweep

Scale = Literal["class", "full"]

SCALES: dict[Scale, str] = {
    "class": "small enough for a lesson: a run and a sweep together take less than a minute on two cores",
    "full": "as the tutorial was published",
}
"""Scales of a preset, each with a display phrase."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Time limits of a preset at one scale, which only a very slow machine reaches.

    Attributes:
        budget_s: seconds of one training, as in `core.question.experiment.Experiment`.
        sweep_budget_s: seconds after which a sweep starts no further point.
        point_budget_s: maximum seconds of one point of a sweep.
    """

    budget_s: float
    sweep_budget_s: float
    point_budget_s: float


LIMITS: dict[Scale, Limits] = {
    "class": Limits(budget_s=60.0, sweep_budget_s=600.0, point_budget_s=20.0),
    "full": Limits(budget_s=1_800.0, sweep_budget_s=7_200.0, point_budget_s=1_800.0),
}


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One tutorial's training.

    Attributes:
        name: key on the command line and in links.
        title: label for people.
        source: author, place and date of the publication.
        point: settings of the training.
        note: differences from the tutorial, and how its contradictions are resolved.
        axes: settings that the tutorial varies; empty if it trains a single model.
        class_changes: fields of the point that are smaller at class scale.
        class_axes: settings that are varied at class scale.
        class_note: sentence on what is smaller at class scale.
    """

    name: str
    title: str
    source: str
    point: Point
    note: str
    class_note: str
    axes: tuple[Axis, ...] = ()
    class_changes: Mapping[str, Any] = field(default_factory=dict)
    class_axes: tuple[Axis, ...] = ()

    def point_at_scale(self, scale: Scale) -> Point:
        """Return the training at one scale.

        Raises:
            InvalidValue: there is no such scale.
        """
        changes = self.class_changes if require_choice("scale", scale, SCALES) == "class" else {}
        return dataclasses.replace(self.point, **changes)

    def axes_at_scale(self, scale: Scale) -> tuple[Axis, ...]:
        """Return the axes at one scale; empty if the tutorial trains a single model.

        Raises:
            InvalidValue: there is no such scale.
        """
        return self.class_axes if require_choice("scale", scale, SCALES) == "class" else self.axes

    def on_digits(self) -> "Preset":
        """Return the preset on scikit-learn's digits, which need no download: fewer and smaller images.

        The axes of class scale apply at both scales, because the full batches are larger than the data set.
        """
        digits = catalog.dataset("digits")
        point = self.point_at_scale("class")
        samples = min(point.samples, digits.max_samples)
        stood_for = catalog.dataset(point.dataset).called
        said = f"Digits replace {stood_for}: fewer and smaller images, so only the kind of answer is comparable."
        return dataclasses.replace(
            self,
            point=dataclasses.replace(point, dataset="digits", samples=digits.max_samples),
            class_changes={"samples": samples},
            axes=self.class_axes,
            note=said,
            class_note=f"{'' if samples < digits.max_samples else 'All '}{samples:,} training images.",
        )

    def build_question(self, scale: Scale, contenders: Sequence[Contender]) -> Experiment | Sweep:
        """Return the question at one scale: a sweep if a setting is varied, otherwise an experiment.

        Raises:
            InvalidValue: there is no such scale, or the number of contenders is invalid.
        """
        point, axes, limits = self.point_at_scale(scale), self.axes_at_scale(scale), LIMITS[scale]
        if not axes:
            return Experiment(point=point, contenders=tuple(contenders), budget_s=limits.budget_s)
        return Sweep(
            point=point,
            axes=axes,
            contenders=tuple(contenders),
            budget_s=limits.sweep_budget_s,
            point_budget_s=limits.point_budget_s,
        )


PRESETS: dict[str, Preset] = {
    entry.name: entry
    for entry in (
        Preset(
            name="disc",
            title="Points in a disc",
            source='Penny Xu, "When to use GPU for training?", 2019-09-04',
            point=Point(
                dataset="disc",
                samples=1_000,
                model="doubling-mlp",
                depth=8,
                batch_size=100,
                epochs=100,
                learning_rate=0.1,
                shuffle=False,
            ),
            note="The prose says learning rate 0.01 and points in [-1, 1]; this preset uses the code's 0.1 and [0, 1].",
            axes=(Axis(name="depth", values=tuple(range(2, 13))),),
            class_axes=(Axis(name="depth", values=(2, 4, 6, 8, 10, 11)),),
            class_note="The training is complete; the sweep has 6 of the 11 depths, up to 11 layers.",
        ),
        Preset(
            name="signal",
            title="Signal and background",
            source='HSF Training, "Run time comparisons"',
            point=Point(
                dataset="signal",
                samples=20_000,
                model="mlp",
                hidden_size=1_000,
                depth=2,
                batch_size=32,
                epochs=5,
                learning_rate=0.01,
                data_path="loader",
            ),
            note="The tutorial's table is not public; a synthetic one of 20 features replaces it. Batches are copied"
            " from ordinary memory, as in the tutorial.",
            axes=(Axis(name="hidden_size", values=(5, 10, 100, 1_000, 2_000)),),
            class_changes={"samples": 2_000},
            class_axes=(Axis(name="hidden_size", values=(5, 10, 100, 1_000, 2_000)),),
            class_note="2,000 samples instead of 20,000; the sweep keeps all five sizes.",
        ),
        Preset(
            name="mnist-linear",
            title="MNIST with one layer",
            source='Standalone deep-learning lab #12, "GPU with PyTorch"',
            point=Point(
                dataset="mnist",
                samples=50_000,
                model="linear",
                batch_size=128,
                epochs=5,
                learning_rate=0.005,
                data_path="tutorial",
            ),
            note="The last, partial batch of an epoch is left out, so that every timed step does the same work.",
            class_changes={"samples": 5_000},
            class_note="5,000 images instead of 50,000.",
        ),
        Preset(
            name="fashion-cnn",
            title="Fashion-MNIST with a CNN",
            source='deeplizard, "PyTorch on the GPU", 2020-05-19',
            point=Point(
                dataset="fashion-mnist",
                samples=60_000,
                model="cnn",
                width=1,
                batch_size=1_000,
                epochs=1,
                learning_rate=0.01,
                data_path="tutorial",
            ),
            note="One cell of the grid (batch size 1,000, no workers), on all 60,000 images, with SGD, in strict"
            " fp32. By default PyTorch computes convolutions in TF32 on GPUs from the RTX 30 series on.",
            axes=(
                Axis(name="batch_size", values=(1_000, 10_000, 20_000)),
                Axis(name="loader_workers", values=(0, 1)),
            ),
            class_changes={"samples": 600, "batch_size": 10},
            class_axes=(
                Axis(name="batch_size", values=(10, 100, 200)),
                Axis(name="loader_workers", values=(0, 1)),
            ),
            class_note="A hundredth of the images and of every batch size, so an epoch has the same number of steps.",
        ),
    )
}


def preset(name: str) -> Preset:
    """Return the preset called `name`.

    Raises:
        InvalidValue: no preset has that name.
    """
    return PRESETS[require_choice("preset", name, PRESETS)]


ROUND_PAIRS = 4
"""Number of pairs of blocks in one round of a run; between two rounds contenders are rebuilt and nothing is timed."""

LOOKS = (12, 20, 40, 60)
"""Numbers of pairs after which a run ends if its verdict is certain; after the last one it always ends.

Each look is at the end of a round and widens the interval (`core.answer.statistics`).
"""

FEWEST_PAIRS = 10
"""Number of pairs of the shortest run of any version that ended early; a run with fewer had a requested number."""


def default_contenders(devices: Iterable[str], cores: int) -> tuple[Contender, ...]:
    """Return the CPU against the first accelerator; without one, one thread of the CPU against all of them.

    Both thread counts are explicit: a `cpu` that tries several may find that one thread is the fastest, and both
    contenders would then be the same.

    Args:
        devices: devices of this machine.
        cores: number of usable cores; with a single core there is no second contender.
    """
    for device in devices:
        if device != "cpu":
            return Contender(), Contender(device=device)
    return tuple(Contender(threads=count) for count in sorted({1, cores}))


def with_fair_lanes(
    contenders: Sequence[Contender], points: Sequence[Point], refusals: Mapping[str, Mapping[str, str]]
) -> tuple[Contender, ...]:
    """Return the contenders with the variants that may help each of their devices and compute the same numbers.

    Devices get variants in turns, the most promising first, up to the limit of contenders. The variants come before the
    last contender: a search decides between the first and the last.

    Args:
        contenders: contenders without variants.
        points: trainings that the variants must fit.
        refusals: device of this machine → kind of variant → reason why it is not supported.

    Raises:
        InvalidValue: no contender is a CPU.
    """
    last = {contender.device: contender for contender in contenders}
    if not any(contender.on_host for contender in last.values()):
        raise InvalidValue("fair", "full", "given with the CPU among the devices")
    each = [_list_fair_lanes(contender, points, refusals.get(contender.device, {})) for contender in last.values()]
    in_turns = [contender for turn in itertools.zip_longest(*each) for contender in turn if contender is not None]
    new = [contender for contender in in_turns if contender not in contenders][: MAX_CONTENDERS - len(contenders)]
    first, *others = contenders
    return (first, *others[:-1], *new, *others[-1:])


def _list_fair_lanes(contender: Contender, points: Sequence[Point], refused: Mapping[str, str]) -> list[Contender]:
    """Return a contender in each variant that may help, computes the same numbers, and fits all trainings."""
    worth = lanes.worth_trying(points[0], on_host=contender.on_host)
    fits = [set(lanes.worth_trying(point, on_host=contender.on_host)) for point in points]
    return [
        dataclasses.replace(contender, lane=lane)
        for lane in worth
        if lane.has_same_numerics and not refused.keys() & set(lane.kinds) and all(lane in fit for fit in fits)
    ]


def with_remedies(
    contenders: Sequence[Contender], point: Point, refusals: Mapping[str, Mapping[str, str]]
) -> tuple[Contender, ...]:
    """Return the contenders, each followed by variants that may help it, up to the limit of contenders.

    Args:
        contenders: contenders without variants.
        point: the training.
        refusals: device of this machine → kind of variant → reason why it is not supported.
    """
    each = (MAX_CONTENDERS - len(contenders)) // len(contenders)
    told: list[Contender] = []
    for one in contenders:
        worth = lanes.worth_trying(point, on_host=one.on_host) if one.lane == PLAIN else ()
        has = [lane for lane in worth if not refusals.get(one.device, {}).keys() & set(lane.kinds)]
        told += [one, *(dataclasses.replace(one, lane=lane) for lane in has[:each])]
    return tuple(dict.fromkeys(told))
