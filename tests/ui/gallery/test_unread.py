"""What the Gallery cannot read, or takes too much, hides nothing else."""

import dataclasses
import os

import pyarrow.parquet as pq
import pytest

from core.answer.gallery import overview as gallery_table
from core.results.parquet import object_bytes, to_table
from core.results.schema import SCHEMA, VERSION_KEY
from pages.shared import cache
from tests import rows
from tests.studies import OTHER_MACHINE, rows_of, sweep
from tests.ui.conftest import checked, words
from tests.ui.find import alts
from tests.ui.gallery.conftest import STUDIES, keep_studies, stock
from tests.ui.gallery.seen import PAGE, listed, table


@pytest.fixture
def stocked(world):
    """A store of its own, to which files are added."""
    stock(world)
    return world


@pytest.fixture
def studied(world):
    """The same, with studies."""
    keep_studies(world)
    return STUDIES


@pytest.mark.skipif(os.name == "nt", reason="making links needs rights on Windows")
def test_what_cannot_be_looked_at_is_named_and_hides_neither_the_rest_nor_what_comes_later(stocked, open_page):
    folder = stocked.store.folder
    (folder / "loop.parquet").symlink_to(folder / "loop.parquet")
    (folder / "dead.parquet").symlink_to(folder / "nothing")
    app = open_page(PAGE, view="Trials", unread="true")
    assert len(listed(app)) == 7
    assert table(app, "Reason")["File"].tolist() == ["dead.parquet", "loop.parquet"]
    stocked.keep(rows.run(run_id="e" * 12))
    assert len(listed(checked(app.run()))) == 9


def test_a_store_that_is_no_folder_leaves_a_page_that_says_so(world, open_page):
    world.store.folder.write_text("in the way")
    app = open_page(PAGE)
    assert "cannot be read" in words(app)
    assert app.error


def test_rows_that_are_refused_at_the_door_are_named_and_the_rest_is_shown(stocked, open_page):
    bad = rows.plant(stocked.store, dataclasses.replace(rows.trial(run_id="e" * 12), contender="cpu@abc"))
    app = open_page(PAGE, view="Trials", unread="true")
    assert len(listed(app)) == 7
    assert table(app, "Reason")["File"].tolist() == [bad.name]
    assert "1 file could not be read" in [part.label for part in app.expander]
    assert "cpu@abc" in table(app, "Reason")["Reason"][0]


def test_a_study_whose_rows_take_too_much_is_named_and_the_others_are_shown(world, open_page, monkeypatch):
    usual, large = sweep("a"), sweep("f", pairs=2_000, loss=(), loss_step=(), **OTHER_MACHINE)
    world.keep(rows_of(usual, large))
    size = object_bytes(to_table(rows_of(large)))
    monkeypatch.setattr(cache, "MAX_READ_BYTES", size // 2)
    app = open_page(PAGE)
    assert "more than a page reads at once" in words(app)
    assert len(alts(app)) == 1
    assert "take more than" in words(open_page(PAGE, study=large.id))
    assert "are not read at once" in words(open_page(PAGE, study=usual.id, beside=large.id))
    assert "take more than" in words(open_page("/crossover", study=large.id))


def test_rows_that_turn_out_not_to_be_readable_when_they_are_opened_are_named_then(studied, open_page, world):
    bad = rows.plant(world.store, rows.trial(run_id="e" * 12, lane_loss=(1.0,) * 5_000))
    app = open_page(PAGE, run="e" * 12, unread="true")
    assert "cannot be read" in words(app)
    app = open_page(PAGE, unread="true")
    assert table(app, "Reason")["File"].tolist() == [bad.name]
    assert "lane_loss has more than 1,000 entries" in table(app, "Reason")["Reason"][0]


def test_two_rows_with_one_contender_make_a_study_that_can_be_opened(world, open_page):
    found = []
    for first, second in sweep("e").runs:
        again = {"contender": first.contender, "device": first.device, "device_kind": first.device_kind}
        found += [first, dataclasses.replace(second, **again, threads=first.threads)]
    world.keep(found)
    (line,) = gallery_table.find_study_lines(gallery_table.load_overview([(world.store, "here")]).table)
    assert "Export" in words(open_page(PAGE, study=line.id))
    assert "Export" in words(open_page(PAGE, run=line.run_ids[0]))


def test_files_that_cannot_be_read_are_named_with_the_reason_and_the_rest_loads(stocked, open_page):
    (stocked.store.folder / "torn <b>.parquet").write_bytes(b"PAR1 torn")
    app = open_page(PAGE, unread="true")
    assert "7 of 7 trials" in words(app)
    assert list(table(app, "File")["File"]) == ["torn <b>.parquet"]


def test_of_very_many_trials_the_newest_are_listed_and_the_older_ones_counted(world, open_page, monkeypatch):
    monkeypatch.setattr(gallery_table, "MOST_TRIALS", 2)
    for number in range(4):
        world.store.add(rows.trial(run_id=f"{number:012x}", started_at=f"2026-11-0{number + 1}T00:00:00+00:00"))
    app = open_page(PAGE, view="Trials")
    told = "These are the newest 2 trials. 2 older ones are stored; open them by their run's link."
    assert told in words(app)
    assert len(listed(app)) == 2


def test_a_file_of_a_newer_version_is_named_and_read(stocked, open_page):
    newer = to_table([rows.trial(run_id="e" * 12)]).replace_schema_metadata({VERSION_KEY: b"999"})
    assert SCHEMA.metadata[VERSION_KEY] != b"999"
    pq.write_table(newer, stocked.store.folder / "newer.parquet")
    app = open_page(PAGE)
    assert "newer.parquet was written by a newer version" in words(app)
    pq.write_table(newer, stocked.store.folder / "other.parquet")
    assert "newer.parquet and 1 more file were" in words(open_page(PAGE))
    assert "8 of 8 trials" in words(app)


def test_a_running_and_a_failed_job_do_not_disturb_it(stocked, open_page):
    stocked.end(stocked.run(), state="failed", message="No.")
    stocked.run()
    assert "7 of 7 trials" in words(open_page(PAGE))
