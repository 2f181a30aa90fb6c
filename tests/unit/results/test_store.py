import dataclasses
import errno
import math
import os
import pickle
import re
import shutil
import tempfile
from collections import namedtuple
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import StoreError
from core.experiment import Contender, Experiment, Point
from core.results import store as store_module
from core.results.schema import OUTCOMES, SCHEMA, SCHEMA_VERSION, VERSION_KEY, Trial, to_table
from core.results.store import Store
from tests.rows import EXPERIMENT, MACHINE_ID, RUN_ID, TORCH_VERSION, run, trial

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
        store = Store(Path(folder) / "a" / "rows")
        path = store.add(trial(trial_id=trial_id, started_at=started_at))
        assert path.resolve().parent == store.folder.resolve()
        assert [file.name for file in store.folder.iterdir()] == [path.name]


def test_a_full_disk_is_an_error_and_leaves_nothing(store, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        store.add(trial())
    assert list(store.folder.iterdir()) == []


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


# Checking before a run


def test_checking_makes_the_folder_and_leaves_it_empty(store):
    store.check_writable()
    assert list(store.folder.iterdir()) == []


def test_a_nearly_full_disk_is_an_error_before_the_run(store, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(2**40, 2**40, 7 * 2**20))
    with pytest.raises(StoreError, match="nearly full: 7 MiB are free"):
        store.check_writable()


# Reading


def test_a_folder_that_does_not_exist_is_an_empty_store(store):
    contents = store.read()
    assert contents.table.num_rows == 0
    assert contents.table.schema.equals(SCHEMA)
    assert (contents.skipped, contents.newer) == ((), ())


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


@given(steps=st.lists(st.integers(0, 10_000), min_size=1, max_size=8))
def test_whatever_the_order_the_row_with_most_steps_is_read(steps):
    table = to_table([_interrupted(count) for count in steps])
    assert store_module.each_once(table)["steps"].to_pylist() == [max(steps)]


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
        lambda: to_table([trial(busy_step_s=(1.0,) * (store_module.MAX_LIST + 1))]),
        "more than 1,000,000 entries",
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


@pytest.mark.parametrize(
    ("bound", "value", "reason"),
    [
        ("MAX_FILE_BYTES", 100, "bytes, more than the 100"),
        ("MAX_ROWS", 1, "claims 2 rows"),
        ("MAX_COLUMNS", 10, "columns, more than are read"),
        ("MAX_TABLE_BYTES", 1_000, "more than the 1,000 that are read"),
    ],
)
def test_a_file_beyond_a_bound_is_refused(store, monkeypatch, bound, value, reason):
    _put(store, to_table(run()))
    monkeypatch.setattr(store_module, bound, value)
    (skipped,) = store.read().skipped
    assert reason in skipped.reason


def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_large(store, monkeypatch):
    monkeypatch.setattr(store_module, "MAX_TABLE_BYTES", 2 * 2**20)
    path = _put(store, pa.concat_tables([to_table([trial(message="x" * 10_000)])] * 1_000).combine_chunks())
    assert path.stat().st_size < 2**20
    (skipped,) = store.read().skipped
    assert "more than the 2,097,152" in skipped.reason


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
    return store_module.read_file(pa.BufferReader(content))[1]


# The cache


@pytest.fixture
def readings(monkeypatch) -> list[str]:
    """Names of the files that are decoded from now on."""
    names: list[str] = []
    real = store_module.read_file

    def counted(source: Path) -> tuple[int, pa.Table]:
        names.append(source.name)
        return real(source)

    monkeypatch.setattr(store_module, "read_file", counted)
    return names


def test_a_file_is_decoded_once(store, readings):
    first = store.add(trial())
    store.read()
    second = store.add(trial(run_id=OTHER_RUN))
    assert len(store.trials()) == 2
    assert len(Store(store.folder).trials()) == 2
    assert readings == [first.name, second.name]


def test_a_file_that_changed_is_decoded_again(store):
    path = _put(store, to_table([trial()]))
    assert store.trials() == [trial()]
    _put(store, to_table([trial(contender="cuda:0")]), path.name)
    os.utime(path, ns=(1, 1))
    assert [row.contender for row in store.trials()] == ["cuda:0"]


def test_a_file_that_was_removed_is_no_longer_read(store):
    path = store.add(trial())
    assert store.trials()
    path.unlink()
    assert store.trials() == []


def test_threads_that_read_at_once_see_the_same(store):
    for row in run():
        store.add(row)
    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(lambda _: store.trials(), range(16)))
    assert all(rows == run() for rows in seen)


# Finding an answer


def _found(store: Store, experiment: Experiment = EXPERIMENT, **where: str) -> list[Trial]:
    return store.find(experiment, **{"machine_id": MACHINE_ID, "torch_version": TORCH_VERSION, **where})


def _fill(store: Store, rows: list[Trial]) -> list[Trial]:
    for row in rows:
        store.add(row)
    return rows


def test_an_empty_store_answers_nothing(store):
    assert _found(store) == []


def test_a_complete_run_answers_in_the_order_of_the_contenders(store):
    experiment = dataclasses.replace(EXPERIMENT, contenders=tuple(reversed(EXPERIMENT.contenders)))
    rows = _fill(store, [trial(contender=str(name), experiment=experiment) for name in experiment.contenders])
    assert [row.contender for row in rows] == ["cuda:0", "cpu"]
    assert _found(store, experiment) == rows
    assert _found(store, EXPERIMENT) == []


def test_the_newest_run_answers(store):
    newer = run(run_id=OTHER_RUN, started_at="2026-11-21T10:00:00+00:00")
    _fill(store, [*newer, *run()])
    assert _found(store) == newer


def test_an_older_run_answers_where_the_newest_was_cut_off(store):
    _fill(store, [*run(), *run(run_id=OTHER_RUN, started_at="2026-11-21T10:00:00+00:00", outcome="stopped")])
    assert _found(store) == run()


@pytest.mark.parametrize(
    ("outcome", "spent_s", "offered_s", "answers"),
    [
        ("completed", 10.0, 600.0, True),
        ("diverged", 10.0, 600.0, True),
        ("budget_spent", 60.0, 60.0, True),
        ("budget_spent", 600.0, 60.0, True),
        ("budget_spent", 10.0, 60.0, False),
        ("stopped", 60.0, 60.0, False),
        ("interrupted", 60.0, 60.0, False),
        ("out_of_memory", 60.0, 60.0, False),
    ],
)
def test_an_outcome_answers_or_does_not(store, outcome, spent_s, offered_s, answers):
    _fill(store, [dataclasses.replace(run()[0], outcome=outcome, budget_s=spent_s), run()[1]])
    assert bool(_found(store, dataclasses.replace(EXPERIMENT, budget_s=offered_s))) is answers


@pytest.mark.parametrize(
    "change",
    [
        {"machine_id": "another"},
        {"torch_version": "1.0"},
        {"experiment_id": "another"},
        {"origin": "imported.parquet"},
        {"outcome": "interrupted"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_run_of_which_one_row_does_not_fit_does_not_answer(store, change):
    first, second = run()
    _fill(store, [first, dataclasses.replace(second, **change)])
    assert _found(store) == []


def test_contenders_of_two_runs_do_not_answer_together(store):
    _fill(store, [run()[0], run(run_id=OTHER_RUN)[1]])
    assert _found(store) == []


def test_another_question_is_not_answered(store):
    _fill(store, run())
    other = dataclasses.replace(EXPERIMENT, contenders=(Contender(),))
    assert _found(store, other) == []
