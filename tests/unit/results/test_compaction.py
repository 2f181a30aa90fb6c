"""Merging the files of a store: nothing lost, nothing doubled, whoever reads, writes or is killed meanwhile."""

import errno
import math
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filelock import FileLock

from core.errors import StoreError
from core.files import atomic
from core.files.project import PROJECT
from core.results import compaction, writing
from core.results.compaction import LOCK, compact
from core.results.finding import index
from core.results.schema import SCHEMA, SCHEMA_VERSION, VERSION_KEY, Trial
from core.results.store import GALLERY, Store
from core.results.tables import to_table
from tests.rows import EXPERIMENT, run, trial

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "rows")


def names(count: int, prefix: str = "a") -> list[str]:
    return [f"{prefix}{number:011x}" for number in range(count)]


def fill(store: Store, count: int, **changes) -> list[Trial]:
    rows = [row for name in names(count) for row in run(run_id=name, pairs=4, **changes)]
    for row in rows:
        store.add(row)
    return rows


def files(store: Store) -> list[Path]:
    return sorted(store.folder.glob("*.parquet"))


def on_disk(store: Store) -> int:
    """Rows in all files, copies counted."""
    return sum(pq.read_metadata(path).num_rows for path in files(store))


def by_name(rows: list[Trial]) -> list[Trial]:
    return sorted(rows, key=lambda row: row.trial_id)


def compact_elsewhere(folder: Path) -> None:
    """As another process does; this one may be in the middle of listing."""
    code = "import sys, pathlib; from core.results import compaction; compaction.compact(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(folder)], cwd=PROJECT, check=True)


# What it does


def test_many_files_become_one_with_the_same_rows(store):
    rows = fill(store, 5)
    done = compact(store.folder)
    assert (done.merged, done.parts, done.rows, done.copies, done.left) == (10, 1, 10, 0, ())
    assert len(files(store)) == 1
    assert by_name(store.trials()) == by_name(rows)
    assert store.trials(run_id=names(5)[3]) == rows[6:8]
    assert len(store.trials(experiment_id=EXPERIMENT.id)) == 10


def test_a_second_time_there_is_nothing_to_do(store):
    fill(store, 3)
    compact(store.folder)
    before = files(store)
    assert compact(store.folder) == compaction.Compacted()
    assert files(store) == before


def test_an_empty_store_and_none_at_all_are_left_alone(store):
    assert compact(store.folder) == compaction.Compacted()
    assert not store.folder.exists()
    store.folder.mkdir()
    assert compact(store.folder) == compaction.Compacted()


def test_a_single_row_is_left_in_its_file(store):
    path = store.add(trial())
    compact(store.folder)
    assert files(store) == [path]


def test_small_parts_are_merged_with_what_came_later_and_large_ones_are_not(store, monkeypatch):
    fill(store, 3)
    compact(store.folder)
    (first,) = files(store)
    store.add(trial(run_id="b" * 12))
    compact(store.folder)
    (second,) = files(store)
    assert second != first
    monkeypatch.setattr(compaction, "SMALL_BYTES", 1)
    for name in ("c" * 12, "d" * 12):
        store.add(trial(run_id=name))
    assert compact(store.folder).merged == 2
    assert second in files(store)
    assert len(files(store)) == 2
    assert len(store.trials()) == 9


def test_beside_a_large_part_lie_its_names_and_no_compaction_opens_it_again(store, monkeypatch):
    rows = fill(store, 4)
    monkeypatch.setattr(compaction, "SMALL_BYTES", 1)
    compact(store.folder)
    (part,) = files(store)
    assert part.with_suffix(".names").exists()
    part.with_suffix(".names").unlink()  # as versions before left it, and a kill between the two
    compact(store.folder)
    assert part.with_suffix(".names").exists()
    opened, real = [], compaction.read_piece
    monkeypatch.setattr(compaction, "read_piece", lambda path, **what: opened.append(path) or real(path, **what))
    compact(store.folder)
    assert opened == []
    assert by_name(store.trials()) == by_name(rows)
    assert store.trials(run_id=names(4)[1]) == rows[2:4]


def test_parts_are_no_larger_than_readers_take(store, monkeypatch):
    rows = fill(store, 20)
    monkeypatch.setattr(writing, "PART_ROWS", 7)
    assert compact(store.folder).parts == 8  # 40, 20, 10, 5
    assert {pq.read_metadata(path).num_rows for path in files(store)} == {5}
    assert by_name(store.trials()) == by_name(rows)


def test_more_rows_than_are_sorted_at_a_time_are_merged_in_several_goes(store, monkeypatch):
    rows = fill(store, 10)
    monkeypatch.setattr(compaction, "BATCH_BYTES", 3 * to_table(rows[:2]).nbytes)
    done = compact(store.folder)
    assert (done.merged, done.rows) == (20, 20)
    assert 1 < done.parts < 10
    assert by_name(store.trials()) == by_name(rows)


def test_rows_of_one_machine_data_set_and_model_lie_together_in_the_order_of_time(store, monkeypatch):
    for number, name in enumerate(names(8)):
        moment, machine = f"2026-11-{20 - number:02}T00:00:00+00:00", f"machine{number % 2}"
        store.add(trial(run_id=name, started_at=moment, machine_id=machine))
    compact(store.folder)
    found = pq.read_table(files(store)[0]).select(["machine_id", "started_at"]).to_pylist()
    assert found == sorted(found, key=lambda row: (row["machine_id"], row["started_at"]))


def test_a_part_has_small_row_groups_checksums_and_statistics(store, monkeypatch):
    monkeypatch.setattr(writing, "GROUP_ROWS", 4)
    fill(store, 5)
    compact(store.folder)
    facts = pq.read_metadata(files(store)[0])
    assert [facts.row_group(index).num_rows for index in range(facts.num_row_groups)] == [4, 4, 2]
    assert facts.row_group(0).column(0).statistics.has_min_max
    assert facts.schema.to_arrow_schema().metadata[VERSION_KEY] == str(SCHEMA_VERSION).encode()


def test_numbers_that_are_none_survive(store):
    store.add(trial(outcome="diverged", pairs=2, loss=(math.nan, math.inf)))
    store.add(trial(run_id="b" * 12))
    compact(store.folder)
    (row,) = store.trials(run_id=trial().run_id)
    assert math.isnan(row.loss[0])
    assert row.loss[1] == math.inf


# What is there twice


def test_exact_copies_are_dropped_and_differing_rows_of_one_name_are_all_kept(store):
    short, long = trial(outcome="interrupted", steps=10), trial(outcome="interrupted", steps=90)
    for row in (short, short, long):
        store.add(row)
    done = compact(store.folder)
    assert (done.rows, done.copies) == (2, 1)
    assert on_disk(store) == 2
    assert store.trials() == [long]


def test_a_copy_of_a_row_in_a_large_part_is_dropped(store, monkeypatch):
    rows = fill(store, 3)
    compact(store.folder)
    monkeypatch.setattr(compaction, "SMALL_BYTES", 1)
    store.add(rows[0])
    assert (compact(store.folder).copies, on_disk(store)) == (1, 6)
    assert by_name(store.trials()) == by_name(rows)


def test_a_copy_is_found_even_if_its_losses_are_no_numbers(store):
    for _ in range(2):
        store.add(trial(outcome="diverged", pairs=1, loss=(math.nan,)))
    assert compact(store.folder).copies == 1


# What is left alone


def test_torn_foreign_and_newer_files_are_left_and_named(store, tmp_path):
    rows = fill(store, 2)
    table = to_table([trial(run_id="b" * 12)])
    newer = table.replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION + 1).encode()})
    pq.write_table(newer, store.folder / "newer.parquet")
    pq.write_table(table.append_column("mine", pa.array([1])), store.folder / "wider.parquet")
    pq.write_table(table.select(["trial_id"]), store.folder / "narrow.parquet")
    (store.folder / "torn.parquet").write_bytes(files(store)[0].read_bytes()[:-5])
    os.link(files(store)[0], tmp_path / "outside.parquet")
    (store.folder / "link.parquet").symlink_to(tmp_path / "outside.parquet")
    (store.folder / "notes.txt").write_text("mine")
    left = {entry.name: entry.reason for entry in compact(store.folder).left}
    assert left.keys() == {"newer.parquet", "wider.parquet", "narrow.parquet", "torn.parquet", "link.parquet"}
    assert "newer version" in left["newer.parquet"]
    assert "not known here" in left["wider.parquet"]
    assert all((store.folder / name).exists() for name in (*left, "notes.txt"))
    assert by_name(store.trials()) == by_name([*rows, trial(run_id="b" * 12)])


def test_a_file_that_was_written_anew_meanwhile_is_left(store, monkeypatch):
    fill(store, 2)
    touched, real = files(store)[0], writing.write

    def write(target: Path, table: pa.Table) -> None:
        real(target, table)
        os.utime(touched, ns=(1, 1))

    monkeypatch.setattr(writing, "write", write)
    assert compact(store.folder).merged == 3
    assert touched.exists()
    assert len(store.trials()) == 4


def test_the_gallery_is_never_compacted():
    before = sorted(GALLERY.iterdir())
    with pytest.raises(StoreError, match="kept as it is"):
        compact(GALLERY)
    assert sorted(GALLERY.iterdir()) == before


def test_an_older_files_rows_get_what_readers_took_them_to_have(store):
    fill(store, 1)
    old = to_table([trial(run_id="b" * 12)]).drop_columns(["lead_in_steps", "busy_step_s"])
    pq.write_table(old.replace_schema_metadata({VERSION_KEY: b"1"}), store.folder / "old.parquet")
    before = by_name(store.trials())
    assert compact(store.folder).merged == 3
    assert by_name(store.trials()) == before


# Faults


def test_a_full_disk_removes_nothing(store, monkeypatch):
    rows = fill(store, 3)
    before = files(store)

    def full(*_, **__) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "fsync", full)
        with pytest.raises(StoreError, match="No space left on device"):
            compact(store.folder)
    assert files(store) == before
    assert not list(store.folder.glob(".*.tmp"))
    assert by_name(store.trials()) == by_name(rows)


def test_a_part_that_cannot_be_read_back_removes_nothing(store, monkeypatch):
    rows = fill(store, 2)
    before, real = files(store), writing.write

    def torn(target: Path, table: pa.Table) -> None:
        real(target, table)
        target.write_bytes(target.read_bytes()[:-8])

    monkeypatch.setattr(writing, "write", torn)
    with pytest.raises(StoreError, match="cannot be read"):
        compact(store.folder)
    assert files(store) == before
    assert by_name(store.trials()) == by_name(rows)


def test_a_file_that_a_reader_holds_open_on_windows_goes_with_the_next_compaction(store, monkeypatch):
    rows, real = fill(store, 2), Path.unlink
    held = files(store)[0]

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path == held:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        real(path, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        assert compact(store.folder).merged == 3
    assert by_name(store.trials()) == by_name(rows)
    assert compact(store.folder).copies == 1
    assert on_disk(store) == 4


def test_two_compactions_do_not_run_at_once(store):
    rows = fill(store, 2)
    with FileLock(store.folder / LOCK), pytest.raises(StoreError, match="being compacted already"):
        compact(store.folder)
    assert len(files(store)) == 4
    compact(store.folder)
    assert by_name(store.trials()) == by_name(rows)


def test_what_a_killed_compaction_left_half_written_is_removed_and_what_others_write_is_not(store):
    fill(store, 1)
    mine, other = store.folder / f".{compaction.PREFIX}-1.parquet.12345678.tmp", store.folder / ".row.parquet.1.tmp"
    mine.write_bytes(b"PAR1")
    other.write_bytes(b"PAR1")
    compact(store.folder)
    assert (mine.exists(), other.exists()) == (False, True)


KILLED_AT_EVERY_STEP = """
import os, shutil, signal, sys
from pathlib import Path
from core.results import compaction
from core.files import atomic
from core.results.store import Store

full, work, steps = Path(sys.argv[1]), Path(sys.argv[2]), 0

def killed_at(step):
    count = 0
    def hook(event, arguments):
        nonlocal count
        if event in ("os.rename", "os.remove") or (event == "open" and str(arguments[0]).startswith(str(work))):
            count += 1
            if count == step:
                os._exit(9)
    sys.addaudithook(hook)

def flushed_at(step):  # the system flushes without telling
    count, real = 0, os.fsync
    def fsync(handle):
        nonlocal count
        count += 1
        if count == step:
            os._exit(9)
        real(handle)
    os.fsync = fsync

for kill in (killed_at, flushed_at):
    step = 1
    while True:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(full, work / "rows")
        if not (child := os.fork()):
            signal.alarm(60)  # ends whatever waits for a lock that was held when it was copied
            kill(step)
            compaction.compact(work / "rows")
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            break
        assert status == 9, status
        shutil.copytree(work / "rows", work.parent / f"{kill.__name__}-{step}")
        step += 1
        steps += 1
print(steps)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not copy processes")
def test_a_kill_at_any_step_loses_nothing_and_doubles_nothing(store, tmp_path, monkeypatch):
    rows = fill(store, 3)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLED_AT_EVERY_STEP, str(store.folder), str(tmp_path / "work")],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    killed = [Store(folder) for folder in sorted(tmp_path.glob("*_at-*"))]
    assert len(killed) == int(done.stdout) >= 12
    for left in killed:
        assert by_name(left.trials()) == by_name(rows), left.folder.name
        assert left.trials(run_id=names(3)[1]) == rows[2:4]
        assert left.read().skipped == ()
        store_of_later = left.add(trial(run_id="f" * 12))
        compact(left.folder)
        assert not store_of_later.exists()
        assert on_disk(left) == len(rows) + 1, left.folder.name
        assert by_name(left.trials()) == by_name([*rows, trial(run_id="f" * 12)])
        assert not list(left.folder.glob(".*.tmp"))


# Readers and writers meanwhile


def test_a_reader_that_listed_the_folder_before_loses_no_row(store, monkeypatch):
    rows = fill(store, 4)
    seen, real = [], index.listed

    def listed(folder: Path) -> set[index.File]:
        found = real(folder)
        if not seen:
            seen.append(True)
            compact_elsewhere(folder)
        return found

    reader = Store(store.folder)
    monkeypatch.setattr(index, "listed", listed)
    assert by_name(reader.trials()) == by_name(rows)
    seen.clear()
    for row in fill(store, 4, outcome="stopped", steps=1):
        assert row
    assert reader.trials(run_id=names(4)[2]) == rows[4:6]
    assert reader.check().rows == 8


def test_a_reader_that_knows_where_rows_were_finds_where_they_went(store, monkeypatch):
    rows = fill(store, 4)
    assert store.trials(run_id=names(4)[0]) == rows[:2]
    index_now, compacted = index.FolderIndex.now, []

    def now(self: index.FolderIndex) -> index.Findings:
        found = index_now(self)
        if not compacted:
            compacted.append(True)
            compact(store.folder)
        return found

    monkeypatch.setattr(index.FolderIndex, "now", now)
    assert store.trials(run_id=names(4)[2]) == rows[4:6]


def test_a_listing_that_misses_the_new_file_and_the_removed_ones_is_made_again(store, monkeypatch):
    """A folder is not listed in one moment: entries that come and go meanwhile may both be missed."""
    rows = fill(store, 4)
    real, looks = index._entries, []

    def entries(folder: Path):
        looks.append(True)
        if len(looks) == 2:
            before = {file.path for file in real(folder)}
            compact_elsewhere(folder)
            return iter([file for file in real(folder) if file.path in before])
        return real(folder)

    monkeypatch.setattr(index, "_entries", entries)
    assert by_name(Store(store.folder).trials()) == by_name(rows)


def test_readers_and_writers_go_on_while_compactions_run(store):
    rows, written, faults = fill(store, 10), [], []
    done = threading.Event()

    def write() -> None:
        for name in names(60, "b"):
            row = trial(run_id=name, pairs=2)
            store.add(row)
            written.append(row)

    def read() -> None:
        while not done.is_set():
            known = [row.trial_id for row in [*rows, *written]]
            found = [row.trial_id for row in store.trials(trial_id=known)]
            if sorted(found) != sorted(known):
                faults.append((known, found))

    with ThreadPoolExecutor(3) as others:
        writer, *readers = (others.submit(work) for work in (write, read, read))
        try:
            while not writer.done():
                compact(store.folder)
        finally:
            done.set()  # also where a writer or a compaction failed: readers wait for nothing else
    for other in (writer, *readers):
        other.result()
    compact(store.folder)
    assert faults == []
    assert by_name(store.trials()) == by_name([*rows, *written])
    assert on_disk(store) == len(rows) + len(written)
    assert store.check().skipped == ()


def test_every_column_is_where_it_was(store):
    rows = fill(store, 2)
    compact(store.folder)
    assert pq.read_schema(files(store)[0]).equals(SCHEMA)
    assert store.rows().sort_by("trial_id").equals(to_table(by_name(rows)))


@pytest.mark.parametrize(
    ("error", "said"),
    [(OSError(errno.EROFS, "Read-only file system"), "Read-only file system"), (OSError("it is gone"), "it is gone")],
)
def test_a_folder_that_cannot_be_written_is_named_with_the_reason(store, monkeypatch, error, said):
    fill(store, 2)

    def refuse(*_):
        raise error

    monkeypatch.setattr(compaction, "_compact", refuse)
    with pytest.raises(StoreError, match=f"cannot be written: {said}\\.$"):
        compact(store.folder)
