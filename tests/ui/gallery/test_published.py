"""Studies that others published, in the Gallery."""

import pytest

from core.answer.gallery.published import load_published_studies
from tests.ui.conftest import checked, words
from tests.ui.find import alts, table
from tests.ui.gallery.seen import PAGE, cards, linked, press


def test_published_studies_have_a_list_of_their_own_in_an_empty_gallery_too(world, open_page):
    app = open_page(PAGE, view="Published")
    said = words(app)
    assert "17 of 17 published studies" in said
    assert said.count("Not measured here.") == 17 + 5
    assert "Szilard Pafka, GBM-perf, 2024-06-06" in said
    assert all(name.startswith("Published: ") for name in alts(app))


def test_they_are_found_by_answer_and_by_who_published_them_and_decided_ones_come_first(studied, open_page):
    app = open_page(PAGE, view="Published", in_publisher=["Szilard Pafka, GBM-perf"])
    assert cards(app) == ["xgboost", "lightgbm", "catboost"]
    app = open_page(PAGE, view="Published", in_answer=["cpu_always"])
    assert set(cards(app)) == {"lightgbm", "lightgbm-a10g", "bilstm-imdb"}
    order = cards(open_page(PAGE, view="Published"))
    assert order.index("catboost-a10g") < order.index("cnn-mnist"), "along a size first, along virtual CPUs last"
    assert order[-1] in ("mlp-mnist", "lstm-characters")


def test_figures_along_no_size_are_listed_below_and_hidden_by_a_filter(world, open_page):
    said = words(open_page(PAGE, view="Published"))
    assert "Published figures without a size axis" in said
    assert "It depends on the code" in said
    assert "without a size axis" not in words(open_page(PAGE, view="Published", in_answer=["cpu_always"]))


def test_no_count_selection_or_list_of_measured_rows_has_one(studied, open_page):
    app = open_page(PAGE)
    assert "3 of 3 studies" in words(app)
    assert set(cards(app)) == {of.id for of in studied.values()}
    beside = next(found for found in open_page(PAGE, study=studied["here"].id).multiselect if found.key == "beside")
    assert not any("GBM" in option for option in beside.options)


@pytest.mark.parametrize("name", ["xgboost", "signal"])
def test_a_link_opens_a_published_study_with_its_source_and_what_can_be_taken(world, open_page, name):
    app = open_page(PAGE, study=name)
    shown = next(one for one in load_published_studies() if one.name == name)
    said = words(app)
    for sentence in (shown.title, shown.headline, shown.source.cited, shown.source.cpu, shown.source.gpu):
        assert sentence in said
    assert "if readings scatter by about 5 %" in said
    assert not any("interval" in column for column in table(app, "Verdict"))
    assert {"Figures as csv", "Report as HTML"} <= {found.label for found in app.get("download_button")}
    assert f"study={name}" in said


def test_a_published_study_opens_from_its_card_and_closes_again(studied, open_page):
    app = open_page(PAGE, view="Published", in_publisher=["Szilard Pafka, GBM-perf"])
    app = press(app, "Open")
    assert linked(app, "study") == "xgboost"
    app = press(app, "Back to the list")
    assert "3 of 17 published studies" in words(app)


@pytest.mark.parametrize("first", ["measured", "published"])
def test_a_measured_and_a_published_study_stand_beside_each_other_as_two_pictures(studied, open_page, first):
    here = studied["here"].id
    pair = (here, "xgboost") if first == "measured" else ("xgboost", here)
    app = open_page(PAGE, study=pair[0])
    next(found for found in app.selectbox if found.key == "against").set_value(pair[1])
    app = checked(app.run())
    assert linked(app, "against") == pair[1]
    drawn = [name for name in alts(app) if "Gradient boosting with XGBoost" in name]
    assert len(drawn) == 1
    assert "Time" in "".join(name for name in alts(app) if name not in drawn)
    assert "Not measured here." in words(app)
    assert words(open_page(PAGE, study=pair[0], against=pair[1])) == words(app)
