"""One contender once its blocks are over: whole epochs, checks of lanes, and what fails then."""

from dataclasses import replace

import pytest
import torch

from core.measure import breakdown, datasets, devices, preflight
from core.measure.contender import MeasuredContender
from core.measure.training import Training
from core.question.experiment import Contender
from tests.unit.measure.started import POINT, plain, started, warm


def test_as_many_epochs_are_timed_in_one_piece_as_make_a_block(data, machine):
    measured = warm(data)
    measured.close()
    machine.advanced.clear()
    measured.profile(60.0)
    assert machine.advanced[:2] == [20, 7 * 15]
    assert measured.raw.epoch_check_s == pytest.approx(0.015)
    lengths = {
        len(getattr(measured.raw, f"breakdown_{part}_s")) for part in ("loader", "transfer", "forward", "backward")
    }
    assert lengths == {50}
    assert measured.raw.busy_step_s == ()
    assert measured.training.read_losses() == []


@pytest.mark.parametrize(("budget_s", "timed"), [(60.0, False), (149.0, False), (151.0, True)])
def test_an_epoch_that_is_long_beside_the_budget_is_not_run_again(data, machine, budget_s, timed):
    machine.seconds = lambda steps: steps * 1.0
    measured = warm(data, allowance_s=1.0)
    measured.profile(budget_s)
    assert measured.raw.epoch_check_s == (pytest.approx(15.0) if timed else None)


def test_an_epoch_is_run_only_if_it_is_wanted(data, machine):
    measured = warm(data)
    measured.profile(60.0, whole_epoch=False)
    assert measured.raw.epoch_check_s is None
    assert measured.raw.breakdown_forward_s


@pytest.mark.parametrize(("epochs", "steps"), [(100, 20), (1, 15)])
def test_a_lane_is_held_against_plain_steps_from_the_first_one_on(data, machine, epochs, steps):
    measured = warm(data, "cpu@1+micro5", epochs=epochs)
    measured.check_lane()
    expected = plain(data, steps, epochs=epochs).read_losses()
    assert list(measured.raw.reference_loss) == expected
    assert list(measured.raw.lane_loss) == pytest.approx(expected, rel=1e-5)
    assert list(measured.raw.lane_loss) != expected  # in another order of summation
    assert list(measured.raw.nudged_loss) == pytest.approx(expected, rel=1e-5)
    assert list(measured.raw.nudged_loss) != expected  # from weights one rounding apart


def test_a_lane_of_other_mathematics_is_not_held_against_rounding(data, machine):
    measured = started(data, "cpu@1+bf16")
    measured.check_lane()
    assert len(measured.raw.reference_loss) == 20
    assert measured.raw.nudged_loss == ()


def test_a_step_in_float64_takes_turns_with_one_in_float32(machine):
    seen = []
    measured = warm(datasets.load_point_data(replace(POINT, dtype="float64")), dtype="float64")
    real = measured._fresh.build_float32_training
    measured._fresh.build_float32_training = lambda lane: seen.append(real(lane)) or seen[0]
    measured.profile(60.0)
    assert {weight.dtype for weight in seen[0].weights()} == {torch.float32}
    assert {weight.dtype for weight in measured.training.weights()} == {torch.float64}
    assert measured.raw.turns_step_s == measured.raw.float32_step_s == pytest.approx((1e-3,) * 5)
    assert measured.training.read_losses() == []


@pytest.mark.parametrize(("budget_s", "turns"), [(60.0, 0), (100.0, 4)])
def test_turns_that_are_long_beside_the_budget_are_fewer_or_left_out(machine, budget_s, turns):
    machine.seconds = lambda steps: steps * 1.0
    measured = warm(datasets.load_point_data(replace(POINT, dtype="float64")), allowance_s=1.0, dtype="float64")
    measured.profile(budget_s)
    assert len(measured.raw.turns_step_s) == len(measured.raw.float32_step_s) == turns
    measured.profile(1e3, turns=False)
    assert len(measured.raw.turns_step_s) == turns


def test_the_steps_of_whole_calls_beyond_those_that_are_checked_are_left_out(data, machine, uncompiled):
    measured = started(data, "cpu@1+compiled8")
    measured.check_lane()
    assert len(measured.raw.lane_loss) == len(measured.raw.reference_loss) == 20
    assert measured.training.steps == 24


# What fails beside the blocks


def no_memory(*_, **__):
    """An allocator that refuses, and whose error still holds what was allocated before."""
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


@pytest.mark.parametrize(
    ("name", "failing", "lost", "words"),
    [
        ("cpu@1", "epoch_s", "epoch_check_s", "The time of a whole epoch is unknown: out of memory."),
        ("cpu@1", "measure_breakdown", "breakdown_forward_s", "The step breakdown is unknown: out of memory."),
        ("cpu@1", "busy_step_s", "busy_step_s", "The busy time of the device in a step is unknown: out of"),
    ],
)
def test_what_does_not_fit_beside_the_blocks_is_left_out_and_the_blocks_stay(
    data, machine, monkeypatch, name, failing, lost, words
):
    monkeypatch.setattr(breakdown, failing, no_memory)
    measured = warm(data, name)
    measured.block(0)
    measured.close()
    measured.profile(60.0)
    measured.examine()
    measured.end("completed")
    columns = measured.raw.columns()
    left = {"epoch_check_s", "breakdown_forward_s", "confusion"} - {lost}
    assert not columns[lost]
    assert all(columns[known] for known in left)
    assert (measured.outcome, len(measured.raw.block_steps)) == ("completed", 1)
    assert measured.message.startswith(words)


def test_what_was_learned_is_not_known_where_nothing_can_be_classified_for_want_of_memory(data, machine, monkeypatch):
    monkeypatch.setattr(breakdown, "examine", no_memory)
    measured = warm(data)
    measured.close()
    measured.examine()
    measured.end("budget_spent", "The budget ended.")
    assert measured.message == "The budget ended. The classification report is unknown: out of memory."
    assert measured.raw.columns()["confusion"] == ()


def test_a_contender_without_memory_for_a_copy_of_its_weights_is_not_examined_with_later_ones(
    data, machine, monkeypatch
):
    measured = warm(data, epochs=34)
    monkeypatch.setattr(Training, "weights", no_memory)
    measured.block(0)
    assert measured.trained
    measured.close()
    measured.examine()
    measured.end("completed")
    assert measured.raw.confusion == ()
    assert measured.message == "The classification report is unknown: out of memory."


def test_a_lane_that_cannot_be_checked_keeps_neither_half_of_the_check(data, machine, monkeypatch):
    measured = warm(data, "cpu@1+micro5")
    monkeypatch.setattr(preflight, "Training", no_memory)
    measured.check_lane()
    measured.end("completed")
    assert (measured.raw.lane_loss, measured.raw.reference_loss) == ((), ())
    assert measured.message == "The comparison of its first steps with the default loop is unknown: out of memory."


def test_a_lane_that_fails_beside_the_blocks_says_so_and_a_plain_training_that_fails_is_raised(
    data, machine, monkeypatch
):
    monkeypatch.setattr(breakdown, "busy_step_s", lambda *_, **__: 1 / 0)
    measured = warm(data, "cpu@1+micro5")
    measured.profile(60.0)
    measured.end("timed")
    assert measured.message == (
        "The busy time of the device in a step is unknown: cpu@1+micro5 failed: ZeroDivisionError: division by zero."
    )
    with pytest.raises(ZeroDivisionError):
        warm(data).profile(60.0)


def test_a_message_is_never_longer_than_a_row_may_say(data, machine):
    measured = MeasuredContender(Contender.parse("cpu@1"), POINT, data)
    measured.end("interrupted", "ü" * 5_000)
    assert len(measured.message.encode()) == 2_000


def test_a_device_in_trouble_is_released_all_the_same(data, machine, monkeypatch):
    measured = started(data)
    measured._device = devices.Device(torch.device("cuda:0"))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: 1 / 0)
    measured.release()
    with pytest.raises(RuntimeError, match="not been started"):
        _ = measured.training
