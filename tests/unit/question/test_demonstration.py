import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidValue
from core.question import presets
from core.question.demonstrations import LESSON_KINDS, RECIPES, SHORTCUTS, Demonstration
from core.question.experiment import Contender, Point

PAIR = (Contender(), Contender(threads=1))


@given(
    kind=st.sampled_from(tuple(LESSON_KINDS)),
    seed=st.integers(0, 100),
    budget_s=st.floats(1, 1_000),
    recipes=st.sets(st.sampled_from(tuple(RECIPES))),
)
def test_what_is_written_down_is_read_back_equal(kind, seed, budget_s, recipes):
    asked = Demonstration(kind=kind, point=Point(seed=seed), contenders=PAIR, budget_s=budget_s, recipes=tuple(recipes))
    again = Demonstration.from_json(json.loads(json.dumps(asked.to_json())))
    assert again == asked
    assert again.id == asked.id


def test_the_name_says_what_is_shown_and_not_how_long_it_may_take():
    asked = Demonstration(kind="clock", budget_s=10)
    assert Demonstration(kind="clock", budget_s=20).id == asked.id
    others = [
        Demonstration(kind="moving"),
        Demonstration(kind="clock", point=Point(seed=1)),
        Demonstration(kind="clock", contenders=(Contender(threads=1),)),
        Demonstration(kind="clock", recipes=("no_drain",)),
    ]
    assert len({asked.id, *(other.id for other in others)}) == 5


def test_all_clocks_are_shown_unless_some_are_named_and_ours_always():
    assert Demonstration(kind="clock").recipes == tuple(RECIPES)
    assert Demonstration(kind="clock", recipes=("disc", "no_drain")).recipes == ("ours", "no_drain", "disc")


def test_what_does_not_matter_to_a_kind_does_not_make_another_question():
    assert Demonstration(kind="moving", point=Point(seed=5), recipes=("disc",)) == Demonstration(kind="moving")
    assert Demonstration(kind="first_step", contenders=PAIR, recipes=("disc",)).recipes == ()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"kind": "magic"}, "lesson"),
        ({"kind": "clock", "recipes": ("sundial",)}, "recipes"),
        ({"kind": "clock", "budget_s": 0}, "budget_s"),
        ({"kind": "clock", "contenders": ()}, "devices"),
        ({"kind": "clock", "contenders": (Contender(), Contender())}, "devices"),
        ({"kind": "first_step", "contenders": (Contender(),)}, "devices"),
        ({"kind": "first_step", "contenders": (*PAIR, Contender(threads=2))}, "devices"),
    ],
)
def test_a_demonstration_that_cannot_be_given_is_refused_naming_the_field(fields, field):
    with pytest.raises(InvalidValue) as raised:
        Demonstration(**fields)
    assert raised.value.field == field


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"kind": "clock"},
        {**Demonstration(kind="clock").to_json(), "kind": 3},
        {**Demonstration(kind="clock").to_json(), "recipes": [["ours"]]},
        {**Demonstration(kind="clock").to_json(), "point": {"seed": -1}},
    ],
)
def test_foreign_data_are_refused(data):
    with pytest.raises(InvalidValue):
        Demonstration.from_json(data)


def test_every_recipe_switches_known_shortcuts_and_each_single_one_is_shown():
    for recipe in RECIPES.values():
        assert set(recipe.switched) <= set(SHORTCUTS)
        assert len(set(recipe.switched)) == len(recipe.switched)
        assert ("loader_inside" in recipe.switched) == bool(recipe.loader)
    assert RECIPES["ours"].switched == ()


def test_every_tutorial_has_a_recipe_of_its_name_which_times_more_than_blocks():
    assert {name for name, recipe in RECIPES.items() if recipe.span != "block"} == set(presets.PRESETS)


def test_a_lesson_takes_devices_without_lanes():
    with pytest.raises(InvalidValue, match="devices without a variant in a lesson"):
        Demonstration(kind="clock", contenders=(Contender.parse("cpu+compiled"),))
