import contextlib
import dataclasses
import errno
import math
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ForeignFile, StoreError
from core.files import atomic
from core.files.project import PROJECT
from core.question.experiment import Point
from core.results import allowed, reading
from core.results import store as store_module
from core.results.finding import index, lookup
from core.results.finding.index import File
from core.results.finding.kept import Kept
from core.results.schema import COLUMNS, OUTCOMES, SCHEMA, SCHEMA_VERSION, VERSION_KEY, Trial
from core.results.store import GALLERY, Store
from core.results.tables import from_table, to_table
from tests import possible
from tests.rows import RUN_ID, run, trial

OTHER_RUN = "ba9876543210"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "rows")


def _put(store: Store, table: pa.Table, name: str = "foreign.parquet") -> Path:
    """A file that did not come through `add`."""
    store.folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, store.folder / name)
    return store.folder / name


def _with(name: str, column: pa.Array | list[Any], table: pa.Table | None = None) -> pa.Table:
    """A table of one row, or `table`, with one column put in the place of another, whatever its type."""
    table = to_table([trial()]) if table is None else table
    values = column if isinstance(column, pa.Array | pa.ExtensionArray) else pa.array(column, SCHEMA.field(name).type)
    return table.set_column(SCHEMA.get_field_index(name), name, values)


def _of_version(table: pa.Table, version: bytes) -> pa.Table:
    return table.replace_schema_metadata({VERSION_KEY: version})


# Writing


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
    required = [c.name for c in COLUMNS if c.default is c.default_factory is dataclasses.MISSING]
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


def _leave(folder: Path, names: Sequence[str], *, age_s: float = 2 * atomic.ABANDONED_S) -> None:
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
    _leave(store.folder, LEFT, age_s=atomic.ABANDONED_S / 2)
    store.check_writable()
    assert {path.name for path in store.folder.iterdir()} == set(LEFT)


def test_only_so_many_are_removed_at_a_time_and_nobody_looks_again_soon(store, monkeypatch):
    monkeypatch.setattr(atomic, "MOST_SWEPT", 2)
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


# Reading


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
    first, real = iter([True]), index.listed
    monkeypatch.setattr(index, "listed", lambda folder: real(folder) | ({gone} if next(first, False) else set()))
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
    assert store_module.each_once(table)["steps"].to_pylist() == [max(steps)]


def test_of_rows_with_one_name_in_one_file_the_most_complete_is_read(store):
    _put(store, to_table([_interrupted(100), trial(), trial(contender="cuda:0")]))
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
    _put(store, older)
    (row,) = store.trials()
    assert row == trial(origin="", train_accuracy=None, predictions=b"", block_clock_mhz=(), threads=0)


def test_a_missing_value_gets_its_default(store):
    _put(store, _with("loss_step", [None], _with("loss", [None], _with("message", [None]))))
    assert store.trials() == [trial(message="", loss=(), loss_step=())]


def test_a_list_of_the_blocks_that_an_older_version_did_not_have_is_not_made_up(store):
    _put(store, to_table([trial()]).drop_columns(["block_load"]))
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
    table = _of_version(to_table([_interrupted(100)]), str(SCHEMA_VERSION + 1).encode())
    path = _put(store, table, store.add(_interrupted(50)).name)
    before = path.read_bytes()
    store.add(trial())
    assert store.trials() == [trial()]
    assert path.read_bytes() == before


def test_a_newer_file_is_named_read_as_far_as_known_and_left_alone(store):
    table = to_table([trial()]).append_column("invented_later", pa.array(["x"]))
    path = _put(store, _of_version(table, str(SCHEMA_VERSION + 1).encode()), "newer.parquet")
    before = path.read_bytes()
    store.add(trial(run_id=OTHER_RUN))
    contents = store.read()
    assert contents.newer == ("newer.parquet",)
    assert contents.skipped == ()
    assert contents.table.schema.equals(SCHEMA, check_metadata=True)
    assert trial() in store.trials()
    assert path.read_bytes() == before


# Files that are refused


def _bytes_of(table: pa.Table) -> bytes:
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    return bytes(buffer.getvalue())


def _not_utf8() -> pa.Array:
    return pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe")]
    )


def _json_text() -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"]))


REFUSED: dict[str, tuple[Callable[[], bytes | pa.Table], str]] = {
    "empty": (lambda: b"", "torn or not a parquet file"),
    "text": (lambda: b"trial_id,steps\n1,2\n", "torn or not a parquet file"),
    "a pickle": (lambda: pickle.dumps({"trial_id": 1}), "torn or not a parquet file"),
    "magic only": (lambda: b"PAR1" * 3, "torn or not a parquet file"),
    "torn": (lambda: _bytes_of(to_table([trial()]))[:-20], "torn or not a parquet file"),
    "of another program": (lambda: pa.table({"a": [1]}), "not written by Crossover"),
    "of no version": (lambda: _of_version(to_table([trial()]), b"latest"), "not written by Crossover"),
    "text for a number": (lambda: _with("steps", pa.array(["many"])), "steps is string, not int64"),
    "another width": (lambda: _with("steps", pa.array([1], pa.int32())), "steps is int32, not int64"),
    "a list of another type": (lambda: _with("loss", pa.array([[1]])), "loss is list"),
    "an extension type": (lambda: _with("message", _json_text()), "message is"),
    "a column twice": (
        lambda: to_table([trial()]).append_column("steps", pa.array([1])),
        "has the column steps 2 times",
    ),
    "no name": (lambda: to_table([trial()]).drop_columns(["trial_id"]), "trial_id has no value"),
    "an empty name": (lambda: _with("trial_id", [None]), "trial_id has no value"),
    "broken text": (lambda: _with("trial_id", _not_utf8()), "torn or not a parquet file"),
    "an unknown outcome": (lambda: to_table([trial(outcome="won")]), "outcome"),
    "an unknown kind of device": (lambda: to_table([trial(device_kind="abacus")]), "device_kind"),
    "a negative time": (lambda: to_table([trial(startup_build_s=-1.0)]), "startup_build_s has a negative"),
    "a negative time in a list": (lambda: to_table([trial(busy_step_s=(1.0, -1.0))]), "busy_step_s has a negative"),
    "an infinite time": (lambda: to_table([trial(epoch_check_s=math.inf)]), "epoch_check_s has a value that is not"),
    "no number": (lambda: to_table([trial(warmup_s=(1.0, math.nan, 1.0))]), "warmup_s has a value that is not"),
    "a negative count": (lambda: to_table([trial(samples=-1)]), "samples"),
    "blocks of unequal number": (lambda: to_table([trial(block_load=(1.0,))]), "not equally long"),
    "losses of unequal number": (lambda: to_table([trial(loss=(1.0,))]), "not equally long"),
    "a gap in a list": (lambda: _with("busy_step_s", [[1.0, None]]), "busy_step_s has an entry without a value"),
    "a block of no steps": (lambda: to_table([trial(pairs=2, block_steps=(0, 1))]), "block_steps has a value below 1"),
    "a block back in time": (
        lambda: to_table([trial(pairs=1, block_begin_ns=(9,), block_end_ns=(3,))]),
        "block that does not end after",
    ),
    "a block of no time": (
        lambda: to_table([trial(pairs=1, block_begin_ns=(9,), block_end_ns=(9,))]),
        "block that does not end after",
    ),
    "a list without end": (
        lambda: to_table([trial(busy_step_s=(1.0,) * (allowed.SHORT_LIST + 1))]),
        "busy_step_s has more than 1,000 entries",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_file_is_named_with_its_reason_and_the_rest_is_read(store, case):
    make, reason = REFUSED[case]
    made = make()
    good = trial(run_id=OTHER_RUN)
    store.add(good)
    path = store.folder / "bad.parquet"
    path.write_bytes(made if isinstance(made, bytes) else _bytes_of(made))
    contents = store.read()
    assert [skipped.name for skipped in contents.skipped] == ["bad.parquet"]
    assert reason in contents.skipped[0].reason
    assert store.trials() == [good]
    assert path.exists()


def test_equal_sums_do_not_make_lists_equally_long(store):
    pair = to_table([trial(pairs=2), trial(pairs=2, contender="cuda:0")])
    _put(store, _with("block_steps", [[100, 100, 100], [100]], pair))
    (skipped,) = store.read().skipped
    assert "not equally long" in skipped.reason


def test_an_extension_type_that_nobody_here_knows_is_read_as_what_it_is_made_of_and_not_loaded(store):
    class Unknown(pa.ExtensionType):
        def __init__(self) -> None:
            super().__init__(pa.string(), "attacker.type")

        def __arrow_ext_serialize__(self) -> bytes:
            return b"import os"

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> "Unknown":
            raise AssertionError("something of a file was executed")

    _put(store, _with("message", pa.ExtensionArray.from_storage(Unknown(), pa.array(["text"]))))
    assert store.trials() == [trial(message="text")]


@pytest.mark.parametrize(
    ("bound", "value", "reason"),
    [
        ("MAX_FILE_BYTES", 100, "bytes, more than the 100"),
        ("MAX_ROWS", 1, "claims 2 rows"),
        ("MAX_COLUMNS", 10, "columns, more than the 10 that are read"),
        ("MAX_TABLE_BYTES", 1_000, "more than the 1,000 that are read"),
    ],
)
def test_a_file_beyond_a_bound_is_refused(store, monkeypatch, bound, value, reason):
    _put(store, to_table(run()))
    monkeypatch.setattr(reading, bound, value)
    (skipped,) = store.read().skipped
    assert reason in skipped.reason


def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_large(store, monkeypatch):
    monkeypatch.setattr(reading, "MAX_TABLE_BYTES", 2 * 2**20)
    path = _put(store, pa.concat_tables([to_table([trial(message="x" * 10_000)])] * 1_000).combine_chunks())
    assert path.stat().st_size < 2**20
    (skipped,) = store.read().skipped
    assert "more than the 2,097,152" in skipped.reason


def test_what_a_file_claims_is_looked_at_before_anything_is_decoded(store, monkeypatch):
    monkeypatch.setattr(reading, "MAX_TABLE_BYTES", 5_000_000)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("decoded"))
    _put(store, to_table([trial()]).append_column("ballast", pa.array(["x" * 5_000_000])))
    (skipped,) = store.read().skipped
    assert skipped.reason.startswith("it claims 5,")


def test_a_file_of_too_many_bytes_is_not_opened(store, monkeypatch):
    _put(store, to_table([trial()]))
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 10)
    monkeypatch.setattr(store_module, "read_file", lambda _: pytest.fail("opened"))
    assert len(store.read().skipped) == 1


def test_a_text_that_every_row_repeats_is_unpacked_for_few_rows_at_once(store, monkeypatch):
    bound, rows, length = 1_000_000, 250, 100_000
    monkeypatch.setattr(reading, "MAX_TABLE_BYTES", bound)
    _put(store, pa.concat_tables([to_table([trial(pairs=0, message="x" * length)])] * rows).combine_chunks())
    before, most = pa.total_allocated_bytes(), [0]
    real = pq.ParquetFile.iter_batches

    def watched(file: pq.ParquetFile, **options: Any) -> Any:
        for batch in real(file, **options):
            most.append(pa.total_allocated_bytes() - before)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    (skipped,) = store.read().skipped
    assert "unpacks to more than the 1,000,000 bytes" in skipped.reason
    assert 0 < max(most) < 10 * bound < rows * length


def test_a_list_that_one_row_repeats_is_refused(store, monkeypatch):
    monkeypatch.setattr(reading, "MAX_TABLE_BYTES", 1_000_000)
    path = _put(store, to_table([trial(busy_step_s=(0.0,) * 900_000)]))
    assert path.stat().st_size < 100_000
    (skipped,) = store.read().skipped
    assert "unpacks to more than" in skipped.reason


class _Bomb:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.target),)


def test_nothing_in_a_file_is_executed(store, tmp_path):
    target = tmp_path / "executed"
    hostile = pickle.dumps(_Bomb(target))
    metadata = {VERSION_KEY: b"1", b"pandas": hostile, b"PANDAS": hostile}
    _put(store, to_table([trial()]).replace_schema_metadata(metadata), "metadata.parquet")
    (store.folder / "pickle.parquet").write_bytes(hostile)
    contents = store.read()
    assert [skipped.name for skipped in contents.skipped] == ["pickle.parquet"]
    assert not target.exists()
    assert contents.table.schema.metadata == SCHEMA.metadata
    pickle.loads(hostile)
    assert target.exists()  # it would have worked


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> bytes:
    return Store(tmp_path_factory.mktemp("sound")).add(trial(pairs=3)).read_bytes()


def _read_bytes(content: bytes) -> tuple[int, tuple[str, ...]]:
    """Rows and reasons of a store with one file of this content."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "row.parquet").write_bytes(content)
        contents = Store(Path(folder)).read()
    return contents.table.num_rows, tuple(skipped.reason for skipped in contents.skipped)


@settings(max_examples=40, deadline=None)
@given(length=st.integers(0, 2**32))
def test_a_file_that_was_cut_off_anywhere_is_skipped(sound, length):
    rows, reasons = _read_bytes(sound[: length % len(sound)])
    assert rows == 0
    assert len(reasons) == 1


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(place=st.integers(0, 2**32), bit=st.integers(0, 7))
def test_a_damaged_measurement_is_never_taken_for_a_sound_one(sound, place, bit):
    footer = 8 + int.from_bytes(sound[-8:-4], "little")
    damaged = bytearray(sound)
    damaged[4 + place % (len(sound) - footer - 4)] ^= 1 << bit
    rows, reasons = _read_bytes(bytes(damaged))
    assert rows + len(reasons) == 1
    if rows:  # only bytes that mean nothing can be damaged without notice
        assert _value_of(bytes(damaged)) == _value_of(sound)


def _value_of(content: bytes) -> pa.Table:
    return reading.read_file(pa.BufferReader(content))[1]


@pytest.mark.slow
def test_whatever_happens_to_a_file_it_is_read_or_refused_and_no_other_row_changes(store):
    draw, other = random.Random(20261121), trial(run_id=OTHER_RUN)
    path = store.add(trial())
    content = path.read_bytes()
    store.add(other)
    refused = 0
    for _ in range(300):
        path.write_bytes(_mutated(content, draw))
        contents = store.read()
        refused += len(contents.skipped)
        assert other in from_table(contents.table)
    assert refused > 100


def _mutated(content: bytes, draw: random.Random) -> bytes:
    """Some bits flipped, half of the time in what the file says of itself, or an end missing."""
    if draw.random() < 0.2:
        return content[: draw.randrange(len(content))]
    mutated, start = bytearray(content), draw.choice((0, len(content) * 2 // 3))
    for _ in range(draw.choice((1, 1, 2, 8))):
        mutated[draw.randrange(start, len(content))] ^= 1 << draw.randrange(8)
    return bytes(mutated)


@pytest.mark.slow
def test_a_broken_histogram_of_a_column_does_not_end_the_process():
    script = "import sys; from tests.unit.results.test_store import read_broken_histograms; read_broken_histograms()"
    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def read_broken_histograms() -> None:
    """Read a file again and again, with another bit of what it says of itself flipped; in a process of its own."""
    content = _bytes_of(to_table([trial(pairs=3)]))
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    draw = random.Random(7)
    for _ in range(400):
        broken = bytearray(content)
        broken[draw.randrange(footer, len(content) - 8)] ^= 1 << draw.randrange(8)
        with contextlib.suppress(ForeignFile):
            reading.read_file(pa.BufferReader(bytes(broken)))


# The cache


@pytest.fixture
def readings(monkeypatch) -> list[str]:
    """Names of the files of which whole rows are decoded from now on."""
    names: list[str] = []
    real = lookup.read_piece

    def counted(source: Path, **what: Any) -> reading.Piece:
        if "columns" not in what:
            names.append(source.name)
        return real(source, **what)

    monkeypatch.setattr(lookup, "read_piece", counted)
    monkeypatch.setattr(lookup, "_groups", Kept(lookup.CACHE_BYTES, lookup._bytes))
    return names


def test_a_file_is_decoded_once(store, readings):
    first, second = (store.add(trial(run_id=name)) for name in (RUN_ID, OTHER_RUN))
    for _ in range(2):
        assert len(Store(store.folder).trials(run_id=[RUN_ID, OTHER_RUN])) == 2
    assert sorted(readings) == sorted([first.name, second.name])


def test_a_file_that_changed_is_decoded_again(store):
    path = _put(store, to_table([trial()]))
    assert store.trials(run_id=RUN_ID) == [trial()]
    _put(store, to_table([trial(contender="cuda:0")]), path.name)
    os.utime(path, ns=(1, 1))
    assert [row.contender for row in store.trials(run_id=RUN_ID)] == ["cuda:0"]


def test_a_file_of_the_same_size_that_was_written_later_is_decoded_again(store):
    path = _put(store, to_table([trial(message="before")]))
    assert [row.message for row in store.trials(run_id=RUN_ID)] == ["before"]
    facts = path.stat()
    _put(store, to_table([trial(message="behind")]))
    assert path.stat().st_size == facts.st_size
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1_000_000))
    assert [row.message for row in store.trials(run_id=RUN_ID)] == ["behind"]


def test_files_of_one_name_in_two_folders_are_two(store, tmp_path):
    other = Store(tmp_path / "other")
    _put(store, to_table([trial(message="before")]))
    _put(other, to_table([trial(message="behind")]))
    assert [row.message for row in (*store.trials(run_id=RUN_ID), *other.trials(run_id=RUN_ID))] == ["before", "behind"]


def test_the_cache_keeps_a_bounded_size_and_drops_what_was_not_asked_for_longest(store, readings, monkeypatch):
    names = {name: store.add(trial(run_id=name * 12)).name for name in "abc"}
    store.trials(run_id="a" * 12)
    monkeypatch.setattr(lookup, "_groups", Kept(int(2.5 * lookup._groups.bytes), lookup._bytes))
    for name in "abacab":
        assert len(store.trials(run_id=name * 12)) == 1
    assert readings == [names[name] for name in "aabcb"]
    assert len(lookup._groups) == 2


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
