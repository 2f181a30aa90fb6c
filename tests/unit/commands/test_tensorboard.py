"""`--tensorboard` and `--scale` on `run` and `sweep`: what reaches the recorder, and what is refused first."""

import importlib.util

import pytest

from core import __main__ as command_line
from core.answer.export import run_files
from core.commands import arguments, run
from core.question.experiment import Experiment
from core.question.presets import LIMITS, PRESETS, preset
from core.question.sweep import Sweep
from core.results.store import Store
from tests.unit.commands.stored import SIZES, fill, measured
from tests.unit.commands.stored import sweep as asked_sweep

VALUES = ("--axis", "hidden_size", "--values", ",".join(map(str, SIZES)))
DEVICES = ("--devices", "cpu,cuda:0")


def parsed(*words: str):
    return command_line.parser().parse_args(words)


@pytest.fixture
def written(monkeypatch):
    """Stands for the writer; returns what it was given."""
    given = []
    monkeypatch.setattr(run_files, "require_event_folder", lambda folder: None)
    monkeypatch.setattr(run_files, "write_event_files", lambda folder, found: given.extend(found) or list(given))
    return given


@pytest.mark.slow
def test_a_sweep_from_the_store_is_recorded_row_by_row(command, tmp_path, written):
    rows = measured(asked_sweep())
    fill(Store(tmp_path / "store"), rows)
    done = command("sweep", *VALUES, *DEVICES, "--store", tmp_path / "store", "--tensorboard", tmp_path / "runs")
    assert done.status == 0
    assert sorted(entry.id for entry in written) == sorted(row.trial_id for row in rows)
    assert f"{len(rows)} TensorBoard runs written to {tmp_path / 'runs'}." in done.err


@pytest.mark.slow
def test_a_run_from_the_store_is_recorded_contender_by_contender(command, tmp_path, written):
    fill(Store(tmp_path / "store"), measured(asked_sweep()))
    words = ("run", "--hidden-size", SIZES[0], *DEVICES, "--store", tmp_path / "store")
    done = command(*words, "--tensorboard", tmp_path / "runs", "--json")
    assert done.status == 0, done.err
    assert [entry.settings["contender"] for entry in written] == ["cpu", "cuda:0"]
    assert {entry.settings["hidden_size"] for entry in written} == {SIZES[0]}
    assert [trial["contender"] for trial in done.json["trials"]] == ["cpu", "cuda:0"]


@pytest.mark.slow
def test_without_the_option_nothing_is_recorded(command, tmp_path, written):
    fill(Store(tmp_path / "store"), measured(asked_sweep()))
    assert command("sweep", *VALUES, *DEVICES, "--store", tmp_path / "store").status == 0
    assert written == []


@pytest.mark.parametrize("words", [("run",), ("sweep", *VALUES)])
def test_a_missing_package_is_said_before_anything_is_measured(command, tmp_path, monkeypatch, words):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = command(*words, *DEVICES, "--store", tmp_path, "--tensorboard", tmp_path / "runs")
    assert done.status == 1
    assert "pip install tensorboard" in done.err
    assert done.out == ""


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("scale", ["class", "full"])
def test_the_scale_chooses_the_training_of_a_preset(name, scale):
    assert arguments.point(parsed("run", "--preset", name, "--scale", scale)) == preset(name).point_at_scale(scale)


@pytest.mark.parametrize("scale", ["class", "full"])
def test_the_scale_chooses_what_a_sweep_varies_and_how_long_it_may_take(scale):
    found = run.build_sweep(parsed("sweep", "--preset", "disc", "--scale", scale))
    assert found.axes == preset("disc").axes_at_scale(scale)
    limits = LIMITS[scale]
    assert (found.budget_s, found.point_budget_s) == (limits.sweep_budget_s, limits.point_budget_s)


def test_an_option_replaces_what_the_scale_sets():
    words = ("--preset", "signal", "--scale", "class", "--samples", "500", "--budget", "7", "--point-budget", "3")
    found = run.build_sweep(parsed("sweep", *words))
    assert (found.point.samples, found.budget_s, found.point_budget_s) == (500, 7.0, 3.0)


def test_without_a_preset_the_usual_limits_hold():
    found = run.build_sweep(parsed("sweep", *VALUES))
    assert (found.budget_s, found.point_budget_s) == (Sweep.budget_s, Sweep.point_budget_s)
    assert arguments.limits(parsed("run")) is None
    assert arguments.limits(parsed("run", "--preset", "disc")) == LIMITS["full"]
    assert Experiment.budget_s == 60.0


def test_a_scale_needs_the_preset_that_it_is_of(command, tmp_path):
    done = command("run", "--scale", "class", "--devices", "cpu", "--store", tmp_path)
    assert done.status == 2
    assert done.err.strip() == ("--scale must be given with --preset (got 'class').")
