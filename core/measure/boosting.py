"""Gradient boosting: fits of scikit-learn, XGBoost and LightGBM, timed like the steps of a training.

A step is one whole fit. Each library loads a separate OpenMP runtime or shares torch's, so it is imported only when a
fit is requested. The process trains nothing else afterwards. A library that falls back to the CPU is refused.
"""

import contextlib
import functools
import importlib
import json
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import DeviceUnavailable, LibraryFailed, OutOfMemory
from ..question.experiment import BEST_THREADS, Contender, Point
from ..question.lanes import PLAIN, Lane
from ..question.models.families import LIBRARIES, explain_missing_library
from ..text import as_line
from . import preflight
from .breakdown import examine
from .contender import MeasuredContender
from .datasets import Data, Feed, Split
from .preflight import LONG_S, FreshTrainings
from .timer import BLOCK_MARGIN, LEAD_IN_S, LONGEST_LEAD_IN_S, MIN_BLOCK_S
from .training import Training

FloatTable = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

SMALL = 256
"""Number of rows of the fit that checks whether a device can be used; it has one round and few leaves."""

OPENCL_PLATFORMS = (-1, 0, 1, 2, 3)
"""Numbers of the OpenCL platforms to try with LightGBM; -1, tried first, lets LightGBM choose."""

_LIGHTGBM_GPU: dict[str, Any] = {"device_type": "cuda"}
"""Parameters that request the GPU from LightGBM on this machine; the last ones tried."""

_OPENCL_DEVICE = "Using GPU Device: "
"""Text in LightGBM's log before the device name that OpenCL reports; with CUDA, LightGBM uses the requested device."""

_MOST_WORDS = 300
"""Maximum number of characters shown of a library's error."""


class Model(Protocol):
    """Classifier with scikit-learn's interface, as all three libraries make it."""

    classes_: npt.NDArray[Any]

    def fit(self, samples: FloatTable, labels: Labels) -> object:
        """Fit a new model; return when it is done."""

    def predict_proba(self, samples: FloatTable) -> npt.NDArray[Any]:
        """Return the probability of each of `classes_`, (rows, classes)."""


@functools.cache
def load(family: str) -> float:
    """Import the library of a family; return the seconds that its first import took in this process.

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
    """Build a classifier that is not fitted yet; settings that `point` does not name keep the library's default.

    Args:
        point: the training.
        device: `cpu` or `cuda:N`.
        threads: number of CPU threads; 0 for the library's own choice.
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
def first_use(family: str, device: str, name: str) -> float:
    """Use an accelerator for the first time, with a very small fit.

    Args:
        family: model family of the library.
        device: `cuda:N`.
        name: name of the device in PyTorch.

    Returns:
        The seconds of the first use.

    Raises:
        DeviceUnavailable: the installed library cannot use the device, or uses another one.
    """
    began, why = time.perf_counter(), dict[str, None]()
    for asked in _list_ways_to_ask(family):
        _LIGHTGBM_GPU.clear()
        _LIGHTGBM_GPU.update(asked)
        try:
            used = _fit_once(family, device)
        except Exception as error:
            why[_words(error)] = None
        else:
            named = used or asked.get("device_type") != "gpu"
            if named and (used in ("", device) or _is_same_device(used, name)):
                return time.perf_counter() - began
            why[f"it trains on {used or 'an unnamed device'} instead"] = None
    reasons = "; ".join(why)
    raise DeviceUnavailable(f"The installed {LIBRARIES[family].title} cannot train on {device}: {reasons}.")


def _list_ways_to_ask(family: str) -> list[dict[str, Any]]:
    """List the parameters that may request a GPU.

    LightGBM has CUDA and several OpenCL platforms; a build may support some of them or none.
    """
    if family != "lightgbm":
        return [{}]
    opencl = [{"device_type": "gpu", "gpu_platform_id": number} for number in OPENCL_PLATFORMS]
    return [{"device_type": "cuda"}, *opencl]


def _fit_once(family: str, device: str) -> str:
    """Do a very small fit; return the device that the library reports, or an empty string."""
    point = Point(dataset="disc", model=family, rounds=1, leaves=2)
    samples, labels = np.random.default_rng(0).random((SMALL, 4), np.float32), np.arange(SMALL, dtype=np.int64) % 2
    made = model(point, device, 1)
    said: list[str] = []
    with warnings.catch_warnings(record=True), _collect_log(family, made, said):  # a fallback to the CPU only warns
        made.fit(samples, labels)
    named = [
        line.partition(_OPENCL_DEVICE)[2].partition(", Vendor:")[0].strip() for line in said if _OPENCL_DEVICE in line
    ]
    return named[-1] if named else read_training_device(made)


@contextlib.contextmanager
def _collect_log(family: str, made: Model, said: list[str]) -> Iterator[None]:
    """Let LightGBM write its log, and collect its lines."""
    if family != "lightgbm":
        yield
        return
    import lightgbm

    before = lightgbm.basic._LOGGER
    lightgbm.register_logger(SimpleNamespace(info=said.append, warning=said.append))
    made.set_params(verbosity=1)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        lightgbm.register_logger(before)


def _is_same_device(used: str, name: str) -> bool:
    """Return whether OpenCL and PyTorch mean the same device.

    Either name may have more details than the other, such as maker or memory.
    """
    one, other = used.casefold(), name.casefold()
    return bool(one) and (one in other or other in one)


def read_training_device(made: Model) -> str:
    """Return the device on which an XGBoost model reports to have been trained; empty for other libraries."""
    booster = getattr(made, "get_booster", None)
    if booster is None:
        return ""
    return str(json.loads(booster().save_config())["learner"]["generic_param"]["device"])


def use_threads(family: str, threads: int) -> None:
    """Limit the number of CPU threads from now on, for a model without a parameter for it."""
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
        **({} if kind == "cpu" else {**_LIGHTGBM_GPU, "gpu_device_id": int(number or 0)}),
    )
    return made


_MAKE: dict[str, Callable[[Point, str, int], Model]] = {
    "hist-boosting": _hist_boosting,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
}


@contextlib.contextmanager
def _threads_of_environment(threads: int) -> Iterator[None]:
    """Let scikit-learn use all requested threads; without this variable it uses at most one per core.

    The variable is set only during the fit, because processes that start later must not inherit it.
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
    """Return the first line of an error, without the stack that errors of native code contain."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return as_line(lines[0] if lines else type(error).__name__, _MOST_WORDS).rstrip(".")


SCORED = 10_000
"""Maximum number of training rows for the loss; the same as for a network's accuracy."""

LEAST_CHANCE = 1e-15
"""Lower bound of the probability of the right class, so that the loss is finite."""


class BoostingTraining(Training):
    """One model that is fitted repeatedly.

    Attributes:
        threads: number of CPU threads for every fit from now on; 0 for the library's own choice.
    """

    def __init__(self, point: Point, data: Data, device: str) -> None:
        """Flatten the samples into a table with one row per sample."""
        self._point, self._device = point, device
        self.classes, self._labels = np.unique(data.train.labels.numpy(), return_inverse=True)
        self._samples = _to_table(data.train.samples)
        self._scored = Split(samples=data.train.samples[:SCORED], labels=data.train.labels[:SCORED])
        self._all_classes = point.network.classes
        self._model: Model | None = None
        self.threads, self.lane, self._engine, self._losses, self.steps = BEST_THREADS, PLAIN, None, [], 0
        super().rewind(NOTHING, 0)

    def use_threads(self, count: int) -> None:
        """Use this number of threads for every fit from now on."""
        self.threads = count
        use_threads(self._point.model, count)

    def advance(self, steps: int) -> None:
        """Fit `steps` new models.

        Raises:
            LibraryFailed: the library refused.
        """
        family = self._point.model
        for _ in range(steps):
            self._model = model(self._point, self._device, self.threads)
            fit(family, self._model, self._samples, self._labels, self.threads)
        self.steps += steps

    def rewind(self, feed: Feed, steps: int) -> None:
        """Reset only the count of fits, because each fit builds a new model."""
        self.steps = steps

    def weights(self, device: str | None = None) -> list[Tensor]:
        """Return no weights, as the library owns the trees."""
        return []

    def set_weights(self, weights: list[Tensor]) -> None:
        """Do nothing: each fit builds a new model."""

    def rehearsal(self) -> Callable[[], object]:
        """Return one fit."""
        return partial(self.advance, 1)

    def read_losses(self) -> list[float]:
        """Return no losses between blocks: every fit has the loss of the first one, see `loss`."""
        return []

    def loss(self) -> float:
        """Return the mean log loss of the model over the first training rows."""
        chances = self.chances(self._scored.samples).gather(1, self._scored.labels[:, None])
        return float(-chances.clamp_min(LEAST_CHANCE).log().mean())

    def chances(self, samples: Tensor) -> Tensor:
        """Return the probability of each class of the data set, (rows, classes), like the outputs of a network."""
        if self._model is None:
            raise RuntimeError("nothing has been fitted yet")
        known = torch.as_tensor(np.asarray(self._model.predict_proba(_to_table(samples))), dtype=torch.float64)
        every = torch.zeros(len(samples), self._all_classes, dtype=torch.float64)
        every[:, torch.from_numpy(self.classes)] = known
        return every


def _to_table(samples: Tensor) -> Any:
    return samples.reshape(len(samples), -1).numpy()


def _no_batch(*_: object) -> Any:
    raise RuntimeError("a fit has no batches")


NOTHING = Feed(batches=iter(()), take=_no_batch, place=_no_batch, batch_size=0)


LONG_ON_ACCELERATOR_S = 10 * LONGEST_LEAD_IN_S
"""Seconds of a fit above which no fit precedes it: an accelerator's clocks rise within a tenth of this time."""


class FreshFits(FreshTrainings):
    """Builds the trainings of one point on one device; each fit builds a new model."""

    def training(self, lane: Lane) -> Training:
        """Build a training that is not fitted yet; boosting has no variants."""
        return BoostingTraining(self.point, self.data, str(self.device))

    def feed(self, first_step: int) -> Feed:
        """Return a feed without batches."""
        return NOTHING


class BoostingContender(MeasuredContender):
    """One contender in the measurement of fits."""

    def __init__(self, contender: Contender, point: Point, data: Data) -> None:
        """Store a contender whose device was found; nothing is imported or fitted yet.

        Raises:
            LibraryFailed: the library of the family is not installed.
        """
        if told := explain_missing_library(point.model):
            raise LibraryFailed(told)
        super().__init__(contender, point, data)
        self._fresh = FreshFits(point=point, data=data, device=self._device.torch)

    @property
    def fits(self) -> BoostingTraining:
        """The training, after `start`."""
        training = self.training
        if not isinstance(training, BoostingTraining):
            raise TypeError("it is not a gradient boosting model")
        return training

    @property
    def facts(self) -> dict[str, Any]:
        """Return 0 for parameters and operations, which are not counted for trees; 0 means unknown."""
        return {"parameters": 0, "flops_per_step": 0}

    def require_pace(self, budget_s: float) -> None:
        """Do nothing: the duration of a fit is known only after the first one."""

    def start(self) -> None:
        """Import the library, check whether it can use the device, and do the first fit; each part is timed."""
        loaded_s = load(self._point.model)
        used_s = (
            0.0 if self.contender.on_host else first_use(self._point.model, str(self._device.torch), self.info.name)
        )
        super().start()
        raw = self.raw  # a second contender in this process finds the library there, and would have had to wait too
        raw.startup_build_s = (raw.startup_build_s or 0.0) + loaded_s
        raw.startup_device_s = (raw.startup_device_s or 0.0) + used_s
        self.curve.add([self.fits.loss()])

    def warm_up(self, allowance_s: float) -> Iterator[None]:
        """Fit once more, or for the duration of a block; yield between timings.

        A fit is long compared with any warm-up effect, and allocates new memory. The first fit and the first block are
        not used.
        """
        fit_s = self._warm_up_block(1)
        yield
        self._block_steps = max(1, math.ceil(BLOCK_MARGIN * MIN_BLOCK_S / fit_s)) if fit_s > 0 else 1
        if self._block_steps > 1 and fit_s < allowance_s:
            fit_s = self._warm_up_block(self._block_steps) / self._block_steps
            yield
        long_s = LONG_S if self.contender.on_host else LONG_ON_ACCELERATOR_S
        self.raw.lead_in_steps = max(1, math.ceil(LEAD_IN_S / fit_s)) if 0 < fit_s < long_s else 0

    def _rebuild(self) -> None:
        """Do nothing: each fit builds new trees and tables."""

    def profile(self, budget_s: float, *, whole_epoch: bool = True, turns: bool = True) -> None:
        """Time steps on twice the data, alternating with normal steps, if memory suffices.

        A fit cannot be divided, and a whole training is one fit, so there is no step breakdown and no epoch to measure.
        """
        if (
            turns
            and 2 * preflight.estimate_memory_bytes(self._point, self.contender, self._data)
            <= self._device.free_bytes()
        ):
            self._use_settings()
            self._afterwards.take_turns(self.training, self._build_doubled_training, "doubled_step_s", budget_s)

    def examine(self) -> None:
        """Classify with the model of the last fit; all fits give the same model."""
        classify = partial(
            examine, self.fits.chances, self._point.network.classes, self._data, torch.device("cpu"), self.raw
        )
        self._afterwards.attempt("The classification report is", classify)

    def _build_doubled_training(self) -> Training:
        """Return the training on a table with every row twice: trees split as before, with twice the rows per leaf."""
        train = self._data.train
        twice = Split(samples=train.samples.repeat_interleave(2, 0), labels=train.labels.repeat_interleave(2))
        fits = BoostingTraining(self._point, replace(self._data, train=twice), str(self._device.torch))
        fits.threads = self.fits.threads
        return fits

    def _lead_in_steps(self) -> int:
        return self.raw.lead_in_steps

    def _keep_weights(self) -> None:
        """Do nothing: the last model stays in memory."""

    def _prepare(self) -> float:
        """Return 0 seconds: nothing is compiled."""
        return 0.0

    def _use_settings(self) -> None:
        """Use the thread count of this contender from now on."""
        if self._training is not None and self.raw.threads != BEST_THREADS:
            self.fits.use_threads(self.raw.threads)
