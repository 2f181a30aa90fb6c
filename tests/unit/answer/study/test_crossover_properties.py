"""What must not change the answer, and what always agrees within it."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.answer.judgement import Crossover, Evidence
from tests.unit.answer.study.made_up import answer, evidence

# What must not change the answer

CURVES = st.lists(st.floats(-1.5, 1.5), min_size=2, max_size=10).map(lambda logs: [math.exp(log) for log in logs])
CASES = st.tuples(CURVES, st.sampled_from([0.005, 0.05]), st.integers(1, 6), st.integers(0, 999), st.booleans())


def built(case):
    speedups, noise, pairs, seed, paired = case
    return evidence(speedups, noise=noise, pairs=pairs, seed=seed, paired=paired)


def same(one: Crossover, other: Crossover):
    assert other.outcome == one.outcome
    assert [of.verdict for of in other.sizes] == [of.verdict for of in one.sizes]
    for a, b in zip(one.crossings, other.crossings, strict=True):
        assert (b.low, b.estimate, b.high) == pytest.approx((a.low, a.estimate, a.high), rel=1e-6)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(case=CASES, factor=st.sampled_from([1e-6, 0.37, 1e4]))
def test_scaling_both_devices_changes_nothing_but_the_times(case, factor):
    found = built(case)
    scaled = [
        Evidence(
            size=of.size,
            baseline_s=tuple(s * factor for s in of.baseline_s),
            challenger_s=tuple(s * factor for s in of.challenger_s),
            paired=of.paired,
            visits=of.visits,
        )
        for of in found
    ]
    one, other = answer(found), answer(scaled)
    same(one, other)
    assert [of.baseline_s for of in other.sizes] == pytest.approx([of.baseline_s * factor for of in one.sizes])


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(case=CASES)
@example(case=([1.0, math.exp(-1), math.e, 1.0], 0.05, 4, 0, False))  # by drawn curves it is a close call
def test_swapping_the_devices_swaps_the_verdicts(case):
    found = built(case)
    swapped = [replace(of, baseline_s=of.challenger_s, challenger_s=of.baseline_s) for of in found]
    one, other = answer(found), answer(swapped)
    turned = {"gpu_faster": "cpu_faster", "cpu_faster": "gpu_faster"}
    assert [of.verdict for of in other.sizes] == [turned.get(of.verdict, of.verdict) for of in one.sizes]
    always = {"gpu_always": "cpu_always", "cpu_always": "gpu_always"}
    assert other.outcome == always.get(one.outcome, one.outcome)
    for a, b in zip(one.crossings, other.crossings, strict=True):
        assert b.challenger_above is not a.challenger_above
        assert (b.low, b.estimate, b.high) == pytest.approx((a.low, a.estimate, a.high), rel=1e-6)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(case=CASES, seed=st.integers(0, 999))
def test_shuffling_sizes_and_pairs_changes_nothing(case, seed):
    found, draw = built(case), random.Random(seed)
    shuffled = []
    for of in found:
        order = draw.sample(range(len(of.baseline_s)), len(of.baseline_s))
        shuffled.append(
            Evidence(
                size=of.size,
                baseline_s=tuple(of.baseline_s[at] for at in order),
                challenger_s=tuple(of.challenger_s[at] for at in order),
                paired=of.paired,
                visits=of.visits,
            )
        )
    draw.shuffle(shuffled)
    one, other = answer(found), answer(shuffled)
    same(one, other)
    assert other.sentence == one.sentence


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(case=CASES)
def test_the_outcome_and_its_numbers_agree(case):
    found = answer(built(case))
    assert (found.estimate is not None) == (found.outcome == "crossing")
    assert (len(found.crossings) > 1) == (found.outcome == "several")
    for crossing in found.crossings:
        assert found.sizes[0].size <= crossing.low <= crossing.estimate <= crossing.high <= found.sizes[-1].size
    assert found.sentence.endswith(".")
