"""One contender: its start, warming up, blocks and the end of its training."""

from dataclasses import replace

import pytest
import torch

from core.errors import OutOfMemory
from core.measure import contender, datasets, devices
from core.measure.contender import MeasuredContender
from core.measure.training import classify
from core.question.experiment import Contender, Point
from core.results import validation
from tests.unit.measure.started import CPU, POINT, plain, started, warm

DOUBLING = [1, 2, 4, 8, 16, 32, 64, 128]
"""Steps of the first warm-up blocks, which take a quarter of a second at a millisecond a step."""


def same_weights(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.weights(), other.weights(), strict=True))


# The start


def test_the_start_up_is_timed_part_by_part_and_ends_with_the_first_step(data, machine):
    measured = started(data)
    raw = measured.raw
    assert (raw.startup_transfer_s, raw.startup_build_s, raw.startup_compile_s) == (0.0, 0.0, 0.0)
    assert raw.startup_first_step_s == pytest.approx(1e-3)
    assert (measured.steps, measured.curve.steps, machine.advanced) == (1, 1, [1])
    assert started(data, data_path="per_batch").raw.startup_transfer_s is None


def test_nothing_is_known_before_the_start_and_after_the_release(data, machine):
    measured = MeasuredContender(Contender.parse("cpu@1"), POINT, data)
    assert (measured.steps, measured.trained, measured.raw.step_s) == (0, False, None)
    assert measured.progress().loss_seconds == ()
    with pytest.raises(RuntimeError, match="not been started"):
        _ = measured.training
    measured.start()
    measured.release()
    with pytest.raises(RuntimeError, match="not been started"):
        _ = measured.training


@pytest.mark.parametrize("data_path", ["resident", "per_batch"])
def test_a_training_that_needs_just_what_is_free_is_not_refused_and_one_byte_less_refuses_it(
    data, monkeypatch, data_path
):
    point = Point(**{**vars(POINT), "data_path": data_path})
    measured = MeasuredContender(Contender.parse("cpu@1"), point, data)
    resident = data.train.samples.numel() * 4 if data_path == "resident" else 0
    needed = point.network.memory_bytes(point.batch_size) + resident
    monkeypatch.setattr(devices.Device, "free_bytes", lambda _: needed)
    measured.require_memory()
    monkeypatch.setattr(devices.Device, "free_bytes", lambda _: needed - 1)
    with pytest.raises(OutOfMemory, match=r"The training needs about .* of cpu are free"):
        measured.require_memory()


# Warming up


def test_it_warms_up_for_so_long_and_then_throws_two_blocks_away(data, machine):
    measured = warm(data)
    assert measured.raw.warmup_steps == [*DOUBLING, 111, 111]
    assert measured.raw.warmup_s == pytest.approx([steps * 1e-3 for steps in measured.raw.warmup_steps])
    assert measured.raw.lead_in_steps == 20
    assert measured.steps == measured.curve.steps == 1 + sum(measured.raw.warmup_steps)


def test_it_warms_up_for_so_many_steps_where_they_are_slow(data, machine):
    machine.seconds = lambda steps: steps * 0.05
    measured = warm(data)
    assert measured.raw.warmup_steps == [1, 2, 4, 3, 5, 5]
    assert measured.raw.lead_in_steps == 2


def test_it_does_not_double_what_it_trains_where_less_makes_it_warm(data, machine):
    machine.seconds = lambda steps: steps * 6e-3
    assert warm(data).raw.warmup_steps == [1, 2, 4, 8, 16, 12, 19, 19]


def test_a_training_that_is_too_slow_for_its_allowance_counts_as_warm(data, machine):
    machine.seconds = lambda steps: steps * 0.5
    assert warm(data, allowance_s=1.5).raw.warmup_steps == [1, 2]
    assert warm(data, allowance_s=7.0).raw.warmup_steps == [1, 2, 4, 3, 5]


def test_blocks_that_turn_out_too_short_are_made_longer(data, machine):
    machine.seconds = lambda steps: steps * (1e-3 if len(machine.advanced) <= 1 + len(DOUBLING) else 5e-4)
    measured = warm(data)
    assert measured.raw.warmup_steps == [*DOUBLING, 111, 221, 221]
    assert measured.raw.lead_in_steps == 40


def test_blocks_that_stay_too_short_are_made_longer_five_times_at_most(data, machine):
    machine.seconds = lambda steps: steps * 1e-3 if len(machine.advanced) <= 1 + len(DOUBLING) else 0.09
    assert warm(data).raw.warmup_steps == [*DOUBLING, 111, 136, 167, 205, 251, 307, 307]


def test_a_block_that_is_just_long_enough_is_kept_and_one_that_is_too_short_begins_the_count_anew(data, machine):
    later = iter([0.1, 0.09, 0.1, 0.1])
    machine.seconds = lambda steps: steps * 1e-3 if len(machine.advanced) <= 1 + len(DOUBLING) else next(later)
    assert warm(data).raw.warmup_steps == [*DOUBLING, 111, 111, 136, 136]


def test_batches_that_a_loader_may_have_ready_are_trained_before_a_block(data, machine, monkeypatch):
    real = datasets.make_feed
    monkeypatch.setattr(datasets, "make_feed", lambda *asked, **more: replace(real(*asked, **more), prefetched=4))
    assert warm(data).raw.lead_in_steps == 24


@pytest.mark.slow
def test_a_lane_of_several_steps_a_call_is_trained_in_whole_calls(data, machine, uncompiled):
    measured = warm(data, "cpu@1+compiled10")
    measured.block(0)
    assert measured.raw.warmup_steps == [10, 10, 10, 10, 20, 40, 70, 90, 120, 120]
    assert measured.raw.lead_in_steps == 20
    assert (measured.raw.block_steps, measured.raw.block_first_step) == (
        [120],
        [10 + sum(measured.raw.warmup_steps) + 20],
    )
    assert measured.compiling_s == measured.raw.startup_compile_s > 0


# Blocks


def test_a_block_is_timed_without_its_lead_in(data, machine):
    measured = warm(data)
    before = measured.steps
    for pair in (0, 3):
        measured.block(pair)
    raw = measured.raw
    assert (raw.block_pair, raw.block_steps) == ([0, 3], [111, 111])
    assert raw.block_first_step == [before + 20, before + 131 + 20]
    seconds = [(end - begin) / 1e9 for begin, end in zip(raw.block_begin_ns, raw.block_end_ns, strict=True)]
    assert seconds == pytest.approx([0.111, 0.111])
    assert raw.block_begin_ns[1] - raw.block_end_ns[0] == 20_000_000
    assert {len(raw.block_load), len(raw.block_steal), len(raw.block_switches)} == {2}
    assert {values for name, values in raw.columns().items() if name in validation.OF_CARDS} == {()}  # of a CPU
    assert all(raw.columns()[name] == () for name in validation.OF_CARDS)
    assert measured.steps == measured.curve.steps == before + 262


def test_a_step_takes_what_the_middle_block_took_and_before_the_first_the_last_warm_up_block(data, machine):
    measured = warm(data)
    assert measured.raw.step_s == pytest.approx(1e-3)
    for pace in (2e-3, 3e-3, 7e-3):
        machine.seconds = lambda steps, pace=pace: steps * pace
        measured.block(0)
    assert measured.raw.step_s == pytest.approx(3e-3)
    progress = measured.progress()
    assert (progress.contender, progress.threads, progress.total_steps) == ("cpu@1", 1, 1_500)
    assert progress.steps == measured.steps < 1_500
    assert progress.loss_seconds == pytest.approx([step * 3e-3 for step in progress.loss_steps])
    assert len(progress.losses) == len(progress.loss_steps) > 10


def test_each_block_runs_with_the_settings_of_its_contender(data, machine, monkeypatch):
    asked, tf32 = [], []
    monkeypatch.setattr(contender.devices, "set_memory_retention", lambda *, keep: asked.append(keep))
    monkeypatch.setattr(devices, "use_tf32", tf32.append)
    measured = warm(data)
    torch.set_num_threads(2)
    asked.clear()
    measured.block(0)
    assert torch.get_num_threads() == 1
    assert (asked, set(tf32)) == ([False], {False})
    started(data, "cpu@1+kept")
    assert set(asked[1:]) == {True}


@pytest.mark.parametrize(("words", "timed"), [("cpu@1", False), ("cpu@1+benchmark", True)])
def test_cudnn_times_its_algorithms_for_the_contender_that_asks_for_it_alone(data, machine, monkeypatch, words, timed):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", not timed)
    started(data, words)
    assert torch.backends.cudnn.benchmark is timed


# The end of the training


def test_the_weights_at_the_end_of_the_last_epoch_are_those_examined_however_long_timing_goes_on(data, machine):
    measured = warm(data, epochs=34)  # 510 steps: the last epoch ends within the first block
    assert not measured.trained
    measured.block(0)
    measured.block(1)
    assert 510 in [sum(machine.advanced[: place + 1]) for place in range(len(machine.advanced))]
    assert measured.raw.block_first_step[0] == 510 + 20
    assert (measured.trained, measured.steps) == (True, 510 + 262)
    assert measured.progress().steps == 510
    measured.close()
    measured.examine()
    assert same_weights(measured.training, plain(data, 510))


def test_an_epoch_that_ends_exactly_with_a_block_is_timed_to_its_end(data, machine):
    measured = warm(data, batch_size=100, epochs=203)  # 609 steps: 478 to be warm, 20 to lead in, a block of 111
    measured.block(0)
    assert machine.advanced[-2:] == [20, 111]
    assert (measured.raw.block_first_step, measured.steps, measured.trained) == ([498], 609, True)
    measured.block(1)
    measured.close()
    measured.examine()
    assert same_weights(measured.training, plain(data, 609, batch_size=100))


def test_a_last_step_that_is_left_alone_is_trained_before_the_block(data, machine):
    measured = warm(data, batch_size=300, epochs=479)  # of which 478 make it warm
    measured.block(0)
    assert machine.advanced[-3:] == [1, 20, 111]
    measured.close()
    measured.examine()
    assert same_weights(measured.training, plain(data, 479, batch_size=300))


def test_a_training_that_is_cut_short_is_examined_as_it_is(data, machine):
    measured = warm(data)
    measured.block(0)
    steps = measured.steps
    measured.close()
    measured.profile(60.0)
    assert measured.training.steps > measured.steps == steps
    measured.examine()
    reference = plain(data, steps)
    assert same_weights(measured.training, reference)
    predicted, labels = classify(reference.network, data.test, CPU), data.test.labels
    raw = measured.raw
    assert raw.predictions == tuple(predicted.tolist())
    classes = POINT.network.classes
    assert raw.confusion == tuple(
        int(((labels == true) & (predicted == said)).sum()) for true in range(classes) for said in range(classes)
    )
    for split, share in ((data.train, raw.train_accuracy), (data.validation, raw.validation_accuracy)):
        right = classify(reference.network, split, CPU) == split.labels
        assert share == pytest.approx(float(right.double().mean()))
    assert raw.columns()["predictions"] == bytes(predicted.tolist())


def test_who_wants_times_alone_keeps_no_copy_of_the_weights(data, machine):
    measured = warm(data)
    measured.close(examined=False)
    at_the_end = measured.training.weights()
    measured.training.advance(3)
    measured.examine()
    assert not all(torch.equal(a, b) for a, b in zip(measured.training.weights(), at_the_end, strict=True))
