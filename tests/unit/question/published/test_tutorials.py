"""The tutorials' published numbers: complete, consistent with the presets, and apart from what is measured."""

import pytest

from core.errors import InvalidValue
from core.question.presets import PRESETS, preset
from core.question.published.tutorials import PUBLISHED, Published, published
from core.question.sweep import size_of, vary


def test_every_tutorial_published_something_and_nothing_is_of_an_unknown_one():
    assert {entry.preset for entry in PUBLISHED} == set(PRESETS)
    assert published("cifar") == ()


def test_the_figure_of_the_signal_tutorial_covers_every_size_it_varies_on_both_devices():
    sizes = preset("signal").axes[0].values
    for device in ("cpu", "gpu"):
        shown = [entry for entry in published("signal", "seconds") if entry.device == device]
        assert tuple(entry.size for entry in shown) == sizes
        assert {entry.plus_minus for entry in shown} == {15.0}


def test_the_text_of_the_signal_tutorial_agrees_with_its_own_figure_at_the_largest_size():
    (claim,) = published("signal", "speedup")
    times = {entry.device: entry.value for entry in published("signal", "seconds") if entry.size == claim.size}
    assert abs(times["cpu"] / times["gpu"] - claim.value) <= claim.plus_minus


def test_the_disc_tutorials_threshold_lies_where_it_says_seven_hundred_thousand_parameters_are():
    (claim,) = published("disc", "wins_from")
    point = vary(preset("disc").point, {claim.axis: int(claim.value)})
    assert size_of(point, "parameters") == pytest.approx(700_000, rel=0.01)


def test_the_mnist_lab_has_as_many_epochs_on_each_device_as_its_preset():
    epochs = [(entry.device, entry.epoch) for entry in published("mnist-linear", "seconds")]
    count = preset("mnist-linear").point.epochs
    assert epochs == [(device, epoch) for device in ("cpu", "gpu") for epoch in range(1, count + 1)]


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda entry: f"{entry.preset}-{entry.quantity}")
def test_a_number_lies_on_an_axis_that_its_tutorial_varies(entry):
    axes = {axis.name: axis.values for axis in preset(entry.preset).axes}
    if entry.axis:
        assert (entry.size or entry.wins_from) in axes[entry.axis]
    else:
        assert (entry.size, entry.wins_from) == (None, None)
    assert entry.source
    assert entry.note.endswith(".")


def test_an_entry_holds_exactly_one_number():
    about = {"preset": "disc", "source": "somebody", "date": "", "note": "Said so."}
    with pytest.raises(InvalidValue, match="exactly one of seconds, speedup, accuracy, wins_from"):
        Published(**about)
    with pytest.raises(InvalidValue, match="exactly one of"):
        Published(**about, seconds=1.0, speedup=2.0)


def test_only_known_quantities_can_be_asked_for():
    with pytest.raises(InvalidValue, match="one of seconds, speedup"):
        published("disc", "joules")
