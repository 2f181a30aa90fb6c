"""The store gives rows: what is read of which files, of earlier and newer versions, and what is kept in memory."""

import errno
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidValue, StoreError
from core.question.experiment import Point
from core.results import index
from core.results import store as store_module
from core.results.index import File
from core.results.parquet import to_table
from core.results.schema import SCHEMA, SCHEMA_VERSION, VERSION_KEY, Trial
from core.results.store import GALLERY, Store
from tests.rows import RUN_ID, run, trial
from tests.unit.results.foreign import OTHER_RUN, having, of_version, put


def test_a_folder_that_does_not_exist_is_an_empty_store(store):
    contents = store.read()
    assert contents.table.num_rows == 0
    assert contents.table.schema.equals(SCHEMA)
    assert (contents.skipped, contents.newer) == ((), ())


def test_some_columns_can_be_read_alone_and_of_a_trial_the_best_row_counts_all_the_same(store):
    for row in (trial(outcome="stopped", steps=90), trial(), trial(contender="cuda:0")):
        store.add(row)
    table = store.read(["loss", "run_id"]).table
    assert table.column_names == ["run_id", "loss"]
    assert table.num_rows == 2


def test_a_store_that_is_no_folder_cannot_be_read(tmp_path):
    (tmp_path / "rows").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be read"):
        Store(tmp_path / "rows").read()


def test_files_that_are_not_rows_are_not_looked_at(store):
    path = store.add(trial())
    (store.folder / f".{path.name}.tmp").write_bytes(path.read_bytes()[:500])
    (store.folder / "README.md").write_text("notes")
    (store.folder / "folder.parquet").mkdir()
    assert store.read().skipped == ()
    assert len(store.trials()) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(store):
    store.add(trial())
    os.mkfifo(store.folder / "pipe.parquet")
    assert len(store.trials()) == 1


@pytest.mark.skipif(os.name == "nt", reason="making links needs rights on Windows")
def test_a_linked_file_is_read_and_a_dead_link_is_not(store, tmp_path):
    elsewhere = Store(tmp_path / "elsewhere").add(trial())
    store.folder.mkdir()
    (store.folder / "link.parquet").symlink_to(elsewhere)
    (store.folder / "dead.parquet").symlink_to(tmp_path / "nothing")
    assert store.trials() == [trial()]


@pytest.mark.skipif(os.name == "nt", reason="making links needs rights on Windows")
def test_links_that_lead_nowhere_or_in_a_circle_are_named_and_hide_no_other(store):
    store.add(trial())
    (store.folder / "loop.parquet").symlink_to(store.folder / "loop.parquet")
    (store.folder / "dead.parquet").symlink_to(store.folder / "nothing")
    for _ in range(2):
        contents = store.read()
        assert [skipped.name for skipped in contents.skipped] == ["dead.parquet", "loop.parquet"]
        assert all(skipped.reason.startswith("it cannot be read: ") for skipped in contents.skipped)
        assert store.trials() == store.trials(run_id=RUN_ID) == [trial()]
    (store.folder / "loop.parquet").unlink()
    (store.folder / "dead.parquet").unlink()
    assert store.read().skipped == ()


@pytest.mark.skipif(os.name == "nt", reason="such names are not possible on Windows")
def test_a_name_that_cannot_be_printed_is_named_as_far_as_it_can(store):
    store.add(trial())
    (store.folder / os.fsdecode(b"\xff\x1b[31m.parquet")).write_bytes(b"PAR1")
    (skipped,) = store.read().skipped
    assert skipped.name == "\ufffd\ufffd[31m.parquet"
    assert store.trials() == [trial()]


def test_a_file_that_may_not_be_read_is_named(store, monkeypatch):
    closed = store.add(trial(run_id=OTHER_RUN))
    store.add(trial())
    real = pq.ParquetFile

    def opened(source: Path, **options: Any) -> pq.ParquetFile:
        if source == closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(source))
        return real(source, **options)

    monkeypatch.setattr(pq, "ParquetFile", opened)
    (skipped,) = store.read().skipped
    assert (skipped.name, skipped.reason) == (closed.name, "it cannot be read: Permission denied")
    assert store.trials() == [trial()]


def test_a_file_that_vanishes_after_the_folder_was_listed_is_no_fault(store, monkeypatch):
    store.add(trial())
    gone = File(path=store.folder / "gone.parquet", size=1, written_ns=1)
    first, real = iter([True]), index.list_files
    monkeypatch.setattr(
        index, "list_files", lambda folder, *, now=False: real(folder) | ({gone} if next(first, False) else set())
    )
    assert store.read().skipped == ()
    assert store.trials() == [trial()]


def _interrupted(steps: int) -> Trial:
    return trial(outcome="interrupted", steps=steps)


@pytest.mark.parametrize(
    ("rows", "winner"),
    [
        ([_interrupted(100), _interrupted(900)], _interrupted(900)),
        ([_interrupted(900), _interrupted(100)], _interrupted(900)),
        ([_interrupted(2500), trial()], trial()),
        ([trial(), _interrupted(2500)], trial()),
        ([trial(outcome="stopped", steps=9_999), trial()], trial()),
    ],
    ids=["longer later", "longer first", "completed later", "completed first", "completed is worth more than steps"],
)
def test_of_rows_with_one_name_the_most_complete_is_read(store, rows, winner):
    for row in rows:
        store.add(row)
    assert store.trials() == [winner]


@pytest.mark.slow
@given(steps=st.lists(st.integers(0, 10_000), min_size=1, max_size=8))
def test_whatever_the_order_the_row_with_most_steps_is_read(steps):
    table = to_table([_interrupted(count) for count in steps])
    assert store_module.keep_most_complete(table)["steps"].to_pylist() == [max(steps)]


def test_of_rows_with_one_name_in_one_file_the_most_complete_is_read(store):
    put(store, to_table([_interrupted(100), trial(), trial(contender="cuda:0")]))
    assert store.trials() == [trial(), trial(contender="cuda:0")]


def test_rows_come_in_the_order_of_runs_and_contenders(store):
    early, late = run(run_id=OTHER_RUN, started_at="2026-11-20T00:00:00+00:00"), run()
    for row in (late[1], early[1], late[0], early[0]):
        store.add(row)
    assert store.trials() == [*early, *late]


def test_rows_are_chosen_by_run_and_by_experiment(store):
    other = run(run_id=OTHER_RUN, point=Point(dataset="disc", model="linear"))
    for row in (*run(), *other):
        store.add(row)
    assert store.trials(run_id=RUN_ID) == run()
    assert store.trials(experiment_id=other[0].experiment_id) == other
    assert store.trials(run_id=RUN_ID, experiment_id=other[0].experiment_id) == []


# Versions


def test_a_column_that_an_older_version_did_not_have_gets_its_default(store):
    older = to_table([trial()]).drop_columns(["origin", "train_accuracy", "predictions", "block_clock_mhz", "threads"])
    put(store, older)
    (row,) = store.trials()
    assert row == trial(origin="", train_accuracy=None, predictions=b"", block_clock_mhz=(), threads=0)


def test_a_missing_value_gets_its_default(store):
    put(store, having("loss_step", [None], having("loss", [None], having("message", [None]))))
    assert store.trials() == [trial(message="", loss=(), loss_step=())]


def test_a_list_of_the_blocks_that_an_older_version_did_not_have_is_not_made_up(store):
    put(store, to_table([trial()]).drop_columns(["block_load"]))
    (skipped,) = store.read().skipped
    assert "not equally long" in skipped.reason


@pytest.mark.parametrize(("version", "protocol"), [("1", 1), ("2", 1), ("4", 2), ("7", 2)])
def test_files_written_by_earlier_versions_are_read(tmp_path, version, protocol):
    """Each is a measured row as that version stored it."""
    file = shutil.copy(Path(__file__).parent / "earlier" / f"version-{version}.parquet", tmp_path)
    assert pq.read_schema(file).metadata[VERSION_KEY] == version.encode()
    (row,) = Store(tmp_path).trials()
    assert (row.protocol_version, row.contender, row.execution) == (protocol, "cpu@1", "eager")
    assert row.steps > 0
    assert row.block_steps
    assert (row.block_power_w, row.device_ecc_errors, row.startup_fresh) == ((), None, False)


@pytest.mark.slow
def test_the_gallery_is_read_whole():
    contents = Store(GALLERY).read()
    assert contents.table.num_rows > 0
    assert (contents.skipped, contents.newer) == ((), ())


def test_a_newer_file_is_not_overwritten_by_a_more_complete_row(store):
    table = of_version(to_table([_interrupted(100)]), str(SCHEMA_VERSION + 1).encode())
    path = put(store, table, store.add(_interrupted(50)).name)
    before = path.read_bytes()
    store.add(trial())
    assert store.trials() == [trial()]
    assert path.read_bytes() == before


def test_a_newer_file_is_named_read_as_far_as_known_and_left_alone(store):
    table = to_table([trial()]).append_column("invented_later", pa.array(["x"]))
    path = put(store, of_version(table, str(SCHEMA_VERSION + 1).encode()), "newer.parquet")
    before = path.read_bytes()
    store.add(trial(run_id=OTHER_RUN))
    contents = store.read()
    assert contents.newer == ("newer.parquet",)
    assert contents.skipped == ()
    assert contents.table.schema.equals(SCHEMA, check_metadata=True)
    assert trial() in store.trials()
    assert path.read_bytes() == before


# Files that change


def test_a_file_that_changed_is_decoded_again(store):
    path = put(store, to_table([trial()]))
    assert store.trials(run_id=RUN_ID) == [trial()]
    put(store, to_table([trial(contender="cuda:0")]), path.name)
    os.utime(path, ns=(1, 1))
    assert [row.contender for row in store.trials(run_id=RUN_ID)] == ["cuda:0"]


def test_a_file_of_the_same_size_that_was_written_later_is_decoded_again(store):
    path = put(store, to_table([trial(message="before")]))
    assert [row.message for row in store.trials(run_id=RUN_ID)] == ["before"]
    facts = path.stat()
    put(store, to_table([trial(message="behind")]))
    assert path.stat().st_size == facts.st_size
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1_000_000))
    assert [row.message for row in store.trials(run_id=RUN_ID)] == ["behind"]


def test_files_of_one_name_in_two_folders_are_two(store, tmp_path):
    other = Store(tmp_path / "other")
    put(store, to_table([trial(message="before")]))
    put(other, to_table([trial(message="behind")]))
    assert [row.message for row in (*store.trials(run_id=RUN_ID), *other.trials(run_id=RUN_ID))] == ["before", "behind"]


def test_a_file_that_was_removed_is_no_longer_read(store):
    path = store.add(trial())
    assert store.trials(run_id=RUN_ID)
    path.unlink()
    assert store.trials(run_id=RUN_ID) == []


@pytest.mark.slow
def test_threads_that_read_at_once_see_the_same(store):
    for row in run():
        store.add(row)
    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(lambda _: store.trials(), range(16)))
    assert all(rows == run() for rows in seen)


def test_a_store_is_named_as_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSOVER_SHARED", str(tmp_path / "shared"))
    assert Store("~/results").folder == tmp_path / "home" / "results"
    (tmp_path / "there").mkdir()
    assert Store((tmp_path / "there").as_uri()).folder.parent == tmp_path / "shared"
    with pytest.raises(InvalidValue, match=r"\(got 'ftp://…'\)"):
        Store("ftp://host/rows")
