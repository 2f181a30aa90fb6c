"""Event files: read back by TensorBoard's own reader, and what is said where it is missing."""

import dataclasses
import importlib.util
import math

import pytest

from core.answer import training_cost
from core.answer.export import run_files
from core.answer.export.run_files import trial_recording
from core.errors import StoreError
from tests import rows

installed = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="the optional package tensorboard is not installed"
)


def reader(folder):
    """What TensorBoard itself makes of a run's folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    return accumulator.Reload()


def scalars(found, tag):
    """(step, value) of a tag."""
    return [(event.step, event.value) for event in found.Scalars(tag)]


@installed
def test_loss_epochs_blocks_and_accuracies_are_read_back_as_they_were(tmp_path):
    trial = rows.trial()
    (file,) = run_files.write_event_files(tmp_path, [trial_recording(trial)])
    found = reader(file.parent)
    assert scalars(found, "loss/train") == [
        (step, pytest.approx(loss)) for step, loss in zip(trial.loss_step, trial.loss, strict=True)
    ]
    epochs = training_cost.epoch_times(trial)
    assert scalars(found, "epoch_s/each") == [(number, pytest.approx(s)) for number, s in enumerate(epochs, start=1)]
    assert [value for _, value in scalars(found, "step_s/block")] == pytest.approx(trial.step_s)
    assert scalars(found, "accuracy/test") == [(1_900, pytest.approx(255 / 270))]
    assert scalars(found, "accuracy/train") == [(1_900, pytest.approx(0.97))]
    assert scalars(found, "epoch_s/median")[0][1] == pytest.approx(19e-3, rel=0.05)


@installed
def test_the_settings_are_read_back_as_hyperparameters_and_as_text(tmp_path):
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    trial = rows.trial(contender="cuda:0")
    (file,) = run_files.write_event_files(tmp_path, [trial_recording(trial)])
    found = reader(file.parent)
    content = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    settings = HParamsPluginData.FromString(content).session_start_info.hparams
    assert settings["hidden_size"].number_value == 128
    assert settings["contender"].string_value == "cuda:0"
    assert settings["shuffle"].bool_value is True
    (text,) = found.Tensors("settings/text_summary")
    assert b"| device name | NVIDIA Test GPU |" in text.tensor_proto.string_val[0]


@installed
def test_the_clock_of_a_recording_is_that_of_the_training(tmp_path):
    trial = rows.trial(jitter=0.0)
    (file,) = run_files.write_event_files(tmp_path, [trial_recording(trial)])
    first, *_, last = reader(file.parent).Scalars("loss/train")
    took = (trial.loss_step[-1] - trial.loss_step[0]) * 1e-3
    assert last.wall_time - first.wall_time == pytest.approx(took, rel=1e-3)


@installed
def test_every_contender_is_a_run_and_writing_again_replaces_it(tmp_path):
    trials = rows.run()
    first = run_files.write_event_files(tmp_path, map(trial_recording, trials))
    assert run_files.write_event_files(tmp_path, map(trial_recording, trials)) == first
    assert len({file.parent for file in first}) == 2
    assert sorted(file for file in tmp_path.rglob("*") if file.is_file()) == sorted(first)


@installed
def test_a_row_that_was_only_timed_or_did_not_fit_is_written_with_what_it_has(tmp_path):
    timed = rows.trial(outcome="timed", confusion=(), predictions=b"", train_accuracy=None, validation_accuracy=None)
    nothing = rows.trial(run_id="f" * 12, outcome="out_of_memory", pairs=0, loss=(), loss_step=(), confusion=())
    for trial, expected in ((timed, True), (nothing, False)):
        (file,) = run_files.write_event_files(tmp_path, [trial_recording(trial)])
        tags = set(reader(file.parent).Tags()["scalars"])
        assert ("loss/train" in tags) is expected
        assert "accuracy/test" not in tags


@installed
def test_a_loss_that_is_no_number_stays_one(tmp_path):
    trial = dataclasses.replace(rows.trial(), loss=(math.nan,) * 20)
    (file,) = run_files.write_event_files(tmp_path, [trial_recording(trial)])
    assert math.isnan(scalars(reader(file.parent), "loss/train")[0][1])


@installed
def test_names_cannot_leave_the_folder(tmp_path):
    hostile = dataclasses.replace(trial_recording(rows.trial()), name="../../etc/passwd", id="../x")
    (file,) = run_files.write_event_files(tmp_path / "runs", [hostile])
    assert file.resolve().is_relative_to(tmp_path / "runs")


def test_foreign_text_cannot_break_out_of_the_table():
    text = trial_recording(rows.trial(device_name="<script>|x\n| y")).text
    assert r"&#60;script&#62;\|x \| y" in text


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is not None, reason="tensorboard is installed here")
def test_here_where_the_package_is_missing_it_says_what_to_install(tmp_path):
    with pytest.raises(StoreError, match="pip install tensorboard"):
        run_files.write_event_files(tmp_path, [trial_recording(rows.trial())])


def test_a_missing_package_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StoreError, match="not installed: pip install tensorboard"):
        run_files.require_event_folder(tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_file_in_the_place_of_the_folder_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    (tmp_path / "runs").write_text("")
    with pytest.raises(StoreError, match="cannot hold event files"):
        run_files.require_event_folder(tmp_path / "runs")
