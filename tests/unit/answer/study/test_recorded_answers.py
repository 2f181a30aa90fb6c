"""Answers of three hundred made-up sweeps, as they were recorded: what makes the estimator faster leaves them alone.

Who changes the method of docs/statistics.md on purpose writes them anew, with `python -m` and the name of this module.
"""

import math
import random
from dataclasses import astuple
from pathlib import Path

import pytest

from core.answer.crossover import decide_crossover
from core.answer.judgement import Crossover, Evidence

RECORDED = Path(__file__).with_name("recorded_answers.txt")
SWEEPS = 300
BLANK = Crossover(axis="hidden_size", basis="as_given", baseline="cpu", challenger="cuda:0")

CURVES = (
    lambda octave, middle: 0.55 * (octave - middle),
    lambda octave, middle: 0.4 if octave > middle else -0.4,
    lambda octave, middle: 0.8 * math.sin(2 * (octave - middle)) + 0.05 * (octave - middle),
    lambda octave, middle: 0.5 + 0.02 * (octave - middle),
    lambda octave, middle: 0.04 * (octave - middle),
    lambda octave, middle: 0.9 * (octave - middle) + (0.5 if octave > middle + 1 else 0.0),
)


def made_up(seed):
    """A sweep of 2 to 14 sizes, now and then of 60, read once or up to 8 times a size, in one visit or in many."""
    draw = random.Random(seed)
    count = 60 if seed % 25 == 24 else draw.randint(2, 14)
    curve, middle = CURVES[seed % len(CURVES)], draw.uniform(4, 11)
    readings = draw.randint(1, 8)
    paired, in_turns = draw.random() < 0.7, draw.random() < 0.5
    sign = draw.choice((-1, 1))
    noise, visit = draw.choice((0.002, 0.02, 0.05, 0.2)), draw.choice((0.0, 0.05, 0.15))
    evidence = []
    for at in range(count):
        octave = 3 + 9 * at / (count - 1)
        shift = draw.gauss(0, visit)
        base = [1e-3 * math.exp(draw.gauss(0, noise) + (draw.random() < 0.03)) for _ in range(readings)]
        other = [1e-3 * math.exp(draw.gauss(shift, noise) - sign * curve(octave, middle)) for _ in range(readings)]
        evidence.append(
            Evidence(
                size=round(2.0**octave, 3),
                baseline_s=tuple(base),
                challenger_s=tuple(other),
                paired=paired,
                visits=readings if in_turns else 1,
            )
        )
    return evidence


def answered(seed):
    """The outcome and every figure that follows from the model."""
    found = decide_crossover(made_up(seed), BLANK)
    decided = found.assumed or found
    figures = [figure for part in (*decided.crossings, *decided.clear) for figure in astuple(part)]
    widths = [size.high / size.speedup for size in found.sizes if size.high and size.speedup]
    return decided.outcome, [float(figure) for figure in (*figures, *widths, *found.contradicting)]


def recorded():
    return [line.split() for line in RECORDED.read_text().splitlines()]


@pytest.mark.parametrize("tenth", range(10))
def test_a_sweep_has_the_answer_that_was_recorded(tenth):
    for seed, (outcome, *figures) in list(enumerate(recorded()))[tenth::10]:
        now, exact = answered(seed)
        assert (seed, now) == (seed, outcome)
        assert exact == pytest.approx([float(figure) for figure in figures], rel=1e-5), seed


def test_all_kinds_of_answers_are_among_the_recorded():
    outcomes = [outcome for outcome, *_ in recorded()]
    assert len(outcomes) == SWEEPS
    assert {"crossing", "several", "undecided", "gpu_always", "cpu_always"} == set(outcomes)


if __name__ == "__main__":
    answers = map(answered, range(SWEEPS))
    lines = (" ".join((outcome, *(f"{figure:.6g}" for figure in figures))) for outcome, figures in answers)
    RECORDED.write_text("".join(f"{line}\n" for line in lines))
