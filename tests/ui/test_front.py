"""The front page: the question, an answer that is stored, one that was published, four doors, and old links."""

import pytest

from pages.shared import navigation, permits, queries
from tests import rows
from tests.studies import rows_of, sweep
from tests.ui.conftest import words
from tests.ui.find import alts

PAGE = navigation.FRONT


@pytest.fixture
def crossing(world):
    """A stored study whose faster device changes along the hidden size."""
    study = sweep("a")
    world.keep(rows_of(study))
    return study


def test_it_asks_the_question_and_has_four_doors(world, open_page):
    app = open_page(PAGE)
    assert app.title[0].value == "When does training on a GPU pay off?"
    doors = [link.proto.label for link in app.get("page_link")][:4]
    assert doors == ["**Measure on this machine**", "**Look at results**", "**Learn**", "**Why is my GPU not faster?**"]


def test_without_a_stored_crossing_a_published_one_stands_alone_and_says_so(world, open_page):
    app = open_page(PAGE)
    assert "Published, not measured here: Szilard Pafka, GBM-perf, 2024-06-06. Gradient boosting with XGBoost" in words(
        app
    )
    assert "Open this study" in [link.proto.label for link in app.get("page_link")]
    assert not [text.value for text in app.markdown if " \\%" in text.value], "a figure may be parted from its %"
    assert "Measured:" not in words(app)


def test_a_stored_crossing_is_answered_in_words_for_people(world, crossing, open_page):
    app = open_page(PAGE)
    said = words(app)
    assert "Measured:" in said
    assert "1 CPU thread" in said or "GPU" in said
    assert "cuda:0" not in said
    assert len(alts(app)) == 2


def test_what_was_published_is_shown_where_the_store_cannot_be_read(world, open_page):
    world.store.folder.write_text("in the way")
    app = open_page(PAGE)
    assert "cannot be read" in app.warning[0].value
    assert "Published, not measured here" in words(app)
    assert len(alts(app)) == 1


def test_a_link_of_before_leads_to_compare_with_its_settings(world, open_page):
    app = open_page(PAGE, hidden_size="512")
    assert app.query_params["hidden_size"] in ("512", ["512"])
    assert app.title[0].value == "Compare"


def test_a_run_that_was_shared_before_is_shown(world, open_page):
    world.keep(rows.run())
    app = open_page(PAGE, run=rows.RUN_ID)
    assert app.title[0].value == "Compare"


def test_what_is_no_link_of_ours_stays_on_the_front_page(world, open_page):
    assert open_page(PAGE, utm_source="elsewhere").title[0].value == "When does training on a GPU pay off?"


@pytest.mark.parametrize(("on_own_machine", "started"), [(True, 1), (False, 0)])
def test_the_measuring_process_is_loaded_behind_what_is_read_on_ones_own_machine(
    world, open_page, monkeypatch, on_own_machine, started
):
    asked: list[bool] = []
    monkeypatch.setattr(permits, "on_own_machine", lambda: on_own_machine)
    monkeypatch.setattr(queries, "read_machine", lambda: asked.append(True))
    open_page(PAGE)
    assert len(asked) == started
