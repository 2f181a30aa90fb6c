"""`store check` and `store compact`."""

import pytest
from filelock import FileLock

from core.commands import store as store_command
from core.results.compaction import LOCK
from core.results.store import GALLERY, Store
from tests.rows import run, trial


@pytest.fixture
def folder(tmp_path):
    store = Store(tmp_path / "store")
    for row in run():
        store.add(row)
    return store.folder


def test_a_compaction_says_what_became_of_how_many_files(command, folder):
    done = command("store", "compact", "--store", folder)
    assert (done.status, done.out, done.err) == (0, "2 files with 2 rows merged into 1\n", "")
    assert Store(folder).trials() == run()
    assert command("store", "compact", "--store", folder).out == "0 files with 0 rows merged into 0\n"


def test_as_json_it_says_the_same(command, folder):
    Store(folder).add(run()[0])
    found = command("store", "compact", "--store", folder, "--json").json
    assert found == {"merged": 3, "parts": 1, "rows": 2, "copies": 1, "left": []}


def test_files_that_are_left_are_named(command, folder):
    (folder / "torn.parquet").write_bytes(b"PAR1")
    done = command("store", "compact", "--store", folder)
    assert done.status == 0
    assert done.err == "torn.parquet was left as it is: it is torn or not a parquet file\n"


def test_while_another_compaction_runs_it_fails_with_a_sentence(command, folder):
    with FileLock(folder / LOCK):
        done = command("store", "compact", "--store", folder)
    assert done.status == 1
    assert "is being compacted already" in done.err


def test_the_gallery_is_refused(command):
    done = command("store", "compact", "--store", GALLERY)
    assert done.status == 1
    assert "kept as it is" in done.err


def test_a_check_counts_each_trial_once_and_advises_where_files_are_many(command, folder, monkeypatch):
    Store(folder).add(trial())
    done = command("store", "check", "--store", folder)
    assert (done.status, done.out) == (0, f"2 rows in {folder}\n")
    monkeypatch.setattr(store_command, "MANY_FILES", 3)
    assert (
        "They are in 3 files, which are read faster after: store compact"
        in command("store", "check", "--store", folder).out
    )
    assert command("store", "check", "--store", folder, "--json").json["rows"] == 2


def test_a_check_names_what_is_skipped_and_fails(command, folder):
    (folder / "torn.parquet").write_bytes(b"PAR1")
    done = command("store", "check", "--store", folder)
    assert done.status == 1
    assert "skipped torn.parquet: it is torn or not a parquet file" in done.out
