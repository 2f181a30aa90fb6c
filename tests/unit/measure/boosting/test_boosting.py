"""Fits of gradient boosting as contenders: the three libraries on next to nothing, and what refuses them."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import lightgbm
import numpy as np
import pytest
import torch

from core.errors import DeviceUnavailable, LibraryFailed, OutOfMemory
from core.files.project import PROJECT
from core.measure import boosting as libraries
from core.measure import contender as contenders
from core.measure import datasets, trial
from core.measure.boosting import BoostingContender, BoostingTraining
from core.measure.timer import Timer
from core.question.experiment import Contender, Experiment, Point
from core.question.models.families import LIBRARIES, explain_missing_library, importlib
from tests.fakes import FakeClock

POINT = Point(dataset="signal", samples=200, model="hist-boosting", rounds=3, leaves=4)
FAMILIES = sorted(LIBRARIES)


def of(family, **fields):
    return Point(dataset="signal", samples=200, model=family, rounds=3, leaves=4, **fields)


@pytest.fixture(scope="module")
def data():
    return datasets.load_dataset("signal", samples=200, seed=0)


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


class Library:
    """In the place of a library: fits as long as it is told to, and learns which class is which."""

    def __init__(self, clock=None, seconds=0.0, error=None, device="cpu"):
        self.clock, self.seconds, self.error, self.device = clock or FakeClock(), seconds, error, device
        self.threads = []

    def __call__(self, point, device, threads):
        self.threads.append(threads)
        return self

    def set_params(self, **_):
        """Nothing: it writes no log."""

    def fit(self, samples, labels):
        if self.error:
            raise self.error
        self.classes_ = np.unique(labels)
        self.clock.pass_s(self.seconds)

    def predict_proba(self, samples):
        return np.full((len(samples), len(self.classes_)), 1 / len(self.classes_))

    def get_booster(self):
        config = {"learner": {"generic_param": {"device": self.device}}}
        return SimpleNamespace(save_config=lambda: json.dumps(config))


@pytest.fixture
def place(monkeypatch):
    """Puts something in the place of a library."""

    def put(family, library):
        monkeypatch.setitem(libraries._MAKE, family, library)
        monkeypatch.setattr(contenders, "Timer", lambda device: Timer(device=device, clock=library.clock))
        return library

    return put


def started(data, name="cpu@1", point=POINT):
    measured = BoostingContender(Contender.parse(name), point, data)
    measured.start()
    return measured


# What is fitted


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fit_begins_from_nothing_so_that_each_learns_the_same(data, family):
    training = BoostingTraining(of(family), data, "cpu")
    training.use_threads(1)
    training.advance(1)
    first, loss = training.chances(data.test.samples), training.loss()
    training.advance(2)
    assert torch.equal(training.chances(data.test.samples), first)
    assert training.steps == 3
    assert 0 < loss < np.log(2), "better than chance on what it was fitted to"
    assert first.sum(dim=1).numpy() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_rounds_leaves_shrinkage_threads_and_seed_are_those_that_were_asked_for(family):
    made = libraries.model(of(family, learning_rate=0.3, seed=7), "cpu", 2).get_params()
    rounds, leaves, threads = {
        "hist-boosting": ("max_iter", "max_leaf_nodes", ""),
        "xgboost": ("n_estimators", "max_leaves", "n_jobs"),
        "lightgbm": ("n_estimators", "num_leaves", "n_jobs"),
    }[family]
    assert (made[rounds], made[leaves], made["learning_rate"], made["random_state"]) == (3, 4, 0.3, 7)
    assert not threads or made[threads] == 2


def test_classes_that_no_training_row_has_get_no_chance(place):
    digits = datasets.load_dataset("digits", samples=10, seed=0)
    present = set(digits.train.labels.tolist())
    assert len(present) < 10
    place("xgboost", Library())
    training = BoostingTraining(Point(dataset="digits", samples=10, model="xgboost"), digits, "cpu")
    training.advance(1)
    chances = training.chances(digits.test.samples[:3])
    assert {label for label in range(10) if chances[:, label].sum()} == present
    assert training.loss() == pytest.approx(np.log(len(present)))


def test_scikit_learn_takes_the_threads_that_it_is_given_and_leaves_no_trace_in_the_environment(monkeypatch):
    seen = []
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    watched = SimpleNamespace(fit=lambda samples, labels: seen.append(os.environ.get("OMP_NUM_THREADS")))
    libraries.fit("hist-boosting", watched, None, None, 3)
    assert (seen, os.environ.get("OMP_NUM_THREADS")) == (["3"], None)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    libraries.fit("hist-boosting", watched, None, None, 3)
    assert os.environ["OMP_NUM_THREADS"] == "2"


# What refuses it


def test_without_its_library_nothing_is_measured_and_what_installs_it_is_said(data, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        LibraryFailed, match=r"LightGBM is not installed here: pip install -r requirements-boosting.txt"
    ):
        BoostingContender(Contender(), of("lightgbm"), data)
    assert explain_missing_library("mlp") == ""


def test_a_library_that_falls_back_to_the_cpu_is_found_out(place):
    place("xgboost", Library(device="cpu"))
    libraries.first_use.cache_clear()
    with pytest.raises(DeviceUnavailable, match="The installed XGBoost cannot train on cuda:0: it trains on"):
        libraries.first_use("xgboost", "cuda:0", "NVIDIA T4")
    place("xgboost", Library(device="cuda:0"))
    assert libraries.first_use("xgboost", "cuda:0", "NVIDIA T4") >= 0
    libraries.first_use.cache_clear()


def test_a_build_without_gpus_says_so_in_its_own_words(place):
    place("lightgbm", Library(error=RuntimeError("CUDA Tree Learner was not enabled in this build.\nPlease recompile")))
    with pytest.raises(DeviceUnavailable, match="cannot train on cuda:1: CUDA Tree Learner was not enabled in this"):
        libraries.first_use("lightgbm", "cuda:1", "NVIDIA T4")


class OpenClLibrary(Library):
    """LightGBM without CUDA on a machine with several OpenCL platforms, of which one that is not there is the first."""

    def __init__(self, *names):
        super().__init__()
        self.names, self.asked = names, []

    def __call__(self, point, device, threads):
        self.asked.append(dict(libraries._LIGHTGBM_GPU))
        return self

    def set_params(self, verbosity):
        assert verbosity == 1

    def fit(self, samples, labels):
        if self.asked[-1]["device_type"] == "cuda":
            raise RuntimeError("CUDA Tree Learner was not enabled in this build.")
        if not self.names:
            raise RuntimeError("No OpenCL device found")
        platform = self.asked[-1]["gpu_platform_id"]
        name = self.names[platform if 0 <= platform < len(self.names) else 0]
        lightgbm.basic._LOGGER.info(f"[LightGBM] [Info] Using GPU Device: {name}, Vendor: Somebody\n")

    get_booster = None


@pytest.fixture
def fresh_lightgbm(place):
    """Puts something in the place of LightGBM, which has not used a GPU yet."""
    libraries.first_use.cache_clear()
    yield lambda library: place("lightgbm", library)
    libraries.first_use.cache_clear()
    libraries._LIGHTGBM_GPU = {"device_type": "cuda"}


def test_lightgbm_is_asked_for_the_platform_whose_device_is_the_one_asked_for(fresh_lightgbm):
    library = fresh_lightgbm(OpenClLibrary("Intel(R) Iris(R) Xe Graphics", "NVIDIA GeForce RTX 4050 Laptop GPU"))
    assert libraries.first_use("lightgbm", "cuda:0", "NVIDIA GeForce RTX 4050 Laptop GPU") >= 0
    assert library.asked[-1] == {"device_type": "gpu", "gpu_platform_id": 1}
    made = libraries._lightgbm(of("lightgbm"), "cuda:0", 1).get_params()
    assert (made["device_type"], made["gpu_platform_id"], made["gpu_device_id"]) == ("gpu", 1, 0)


def test_lightgbm_on_another_device_is_refused_with_its_name_and_both_reasons(fresh_lightgbm):
    fresh_lightgbm(OpenClLibrary("pthread-AMD EPYC"))
    with pytest.raises(DeviceUnavailable) as refused:
        libraries.first_use("lightgbm", "cuda:0", "NVIDIA T4")
    assert str(refused.value) == (
        "The installed LightGBM cannot train on cuda:0: CUDA Tree Learner was not enabled in this build; "
        "it trains on pthread-AMD EPYC instead."
    )


def test_lightgbm_without_opencl_says_opencls_own_reason_too(fresh_lightgbm):
    fresh_lightgbm(OpenClLibrary())
    with pytest.raises(DeviceUnavailable, match="not enabled in this build; No OpenCL device found"):
        libraries.first_use("lightgbm", "cuda:0", "NVIDIA T4")


@pytest.mark.slow
def test_a_real_opencl_on_the_cpu_is_not_taken_for_a_gpu(tmp_path):
    """OpenCL compiles its kernels at the first use, which takes a minute or two."""
    pytest.importorskip("pocl_binary_distribution", reason="needs OpenCL: pip install pocl-binary-distribution")
    libraries_of_pocl = next(Path(find_spec("pyopencl").submodule_search_locations[0]).glob(".libs"))
    (tmp_path / "pocl.icd").write_text(str(next(libraries_of_pocl.glob("libpocl*"))))
    code = (
        "from core.errors import DeviceUnavailable\n"
        "from core.measure import boosting\n"
        "boosting.OPENCL_PLATFORMS = (-1,)\n"
        "try:\n    boosting.first_use('lightgbm', 'cuda:0', 'NVIDIA T4')\n"
        "except DeviceUnavailable as error:\n    print(error)\n"
    )
    variables = {"OCL_ICD_VENDORS": str(tmp_path), "LD_LIBRARY_PATH": str(libraries_of_pocl)}
    done = subprocess.run(
        (sys.executable, "-c", code), cwd=PROJECT, env=os.environ | variables, capture_output=True, text=True
    )
    assert "it trains on pthread-" in done.stdout


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ValueError("bad rows\nstack of another language"), LibraryFailed, "XGBoost failed: bad rows."),
        (RuntimeError("std::bad_alloc"), OutOfMemory, "XGBoost ran out of memory."),
        (MemoryError(), OutOfMemory, "XGBoost ran out of memory."),
    ],
)
def test_what_a_library_refuses_is_one_sentence(error, kind, said):
    with pytest.raises(kind) as refused:
        libraries.fit("xgboost", Library(error=error), None, None, 1)
    assert str(refused.value) == said


# How it is measured


def test_a_long_fit_is_a_block_of_its_own_and_a_short_one_has_company(data, place):
    library = place("hist-boosting", Library(FakeClock(), seconds=2.0))
    measured = started(data)
    assert len(list(measured.warm_up(60.0))) == 1
    measured.block(0)
    assert (measured.raw.warmup_steps, measured.raw.block_steps, measured.raw.lead_in_steps) == ([1], [1], 0)
    library.seconds = 0.02
    measured = started(data)
    list(measured.warm_up(60.0))
    measured.block(0)
    assert (measured.raw.warmup_steps, measured.raw.block_steps, measured.raw.lead_in_steps) == ([1, 6], [6], 1)
    assert measured.raw.step_s == pytest.approx(0.02)


def test_fits_take_turns_with_fits_of_twice_the_rows(data, place):
    library, rows = place("hist-boosting", Library(FakeClock(), seconds=0.2)), []
    real = library.fit
    library.fit = lambda samples, labels: rows.append(len(samples)) or real(samples, labels)
    measured = started(data)
    list(measured.warm_up(60.0))
    rows.clear()
    measured.profile(60.0)
    assert rows == [400, *[200, 400] * 5]
    assert measured.raw.turns_step_s == measured.raw.doubled_step_s == pytest.approx((0.2,) * 5)
    measured.profile(60.0, turns=False)
    assert len(rows) == 11


def test_rows_are_not_doubled_where_memory_would_not_suffice(data, place, monkeypatch):
    place("hist-boosting", Library(FakeClock(), seconds=0.2))
    measured = started(data)
    monkeypatch.setattr(type(measured._device), "free_bytes", lambda device: 1)
    measured.profile(60.0)
    assert measured.raw.doubled_step_s == ()


def test_threads_are_tried_with_whole_fits_and_every_fit_has_the_best(data, place):
    library = place("hist-boosting", Library(FakeClock(), seconds=0.3))
    measured = BoostingContender(Contender(), POINT, data)
    measured._counts = [1, 2]
    measured.start()
    assert library.threads == [0], "the first fit has the library's own choice"
    list(measured.try_threads())
    assert set(library.threads[1:]) == {1, 2}
    assert measured.steps == 1, "fits that were tried count for nothing"
    measured.block(0)
    assert library.threads[-1] == measured.raw.threads


def test_every_contender_says_what_importing_the_library_cost(data, place, monkeypatch):
    place("hist-boosting", Library(FakeClock(), seconds=0.25))
    monkeypatch.setattr(libraries, "load", lambda family: 1.5)
    for raw in (started(data).raw, started(data).raw):
        assert (raw.startup_build_s, raw.startup_first_step_s) == (1.5, 0.25)
        assert raw.startup_transfer_s is None


@pytest.mark.slow
def test_a_run_leaves_rows_with_predictions_a_loss_and_nothing_that_is_not_known():
    asked = Experiment(point=of("xgboost"), contenders=(Contender(threads=1),), budget_s=10.0, whole=False)
    (row,) = trial.measure(asked, hooks=trial.Hooks())
    assert (row.outcome, row.steps_per_epoch, row.batch_size, row.rounds, row.leaves) == ("completed", 1, 0, 3, 4)
    assert (row.parameters, row.flops_per_step, row.startup_transfer_s) == (0, 0, None)
    assert row.loss_step == (1,)
    assert 0 < row.loss[0] < 1
    assert sum(row.confusion) == len(row.predictions) == row.test_samples == 100
    assert row.train_accuracy > 0.5
