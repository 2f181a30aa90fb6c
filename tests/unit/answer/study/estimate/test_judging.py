"""What sizes tell together that each of them leaves open: whether the faster device changes once or more often."""

import math

import numpy as np
import pytest

from core.answer.curve_estimate import Noise, Readings
from core.answer.judgement import judge_readings
from core.answer.statistics import TIE

BELOW, ABOVE = (-1.2, -0.9, -0.7), (0.7, 0.9, 1.2)


def readings(between, *, sd=0.13, low=BELOW, high=ABOVE):
    """Three sizes that the baseline wins, some an eighth of an octave apart, three that the challenger wins."""
    places = [3, 4, 5, *(6 + at / 8 for at in range(len(between))), 8, 9, 10]
    values = np.array([*low, *between, *high])
    return Readings(
        sizes=np.array(places, dtype=float),
        values=values,
        spread=np.full(len(values), 1.0),
        noise=Noise(sd=sd, freedom=30),
        freedom=np.full(len(values), 10.0),
        visits=np.zeros(len(values)),
    )


def test_sizes_that_lean_the_other_way_one_after_another_leave_a_single_crossing_open():
    leaning = [0.16] * 4 + [-0.16] * 4
    found = judge_readings(readings(leaning))
    assert not found.signs[3:-3].any()  # each of them leaves it open
    assert (found.outcome, found.crossings) == ("undecided", ())
    assert [clear.challenger_faster for clear in found.clear] == [False, True]
    assert 6 <= found.doubtful[0] < 7
    assert sorted(found.doubtful) == sorted(found.curve.sizes)
    assert not found.signs[np.searchsorted(found.curve.sizes, found.doubtful[:8])].any()


def test_sizes_that_rise_as_the_others_do_leave_a_single_crossing_certain():
    found = judge_readings(readings(np.linspace(-0.2, 0.2, 8)))
    assert (found.outcome, found.doubtful) == ("crossing", ())


def test_sizes_that_each_leave_it_open_prove_several_crossings_together():
    found = judge_readings(readings([0.3] * 5 + [-0.3] * 5, sd=0.17))
    assert found.widths[3:-3].min() > 0.3
    assert found.outcome == "several"
    assert [crossing.challenger_above for crossing in found.crossings] == [True, False, True]


@pytest.mark.parametrize(("wobble", "outcome"), [(0.5, "crossing"), (3.0, "undecided")])
def test_a_wobble_that_stays_within_a_tie_is_no_further_crossing(wobble, outcome):
    height = wobble * math.log(TIE)
    assert judge_readings(readings([height] * 4 + [-height] * 4, sd=0.25)).outcome == outcome


def test_whoever_always_wins_does_so_at_sizes_that_leave_it_open_as_well():
    quiet = judge_readings(readings([0.7] * 8, low=(1.2, 0.9, 0.7)))
    dip = judge_readings(readings([-0.18] * 8, low=(1.2, 0.9, 0.7)))
    assert (quiet.outcome, quiet.doubtful) == ("gpu_always", ())
    assert dip.signs.min() == 0
    assert dip.outcome == "undecided"
    assert 6 <= dip.doubtful[0] < 7


def test_two_neighbours_that_contradict_each_other_prove_nothing():
    """One of them was disturbed; which, a size beside them tells."""
    found = judge_readings(readings([-0.8, 0.8], high=(-0.7, -0.9, -1.2)))
    assert found.outcome == "undecided"
    assert found.crossings == ()
    assert set(found.doubtful[:2]) == {6.0, 6.125}


def test_the_same_readings_have_the_same_answer():
    one, other = (judge_readings(readings([0.16] * 4 + [-0.16] * 4)) for _ in range(2))
    assert one.doubtful == other.doubtful
    assert (one.curve.draw_samples() == other.curve.draw_samples()).all()
