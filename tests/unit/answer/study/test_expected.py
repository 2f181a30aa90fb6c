"""What is expected at a size that was not measured: between measured ones, with a measurement's own noise in it."""

import math
import random
from dataclasses import replace

import pytest

from core.answer.crossover import locate_crossover
from core.answer.expectations import LEAST_SIZES, ExpectedSpeedup, compare_with_measured, expect_speedup
from core.answer.judgement import Evidence

SIZES = (8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


def truth(size):
    return (size / 40) ** 0.5


def evidence(sizes=SIZES, *, noise=0.02, pairs=5, paired=True, seed=0):
    draw = random.Random(seed)

    def times(middle_s):
        return tuple(middle_s * math.exp(draw.gauss(0, noise)) for _ in range(pairs))

    return [
        Evidence(size=size, baseline_s=times(1e-3), challenger_s=times(1e-3 / truth(size)), paired=paired, visits=pairs)
        for size in sizes
    ]


@pytest.mark.parametrize("paired", [True, False])
def test_between_measured_sizes_the_interval_holds_the_truth(paired):
    told = expect_speedup(evidence(paired=paired), 48)
    assert told is not None
    assert told.low < truth(48) < told.high
    assert told.low < told.speedup < told.high
    assert (told.size, told.sizes) == (48, 6)


def test_the_interval_is_wider_than_the_band_of_the_curve_as_a_measurement_scatters_too():
    entries = evidence(noise=0.05)
    band = locate_crossover(entries, axis="hidden_size", baseline="cpu", challenger="cuda:0").band
    at = min(range(len(band.sizes)), key=lambda place: abs(band.sizes[place] - 48))
    told = expect_speedup(entries, band.sizes[at])
    assert told.low < band.low[at] < band.high[at] < told.high


@pytest.mark.parametrize("size", [7.9, 257.0])
def test_nothing_is_expected_beyond_the_measured_sizes(size):
    assert expect_speedup(evidence(), size) is None


def test_a_size_that_could_not_be_timed_does_not_widen_the_range():
    beyond = Evidence(size=512.0, obstacle="did not fit")
    assert expect_speedup([*evidence(), beyond], 300) is None


def test_nothing_is_expected_from_fewer_sizes_than_show_a_bend_or_from_single_readings():
    assert expect_speedup(evidence(SIZES[: LEAST_SIZES - 1]), 12) is None
    assert expect_speedup(evidence(pairs=1), 48) is None


def test_nothing_is_said_where_it_could_be_anything():
    assert expect_speedup(evidence((8.0, 16.0, 4096.0), noise=0.6, pairs=2), 1000) is None


def test_a_size_is_left_out_with_its_readings():
    entries = evidence()
    disturbed = [replace(one, challenger_s=(1.0,) * 5) if one.size == 32 else one for one in entries]
    assert expect_speedup(disturbed, 32, exclude=32) == expect_speedup(entries, 32, exclude=32)
    assert expect_speedup(entries, 8, exclude=8) is None


def test_the_order_of_the_sizes_does_not_matter():
    entries = evidence()
    assert expect_speedup(entries[::-1], 48) == expect_speedup(entries, 48)


TOLD = ExpectedSpeedup(size=48, speedup=1.4, low=1.2, high=1.7, sizes=12)


def test_what_is_expected_says_on_what_it_rests_and_never_that_it_was_measured():
    assert f"{TOLD.figures}, {TOLD.source}" == "about 1.4× (1.2× to 1.7×), expected from 12 measured sizes"


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [(1.5, "as expected"), (1.2, "as expected"), (1.1, "less than expected"), (1.8, "more than expected")],
)
def test_after_a_run_the_expectation_stands_beside_the_measurement(measured, verdict):
    said = compare_with_measured(TOLD, measured)
    assert said.startswith("From 12 other measured sizes about 1.4× (1.2× to 1.7×) was expected;")
    assert said.endswith(f"{measured:.2f}× was measured, {verdict}.")
