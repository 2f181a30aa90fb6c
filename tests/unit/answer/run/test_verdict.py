"""A verdict in words: a headline that says no more than the interval, and below it what it rests on."""

import dataclasses
import math

import pytest

from core.answer import speedup, verdict
from tests.rows import run


def found(seconds, **options):
    return speedup.speedup(*run(seconds, **options))


@pytest.mark.parametrize(
    ("seconds", "claim"),
    [
        ({"cpu@1": 2e-3, "cpu@2": 1e-3}, "2 CPU threads are 2.00× faster than 1"),
        ({"cpu@2": 1e-3, "cpu@1": 2e-3}, "2 CPU threads are 2.00× faster than 1"),
        ({"cpu@4": 3e-3, "cpu@1": 1e-3}, "1 CPU thread is 3.00× faster than 4"),
        ({"cpu": 1e-3, "cuda:0": 2.5e-4}, "The GPU is 4.00× faster than the CPU"),
        ({"cpu@2": 1e-3, "cuda:0": 4e-3}, "2 CPU threads are 4.00× faster than the GPU"),
        ({"cpu@1": 1e-3, "cpu@1+compiled": 5e-4}, "1 CPU thread (compiled) is 2.00× faster than 1 CPU thread"),
    ],
)
def test_the_claim_names_the_faster_one_first(seconds, claim):
    said = found(seconds, jitter=0)
    assert said.claim == claim
    assert said.winner in seconds


def test_devices_that_differ_by_less_than_ten_percent_for_certain_are_equally_fast():
    close = found({"cpu@1": 1e-3, "cpu@2": 1e-3}, jitter=0)
    assert close.claim == "2 CPU threads and 1 are equally fast, to within 10 %"
    assert close.winner == ""
    assert close.basis.startswith("Median 1.00× (95 % interval ")


def test_an_inconclusive_verdict_says_why_with_its_figures_then_what_to_do_then_the_median():
    wide = dataclasses.replace(
        found({"cpu@1": 1e-3, "cpu@2": 1e-3}), value=1.1, low=0.777, high=1.11, reason="either could be faster", pairs=8
    )
    wide = dataclasses.replace(wide, advice=speedup.CLOSE_ADVICE)
    assert wide.claim == "Inconclusive: either could be faster (0.78 to 1.11)"
    assert wide.basis.startswith(
        "Measure more pairs, or a size at which they differ more. Median 1.10× (95 % interval 0.78 to 1.11), 8 pairs "
        "of blocks, start-up not counted."
    )


def test_without_a_verdict_there_is_no_figure():
    missing = found({"cpu": 1e-3, "cuda:0": 1e-3}, pairs=2)
    assert missing.claim == "Inconclusive: 2 pairs of blocks were measured and 6 are needed"
    assert "×" not in missing.sentence
    assert missing.basis.startswith("Train more epochs. ")


def test_the_basis_has_interval_devices_and_what_speaks_against_it():
    told = found({"cpu@2": 1e-3, "cpu@1": 2e-3}, jitter=0)
    assert told.basis.startswith("95 % interval 2.00 to 2.00, 20 pairs of blocks, start-up not counted.")
    assert told.challenger_name in told.basis
    assert told.baseline_name in told.basis
    marked = dataclasses.replace(told, busy="It was busy.", caution="It was bf16.")
    assert marked.basis == f"{told.basis} It was busy. It was bf16."


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.56, "With other programs using about half of the processors, 1 CPU thread was 1.79× as fast as 2 (95 % "),
        (1.8, "With other programs using about half of the processors, 2 CPU threads were 1.80× as fast as 1 (95 % "),
    ],
)
def test_a_conditional_verdict_says_the_load_first_and_that_a_quiet_machine_may_differ(value, said):
    code = "gpu_faster" if value > 1 else "cpu_faster"
    held = dataclasses.replace(
        found({"cpu@1": 1e-3, "cpu@2": 1e-3 / value}, jitter=0),
        verdict=code,
        condition="with other programs using about half of the processors",
    )
    assert held.is_conditional
    assert held.claim.startswith(said)
    assert held.basis.startswith(verdict.QUIET_NOTE)


def test_one_rule_says_when_nobody_wins():
    tie = math.log(1.1)
    assert verdict.closeness_reason(0.5, 0.3, 0.7) == verdict.closeness_reason(-0.5, -0.7, -0.3) == ""
    assert verdict.closeness_reason(0.5, 0.0, 0.7) == "either could be faster"
    assert verdict.closeness_reason(-0.5, -1.0, 0.0) == "either could be faster"
    assert verdict.closeness_reason(tie, tie / 2, 1.0) == "the difference is within 10 %, too small to matter"
    assert verdict.closeness_reason(-tie, -1.0, -tie / 2) == "the difference is within 10 %, too small to matter"
    assert verdict.closeness_reason(tie * 1.01, 0.01, 0.2) == ""
