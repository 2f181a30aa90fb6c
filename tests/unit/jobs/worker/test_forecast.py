"""Which points of a sweep are too slow to be begun, and how long the rest will take."""

import dataclasses

import pytest

from core.jobs.worker import sweep
from core.jobs.worker.sweep import PointResult, build_skipped_result, describe_point, result_from_rows
from core.measure.timer import MIN_BLOCK_S
from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep, vary
from tests import rows

BATCHES = (1, 2, 4, 8, 16, 32, 64)


def over(**axes) -> Sweep:
    """A sweep of two contenders; operations of a step are proportional to the batch size."""
    return Sweep(
        point=Point(),
        axes=tuple(Axis(name=name, values=values) for name, values in axes.items()),
        contenders=(Contender(), Contender(threads=1)),
        pairs=10,
        point_budget_s=20,
    )


def at(sweep: Sweep, **values: float) -> Point:
    return vary(sweep.point, values)


def measured(sweep: Sweep, point: Point, step_s: float, *, seconds: float | None = 3.0) -> PointResult:
    run = rows.run({"cpu": step_s, "cpu@1": step_s}, point=point, jitter=0.0, outcome="timed")
    return result_from_rows(sweep, point, run, seconds=seconds)


SWEEP = over(batch_size=BATCHES)


@pytest.mark.parametrize(
    ("size", "step_s", "skipped"),
    [(32, 0.1, False), (32, 0.18, False), (32, 0.22, True), (32, 10.0, True), (64, 0.09, False), (64, 0.11, True)],
)
def test_a_point_is_skipped_if_its_pairs_would_take_more_than_twice_what_it_may(size, step_s, skipped):
    """10 pairs × 2 contenders × 5 steps × 2 or 4 times as long against 40 s."""
    visits = {at(SWEEP, batch_size=16): measured(SWEEP, at(SWEEP, batch_size=16), step_s)}
    assert bool(sweep.too_slow(SWEEP, at(SWEEP, batch_size=size), visits)) is skipped


def test_a_point_far_beyond_what_was_measured_is_tried():
    visits = {at(SWEEP, batch_size=1): measured(SWEEP, at(SWEEP, batch_size=1), 1.0)}
    assert sweep.too_slow(SWEEP, at(SWEEP, batch_size=16), visits)
    assert sweep.too_slow(SWEEP, at(SWEEP, batch_size=32), visits) == ""


def test_a_smaller_point_is_tried_whatever_became_of_a_larger_one():
    large = at(SWEEP, batch_size=64)
    assert sweep.too_slow(SWEEP, at(SWEEP, batch_size=32), {large: build_skipped_result(SWEEP, large, "it is")}) == ""


def test_the_nearest_smaller_point_counts():
    small, near = at(SWEEP, batch_size=4), at(SWEEP, batch_size=16)
    visits = {near: measured(SWEEP, near, 0.01), small: measured(SWEEP, small, 10.0)}
    assert sweep.too_slow(SWEEP, at(SWEEP, batch_size=32), visits) == ""


def test_points_that_differ_on_two_axes_say_nothing_of_each_other():
    grid = over(batch_size=(8, 16), hidden_size=(8, 16))
    slow = at(grid, batch_size=8, hidden_size=8)
    visits = {slow: build_skipped_result(grid, slow, "it is")}
    assert sweep.too_slow(grid, at(grid, batch_size=16, hidden_size=16), visits) == ""
    assert "batch size 8, hidden size 8 was too slow and needs" in sweep.too_slow(
        grid, at(grid, batch_size=16, hidden_size=8), visits
    )


def test_a_point_that_did_not_fit_does_not_make_a_larger_one_too_slow():
    small = at(SWEEP, batch_size=8)
    empty = rows.run({"cpu": 1.0}, point=small, pairs=0, outcome="out_of_memory")
    assert sweep.too_slow(SWEEP, at(SWEEP, batch_size=16), {small: result_from_rows(SWEEP, small, empty)}) == ""


def test_on_the_axis_of_parameters_the_size_that_reaches_them_tells_points_apart():
    wide = over(parameters=(10_000, 20_000))
    small, large = wide.points
    assert sweep.too_slow(wide, large, {small: build_skipped_result(wide, small, "it is")})


def test_nothing_is_said_of_the_rest_before_a_point_was_measured():
    found = {at(SWEEP, batch_size=1): measured(SWEEP, at(SWEEP, batch_size=1), 1e-3, seconds=None)}
    assert sweep.remaining_s(SWEEP, SWEEP.points[1:], found, elapsed_s=0.0) is None


def test_points_whose_blocks_are_as_short_as_can_be_take_what_the_measured_one_took():
    visits = {at(SWEEP, batch_size=1): measured(SWEEP, at(SWEEP, batch_size=1), 1e-5)}
    assert sweep.remaining_s(SWEEP, SWEEP.points[1:], visits, elapsed_s=0.0) == pytest.approx(6 * 3.0)


def test_where_steps_are_long_the_rest_takes_longer_in_proportion():
    step_s = MIN_BLOCK_S
    visits = {at(SWEEP, batch_size=1): measured(SWEEP, at(SWEEP, batch_size=1), step_s, seconds=12.0)}
    one = sweep.remaining_s(SWEEP, [at(SWEEP, batch_size=2)], visits, elapsed_s=0.0)
    assert one == pytest.approx(2.0 + 20.0)  # 10 pairs of 2 × 5 steps of 0.2 s, and the 2 s that were no blocks


def test_no_point_is_expected_to_take_much_longer_than_it_may_nor_a_sweep_than_its_budget():
    visits = {at(SWEEP, batch_size=1): measured(SWEEP, at(SWEEP, batch_size=1), MIN_BLOCK_S, seconds=10.0)}
    assert sweep.remaining_s(SWEEP, SWEEP.points[1:], visits, elapsed_s=0.0) == pytest.approx(6 * 20.0)
    assert sweep.remaining_s(SWEEP, SWEEP.points[1:], visits, elapsed_s=590.0) == pytest.approx(30.0)
    adaptive = dataclasses.replace(SWEEP, adaptive=True)
    assert sweep.remaining_s(adaptive, SWEEP.points[1:], visits, elapsed_s=590.0) == pytest.approx(10.0)


def test_a_label_names_every_axis_with_its_value():
    grid = over(hidden_size=(1024,), learning_rate=(0.05,))
    assert describe_point(grid, grid.points[0]) == "hidden size 1,024, learning rate 0.05"


SEARCH = Sweep(
    point=Point(),
    axes=(Axis.from_range("hidden_size", 16, 1_024, adaptive=True),),
    contenders=(Contender(), Contender(threads=1)),
    adaptive=True,
)


def search(measured_points, *, seconds=3.0, elapsed_s=0.0):
    found = {
        point: measured(SEARCH, point, 1e-5, seconds=seconds) for point in SEARCH.points[: 2 * measured_points : 2]
    }
    left = [point for point in SEARCH.points if point not in found]
    return sweep.search_s(SEARCH, left, found, elapsed_s=elapsed_s)


def test_a_search_is_expected_to_measure_as_many_sizes_as_searches_do_and_not_all_that_it_may():
    assert search(1) == pytest.approx((5 * 3.0, 19 * 3.0))
    assert search(4) == pytest.approx((2 * 3.0, 16 * 3.0))
    assert search(0) is None


def test_a_search_that_measured_as_many_as_any_may_end_at_once_or_go_on_to_the_last():
    assert search(12) == pytest.approx((0.0, 8 * 3.0))
    assert search(21) == pytest.approx((0.0, 19 * 3.0))


def test_no_search_is_expected_to_go_beyond_its_budget():
    assert search(1, elapsed_s=SEARCH.budget_s - 10.0) == pytest.approx((10.0, 10.0))
