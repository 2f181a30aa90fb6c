"""Links that say more than any of ours: nothing of that is read, the page opens without it and says so."""

import pytest

from pages.shared import links, navigation
from tests.studies import rows_of, sweep
from tests.ui.conftest import CPU, words

PAGES = (navigation.COMPARE, navigation.CROSSOVER, navigation.GALLERY, navigation.TUTORIALS, navigation.LESSONS)
PAGES += (navigation.DEVICES, navigation.CASES, navigation.CLASS)


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
    assert "This link says more" in words(app)
    assert not set(link) & set(app.query_params)
    assert len(app.warning) == 1


def test_a_parameter_that_is_too_long_takes_no_other_with_it(world, open_page):
    world.has(CPU)
    app = open_page(depth="5", text="x" * (links.MAX_VALUE_LETTERS + 1))
    assert "This link says more about text than a link of this app can" in words(app)
    assert next(slider.value for slider in app.slider if slider.key == "depth") == 5


@pytest.mark.parametrize(
    ("page", "name"),
    [(navigation.COMPARE, "devices"), (navigation.CROSSOVER, "contenders")],
    ids=["compare", "crossover"],
)
@pytest.mark.parametrize(
    ("digits", "sentence"),
    [(1_900, "Devices: 'cpu@999"), (5_000, "This link says more")],
    ids=["a long number", "beyond every link"],
)
def test_a_device_with_a_number_beyond_all_bounds_is_one_sentence(world, open_page, page, name, digits, sentence):
    world.has(CPU)
    assert sentence in words(open_page(page, **{name: "cpu@" + "9" * digits}))


def test_many_names_that_the_page_has_not_share_one_sentence(world, open_page):
    world.has(CPU)
    app = open_page(lock=",".join(f"n{number}" for number in range(300)))
    (said,) = [warning.value.replace("\\", "") for warning in app.warning]
    assert "lock: 'n0, n1, n2 and 297 more' is not possible; it must be one of all, dataset," in said


def test_more_studies_than_stand_beside_one_another_are_left_out(world, open_page):
    known = [sweep(letter, machine_id=letter * 12) for letter in "abcdef"]
    world.keep(rows_of(*known))
    app = open_page(navigation.GALLERY, study=known[0].id, beside=",".join(of.id for of in known[1:]))
    (chosen,) = [found.value for found in app.multiselect if found.key == "beside"]
    assert chosen == [of.id for of in known[1:4]]
