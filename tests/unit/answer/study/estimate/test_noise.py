"""How noisy readings are, and how well that is known."""

import math

import numpy as np
import pytest

from core.answer.curve_estimate import (
    LEAST_NOISE,
    Noise,
    combine_noise,
    median_spread,
    pool_noise,
    size_variances,
    visit_share,
)


@pytest.mark.parametrize("count", [2, 3, 5, 21, 60])
def test_pooled_noise_recovers_the_standard_deviation(count):
    draw = np.random.default_rng(count)
    groups = [draw.normal(draw.uniform(-3, 3), 0.05, count) for _ in range(4000 // count)]
    noise = pool_noise(groups)
    assert noise.sd == pytest.approx(0.05, rel=0.1)
    assert noise.freedom == len(groups) * (count - 1)


def test_a_few_disturbed_readings_hardly_change_the_noise():
    draw = np.random.default_rng(1)
    groups = [draw.normal(0, 0.05, 5) for _ in range(10)]
    disturbed = [group.copy() for group in groups]
    disturbed[0][0] += 10
    disturbed[1][0] += 10
    assert pool_noise(disturbed).sd == pytest.approx(pool_noise(groups).sd, rel=0.3)


def test_single_readings_have_no_noise():
    assert pool_noise([np.array([1.0]), np.array([2.0])]) == Noise(sd=None, freedom=0)


@pytest.mark.parametrize("count", [1, 3, 5, 9])
def test_spread_of_a_median_is_that_of_normal_samples(count):
    draw = np.random.default_rng(0)
    medians = np.median(draw.normal(size=(40_000, count)), axis=1)
    assert median_spread(count) == pytest.approx(float(np.var(medians)), rel=0.05)


def test_the_freedom_of_two_noises_is_that_of_welch():
    pooled = combine_noise(Noise(sd=0.01, freedom=10), Noise(sd=0.03, freedom=20))
    assert pooled.sd == pytest.approx(math.sqrt((0.01**2 + 0.03**2) / 2))
    assert pooled.freedom == 24  # (1 + 9)² / (1²/10 + 9²/20)


def test_two_noises_that_are_alike_know_as_much_as_both_together():
    pooled = combine_noise(Noise(sd=0.02, freedom=10), Noise(sd=0.02, freedom=10))
    assert (pooled.freedom, pooled.sd) == (20, pytest.approx(0.02))


def test_a_noise_that_is_not_known_is_taken_from_the_other_device():
    known, unknown = Noise(sd=0.02, freedom=10), Noise(sd=None, freedom=0)
    assert combine_noise(known, unknown) == combine_noise(unknown, known) == known
    assert combine_noise(unknown, unknown) == unknown


def test_readings_of_one_value_leave_the_noise_to_the_other_device():
    pooled = combine_noise(Noise(sd=0.0, freedom=10), Noise(sd=0.02, freedom=12))
    assert pooled.sd == pytest.approx(0.02 / math.sqrt(2), rel=1e-6)
    assert pooled.freedom == 12
    still = combine_noise(Noise(sd=0.0, freedom=10), Noise(sd=0.0, freedom=12))
    assert still.sd == pytest.approx(LEAST_NOISE)


def test_a_size_is_as_noisy_as_its_own_readings_say_as_far_as_they_go():
    draw = np.random.default_rng(2)
    quiet, loud = draw.normal(0, 0.01, 30), draw.normal(0, 0.1, 30)
    one, other, lone = size_variances([quiet, loud, loud[:1]], Noise(sd=0.05, freedom=1000))
    assert math.sqrt(one) < 0.025
    assert math.sqrt(other) > 0.08
    assert math.sqrt(lone) == pytest.approx(0.05, rel=0.01)
    few = size_variances([quiet[:3]], Noise(sd=0.05, freedom=1000))
    assert math.sqrt(float(few[0])) > 0.035  # four readings' worth of the pool against two of its own


@pytest.mark.parametrize(
    ("count", "visits", "share"), [(1, 1, 1.0), (5, 1, 1.0), (6, 6, 0.0), (6, 2, 0.4), (6, 3, 0.2)]
)
def test_what_a_visit_shifts_is_in_the_noise_where_every_reading_is_of_a_visit_of_its_own(count, visits, share):
    assert visit_share(count, visits) == pytest.approx(share)
