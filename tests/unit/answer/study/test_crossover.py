"""The crossover on synthetic curves with known crossings."""

import math
import random

import pytest

from core.answer import wording
from core.answer.judgement import Evidence
from core.errors import InvalidValue, NotComparable
from tests.unit.answer.study.made_up import RISING, answer, evidence

THREE = (0.4, 0.5, 0.7, 1.4, 0.7, 1.5, 2.0, 3.0, 4.0, 5.0)


def test_one_change_of_sides_is_a_crossing_with_an_interval_around_it():
    found = answer(evidence(RISING))
    assert found.outcome == "crossing"
    assert 64 < found.low < found.estimate < found.high < 128
    assert found.crossings[0].challenger_above
    assert [size.verdict for size in found.sizes] == ["cpu_faster"] * 4 + ["gpu_faster"] * 6


def test_the_sentence_carries_the_numbers_of_the_answer():
    found = answer(evidence(RISING), basis="cold_start")
    first, low, high = math.ceil(found.estimate), math.floor(found.low), math.ceil(found.high)
    assert f"from a hidden size of about {first} on (95 % interval {low} to {high})" in found.sentence
    for number in found.tie:
        assert f"{number:.3g}" in found.sentence
    assert "hidden size" in found.sentence
    assert "start-up" in found.sentence


def test_a_challenger_that_wins_below_only_is_a_crossing_from_which_the_baseline_wins():
    found = answer(evidence([1 / speedup for speedup in RISING]))
    assert found.outcome == "crossing"
    assert not found.crossings[0].challenger_above
    assert found.sentence.startswith("cpu is faster than cuda:0 from")


@pytest.mark.parametrize(("speedup", "outcome"), [(1.6, "gpu_always"), (1 / 1.6, "cpu_always")])
def test_no_change_of_sides_is_somebody_always(speedup, outcome):
    found = answer(evidence([speedup] * 10))
    assert found.outcome == outcome
    assert found.estimate is found.low is found.high is None
    assert found.crossings == ()


def test_three_changes_beyond_the_noise_are_several_and_have_no_single_number():
    found = answer(evidence(THREE))
    assert found.outcome == "several"
    assert [crossing.challenger_above for crossing in found.crossings] == [True, False, True]
    assert found.estimate is None
    first, second, last = (
        " and ".join(wording.interval_ends(found.axis, one.low, one.high)) for one in found.crossings
    )
    assert f"3 times, by more than the noise, between {first}, between {second} and between {last} (" in found.sentence


def test_two_changes_beyond_the_noise_are_several_too():
    found = answer(evidence([0.3, 0.3, 0.4, 2.5, 3.0, 3.0, 2.5, 0.4, 0.3, 0.3]))
    assert found.outcome == "several"
    assert [each.challenger_above for each in found.crossings] == [True, False]


def test_a_dip_inside_the_noise_is_forgiven():
    dip = [*RISING[:5], 1.02, *RISING[6:]]
    found = answer(evidence(dip, noise=0.1))
    assert found.sizes[5].low < 1
    assert found.outcome == "crossing"


def test_a_dip_that_the_noise_explains_as_well_as_not_leaves_open_what_lies_beside_it():
    dip = [*RISING[:5], 0.9, *RISING[6:]]
    found = answer(evidence(dip, noise=0.1, seed=1))
    assert found.sizes[5].low < 1 < found.sizes[5].high
    assert found.outcome == "undecided"
    assert [(clear.begin, clear.end) for clear in found.clear] == [(8.0, 64.0), (512.0, 4096.0)]
    assert "256" in found.reason


def test_a_dip_beyond_the_noise_is_not_forgiven():
    dip = [*RISING[:5], 0.6, *RISING[6:]]
    assert answer(evidence(dip)).outcome == "several"


def test_equal_devices_are_undecided_and_the_noise_is_named():
    found = answer(evidence([1.0] * 10, noise=0.05))
    assert found.outcome == "undecided"
    assert "noise" in found.reason
    assert found.noise == pytest.approx(0.05 * math.sqrt(2), rel=0.5)


def test_an_end_that_is_too_close_leaves_open_whether_a_crossover_lies_there():
    found = answer(evidence([0.3, 0.3, 0.4, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0], noise=0.03))
    assert found.outcome == "undecided"


def test_single_readings_tell_no_noise_and_get_no_interval():
    found = answer(evidence(RISING, pairs=1))
    assert found.outcome == "undecided"
    assert "64 and 128" in found.reason
    assert all(size.low is None and size.verdict == "missing" for size in found.sizes)
    assert [size.speedup > 1 for size in found.sizes] == [False] * 4 + [True] * 6


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_sizes_are_not_measurable(count):
    found = answer(evidence(RISING[:count]))
    assert found.outcome == "not_measurable"
    assert "two are needed" in found.reason


def test_sizes_with_an_obstacle_are_listed_and_do_not_count():
    found = answer([*evidence(RISING[:-1]), Evidence(size=4096.0, obstacle="it did not fit")])
    assert found.outcome == "crossing"
    last = found.sizes[-1]
    assert (last.size, last.reason, last.speedup) == (4096.0, "it did not fit", None)
    assert (last.verdict, last.readings) == ("missing", 0)
    assert " Not compared: a hidden size of 4,096 (it did not fit). " in found.sentence


def test_a_device_is_not_called_faster_at_every_measured_size_if_one_was_not_compared():
    found = answer([*evidence(RISING[:3]), Evidence(size=4096.0, obstacle="it did not fit")])
    assert found.outcome == "cpu_always"
    assert "at every size compared from" in found.sentence
    assert "measured from" not in found.sentence


def test_different_reasons_of_sizes_that_were_not_compared_stand_in_the_table():
    obstacles = [Evidence(size=4096.0, obstacle="it did not fit"), Evidence(size=8192.0, obstacle="it was stopped")]
    found = answer([*evidence(RISING[:-1]), *obstacles])
    assert " Not compared: a hidden size of 4,096 and 8,192; the table says why. " in found.sentence


def test_a_difference_within_a_tenth_is_too_close_even_if_it_is_certain():
    found = answer(evidence([*RISING[:5], 1.05, *RISING[6:]], noise=0.001))
    close = found.sizes[5]
    assert close.verdict == "too_close"
    assert close.low > 1


def test_readings_that_were_not_paired_are_compared_by_their_medians():
    found = answer(evidence(RISING, paired=False))
    assert found.outcome == "crossing"
    assert 64 < found.estimate < 128


def test_a_slow_stretch_that_meets_both_devices_cancels_in_pairs_only():
    draw = random.Random(1)
    drift = [math.exp(draw.gauss(0, 0.5)) for _ in range(5)]
    paired = [
        Evidence(
            size=of.size,
            baseline_s=tuple(s * d for s, d in zip(of.baseline_s, drift, strict=True)),
            challenger_s=tuple(s * d for s, d in zip(of.challenger_s, drift, strict=True)),
            visits=of.visits,
        )
        for of in evidence(RISING)
    ]
    undisturbed, disturbed = answer(evidence(RISING)), answer(paired)
    assert disturbed.estimate == pytest.approx(undisturbed.estimate)
    assert disturbed.noise == pytest.approx(undisturbed.noise)


def test_more_readings_narrow_the_interval():
    few, many = (answer(evidence(RISING, noise=0.05, pairs=pairs)) for pairs in (3, 30))
    assert many.high / many.low < few.high / few.low


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (Evidence(size=-8.0, baseline_s=(1.0,), challenger_s=(1.0,)), "^size must be "),
        (Evidence(size=0.0, baseline_s=(1.0,), challenger_s=(1.0,)), "^size must be "),
        (Evidence(size=math.nan, baseline_s=(1.0,), challenger_s=(1.0,)), "^size must be "),
        (Evidence(size=9.0, baseline_s=(0.0,), challenger_s=(1.0,)), "seconds"),
        (Evidence(size=9.0, baseline_s=(math.inf,), challenger_s=(1.0,)), "seconds"),
        (Evidence(size=9.0, baseline_s=(1.0, 1.0), challenger_s=(1.0,)), "readings must be .*pairs"),
        (Evidence(size=9.0, baseline_s=(1.0,)), "readings must be .*both devices"),
        (Evidence(size=8.0, baseline_s=(1.0,), challenger_s=(1.0,)), "once"),
    ],
)
def test_impossible_evidence_is_refused(bad, words):
    with pytest.raises(InvalidValue, match=words):
        answer([*evidence(RISING), bad])


def test_paired_and_unpaired_readings_are_not_mixed():
    other = Evidence(size=9.0, baseline_s=(1.0,), challenger_s=(1.0,), paired=False)
    with pytest.raises(NotComparable, match="unpaired"):
        answer([*evidence(RISING), other])
