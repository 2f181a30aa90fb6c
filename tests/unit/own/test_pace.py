"""Which steps of a loop are looked at and counted: sums and budgets, without a loop."""

import pytest

from core.custom.watch import MIN_LOOKS, SHARE, WARM_UP, Pace
from core.measure.custom.training import MOST_KEPT


def test_times_of_steps_that_are_kept_stay_few():
    pace = Pace()
    for number in range(10 * MOST_KEPT):
        pace.look(0, 10**9 if number % 10 == 9 else 10**7)
    assert len(pace._times.taken_ns) < MOST_KEPT
    assert pace.uneven[0] == pytest.approx(0.1, abs=0.03)


def test_counting_keeps_to_a_hundredth_of_the_time_whatever_a_counted_step_costs():
    pace, now = Pace(), 0
    pace.start(now)
    for _ in range(20_000):
        counted = now >= pace.due_ns and pace.may_count(now, 1)
        taken = 40_000_000 if counted else 1_000_000
        now += taken
        if counted:
            pace.add_counted(0, taken, now)
        else:
            pace.look(0, taken)
    assert pace.counted > 2
    assert pace.cost_ns <= SHARE * now
    assert pace.step_s == pytest.approx(1e-3)


def test_what_comes_before_a_step_is_not_told_from_a_few_looks():
    pace = Pace()
    for _ in range(MIN_LOOKS - 1):
        pace.look(10**6, 10**6)
    assert pace.before_s is None
    pace.look(10**6, 10**6)
    assert pace.before_s == pytest.approx(1e-3)


def test_the_first_steps_are_left_out_where_there_are_more():
    pace = Pace()
    pace.start(0)
    for number in range(WARM_UP + 5):
        pace.look(0, 10**9 if number < WARM_UP else 10**6)
    assert (pace.step_s, pace.steps) == (pytest.approx(1e-3), WARM_UP + 5)
