"""Time and money of a GPU that is not here, from two typed prices."""

import dataclasses
import datetime
import json
import math

import pytest

from core.answer import predict, training_cost
from core.answer.predict import Range
from core.errors import InvalidValue
from tests.unit.answer.predict.measured_cpu import LARGE, SMALL, TINY_STEP_S, cpu_side, measured

ROWS = [measured(SMALL, TINY_STEP_S), measured(LARGE, 50e-3)]


def test_the_break_even_speedup_follows_from_the_prices_alone():
    assert training_cost.break_even_speedup(0.2, 1.99) == pytest.approx(9.95)
    assert training_cost.break_even_sentence(0.2, 1.99) == (
        "At these prices the GPU must be 9.95× as fast as the CPU to be cheaper."
    )


def test_a_cpu_that_costs_nothing_is_never_dearer():
    assert training_cost.break_even_speedup(0, 1) == math.inf
    assert "no GPU is cheaper" in training_cost.break_even_sentence(0, 1)


@pytest.mark.parametrize(("speedup", "said"), [((20, 40), "cheaper."), ((1, 5), "dearer."), ((5, 20), "inconclusive.")])
def test_the_cost_has_the_interval_of_the_speedup(speedup, said):
    found = training_cost.compare_cost(0.2, 2.0, Range(low=speedup[0], high=speedup[1]))
    assert (found.low, found.high) == (pytest.approx(10 / speedup[1]), pytest.approx(10 / speedup[0]))
    assert said in found.sentence


def test_a_choice_says_the_break_even_first_and_a_training_in_time():
    (made,) = training_cost.choose(LARGE, "v100", ROWS, prices="cpu=0.2,gpu=0.79")
    assert made.answer == "gpu_faster"
    first, second, third, *_ = made.sentences
    assert first.startswith("At these prices the GPU must be 3.95×")
    assert second == made.prediction.sentence
    assert third.startswith("The training is predicted to take")
    assert made.cpu_training_s == pytest.approx(50e-3 * LARGE.total_steps)
    assert made.gpu_epoch_s.low == pytest.approx(made.prediction.step_s.low * LARGE.steps_per_epoch)
    assert json.loads(json.dumps(made.to_json()))["cost"]["low"] == pytest.approx(made.cost.low)


def test_each_card_may_have_its_price_and_without_one_there_is_no_cost():
    first, second = training_cost.choose(LARGE, ["v100", "t4"], ROWS, prices={"cpu": 0.2, "v100": 0.79})
    assert first.break_even == pytest.approx(3.95)
    assert (second.break_even, second.cost) == (None, None)


@pytest.mark.parametrize("text", ["0.2", "cpu=0.2", "gpu=1", "cpu=x,gpu=1", "cpu=-1,gpu=1", "cpu=nan,gpu=1"])
def test_what_is_no_pair_of_prices_is_refused(text):
    with pytest.raises(InvalidValue):
        training_cost.parse_prices(text)


def test_the_size_from_which_the_gpu_is_cheaper_lies_beyond_that_from_which_it_is_faster():
    sizes = {64: 2e-4, 512: 1e-3, 4_096: 50e-3}
    rows = [measured(dataclasses.replace(SMALL, hidden_size=size), s) for size, s in sizes.items()]
    curve = predict.sample_curve(SMALL, "hidden_size", [8, *sizes], "v100", cpu_side(*rows))
    cheaper = training_cost.cheaper_from(curve, 0.2, 0.79)
    assert cheaper["high"] > curve["crossover"]["high"]
    assert training_cost.cheaper_from(curve, 0.0, 0.79) is None


def test_list_prices_are_dated_with_a_source_and_grow_stale():
    found = training_cost.load_list_prices()
    assert len(found) >= 5
    for price in found:
        assert price.source.startswith("https://")
        read = datetime.date.fromisoformat(price.retrieved)
        assert not price.is_stale(read + datetime.timedelta(days=90))
        assert price.is_stale(read + datetime.timedelta(days=91))
