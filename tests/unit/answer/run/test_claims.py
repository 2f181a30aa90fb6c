"""A verdict in two lines: a claim that says no more than the interval, and the small print below it."""

import dataclasses

import pytest

from core.answer.run import speedup
from tests.rows import run


def found(seconds, **options):
    return speedup.speedup(*run(seconds, **options))


@pytest.mark.parametrize(
    ("seconds", "claim"),
    [
        ({"cpu@1": 2e-3, "cpu@2": 1e-3}, "2 CPU threads train 2.00× as fast as 1"),
        ({"cpu@2": 1e-3, "cpu@1": 2e-3}, "2 CPU threads train 2.00× as fast as 1"),
        ({"cpu@4": 3e-3, "cpu@1": 1e-3}, "1 CPU thread trains 3.00× as fast as 4"),
        ({"cpu": 1e-3, "cuda:0": 2.5e-4}, "The GPU trains 4.00× as fast as the CPU"),
        ({"cpu@2": 1e-3, "cuda:0": 4e-3}, "2 CPU threads train 4.00× as fast as the GPU"),
        ({"cpu@1": 1e-3, "cpu@1+compiled": 5e-4}, "1 CPU thread (compiled) trains 2.00× as fast as 1 CPU thread"),
    ],
)
def test_the_claim_names_the_faster_one_first(seconds, claim):
    assert found(seconds, jitter=0).words.claim == claim


def test_what_is_too_close_is_claimed_by_nobody():
    close = found({"cpu@1": 1e-3, "cpu@2": 1e-3})
    assert close.words.claim == "Too close to call: 2 CPU threads against 1"
    said = close.words.basis
    assert close.reason in said[:1].lower() + said[1:]
    assert "95 % interval" in said


def test_without_a_verdict_there_is_no_figure():
    missing = found({"cpu": 1e-3, "cuda:0": 1e-3}, pairs=2)
    assert missing.words.claim == "No verdict on the GPU against the CPU"
    assert "×" not in missing.words.claim + missing.words.basis
    assert "2 pairs of blocks" in missing.words.basis


def test_the_small_print_has_interval_devices_and_what_speaks_against_it():
    verdict = found({"cpu@2": 1e-3, "cpu@1": 2e-3}, jitter=0)
    said = verdict.words.basis
    assert said.startswith("95 % interval 2.00× to 2.00× from 20 pairs of blocks, start-up not counted.")
    assert verdict.challenger_name in said
    assert verdict.baseline_name in said
    marked = dataclasses.replace(verdict, busy="It was busy.", caution="It was bf16.")
    assert marked.words.basis == f"{said} It was busy. It was bf16."
