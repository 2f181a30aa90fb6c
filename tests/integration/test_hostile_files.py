"""Hostile files are refused or made harmless, with one sentence, and reach nothing that is in the store.

What is refused is refused in a process of its own. Files that somebody changed, by the thousand, are the business of
`tests.fuzz.parquet`.
"""

import dataclasses
import functools
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import ForeignFile, StoreError
from core.files.project import PROJECT
from core.results import exchange, quarantine, validation
from core.results.exchange import export, import_file
from core.results.parquet import to_table
from core.results.schema import SCHEMA, TRIAL_COLUMNS
from core.results.store import Store
from tests.fuzz.oddities import HTML
from tests.fuzz.parquet import written
from tests.rows import RUN_ID, run, trial

HERE = "aaaaaaaaaaaa"
FORMED = {*validation.FORMS, *validation.WORDS}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store that holds a run of this machine."""
    store = Store(tmp_path / "rows")
    for row in run(run_id=HERE):
        store.add(row)
    return store


def with_column(name: str, column: Any) -> pa.Table:
    """Rows of a run with one column exchanged for another, of any type."""
    table = to_table(run())
    index = table.schema.get_field_index(name)
    return table.set_column(index, pa.field(name, column.type), column)


@functools.cache
def repeated(entries: int) -> bytes:
    """A few kilobytes that unpack to a list of so many numbers."""
    table, offsets = to_table([trial()]), pa.array([0, entries], pa.int32())
    column = pa.ListArray.from_arrays(offsets, pa.array(np.zeros(entries)))
    index = table.schema.get_field_index("busy_step_s")
    return written(table.set_column(index, SCHEMA.field(index), column), write_statistics=False, compression="zstd")


def nested(depth: int) -> bytes:
    kind = pa.int64()
    for _ in range(depth):
        kind = pa.list_(kind)
    return written(with_column("message", pa.nulls(2, kind)))


def claiming(rows: int) -> bytes:
    """A file whose footer claims other numbers of rows than it has: every count of rows in it is replaced."""
    content = bytearray(export(to_table([*run()] * 63), "parquet"))  # 126 rows: zigzag 252, a varint of two bytes
    varint, value = bytearray(), rows * 2
    while value > 127:
        varint.append(value & 127 | 128)
        value >>= 7
    varint.append(value)
    footer = int.from_bytes(content[-8:-4], "little")
    head, tail = content[: -8 - footer], content[-8 - footer : -8].replace(b"\xfc\x01", bytes(varint))
    return bytes(head + tail + len(tail).to_bytes(4, "little") + b"PAR1")


def tiny(rows: int) -> bytes:
    """Rows of which nothing was timed: a few hundred kilobytes, and gigabytes as objects."""
    lists = {column.name: () for column in TRIAL_COLUMNS if pa.types.is_list(column.metadata["type"])}
    table = to_table([trial(**lists, predictions=b"")])
    return written(table.take(pa.array(np.zeros(rows, int))), compression="zstd")


def of_one_run(rows: int) -> bytes:
    """Rows that would all be paired with each other."""
    table = to_table([trial(pairs=2)]).take(pa.array(np.zeros(rows, int)))
    names = pa.array([f"{RUN_ID}-{number}" for number in range(rows)])
    return written(table.set_column(table.schema.get_field_index("trial_id"), SCHEMA.field("trial_id"), names))


def twice() -> bytes:
    table = to_table(run())
    return written(table.append_column("message", table["message"]))


def one_bad_value(**changes: Any) -> Callable[[], bytes]:
    return lambda: export(to_table([*run(), trial(run_id="bad0bad0bad0", **changes)]), "parquet")


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "torn": (lambda: export(to_table(run()), "parquet")[:-100], "incomplete or not a parquet file"),
    "another schema": (
        lambda: written(with_column("steps", pa.array(["1", "2"]))),
        "steps is string, not int64",
    ),
    "ten gigabytes in a few kilobytes": (lambda: repeated(60_000_000), "more memory than there is"),
    "a list beyond measure": (lambda: repeated(2_000_000), "more than 1,000 entries"),
    "more rows than it has": (lambda: claiming(10**6), "claims"),
    "ten thousand million rows": (lambda: claiming(10**10), "claims"),
    "nested": (lambda: nested(5), "column message is list<"),
    "nested beyond measure": (lambda: nested(1_000), ""),
    "a column twice": (twice, "column message 2 times"),
    "NaN": (one_bad_value(epoch_check_s=math.nan), "epoch_check_s has a value that is not a finite number"),
    "infinity": (one_bad_value(startup_device_s=math.inf), "startup_device_s has a value that is not a finite number"),
    "a negative time": (one_bad_value(budget_s=-1.0), "budget_s has a negative value"),
    "a negative block": (one_bad_value(pairs=1, block_end_ns=(1,)), "does not end after it begins"),
    "a number beyond measure": (one_bad_value(steps=2**62), "steps has a value beyond all that is measured"),
    "twenty thousand rows and one": (lambda: tiny(20_001), "claims 20,001 rows, more than the 20,000"),
    "more rows of a run than it has contenders": (lambda: of_one_run(1_000), "column trial_id says"),
    "more blocks than anybody waits for": (one_bad_value(pairs=20_001, loss=(), loss_step=()), "20,000 timed blocks"),
    "a text without end": (one_bad_value(cpu_name="x" * 1_000_000), "cpu_name has a text of more than 500 bytes"),
    "an outcome by another hand": (one_bad_value(outcome=HTML), "outcome has a value other than"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_hostile_file_is_refused_in_one_sentence_and_reaches_nothing(store, case):
    make, reason = REFUSED[case]
    before = store.trials()
    report = import_file(make(), "hostile.parquet", store)
    assert (report.added, report.duplicates, len(report.refused)) == (0, 0, 1)
    assert reason in report.refused[0].reason
    assert len(report.refused[0].reason) <= 300
    assert "\n" not in report.refused[0].reason
    assert store.trials() == before


def test_a_bomb_takes_no_memory_of_the_process_that_asks(store):
    resource = pytest.importorskip("resource")
    bomb = repeated(60_000_000)  # making it takes 480 MB here, once and before
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(bomb) < 100_000
    assert import_file(bomb, "bomb.parquet", store).refused
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 100 * 1024


def test_a_file_of_many_rows_takes_no_memory_of_the_process_that_asks(store):
    resource = pytest.importorskip("resource")
    many = tiny(50_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(many) < 1_000_000
    assert import_file(many, "many.parquet", store).refused
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 100 * 1024


def test_rows_are_counted_before_anything_of_a_file_is_unpacked(monkeypatch):
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(ForeignFile, match="claims 3 rows, more than the 2 that are read"):
        quarantine.check_foreign_rows(tiny(3), most_rows=2)


def test_who_asks_says_how_many_rows_a_file_may_have(store):
    data = export(to_table(run()), "parquet")
    (refused,) = exchange.check_import(data, "lab.parquet", store, most_rows=1).refused
    assert "claims 2 rows, more than the 1 that are read" in refused.reason
    assert exchange.check_import(data, "lab.parquet", store, most_rows=2).new.num_rows == 2


def test_what_rows_take_as_objects_is_bounded_too(monkeypatch):
    data = export(to_table(run()), "parquet")
    assert quarantine.check_foreign_rows(data).num_rows == 2
    monkeypatch.setattr(quarantine, "MAX_OBJECT_BYTES", 20_000)
    with pytest.raises(ForeignFile, match="of memory that are imported at once"):
        quarantine.check_foreign_rows(data)


def test_text_that_is_a_program_elsewhere_comes_in_as_text(store):
    texts = {field.name for field in SCHEMA if field.type == pa.string()} - FORMED - {"origin"}
    assert {"device_name", "cpu_name", "message"} < texts
    row = dataclasses.replace(trial(), **dict.fromkeys(texts, HTML))
    assert import_file(export(to_table([row]), "parquet"), HTML, store).added == 1
    (kept,) = (found for found in store.trials() if found.origin)
    assert all(getattr(kept, name) == HTML for name in texts)
    assert not set(kept.origin) & set("<>\"'&")


@pytest.mark.usefixtures("foreign_files_are_read_here")
@pytest.mark.parametrize("column", sorted(FORMED))
def test_text_that_is_read_later_does_not_come_in_as_a_program(store, column):
    data = export(to_table([dataclasses.replace(trial(), **{column: HTML})]), "parquet")
    (refused,) = import_file(data, "hostile.parquet", store).refused
    assert column in refused.reason


@pytest.mark.usefixtures("foreign_files_are_read_here")
@pytest.mark.parametrize("name", ["../../../etc/passwd", "..\\..\\x", "C:\\x\\y", "a\x00b", "/", "x" * 5_000, "."])
def test_a_row_cannot_choose_where_it_is_kept(store, name):
    with pytest.raises(StoreError, match="refused rows"):
        store.add(trial(trial_id=name, run_id=name, started_at=name))
    data = export(to_table([trial(trial_id=name, run_id=name, started_at=name)]), "parquet")
    assert import_file(data, name, store).refused
    assert import_file(export(to_table(run()), "parquet"), name, store).added == 2
    files = list(store.folder.parent.rglob("*.parquet"))
    assert {file.parent for file in files} == {store.folder}
    assert len(files) == 3


def test_a_process_that_is_ended_by_a_file_is_a_refusal(monkeypatch):
    monkeypatch.setattr(quarantine, "_run_child", lambda content, reply, most_rows: -11)
    with pytest.raises(ForeignFile, match="ends the process that checks it"):
        quarantine.read_foreign_file(b"x")


def test_a_process_that_takes_too_long_is_a_refusal(monkeypatch):
    monkeypatch.setattr(quarantine, "SECONDS", 0.0)
    with pytest.raises(ForeignFile, match="takes more than the"):
        quarantine.read_foreign_file(export(to_table(run()), "parquet"))


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"{}\n",
        b"[1]\n",
        b"x" * 100_000,
        b'{"refused": ""}\n',
        b'{"refused": ""}\nnot a stream',
        b'{"refused": ""}\n' + b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\xff" * 64,
    ],
)
def test_what_comes_back_is_not_believed_either(monkeypatch, reply):
    def forged(content: Any, place: Any, most_rows: int) -> int:
        place.write(reply)
        return 0

    monkeypatch.setattr(quarantine, "_run_child", forged)
    with pytest.raises(ForeignFile):
        quarantine.read_foreign_file(b"x")


def test_rows_of_another_schema_that_come_back_are_not_taken(monkeypatch):
    def forged(content: Any, place: Any, most_rows: int) -> int:
        place.write(b'{"refused": ""}\n')
        with pa.ipc.new_stream(place, pa.schema({"a": pa.int64()})) as stream:
            stream.write_table(pa.table({"a": [1]}))
        return 0

    monkeypatch.setattr(quarantine, "_run_child", forged)
    with pytest.raises(ForeignFile):
        quarantine.read_foreign_file(b"x")


def test_the_child_imports_no_more_than_it_needs():
    code = "import runpy, sys; runpy.run_module('core.results.quarantine', run_name='__main__')"
    read = subprocess.run(
        [sys.executable, "-c", f"{code}; print(*sys.modules, file=sys.stderr)", "2"],
        input=export(to_table(run()), "parquet"),
        cwd=PROJECT,
        capture_output=True,
        check=True,
    )
    assert read.stdout.startswith(b'{"refused": ""}\n')
    loaded = set(read.stderr.decode().split())
    assert "pyarrow" in loaded
    assert not {"streamlit", "torch", "pandas", "sklearn", "altair"} & loaded
