import dataclasses
import json
from typing import Any

import pytest

from core.errors import CrossoverError, InvalidValue
from core.results.exhibits import MAX_ENTRIES, MAX_NAME, MAX_PARTS, MAX_TEXT, Clock, Exhibit, FirstStep
from tests import exhibited

KINDS = (exhibited.CLOCK, exhibited.MOVING, exhibited.FIRST_STEP)


def through_json(data: object) -> Any:
    return json.loads(json.dumps(data))


@pytest.mark.parametrize("demonstration", KINDS, ids=lambda asked: asked.kind)
def test_what_is_written_down_is_read_back_equal(demonstration):
    shown = exhibited.exhibit(demonstration)
    assert Exhibit.from_json(through_json(shown.to_json())) == shown
    assert shown.kind == demonstration.kind


def changed(demonstration, path: tuple[Any, ...], value: object) -> Any:
    """An exhibit's data with one entry replaced."""
    data = through_json(exhibited.exhibit(demonstration).to_json())
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


CLOCK, MOVING, FIRST_STEP = KINDS


@pytest.mark.parametrize(
    ("demonstration", "path", "value"),
    [
        (CLOCK, ("id",), "../../etc/passwd"),
        (CLOCK, ("id",), 7),
        (CLOCK, ("cpu_name",), "x" * (MAX_NAME + 1)),
        (CLOCK, ("cpu_name",), "a\x00b"),
        (CLOCK, ("content", "variants", 0, "title"), "a\u2028b"),
        (CLOCK, ("measured_at",), "soon"),
        (CLOCK, ("measured_at",), "9" * 1_000),
        (CLOCK, ("demonstration", "budget_s"), 10**400),
        (CLOCK, ("demonstration", "budget_s"), float("nan")),
        (CLOCK, ("demonstration", "point", "learning_rate"), 10**400),
        (CLOCK, ("demonstration", "contenders"), [f"cpu@{'1' * 5_000}"]),
        (CLOCK, ("demonstration", "kind"), "moving"),
        (CLOCK, ("participants",), {}),
        (CLOCK, ("participants", 0, "threads"), -1),
        (CLOCK, ("participants", 0, "threads"), True),
        (CLOCK, ("participants", 0, "startup_s"), "soon"),
        (CLOCK, ("content",), None),
        (CLOCK, ("content", "variants"), []),
        (CLOCK, ("content", "variants", 0, "name"), "theirs"),
        (CLOCK, ("content", "variants", 1, "name"), "ours"),
        (CLOCK, ("content", "variants", 0, "epoch_s"), []),
        (CLOCK, ("content", "variants", 0, "epoch_s"), [0.0]),
        (CLOCK, ("content", "variants", 0, "epoch_s"), [5e-324]),
        (CLOCK, ("content", "variants", 0, "explains"), "x" * (MAX_TEXT + 1)),
        (CLOCK, ("content", "notes"), ["x"] * (MAX_PARTS + 1)),
        (CLOCK, ("content", "variants", 0, "epoch_s"), [float("nan")]),
        (CLOCK, ("content", "variants", 0, "epoch_s"), [float("inf")]),
        (CLOCK, ("content", "variants", 0, "epoch_s"), [10**400]),
        (CLOCK, ("content", "variants", 0, "epoch_s"), [1.0] * (MAX_ENTRIES + 1)),
        (CLOCK, ("content", "variants", 0, "steps"), 1.5),
        (MOVING, ("content", "snippets", 0, "code"), None),
        (MOVING, ("content", "notes"), [1]),
        (FIRST_STEP, ("content", "parameters"), []),
        (FIRST_STEP, ("content", "parameters", 0), ["weight"]),
        (FIRST_STEP, ("content", "parameters", 0, 1), -1.0),
        (FIRST_STEP, ("content", "contenders"), ["cpu"]),
    ],
)
def test_data_that_no_lesson_can_have_written_are_refused(demonstration, path, value):
    with pytest.raises(CrossoverError):
        Exhibit.from_json(changed(demonstration, path, value))


def test_what_a_newer_version_says_besides_is_passed_over():
    data = through_json(exhibited.exhibit(CLOCK).to_json())
    for place in (data, data["participants"][0], data["content"], data["content"]["variants"][0]):
        place["invented_later"] = {"deep": [1]}
    assert Exhibit.from_json(data) == Exhibit.from_json(through_json(Exhibit.from_json(data).to_json()))


def test_content_of_another_kind_is_refused():
    with pytest.raises(InvalidValue, match="content"):
        exhibited.exhibit(exhibited.MOVING, content=exhibited.clocks())


def test_the_variants_of_a_contender_begin_with_ours():
    shown = Clock(variants=(exhibited.variant("no_drain"), exhibited.variant("ours")))
    assert [variant.name for variant in shown.select_variants("cpu@1")] == ["ours", "no_drain"]
    assert shown.select_variants("cuda:0") == ()


def test_each_contender_needs_our_clock_to_be_compared_with():
    with pytest.raises(InvalidValue):
        Clock(variants=(exhibited.variant("ours"), exhibited.variant("no_drain", contender="cuda:0")))


def test_devices_are_named_by_contender():
    shown = exhibited.exhibit(exhibited.FIRST_STEP)
    assert shown.device_names == {"cpu": "Test CPU", "cuda:0": exhibited.NAMES["cuda"]}


def test_the_largest_difference_is_that_of_any_parameter():
    shown = FirstStep(parameters=(("a", 1e-7), ("b", 3e-7)), loss_difference=1.0, contenders=("cpu", "cpu@1"))
    assert shown.largest == 3e-7
    assert dataclasses.replace(shown, parameters=(("a", 1e-7),)).largest == 1e-7
