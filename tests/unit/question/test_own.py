"""A training of one's own as plain data: what it is known by, and the ways by which it never comes in."""

import dataclasses

import pytest

from core.classroom.question import ANYBODY, ClassQuestion
from core.errors import InvalidValue, NotAllowed
from core.question import custom, describe, lanes, policy
from core.question.demonstrations import Demonstration
from core.question.experiment import EVERY_EPOCH, Contender, Experiment, Point
from core.question.sweep import Axis, Sweep

POINT = Point(training="my_training.py:build", source_hash="0123456789abcdef", size=512)
PAIR = (Contender(), Contender(threads=1))


def asked(**changes):
    return Experiment(**{"point": POINT, "contenders": PAIR, "folder": "/home/me", **changes})


def swept(**changes):
    axes = (Axis.from_range("size", 64, 4096),)
    return Sweep(**{"point": POINT, "axes": axes, "contenders": PAIR, "folder": "/home/me", **changes})


@pytest.mark.parametrize("question", [asked(), swept(), swept(adaptive=True, axes=(Axis.from_range("size", 1, 9),))])
def test_a_question_survives_the_file_of_its_job(question):
    assert type(question).from_json(question.to_json()) == question


def test_where_the_file_lies_is_no_part_of_the_identity_and_its_source_is():
    assert asked(folder="/elsewhere").id == asked().id
    assert swept(folder="/elsewhere").id == swept().id
    other = dataclasses.replace(POINT, source_hash="fedcba9876543210")
    assert asked(point=other).id != asked().id
    assert swept(point=other).id != swept().id


def test_it_is_measured_for_its_times_as_nobody_knows_its_epochs():
    assert asked().pairs != EVERY_EPOCH
    assert asked(pairs=7).pairs == 7


def test_what_is_said_of_the_catalogue_says_nothing_of_it():
    told = dataclasses.replace(POINT, batch_size=64, learning_rate=0.5, epochs=9, data_path="loader")
    assert told == POINT
    assert (told.dataset, told.model, told.data_path, told.total_steps) == (
        custom.CUSTOM,
        custom.CUSTOM,
        custom.CUSTOM,
        1,
    )


@pytest.mark.parametrize("field", custom.FIELDS)
def test_nothing_of_it_is_read_from_a_link_or_an_option(field):
    with pytest.raises(InvalidValue, match=rf"\(got '{field}'\)"):
        Point.parse({field: getattr(POINT, field)})


@pytest.mark.parametrize(
    "changes",
    [
        {"training": ""},
        {"training": "../up.py:build"},
        {"training": "my_training.py"},
        {"training": "my_training.py:a b"},
        {"training": "my\nname.py:build"},
        {"source_hash": ""},
        {"source_hash": "0123"},
        {"size": 0},
        {"size": True},
        {"size": 2**60},
    ],
)
def test_half_of_one_is_refused(changes):
    with pytest.raises(InvalidValue):
        dataclasses.replace(POINT, **changes)


def test_it_is_varied_along_its_size_and_nothing_else_is():
    assert [point.size for point in swept().points] == [64, 128, 256, 512, 1024, 2048, 4096]
    with pytest.raises(InvalidValue, match="size"):
        swept(axes=(Axis.from_range("hidden_size", 64, 128),))
    with pytest.raises(InvalidValue, match="custom script"):
        swept(point=Point())


def test_it_runs_in_the_lanes_that_leave_its_code_as_it_is_and_in_no_other():
    for words in ("compiled10", "graph", "fused", "micro8", "channels_last"):
        with pytest.raises(InvalidValue, match="do not change the code"):
            asked(contenders=(Contender.parse(f"cpu+{words}"),))
    worth = {host: [lane.words for lane in lanes.worth_trying(POINT, on_host=host)] for host in (True, False)}
    assert worth == {True: [("compiled",), ("kept",), ("bf16",)], False: [("compiled",), ("bf16",), ("tf32",)]}
    assert asked(contenders=(Contender.parse("cpu@1"), Contender.parse("cpu@1+compiled+bf16")))


def test_nobody_s_code_is_run_for_a_class_a_lesson_or_on_a_host(monkeypatch, tmp_path):
    with pytest.raises(InvalidValue, match="class"):
        ClassQuestion(title="", words="", question=asked(contenders=ANYBODY))
    with pytest.raises(InvalidValue):
        Demonstration.from_json({**Demonstration(kind="clock").to_json(), "point": POINT.to_json()})
    policy.check_custom_allowed(asked())
    path = tmp_path / "crossover.toml"
    path.write_text('who_may_run = "everybody"\n')
    monkeypatch.setenv(policy.POLICY_VARIABLE, str(path))
    for question in (asked(), swept()):
        with pytest.raises(NotAllowed, match=r"crossover\.toml"):
            policy.check_custom_allowed(question)
        with pytest.raises(NotAllowed, match="host"):
            policy.load_policy().check(question)
    policy.check_custom_allowed(Experiment(point=Point()))


def test_a_line_and_a_command_say_what_it_is():
    assert describe.describe_question(asked()) == "my_training.py:build (your script, source 012345), size 512"
    assert describe.describe_question(swept()).endswith("my_training.py:build (your script, source 012345)")
    assert "run --training my_training.py:build --size 512 --devices cpu,cpu@1" in describe.build_command(asked())
    assert "sweep --training my_training.py:build --axis size --range 64:4096" in describe.build_command(swept())


def test_a_file_is_found_with_its_function(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("")
    assert custom.locate_script(f"{path}:make") == (path, "make")
    assert custom.locate_script(str(path)) == (path, custom.DEFAULT_FUNCTION)
    for wrong in ("nowhere.py:build", str(tmp_path), f"{path}:not a name", ""):
        with pytest.raises(InvalidValue, match="training"):
            custom.locate_script(wrong)
