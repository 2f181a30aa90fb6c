"""One contender on a clock that passes a known time with each step: what is trained when, and what is kept of it."""

from dataclasses import replace

import pytest
import torch

from core.errors import OutOfMemory
from core.measure import contender, networks
from core.measure.afterwards import extras
from core.measure.contender import MeasuredContender
from core.measure.data import batches, datasets
from core.measure.device import devices
from core.measure.preparing import fresh, threads
from core.measure.training import Training, classify
from core.question.experiment import Contender, Point
from core.results import allowed

CPU = torch.device("cpu")
POINT = Point(samples=300, hidden_size=8, depth=1, batch_size=20, epochs=100)
"""15 steps an epoch."""

DOUBLING = [1, 2, 4, 8, 16, 32, 64, 128]
"""Steps of the first warm-up blocks, which take a quarter of a second at a millisecond a step."""


@pytest.fixture(scope="module")
def data():
    return datasets.load("digits", samples=POINT.samples, seed=0)


def started(data, name="cpu@1", **fields):
    measured = MeasuredContender(Contender.parse(name), Point(**{**vars(POINT), **fields}), data)
    measured.start()
    return measured


def warm(data, name="cpu@1", *, allowance_s=60.0, **fields):
    measured = started(data, name, **fields)
    assert len(list(measured.warm_up(allowance_s))) == len(measured.raw.warmup_steps)
    return measured


def plain(data, steps, **fields):
    """What anyone gets who trains so many steps."""
    point = Point(**{**vars(POINT), **fields})
    feed = batches.feed(point, data, data.train, CPU)
    training = Training(networks.build(point.network, point.seed), feed, learning_rate=point.learning_rate)
    training.advance(steps)
    return training


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
    assert measured.raw.warmup_steps == [1, 2, 4, 8, 5, 5]
    assert measured.raw.lead_in_steps == 2


def test_a_training_that_is_too_slow_for_its_allowance_counts_as_warm(data, machine):
    machine.seconds = lambda steps: steps * 0.5
    assert warm(data, allowance_s=1.5).raw.warmup_steps == [1, 2]
    assert warm(data, allowance_s=8.0).raw.warmup_steps == [1, 2, 4, 8, 5]


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
    real = batches.feed
    monkeypatch.setattr(batches, "feed", lambda *asked, **more: replace(real(*asked, **more), prefetched=4))
    assert warm(data).raw.lead_in_steps == 24


@pytest.fixture
def uncompiled(monkeypatch):
    """Compiled lanes without the time that compiling takes."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)


@pytest.mark.slow
def test_a_lane_of_several_steps_a_call_is_trained_in_whole_calls(data, machine, uncompiled):
    measured = warm(data, "cpu@1+compiled10")
    measured.block(0)
    assert measured.raw.warmup_steps == [10, 10, 10, 10, 20, 40, 70, 130, 120, 120]
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
    assert {len(values) for name, values in vars(raw).items() if name in allowed.OF_CARDS} == {2}
    assert all(raw.columns()[name] == () for name in allowed.OF_CARDS)
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
    monkeypatch.setattr(contender.host_memory, "use", lambda *, kept: asked.append(kept))
    monkeypatch.setattr(devices, "use_tf32", tf32.append)
    measured = warm(data)
    torch.set_num_threads(2)
    asked.clear()
    measured.block(0)
    assert torch.get_num_threads() == 1
    assert (asked, set(tf32)) == ([False], {False})
    started(data, "cpu@1+kept")
    assert set(asked[1:]) == {True}


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
    measured.take_apart(60.0)
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


# Afterwards


def test_as_many_epochs_are_timed_in_one_piece_as_make_a_block(data, machine):
    measured = warm(data)
    measured.close()
    machine.advanced.clear()
    measured.take_apart(60.0)
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
    measured.take_apart(budget_s)
    assert measured.raw.epoch_check_s == (pytest.approx(15.0) if timed else None)


def test_an_epoch_is_run_only_if_it_is_wanted(data, machine):
    measured = warm(data)
    measured.take_apart(60.0, whole_epoch=False)
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
    measured = warm(datasets.of(replace(POINT, dtype="float64")), dtype="float64")
    real = measured._fresh.in_float32
    measured._fresh.in_float32 = lambda lane: seen.append(real(lane)) or seen[0]
    measured.take_apart(60.0)
    assert {weight.dtype for weight in seen[0].weights()} == {torch.float32}
    assert {weight.dtype for weight in measured.training.weights()} == {torch.float64}
    assert measured.raw.turns_step_s == measured.raw.float32_step_s == pytest.approx((1e-3,) * 5)
    assert measured.training.read_losses() == []


@pytest.mark.parametrize(("budget_s", "turns"), [(60.0, 0), (100.0, 4)])
def test_turns_that_are_long_beside_the_budget_are_fewer_or_left_out(machine, budget_s, turns):
    machine.seconds = lambda steps: steps * 1.0
    measured = warm(datasets.of(replace(POINT, dtype="float64")), allowance_s=1.0, dtype="float64")
    measured.take_apart(budget_s)
    assert len(measured.raw.turns_step_s) == len(measured.raw.float32_step_s) == turns
    measured.take_apart(1e3, turns=False)
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
        ("cpu@1", "epoch_s", "epoch_check_s", "The time of a whole epoch is not known: out of memory."),
        ("cpu@1", "take_apart", "breakdown_forward_s", "Where a step's time goes is not known: out of memory."),
        ("cpu@1", "busy_step_s", "busy_step_s", "For how long the device is busy with a step is not known: out of"),
    ],
)
def test_what_does_not_fit_beside_the_blocks_is_left_out_and_the_blocks_stay(
    data, machine, monkeypatch, name, failing, lost, words
):
    monkeypatch.setattr(extras.phases, failing, no_memory)
    measured = warm(data, name)
    measured.block(0)
    measured.close()
    measured.take_apart(60.0)
    measured.examine()
    measured.end("completed")
    columns = measured.raw.columns()
    left = {"epoch_check_s", "breakdown_forward_s", "confusion"} - {lost}
    assert not columns[lost]
    assert all(columns[known] for known in left)
    assert (measured.outcome, len(measured.raw.block_steps)) == ("completed", 1)
    assert measured.message.startswith(words)


def test_what_was_learned_is_not_known_where_nothing_can_be_classified_for_want_of_memory(data, machine, monkeypatch):
    monkeypatch.setattr(extras, "examine", no_memory)
    measured = warm(data)
    measured.close()
    measured.examine()
    measured.end("budget_spent", "The budget ended.")
    assert measured.message == "The budget ended. What it learned is not known: out of memory."
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
    assert measured.message == "What it learned is not known: out of memory."


def test_a_lane_that_cannot_be_checked_keeps_neither_half_of_the_check(data, machine, monkeypatch):
    measured = warm(data, "cpu@1+micro5")
    monkeypatch.setattr(fresh, "Training", no_memory)
    measured.check_lane()
    measured.end("completed")
    assert (measured.raw.lane_loss, measured.raw.reference_loss) == ((), ())
    assert measured.message == "Whether its first steps learn what plain ones do is not known: out of memory."


def test_a_lane_that_fails_beside_the_blocks_says_so_and_a_plain_training_that_fails_is_raised(
    data, machine, monkeypatch
):
    monkeypatch.setattr(extras.phases, "busy_step_s", lambda *_, **__: 1 / 0)
    measured = warm(data, "cpu@1+micro5")
    measured.take_apart(60.0)
    measured.end("timed")
    assert measured.message == (
        "For how long the device is busy with a step is not known: cpu@1+micro5 failed: ZeroDivisionError: "
        "division by zero."
    )
    with pytest.raises(ZeroDivisionError):
        warm(data).take_apart(60.0)


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


# Threads


@pytest.fixture
def three_cores(monkeypatch):
    monkeypatch.setattr(threads.environment, "usable_cores", lambda *_: 3)
    monkeypatch.setattr(threads.environment, "physical_cores", lambda *_: 3)


def by_threads(**seconds):
    """Seconds of so many steps, as each thread count takes them: `by_threads(one=2e-3, …)`."""
    names = ("one", "two", "three")
    return lambda steps: steps * seconds[names[torch.get_num_threads() - 1]]


def test_thread_counts_take_turns_and_the_fastest_is_kept(data, machine, three_cores):
    measured = started(data, "cpu")
    before = measured.training.weights()
    machine.advanced.clear()
    turns, pace = [], by_threads(one=1.2e-3, two=1e-3, three=3e-3)
    machine.seconds = lambda steps: turns.append(torch.get_num_threads()) or pace(steps)
    assert len(list(measured.try_threads())) == 5
    assert turns == [1, 1, 1, 2, 2, 3, 3, 1, 1, 2, 2]
    assert machine.advanced == [1, 2, 25, 1, 25, 1, 30, 1, 10, 1, 25]
    raw = measured.raw
    assert (raw.threads, raw.threads_tried) == (2, [1, 2, 3])
    assert raw.threads_tried_step_s == pytest.approx([1.2e-3, 1e-3, 3e-3])
    assert raw.startup_compile_s == 0.0
    assert measured.steps == 1
    machine.seconds = lambda _: 0.0
    for a, b in zip(measured.training.weights(), before, strict=True):
        assert torch.equal(a, b)
    measured.training.advance(9)
    assert measured.training.read_losses() == plain(data, 10).read_losses()[1:]


def test_long_steps_need_none_before_them_when_threads_are_tried(data, machine, three_cores):
    measured = started(data, "cpu")
    machine.advanced.clear()
    machine.seconds = by_threads(one=3.0, two=1.0, three=1.4)
    list(measured.try_threads())
    assert machine.advanced == [1, 1, 1, 1, 1, 1]
    assert measured.raw.threads == 2


@pytest.mark.slow
def test_a_lane_is_compiled_for_the_two_counts_that_train_plain_steps_fastest(
    data, machine, uncompiled, monkeypatch, three_cores
):
    measured = MeasuredContender(Contender.parse("cpu+compiled"), POINT, data)
    spent = {1: 11.0, 2: 22.0, 3: 33.0}
    monkeypatch.setattr(Training, "prepare", lambda *_, **__: spent[torch.get_num_threads()])
    machine.seconds = by_threads(one=5e-3, two=2e-3, three=1e-3)
    assert list(measured.shortlist_threads())
    measured.start()
    assert (measured.raw.startup_compile_s, measured.steps) == (33.0, 1)
    machine.seconds = by_threads(one=1e-4, two=1e-3, three=2e-3)
    list(measured.try_threads())
    assert (measured.raw.threads, measured.raw.threads_tried) == (2, [2, 3])
    assert measured.raw.startup_compile_s == 22.0
    assert measured.compiling_s == 55.0


@pytest.mark.slow
def test_on_an_accelerator_a_lane_is_compiled_once(data, machine, uncompiled, monkeypatch, three_cores, card):
    measured = MeasuredContender(Contender.parse("cuda:0+compiled"), POINT, data)
    prepared = []
    monkeypatch.setattr(Training, "prepare", lambda *_, **__: prepared.append(torch.get_num_threads()) or 7.0)
    machine.seconds = by_threads(one=3e-3, two=1e-3, three=2e-3)
    list(measured.shortlist_threads())
    measured.start()
    list(measured.try_threads())
    assert prepared == [2]
    assert (measured.raw.threads, measured.raw.threads_tried, measured.raw.startup_compile_s) == (2, [], 7.0)


# Leading in


@pytest.fixture
def card(monkeypatch):
    """A device that is called cuda:0 and is the CPU."""
    info = replace(devices.find("cpu"), device="cuda:0", kind="cuda")
    monkeypatch.setattr(devices, "find", lambda name: info)
    monkeypatch.setattr(devices, "open_device", lambda name: devices.Device(CPU))


def lead_ins(measured, clock, *idle_s):
    """Steps before each of some blocks, before each of which the device idles for so long."""
    steps = []
    for pair, seconds in enumerate(idle_s):
        clock.pass_s(seconds)
        done = measured.steps
        measured.block(pair)
        steps.append(measured.raw.block_first_step[-1] - done)
    return steps


def test_an_accelerator_that_idled_for_long_is_led_in_for_longer(data, machine, card):
    measured = warm(data, "cuda:0@1", epochs=1000)
    assert lead_ins(measured, machine.clock, 0.1, 2.0, 60.0, 0.1) == [20, 200, 500, 20]
    assert measured.raw.lead_in_steps == 20


def test_an_accelerator_that_others_used_meanwhile_did_not_idle(data, machine, card):
    measured, other = warm(data, "cuda:0@1", epochs=1000), warm(data, "cuda:0@1", epochs=1000)
    machine.clock.pass_s(60.0)
    other.block(0)
    assert lead_ins(measured, machine.clock, 0.1) == [20]


def test_what_is_resident_on_a_device_is_there_once_while_somebody_trains_on_it(data, machine):
    one, other = started(data), started(data)
    assert one._fresh.resident is other._fresh.resident is not None


def test_a_cpu_is_led_in_for_the_same_time_whatever_came_between(data, machine):
    assert lead_ins(warm(data), machine.clock, 0.1, 2.0, 60.0) == [20, 20, 20]
