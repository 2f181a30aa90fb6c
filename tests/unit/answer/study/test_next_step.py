"""Which size a search takes next, one decision at a time, from readings of which it is known what they decide."""

import math
from dataclasses import replace

import pytest

from core.answer import search
from core.answer.crossover import locate_crossover
from core.answer.judgement import Evidence
from core.answer.search import NARROW_RATIO, next_step
from core.question.sweep import Axis

LATTICE = Axis.from_range("hidden_size", 8, 4096, adaptive=True).values
"""Nine doublings, so that a stride is one."""


def ending(step, *, near):
    """Whether a step is a size within a third of a doubling of another one."""
    return step.size is not None and abs(math.log2(step.size / near)) < 1 / 3


def told(speedups, *, noise=0.02):
    """Evidence whose readings are as far above the true speedup as below it, so that it is known what is decided."""
    spread = [math.exp(noise * offset) for offset in (-1, 0, 1)]
    return [
        Evidence(
            size=size, baseline_s=tuple(1e-3 * each for each in spread), challenger_s=(1e-3 / speedup,) * 3, visits=3
        )
        for size, speedup in speedups.items()
    ]


def answer(known):
    return locate_crossover(known, axis="hidden_size", baseline="cpu", challenger="cuda:0")


@pytest.mark.parametrize("inside", [0, 1, 2, 3])
def test_the_middle_the_low_and_the_high_end_of_a_wide_interval_take_turns(inside):
    """By how many sizes lie within the interval, so that a search that was cut off goes on in the same way."""
    known = told({8: 0.2, 64: 0.5, 512: 2.0, 4096: 5.0} | dict.fromkeys((150, 181, 215)[:inside], 1.0), noise=0.05)
    only = answer(known).crossings[0]
    assert only.high / only.low > NARROW_RATIO
    assert sum(only.low <= entry.size <= only.high for entry in known) == inside
    wanted = (only.estimate, only.low, only.high)[inside % 3]
    free = [size for size in LATTICE if size not in {entry.size for entry in known}]
    step = next_step(LATTICE, known)
    assert step.reason == "inside the interval"
    assert step.size == min(free, key=lambda size: (abs(math.log2(size / wanted)), size))


def test_where_no_size_is_left_beside_one_end_of_a_wide_interval_the_search_goes_on_within_it():
    known = told(
        {41: 0.5, 59: 0.97, 91: 0.97, 181: 0.82, 235: 1.1, 256: 1.1, 279: 1.45, 724: 1.7, 4096: 2.0}, noise=0.1
    )
    only = answer(known).crossings[0]
    assert only.high / only.low > NARROW_RATIO
    step = next_step(LATTICE, known)
    assert step.reason == "inside the interval"
    assert only.low < step.size < only.high


def test_where_neighbours_contradict_a_decided_size_a_wide_interval_is_narrowed_beyond_it():
    below = {8: 0.3, 22: 0.6, 34: 0.72, 53: 0.95, 83: 1.0}
    astray = {166: 0.81, 181: 0.98, 197: 1.14, 215: 1.31}
    known = told(below | astray | {235: 1.47, 256: 1.44, 331: 1.68, 512: 1.72, 609: 1.8, 861: 2.16}, noise=0.08)
    only = answer(known).crossings[0]
    assert only.low < 83 < 166 < only.high
    step = next_step(LATTICE, known)
    assert step.reason == "inside the interval"
    assert 83 < step.size < 166  # and not only between 166, which is decided, and the first that the other device wins


def test_a_second_crossing_is_looked_for_where_the_curve_leaves_room_for_it():
    crossed = {8: 0.35, 16: 0.4, 34: 0.55, 64: 0.8, 83: 0.93, 99: 1.1, 128: 1.3}
    clear = told(crossed | {235: 1.7, 512: 2.0, 4096: 4.0})
    assert next_step(LATTICE, clear) == search.SearchStep(size=None, reason="the interval is narrow")
    close = told(crossed | {235: 1.06, 512: 1.4, 4096: 2.0})
    step = next_step(LATTICE, close)
    assert step.reason == "a look where a second crossing could hide"
    assert 235 < step.size < 512


def test_a_second_crossing_is_not_looked_for_where_the_first_one_is(monkeypatch):
    """The curve is close to 1 there, so that either device may win."""
    known = told({8: 0.35, 16: 0.4, 34: 0.55, 64: 0.8, 83: 0.93, 99: 1.1, 235: 1.7, 512: 2.0, 4096: 4.0})
    only, asked = answer(known).crossings[0], []

    class Asked(search.SpeedupCurve):
        def evaluate(self, places):
            asked.extend(places)
            return super().evaluate(places)

    monkeypatch.setattr(search, "SpeedupCurve", Asked)
    assert next_step(LATTICE, known).reason == "the interval is narrow"
    low, high = math.log2(only.low) - search.ASIDE_STRIDES, math.log2(only.high) + search.ASIDE_STRIDES
    assert asked
    assert not [place for place in asked if low <= place <= high]


def test_what_did_not_fit_between_sizes_that_did_is_not_the_end_of_the_range():
    known = [*told({16: 0.5, 64: 0.5}), Evidence(size=32.0, obstacle="it was stopped")]
    assert next_step([16.0, 32.0, 64.0, 128.0], known).size == 128
    beyond = [*told({16: 0.5, 32: 0.5}), Evidence(size=64.0, obstacle="it did not fit")]
    assert next_step([16.0, 32.0, 64.0, 128.0], beyond).size is None


def test_neighbours_that_contradict_each_other_however_often_one_looks_end_the_search(monkeypatch):
    known = told({8: 0.3, 16: 0.4, 32: 0.5, 64: 1.0, 128: 2.0})
    torn = replace(search.decide_crossover(known, answer(known)), contradicting=(32.0,))
    monkeypatch.setattr(search, "decide_crossover", lambda *_: torn)
    monkeypatch.setattr(search, "ENOUGH_NEAR", 2)
    assert next_step(LATTICE, known).reason == "a second look at a size that contradicts its neighbours"
    monkeypatch.setattr(search, "ENOUGH_NEAR", 1)
    ended = search.SearchStep(size=None, reason="neighbouring sizes contradict each other")
    assert next_step(LATTICE, known) == ended


def test_a_size_on_the_other_side_is_looked_at_again_until_five_were_measured_near_it():
    crossed = {8: 0.2, 16: 0.3, 54: 0.5, 166: 0.6, 215: 0.7, 235: 0.8, 256: 0.97, 279: 1.05, 304: 1.3}
    beyond = {431: 1.6, 724: 2.0, 1448: 2.5, 4096: 4.0}
    astray = dict.fromkeys((99, 108, 117, 91), 1.03)
    for count in range(1, len(astray) + 1):
        step = next_step(LATTICE, told(crossed | beyond | dict(list(astray.items())[:count]), noise=0.04))
        assert step.reason == "a second look at a size that may be on the other side"
        assert ending(step, near=99)


@pytest.mark.parametrize(
    ("sizes", "alone"),
    [
        ({8: 0.5, 32: 0.5, 128: 2.0, 512: 2.0, 4096: 0.5}, 4096),
        ({8: 2.0, 32: 0.5, 128: 0.5, 512: 2.0, 4096: 2.0}, 8),
        ({8: 0.5, 32: 0.5, 128: 2.0, 512: 0.5, 4096: 0.5}, 128),
        ({8: 0.5, 32: 0.5, 128: 2.0, 512: 0.5, 1024: 2.0, 4096: 2.0}, 128),
    ],
)
def test_a_size_that_stands_alone_is_looked_at_again_the_first_and_the_last_as_well(sizes, alone):
    step = next_step(LATTICE, told(sizes))
    assert step.reason == "a second look at an isolated size"
    assert ending(step, near=alone)


def test_two_sizes_at_each_end_that_agree_do_not_stand_alone():
    step = next_step(LATTICE, told({8: 0.5, 20: 0.5, 64: 2.0, 150: 2.0, 1024: 0.5, 4096: 0.5}))
    assert step == search.SearchStep(size=None, reason="the faster device changes more than once")


def test_beside_an_undecided_size_the_next_one_is_tried_further_out_but_not_beyond_the_range():
    outwards = next_step(LATTICE, told({64: 0.98, 512: 2.0}, noise=0.2))
    assert outwards.reason == "to be certain which device is faster there"
    assert math.log2(64 / outwards.size) == pytest.approx(0.6, abs=0.1)
    at_the_end = next_step(LATTICE, told({11: 0.98, 512: 2.0}, noise=0.2))
    assert abs(math.log2(at_the_end.size / 11)) < 0.2  # 0.6 below 11 the range is over
    upwards = next_step(LATTICE, told({64: 0.3, 512: 1.02}, noise=0.2))
    assert math.log2(upwards.size / 512) == pytest.approx(0.6, abs=0.1)
    at_the_top = next_step(LATTICE, told({64: 0.3, 3158: 1.02}, noise=0.2))
    assert abs(math.log2(at_the_top.size / 3158)) < 0.2


def test_beside_an_undecided_size_whose_neighbours_were_tried_the_search_goes_twice_as_far_out_each_time():
    step = next_step(LATTICE, told({41: 0.9, 64: 0.98, 512: 2.0}, noise=0.2))
    assert math.log2(64 / step.size) == pytest.approx(1.2, abs=0.1)
    step = next_step(LATTICE, told({28: 0.9, 41: 0.9, 64: 0.98, 512: 2.0}, noise=0.2))
    assert math.log2(64 / step.size) == pytest.approx(2.4, abs=0.1)
    step = next_step(LATTICE, told({12: 0.95, 28: 0.9, 41: 0.9, 64: 0.98, 512: 2.0}, noise=0.2))
    assert abs(math.log2(step.size / 64)) < 0.2


def test_of_two_undecided_sides_both_are_tried_before_either_is_left_behind():
    step = next_step(LATTICE, told({41: 0.9, 64: 0.98, 512: 1.02}, noise=0.2))
    assert math.log2(step.size / 512) == pytest.approx(0.6, abs=0.1)


@pytest.mark.parametrize(
    ("sizes", "end"), [({8: 1.02, 181: 2.0, 4096: 2.0}, 8), ({8: 0.5, 181: 0.5, 4096: 0.98}, 4096)]
)
def test_an_end_of_the_range_that_is_not_decided_is_measured_again_beside_it(sizes, end):
    step = next_step(LATTICE, told(sizes, noise=0.2))
    assert step.reason == "to decide the end of the range"
    assert ending(step, near=end)


def test_an_end_that_stays_undecided_is_given_up_after_some_sizes():
    fine = [8 * 2 ** (place / 20) for place in range(181)]
    far, near = {8: 0.5, 181.0: 0.5}, fine[-search.ENOUGH_NEAR :]
    step = next_step(fine, told(far | dict.fromkeys(near[1:], 0.98), noise=0.2))
    assert step.size == near[0]
    step = next_step(fine, told(far | dict.fromkeys(near, 0.98), noise=0.2))
    assert step.size is None
    assert "up to the ends of the range" in step.reason


def test_an_end_that_was_disturbed_is_decided_by_sizes_close_to_it():
    won = {8: 1.3, 9: 1.6, 181: 1.6, LATTICE[-1]: 1.6}
    quiet = told(won)
    disturbed = replace(quiet[0], baseline_s=(1e-3, 1.3e-3, 2.6e-3))
    without = next_step(LATTICE, [disturbed, *quiet[2:]])
    assert without.reason == "to decide the end of the range"
    step = next_step(LATTICE, [disturbed, *quiet[1:]])
    assert (step.size, step.reason) == (None, "no measurement up to the ends of the range suggests a crossover")
    assert answer([disturbed, *quiet[1:]]).outcome == "gpu_always"
    assert answer([disturbed, *quiet[2:]]).outcome == "undecided"


def test_the_largest_size_itself_is_measured_before_the_search_says_that_one_device_always_wins():
    step = next_step(LATTICE, told({8: 0.5, 181: 0.5, LATTICE[-2]: 0.5}))
    assert step.size == LATTICE[-1]
    assert step.reason == "towards sizes where the other device should be faster"


def test_no_more_sizes_are_measured_than_a_search_may_take():
    step = next_step(LATTICE, told(dict.fromkeys(LATTICE[:40], 0.5)))
    assert step == search.SearchStep(size=None, reason="40 sizes were measured without a result")
    step = next_step(LATTICE, told(dict.fromkeys(LATTICE[:39], 0.5)))
    assert "without an end" not in step.reason
    assert next_step(LATTICE[:3], told(dict.fromkeys(LATTICE[:3], 0.5))).reason == "every size that fits was measured"


def test_between_two_neighbours_that_contradict_each_other_the_size_between_them_is_measured():
    step = next_step(LATTICE, told({8: 0.5, 64: 0.5, 70: 2.0}))
    assert (step.size, step.reason) == (59, "between the two sides")  # none is free between them, 59 is nearest


def test_a_gallop_goes_two_ninths_of_the_range_at_a_time():
    few = Axis.from_range("hidden_size", 8, 512, adaptive=True).values
    upwards = next_step(few, told({64: 0.5}))
    assert upwards.reason == "towards sizes where the other device should be faster"
    assert math.log2(upwards.size / 64) == pytest.approx(2 * 6 / 9, abs=0.1)
    downwards = next_step(few, told({64: 2.0}))
    assert math.log2(64 / downwards.size) == pytest.approx(2 * 6 / 9, abs=0.1)


LEANING = {8: 0.3, 16: 0.4, 32: 0.5, 83: 1.17, 91: 1.17, 99: 1.17, 128: 0.86, 140: 0.86, 512: 2.0, 1024: 2.5, 4096: 3.3}
"""Five sizes, each of which leaves open at a noise of 15 % who wins, and which together speak against one crossing."""


def test_where_sizes_together_leave_open_how_often_the_device_changes_one_beside_them_is_measured():
    known = told(LEANING, noise=0.15)
    assert answer(known).outcome == "undecided"
    step = next_step(LATTICE, known)
    assert step.reason == "to find how often the faster device changes"
    assert 70 < step.size < 166


def test_where_nothing_is_left_beside_doubtful_sizes_the_search_ends():
    known = told(LEANING, noise=0.15)
    step = next_step([entry.size for entry in known] + [8192], known)
    assert step.reason != "to find how often the faster device changes"
