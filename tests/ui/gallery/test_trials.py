"""The Gallery's list of trials and of machines, and runs that are opened from it."""

import dataclasses

import pyarrow as pa
import pytest

from core.answer.gallery import trust
from core.question.experiment import Point
from pages.gallery import lists
from tests import rows
from tests.ui.conftest import CPU, words
from tests.ui.find import alts
from tests.ui.gallery.seen import PAGE, listed, press, table

CHARTS = "Time per step by parameters"


def marks(chart):
    return pa.ipc.open_stream(chart.proto.data.data).read_all().num_rows


def test_an_empty_gallery_says_how_to_fill_it(world, open_page):
    assert "No trial is stored yet" in words(open_page(PAGE))


def test_what_is_here_is_said_in_one_line(studied, open_page):
    assert "18 trials in 3 studies from 3 machines; CPUs and NVIDIA GPUs." in words(open_page(PAGE))


def test_it_lists_every_trial_newest_first_and_draws_them(stocked, open_page):
    app = open_page(PAGE, view="Trials")
    assert "7 of 7 trials" in words(app)
    assert list(listed(app)["Source"]).count("imported") == 1
    assert list(listed(app)["Source"]).count("gallery") == 2
    assert listed(app)["Measured (UTC)"].is_monotonic_decreasing
    assert list(listed(app).columns)[:2] == ["Device", "Step (ms)"], "a phone shows no more than the first columns"
    assert alts(app) == [CHARTS]


def test_the_rows_of_a_page_can_be_downloaded(stocked, open_page):
    app = open_page(PAGE, view="Trials")
    assert not app.get("download_button")
    labels = {found.label for found in press(app, "Prepare 7 rows as files").get("download_button")}
    assert any("7 rows" in label for label in labels)


def test_single_runs_without_any_study_are_shown_at_once(stocked, open_page):
    app = open_page(PAGE)
    assert "No study is stored yet" in words(app)
    assert len(listed(app)) == 7


@pytest.mark.parametrize(
    ("link", "count"),
    [
        ({"in_dataset": ["mnist"]}, 2),
        ({"in_kind": ["cuda", "mps"]}, 3),
        ({"in_device": ["NVIDIA Test GPU"]}, 2),
        ({"in_source": ["imported"]}, 1),
        ({"in_dataset": ["mnist"], "in_kind": ["cpu"]}, 1),
        ({"in_outcome": ["completed"]}, 7),
        ({"in_trust": ["full"]}, 7),
        ({"in_protocol": [str(rows.trial().protocol_version)]}, 7),
    ],
)
def test_a_link_filters(stocked, open_page, link, count):
    app = open_page(PAGE, view="Trials", **link)
    assert f"{count} of 7 trials, filtered by " in words(app)
    assert len(listed(app)) == count


def test_filters_that_leave_nothing_leave_no_chart(stocked, open_page):
    app = open_page(PAGE, view="Trials", in_source="imported", in_kind="mps")
    assert not app.get("vega_lite_chart")
    assert "Nothing matches the filters" in words(app)


def test_many_trials_are_few_marks_and_come_in_pages(world, open_page):
    number = lists.LINES // 2 + 5
    found = []
    for place in range(number):
        found += rows.run(run_id=f"{place:012x}", pairs=6, point=Point(hidden_size=place + 1))
    world.keep(found)
    app = open_page(PAGE, view="Trials")
    assert len(listed(app)) == lists.LINES
    assert marks(app.get("vega_lite_chart")[0]) < number
    app = open_page(PAGE, view="Trials", trials_page="2")
    assert len(listed(app)) == 2 * number - lists.LINES


def test_a_link_opens_a_run(stocked, open_page):
    assert "Export" not in words(open_page(PAGE))
    app = open_page(PAGE, run="b" * 12)
    assert "The GPU is" in words(app)
    assert "hidden size 32" in words(app)
    assert "Trust: full, 9 of 9" in words(app)


def test_what_a_rows_mark_lacks_is_said_with_its_figure(world, open_page):
    world.keep(rows.run(app_commit="", pairs=4))
    said = words(open_page(PAGE, run=rows.RUN_ID, lacks="true"))
    assert "Trust: partly, 7 of 9" in said
    for sentence in trust.trust_mark(rows.run(app_commit="", pairs=4)).missing:
        assert sentence in said


def test_a_second_run_is_set_beside_the_first_with_only_what_differs(stocked, open_page):
    app = open_page(PAGE, run="a" * 12, beside="b" * 12)
    differences = table(app, "What")
    settings = dict(zip(differences["What"], differences[f"Run {'b' * 12}"], strict=True))
    assert settings["data set"] == "MNIST (70,000 images)"
    assert f"Run {'b' * 12}, GPU against CPU:" in words(app), "a sentence is no cell"
    assert "processor" not in settings
    assert "other properties are the same on both sides" in words(app)


def test_an_unknown_run_is_said_to_be_unknown(stocked, open_page):
    assert "There is no run ffffffffffff here" in words(open_page(PAGE, run="f" * 12))


def test_a_run_can_be_set_up_in_explore(stocked, open_page):
    stocked.has(CPU)
    app = press(open_page(PAGE, run="b" * 12), "Set this up in Explore")
    assert app.title[0].value == "Explore"
    assert next(found for found in app.selectbox if found.key == "dataset").value == "mnist"
    assert next(found for found in app.select_slider if found.key == "hidden_size").value == 32


def test_a_row_of_something_that_this_version_does_not_offer_is_shown_but_cannot_be_set_up(world, open_page):
    world.keep([dataclasses.replace(trial, model="transformer") for trial in rows.run()])
    app = open_page(PAGE, run=rows.RUN_ID)
    assert "cannot repeat the run" in words(app)
    assert app.get("download_button")
    assert "Set this up in Explore" not in [found.label for found in app.button]


def test_of_a_data_set_that_is_not_known_here_all_but_its_classes_is_shown(world, open_page):
    world.keep(rows.run(dataset="invented-later"))
    app = open_page(PAGE, run=rows.RUN_ID)
    assert "(got 'invented-later')" in words(app)
    assert "The GPU is" in words(app)
    assert "Export" in words(app)


def test_each_machine_has_a_line(studied, open_page):
    app = open_page(PAGE, view="Machines")
    lines = table(app, "Accelerators")
    assert sorted(lines["Machine"]) == ["Other CPU (beefbe)", "Test CPU (cccccc)", "Test CPU (feedfa)"]
    assert set(lines["Trials"]) == {6}
