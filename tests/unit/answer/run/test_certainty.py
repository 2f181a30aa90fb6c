import dataclasses
import math
import random

import pytest

from core.answer import interference, speedup
from core.answer.statistics import most_heads
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
        (2.0, 0.05, 10, True),
        (0.5, 0.05, 10, True),
        (2.0, 0.05, 9, False),
        (1.0, 0.01, 10, True),
        (1.04, 0.01, 10, True),
        (1.1, 0.02, 20, False),
        (1.0, 0.3, 60, False),
        (1.15, 0.2, 20, False),
        (1.3, 0.2, 20, True),
        (1.3, 0.2, 60, True),
    ],
)
def test_a_verdict_is_certain_once_1_is_excluded_widely_and_a_tie_as_told_or_all_is_a_tie(ratio, sd, pairs, certain):
    assert speedup.is_certain(pair(ratio=ratio, sd=sd, pairs=pairs)) is certain


def test_all_looks_together_leave_out_little_and_the_first_can_tell():
    assert len(LOOKS) * speedup.LEVEL <= 0.02
    assert most_heads(speedup.LEVEL / 2, LOOKS[0]) == 0


def test_every_contender_is_told_from_the_first():
    one, two = pair()
    unclear = dataclasses.replace(pair(ratio=1.0, sd=0.3)[1], contender="cpu")
    assert not speedup.is_certain([one, two, unclear])


def test_a_verdict_that_others_may_have_caused_is_not_certain():
    assert speedup.speedup(*pair(ratio=0.5, displaced=0.9)).is_conditional
    assert not speedup.is_certain(pair(ratio=0.5, displaced=0.9))


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
    run = pair(ratio=1.1, pairs=pairs, sd=0.05, outcome=outcome)
    assert not speedup.is_certain(run)
    assert speedup.answers_experiment(asked(), run) is answers
    assert speedup.answers_experiment(asked(pairs=6), run)
