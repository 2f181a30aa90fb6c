"""How long a sweep is expected to take: from what is asked and how fast the machine is, within the budget."""

import dataclasses

import pytest

from core.answer import expectations
from core.question.experiment import Contender, Experiment, Point
from core.question.sweep import Axis, Sweep

PAIR = (Contender(threads=1), Contender(threads=2))
POINT = Point(dataset="signal", batch_size=32)
SEARCH = Sweep(
    point=POINT, axes=(Axis.from_range("hidden_size", 8, 4_096, adaptive=True),), contenders=PAIR, adaptive=True
)
GRID = Sweep(point=POINT, axes=(Axis.from_range("hidden_size", 8, 512),), contenders=PAIR)


@pytest.mark.parametrize("took_s", [18, 21, 29, 36, 42, 47, 49, 53])
def test_searches_of_small_networks_took_what_is_expected_of_them(took_s):
    """Those of docs/statistics.md, of 6 to 20 sizes."""
    least, most = expectations.estimate_sweep_s(SEARCH, (2e10, 4e10))
    assert least < took_s < most < 180


def test_a_grid_measures_all_its_points():
    least, most = expectations.estimate_sweep_s(GRID)
    more = dataclasses.replace(GRID, axes=(Axis.from_range("hidden_size", 8, 4_096),))
    assert least < most
    assert expectations.estimate_sweep_s(more)[0] > least


def test_a_slow_machine_takes_longer_and_none_longer_than_the_budget():
    quick, slow = expectations.estimate_sweep_s(SEARCH, (1e11,)), expectations.estimate_sweep_s(SEARCH, (1e8,))
    assert quick[1] < slow[1] <= SEARCH.budget_s


def test_compiled_lanes_are_compiled_at_every_size():
    compiled = dataclasses.replace(GRID, contenders=(PAIR[0], Contender.parse("cpu@1+compiled10")))
    assert expectations.estimate_sweep_s(compiled)[0] > expectations.estimate_sweep_s(GRID)[0] + 0.7 * 7 * (
        expectations.COMPILING_S - 1
    )


def test_lanes_are_expected_to_take_their_compiling_and_their_pairs():
    """252 s were taken by compiled, compiled10, kept, fused, foreach and bf16 on one thread of a small machine."""
    words = ("", "+compiled10", "+compiled", "+kept", "+fused", "+bf16", "+foreach")
    lanes = Experiment(point=POINT, contenders=tuple(Contender.parse(f"cpu@1{lane}") for lane in words), pairs=20)
    least, most = expectations.estimate_lanes_s(lanes, (2e10, 4e10))
    assert least < 90 < 252 < most
    plain = dataclasses.replace(lanes, contenders=PAIR)
    assert expectations.estimate_lanes_s(plain, (2e10,))[1] < least
