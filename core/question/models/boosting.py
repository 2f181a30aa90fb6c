"""Families of gradient boosting: trees of libraries that are no torch, of which one training is one fit.

They have sizes of their own (boosting rounds and leaves) and neither layers nor batches: how many numbers are trained
and how many operations that takes is not known, and is not guessed. Nothing here imports one of the libraries.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidValue
from .layers import Family, Layer, Shape

SETTLED: Mapping[str, Any] = {
    "batch_size": 0,
    "epochs": 1,
    "data_path": "per_batch",
    "loader_workers": 0,
    "dtype": "float32",
    "shuffle": False,
}
"""What these fields are in a fit, which sees every row in every round: there are no batches, one step is the whole
training, and an accelerator gets the table anew with each."""


@dataclass(frozen=True, kw_only=True)
class Library:
    """What fits a family of gradient boosting.

    Attributes:
        title: name for people.
        package: that is imported.
        install: what installs it.
        devices: kinds of devices, as PyTorch calls them, that it was written for.
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
"""What the samples of a fit are called: its table has one for each."""


def answer_axis_name(axis: str, model: str) -> str:
    """How answers call an axis of a training: rows, where it varies the samples of a fit."""
    return ROWS if axis == "samples" and model in LIBRARIES else axis


def field_of_answer_axis(axis: str) -> str:
    """The field that is varied, by what answers call it."""
    return "samples" if axis == ROWS else axis


def explain_missing_library(model: str) -> str:
    """What to install where the library of a family is not here, in a sentence; empty if nothing is missing."""
    library = LIBRARIES.get(model)
    if library is None or importlib.util.find_spec(library.package) is not None:
        return ""
    return f"{library.title} is not installed here: {library.install}."


def check_device(model: str, device: str) -> None:
    """Refuse a device that the library of a family was not written for; others pass, and so do other families.

    Raises:
        InvalidValue: it was not.
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
    "Trees of scikit-learn's HistGradientBoostingClassifier, on the CPU alone.",
)

XGBOOST = _family(
    "xgboost",
    "XGBoost",
    "Trees of XGBoost, which has to be installed beside this app, on the CPU and on CUDA.",
)

LIGHTGBM = _family(
    "lightgbm",
    "LightGBM",
    "Trees of LightGBM, which has to be installed beside this app, on the CPU, or on a GPU that its build supports.",
)
