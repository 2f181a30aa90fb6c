"""The one table of settings: an entry for each field of a training, of an experiment and of a sweep.

Forms, axes, checks, columns of the store, sentences, links and the command line read it. A new axis is an entry of
`Training`, and the code in `core.measure` that trains it. The module contains data only and does not import torch.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from . import catalog, models

Panel = Literal["model", "training", "data", "feeding", "route"]
PANELS: tuple[Panel, ...] = ("model", "training", "data", "feeding", "route")
"""Parts of a form, in the order in which axes are offered."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """Facts about one field.

    Attributes:
        default: default value, which has the type of the field.
        title: display name.
        meaning: description of its column in the store; empty without a separate column.
        unit: unit of its column.
        words: allowed words in links, columns and commands; empty for numbers.
        labels: display texts of the words.
        low: lowest number.
        high: highest number; some trainings restrict samples and depth further.
        stops: values of its slider; empty for every whole number.
        panel: part of a form that contains it.
        help: help text of its control.
        option: its option on the command line; the title unless given.
        brief: text in a line about a training, as "batch {}"; empty if it is omitted there.
        axis: kind of axis if it can be varied: a size, which can have a crossover, or another setting.
        place: description of a value on its axis, as "a batch size of {}".
        every: whether a range means every whole number instead of doublings.
        usual_range: default ends of a range.
        usual_values: default values to combine with another axis.
        axis_stops: values that an axis offers, if different from `stops`.
        later: whether rows, jobs and links of earlier versions lack it; its value is then `absent`.
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
    option: str = ""
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
        """The title with a capital letter."""
        return self.title[:1].upper() + self.title[1:]

    @property
    def label(self) -> str:
        """The name of the field's control, with its unit."""
        return f"{self.name} (seconds)" if self.unit == "s" else self.name

    @property
    def absent(self) -> Any:
        """Value of a missing field: 0 for a size, as in models without it; otherwise its default."""
        return 0 if self.later and self.axis == "size" and self.panel == "model" else self.default

    @property
    def is_number(self) -> bool:
        """Whether the field is a number with a range."""
        return type(self.default) in (int, float)


def field_with_spec(default: Any, title: str, **facts: Any) -> Any:
    """Return a dataclass field that carries its entry of the table."""
    return dataclasses.field(default=default, metadata={"field": Field(default=default, title=title, **facts)})


DATA_PATHS: dict[str, str] = {
    "resident": "The whole data set is copied to the device once, and batches are indexed there.",
    "per_batch": "Batches are indexed on the host and copied to the device at every step.",
    "loader": "Tensors come through torch's loader, with workers, and are copied for every batch.",
    "pinned": "Like loader, but with batches in pinned memory, from which a CUDA GPU copies without waiting.",
    "tutorial": "One sample at a time with transforms, through the DataLoader, copied for every batch.",
}
"""Ways to deliver data to the device, each with a display sentence; `resident` is the default."""

DATA_PATH_TITLES = {
    "resident": "Preloaded on the device",
    "per_batch": "Copied for every batch",
    "loader": "DataLoader",
    "pinned": "DataLoader, pinned memory",
    "tutorial": "Per-sample transforms",
}
"""Short titles of the data paths."""

DTYPES = {
    "float32": "32-bit numbers (float32)",
    "float64": "64-bit numbers (float64)",
}
"""Number formats of weights, samples and losses, with display names."""

LOADER_PATHS = ("loader", "pinned", "tutorial")
"""Data paths that use torch's DataLoader, for which `loader_workers` matters."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """The fields of a training, without its devices; each is a column, an option and a parameter of links."""

    dataset: str = field_with_spec(
        "digits",
        "data set",
        meaning="data set",
        words=tuple(catalog.DATASETS),
        labels={name: entry.title for name, entry in catalog.DATASETS.items()},
        panel="data",
        brief="{}",
    )
    samples: int = field_with_spec(
        0,  # means the data set's default
        "training samples",
        meaning="training samples",
        unit="samples",
        low=10,
        high=1_000_000,
        stops=(100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000),
        panel="data",
        brief="{} samples",
        axis="size",
        place="{} training samples",
        usual_range=(100, 1_000_000),
        usual_values=(500, 1_000),
    )
    model: str = field_with_spec(
        "mlp",
        "model",
        meaning="model family",
        words=tuple(models.FAMILIES),
        labels={name: entry.title for name, entry in models.FAMILIES.items()},
        panel="model",
        brief="{}",
    )
    hidden_size: int = field_with_spec(
        128,
        "hidden size",
        option="neurons of each hidden layer",
        meaning="neurons of each hidden layer; 0 where the model has none",
        unit="neurons",
        low=1,
        high=16_384,
        stops=tuple(2**power for power in range(2, 15)),
        panel="model",
        brief="hidden size {}",
        axis="size",
        place="a hidden size of {}",
        usual_range=(16, 2_048),
        usual_values=(64, 256, 1_024),
    )
    depth: int = field_with_spec(
        2,
        "depth",
        option="number of layers",
        meaning="layers, as the model counts them; 0 where it has no depth",
        unit="layers",
        low=1,
        high=16,
        panel="model",
        brief="depth {}",
        axis="size",
        place="a depth of {}",
        every=True,
        usual_range=(2, 12),
        usual_values=(2, 4),
    )
    width: int = field_with_spec(
        1,
        "width",
        option="width multiplier of a CNN's channels",
        meaning="channel multiplier of a CNN; 0 elsewhere",
        low=1,
        high=32,
        panel="model",
        brief="width {}",
        axis="size",
        place="a width of {}",
        every=True,
        usual_range=(1, 16),
        usual_values=(1, 4),
    )
    heads: int = field_with_spec(
        4,
        "heads",
        option="attention heads of a Transformer",
        meaning="heads of attention in each block of a Transformer; 0 elsewhere",
        unit="heads",
        low=1,
        high=64,
        stops=(1, 2, 4, 8, 16, 32, 64),
        panel="model",
        brief="{} heads",
        axis="size",
        place="{} heads",
        usual_range=(1, 16),
        usual_values=(1, 4, 16),
        later=True,
    )
    sequence_length: int = field_with_spec(
        32,
        "sequence length",
        option="tokens per sample",
        meaning="tokens of a sample; 0 where the data have no tokens",
        unit="tokens",
        low=4,
        high=4_096,
        stops=tuple(2**power for power in range(2, 13)),
        panel="model",
        help="Tokens per sample. A recurrent model processes them one after the other.",
        brief="sequence length {}",
        axis="size",
        place="a sequence length of {}",
        usual_range=(4, 256),
        usual_values=(16, 64),
        later=True,
    )
    embedding_rows: int = field_with_spec(
        10_000,
        "embedding rows",
        option="rows of the embedding table",
        meaning="rows of the embedding table; 0 where the data have no categories",
        unit="rows",
        low=10,
        high=10_000_000,
        stops=(100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000),
        panel="model",
        help="Number of rows in the embedding table. Embedding dimension: 16, or the hidden size in sequence models.",
        brief="{} embedding rows",
        axis="size",
        place="{} embedding rows",
        usual_range=(100, 1_000_000),
        usual_values=(1_000, 100_000),
        later=True,
    )
    rounds: int = field_with_spec(
        100,
        "boosting rounds",
        option="rounds of gradient boosting",
        meaning="rounds of gradient boosting; each adds one tree per class, or one tree for two classes; 0 elsewhere",
        unit="rounds",
        low=1,
        high=2_000,
        stops=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000),
        panel="model",
        brief="{} rounds",
        axis="size",
        place="{} boosting rounds",
        usual_range=(5, 500),
        usual_values=(20, 100),
        later=True,
    )
    leaves: int = field_with_spec(
        31,  # as LightGBM and scikit-learn have it
        "leaves of a tree",
        option="largest number of leaves per tree of gradient boosting",
        meaning="largest number of leaves of a tree in gradient boosting; 0 elsewhere",
        unit="leaves",
        low=2,
        high=4_096,
        stops=(2, 4, 8, 16, 31, 64, 128, 256, 512, 1_024, 2_048, 4_096),
        panel="model",
        brief="{} leaves",
        axis="size",
        place="{} leaves a tree",
        usual_range=(8, 512),
        usual_values=(31, 256),
        later=True,
    )
    batch_size: int = field_with_spec(
        64,  # every batch is full, the remainder of an epoch is left out
        "batch size",
        option="samples per step",
        meaning="samples per step; 0 where each step uses all samples, as in gradient boosting",
        unit="samples",
        low=1,
        high=65_536,
        stops=tuple(2**power for power in range(17)),
        brief="batch {}",
        axis="size",
        place="a batch size of {}",
        usual_range=(1, 1_024),
        usual_values=(16, 64, 256),
    )
    epochs: int = field_with_spec(
        100,
        "epochs",
        meaning="requested epochs",
        unit="epochs",
        low=1,
        high=10_000,
        stops=(1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000),
        brief="{} epochs",
    )
    learning_rate: float = field_with_spec(
        0.1,
        "learning rate",
        meaning="of SGD, or shrinkage of gradient boosting",
        low=1e-6,
        high=10.0,
        stops=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1),
        brief="learning rate {}",
        axis="other",
        usual_values=(0.01, 0.1),
    )
    dtype: str = field_with_spec(
        "float32",
        "number format",
        option="number format of weights, samples and losses",
        meaning="of weights, samples and losses",
        words=tuple(DTYPES),
        labels=DTYPES,
        help="NumPy arrays are float64 by default, and so are tensors made from them. float64 moves twice as many "
        "bytes, and most GPUs have few units for it.",
        brief="{}",
        later=True,
    )
    data_path: str = field_with_spec(
        "resident",
        "data path",
        option="how data reach the device",
        meaning="how data reached the device",
        words=tuple(DATA_PATHS),
        labels=DATA_PATH_TITLES,
        panel="route",
        brief="{}",
    )
    loader_workers: int = field_with_spec(
        0,  # and always where no loader runs
        "loader workers",
        option="worker processes of the DataLoader",
        meaning="worker processes of the DataLoader",
        unit="processes",
        high=16,
        panel="feeding",
        axis="other",
        usual_values=(0, 1),
        axis_stops=(0, 1, 2, 4, 8, 16),
    )
    shuffle: bool = field_with_spec(
        True,
        "shuffle",
        meaning="whether each epoch had a new order",
        words=("true", "false"),
        panel="feeding",
        option="new sample order in each epoch",
    )
    seed: int = field_with_spec(
        0,
        "seed",
        meaning="of weights, data and order",
        high=2**31 - 1,
        panel="feeding",
        option="random seed of weights, data and order",
    )


TRAINING: tuple[str, ...] = tuple(entry.name for entry in dataclasses.fields(Training))
"""Names of the fields of a training."""


GRID_PAIRS, ADAPTIVE_PAIRS = 6, 3
"""Default number of pairs of blocks at each point of a grid, and of an adaptive search.

Six pairs are the minimum for a distribution-free 95 % interval of a single point. An adaptive search measures
neighbours instead, and three pairs suffice for a median.
"""

OUTCOME_TITLES = {
    "budget_spent": "time was up",
    "out_of_memory": "out of memory",
}
"""Display texts of outcomes whose word in the column is not for display."""

FIELDS: dict[str, Field] = {
    **{entry.name: entry.metadata["field"] for entry in dataclasses.fields(Training)},
    "parameters": Field(
        default=0,
        title="parameters",
        low=1,
        stops=tuple(step * 10**power for power in range(2, 8) for step in (1, 2, 5)),
        panel="model",
        axis="size",
        place="{} parameters",
        usual_range=(1_000, 5_000_000),
        usual_values=(10_000, 100_000, 1_000_000),
    ),
    "size": Field(
        default=0,
        title="size",
        low=1,
        panel="model",
        axis="size",
        place="a size of {}",
        usual_range=(64, 4_096),
        usual_values=(64, 256, 1_024),
    ),
    "threads": Field(default=0, title="threads", high=1_024),
    "budget_s": Field(
        default=60.0,
        title="time budget",
        unit="s",
        low=1,
        high=86_400,
        stops=(5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600),
        help="Stop training after this time. Finished blocks are saved.",
    ),
    "sweep_budget_s": Field(
        default=600.0,
        title="time budget",
        unit="s",
        low=1,
        high=86_400,
        stops=(30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400),
        help="Stop starting new sizes after this time. Finished sizes are saved.",
    ),
    "point_budget_s": Field(
        default=20.0,
        title="time for one point",
        unit="s",
        low=1,
        high=3_600,
        stops=(1, 2, 5, 10, 20, 30, 60, 120, 300),
        help="Skip a size that needs more time. The page lists skipped sizes.",
    ),
    "pairs": Field(
        default=0,
        title="pairs of blocks at each point",
        high=100,
        stops=(0, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50, 100),
        help="A pair is one timed block on each device. More pairs narrow the interval. "
        f"0 = default ({GRID_PAIRS}; adaptive search: {ADAPTIVE_PAIRS}).",
    ),
}
"""All fields by name: those of a training, its number of parameters, and the limits of a measurement."""

_AXES = sorted((item for item in FIELDS.items() if item[1].axis), key=lambda item: PANELS.index(item[1].panel))

SIZE_AXES: dict[str, str] = {name: entry.title for name, entry in _AXES if entry.axis == "size"}
"""Axes that can have a crossover, with their display names."""

OTHER_AXES: dict[str, str] = {name: entry.title for name, entry in _AXES if entry.axis == "other"}
"""Further axes of a grid; they are not sizes, so they have no crossover."""

AXES = SIZE_AXES | OTHER_AXES


def axis_title(axis: str) -> str:
    """Return the display name of an axis; an unknown name is returned unchanged."""
    return AXES.get(axis, axis)


def field_title(name: str) -> str:
    """Return the display name of a field; an unknown name is returned with spaces."""
    return FIELDS[name].title if name in FIELDS else name.replace("_", " ")


def value_label(name: str, value: object) -> str:
    """Return the display text of a value: "Digits (1,797 images)"; a value without a label is written unchanged."""
    labels = OUTCOME_TITLES if name == "outcome" else FIELDS[name].labels if name in FIELDS else {}
    return labels.get(str(value), str(value))


def short_label(name: str, value: object) -> str:
    """Return a value of a field without its part in brackets, for a longer line: "Digits"."""
    return value_label(name, value).partition(" (")[0]


__all__ = [
    "ADAPTIVE_PAIRS",
    "AXES",
    "DATA_PATHS",
    "DATA_PATH_TITLES",
    "DTYPES",
    "FIELDS",
    "GRID_PAIRS",
    "LOADER_PATHS",
    "OTHER_AXES",
    "OUTCOME_TITLES",
    "PANELS",
    "SIZE_AXES",
    "TRAINING",
    "Field",
    "Training",
    "axis_title",
    "field_title",
    "short_label",
    "value_label",
]
