"""Merging the files of a store: nothing is lost or doubled by a full disk, a kill or another process."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from filelock import FileLock

from core.errors import StoreError
from core.files import documents
from core.files.project import PROJECT
from core.results import parquet
from core.results import store as compaction
from core.results.store import LOCK, Store, compact
from tests.rows import trial
from tests.unit.results.compaction.filled import by_name, files, fill, names, on_disk

pytestmark = pytest.mark.slow


def test_a_full_disk_removes_nothing(store, monkeypatch):
    rows = fill(store, 3)
    before = files(store)

    def full(*_, **__) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(documents.os, "fsync", full)
        with pytest.raises(StoreError, match="No space left on device"):
            compact(store.folder)
    assert files(store) == before
    assert not list(store.folder.glob(".*.tmp"))
    assert by_name(store.trials()) == by_name(rows)


def test_a_part_that_cannot_be_read_back_removes_nothing(store, monkeypatch):
    rows = fill(store, 2)
    before, real = files(store), parquet.write_table

    def torn(target: Path, table: pa.Table) -> None:
        real(target, table)
        target.write_bytes(target.read_bytes()[:-8])

    monkeypatch.setattr(parquet, "write_table", torn)
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
    with FileLock(store.folder / LOCK), pytest.raises(StoreError, match="already being compacted"):
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
import os, re, shutil, signal, sys
from pathlib import Path
from core.files import documents
from core.results.store import Store, compact

full, work, steps, seen = Path(sys.argv[1]), Path(sys.argv[2]), 0, []

def left():  # what lies there, and not how a file that is written is called for the time being
    files = [path for path in sorted((work / "rows").rglob("*")) if path.is_file()]
    return [(re.sub(r"[^.]+[.]tmp$", "tmp", path.name), path.read_bytes()) for path in files]

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
            compact(work / "rows")
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            break
        assert status == 9, status
        if left() not in seen:
            seen.append(left())
            shutil.copytree(work / "rows", work.parent / f"{kill.__name__}-{step}")
        step += 1
        steps += 1
print(steps, len(seen))
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
    steps, different = map(int, done.stdout.split())
    assert steps >= len(killed) == different >= 12
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


@pytest.mark.parametrize(
    ("error", "said"),
    [(OSError(errno.EROFS, "Read-only file system"), "Read-only file system"), (OSError("it is gone"), "it is gone")],
)
def test_a_folder_that_cannot_be_written_is_named_with_the_reason(store, monkeypatch, error, said):
    fill(store, 2)

    def refuse(*_):
        raise error

    monkeypatch.setattr(compaction, "_compact_folder", refuse)
    with pytest.raises(StoreError, match=f"cannot be written: {said}\\.$"):
        compact(store.folder)
