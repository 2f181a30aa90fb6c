"""The adaptive search on simulated machines: where it looks, when it stops, and that it depends on nothing else."""

import math
import random

import pytest

from core.answer.study import search
from core.answer.study.crossover import locate
from core.answer.study.result import Evidence
from core.answer.study.search import NARROW, next_step
from core.question.sweep import ADAPTIVE_PAIRS, Axis

LATTICE = Axis.between("hidden_size", 8, 4096, adaptive=True).values


class Machine:
    """Times of two devices whose speedup at a size is known."""

    def __init__(self, speedup, *, noise=0.02, seed=0):
        self.speedup, self.noise, self.draw = speedup, noise, random.Random(seed)

    def measure(self, size):
        speedup = self.speedup(size)
        return Evidence(
            size=size,
            baseline_s=tuple(1e-3 * self.jitter() for _ in range(ADAPTIVE_PAIRS)),
            challenger_s=tuple(1e-3 / speedup * self.jitter() for _ in range(ADAPTIVE_PAIRS)),
        )

    def jitter(self):
        return math.exp(self.draw.gauss(0, self.noise))


def crossing_at(place, slope=0.55):
    return lambda size: math.exp(slope * math.log2(size / place))


def searched(machine, candidates=LATTICE):
    known, reasons = [], []
    while (step := next_step(candidates, known)).size is not None:
        assert step.size in candidates
        assert step.size not in {entry.size for entry in known}
        known.append(machine.measure(step.size))
        reasons.append(step.reason)
    return known, step.reason


def answer(known):
    return locate(known, axis="hidden_size", baseline="cpu", challenger="cuda:0")


@pytest.mark.parametrize("place", [11, 90, 181, 700, 3000])
def test_it_closes_in_on_the_crossing_wherever_it_lies(place):
    known, _ = searched(Machine(crossing_at(place)))
    found = answer(known)
    assert found.outcome == "crossing"
    assert found.low <= place <= found.high
    assert found.high / found.low <= NARROW
    assert len(known) <= 12


def test_it_looks_on_both_sides_of_the_crossing_before_it_stops():
    known, reason = searched(Machine(crossing_at(181)))
    assert reason == "the interval is narrow"
    for octaves in (-2.5, -1.25, 1.25, 2.5):
        assert any(abs(math.log2(entry.size / 181) - octaves) < 0.5 for entry in known)


def test_it_finds_a_second_and_third_crossing_beside_the_first():
    def speedup(size):
        away = math.log2(size / 128)
        wave = -math.sin(math.pi * away) if abs(away) <= 1.5 else math.copysign(1 + (abs(away) - 1.5) / 2, away)
        return math.exp(0.5 * wave)

    known, reason = searched(Machine(speedup))
    assert answer(known).outcome == "several"
    assert reason == "the faster device changes more than once"


@pytest.mark.parametrize(("speedup", "outcome"), [(2.0, "gpu_always"), (0.5, "cpu_always")])
def test_where_one_device_always_wins_it_looks_at_both_ends(speedup, outcome):
    known, reason = searched(Machine(lambda _: speedup))
    assert answer(known).outcome == outcome
    assert {LATTICE[0], LATTICE[-1]} <= {entry.size for entry in known}
    assert "up to the ends" in reason


def test_equal_devices_end_the_search_without_an_answer():
    known, reason = searched(Machine(lambda _: 1.0, noise=0.05))
    assert answer(known).outcome == "undecided"
    assert len(known) <= search.MOST_UNDECIDED
    assert "decide nothing at a noise of" in reason


def test_a_machine_that_is_too_noisy_ends_the_search_and_the_noise_is_named():
    known, reason = searched(Machine(crossing_at(181, slope=0.2), noise=1.0))
    assert len(known) <= search.MOST_UNDECIDED
    assert "noise" in reason


def test_pairs_that_were_disturbed_at_one_size_do_not_pass_for_crossings():
    class Disturbed(Machine):
        def measure(self, size):
            found = super().measure(size)
            if size != 724:
                return found
            slow = tuple(2.5 * s for s in found.baseline_s[:2])
            return Evidence(size=size, baseline_s=slow + found.baseline_s[2:], challenger_s=found.challenger_s)

    known, _ = searched(Disturbed(lambda _: 0.7))
    assert 724 in {entry.size for entry in known}
    assert answer(known).outcome == "cpu_always"


def test_a_jump_between_two_sizes_is_placed_between_them():
    known, _ = searched(Machine(lambda size: 0.7 if size < 3500 else 2.0))
    found = answer(known)
    assert found.outcome == "crossing"
    assert found.low <= 3500 <= found.high


def test_few_depths_are_searched_like_many_sizes():
    depths = Axis.between("depth", 2, 12).values
    known, _ = searched(Machine(lambda depth: 2.0 ** (depth - 9.4)), depths)
    found = answer(known)
    assert found.outcome == "crossing"
    assert 8.5 <= found.low <= 9.4 <= found.high <= 10


def test_sizes_that_do_not_fit_bound_the_range():
    known = []
    machine = Machine(crossing_at(100))
    while (size := next_step(LATTICE, known).size) is not None:
        assert size not in {entry.size for entry in known}
        known.append(Evidence(size=size, obstacle="too large") if size > 500 else machine.measure(size))
    assert answer(known).outcome == "crossing"
    assert sum(bool(entry.obstacle) for entry in known) <= 3


def test_nothing_fits_and_it_ends():
    known = []
    while (size := next_step(LATTICE, known).size) is not None:
        known.append(Evidence(size=size, obstacle="too large"))
    assert len(known) < len(LATTICE) / 2


def test_the_next_size_depends_on_what_is_known_and_not_on_its_order():
    machine = Machine(crossing_at(300))
    known = [machine.measure(size) for size in (8, 181, 724, 4096)]
    assert next_step(LATTICE, known) == next_step(LATTICE[::-1], known[::-1])


def test_sizes_measured_before_count_even_beside_the_candidates():
    machine = Machine(crossing_at(100))
    known = [machine.measure(size) for size in (25, 33, 77, 99, 101, 130, 290, 555)]
    step = next_step(LATTICE, known)
    assert (step.size, step.reason) == (41, "a look beside the crossover")


def ending(step, *, near):
    """Whether a step is a size within a third of a doubling of another one."""
    return step.size is not None and abs(math.log2(step.size / near)) < 1 / 3


def told(speedups, *, noise=0.02):
    """Evidence whose readings are as far above the true speedup as below it, so that it is known what is decided."""
    spread = [math.exp(noise * offset) for offset in (-1, 0, 1)]
    return [
        Evidence(size=size, baseline_s=tuple(1e-3 * each for each in spread), challenger_s=(1e-3 / speedup,) * 3)
        for size, speedup in speedups.items()
    ]


@pytest.mark.parametrize("inside", [0, 1, 2, 3])
def test_the_middle_the_low_and_the_high_end_of_a_wide_interval_take_turns(inside):
    """By how many sizes lie within the interval, so that a search that was cut off goes on in the same way."""
    known = told({8: 0.2, 64: 0.5, 512: 2.0, 4096: 5.0} | dict.fromkeys((150, 181, 215)[:inside], 1.0), noise=0.05)
    only = answer(known).crossings[0]
    assert only.high / only.low > NARROW
    assert sum(only.low <= entry.size <= only.high for entry in known) == inside
    wanted = (only.estimate, only.low, only.high)[inside % 3]
    free = [size for size in LATTICE if size not in {entry.size for entry in known}]
    step = next_step(LATTICE, known)
    assert step.reason == "inside the interval"
    assert step.size == min(free, key=lambda size: (abs(math.log2(size / wanted)), size))


@pytest.mark.parametrize(
    ("sizes", "alone"),
    [
        ({8: 0.5, 32: 0.5, 128: 2.0, 512: 2.0, 4096: 0.5}, 4096),
        ({8: 2.0, 32: 0.5, 128: 0.5, 512: 2.0, 4096: 2.0}, 8),
        ({8: 0.5, 32: 0.5, 128: 2.0, 512: 0.5, 4096: 0.5}, 128),
        ({8: 0.5, 32: 0.5, 128: 2.0, 512: 0.5, 1024: 2.0, 4096: 2.0}, 128),
    ],
)
def test_a_size_that_stands_alone_is_looked_at_again_the_first_and_the_last_as_well(sizes, alone):
    step = next_step(LATTICE, told(sizes))
    assert step.reason == "a second look at a size that stands alone"
    assert ending(step, near=alone)


def test_beside_an_undecided_size_the_next_one_is_tried_further_out_but_not_beyond_the_range():
    outwards = next_step(LATTICE, told({64: 0.98, 512: 2.0}, noise=0.2))
    assert outwards.reason == "to be certain which device wins there"
    assert math.log2(64 / outwards.size) == pytest.approx(search.ASIDE, abs=0.1)
    at_the_end = next_step(LATTICE, told({11: 0.98, 512: 2.0}, noise=0.2))
    assert abs(math.log2(at_the_end.size / 11)) < 0.2  # 0.6 below 11 the range is over
    upwards = next_step(LATTICE, told({64: 0.3, 512: 1.02}, noise=0.2))
    assert math.log2(upwards.size / 512) == pytest.approx(search.ASIDE, abs=0.1)
    at_the_top = next_step(LATTICE, told({64: 0.3, 3158: 1.02}, noise=0.2))
    assert abs(math.log2(at_the_top.size / 3158)) < 0.2


def test_a_place_beside_an_undecided_size_that_was_seen_already_is_not_tried_again():
    step = next_step(LATTICE, told({41: 0.5, 64: 0.98, 512: 2.0}, noise=0.2))
    assert abs(math.log2(step.size / 64)) < 0.2


@pytest.mark.parametrize(
    ("sizes", "end"), [({8: 1.02, 181: 2.0, 4096: 2.0}, 8), ({8: 0.5, 181: 0.5, 4096: 0.98}, 4096)]
)
def test_an_end_of_the_range_that_is_not_decided_is_measured_again_beside_it(sizes, end):
    step = next_step(LATTICE, told(sizes, noise=0.2))
    assert step.reason == "to decide the end of the range"
    assert ending(step, near=end)


def test_an_end_that_stays_undecided_is_given_up_after_some_sizes():
    near = [size for size in LATTICE if size > 4096 / 2**search.SEEN][-search.ENOUGH_NEAR :]
    known = told({8: 0.5, 181: 0.5} | dict.fromkeys(near, 0.98), noise=0.2)
    step = next_step(LATTICE, known)
    assert step.size is None
    assert "up to the ends of the range" in step.reason


def test_the_largest_size_itself_is_measured_before_the_search_says_that_one_device_always_wins():
    step = next_step(LATTICE, told({8: 0.5, 181: 0.5, LATTICE[-2]: 0.5}))
    assert step.size == LATTICE[-1]
    assert step.reason == "towards where the other device should win"


def test_no_more_sizes_are_measured_than_a_search_may_take():
    step = next_step(LATTICE, told(dict.fromkeys(LATTICE[: search.MOST_SIZES], 0.5)))
    assert step == search.Step(size=None, reason=f"{search.MOST_SIZES} sizes were measured without an end")
    assert next_step(LATTICE, told(dict.fromkeys(LATTICE[: search.MOST_SIZES - 1], 0.5))).size is not None
    assert next_step(LATTICE[:3], told(dict.fromkeys(LATTICE[:3], 0.5))).reason == "every size that fits was measured"
