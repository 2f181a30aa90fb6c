"""The store takes rows: whole or not at all, whatever becomes of the disk, and checked before a run."""

import dataclasses
import errno
import math
import os
import re
import shutil
import tempfile
import time
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import StoreError
from core.files import documents
from core.results import store as store_module
from core.results.parquet import to_table
from core.results.schema import OUTCOMES, TRIAL_COLUMNS, Trial
from core.results.store import Store
from tests import possible
from tests.rows import RUN_ID, run, trial


def test_a_row_comes_back_as_it_was_written(store):
    row = trial()
    store.add(row)
    assert store.trials() == [row]


def test_a_row_that_diverged_keeps_its_losses(store):
    store.add(trial(outcome="diverged", pairs=3, loss=(1.5, math.inf, math.nan)))
    (row,) = store.trials()
    assert row.loss[:2] == (1.5, math.inf)
    assert math.isnan(row.loss[2])


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_row_in_which_nothing_was_timed_can_be_kept(store, outcome):
    row = trial(
        outcome=outcome, pairs=0, steps=0, warmup_steps=(), warmup_s=(), epoch_check_s=None, train_accuracy=None
    )
    store.add(row)
    assert store.trials() == [row]


def test_a_row_of_nothing_but_what_it_must_have_can_be_kept(store):
    required = [c.name for c in TRIAL_COLUMNS if c.default is c.default_factory is dataclasses.MISSING]
    bare = Trial(**{name: getattr(trial(), name) for name in required})
    store.add(bare)
    assert store.trials() == [bare]


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(row=possible.rows())
def test_any_row_survives_its_file(row):
    with tempfile.TemporaryDirectory() as folder:
        Store(Path(folder)).add(row)
        assert Store(Path(folder)).trials() == [row]


def test_letters_that_cannot_be_seen_are_replaced_wherever_a_row_is_read(store):
    store.add(trial(message="a\x00b\u202ec\u2028d\x1b[31m\u200b", device_name="two\tlines\nhere"))
    for (row,) in (store.trials(), store.trials(run_id=RUN_ID)):
        assert row.message == "a\ufffdb\ufffdc\ufffdd\ufffd[31m\ufffd"
        assert row.device_name == "two\tlines\nhere"


def test_a_file_is_named_for_its_time_and_row(store):
    path = store.add(trial())
    assert re.fullmatch(rf"2026-11-21T\d+-{RUN_ID}-0-[0-9a-f]{{8}}\.parquet", path.name)


def test_nothing_but_the_file_is_left_behind(store):
    path = store.add(trial())
    assert list(store.folder.iterdir()) == [path]


def test_the_same_row_twice_never_replaces_a_file(store):
    assert store.add(trial()) != store.add(trial())
    assert len(list(store.folder.iterdir())) == 2
    assert len(store.trials()) == 1


@settings(max_examples=25, deadline=None)
@given(trial_id=st.text(max_size=300), started_at=st.text(max_size=300))
def test_no_name_of_a_row_leads_out_of_the_folder(trial_id, started_at):
    trial_id, started_at = (text.encode(errors="replace").decode() for text in (trial_id, started_at))
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "rows")
        name = store_module._file_name(trial(trial_id=trial_id, started_at=started_at))
        assert (store.folder / name).resolve().parent == store.folder.resolve()


def test_a_full_disk_is_an_error_and_leaves_nothing(store, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        store.add(trial())
    assert list(store.folder.iterdir()) == []


def test_a_disk_that_fills_up_while_the_row_is_written_leaves_nothing(store, monkeypatch):
    def full(table: pa.Table, file: Any, **_: Any) -> None:
        file.write(b"PAR1")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(StoreError, match="No space left on device"):
        store.add(trial())
    assert list(store.folder.iterdir()) == []


def test_a_name_that_cannot_be_made_to_last_leaves_nothing(store, monkeypatch):
    flushed: list[int] = []

    def second_fails(handle: int) -> None:
        flushed.append(handle)
        if len(flushed) == 2:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", second_fails)
    with pytest.raises(StoreError, match="Input/output error"):
        store.add(trial())
    assert list(store.folder.iterdir()) == []


def test_a_row_that_cannot_become_a_file_leaves_nothing(store):
    with pytest.raises(pa.ArrowException):
        store.add(trial(steps="many"))
    assert not store.folder.exists()


def test_a_row_is_seen_when_it_is_whole_and_not_before(store, monkeypatch):
    seen: list[tuple[int, int, int]] = []
    real = os.fsync

    def look(handle: int) -> None:
        contents = store.read()
        seen.append((len(list(store.folder.iterdir())), contents.table.num_rows, len(contents.skipped)))
        real(handle)

    monkeypatch.setattr(os, "fsync", look)
    store.add(trial())
    assert seen[0] == (1, 0, 0)
    assert seen[1:] in ([], [(1, 1, 0)])  # the folder is not flushed on Windows


def test_a_file_system_that_cannot_flush_a_folder_still_keeps_rows(store, monkeypatch):
    real = os.fsync

    def picky(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112 - a link of the kernel's, not a path of ours
            raise OSError(errno.EINVAL, "Invalid argument")
        real(handle)

    monkeypatch.setattr(os, "fsync", picky)
    store.add(trial())
    assert len(store.trials()) == 1


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "rows")
    with pytest.raises(StoreError, match="cannot be written"):
        store.add(trial())
    with pytest.raises(StoreError, match="cannot be written"):
        store.check_writable()


def test_rows_that_come_late_do_not_bring_back_what_was_deleted(tmp_path):
    store = Store(tmp_path / "class" / "student" / "results")
    for add in (lambda: store.add(trial()), lambda: store.add_all(to_table(run()))):
        with pytest.raises(StoreError, match="cannot be written: No such file or directory"):
            add()
    assert list(tmp_path.iterdir()) == []
    store.check_writable()  # before a measurement everything is made
    store.add(trial())
    assert store.trials() == [trial()]


# What dead writers left

LEFT = (
    f".2026-11-21T093000-{RUN_ID}-0-1f2e3d4c.parquet.0a1b2c3d.tmp",
    f".probe-{'0a1b2c3d' * 4}",
    ".exhibit.json.0a1b2c3d.tmp",
)
OTHERS = (".compaction.lock", ".hidden", "notes.tmp", ".notes.tmp", "row.parquet.0a1b2c3d.tmp", ".probe-me")


def _leave(folder: Path, names: Sequence[str], *, age_s: float = 2 * documents.ABANDONED_S) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"left")
        then = time.time() - age_s
        os.utime(folder / name, (then, then))


def test_what_a_killed_writer_left_is_removed_when_the_store_is_written(store):
    _leave(store.folder, (*LEFT, *OTHERS))
    store.trials()
    assert {path.name for path in store.folder.iterdir()} == {*LEFT, *OTHERS}, "nobody who reads removes anything"
    path = store.add(trial())
    assert {found.name for found in store.folder.iterdir()} == {path.name, *OTHERS}


def test_what_a_writer_has_in_hand_is_not_removed(store):
    _leave(store.folder, LEFT, age_s=documents.ABANDONED_S / 2)
    store.check_writable()
    assert {path.name for path in store.folder.iterdir()} == set(LEFT)


def test_only_so_many_are_removed_at_a_time_and_nobody_looks_again_soon(store, monkeypatch):
    monkeypatch.setattr(documents, "MOST_SWEPT", 2)
    _leave(store.folder, LEFT)
    for _ in range(3):
        store.check_writable()
        assert len(list(store.folder.iterdir())) == 1


@pytest.mark.skipif(os.name == "nt", reason="making links needs rights on Windows")
def test_neither_a_folder_nor_what_a_link_leads_to_is_removed(store, tmp_path):
    store.folder.mkdir()
    kept = tmp_path / "kept"
    kept.write_bytes(b"kept")
    (store.folder / LEFT[0]).symlink_to(kept)
    (store.folder / LEFT[1]).mkdir()
    for name in LEFT[:2]:
        os.utime(store.folder / name, (0, 0), follow_symlinks=False)
    store.check_writable()
    assert kept.read_bytes() == b"kept"
    assert {path.name for path in store.folder.iterdir()} == set(LEFT[:2])


# Checking before a run


def test_checking_makes_the_folder_and_leaves_it_empty(store):
    store.check_writable()
    assert list(store.folder.iterdir()) == []


def test_a_nearly_full_disk_is_an_error_before_the_run(store, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(2**40, 2**40, 7 * 2**20))
    with pytest.raises(StoreError, match="nearly full: 7 MiB are free"):
        store.check_writable()


def test_just_enough_free_space_will_do(store, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(2**40, 0, store_module.FREE_BYTES))
    store.check_writable()
    assert store.folder.is_dir()


@pytest.mark.parametrize("failing", ["mkdir", "write_bytes"])
def test_a_folder_that_may_only_be_read_is_an_error_before_the_run(store, monkeypatch, failing):
    def refuse(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(Path, failing, refuse)
    with pytest.raises(StoreError, match=r"rows cannot be written: Read-only file system\.$"):
        store.check_writable()


def test_a_probe_that_did_not_fit_is_removed(store, monkeypatch):
    def fill_up(path: Path, _: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill_up)
    with pytest.raises(StoreError, match="No space left"):
        store.check_writable()
    assert list(store.folder.iterdir()) == []
