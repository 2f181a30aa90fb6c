"""Intervals of medians and of their ratios, noise and outliers: by their definition, and digit by digit."""

import pytest

from core.answer import statistics

FIVE = [1.0, 1.1, 1.25, 1.3, 1.45]
NINE = [2.0, 2.1, 2.15, 2.2, 2.3, 2.35, 2.5, 2.6, 2.9]


def exactly(values):
    return pytest.approx(values, rel=1e-6)


def test_the_interval_of_a_ratio_of_medians_that_do_not_pair():
    assert statistics.ratio_interval(FIVE, NINE) == exactly((0.434883683, 0.631937053))
    assert statistics.ratio_interval(NINE, FIVE) == exactly((1.58243609, 2.29946544))
    many = [1 + place / 2_000 for place in range(1_501)]
    assert statistics.ratio_interval(many, NINE) == exactly((0.533399801, 0.651575323))


def test_swapping_the_two_turns_the_interval_of_a_ratio_around():
    low, high = statistics.ratio_interval(FIVE, NINE)
    assert statistics.ratio_interval(NINE, FIVE) == exactly((1 / high, 1 / low))


def test_rank_statistics_of_a_thousand_values_and_one_more_agree():
    few, many = ([1 + place / 1_000 for place in range(count)] for count in (1_000, 1_001))
    below, above = statistics.ratio_interval(few, few), statistics.ratio_interval(many, many)
    assert above == pytest.approx(below, rel=1e-3)


@pytest.mark.parametrize(("count", "outside"), [(6, 0), (8, 0), (9, 1), (12, 2), (20, 5)])
def test_so_many_values_are_outside_the_interval_of_a_median(count, outside):
    values = [float(place) for place in range(count)]
    assert statistics.median_interval(values) == (outside, count - 1 - outside)
    assert statistics.median_interval(values[:5]) is None


def test_an_interval_whose_ends_coincide_is_the_range_of_all():
    assert statistics.median_interval([1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 2.0, 2.0]) == (1.0, 3.0)


def test_an_outlier_is_further_off_than_ten_standard_deviations():
    values = [9.0, 10.0, 11.0, 9.0, 11.0, 10.0 + 14.8, 10.0 - 14.8]
    assert statistics.count_outliers(values) == 0
    assert statistics.count_outliers([*values[:5], 10.0 + 14.9, 10.0 - 14.9]) == 2


def test_noise_is_the_interquartile_range_over_the_median_and_spread_the_90th_percentile():
    assert statistics.relative_noise([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3)
    assert statistics.relative_noise([1.0, 3.0]) == pytest.approx(0.5)
    assert statistics.relative_noise([1.0]) is None
    assert statistics.p90_to_median([float(place) for place in range(1, 12)]) == pytest.approx(10 / 6)


def test_a_chance_of_no_heads_and_of_half_of_them():
    assert statistics.heads_at_most(0, 5) == pytest.approx(1 / 32)
    assert statistics.heads_at_most(2, 5) == pytest.approx(0.5)
    assert [statistics.most_heads(1 / 40, coins) for coins in (4, 5, 6, 8, 9)] == [-1, -1, 0, 0, 1]
