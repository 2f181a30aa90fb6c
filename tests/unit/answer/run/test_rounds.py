"""The interval of a run that was measured in rounds."""

import dataclasses
import math
import random
import statistics

import pytest

from core.answer import speedup, study
from core.answer.statistics import (
    UNKNOWN_REPEATABILITY,
    Repeatability,
    estimate_repeatability,
    median_interval,
    rounds_interval,
)
from core.question.presets import FEWEST_PAIRS, LOOKS, ROUND_PAIRS
from tests import rows
from tests.benchmarks.round_coverage import SHIFTS, blocks_width, end_run, make_up_machine, make_up_run

CLOCKS = ("block_begin_ns", "block_end_ns")
QUIET = Repeatability(shift=0.0, freedom=6)


def timed_run(ratio=1.5, *, run_id="a" * 12, shift=0.0, pairs=20, rounds=True, noise=0.03, **changes):
    """Rows of one and two threads, of which each round shifts the second."""
    values, numbers = make_up_run(random.Random(run_id), ratio, noise, shift, pairs)
    one, two = rows.run({"cpu@1": 1e-3, "cpu@2": 1e-3}, run_id=run_id, pairs=pairs, jitter=0.0, **changes)
    ends = tuple(
        begin + round((end - begin) * math.exp(-value))
        for begin, end, value in zip(two.block_begin_ns, two.block_end_ns, values, strict=True)
    )
    known = {"block_round": tuple(numbers)} if rounds else {}
    return [dataclasses.replace(one, **known), dataclasses.replace(two, block_end_ns=ends, **known)]


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_interval_of_a_run_that_may_end_early_holds_the_truth_however_much_rounds_shift(shift):
    rng, held, runs, widths = random.Random(5), 0, 240, []
    for number in range(runs):
        truth, noise = (1.0, 1.16, 1.5)[number % 3], (0.03, 0.07)[number % 2]
        machine, (values, rounds) = make_up_machine(rng, noise, shift), make_up_run(rng, truth, noise, shift, LOOKS[-1])
        look, (low, high) = end_run(values, rounds, machine)
        held += low <= math.log(truth) <= high
        widths.append((high - low) / blocks_width(values[:look]))
    assert held / runs >= 0.93
    # three rounds that agree do not show that none shifts: all of these hold, and none may be wide in return
    assert held / runs <= 0.998 if shift else statistics.median(widths) < 1.5


def test_the_interval_of_blocks_alone_does_not_where_rounds_shift():
    rng, held = random.Random(5), 0
    for _ in range(100):
        low, high = median_interval(make_up_run(rng, 1.5, 0.03, 0.1, 20)[0])
        held += low <= math.log(1.5) <= high
    assert held < 70


def test_rounds_that_differ_make_the_interval_wide_and_rounds_that_agree_hardly_do():
    found = {}
    for shift in (0.0, 0.1):
        run = timed_run(shift=shift)
        verdict, old = speedup.speedup(*run), speedup.speedup(*timed_run(shift=shift, rounds=False))
        found[shift] = math.log(verdict.high / verdict.low) / math.log(old.high / old.low)
        assert verdict.low <= verdict.value <= verdict.high
    assert found[0.0] < 2 < found[0.1] * 1.2
    assert found[0.1] > found[0.0]


def test_swapping_the_two_inverts_the_interval():
    values, numbers = make_up_run(random.Random(2), 1.3, 0.05, 0.05, 20)
    low, high = rounds_interval(values, numbers)
    assert rounds_interval([-value for value in values], numbers) == pytest.approx((-high, -low))


def test_what_a_machine_is_known_for_moves_the_interval_of_a_few_rounds():
    values, numbers = make_up_run(random.Random(4), 1.3, 0.05, 0.04, 12)

    def width(machine):
        low, high = rounds_interval(values, numbers, machine)
        return high - low

    assert width(QUIET) < width(UNKNOWN_REPEATABILITY) < width(Repeatability(shift=0.16, freedom=6))


def test_rows_without_rounds_keep_the_interval_of_their_blocks_and_name_no_rounds():
    run = timed_run(rounds=False)
    verdict = speedup.speedup(*run)
    assert (math.log(verdict.low), math.log(verdict.high)) == pytest.approx(median_interval(speedup.log_ratios(*run)))
    assert verdict.rounds == 0
    assert "20 pairs of blocks, start-up" in verdict.sentence


def test_a_verdict_names_its_rounds():
    verdict = speedup.speedup(*timed_run())
    assert verdict.rounds == 5
    assert "20 pairs of blocks in 5 rounds, start-up not counted." in verdict.sentence


def test_the_rounds_of_a_run_are_rounds_of_its_size_in_a_study():
    runs = tuple(
        tuple(timed_run(run_id=f"{n:012x}", point=dataclasses.replace(rows.EXPERIMENT.point, hidden_size=n)))
        for n in (64, 128)
    )
    later = [
        dataclasses.replace(row, **{name: tuple(ns + 10**13 for ns in getattr(row, name)) for name in CLOCKS})
        for row in runs[1]
    ]
    (found,) = study.studies([*runs[0], *later])
    assert [one.visits for one in found.evidence("steady")] == [5, 5]


def test_every_look_is_at_the_end_of_a_round_and_later_than_the_shortest_run_of_any_version():
    assert all(look % ROUND_PAIRS == 0 for look in LOOKS)
    assert LOOKS[0] > FEWEST_PAIRS


# How well a machine repeats


def test_repeated_questions_say_how_well_a_machine_repeats():
    rng = random.Random(3)
    runs = [make_up_run(rng, 1.5, 0.03, 0.1, 20) for _ in range(40)]
    found = estimate_repeatability([runs, [make_up_run(rng, 3.0, 0.03, 0.1, 20)]])
    assert found.freedom == 39
    assert found.shift == pytest.approx(0.1, rel=0.5)
    assert found.reach == pytest.approx(math.expm1(1.96 * 0.1 / math.sqrt(5)), rel=0.5)


def test_what_differs_between_runs_and_not_between_their_rounds_is_the_shift_of_whole_runs():
    found = {}
    for run_shift in (0.0, 0.2):
        rng = random.Random(6)
        found[run_shift] = estimate_repeatability(
            [[make_up_run(rng, truth, 0.03, 0.05, 20, run_shift) for _ in range(20)] for truth in (1.5, 3.0)]
        )
    assert found[0.0].run_shift < 0.02
    assert found[0.2].run_shift == pytest.approx(0.2, rel=0.5)
    for one in found.values():
        assert one.shift == pytest.approx(0.05, rel=0.5)


def test_a_run_that_differs_once_is_not_overlooked_among_runs_that_agree():
    rng = random.Random(7)
    alike = [make_up_run(rng, 1.5, 0.03, 0.0, 20) for _ in range(6)]
    other = make_up_run(rng, 0.9, 0.03, 0.0, 20)
    assert estimate_repeatability([alike]).run_shift < 0.02
    assert estimate_repeatability([[*alike, other]]).run_shift > 0.1


@pytest.mark.parametrize("repeats", [2, 7])
def test_where_whole_runs_shift_the_next_interval_holds_the_truth_once_questions_were_repeated(repeats):
    rng, held, alone, runs = random.Random(8), 0, 0, 200
    for _ in range(runs):
        before = [make_up_run(rng, 1.5, 0.03, 0.02, 20, 0.2) for _ in range(repeats)]
        values, rounds = make_up_run(rng, 1.5, 0.03, 0.02, LOOKS[-1], 0.2)
        for machine in (estimate_repeatability([before]), UNKNOWN_REPEATABILITY):
            _, (low, high) = end_run(values, rounds, machine)
            inside = low <= math.log(1.5) <= high
            held, alone = held + (inside and machine.freedom > 0), alone + (inside and not machine.freedom)
    assert alone / runs < 0.5
    assert held / runs >= (0.75 if repeats == 2 else 0.92)


def test_a_row_keeps_how_well_its_machine_repeated_and_its_verdict_counts_that():
    known = Repeatability(shift=0.01, run_shift=0.2, freedom=3)
    one, two = timed_run()
    wide = speedup.speedup(dataclasses.replace(one, **known.columns), dataclasses.replace(two, **known.columns))
    assert wide.high / wide.low > math.exp(0.8)
    assert not wide.has_winner
    assert speedup.SHIFT_ADVICE in wide.sentence
    assert speedup.speedup(one, two).has_winner
    assert UNKNOWN_REPEATABILITY.columns == {"machine_shift": None, "machine_run_shift": None, "machine_repeats": 0}


@pytest.mark.parametrize("column", ["machine_shift", "machine_run_shift"])
def test_an_absurd_shift_in_a_row_of_others_ends_nothing(column):
    one, two = (dataclasses.replace(row, **{column: 1e300, "machine_repeats": 3}) for row in timed_run())
    assert math.isfinite(speedup.speedup(one, two).high)


def test_nothing_is_known_of_a_machine_that_repeated_no_question():
    other = timed_run(run_id="b" * 12, point=dataclasses.replace(rows.EXPERIMENT.point, hidden_size=64))
    assert speedup.measure_repeatability([*timed_run(), *other], rows.MACHINE_ID) == UNKNOWN_REPEATABILITY


@pytest.mark.parametrize(
    ("changes", "freedom"),
    [
        ({}, 1),
        ({"outcome": "interrupted"}, 0),
        ({"pairs": 6}, 0),
        ({"machine_id": "0" * 12}, 0),
        ({"rounds": False}, 1),
    ],
)
def test_only_whole_runs_of_this_machine_count_as_repeats(changes, freedom):
    again = timed_run(run_id="b" * 12, **changes)
    assert speedup.measure_repeatability([*timed_run(), *again], rows.MACHINE_ID).freedom == freedom
