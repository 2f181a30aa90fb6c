"""The definition of a crossover, its outcomes, and what must not change it."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.answer.study import curve
from core.answer.study.crossover import locate
from core.answer.study.curve import Posterior
from core.answer.study.result import Crossover, Evidence
from core.errors import InvalidValue, NotComparable

SIZES = tuple(2.0**power for power in range(3, 13))


def evidence(speedups, *, noise=0.01, pairs=5, seed=0, paired=True, visits=None):
    """Pairs at `SIZES`, measured in turns, whose true speedups are given; None leaves a size out."""
    draw = random.Random(seed)
    found = []
    for size, speedup in zip(SIZES, speedups, strict=False):
        if speedup is not None:
            base = [1e-3 * math.exp(draw.gauss(0, noise)) for _ in range(pairs)]
            other = [1e-3 / speedup * math.exp(draw.gauss(0, noise)) for _ in range(pairs)]
            times = {"baseline_s": tuple(base), "challenger_s": tuple(other)}
            found.append(Evidence(size=size, **times, paired=paired, visits=visits or pairs))
    return found


def answer(found, **changes):
    return locate(found, **{"axis": "hidden_size", "baseline": "cpu", "challenger": "cuda:0", **changes})


RISING = (0.3, 0.4, 0.55, 0.75, 1.3, 2.0, 3.0, 5.0, 8.0, 12.0)
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


def test_a_dip_inside_the_noise_is_forgiven():
    dip = [*RISING[:5], 0.98, *RISING[6:]]
    found = answer(evidence(dip, noise=0.1))
    assert found.outcome == "crossing"


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
    assert (found.sizes[-1].size, found.sizes[-1].reason, found.sizes[-1].speedup) == (4096.0, "it did not fit", None)


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
        (Evidence(size=-8.0, baseline_s=(1.0,), challenger_s=(1.0,)), "size"),
        (Evidence(size=math.nan, baseline_s=(1.0,), challenger_s=(1.0,)), "size"),
        (Evidence(size=9.0, baseline_s=(0.0,), challenger_s=(1.0,)), "seconds"),
        (Evidence(size=9.0, baseline_s=(math.inf,), challenger_s=(1.0,)), "seconds"),
        (Evidence(size=9.0, baseline_s=(1.0, 1.0), challenger_s=(1.0,)), "readings .*pairs"),
        (Evidence(size=9.0, baseline_s=(1.0,)), "readings .*both devices"),
        (Evidence(size=8.0, baseline_s=(1.0,), challenger_s=(1.0,)), "once"),
    ],
)
def test_impossible_evidence_is_refused(bad, words):
    with pytest.raises(InvalidValue, match=words):
        answer([*evidence(RISING), bad])


def test_paired_and_unpaired_readings_are_not_mixed():
    other = Evidence(size=9.0, baseline_s=(1.0,), challenger_s=(1.0,), paired=False)
    with pytest.raises(NotComparable, match="pairs"):
        answer([*evidence(RISING), other])


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


# What is drawn between the sizes


def test_the_band_is_as_far_above_the_curve_as_below_it_and_is_one_of_95_percent(monkeypatch):
    def flat(_, places):
        zeros = np.zeros(len(places))
        return Posterior(mean=zeros + 0.3, sd=zeros + 0.1, above=np.linspace(0, 1, len(places)))

    monkeypatch.setattr(curve.Curve, "at", flat)
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
    assert found.sizes[5].reason == "the difference is within 10 %"


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
    assert "128, 256 and their neighbours contradict each other" in once.reason
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
        "If readings scatter by about 5 %, cuda:0 is faster than cpu from a hidden size of"
    )
    assert "interval" not in found.sentence.partition("Not certain")[0]


@pytest.mark.parametrize(
    ("speedup", "winner"), [(3.0, "cuda:0 is faster than cpu"), (1 / 3, "cpu is faster than cuda:0")]
)
def test_single_readings_that_agree_say_who_wins_under_the_usual_noise(speedup, winner):
    assert f"5 %, {winner} at every size of the table" in answer(evidence([speedup] * 6, pairs=1)).sentence


def test_readings_of_several_sizes_know_their_noise_and_assume_none():
    assert answer(evidence(RISING)).assumed is None


# What speaks against an answer


def scaled(found, at, factor):
    off = replace(found[at], challenger_s=tuple(factor * s for s in found[at].challenger_s))
    return [off if place == at else entry for place, entry in enumerate(found)]


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
