import dataclasses
import math
import random
from statistics import NormalDist

import pytest

from core.answer import interference, speedup
from core.answer.statistics import ROUNDS_TAIL
from core.question.experiment import Contender, Experiment, Point
from core.question.presets import LOOKS
from tests import rows

POINT = Point()


def pair(*, ratio=2.0, pairs=20, sd=0.03, outcome="completed", displaced=0.0):
    """One thread and two, whose log ratios scatter; in a share of the blocks other programs took processor time."""
    draw = random.Random(7)
    one, two = rows.run({"cpu@1": 1e-3, "cpu@2": 1e-3 / ratio}, point=POINT, pairs=pairs, jitter=0.0, outcome=outcome)
    ends = tuple(
        begin + round((end - begin) * math.exp(draw.gauss(0, sd)))
        for begin, end in zip(two.block_begin_ns, two.block_end_ns, strict=True)
    )
    hit = round(displaced * pairs)
    switches = (10_000,) * hit + (0,) * (pairs - hit)
    return [one, dataclasses.replace(two, block_end_ns=ends, block_switches=switches)]


@pytest.mark.parametrize(
    ("ratio", "sd", "pairs", "certain"),
    [
        (2.0, 0.05, 12, True),
        (0.5, 0.05, 12, True),
        (2.0, 0.05, 5, False),
        (1.0, 0.01, 12, True),
        (1.04, 0.01, 12, True),
        (1.15, 0.03, 12, True),
        (1.09, 0.03, 60, False),
        (1.0, 0.3, 60, False),
        (1.15, 0.3, 12, False),
    ],
)
def test_a_run_is_certain_once_its_verdict_names_a_winner_or_that_both_are_equal(ratio, sd, pairs, certain):
    run = pair(ratio=ratio, sd=sd, pairs=pairs)
    assert speedup.is_certain(run) is certain
    verdict = speedup.speedup(*run)
    assert (verdict.has_winner or verdict.is_equal) is certain


def test_the_looks_of_a_run_leave_out_a_twentieth_together():
    draw = random.Random(3)
    missed, runs = 0, 4_000
    for _ in range(runs):
        values = [draw.gauss(0, 1) for _ in range(LOOKS[-1])]
        scores = [abs(sum(values[:look])) / math.sqrt(look) for look in LOOKS]
        missed += max(scores) > NormalDist().inv_cdf(1 - ROUNDS_TAIL)
    assert missed / runs == pytest.approx(0.05, abs=0.01)


def test_every_contender_is_told_from_the_first():
    one, two = pair()
    unclear = dataclasses.replace(pair(ratio=1.0, sd=0.3)[1], contender="cpu")
    assert not speedup.is_certain([one, two, unclear])


def test_a_verdict_of_a_loaded_machine_is_certain_like_any_other():
    loaded = pair(ratio=0.5, displaced=0.9, pairs=LOOKS[0])
    assert speedup.speedup(*loaded).is_conditional
    assert speedup.is_certain(loaded)


def test_who_was_not_timed_is_not_waited_for_and_one_alone_is_timed_long_enough():
    one, two = pair()
    failed = dataclasses.replace(
        two, outcome="out_of_memory", block_pair=(), block_steps=(), block_begin_ns=(), block_end_ns=()
    )
    assert speedup.is_certain([one, failed])
    assert speedup.is_certain([one])
    assert not speedup.is_certain(pair(pairs=19)[:1])
    assert speedup.is_certain([])


# What answers


def asked(**changes):
    contenders = tuple(map(Contender.parse, ("cpu@1", "cpu@2")))
    return Experiment(**{"point": POINT, "contenders": contenders, "whole": False, **changes})


@pytest.mark.parametrize("outcome", ["completed", "timed"])
@pytest.mark.parametrize("changes", [{}, {"whole": True}, {"pairs": 6}])
def test_a_run_without_a_verdict_because_the_machine_was_busy_answers_nothing(outcome, changes):
    run = pair(ratio=0.5, displaced=0.9, outcome=outcome)
    assert interference.trial_pair_interference(*run)
    assert not speedup.answers_experiment(asked(**changes), run)


@pytest.mark.parametrize("displaced", [0.0, 0.9])
def test_a_run_with_a_verdict_answers_marked_or_not(displaced):
    assert speedup.answers_experiment(asked(), pair(ratio=2.0, displaced=displaced, outcome="timed"))


@pytest.mark.parametrize(
    ("pairs", "outcome", "answers"),
    [(6, "timed", False), (20, "timed", False), (60, "timed", True), (20, "completed", True), (9, "diverged", True)],
)
def test_who_may_end_early_is_answered_by_a_run_that_would_have_ended(pairs, outcome, answers):
    run = pair(ratio=1.05, pairs=pairs, sd=0.15, outcome=outcome)
    assert not speedup.is_certain(run)
    assert speedup.answers_experiment(asked(), run) is answers
    assert speedup.answers_experiment(asked(pairs=6), run)
