"""Numbers of controls: people see separators, and the link has none."""

import pytest

from pages.shared import layout
from tests.studies import rows_of, sweep
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import control

COMPARE, CROSSOVER, GALLERY = "/compare", "/crossover", layout.GALLERY


def linked(app, name):
    """What the link says of a control."""
    said = app.query_params[name]
    return said if isinstance(said, list) else [said]


@pytest.mark.parametrize(
    ("page", "name", "said", "value", "shown"),
    [
        (COMPARE, "hidden_size", ["4096"], 4096, "4,096"),
        (COMPARE, "samples", ["1234"], 1234, "1,234"),
        (CROSSOVER, "hidden_size_range", ["16", "1234"], (16, 1234), "1,234"),
        (CROSSOVER, "batch_size_values", ["16", "1024"], [16, 1024], "1,024"),
    ],
)
def test_a_number_is_shown_with_separators_and_linked_without(world, open_page, page, name, said, value, shown):
    world.has(CPU, GPU)
    also = {"also": ["batch_size"]} if name.startswith("batch_size") else {}
    app = open_page(page, **also, **{name: said})
    assert control(app, name).value == value
    assert shown in control(app, name).options
    assert linked(app, name) == said


def test_a_number_that_is_chosen_comes_into_the_link_even_where_it_is_the_usual_one(world, open_page):
    world.has(CPU, GPU)
    app = open_page(model="mlp")
    checked(control(app, "hidden_size").set_value(2048).run())
    assert linked(app, "hidden_size") == ["2048"]
    checked(control(app, "hidden_size").set_value(128).run())
    assert linked(app, "hidden_size") == ["128"]
    assert "epochs" not in app.query_params


def test_a_range_that_lacks_an_end_or_holds_no_number_is_the_usual_one(world, open_page):
    world.has(CPU, GPU)
    for said in (["16"], ["16", "many"]):
        assert control(open_page(CROSSOVER, hidden_size_range=said), "hidden_size_range").value == (16, 2048)


def test_so_is_the_size_of_a_study_whose_link_is_older_than_separators(world, open_page):
    of = sweep("c", sizes=(16, 256, 1024))
    world.keep(rows_of(of))
    app = open_page(GALLERY, study=of.id, size="256")
    assert control(app, "size").options == ["16", "256", "1,024"]
    assert control(app, "size").value == "256"


def test_settings_that_differ_from_what_is_shown_are_named_as_their_controls_show_them(world, open_page):
    world.has(CPU, GPU)
    of = sweep("c", sizes=(16, 256, 1024))
    world.keep(rows_of(of))
    said = words(open_page(CROSSOVER, study=of.id, axis="hidden_size", dataset="signal", epochs="2000"))
    assert "epochs 2,000, not 10" in said
