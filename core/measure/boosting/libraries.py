"""The libraries of gradient boosting behind one face: what is made of a training, and whether a device is really used.

Each brings an OpenMP runtime beside torch's, or shares that with it. They are therefore imported when a fit is asked
for, and never before: the process trains nothing else afterwards. None of them may fall back to the CPU unseen.
"""

import contextlib
import functools
import importlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core.errors import DeviceUnavailable, LibraryFailed, OutOfMemory
from core.question.experiment import Point
from core.question.models.boosting import LIBRARIES, explain_missing_library
from core.text import as_line

FloatTable = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

SMALL = 256
"""Rows of the fit that shows whether a device can be used; one round of few leaves."""

LIGHTGBM_GPU_KINDS = {"lightgbm": ("cuda", "gpu")}
"""What LightGBM calls a GPU, by CUDA and by OpenCL: a build has one of them, or none."""

_KIND = {"lightgbm": "cuda"}
"""Which of them its build here has, as far as that was tried."""

_MOST_WORDS = 300
"""Letters of a library's error that are told."""


class Model(Protocol):
    """What all three libraries make: a classifier as scikit-learn has them."""

    classes_: npt.NDArray[Any]

    def fit(self, samples: FloatTable, labels: Labels) -> object:
        """Fit from nothing; returns when it is done."""

    def predict_proba(self, samples: FloatTable) -> npt.NDArray[Any]:
        """Probability of each of `classes_`, (rows, classes)."""


@functools.cache
def load(family: str) -> float:
    """Import the library of a family; seconds that it took when it was imported first in this process.

    Raises:
        LibraryFailed: it is not installed, or cannot be imported.
    """
    if told := explain_missing_library(family):
        raise LibraryFailed(told)
    began = time.perf_counter()
    try:
        importlib.import_module("sklearn.ensemble" if family == "hist-boosting" else LIBRARIES[family].package)
    except (ImportError, OSError) as error:  # a library that it needs may be missing on this system
        raise _build_library_error(family, error) from error
    return time.perf_counter() - began


def model(point: Point, device: str, threads: int) -> Model:
    """A classifier that is not fitted yet; everything that is not asked for is as its library has it.

    Args:
        point: the training.
        device: `cpu` or `cuda:N`.
        threads: of the CPU; 0 for the library's own choice.
    """
    return _MAKE[point.model](point, device, threads)


def fit(family: str, made: Model, samples: FloatTable, labels: Labels, threads: int) -> None:
    """Fit a classifier.

    Raises:
        LibraryFailed: the library refused, in its words.
        OutOfMemory: memory did not suffice.
    """
    try:
        with _threads_of_environment(threads) if family == "hist-boosting" else contextlib.nullcontext():
            made.fit(samples, labels)
    except Exception as error:
        said = str(error).lower()
        if isinstance(error, MemoryError) or "out of memory" in said or "bad_alloc" in said:
            raise OutOfMemory(f"{LIBRARIES[family].title} ran out of memory.") from None
        raise _build_library_error(family, error) from error


@functools.cache
def first_use(family: str, device: str) -> float:
    """Use an accelerator for the first time, with a fit of next to nothing; seconds.

    Raises:
        DeviceUnavailable: the library as it is installed cannot use it, in its words.
    """
    point = Point(dataset="disc", model=family, rounds=1, leaves=2)
    samples, labels = np.random.default_rng(0).random((SMALL, 4), np.float32), np.arange(SMALL, dtype=np.int64) % 2
    began = time.perf_counter()
    why = ""
    for kind in LIGHTGBM_GPU_KINDS.get(family, ("",)):
        _KIND[family] = kind
        made = model(point, device, 1)
        try:
            with warnings.catch_warnings(record=True):  # who falls back to the CPU only warns of it
                made.fit(samples, labels)
        except Exception as error:
            why = why or _words(error)
        else:
            used = read_training_device(made)
            if used in ("", device):
                return time.perf_counter() - began
            why = f"it trains on {used} instead"
    raise DeviceUnavailable(f"{LIBRARIES[family].title} as it is installed here cannot train on {device}: {why}.")


def read_training_device(made: Model) -> str:
    """The device that an XGBoost model says it was trained on; empty of others, which raise where they cannot."""
    booster = getattr(made, "get_booster", None)
    if booster is None:
        return ""
    return str(json.loads(booster().save_config())["learner"]["generic_param"]["device"])


def use_threads(family: str, threads: int) -> None:
    """Have so many CPU threads from here on, where that is not said to the model itself."""
    if family == "hist-boosting":
        import threadpoolctl

        threadpoolctl.threadpool_limits(limits=threads, user_api="openmp")


def _hist_boosting(point: Point, _device: str, _threads: int) -> Model:
    from sklearn.ensemble import HistGradientBoostingClassifier

    made: Model = HistGradientBoostingClassifier(
        max_iter=point.rounds,
        max_leaf_nodes=point.leaves,
        learning_rate=point.learning_rate,
        early_stopping=False,
        random_state=point.seed,
    )
    return made


def _xgboost(point: Point, device: str, threads: int) -> Model:
    from xgboost import XGBClassifier

    made: Model = XGBClassifier(
        n_estimators=point.rounds,
        max_leaves=point.leaves,
        max_depth=0,
        grow_policy="lossguide",  # leaf by leaf, as the other two grow their trees
        learning_rate=point.learning_rate,
        tree_method="hist",
        device=device,
        n_jobs=threads or None,
        random_state=point.seed,
    )
    return made


def _lightgbm(point: Point, device: str, threads: int) -> Model:
    from lightgbm import LGBMClassifier

    kind, _, number = device.partition(":")
    made: Model = LGBMClassifier(
        n_estimators=point.rounds,
        num_leaves=point.leaves,
        learning_rate=point.learning_rate,
        n_jobs=threads or None,
        random_state=point.seed,
        verbosity=-1,
        **({} if kind == "cpu" else {"device_type": _KIND["lightgbm"], "gpu_device_id": int(number or 0)}),
    )
    return made


_MAKE: dict[str, Callable[[Point, str, int], Model]] = {
    "hist-boosting": _hist_boosting,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
}


@contextlib.contextmanager
def _threads_of_environment(threads: int) -> Iterator[None]:
    """Let scikit-learn take all threads that it is given: unless this is set, it takes no more than there are cores.

    It is there during the fit alone, as processes that start later must not inherit it.
    """
    before = os.environ.get(_OMP)
    os.environ[_OMP] = str(threads) if threads else before or ""
    try:
        yield
    finally:
        if before is None:
            del os.environ[_OMP]
        else:
            os.environ[_OMP] = before


_OMP = "OMP_NUM_THREADS"


def _build_library_error(family: str, error: Exception) -> LibraryFailed:
    return LibraryFailed(f"{LIBRARIES[family].title} failed: {_words(error)}.")


def _words(error: Exception) -> str:
    """The first line of an error; those that come from another language bring their stack along."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return as_line(lines[0] if lines else type(error).__name__, _MOST_WORDS).rstrip(".")
