"""What a store says of itself: where rows lie, what a check found, which files were refused, which run answers."""

from core.files.project import PROJECT
from core.results.index import Skipped
from core.results.store import GALLERY, RESULTS, Checked, LocalMachine, Store
from tests.rows import EXPERIMENT, MACHINE_ID, RUN_ID, TORCH_VERSION, run


def test_rows_that_ship_and_rows_of_this_machine_have_folders_of_their_own():
    assert {folder.relative_to(PROJECT).as_posix() for folder in (GALLERY, RESULTS)} == {"data/gallery", "data/results"}
    assert any(GALLERY.glob("*.parquet"))


def test_the_gallery_lies_in_few_files_as_the_first_visitor_waits_until_it_is_read():
    assert len(list(GALLERY.glob("*.parquet"))) <= 20, "compact a copy of it, and ship that: docs/store.md"


def test_a_check_counts_rows_and_files_and_names_what_was_not_read(tmp_path):
    store = Store(tmp_path)
    for row in run():
        store.add(row)
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    torn = Skipped(name="torn.parquet", reason="it is incomplete or not a parquet file")
    assert store.check() == Checked(rows=2, files=2, skipped=(torn,))


def test_files_that_were_refused_when_rows_were_asked_for_by_name_are_named(tmp_path):
    store = Store(tmp_path)
    store.add(run()[0])
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    assert len(store.trials(run_id=RUN_ID)) == 1
    assert [file.name for file in store.list_refused()] == ["torn.parquet"]


def test_an_experiment_is_answered_by_its_run_and_another_by_none(tmp_path):
    store, here = Store(tmp_path), LocalMachine(machine_id=MACHINE_ID, torch_version=TORCH_VERSION)
    rows = run()
    for row in rows:
        store.add(row)
    assert store.find(EXPERIMENT, here) == rows
    assert store.find(EXPERIMENT, LocalMachine(machine_id="another", torch_version=TORCH_VERSION)) == []
