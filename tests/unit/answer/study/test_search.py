"""The adaptive search on simulated machines: where it looks, when it stops, and that it depends on nothing else."""

import math
import random
from dataclasses import replace

import pytest

from core.answer import search
from core.answer.crossover import locate_crossover
from core.answer.judgement import Evidence
from core.answer.search import NARROW_RATIO, next_step
from core.question.sweep import ADAPTIVE_PAIRS, Axis

LATTICE = Axis.from_range("hidden_size", 8, 4096, adaptive=True).values


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
            visits=ADAPTIVE_PAIRS,
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
    return locate_crossover(known, axis="hidden_size", baseline="cpu", challenger="cuda:0")


@pytest.mark.parametrize("place", [11, 90, 181, 700, 3000])
def test_it_closes_in_on_the_crossing_wherever_it_lies(place):
    known, _ = searched(Machine(crossing_at(place)))
    found = answer(known)
    assert found.outcome == "crossing"
    assert found.low <= place <= found.high
    assert found.high / found.low <= NARROW_RATIO
    assert len(known) <= 12


def test_it_looks_on_both_sides_of_the_crossing_before_it_stops():
    known, reason = searched(Machine(crossing_at(181)))
    assert reason == "the interval is narrow"
    for octaves in (-2.5, -1.4, 1.4, 2.5):
        assert any(abs(math.log2(entry.size / 181) - octaves) < 0.5 for entry in known)


@pytest.mark.parametrize(("centre", "height", "noise"), [(128, 0.5, 0.02), (175, 0.35, 0.03)])
def test_it_finds_a_second_and_third_crossing_beside_the_first(centre, height, noise):
    """The second where the first sizes that are measured lie at crossings."""

    def speedup(size):
        away = math.log2(size / centre)
        wave = -math.sin(math.pi * away) if abs(away) <= 1.5 else math.copysign(1 + (abs(away) - 1.5) / 2, away)
        return math.exp(height * wave)

    known, reason = searched(Machine(speedup, noise=noise))
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
    assert "were not enough at a noise of" in reason


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
            return replace(found, baseline_s=slow + found.baseline_s[2:])

    known, _ = searched(Disturbed(lambda _: 0.7))
    assert 724 in {entry.size for entry in known}
    assert answer(known).outcome == "cpu_always"


def test_a_jump_between_two_sizes_is_placed_between_them():
    known, _ = searched(Machine(lambda size: 0.7 if size < 3500 else 2.0))
    found = answer(known)
    assert found.outcome == "crossing"
    assert found.low <= 3500 <= found.high


def test_few_depths_are_searched_like_many_sizes():
    depths = Axis.from_range("depth", 2, 12).values
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
    assert (step.size, step.reason) == (17, "a measurement next to the crossover")
