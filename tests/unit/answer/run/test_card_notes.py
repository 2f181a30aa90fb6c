"""What is said of a card that was shared or slowed while it was measured."""

from dataclasses import replace

import pytest

from core.answer import interference
from core.answer.speedup import speedup
from core.answer.verdict import verdict_sentence
from tests.rows import trial

CARD = trial(contender="cuda:0", pairs=20)


def test_of_a_card_that_had_itself_to_itself_nothing_is_said():
    quiet = replace(
        CARD, block_other_processes=(0,) * 20, block_throttle=(0x1, 0x2) * 10, block_throttled_s=(0.0,) * 20
    )
    assert interference.gpu_notes(CARD, quiet, trial()) == ""


@pytest.mark.parametrize(("most", "who"), [(1, "another process"), (3, "up to 3 other processes")])
def test_a_shared_card_is_said_to_be(most, who):
    row = replace(CARD, block_other_processes=(most, *(1,) * 11, *(0,) * 8))
    assert interference.gpu_notes(row) == (
        f"The GPU was shared with {who} in 12 of 20 blocks, so its times may be longer than they would be alone."
    )


@pytest.mark.parametrize(
    ("bits", "reason"),
    [
        (0x04, "its power limit"),
        (0x20, "its heat"),
        (0x40, "its heat"),
        (0x08, "a lack of power or another limit of its hardware"),
        (0x80, "a lack of power or another limit of its hardware"),
    ],
)
def test_a_slowed_card_is_said_to_be_with_what_slowed_it(bits, reason):
    row = replace(CARD, block_throttle=(bits | 0x1,) * 5 + (0,) * 15, block_throttled_s=(0.1,) * 20)
    assert interference.gpu_notes(row) == f"The clock of the GPU was lowered by {reason} after 5 of 20 blocks."


def test_a_clock_that_was_lowered_within_blocks_alone_is_told_by_its_counter():
    row = replace(CARD, block_throttle=(0,) * 20, block_throttled_s=(0.01,) * 20)
    assert interference.gpu_notes(row) == "The clock of the GPU was lowered for 200 ms while it was measured."


@pytest.mark.parametrize(("errors", "words"), [(0, ""), (1, "1 memory error that"), (2, "2 memory errors that")])
def test_memory_errors_are_told(errors, words):
    said = interference.gpu_notes(replace(CARD, device_ecc_errors=errors))
    assert words in said
    assert bool(said) == bool(errors)


def test_the_verdict_says_so():
    shared = replace(CARD, block_other_processes=(1,) * 20)
    baseline = trial(contender="cpu", pairs=20)
    assert "The GPU was shared with another process in 20 of 20 blocks" in verdict_sentence(speedup(baseline, shared))
    assert "shared" not in verdict_sentence(speedup(baseline, CARD))
