"""The Gallery page: empty, with rows of several origins, with files that cannot be read."""

import dataclasses

import pyarrow.parquet as pq
import pytest

from core.experiment import Point
from core.results.schema import SCHEMA, VERSION_KEY, to_table
from tests import rows
from tests.ui.conftest import CPU, checked, words

PAGE = "pages/results/gallery.py"


@pytest.fixture
def stocked(world):
    """Two runs measured here, one imported, one that ships."""
    world.keep(rows.run(run_id="a" * 12, started_at="2026-11-01T00:00:00+00:00"))
    world.keep(rows.run(run_id="b" * 12, point=Point(dataset="mnist", hidden_size=32)))
    world.keep(rows.run({"cpu": 1e-3}, run_id="c" * 12, origin="friend.parquet", machine_id="1" * 12))
    for trial in rows.run({"cpu": 1e-3, "mps": 1e-3}, run_id="d" * 12):
        world.gallery.add(trial)
    return world


def listed(app):
    return app.dataframe[0].value


def test_an_empty_gallery_says_how_to_fill_it(world, open_page):
    assert "No trial is stored yet" in words(open_page(PAGE))


def test_it_lists_every_trial_newest_first_and_draws_them(stocked, open_page):
    app = open_page(PAGE)
    assert "7 of 7 trials" in words(app)
    assert list(listed(app)["Source"]).count("imported") == 1
    assert list(listed(app)["Source"]).count("gallery") == 2
    assert listed(app)["Measured (UTC)"].is_monotonic_decreasing
    assert [chart.proto.alt for chart in app.get("vega_lite_chart")] == ["Time per step by parameters"]
    assert {found.label for found in app.get("download_button")} == {"7 rows as parquet", "7 rows as csv"}


@pytest.mark.parametrize(
    ("link", "count"),
    [
        ({"in_dataset": ["mnist"]}, 2),
        ({"in_kind": ["cuda", "mps"]}, 3),
        ({"in_source": ["imported"]}, 1),
        ({"in_dataset": ["mnist"], "in_kind": ["cpu"]}, 1),
        ({"in_outcome": ["completed"]}, 7),
    ],
)
def test_a_link_filters(stocked, open_page, link, count):
    app = open_page(PAGE, **link)
    assert f"{count} of 7 trials" in words(app)
    assert len(listed(app)) == count


def test_filters_that_leave_nothing_leave_no_chart(stocked, open_page):
    app = open_page(PAGE, in_source="imported", in_kind="mps")
    assert not app.get("vega_lite_chart")


def test_a_link_opens_a_run(stocked, open_page):
    assert "Take it along" not in words(open_page(PAGE))
    app = open_page(PAGE, run="b" * 12)
    assert "cuda:0 (NVIDIA Test GPU) trains" in words(app)
    assert "hidden size 32" in words(app)


def test_an_unknown_run_is_said_to_be_unknown(stocked, open_page):
    assert "There is no run ffffffffffff here" in words(open_page(PAGE, run="f" * 12))


def test_a_run_can_be_set_up_in_compare(stocked, open_page):
    stocked.has(CPU)
    app = open_page(PAGE, run="b" * 12)
    next(found for found in app.button if found.label == "Set this up in Compare").click()
    checked(app.run())
    assert app.title[0].value == "Compare"
    assert next(found for found in app.selectbox if found.key == "dataset").value == "mnist"
    assert next(found for found in app.select_slider if found.key == "hidden_size").value == 32


def test_a_row_of_something_that_this_version_does_not_offer_is_shown_but_cannot_be_set_up(world, open_page):
    world.keep([dataclasses.replace(trial, model="transformer") for trial in rows.run()])
    app = open_page(PAGE, run=rows.RUN_ID)
    assert "cannot repeat the run" in words(app)
    assert app.get("download_button")
    assert "Set this up in Compare" not in [found.label for found in app.button]


def test_counts_that_are_not_of_the_data_set_are_refused_and_the_rest_is_shown(world, open_page):
    world.keep(rows.run(point=Point(dataset="signal"), confusion=(1, 2, 3)))
    app = open_page(PAGE, run=rows.RUN_ID)
    assert "confusion is 3, which is not allowed" in words(app)
    assert "cuda:0 (NVIDIA Test GPU) trains" in words(app)
    assert "Take it along" in words(app)


def test_files_that_cannot_be_read_are_named_with_the_reason_and_the_rest_loads(stocked, open_page):
    (stocked.store.folder / "torn <b>.parquet").write_bytes(b"PAR1 torn")
    app = open_page(PAGE)
    assert "7 of 7 trials" in words(app)
    assert list(app.dataframe[0].value["File"]) == ["torn <b>.parquet"]


def test_a_file_of_a_newer_version_is_named_and_read(stocked, open_page):
    table = to_table([rows.trial(run_id="e" * 12)]).replace_schema_metadata({VERSION_KEY: b"999"})
    assert SCHEMA.metadata[VERSION_KEY] != b"999"
    pq.write_table(table, stocked.store.folder / "newer.parquet")
    app = open_page(PAGE)
    assert "newer.parquet was written by a newer version" in words(app)
    assert "8 of 8 trials" in words(app)


def test_a_running_and_a_failed_job_do_not_disturb_it(stocked, open_page):
    stocked.end(stocked.run(), state="failed", message="No.")
    stocked.run()
    assert "7 of 7 trials" in words(open_page(PAGE))
