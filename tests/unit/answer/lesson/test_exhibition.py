import dataclasses

import pytest

from core.answer.export import sections
from core.answer.lessons import outcomes
from core.question.demonstrations import Demonstration
from core.question.experiment import Contender
from core.results.exhibits import Clock, FirstStep
from tests import exhibited, rows

CPU, GPU = "cpu", "cuda:0"


@pytest.fixture
def shown() -> Clock:
    return exhibited.clocks(
        {
            CPU: {"no_drain": (2.0, 2.2, 1.8), "ours": (2.0, 1.0, 4.0), "disc": (3.0,)},
            GPU: {"ours": (0.5,), "no_drain": (0.005,)},
        }
    )


def test_each_clock_is_set_beside_ours_which_comes_first(shown):
    found = outcomes.compare_clocks(shown, CPU)
    assert [entry.variant.name for entry in found] == ["ours", "no_drain", "disc"]
    assert [entry.epoch_s for entry in found] == [2.0, 2.0, 3.0]
    assert [entry.against_ours for entry in found] == [1.0, 1.0, 1.5]
    assert [entry.spread for entry in found] == [4.0, pytest.approx(2.2 / 1.8), None]
    assert outcomes.compare_clocks(shown, "mps") == ()


def test_a_speedup_depends_on_the_clock_that_gave_it(shown):
    assert outcomes.clock_speedups(shown, CPU, GPU) == {"ours": 4.0, "no_drain": pytest.approx(400)}


def test_sentences_change_with_the_readings(shown):
    ours, no_drain = outcomes.compare_clocks(shown, GPU)
    assert ours.sentence == "An epoch takes 500 ms."
    assert no_drain.sentence == "“No synchronization” says 5.00 ms, 1 % of Crossover's time."
    disc = outcomes.compare_clocks(shown, CPU)[-1]
    assert disc.sentence == (
        "“As the disc tutorial” says 3.00 s, 1.50× Crossover's time, which is within the noise of Crossover's readings."
    )
    slower = dataclasses.replace(disc.variant, epoch_s=(6.0,))
    others = [variant for variant in shown.variants if variant != disc.variant]
    again = outcomes.compare_clocks(Clock(variants=(*others, slower)), CPU)[-1]
    assert again.sentence == "“As the disc tutorial” says 6.00 s, 3.00× Crossover's time."


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (0.0, "The CPU and the GPU agree to the last bit after the first step."),
        (3e-7, "differ by at most 3.0 × 10⁻⁷ after the first step, the loss not at all: that is rounding"),
        (5e-4, "more than rounding usually causes"),
        (0.02, "too much for rounding"),
    ],
)
def test_a_difference_is_judged_by_its_size(difference, words):
    found = FirstStep(
        parameters=(("layer 1 weight", difference), ("layer 1 bias", 0.0)), loss_difference=0.0, contenders=(CPU, GPU)
    )
    assert words in outcomes.first_step_sentence(found)


def test_the_text_of_a_clock_lesson_has_every_clock_and_note():
    asked = Demonstration(kind="clock", contenders=(Contender(threads=1),))
    content = dataclasses.replace(exhibited.clocks(), notes=("Something was left out.",))
    text = sections.exhibit_text(exhibited.exhibit(asked, content=content))
    assert text.startswith(f"1 CPU thread: Test CPU; torch {rows.TORCH_VERSION}, 2026-11-21")
    lines = [line.split() for line in text.splitlines() if "tutorial" in line]
    assert ["As", "the", "disc", "tutorial", "1.00", "s", "(2.00×)"] in lines
    assert "Something was left out." in text


def test_the_text_of_the_moving_lesson_has_code_and_message():
    text = sections.exhibit_text(exhibited.exhibit(exhibited.MOVING))
    assert "    print(here + there)" in text
    assert "  → RuntimeError: no" in text


def test_the_text_of_the_first_step_has_every_parameter():
    text = sections.exhibit_text(exhibited.exhibit(exhibited.FIRST_STEP))
    assert "layer 1 weight" in text
    assert "2.0 × 10⁻⁷" in text
