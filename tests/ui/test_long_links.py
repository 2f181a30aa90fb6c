"""Links that say more than any of ours: nothing of that is read, the page opens without it and says so."""

import pytest

from pages.shared import layout, links
from tests.studies import rows_of, sweep
from tests.ui.conftest import CPU, words

PAGES = ("/compare", "/crossover", layout.GALLERY, layout.TUTORIALS, layout.LESSONS)
PAGES += (layout.DEVICES, layout.CASES, layout.CLASS)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "link",
    [
        {"lock": ",".join(f"n{number}" for number in range(50_000))},
        {"text": "x" * 500_000},
        {f"parameter{number}": "1" for number in range(900)},
        {"kept": [f"depth:{number}" for number in range(900)]},
    ],
    ids=["names", "letters", "parameters", "values"],
)
def test_what_no_link_of_ours_says_is_not_read_and_the_page_opens_as_if_it_were_not_there(world, open_page, page, link):
    world.has(CPU)
    app = open_page(page, **link)
    assert "This link has too many values" in words(app)
    assert not set(link) & set(app.query_params)
    assert len(app.warning) == 1


def test_a_parameter_that_is_too_long_takes_no_other_with_it(world, open_page):
    world.has(CPU)
    app = open_page(depth="5", text="x" * (links.MAX_VALUE_LETTERS + 1))
    assert "This link has too many values about text" in words(app)
    assert next(slider.value for slider in app.slider if slider.key == "depth") == 5


@pytest.mark.parametrize(
    ("page", "name"),
    [("/compare", "devices"), ("/crossover", "contenders")],
    ids=["compare", "crossover"],
)
@pytest.mark.parametrize(
    ("digits", "sentence"),
    [(1_900, "(got 'cpu@999"), (5_000, "This link has too many values")],
    ids=["a long number", "beyond every link"],
)
def test_a_device_with_a_number_beyond_all_bounds_is_one_sentence(world, open_page, page, name, digits, sentence):
    world.has(CPU)
    assert sentence in words(open_page(page, **{name: "cpu@" + "9" * digits}))


def test_many_names_that_the_page_has_not_share_one_sentence(world, open_page):
    world.has(CPU)
    app = open_page(lock=",".join(f"n{number}" for number in range(300)))
    (said,) = [warning.value.replace("\\", "") for warning in app.warning]
    assert "lock must be one of all, sizes, dataset," in said


def test_more_studies_than_stand_beside_one_another_are_left_out(world, open_page):
    known = [sweep(letter, machine_id=letter * 12) for letter in "abcdef"]
    world.keep(rows_of(*known))
    app = open_page(layout.GALLERY, study=known[0].id, beside=",".join(of.id for of in known[1:]))
    (chosen,) = [found.value for found in app.multiselect if found.key == "beside"]
    assert chosen == [of.id for of in known[1:4]]
