"""What the curve says between sizes, and how wide intervals are."""

import math
import statistics

import numpy as np
import pytest

from core.answer import curve_estimate
from core.answer.curve_estimate import Noise, Readings


def readings(values, *, sizes=None, spread=0.2, sd=0.02, freedom=40, visits=0.0):
    places = np.arange(len(values), dtype=float) + 3 if sizes is None else np.array(sizes, dtype=float)
    return Readings(
        sizes=places,
        values=np.array(values, dtype=float),
        spread=np.full(len(values), spread),
        noise=Noise(sd=sd, freedom=freedom),
        freedom=np.full(len(values), float(freedom)),
        visits=np.full(len(values), visits),
    )


def posterior(known, places):
    return curve_estimate.SpeedupCurve(known, float(places.min()), float(places.max())).evaluate(places)


def test_with_much_known_of_the_noise_the_interval_is_the_normal_one():
    known = readings([0.0], sd=0.02, freedom=100_000)
    expected = statistics.NormalDist().inv_cdf(0.975) * 0.02 * math.sqrt(0.2)
    assert float(curve_estimate.half_width(known, 0.025)[0]) == pytest.approx(expected, rel=0.02)


def test_with_little_known_of_the_noise_the_interval_is_wider():
    little, much = (float(curve_estimate.half_width(readings([0.0], freedom=n), 0.025)[0]) for n in (3, 300))
    assert little > 1.3 * much


def test_the_curve_passes_through_what_is_certain_and_is_uncertain_between():
    known = readings([-1.0, -0.4, 0.3, 1.0], spread=1e-6)
    found = posterior(known, np.array([4.0, 4.5, 5.0]))
    assert found.mean[0] == pytest.approx(-0.4, abs=1e-3)
    assert found.mean[2] == pytest.approx(0.3, abs=1e-3)
    assert found.sd[1] > 10 * max(found.sd[0], found.sd[2])


def test_a_straight_line_is_continued_between_its_points():
    known = readings([0.55 * (place - 5.3) for place in range(6)], spread=1e-6)
    found = posterior(known, np.array([5.3, 6.7]))
    assert found.mean == pytest.approx([0.55 * (place - 3 - 5.3) for place in (5.3, 6.7)], abs=0.02)


def test_the_chance_of_being_above_follows_the_side():
    found = posterior(readings([-1, -0.5, 0.5, 1]), np.array([3.0, 4.5, 6.0]))
    assert found.above[0] < 0.01
    assert found.above[1] == pytest.approx(0.5, abs=0.05)
    assert found.above[2] > 0.99


def test_thousands_of_sizes_are_thinned_to_the_nearest():
    sizes = np.linspace(3, 12, 5_000)
    many = readings(0.55 * (sizes - 7), sizes=sizes)
    found = posterior(many, np.linspace(6.9, 7.1, 5))
    assert float(np.interp(0.5, found.above, np.linspace(6.9, 7.1, 5))) == pytest.approx(7.0, abs=0.05)


def test_neighbours_are_close_sizes_and_not_those_an_octave_away():
    octave = readings([-1.0, 1.0, -1.0])
    assert list(curve_estimate.nearby_medians(octave)) == [-1.0, 1.0, -1.0]
    close = readings([-0.5, 0.4, -0.5, -0.6], sizes=[5.0, 5.1, 5.2, 8.0])
    assert curve_estimate.nearby_medians(close)[1] == -0.5


@pytest.mark.parametrize("beyond", [0.5, 1.0, 2.0])
def test_the_curve_is_as_uncertain_below_the_smallest_size_as_above_the_largest(beyond):
    values = [-1.2, -0.5, -0.1, 0.7, 1.0, 1.9]
    above = posterior(readings(values), np.array([8 + beyond]))
    mirrored = readings([-value for value in values[::-1]])
    below = posterior(mirrored, np.array([3 - beyond]))
    assert float(below.sd[0]) == pytest.approx(float(above.sd[0]), rel=0.05)
    assert float(below.mean[0]) == pytest.approx(-float(above.mean[0]), rel=0.1)


def test_what_is_said_of_a_place_does_not_depend_on_the_places_asked_about_beside_it():
    known = readings([-1.2, -0.5, -0.1, 0.7, 1.0, 1.9])
    alone = posterior(known, np.array([5.5]))
    beside = posterior(known, np.array([1.0, 5.5]))
    assert float(beside.mean[1]) == pytest.approx(float(alone.mean[0]), abs=0.01)
    assert float(beside.sd[1]) == pytest.approx(float(alone.sd[0]), rel=0.02)


@pytest.mark.parametrize(("asked", "far"), [(3.5, slice(120, 200)), (11.5, slice(0, 80))])
def test_sizes_that_are_further_away_than_the_nearest_have_no_say(asked, far):
    sizes = np.linspace(3, 12, 200)
    one = readings(0.55 * (sizes - 7), sizes=sizes)
    other = readings(0.55 * (sizes - 7), sizes=sizes)
    other.values[far] += 0.2 * np.sin(np.arange(80))
    found, same = (posterior(each, np.array([asked])) for each in (one, other))
    assert found.mean == pytest.approx(same.mean, rel=1e-12)
    assert found.sd == pytest.approx(same.sd, rel=1e-12)


def test_sizes_that_scatter_around_a_curve_tell_what_visits_shift_and_widen_every_interval():
    line, scatter = np.linspace(-2, 2.5, 10), 0.25 * np.array([1, -1, 0, 1, 0, -1, 1, -1, 1, -1])
    smooth, rough = (readings(values, visits=1.0) for values in (line, line + scatter))
    calm, shaken = (curve_estimate.SpeedupCurve(known, 3.0, 12.0) for known in (smooth, rough))
    assert calm.scatter < 0.08 < 0.15 < shaken.scatter < 0.5
    assert calm.visits.sum() == pytest.approx(1)
    narrow, wide = (curve_estimate.half_width(smooth, 0.025, fitted.visits)[0] for fitted in (calm, shaken))
    assert float(curve_estimate.half_width(smooth, 0.025)[0]) < narrow < wide


def test_sizes_that_were_measured_in_turns_have_no_visit_of_their_own():
    in_turns = readings(np.linspace(-2, 2.5, 10))
    fitted = curve_estimate.SpeedupCurve(in_turns, 3.0, 12.0)
    assert fitted.scatter == 0
    assert curve_estimate.half_width(in_turns, 0.025, fitted.visits) == pytest.approx(
        curve_estimate.half_width(in_turns, 0.025)
    )


def test_drawn_curves_scatter_as_the_curve_is_uncertain():
    known = readings([-0.9, -0.4, -0.1, 0.3, 1.0], spread=1.0, sd=0.2)
    fitted = curve_estimate.SpeedupCurve(known, 3.0, 7.0)
    drawn, expected = fitted.draw_samples(), fitted.evaluate(known.sizes)
    assert drawn.shape == (curve_estimate.DRAWS, 5)
    assert drawn.mean(axis=0) == pytest.approx(expected.mean, abs=0.02)
    assert drawn.std(axis=0) == pytest.approx(expected.sd, rel=0.1)


def test_drawn_curves_hang_together_from_size_to_size():
    known = readings([-0.4, 0.0, 0.0, 0.5], sizes=[3.0, 5.0, 5.05, 7.0], spread=1.0, sd=0.2)
    drawn = curve_estimate.SpeedupCurve(known, 3.0, 7.0).draw_samples()
    apart, beside = (np.corrcoef(drawn[:, one], drawn[:, other])[0, 1] for one, other in ((0, 3), (1, 2)))
    assert beside > 0.9 > apart


def test_of_thousands_of_sizes_the_curves_are_drawn_at_those_that_take_part():
    sizes = np.linspace(3, 12, 5_000)
    fitted = curve_estimate.SpeedupCurve(readings(0.55 * (sizes - 7), sizes=sizes), 3.0, 12.0)
    assert fitted.draw_samples().shape == (curve_estimate.DRAWS, curve_estimate.MAX_CURVE_SIZES)
    assert len(fitted.sizes) == curve_estimate.MAX_CURVE_SIZES
