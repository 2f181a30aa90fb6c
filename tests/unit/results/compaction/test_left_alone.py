"""Merging the files of a store: what is there twice, and what is left alone."""

import errno
import math
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import StoreError
from core.results import index, parquet
from core.results import store as compaction
from core.results.parquet import to_table
from core.results.schema import SCHEMA_VERSION, VERSION_KEY
from core.results.store import GALLERY, compact
from tests.rows import trial
from tests.unit.results.compaction.filled import by_name, files, fill, on_disk

pytestmark = pytest.mark.slow


def test_exact_copies_are_dropped_and_differing_rows_of_one_name_are_all_kept(store):
    short, long = trial(outcome="interrupted", steps=10), trial(outcome="interrupted", steps=90)
    for row in (short, short, long):
        store.add(row)
    done = compact(store.folder)
    assert (done.rows, done.copies) == (2, 1)
    assert on_disk(store) == 2
    assert store.trials() == [long]


def test_a_copy_is_found_even_if_its_losses_are_no_numbers(store):
    for _ in range(2):
        store.add(trial(outcome="diverged", pairs=1, loss=(math.nan,)))
    assert compact(store.folder).copies == 1


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
    assert "unknown here" in left["wider.parquet"]
    assert left["link.parquet"] == "it is a link to another file"
    assert all((store.folder / name).exists() for name in (*left, "notes.txt"))
    assert by_name(store.trials()) == by_name([*rows, trial(run_id="b" * 12)])


def test_a_file_that_the_system_does_not_give_is_left_and_named_in_words(store, monkeypatch):
    fill(store, 1)
    refused, real = files(store)[0], compaction.read_piece

    def read(path: Path, **options: object) -> object:
        if path == refused:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, **options)

    monkeypatch.setattr(compaction, "read_piece", read)
    (left,) = compact(store.folder).left
    assert left.name == refused.name
    assert left.reason == index.unreadable_because(PermissionError(errno.EACCES, "Permission denied"))
    assert str(refused) not in left.reason


def test_what_somebody_else_removes_meanwhile_is_gone(store, monkeypatch):
    fill(store, 1)
    gone = store.folder / f".{compaction.PREFIX}-half.tmp"
    gone.touch()
    real = Path.glob

    def glob(folder: Path, pattern: str) -> list[Path]:
        found = list(real(folder, pattern))
        gone.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "glob", glob)
    assert compact(store.folder).merged == 2


def test_a_file_that_was_written_anew_meanwhile_is_left(store, monkeypatch):
    fill(store, 2)
    touched, real = files(store)[0], parquet.write_table

    def write(target: Path, table: pa.Table) -> None:
        real(target, table)
        os.utime(touched, ns=(1, 1))

    monkeypatch.setattr(parquet, "write_table", write)
    assert compact(store.folder).merged == 3
    assert touched.exists()
    assert len(store.trials()) == 4


def test_a_copy_of_a_row_in_a_large_part_is_kept_as_another_compaction_may_drop_that_one(store, monkeypatch):
    rows = fill(store, 3)
    compact(store.folder)
    monkeypatch.setattr(compaction, "SMALL_BYTES", files(store)[0].stat().st_size)
    store.add(rows[0])
    store.add(rows[1])
    assert (compact(store.folder).copies, on_disk(store)) == (0, 8)
    assert by_name(store.trials()) == by_name(rows)


def test_the_gallery_is_never_compacted():
    before = sorted(GALLERY.iterdir())
    with pytest.raises(StoreError, match="cannot be compacted"):
        compact(GALLERY)
    assert sorted(GALLERY.iterdir()) == before


def test_an_older_files_rows_get_what_readers_took_them_to_have(store):
    fill(store, 1)
    old = to_table([trial(run_id="b" * 12)]).drop_columns(["lead_in_steps", "busy_step_s"])
    pq.write_table(old.replace_schema_metadata({VERSION_KEY: b"1"}), store.folder / "old.parquet")
    before = by_name(store.trials())
    assert compact(store.folder).merged == 3
    assert by_name(store.trials()) == before
