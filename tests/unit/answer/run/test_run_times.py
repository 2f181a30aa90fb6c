"""Times of whole epochs and of the start-up, and from where on faster steps pay it back."""

import dataclasses
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.answer import speedup, training_cost
from core.answer.run import RunRow
from core.results.schema import Trial
from tests.rows import trial
from tests.unit.answer.run.timed import timed


def positioned(**changes) -> Trial:
    """Two epochs of 10 steps and a third begun: 1 first step, 2 of warm-up, lead-in 2, two blocks of 8."""
    values = {
        "steps_per_epoch": 10,
        "epochs": 3,
        "steps": 23,
        "lead_in_steps": 2,
        "block_steps": (8, 8),
        "block_first_step": (5, 15),
        "block_pair": (0, 1),
        "block_begin_ns": (0, 100 * 10**9),
        "block_end_ns": (8 * 10**9, 124 * 10**9),
    }
    return trial(**{**values, **changes})


def test_epoch_times_are_put_together_from_blocks_lead_ins_and_the_median():
    # Steps 0-2 cost the median of 1 s and 3 s, steps 3-12 are of the first block, 13-22 of the second.
    assert training_cost.epoch_times(positioned()) == pytest.approx((3 * 2.0 + 7 * 1.0, 3 * 1.0 + 7 * 3.0))


def test_the_epoch_of_a_row_is_the_median_of_all_also_of_two():
    assert RunRow(positioned()).median_epoch_s == pytest.approx(18.5)
    assert RunRow(positioned(steps_per_epoch=24)).median_epoch_s is None


def test_epochs_that_were_not_asked_for_or_not_finished_have_no_time():
    assert len(training_cost.epoch_times(positioned(epochs=1))) == 1
    assert len(training_cost.epoch_times(positioned(epochs=50))) == 2
    assert training_cost.epoch_times(positioned(steps_per_epoch=24)) == ()


def test_steps_between_blocks_that_were_no_lead_in_cost_the_median():
    moved = positioned(block_first_step=(5, 18), epochs=2)
    assert training_cost.training_seconds(moved, [13, 16]) == pytest.approx((16.0, 16.0 + 3 * 2.0))


def test_seconds_go_on_at_the_median_after_the_last_block():
    assert training_cost.training_seconds(positioned(), [0, 23, 25]) == pytest.approx((0.0, 46.0, 50.0))


def test_without_blocks_or_their_places_there_are_no_seconds_and_no_epochs():
    empty = trial(pairs=0, block_first_step=())
    assert training_cost.training_seconds(empty, [1, 2]) == ()
    assert training_cost.epoch_times(empty) == ()


@given(steps=st.lists(st.integers(0, 40), min_size=2).map(sorted))
def test_seconds_never_run_backwards_and_add_up_over_epochs(steps):
    seconds = training_cost.training_seconds(positioned(), steps)
    assert list(seconds) == sorted(seconds)
    assert sum(training_cost.epoch_times(positioned())) == pytest.approx(
        training_cost.training_seconds(positioned(), [20])[0]
    )


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1.03, "took 3 % longer than its steps"), (0.9, "took 10 % less than"), (1.001, "took as long as its steps")],
)
def test_the_epoch_check_says_how_far_a_whole_epoch_is_from_its_steps(factor, words):
    row = timed([1e-3] * 6, steps_per_epoch=20, epoch_check_s=20e-3 * factor)
    assert words in training_cost.epoch_check_sentence(row)


def test_the_epoch_check_says_when_there_is_none():
    assert "No epoch was timed as a whole" in training_cost.epoch_check_sentence(trial(epoch_check_s=None))
    assert "No epoch was timed as a whole" in training_cost.epoch_check_sentence(timed([]))


def test_start_up_is_the_sum_of_its_parts_and_unknown_if_one_is():
    row = trial(startup_device_s=1.0, startup_build_s=0.5, startup_transfer_s=0.25, startup_first_step_s=0.125)
    assert training_cost.startup_s(row) == 1.875
    assert training_cost.startup_s(dataclasses.replace(row, startup_transfer_s=None)) == 1.625
    assert training_cost.startup_s(dataclasses.replace(row, startup_first_step_s=None)) is None


def starting(times: tuple[float, float], start_s: tuple[float, float], **changes) -> list[Trial]:
    """Two rows with these seconds a step and seconds of start-up; 10 steps an epoch."""
    shared = {"startup_build_s": 0.0, "startup_transfer_s": None, "startup_first_step_s": 0.0, "steps_per_epoch": 10}
    return [
        timed([time] * 8, contender, startup_device_s=start, **shared, **changes)
        for time, start, contender in zip(times, start_s, ("cpu", "cuda:0"), strict=True)
    ]


def test_a_longer_start_up_is_paid_back_by_faster_steps():
    found = training_cost.find_break_even(*starting((1.0, 0.5), (2.0, 27.0)))
    assert found.epochs == pytest.approx(25 / 5, rel=1e-6)
    assert "after 5.0 epochs" in found.sentence
    assert "back its longer start-up (27.0 s against 2.00 s) after" in found.sentence
    assert "this training has" not in found.sentence


def test_a_break_even_beyond_the_training_says_so():
    assert (
        "this training has only 3 epochs"
        in training_cost.find_break_even(*starting((1.0, 0.5), (2.0, 27.0), epochs=3)).sentence
    )


def test_a_break_even_within_the_first_epoch_says_so():
    assert "after less than one epoch" in training_cost.find_break_even(*starting((1.0, 0.5), (2.0, 3.0))).sentence


def test_faster_steps_and_no_longer_start_up_pay_off_at_once():
    found = training_cost.find_break_even(*starting((1.0, 0.5), (2.0, 2.0)))
    assert found.epochs == 0
    assert "pays off at once" in found.sentence


def test_slower_steps_and_a_longer_start_up_never_pay_off():
    found = training_cost.find_break_even(*starting((0.5, 1.0), (2.0, 3.0)))
    assert found.epochs is None
    assert "never pays off" in found.sentence


def test_slower_steps_and_a_shorter_start_up_are_ahead_for_a_while():
    found = training_cost.find_break_even(*starting((0.5, 1.0), (12.0, 2.0)))
    assert found.epochs is None
    assert "it is ahead for 2.0 epochs and never again" in found.sentence


def test_the_break_even_is_not_known_without_start_up_pairs_or_a_direction():
    cpu, gpu = starting((1.0, 0.5), (2.0, 3.0))
    assert (
        "start-up was not measured"
        in training_cost.find_break_even(dataclasses.replace(cpu, startup_build_s=None), gpu).sentence
    )
    few = training_cost.find_break_even(timed([1.0] * 3), timed([0.5] * 3, "cuda:0"))
    assert (few.epochs, few.sentence) == (
        None,
        "The break-even is unknown, because the faster device is unknown.",
    )
    mixed = timed([1.3, 0.9, 1.3, 1.3, 0.9, 1.3])
    undecided = training_cost.find_break_even(mixed, timed([1.0] * 6, "cuda:0"))
    assert (undecided.epochs, undecided.sentence) == (None, few.sentence)


def test_the_median_of_the_pairs_is_the_estimate():
    draw = random.Random(7)
    base, other = ([draw.uniform(1e-3, 1.2e-3) for _ in range(15)] for _ in range(2))
    expected = statistics.median(b / o for b, o in zip(base, other, strict=True))
    assert speedup.speedup(timed(base), timed(other, "cuda:0")).value == pytest.approx(expected, rel=1e-6)
