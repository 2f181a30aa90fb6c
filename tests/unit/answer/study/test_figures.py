"""The figures of some answers, digit by digit: a change of one is a change of docs/statistics.md."""

import math

import numpy as np
import pytest

from core.answer import curve_estimate, judgement
from core.answer.crossover import locate_crossover
from core.answer.curve_estimate import Noise, Readings
from core.answer.judgement import Evidence

SIZES = tuple(2.0**power for power in range(3, 13))
OFFSETS = (-1.0, -0.5, 0.0, 0.25, 1.5)
"""Of the readings of one size, in units of the noise."""

STEEP = (0.3, 0.4, 0.55, 0.75, 1.3, 2.0, 3.0, 5.0, 8.0, 12.0)
GENTLE = (0.6, 0.7, 0.8, 0.9, 1.2, 1.3, 1.5, 1.8, 2.0, 2.2)
STEP = (0.8,) * 5 + (1.2,) * 5
FLAT_ABOVE = (0.3, 0.4, 0.5, 0.6, 0.8, 1.06, 1.06, 1.06, 1.06, 1.06)
FLAT_BELOW = (1 / 1.06,) * 4 + (1.5, 2.0, 3.0, 4.0, 5.0, 6.0)


def located(speedups, *, noise=0.02, paired=True, visits=5):
    base = tuple(1e-3 * math.exp(noise * offset) for offset in OFFSETS)
    evidence = [
        Evidence(size=size, baseline_s=base, challenger_s=(1e-3 / speedup,) * len(base), paired=paired, visits=visits)
        for size, speedup in zip(SIZES, speedups, strict=True)
    ]
    return locate_crossover(evidence, axis="hidden_size", baseline="cpu", challenger="cuda:0")


def exactly(values):
    return pytest.approx(values, rel=1e-6, abs=1e-9)


def readings(values, sizes, **noise):
    return Readings(
        sizes=np.array(sizes, dtype=float),
        values=np.array(values, dtype=float),
        spread=np.full(len(values), 0.2),
        noise=Noise(**noise),
        freedom=np.full(len(values), float(noise["freedom"])),
        visits=np.zeros(len(values)),
    )


@pytest.mark.parametrize(
    ("speedups", "asked", "figures", "tie"),
    [
        (STEEP, {}, (92.4375796, 83.0500686, 102.554322), (82.9977315, 102.182193)),
        (STEEP, {"noise": 0.2}, (86.9760469, 69.9052535, 110.813259), (74.8017439, 97.0058603)),
        (STEEP, {"paired": False}, (92.4330574, 83.0377622, 102.561477), (82.9977315, 102.182193)),
        (GENTLE, {"noise": 0.3}, (79.6675525, 37.167014, 164.63471), (54.7580816, 119.428223)),
        (FLAT_ABOVE, {"noise": 0.01}, (212.991063, 182.691448, 242.665565), (171.84928, 4096.0)),
        (FLAT_BELOW, {"noise": 0.01}, (70.9718836, 65.6533035, 79.5847285), (8.0, 78.7932425)),
        (STEEP, {"visits": 1}, (91.5106367, 78.6552966, 103.551135), (82.9977315, 102.182193)),
        (GENTLE, {"noise": 0.1, "visits": 1}, (78.9703112, 57.819351, 108.357132), (54.7580816, 113.378242)),
        (tuple(1 / speedup for speedup in STEEP), {}, (92.4375796, 83.0500686, 102.554322), (82.9977315, 102.182193)),
    ],
)
def test_the_place_of_a_crossing_its_interval_and_the_zone_of_a_tie(speedups, asked, figures, tie):
    found = located(speedups, **asked)
    assert (found.estimate, found.low, found.high) == exactly(figures)
    assert found.tie == exactly(tie)


def test_the_figures_of_one_size_and_of_the_noise():
    found = located(STEEP)
    one = found.sizes[3]
    assert (one.speedup, one.low, one.high) == exactly((0.75, 0.729015803, 0.771588212))
    assert (one.baseline_s, one.challenger_s, one.readings) == exactly((1e-3, 1e-3 / 0.75, 5))
    assert found.noise == exactly(0.0235880569)
    assert found.level == exactly(0.95)
    assert located(STEEP, paired=False).noise == exactly(0.016679275)


def test_the_figures_of_the_band():
    band = located(STEEP, noise=0.2).band
    assert len(band.sizes) == 121
    assert [band.sizes[place] for place in (0, 57, 120)] == exactly([8.0, 154.879243, 4096.0])
    assert [band.speedup[place] for place in (0, 57, 120)] == exactly([0.282252095, 1.43134265, 12.108585])
    assert [band.low[place] for place in (0, 57, 120)] == exactly([0.230678834, 1.24580582, 9.97230954])
    assert [band.high[place] for place in (0, 57, 120)] == exactly([0.345355678, 1.64451133, 14.702495])


def test_a_curve_that_the_model_finds_too_abrupt_has_the_two_sizes_beside_it_for_an_interval(monkeypatch):
    monkeypatch.setattr(judgement, "_has_jump", lambda *_: False)
    inside, abrupt = located(STEP, noise=0.1), located(STEP, noise=0.13)
    assert (inside.estimate, inside.low, inside.high) == exactly((193.705604, 141.5505, 256.0))
    assert (abrupt.low, abrupt.high) == exactly((128.0, 256.0))


def test_a_jump_between_two_sizes_may_lie_anywhere_between_them():
    jump, slope = located(STEP, noise=0.05), located(STEEP, noise=0.05)
    assert (jump.estimate, jump.low, jump.high) == exactly((188.993265, 128.0, 256.0))
    assert 64 < slope.low < slope.high < 128


def test_more_than_ten_sizes_share_the_risk_of_a_wrong_sign():
    sizes = [8.0 * 1.2**place for place in range(20)]
    evidence = [Evidence(size=size, baseline_s=(1.0, 1.1, 1.2), challenger_s=(0.5,) * 3) for size in sizes]
    assert locate_crossover(evidence, axis="hidden_size", baseline="cpu", challenger="cuda:0").level == exactly(0.975)


def test_the_figures_of_the_curve_at_the_sizes_between_them_and_beyond():
    rising = readings([-1.2, -0.5, -0.1, 0.7, 1.0, 1.9], range(3, 9), sd=0.02, freedom=40)
    found = curve_estimate.SpeedupCurve(rising, 3.0, 8.5).evaluate(np.array([3.0, 4.5, 5.2, 8.5]))
    assert list(found.mean) == exactly([-1.19976554, -0.309664389, 0.0560660747, 2.33581799])
    assert list(found.sd) == exactly([0.0102249929, 0.305069053, 0.243074712, 0.483974126])
    assert list(found.above) == exactly([0.0, 0.0908248484, 0.773146475, 0.999042537])
    noisy = readings([-0.3, -0.1, 0.05, 0.2], [1, 1.6, 2.3, 3.5], sd=0.1, freedom=6)
    found = curve_estimate.SpeedupCurve(noisy, 1.0, 3.0).evaluate(np.array([1.0, 2.0, 3.0]))
    assert list(found.mean) == exactly([-0.275764522, -0.0312687035, 0.141572652])
    assert list(found.sd) == exactly([0.0415294864, 0.0604515138, 0.0758239596])
    assert list(found.above) == exactly([8.8169236e-06, 0.203329122, 0.988493223])


def test_the_figures_of_single_sizes():
    known, unknown = readings([0.01, -0.02, 0.3], [3, 4, 5], sd=0.02, freedom=8), readings([0], [3], sd=None, freedom=0)
    assert list(curve_estimate.half_width(known, 0.025)) == exactly([0.029522604] * 3)
    assert list(curve_estimate.half_width(unknown, 0.025)) == exactly([0.0838357218])
