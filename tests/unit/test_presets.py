"""The tutorials' settings, and what each of them varies."""

import pytest

from core.errors import InvalidValue
from core.presets import PRESETS, preset
from core.sweep import Sweep

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
