"""Families of gradient boosting: trees of libraries other than torch, for which one training is one fit.

These families have their own sizes (boosting rounds and leaves), and neither layers nor batches. The number of trained
numbers and of operations is unknown, and is not guessed. Nothing here imports one of the libraries.

The module also has the table of all model families, and builds their networks.
"""

import importlib.util
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidValue, require_choice
from .. import catalog
from .architectures import (
    CNN,
    DOUBLING_MLP,
    GRU,
    GRU_CELLS,
    LINEAR,
    LSTM,
    LSTM_CELLS,
    MLP,
    RESNET,
    TOKEN_WIDTH,
    TRANSFORMER,
    embedding,
)
from .layers import Family, Layer, Network, Shape

SETTLED: Mapping[str, Any] = {
    "batch_size": 0,
    "epochs": 1,
    "data_path": "per_batch",
    "loader_workers": 0,
    "dtype": "float32",
    "shuffle": False,
}
"""Values of these fields in a fit, which uses every row in every round.

There are no batches, one step is the whole training, and each fit copies the table to an accelerator again.
"""


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library that fits a family of gradient boosting.

    Attributes:
        title: name for people.
        package: name to import.
        install: how to install it.
        devices: kinds of devices that it supports, by PyTorch's names.
    """

    title: str
    package: str
    install: str = "pip install -r requirements-boosting.txt"
    devices: tuple[str, ...] = ("cpu", "cuda")


LIBRARIES: Mapping[str, Library] = {
    "hist-boosting": Library(
        title="scikit-learn", package="sklearn", install="pip install scikit-learn", devices=("cpu",)
    ),
    "xgboost": Library(title="XGBoost", package="xgboost"),
    "lightgbm": Library(title="LightGBM", package="lightgbm"),
}
"""By family."""


ROWS = "rows"
"""Name of a fit's samples, which are the rows of its table."""


def answer_axis_name(axis: str, model: str) -> str:
    """Return the name of an axis in answers: rows, where it varies the samples of a fit."""
    return ROWS if axis == "samples" and model in LIBRARIES else axis


def field_of_answer_axis(axis: str) -> str:
    """Return the varied field, by the name of its axis in answers."""
    return "samples" if axis == ROWS else axis


def explain_missing_library(model: str) -> str:
    """Return a sentence on how to install the missing library of a family; empty if none is missing."""
    library = LIBRARIES.get(model)
    if library is None or importlib.util.find_spec(library.package) is not None:
        return ""
    return f"{library.title} is not installed here: {library.install}."


def check_device(model: str, device: str) -> None:
    """Refuse a device that the library of a family does not support; families of torch accept every device.

    Raises:
        InvalidValue: the library does not support the device.
    """
    library = LIBRARIES.get(model)
    if library is not None and device.partition(":")[0] not in library.devices:
        raise InvalidValue("devices", device, f"{' or '.join(library.devices)}, where {library.title} fits its trees")


def _no_layers(_shape: Shape, _classes: int, _sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    return ()


def _family(name: str, title: str, summary: str) -> Family:
    library = LIBRARIES[name].title
    return Family(
        name=name, title=title, summary=summary, axes=("rounds", "leaves"), layers=_no_layers, library=library
    )


HIST_BOOSTING = _family(
    "hist-boosting",
    "Gradient boosting (scikit-learn)",
    "Trees of scikit-learn's HistGradientBoostingClassifier, on the CPU only.",
)

XGBOOST = _family(
    "xgboost",
    "XGBoost",
    "XGBoost, on CPU or CUDA. Install it separately: `pip install -r requirements-boosting.txt`.",
)

LIGHTGBM = _family(
    "lightgbm",
    "LightGBM",
    "LightGBM, on CPU or a GPU that its build supports. Install it separately: "
    "`pip install -r requirements-boosting.txt`.",
)


FAMILIES: dict[str, Family] = {
    entry.name: entry
    for entry in (
        LINEAR,
        MLP,
        DOUBLING_MLP,
        CNN,
        RESNET,
        LSTM,
        LSTM_CELLS,
        GRU,
        GRU_CELLS,
        TRANSFORMER,
        HIST_BOOSTING,
        XGBOOST,
        LIGHTGBM,
    )
}

_AXES = (*(entry.axes for entry in FAMILIES.values()), *(entry.axes for entry in catalog.DATASETS.values()))

AXES = tuple(dict.fromkeys(itertools.chain(*_AXES)))
"""All sizes that shape networks: those of families, and of data sets."""


def family(name: str) -> Family:
    """Return facts of the model family called `name`.

    Raises:
        InvalidValue: no family has that name.
    """
    return FAMILIES[require_choice("model", name, FAMILIES)]


def list_model_sizes(name: str, dataset: str) -> tuple[str, ...]:
    """Return the sizes that shape the networks of a family for a data set, those of the family first.

    Raises:
        InvalidValue: there is no such family, or no such data set.
    """
    return (*family(name).axes, *catalog.dataset(dataset).axes)


def network(
    name: str, *, input_shape: Shape, classes: int, vocabulary: int = 0, dtype: str = "float32", **sizes: int
) -> Network:
    """Return the network of family `name` for one data set; tokens become vectors first.

    Args:
        name: key of `FAMILIES`.
        input_shape: (features,) or (channels, height, width), or (steps,) of tokens.
        classes: number of classes.
        vocabulary: number of different tokens, if samples are tokens.
        dtype: number format of the network.
        sizes: values of `AXES` that shape the family; others are ignored.
    """
    facts, shape, front = family(name), input_shape, tuple[Layer, ...]()
    if vocabulary and not facts.library:
        width = sizes["hidden_size"] if facts.of_sequences else TOKEN_WIDTH
        front = (embedding(vocabulary, width, shape[0]),)
        shape = (*shape, width)
    layers = front + facts.layers(shape, classes, sizes)
    return Network(input_shape=input_shape, classes=classes, layers=layers, dtype=dtype, tokens=vocabulary > 0)
