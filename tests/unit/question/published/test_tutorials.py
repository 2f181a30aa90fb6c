"""The tutorials' published numbers: complete, consistent with the presets, and apart from what is measured."""

import pytest

from core.question.presets import PRESETS, preset
from core.question.published import PUBLISHED, list_published
from core.question.sweep import size_on_axis, vary


def test_every_tutorial_published_something_and_nothing_is_of_an_unknown_one():
    assert {entry.preset for entry in PUBLISHED} == set(PRESETS)
    assert list_published("cifar") == ()


def test_the_figure_of_the_signal_tutorial_covers_every_size_it_varies_on_both_devices():
    sizes = preset("signal").axes[0].values
    for device in ("cpu", "gpu"):
        shown = [entry for entry in list_published("signal", "seconds") if entry.device == device]
        assert tuple(entry.size for entry in shown) == sizes
        assert {entry.plus_minus for entry in shown} == {15.0}


def test_the_text_of_the_signal_tutorial_agrees_with_its_own_figure_at_the_largest_size():
    (claim,) = list_published("signal", "speedup")
    times = {entry.device: entry.value for entry in list_published("signal", "seconds") if entry.size == claim.size}
    assert abs(times["cpu"] / times["gpu"] - claim.value) <= claim.plus_minus


def test_the_disc_tutorials_threshold_lies_where_it_says_seven_hundred_thousand_parameters_are():
    (claim,) = list_published("disc", "wins_from")
    point = vary(preset("disc").point, {claim.axis: int(claim.value)})
    assert size_on_axis(point, "parameters") == pytest.approx(700_000, rel=0.01)


def test_the_mnist_lab_has_as_many_epochs_on_each_device_as_its_preset():
    epochs = [(entry.device, entry.epoch) for entry in list_published("mnist-linear", "seconds")]
    count = preset("mnist-linear").point.epochs
    assert epochs == [(device, epoch) for device in ("cpu", "gpu") for epoch in range(1, count + 1)]


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda entry: f"{entry.preset}-{entry.quantity}")
def test_a_number_lies_on_an_axis_that_its_tutorial_varies(entry):
    axes = {axis.name: axis.values for axis in preset(entry.preset).axes}
    place = entry.value if entry.quantity == "wins_from" else entry.size
    assert place in (axes[entry.axis] if entry.axis else (None,))
    assert entry.source
    assert entry.note.endswith(".")
