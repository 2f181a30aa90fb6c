"""Refusals as people read them: names of controls everywhere, and on a page those of what they offer."""

import pytest

from core.errors import CrossoverError, InvalidValue, require_choice
from core.question import describe
from core.question.experiment import Contender, Point
from core.question.fields import AXES, FIELDS
from core.question.presets import PRESETS
from core.question.sweep import Axis

CALLED = {"hidden_size": "Hidden size", "hidden_size_range": "Hidden size", "budget_s": "Time budget"}


@pytest.mark.parametrize(("field", "name"), [*CALLED.items(), ("who_may_run", "who_may_run")])
def test_a_value_is_named_as_its_control_is_and_a_key_of_a_file_as_it_stands_there(field, name):
    error = InvalidValue(field, "x", "something else")
    assert describe.format_page_error(error) == f"{name} must be something else (got 'x')."
    assert str(error) == f"{field} must be something else (got 'x')."


@pytest.mark.parametrize(
    ("field", "option"),
    [
        ("hidden_size", "--hidden-size"),
        ("budget_s", "--budget"),
        ("point_budget_s", "--point-budget"),
        ("contenders", "--devices"),
        ("recipes", "--clocks"),
        ("range", "--range"),
        ("who_may_run", "who_may_run"),
    ],
)
def test_the_command_line_names_the_option_that_sets_the_value(field, option):
    error = InvalidValue(field, 99_999_999, "1 to 16,384")
    assert describe.format_command_error(error) == f"{option} must be 1 to 16,384 (got 99,999,999)."


def test_what_is_varied_is_called_as_its_option_on_the_command_line_and_as_its_control_on_a_page():
    error = InvalidValue("axis", "", "one of {}", ["depth"])
    assert describe.format_command_error(error) == "--axis must be one of depth (got nothing)."
    assert describe.format_page_error(error) == "Vary must be one of Depth (got nothing)."


@pytest.mark.parametrize(
    ("refuse", "typed", "shown"),
    [
        (lambda: Point(dataset="cifar"), "one of disc, signal,", "one of Disc (synthetic), Signal and background"),
        (
            lambda: Point(data_path="pigeon"),
            "one of resident, per_batch,",
            "one of Preloaded on the device, Copied for every batch,",
        ),
        (lambda: Axis(name="colour", values=(1,)), "one of hidden_size, depth,", "one of Hidden size, Depth,"),
        (
            lambda: require_choice("preset", "discs", PRESETS),
            "one of disc, signal,",
            "one of Points in a disc, Signal and",
        ),
    ],
    ids=["data set", "data path", "axis", "preset"],
)
def test_what_may_be_chosen_has_its_names_on_a_page_and_stays_as_one_types_it_on_the_command_line(refuse, typed, shown):
    with pytest.raises(InvalidValue) as raised:
        refuse()
    assert typed in describe.format_command_error(raised.value)
    assert shown in describe.format_page_error(raised.value)


def test_every_axis_has_a_name_in_a_refusal():
    with pytest.raises(InvalidValue) as raised:
        Axis(name="colour", values=(1,))
    said = describe.format_page_error(raised.value)
    assert [name for name in AXES if FIELDS[name].label not in said] == []
    assert "_" not in said


def test_an_error_of_another_kind_is_said_as_it_is():
    error = CrossoverError("So it is.")
    assert (describe.format_page_error(error), describe.format_command_error(error)) == ("So it is.", "So it is.")


def test_a_word_is_told_from_others_whatever_is_given_for_it():
    assert require_choice("scale", "full", ("class", "full")) == "full"
    for strange in (None, 1, ["full"], Contender()):
        with pytest.raises(InvalidValue, match="one of class, full"):
            require_choice("scale", strange, ("class", "full"))
