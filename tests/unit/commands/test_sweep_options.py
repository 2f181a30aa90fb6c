"""What the options of `sweep` ask for."""

import pytest

from core import __main__ as command_line
from core.commands import run
from core.errors import InvalidValue
from core.question.presets import preset


def asked(*words: str):
    return run.build_sweep(command_line.parser().parse_args(["sweep", *words]))


def axes(*words: str) -> dict[str, tuple[float, ...]]:
    return {axis.name: axis.values for axis in asked(*words).axes}


def test_values_and_ranges_give_the_same_axis_in_both_ways_of_writing():
    assert axes("--axis", "hidden_size", "--values", "32,8,16") == {"hidden_size": (8, 16, 32)}
    assert axes("--axis", "hidden_size=32,8,16") == {"hidden_size": (8, 16, 32)}
    assert axes("--axis", "hidden-size", "--range", "8:64") == {"hidden_size": (8, 16, 32, 64)}
    assert axes("--axis", "hidden_size=8:64") == {"hidden_size": (8, 16, 32, 64)}


def test_several_axes_make_a_grid():
    grid = asked("--axis", "hidden_size=8,16", "--axis", "batch_size=32:128", "--axis", "learning_rate=0.01")
    assert len(grid.points) == 6
    assert {point.learning_rate for point in grid.points} == {0.01}


@pytest.mark.parametrize("name", ["disc", "signal", "fashion-cnn"])
def test_a_preset_alone_asks_for_its_tutorials_own_sweep(name):
    found = asked("--preset", name)
    assert (found.point, found.axes) == (preset(name).point, preset(name).axes)
    assert not found.adaptive


def test_an_axis_replaces_the_presets_and_an_option_its_setting():
    found = asked("--preset", "signal", "--axis", "batch_size=16,32", "--epochs", "1")
    assert [axis.name for axis in found.axes] == ["batch_size"]
    assert (found.point.dataset, found.point.hidden_size, found.point.epochs) == ("signal", 1_000, 1)


def test_an_adaptive_sweep_may_choose_between_the_values_of_the_preset():
    found = asked("--preset", "signal", "--adaptive")
    (axis,) = found.axes
    assert found.adaptive
    assert (axis.values[0], axis.values[-1]) == (5, 2_000)
    assert len(axis.values) > 20


def test_limits_and_settings_reach_the_sweep():
    words = ("--axis", "depth=1,2", "--pairs", "8", "--budget", "30", "--point-budget", "5", "--batch-size", "32")
    found = asked(*words)
    assert (found.pairs, found.budget_s, found.point_budget_s) == (8, 30.0, 5.0)
    assert found.point.batch_size == 32


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "--axis must be one of hidden_size"),
        (("--preset", "mnist-linear"), "its tutorial varies nothing"),
        (("--values", "8,16"), "with its values in --values or --range"),
        (("--axis", "hidden_size"), "--values 8,16,32 or --range 8:8192"),
        (("--axis", "hidden_size", "--values", "8:16"), "--values must be "),
        (("--axis", "hidden_size", "--range", "8,16"), "--range must be "),
        (("--axis", "hidden_size=8,16", "--values", "8"), "given with the values of each"),
        (("--axis", "hidden_size=8,16", "--axis", "depth"), "given with the values of each"),
        (("--axis", "hidden_size=8,16", "--axis", "hidden_size=32"), "different axes"),
        (("--axis", "neurons=8,16"), "--axis must be "),
        (("--axis", "hidden_size=8,many"), "--hidden-size must be "),
        (("--axis", "hidden_size=0,8"), "--hidden-size must be "),
        (("--axis", "width=1,2"), "--axis must be "),
        (("--axis", "hidden_size=8,16", "--axis", "depth=1,2", "--adaptive"), "Adaptive search must be "),
        (("--axis", "hidden_size", "--range", "8:99999999"), "--hidden-size must be "),
        (("--axis", "hidden_size=8,16", "--pairs", "1"), "--pairs must be "),
        (("--axis", "hidden_size=8,16", "--pairs", "0"), "--pairs must be "),
        (("--axis", "hidden_size=8,16", "--size", "5"), "--size must be given with --training"),
        (("--axis", "hidden_size=8,16", "--budget", "nan"), "--budget must be "),
        (("--axis", "hidden_size=8,16", "--batch-size", "9999"), "--batch-size must be "),
        (("--preset", "disc", "--model", "cnn"), "--preset must be "),
    ],
)
def test_what_contradicts_itself_is_a_usage_error_before_anything_starts(command, words, sentence):
    with pytest.raises(InvalidValue):
        asked(*words)
    done = command("sweep", *words)
    assert (done.status, done.out) == (2, "")
    assert sentence in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--size", "8"), "--axis must be size, with its values: --axis size --values 64,128"),
        (("--values", "8,16"), "--axis must be size,"),
        (("--size", "8", "--axis", "size", "--values", "8,16"), "--size must be omitted where"),
    ],
)
def test_of_ones_own_training_the_size_is_varied_and_not_said_twice(command, tmp_path, words, sentence):
    file = tmp_path / "mine.py"
    file.write_text("def build(size, device): return lambda: None\n")
    done = command("sweep", "--training", f"{file}:build", *words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(sentence)


def test_a_range_may_be_restricted_to_sizes_that_can_be_built():
    words = ("--axis", "hidden_size", "--range", "60:300", "--adaptive")
    assert all(size % 12 == 0 for size in axes(*words, "--multiples-of", "12")["hidden_size"])
    assert axes(*words, "--powers-of-two") == {"hidden_size": (64, 128, 256)}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--values", "8,16", "--multiples-of", "8"), "give --range with --multiples-of"),
        (("--range", "65:100", "--powers-of-two"), "a range with a power of two in it"),
        (("--range", "65:100", "--multiples-of", "0"), "at least 1"),
        (("--range", "65:70", "--multiples-of", "64"), "a range with a multiple of 64 in it"),
    ],
)
def test_a_restriction_that_leaves_no_size_is_refused(words, sentence):
    with pytest.raises(InvalidValue, match=sentence):
        asked("--axis", "hidden_size", *words)
