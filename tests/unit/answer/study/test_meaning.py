"""What one crossing means: parameters, and what is saved beyond it, within the measured sizes only."""

import dataclasses
import math
import random

import pytest

from core.answer import expectations
from core.answer.crossover import locate_crossover
from core.answer.judgement import Evidence
from core.question.experiment import Point

SIZES = (8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
TRAINING = Point(dataset="signal", samples=3_200, batch_size=32, hidden_size=8, depth=2)


def evidence(speedup, sizes=SIZES, step_s=1e-3):
    draw = random.Random(0)

    def times(middle_s):
        return tuple(middle_s * math.exp(draw.gauss(0, 0.005)) for _ in range(6))

    return [
        Evidence(size=size, baseline_s=times(step_s), challenger_s=times(step_s / speedup(size)), visits=6)
        for size in sizes
    ]


def said(entries, axis="hidden_size", training=TRAINING):
    found = locate_crossover(
        entries, axis=axis, basis="steady", baseline="cpu (Test CPU)", challenger="cuda:0 (Test GPU)"
    )
    return expectations.meaning_sentences(training, found, entries)


def rising(size):
    return (size / 40) ** 0.5


def test_a_crossing_says_its_parameters_and_what_is_saved_at_twice_the_size():
    parameters, saving = said(evidence(rising))
    begin = int(parameters.split()[4])
    assert begin in range(38, 43)
    count = dataclasses.replace(TRAINING, hidden_size=begin).network.parameters
    assert parameters == f"A hidden size of {begin} gives {count:,} parameters."
    assert saving.startswith(f"At twice that, a hidden size of {2 * begin}, an epoch takes ")
    assert " on cpu and should take about " in saving
    assert " less on cuda:0 (" in saving
    assert saving.endswith("expected from 7 measured sizes.")


def test_the_saving_is_of_an_epoch_of_the_slower_device():
    """100 steps of 1 ms, of which 1 - 1/1.41 are saved."""
    *_, saving = said(evidence(rising))
    assert "takes 100 ms on" in saving or "takes 99." in saving
    assert 27 < float(saving.split("about ")[1].split(" ms")[0]) < 31


def test_where_the_baseline_wins_beyond_the_saving_is_the_baselines():
    *_, saving = said(evidence(lambda size: 1 / rising(size)))
    assert " on cuda:0 and should take about " in saving
    assert " less on cpu (" in saving


def test_beyond_the_measured_sizes_nothing_is_said_of_a_saving():
    *_, saving = said(evidence(lambda size: (size / 300) ** 0.5))
    assert "lies beyond the measured sizes, which end at 512: the time saved there is unknown." in saving


def test_a_loss_that_the_interval_does_not_exclude_is_named():
    *_, saving = said(evidence(lambda size: (size / 40) ** 0.02, sizes=tuple(2.0**power for power in range(0, 13))))
    assert "lost and" in saving


@pytest.mark.parametrize("speedup", [lambda size: 2.0, lambda size: 1.0])
def test_without_one_crossing_there_is_nothing_to_say(speedup):
    assert said(evidence(speedup)) == ()


def test_a_size_that_shapes_no_model_has_no_parameters_of_its_own():
    (saving,) = said(evidence(rising), axis="batch_size")
    assert saving.startswith("At twice that, a batch size of ")
