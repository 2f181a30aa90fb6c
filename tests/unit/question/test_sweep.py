"""What a sweep asks: its axes, its points, its identity, and what it refuses."""

import itertools
import json
import math

import pytest

from core.errors import InvalidValue
from core.question.experiment import Contender, Experiment, Point
from core.question.fields import ADAPTIVE_PAIRS, GRID_PAIRS, SIZE_AXES
from core.question.sweep import Axis, Sweep, size_on_axis, vary

TWO = (Contender(), Contender(device="cuda:0"))


def sweep(*axes, point=None, **changes):
    return Sweep(point=point or Point(), axes=axes, contenders=TWO, **changes)


def axis(name, *values):
    return Axis(name=name, values=values)


def test_values_of_an_axis_are_distinct_and_ascending():
    assert axis("hidden_size", 32, 8, 32, 16.0).values == (8, 16, 32)


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("hidden_size", "8,16,32", (8, 16, 32)),
        ("hidden_size", "8:64", (8, 16, 32, 64)),
        ("hidden_size", "10:50", (10, 20, 40, 50)),
        ("depth", "2:5", (2, 3, 4, 5)),
        ("parameters", "1e3:4e3", (1000, 2000, 4000)),
        ("learning_rate", "0.1, 0.01", (0.01, 0.1)),
    ],
)
def test_an_axis_is_written_as_values_or_as_a_range(name, text, values):
    assert Axis.parse(name, text).values == values


def test_an_adaptive_range_has_eight_values_in_each_doubling():
    values = Axis.parse("hidden_size", "64:1024", adaptive=True).values
    assert len(values) == 33
    ratios = [after / before for before, after in itertools.pairwise(values)]
    assert ratios == pytest.approx([2 ** (1 / 8)] * 32, rel=0.01)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("colour", "1,2", "axis must be "),
        ("hidden_size", "", "hidden_size must be "),
        ("hidden_size", "8,x", "hidden_size must be "),
        ("hidden_size", "8.5", "whole number"),
        ("hidden_size", "64:8", "lower one first"),
        ("hidden_size", "-8:8", "not negative"),
        ("hidden_size", "nan", "not negative"),
        ("learning_rate", "0.1:1", "take a range"),
        ("parameters", "0:5", "at least 1"),
        ("hidden_size", ",".join(map(str, range(1, 500))), "at most 400"),
    ],
)
def test_a_wrong_axis_gets_a_sentence(name, text, words):
    with pytest.raises(InvalidValue, match=words):
        Axis.parse(name, text)


def test_a_grid_has_every_combination_once():
    grid = sweep(axis("batch_size", 16, 32), axis("learning_rate", 0.1, 0.2))
    assert [(point.batch_size, point.learning_rate) for point in grid.points] == [
        (16, 0.1),
        (16, 0.2),
        (32, 0.1),
        (32, 0.2),
    ]


def test_a_point_becomes_an_experiment_that_is_timed_and_not_trained_to_its_end():
    asked = sweep(axis("hidden_size", 8, 16), pairs=4, point_budget_s=7)
    first = asked.experiment(asked.points[0])
    assert first == Experiment(point=Point(hidden_size=8), contenders=TWO, budget_s=7, pairs=4)


def test_pairs_are_few_where_the_search_is_adaptive():
    assert sweep(axis("hidden_size", 8, 16)).pairs == GRID_PAIRS
    assert sweep(axis("hidden_size", 8, 16), adaptive=True).pairs == ADAPTIVE_PAIRS


@pytest.mark.parametrize("wanted", [500, 10_000, 1_000_000])
@pytest.mark.parametrize(("model", "tolerance"), [("mlp", 0.2), ("doubling-mlp", 1.0), ("cnn", 0.5)])
def test_parameters_are_reached_as_nearly_as_the_family_allows(model, tolerance, wanted):
    base = Point(model=model, depth=2 if model != "cnn" else 0)
    reached = vary(base, {"parameters": wanted}).network.parameters
    least = vary(base, {"parameters": 1}).network.parameters
    assert abs(math.log2(reached / max(wanted, least))) <= tolerance


def test_no_neighbouring_size_is_nearer_to_the_wanted_parameters():
    reached = vary(Point(), {"parameters": 50_000})
    for other in (reached.hidden_size - 1, reached.hidden_size + 1):
        near = Point(hidden_size=other).network.parameters
        assert abs(math.log(near / 50_000)) >= abs(math.log(reached.network.parameters / 50_000))


def test_different_wishes_that_reach_the_same_network_are_one_point():
    assert len(sweep(axis("parameters", 700_000, 703_142, 710_000), point=Point(model="doubling-mlp")).points) == 1


@pytest.mark.parametrize("name", SIZE_AXES)
def test_a_point_knows_its_place_on_every_size_axis(name):
    point = Point(model="cnn" if name == "width" else "mlp")
    assert size_on_axis(point, name) == (point.network.parameters if name == "parameters" else getattr(point, name))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sweep(point=Point(), axes=()), "axes"),
        (lambda: sweep(axis("hidden_size", 8), axis("hidden_size", 16)), "axes"),
        (lambda: sweep(axis("width", 1, 2)), "one of hidden_size, .* the axes of this training .*'width'"),
        (lambda: sweep(axis("depth", 1, 99)), "depth must be "),
        (lambda: sweep(axis("batch_size", 64, 4096)), "training samples"),
        (lambda: sweep(axis("parameters", 1000), point=Point(model="linear")), "of batch_size, samples, the axes"),
        (lambda: sweep(axis("parameters", 1000), axis("hidden_size", 8)), "either the parameters or the size"),
        (lambda: sweep(axis("hidden_size", 8), axis("batch_size", 8), adaptive=True), "one axis"),
        (lambda: sweep(axis("learning_rate", 0.1), adaptive=True), "one axis"),
        (lambda: sweep(axis("loader_workers", 0, 1)), "data path"),
        (lambda: sweep(axis("hidden_size", 8), pairs=1), "pairs must be "),
        (lambda: sweep(axis("hidden_size", 8), budget_s=0), "budget_s must be "),
        (lambda: sweep(axis("hidden_size", 8), point_budget_s=math.nan), "point_budget_s must be "),
        (lambda: sweep(axis("batch_size", *range(1, 40)), axis("samples", *range(100, 130))), "at most 400"),
        (lambda: Sweep(point=Point(), axes=(axis("hidden_size", 8),), adaptive=True), "adaptive"),
        (lambda: Sweep(point=Point(), axes=(axis("hidden_size", 8),), contenders=(Contender(),) * 2), "devices"),
    ],
)
def test_a_sweep_that_cannot_be_tried_gets_a_sentence(make, words):
    with pytest.raises(InvalidValue, match=words):
        make()


def test_json_brings_back_an_equal_sweep():
    asked = sweep(axis("batch_size", 16, 32), axis("learning_rate", 0.1, 0.2), pairs=5, budget_s=90)
    assert Sweep.from_json(json.loads(json.dumps(asked.to_json()))) == asked


@pytest.mark.parametrize("data", [None, [], {}, {"point": {}, "axes": [1], "contenders": [], "adaptive": False}])
def test_other_json_is_refused(data):
    with pytest.raises(InvalidValue):
        Sweep.from_json(data)


def test_the_identity_is_that_of_the_question_and_not_of_the_patience():
    asked = sweep(axis("hidden_size", 8, 16))
    assert sweep(axis("hidden_size", 16, 8), budget_s=5).id == asked.id
    assert sweep(axis("hidden_size", 8, 32)).id != asked.id
    assert sweep(axis("hidden_size", 8, 16), adaptive=True).id != asked.id
