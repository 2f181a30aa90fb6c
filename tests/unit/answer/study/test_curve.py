"""The statistical model: noise, medians, and what the curve says between sizes."""

import math
import statistics

import numpy as np
import pytest

from core.answer.study import curve
from core.answer.study.curve import Noise, Readings


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
    return curve.Curve(known, float(places.min()), float(places.max())).at(places)


@pytest.mark.parametrize("count", [2, 3, 5, 21, 60])
def test_pooled_noise_recovers_the_standard_deviation(count):
    draw = np.random.default_rng(count)
    groups = [draw.normal(draw.uniform(-3, 3), 0.05, count) for _ in range(4000 // count)]
    noise = curve.pooled_noise(groups)
    assert noise.sd == pytest.approx(0.05, rel=0.1)
    assert noise.freedom == len(groups) * (count - 1)


def test_a_few_disturbed_readings_hardly_change_the_noise():
    draw = np.random.default_rng(1)
    groups = [draw.normal(0, 0.05, 5) for _ in range(10)]
    disturbed = [group.copy() for group in groups]
    disturbed[0][0] += 10
    disturbed[1][0] += 10
    assert curve.pooled_noise(disturbed).sd == pytest.approx(curve.pooled_noise(groups).sd, rel=0.3)


def test_single_readings_have_no_noise():
    assert curve.pooled_noise([np.array([1.0]), np.array([2.0])]) == Noise(sd=None, freedom=0)


@pytest.mark.parametrize("count", [1, 3, 5, 9])
def test_spread_of_a_median_is_that_of_normal_samples(count):
    draw = np.random.default_rng(0)
    medians = np.median(draw.normal(size=(40_000, count)), axis=1)
    assert curve.median_spread(count) == pytest.approx(float(np.var(medians)), rel=0.05)


def test_with_much_known_of_the_noise_the_interval_is_the_normal_one():
    known = readings([0.0], sd=0.02, freedom=100_000)
    expected = statistics.NormalDist().inv_cdf(0.975) * 0.02 * math.sqrt(0.2)
    assert float(curve.half_width(known, 0.025)[0]) == pytest.approx(expected, rel=0.02)


def test_with_little_known_of_the_noise_the_interval_is_wider():
    little, much = (float(curve.half_width(readings([0.0], freedom=n), 0.025)[0]) for n in (3, 300))
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
    assert list(curve.nearby(octave)) == [-1.0, 1.0, -1.0]
    close = readings([-0.5, 0.4, -0.5, -0.6], sizes=[5.0, 5.1, 5.2, 8.0])
    assert curve.nearby(close)[1] == -0.5


def test_the_freedom_of_two_noises_is_that_of_welch():
    pooled = curve.noise_of_two(Noise(sd=0.01, freedom=10), Noise(sd=0.03, freedom=20))
    assert pooled.sd == pytest.approx(math.sqrt((0.01**2 + 0.03**2) / 2))
    assert pooled.freedom == 24  # (1 + 9)² / (1²/10 + 9²/20)


def test_two_noises_that_are_alike_know_as_much_as_both_together():
    pooled = curve.noise_of_two(Noise(sd=0.02, freedom=10), Noise(sd=0.02, freedom=10))
    assert (pooled.freedom, pooled.sd) == (20, pytest.approx(0.02))


def test_a_noise_that_is_not_known_is_taken_from_the_other_device():
    known, unknown = Noise(sd=0.02, freedom=10), Noise(sd=None, freedom=0)
    assert curve.noise_of_two(known, unknown) == curve.noise_of_two(unknown, known) == known
    assert curve.noise_of_two(unknown, unknown) == unknown


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


def test_readings_of_one_value_leave_the_noise_to_the_other_device():
    pooled = curve.noise_of_two(Noise(sd=0.0, freedom=10), Noise(sd=0.02, freedom=12))
    assert pooled.sd == pytest.approx(0.02 / math.sqrt(2), rel=1e-6)
    assert pooled.freedom == 12
    still = curve.noise_of_two(Noise(sd=0.0, freedom=10), Noise(sd=0.0, freedom=12))
    assert still.sd == pytest.approx(curve.LEAST_NOISE)


def test_a_size_is_as_noisy_as_its_own_readings_say_as_far_as_they_go():
    draw = np.random.default_rng(2)
    quiet, loud = draw.normal(0, 0.01, 30), draw.normal(0, 0.1, 30)
    one, other, lone = curve.own_variances([quiet, loud, loud[:1]], Noise(sd=0.05, freedom=1000))
    assert math.sqrt(one) < 0.025
    assert math.sqrt(other) > 0.08
    assert math.sqrt(lone) == pytest.approx(0.05, rel=0.01)
    few = curve.own_variances([quiet[:3]], Noise(sd=0.05, freedom=1000))
    assert math.sqrt(float(few[0])) > 0.035  # four readings' worth of the pool against two of its own


@pytest.mark.parametrize(
    ("count", "visits", "share"), [(1, 1, 1.0), (5, 1, 1.0), (6, 6, 0.0), (6, 2, 0.4), (6, 3, 0.2)]
)
def test_what_a_visit_shifts_is_in_the_noise_where_every_reading_is_of_a_visit_of_its_own(count, visits, share):
    assert curve.visit_share(count, visits) == pytest.approx(share)


def test_sizes_that_scatter_around_a_curve_tell_what_visits_shift_and_widen_every_interval():
    line, scatter = np.linspace(-2, 2.5, 10), 0.25 * np.array([1, -1, 0, 1, 0, -1, 1, -1, 1, -1])
    smooth, rough = (readings(values, visits=1.0) for values in (line, line + scatter))
    calm, shaken = (curve.Curve(known, 3.0, 12.0) for known in (smooth, rough))
    assert calm.scatter < 0.08 < 0.15 < shaken.scatter < 0.5
    assert calm.visits.sum() == pytest.approx(1)
    narrow, wide = (curve.half_width(smooth, 0.025, fitted.visits)[0] for fitted in (calm, shaken))
    assert float(curve.half_width(smooth, 0.025)[0]) < narrow < wide


def test_sizes_that_were_measured_in_turns_have_no_visit_of_their_own():
    in_turns = readings(np.linspace(-2, 2.5, 10))
    fitted = curve.Curve(in_turns, 3.0, 12.0)
    assert fitted.scatter == 0
    assert curve.half_width(in_turns, 0.025, fitted.visits) == pytest.approx(curve.half_width(in_turns, 0.025))
