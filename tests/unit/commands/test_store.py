"""The store by command: looked at, compacted, taken along, brought in."""

import errno

import pytest
from filelock import FileLock

from core.commands import store as store_command
from core.results.store import GALLERY, LOCK, Store
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
    assert done.err == "torn.parquet was left as it is: it is incomplete or not a parquet file\n"


def test_while_another_compaction_runs_it_fails_with_a_sentence(command, folder):
    with FileLock(folder / LOCK):
        done = command("store", "compact", "--store", folder)
    assert done.status == 1
    assert "is already being compacted" in done.err


def test_the_gallery_is_refused(command):
    done = command("store", "compact", "--store", GALLERY)
    assert done.status == 1
    assert "cannot be compacted" in done.err


def test_a_check_counts_each_trial_once_and_advises_where_files_are_many(command, folder, monkeypatch):
    Store(folder).add(trial())
    done = command("store", "check", "--store", folder)
    assert (done.status, done.out) == (0, f"2 rows in {folder}\n")
    monkeypatch.setattr(store_command, "MANY_FILES", 3)
    assert (
        "The rows are in 3 files. To read them faster, run: store compact"
        in command("store", "check", "--store", folder).out
    )
    assert command("store", "check", "--store", folder, "--json").json["rows"] == 2


def test_a_check_names_what_is_skipped_and_fails(command, folder):
    (folder / "torn.parquet").write_bytes(b"PAR1")
    done = command("store", "check", "--store", folder)
    assert done.status == 1
    assert "skipped torn.parquet: it is incomplete or not a parquet file" in done.out


def test_check_names_what_it_skips(command, tmp_path):
    store = Store(tmp_path)
    for row in run():
        store.add(row)
    assert command("store", "check", "--store", str(tmp_path)).out == f"2 rows in {tmp_path}\n"
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    done = command("store", "check", "--store", str(tmp_path), "--json")
    assert done.status == 1
    document = done.json
    assert document["rows"] == 2
    assert document["skipped"][0]["name"] == "torn.parquet"


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_export_writes_all_rows(command, tmp_path, kind):
    store = Store(tmp_path / "store")
    for row in run():
        store.add(row)
    file = tmp_path / f"rows.{kind}"
    done = command("store", "export", str(file), "--store", str(store.folder))
    assert (done.status, done.out) == (0, f"2 rows written to {file}\n")
    assert file.stat().st_size > 0


def test_export_needs_a_known_ending(command, tmp_path):
    done = command("store", "export", str(tmp_path / "rows.pickle"), "--store", str(tmp_path))
    assert done.status == 2
    assert "ends in .parquet or .csv" in done.err


def test_import_adds_rows_once_and_refuses_what_is_not_ours(command, tmp_path):
    there, here = Store(tmp_path / "there"), tmp_path / "here"
    for row in run():
        there.add(row)
    file = tmp_path / "rows.parquet"
    command("store", "export", str(file), "--store", str(there.folder))
    first = command("store", "import", str(file), "--store", str(here), "--json")
    again = command("store", "import", str(file), "--store", str(here), "--json")
    assert (first.json["added"], again.json["duplicates"]) == (2, 2)
    assert {row.origin for row in Store(here).trials()} == {"rows.parquet"}

    file.write_bytes(b"something else")
    refused = command("store", "import", str(file), "--store", str(here))
    assert refused.status == 1
    assert "incomplete or not a parquet file" in refused.err
    assert len(Store(here).trials()) == 2


def test_a_missing_file_is_one_sentence(command, tmp_path):
    done = command("store", "import", str(tmp_path / "nowhere.parquet"), "--store", str(tmp_path))
    assert done.status == 1
    assert "nowhere.parquet cannot be read" in done.err


@pytest.mark.parametrize(
    "words", [("store", "check"), ("store", "compact"), ("store", "export", "rows.parquet"), ("crossover",)]
)
def test_a_folder_that_is_not_there_is_no_empty_store(command, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    done = command(*words, "--store", tmp_path / "mistyped")
    assert (done.status, done.out, done.err) == (1, "", f"There is no folder {tmp_path / 'mistyped'}.\n")
    assert not list(tmp_path.glob("*"))


def test_an_export_names_the_files_whose_rows_it_lacks(command, folder, tmp_path):
    (folder / "torn.parquet").write_bytes(b"PAR1")
    done = command("store", "export", tmp_path / "rows.csv", "--store", folder)
    assert (done.status, done.out) == (0, f"2 rows written to {tmp_path / 'rows.csv'}\n")
    assert done.err == "torn.parquet is not among them: it is incomplete or not a parquet file\n"


def test_one_row_is_one_row(command, tmp_path):
    Store(tmp_path).add(trial())
    assert command("store", "check", "--store", tmp_path).out == f"1 row in {tmp_path}\n"


def test_an_export_that_cannot_be_written_leaves_the_one_before_and_a_folder_of_its_name_alone(
    command, folder, tmp_path, monkeypatch
):
    file, taken = tmp_path / "rows.parquet", tmp_path / "taken.parquet"
    file.write_bytes(b"of yesterday")
    taken.mkdir()
    assert command("store", "export", taken, "--store", folder).status == 1
    assert taken.is_dir()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    done = command("store", "export", file, "--store", folder)
    assert (done.status, done.err) == (1, f"{file} cannot be written: No space left on device.\n")
    assert file.read_bytes() == b"of yesterday"
    assert {each.name for each in tmp_path.iterdir()} == {"rows.parquet", "taken.parquet", "store"}
