"""A question as a line for people, and as the command line asks it."""

import shlex

import pytest

from core import __main__ as command_line
from core.commands import arguments
from core.question import describe
from core.question.experiment import Contender, Experiment, Point
from core.question.presets import PRESETS
from core.question.sweep import Axis, Sweep

PAIR = (Contender(threads=1), Contender())


@pytest.mark.parametrize(
    ("point", "said"),
    [
        (
            Point(epochs=1),
            "Digits, 1,257 samples · Fully connected, hidden size 128, depth 2 · batch 64 · 1 epoch · "
            "learning rate 0.1 · Preloaded on the device",
        ),
        (
            Point(dataset="mnist", model="linear", learning_rate=1.0, data_path="per_batch"),
            "MNIST, 50,000 samples · Linear · batch 64 · 100 epochs · learning rate 1 · Copied for every batch",
        ),
        (
            PRESETS["fashion-cnn"].point,
            "Fashion-MNIST, 60,000 samples · Convolutional, width 1 · batch 1,000 · 1 epoch · learning rate 0.01 · "
            "Per-sample transforms",
        ),
    ],
)
def test_a_training_is_said_in_one_line_with_the_sizes_that_shape_its_model(point, said):
    assert describe.describe_question(point) == said
    assert describe.describe_question(Experiment(point=point)) == said


def test_what_is_varied_is_left_out_or_said_first():
    assert describe.describe_question(Point(), without=["samples", "depth", "batch_size", "learning_rate"]) == (
        "Digits · Fully connected, hidden size 128 · 100 epochs · Preloaded on the device"
    )
    axes = (Axis(name="parameters", values=(1_000, 50_000)), Axis(name="learning_rate", values=(0.01, 0.1)))
    assert describe.describe_question(Sweep(point=Point(), axes=axes, contenders=PAIR)) == (
        "Parameters 1,000 to 50,000, learning rate 0.01 to 0.1 · "
        "Digits, 1,257 samples · Fully connected, depth 2 · batch 64 · 100 epochs · Preloaded on the device"
    )


@pytest.mark.parametrize("name", PRESETS)
def test_the_command_of_a_training_asks_for_it(name):
    asked = Experiment(point=PRESETS[name].point, contenders=PAIR, budget_s=90)
    options = command_line.parser().parse_args(shlex.split(describe.build_command(asked))[3:])
    assert arguments.point(options) == asked.point
    assert (options.devices, options.budget_s) == ("cpu@1,cpu", 90)


def test_a_sweep_of_what_is_no_size_has_a_command_with_its_values():
    axis = Axis(name="learning_rate", values=(0.01, 0.5))
    said = describe.build_command(Sweep(point=Point(), axes=(axis,), contenders=PAIR, pairs=4))
    assert said.endswith(
        "--axis learning_rate --values 0.01,0.5 --devices cpu@1,cpu --budget 600 --point-budget 20 --pairs 4"
    )


def test_options_leave_out_what_is_not_asked_and_repeat_what_is_asked_several_times():
    given = {"preset": None, "axis": ["depth=2,4", "width=1"], "budget_s": 60, "adaptive": True, "fresh": False}
    assert describe.format_options(given) == "--axis depth=2,4 --axis width=1 --budget 60 --adaptive"
    assert describe.format_options({"nickname": "two words"}) == "--nickname 'two words'"
