"""What is said and drawn of a crossover beside its place: bands, open ends, single readings, doubts."""

import math
from dataclasses import replace

import numpy as np
import pytest

from core.answer import curve_estimate
from core.answer.curve_estimate import CurvePosterior
from core.answer.judgement import Evidence
from tests.unit.answer.study.made_up import RISING, SIZES, answer, evidence, scaled


def test_the_band_is_as_far_above_the_curve_as_below_it_and_is_one_of_95_percent(monkeypatch):
    def flat(_, places):
        zeros = np.zeros(len(places))
        return CurvePosterior(mean=zeros + 0.3, sd=zeros + 0.1, above=np.linspace(0, 1, len(places)))

    monkeypatch.setattr(curve_estimate.SpeedupCurve, "evaluate", flat)
    band = answer(evidence(RISING)).band
    for column, height in ((band.speedup, 0.3), (band.low, 0.3 - 0.196), (band.high, 0.3 + 0.196)):
        assert column == pytest.approx([math.exp(height)] * len(band.sizes))


def test_the_band_reaches_from_the_smallest_size_to_the_largest_and_holds_what_was_measured():
    found = answer(evidence(RISING))
    assert (found.band.sizes[0], found.band.sizes[-1]) == (pytest.approx(SIZES[0]), pytest.approx(SIZES[-1]))
    for size in found.sizes:
        at = min(range(len(found.band.sizes)), key=lambda place: abs(math.log(found.band.sizes[place] / size.size)))
        assert found.band.low[at] < found.band.speedup[at] < found.band.high[at]
        assert found.band.speedup[at] == pytest.approx(size.speedup, rel=0.1)


def test_sizes_below_one_are_sizes():
    assert len(answer([Evidence(size=0.5, baseline_s=(1.0,) * 3, challenger_s=(2.0,) * 3)]).sizes) == 1


def test_a_difference_that_is_too_small_to_matter_is_named():
    found = answer(evidence([*RISING[:5], 1.05, *RISING[6:]], noise=0.001))
    assert found.sizes[5].reason == "the difference is within 10 %, too small to matter"


@pytest.mark.parametrize(("speedup", "favoured"), [(2.0, "cuda:0"), (0.5, "cpu")])
def test_single_readings_that_agree_name_whom_they_favour(speedup, favoured):
    found = answer(evidence([speedup] * 3, pairs=1))
    assert found.reason.endswith(f"the readings favour {favoured} everywhere")


def test_a_single_reading_that_is_alike_on_both_devices_counts_for_the_baseline():
    assert "between 16 and 32" in answer(evidence([0.5, 1.0, 2.0], pairs=1, noise=0.0)).reason


# What is said where not all is decided

OPEN_BELOW = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 18.0, 25.0, 40.0)


def test_sizes_that_one_device_wins_for_certain_are_named_where_an_end_is_open():
    found = answer(evidence(OPEN_BELOW, noise=0.03))
    (clear,) = found.clear
    assert (found.outcome, clear.challenger_faster) == ("undecided", True)
    assert (clear.begin, clear.end) == (16.0, 4096.0)
    assert (clear.least, clear.most) == (found.sizes[1].speedup, found.sizes[-1].speedup)
    assert found.sentence.startswith("cuda:0 is faster than cpu from a hidden size of 16 on (1.")
    assert "at 8 either may be faster" in found.sentence


def test_an_end_that_the_baseline_wins_is_named_up_to_its_last_size():
    found = answer(evidence([0.3, 0.3, 0.4, 0.5, 0.7, 0.8, 0.85, 0.98, 1.02, 1.0], noise=0.03))
    assert not found.clear[0].challenger_faster
    assert found.sentence.startswith("cpu is faster than cuda:0 up to a hidden size of 512 (")


def test_one_device_always_wins_only_if_both_ends_are_decided():
    speedups = [1.6] * 9 + [1.01]
    found = answer(evidence(speedups, noise=0.05))
    assert found.outcome == "undecided"
    assert found.clear[0].end == 2048.0


def test_a_size_that_one_visit_may_explain_is_named_and_decides_nothing():
    dip = [*RISING[:5], 0.8, *RISING[6:]]
    once, in_turns = answer(evidence(dip, visits=1)), answer(evidence(dip))
    assert in_turns.outcome == "several"
    assert "thresholds of threads" in in_turns.reason
    assert (once.outcome, once.crossings) == ("undecided", ())
    assert once.contradicting == (128.0, 256.0)
    assert "128 and 256 contradict their neighbours by more" in once.reason
    assert "usual cause" not in once.sentence
    assert [clear.challenger_faster for clear in once.clear] == [False, True]


def test_one_visit_a_size_makes_the_interval_wider_than_turns():
    once, in_turns = answer(evidence(RISING, visits=1)), answer(evidence(RISING))
    assert once.high / once.low > in_turns.high / in_turns.low
    assert once.sizes[0].high / once.sizes[0].low > in_turns.sizes[0].high / in_turns.sizes[0].low


def test_a_size_that_is_noisier_than_the_others_is_told_with_a_wider_interval():
    loud = evidence(RISING, noise=0.2, pairs=9)
    mixed = [loud[at] if at == 6 else entry for at, entry in enumerate(evidence(RISING, pairs=9))]
    widths = [math.log(size.high / size.low) for size in answer(mixed).sizes]
    assert widths[6] > 2 * max(widths[:6])


@pytest.mark.parametrize("paired", [True, False])
def test_single_readings_have_an_interval_under_the_usual_noise_that_is_marked_as_assumed(paired):
    found = answer(evidence(RISING, pairs=1, paired=paired))
    (only,) = found.assumed.crossings
    assert (found.assumed.noise, found.assumed.outcome) == (0.05, "crossing")
    assert 32 < only.low < 64 < only.estimate < 128 < only.high < 256 or 64 <= only.low < only.high <= 128
    assert found.estimate is found.low is found.high is None
    assert found.sentence.startswith(
        "If readings scatter by about 5 %, cuda:0 becomes faster than cpu somewhere between a hidden size of"
    )
    assert "interval" not in found.sentence.partition("Not certain")[0]


@pytest.mark.parametrize(
    ("speedup", "winner"), [(3.0, "cuda:0 is faster than cpu"), (1 / 3, "cpu is faster than cuda:0")]
)
def test_single_readings_that_agree_say_who_wins_under_the_usual_noise(speedup, winner):
    assert f"5 %, {winner} at every size of the table" in answer(evidence([speedup] * 6, pairs=1)).sentence


def test_readings_of_several_sizes_know_their_noise_and_assume_none():
    assert answer(evidence(RISING)).assumed is None


@pytest.mark.parametrize(("factor", "words"), [(1000.0, "longer"), (1e-3, "shorter")])
def test_a_time_in_another_unit_is_noted(factor, words):
    said = answer(scaled(evidence(RISING), 5, factor), axis="size").cautions[0]
    assert said.startswith("The time of cuda:0 at 256 is ")
    assert f"{words} than its neighbours': was it given in another unit?" in said


def test_times_that_grow_by_far_from_size_to_size_are_not_noted():
    steep = [
        Evidence(size=size, baseline_s=(30.0**at,) * 3, challenger_s=(1.0, 1.1, 1.2))
        for at, size in enumerate((9, 20, 50))
    ]
    assert answer(steep).cautions == ()


def test_an_answer_from_powers_of_two_says_so_where_sizes_fill_tiles():
    assert "Only powers of two were measured" in answer(evidence(RISING)).sentence
    assert answer(evidence(RISING), axis="depth").cautions == ()
    beside = [replace(entry, size=entry.size + 1) for entry in evidence(RISING)]
    assert answer(beside).cautions == ()
