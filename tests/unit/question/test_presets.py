"""The tutorials' settings, and what each of them varies."""

from itertools import pairwise

import pytest

from core.errors import InvalidValue
from core.question.presets import PRESETS, preset
from core.question.sweep import Sweep

GRIDS = {
    "disc": {"depth": tuple(range(2, 13))},
    "signal": {"hidden_size": (5, 10, 100, 1_000, 2_000)},
    "mnist-linear": {},
    "fashion-cnn": {"batch_size": (1_000, 10_000, 20_000), "loader_workers": (0, 1)},
}


def test_a_name_that_no_preset_has_is_refused_with_those_that_exist():
    with pytest.raises(InvalidValue, match="one of disc, signal, mnist-linear, fashion-cnn"):
        preset("cifar")


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_varies_what_its_tutorial_varies(name):
    assert {axis.name: axis.values for axis in preset(name).axes} == GRIDS[name]


@pytest.mark.parametrize("name", [name for name, axes in GRIDS.items() if axes])
def test_every_point_of_a_tutorials_sweep_can_be_tried_and_is_another_one(name):
    known = preset(name)
    expected = 1
    for values in GRIDS[name].values():
        expected *= len(values)
    assert len(Sweep(point=known.point, axes=known.axes).points) == expected


def test_the_disc_of_ten_layers_has_the_parameters_that_its_tutorial_names():
    known = preset("disc")
    points = {point.depth: point for point in Sweep(point=known.point, axes=known.axes).points}
    assert points[10].network.parameters == 703_142


def test_the_cnn_grid_keeps_the_tutorials_learning_rate_and_images():
    known = preset("fashion-cnn")
    points = Sweep(point=known.point, axes=known.axes).points
    assert {(point.learning_rate, point.samples, point.data_path) for point in points} == {(0.01, 60_000, "tutorial")}


DISC_PARAMETERS = {
    2: 22, 3: 70, 4: 230, 5: 806, 6: 2_982, 7: 11_430, 8: 44_710, 9: 176_806,
    10: 703_142, 11: 2_804_390, 12: 11_201_190,
}  # fmt: skip


def test_the_parameters_of_all_eleven_depths_are_those_of_the_layers_that_the_tutorial_describes():
    known = preset("disc")
    points = Sweep(point=known.point, axes=known.axes).points
    assert len(points) == 11
    for point in points:
        sizes = (2, *(2**power for power in range(2, point.depth + 1)), 2)
        weights = sum(inputs * outputs + outputs for inputs, outputs in pairwise(sizes))
        assert point.network.parameters == weights == DISC_PARAMETERS[point.depth]


@pytest.mark.parametrize("name", PRESETS)
def test_the_full_scale_is_the_tutorial_itself(name):
    known = preset(name)
    assert (known.point_at_scale("full"), known.axes_at_scale("full")) == (known.point, known.axes)


@pytest.mark.parametrize("name", PRESETS)
def test_the_class_scale_is_the_same_training_with_less_work(name):
    known = preset(name)
    small, full = known.point_at_scale("class"), known.point_at_scale("full")
    assert small.samples * small.epochs <= full.samples * full.epochs
    kept = ("dataset", "model", "hidden_size", "depth", "width", "data_path", "learning_rate", "epochs", "shuffle")
    assert {field: getattr(small, field) for field in kept} == {field: getattr(full, field) for field in kept}
    assert small.total_steps > 0
    assert known.class_note.endswith(".")


@pytest.mark.parametrize("name", [name for name, axes in GRIDS.items() if axes])
def test_the_class_sweep_varies_what_the_tutorial_varies(name):
    known = preset(name)
    assert [axis.name for axis in known.axes_at_scale("class")] == [axis.name for axis in known.axes]
    sweep = Sweep(point=known.point_at_scale("class"), axes=known.axes_at_scale("class"))
    assert len(sweep.points) <= 6


def test_a_scale_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(InvalidValue, match=r"scale must be .*one of class, full.*got 'tiny'"):
        preset("disc").point_at_scale("tiny")
    with pytest.raises(InvalidValue, match="one of class, full"):
        preset("disc").axes_at_scale("tiny")
