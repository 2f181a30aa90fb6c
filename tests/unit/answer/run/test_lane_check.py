"""A lane is compared with the default loop, and a verdict says where it computed something else."""

import math

import pytest

from core.answer import speedup, training_cost
from core.answer.verdict import verdict_sentence
from tests.rows import run

PLAIN_LOSSES = (2.3, 2.2, 2.1)


def lane_run(contender: str, losses: tuple[float, ...], **changes: object):
    rows = run({"cpu@1": 1e-3, contender: 5e-4})
    return rows[0], _replaced(rows[1], lane_loss=losses, reference_loss=PLAIN_LOSSES, **changes)


def _replaced(row, **changes):
    import dataclasses

    return dataclasses.replace(row, **changes)


def test_a_plain_row_was_held_against_nothing():
    (row, _) = run({"cpu@1": 1e-3, "cpu@2": 5e-4})
    assert speedup.check_lane(row) is None


def test_rounding_is_within_tolerance_and_said_in_parts():
    _, row = lane_run("cpu@1+compiled", (2.3, 2.2 * (1 + 1e-6), 2.1), execution="compiled")
    found = speedup.check_lane(row)
    assert (found.within, found.broken, found.steps) == (True, False, 3)
    assert found.difference == pytest.approx(1e-6)
    assert found.sentence == (
        "Training on 1 CPU thread (compiled) computes the same as the default loop: the first 3 "
        "losses differ by 1 part in 1,000,000 at most."
    )


def test_rounding_that_plain_steps_carry_on_as_far_is_no_broken_promise():
    losses, nudged = (2.3, 2.2, 2.1 * 1.0005), (2.3, 2.2, 2.1 * 1.0002)
    _, row = lane_run("cpu@1+compiled", losses, execution="compiled", nudged_loss=nudged)
    found = speedup.check_lane(row)
    assert (found.within, found.broken) == (True, False)
    assert found.sentence.endswith(
        "differ by 1 part in 2,000 at most; default loops that start with different rounding differ as much."
    )
    early = _replaced(row, lane_loss=(2.3, 2.2 * 1.0005, 2.1))
    assert speedup.check_lane(early).broken  # before plain steps went apart
    assert speedup.check_lane(_replaced(row, nudged_loss=(2.3, 2.2, 2.1))).broken


def test_a_lane_that_breaks_its_promise_is_mentioned_by_the_verdict():
    base, row = lane_run("cpu@1+compiled", (2.3, 2.2, 2.15), execution="compiled")
    assert speedup.check_lane(row).broken
    verdict = verdict_sentence(speedup.speedup(base, row))
    assert "does not compute the same as the default loop: the first 3 losses differ by up to 2 %" in verdict
    assert verdict.startswith("1 CPU thread (compiled) is ")


def test_other_mathematics_is_called_so_and_is_no_broken_promise():
    base, row = lane_run("cpu@1+bf16", (2.3, 2.21, 2.1), precision="bf16")
    assert not speedup.check_lane(row).broken
    assert "Training on 1 CPU thread (bf16) uses lower precision" in verdict_sentence(speedup.speedup(base, row))


def test_a_lane_in_agreement_needs_no_word_in_the_verdict():
    base, row = lane_run("cpu@1+compiled", PLAIN_LOSSES, execution="compiled")
    assert speedup.speedup(base, row).caution == ""


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_only_one_of_both_lost_is_no_rounding(bad):
    _, row = lane_run("cpu@1+compiled", (2.3, bad, 2.1), execution="compiled")
    assert speedup.check_lane(row).difference == math.inf
    assert speedup.check_lane(row).broken


def test_losses_that_both_became_nan_agree():
    _, row = lane_run("cpu@1+compiled", (2.3, math.nan), execution="compiled")
    found = speedup.check_lane(_replaced(row, reference_loss=(2.3, math.nan)))
    assert (found.difference, found.within) == (0.0, True)


def test_a_lane_of_a_later_version_has_no_title_and_no_agreement():
    _, row = lane_run("cpu@1+compiled", PLAIN_LOSSES, execution="quantum")
    assert speedup.check_lane(row) is None
    assert speedup.contender_label(row) == "1 CPU thread, compiled (Test CPU)"


def test_compiling_belongs_to_start_up_and_delays_the_break_even():
    base, row = lane_run("cpu@1+compiled", PLAIN_LOSSES, execution="compiled", startup_compile_s=30.0)
    assert training_cost.startup_s(row) == pytest.approx(training_cost.startup_s(base) + 30.0)
    assert training_cost.find_break_even(base, row).epochs == pytest.approx(30.0 / (19 * 5e-4), rel=0.1)
