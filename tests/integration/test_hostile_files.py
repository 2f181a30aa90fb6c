"""Hostile files are refused or made harmless, with one sentence, and reach nothing that is in the store.

What is refused is refused in a process of its own; the fuzz test gives many files to one such process, and goes on
with the next if one of them ends it, which is what that process is for.
"""

import dataclasses
import io
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import ForeignFile
from core.results import allowed, exchange, quarantine
from core.results.exchange import Proposal, export, import_file
from core.results.schema import COLUMNS, SCHEMA, SCHEMA_VERSION, VERSION_KEY, to_table
from core.results.store import Store
from tests.rows import RUN_ID, run, trial

PROJECT = Path(__file__).parents[2]
HERE, THERE = "aaaaaaaaaaaa", "0123456789ab"
FORMED = {*allowed.FORMS, *allowed.WORDS}
HTML = '<script>alert(1)</script><img src=x onerror="alert(2)">![a](http://example.org/a.png) $x$ :red[b]'
MUTATED = 2_000
BATCH = 250


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store that holds a run of this machine."""
    store = Store(tmp_path / "rows")
    for row in run(run_id=HERE):
        store.add(row)
    return store


def written(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(SCHEMA.metadata), buffer, **options)
    return buffer.getvalue()


def with_column(name: str, column: Any) -> pa.Table:
    """Rows of a run with one column exchanged for another, of any type."""
    table = to_table(run())
    index = table.schema.get_field_index(name)
    return table.set_column(index, pa.field(name, column.type), column)


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
    lists = {column.name: () for column in COLUMNS if pa.types.is_list(column.metadata["type"])}
    table = to_table([trial(**lists, predictions=b"")])
    return written(pa.concat_tables([table] * rows).combine_chunks(), compression="zstd")


def of_one_run(rows: int) -> bytes:
    """Rows that would all be paired with each other."""
    table = pa.concat_tables([to_table([trial(pairs=2)])] * rows).combine_chunks()
    names = pa.array([f"{RUN_ID}-{number}" for number in range(rows)])
    return written(table.set_column(table.schema.get_field_index("trial_id"), SCHEMA.field("trial_id"), names))


def twice() -> bytes:
    table = to_table(run())
    return written(table.append_column("message", table["message"]))


def one_bad_value(**changes: Any) -> Callable[[], bytes]:
    return lambda: export(to_table([*run(), trial(run_id="bad0bad0bad0", **changes)]), "parquet")


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "torn": (lambda: export(to_table(run()), "parquet")[:-100], "torn or not a parquet file"),
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
    "two hundred thousand rows": (lambda: tiny(200_000), "claims 200,000 rows, more than the 20,000"),
    "more rows of a run than it has contenders": (lambda: of_one_run(1_000), "column trial_id says"),
    "more blocks than anybody waits for": (one_bad_value(pairs=20_001, loss=(), loss_step=()), "20,000 timed blocks"),
    "a text without end": (one_bad_value(cpu_name="x" * 1_000_000), "cpu_name has a text of more than 500 bytes"),
    "an outcome by another hand": (one_bad_value(outcome=HTML), "outcome has a value that is none of"),
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
    many = tiny(200_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(many) < 1_000_000
    assert import_file(many, "many.parquet", store).refused
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 100 * 1024


def test_rows_are_counted_before_anything_of_a_file_is_unpacked(monkeypatch):
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(ForeignFile, match="claims 3 rows, more than the 2 that are read"):
        quarantine.checked(tiny(3), most_rows=2)


def test_who_asks_says_how_many_rows_a_file_may_have(store):
    data = export(to_table(run()), "parquet")
    (refused,) = exchange.check(data, "lab.parquet", store, most_rows=1).refused
    assert "claims 2 rows, more than the 1 that are read" in refused.reason
    assert exchange.check(data, "lab.parquet", store, most_rows=2).new.num_rows == 2


def test_what_rows_take_as_objects_is_bounded_too(monkeypatch):
    data = export(to_table(run()), "parquet")
    assert quarantine.checked(data).num_rows == 2
    monkeypatch.setattr(quarantine, "MAX_OBJECT_BYTES", 20_000)
    with pytest.raises(ForeignFile, match="of memory that are imported at once"):
        quarantine.checked(data)


def test_text_that_is_a_program_elsewhere_comes_in_as_text(store):
    texts = {field.name for field in SCHEMA if field.type == pa.string()} - FORMED - {"origin"}
    assert {"device_name", "cpu_name", "message"} < texts
    row = dataclasses.replace(trial(), **dict.fromkeys(texts, HTML))
    assert import_file(export(to_table([row]), "parquet"), HTML, store).added == 1
    (kept,) = (found for found in store.trials() if found.origin)
    assert all(getattr(kept, name) == HTML for name in texts)
    assert not set(kept.origin) & set("<>\"'&")


@pytest.mark.parametrize("column", sorted(FORMED))
def test_text_that_is_read_later_does_not_come_in_as_a_program(store, column):
    data = export(to_table([dataclasses.replace(trial(), **{column: HTML})]), "parquet")
    (refused,) = import_file(data, "hostile.parquet", store).refused
    assert column in refused.reason


@pytest.mark.parametrize("name", ["../../../etc/passwd", "..\\..\\x", "C:\\x\\y", "a\x00b", "/", "x" * 5_000, "."])
def test_a_row_cannot_choose_where_it_is_kept(store, name):
    file = store.add(trial(trial_id=name, run_id=name, started_at=name))
    assert file.resolve().parent == store.folder.resolve()
    data = export(to_table([trial(trial_id=name, run_id=name, started_at=name)]), "parquet")
    assert import_file(data, name, store).refused
    assert import_file(export(to_table(run()), "parquet"), name, store).added == 2
    files = list(store.folder.parent.rglob("*.parquet"))
    assert {file.parent for file in files} == {store.folder}
    assert len(files) == 4


def test_a_process_that_is_ended_by_a_file_is_a_refusal(monkeypatch):
    monkeypatch.setattr(quarantine, "_run_child", lambda content, reply, most_rows: -11)
    with pytest.raises(ForeignFile, match="ends the process that checks it"):
        quarantine.read(b"x")


def test_a_process_that_takes_too_long_is_a_refusal(monkeypatch):
    monkeypatch.setattr(quarantine, "SECONDS", 0.0)
    with pytest.raises(ForeignFile, match="takes more than the"):
        quarantine.read(export(to_table(run()), "parquet"))


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
        quarantine.read(b"x")


def test_rows_of_another_schema_that_come_back_are_not_taken(monkeypatch):
    def forged(content: Any, place: Any, most_rows: int) -> int:
        place.write(b'{"refused": ""}\n')
        with pa.ipc.new_stream(place, pa.schema({"a": pa.int64()})) as stream:
            stream.write_table(pa.table({"a": [1]}))
        return 0

    monkeypatch.setattr(quarantine, "_run_child", forged)
    with pytest.raises(ForeignFile):
        quarantine.read(b"x")


def test_the_child_imports_no_more_than_it_needs():
    code = "import core.results.quarantine, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert not {"streamlit", "torch", "pandas", "sklearn", "altair"} & set(loaded.stdout.split())


def test_thousands_of_mutated_files_end_no_process_of_ours_and_change_no_row(store, tmp_path):
    before, files = store.trials(), tmp_path / "files"
    files.mkdir()
    names = []
    for number, content in enumerate(mutated(MUTATED)):
        names.append(files / f"{number:05}.parquet")
        names[-1].write_bytes(content)
    reasons = verdicts(names)
    assert len(reasons) == MUTATED
    accepted = [name for name in names if reasons[name.name] == ""]
    assert len(accepted) > MUTATED // 100  # some mutations harm nothing
    assert MUTATED - len(accepted) > MUTATED // 2
    assert all(len(reason) < 400 and "\n" not in reason for reason in reasons.values())
    for name in accepted:
        with pa.ipc.open_stream(str(name.with_suffix(".rows"))) as stream:
            exchange.keep(Proposal(new=stream.read_all()), store)
    assert [
        row for row in store.trials() if row.run_id == HERE and row.trial_id in {b.trial_id for b in before}
    ] == before
    assert store.read().skipped == ()


def verdicts(names: list[Path]) -> dict[str, str]:
    """Name of each file → why it is refused, empty if it is not; a file that ends the process is refused for that."""
    found: dict[str, str] = {}
    while len(found) < len(names):
        left = [name for name in names if name.name not in found][:BATCH]
        child = subprocess.run(
            [sys.executable, "-m", "tests.integration.many_files"],
            input="\n".join(map(str, left)),
            capture_output=True,
            text=True,
            cwd=PROJECT,
            env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"},
            check=False,
        )
        lines = [json.loads(line) for line in child.stdout.splitlines()]
        assert lines, child.stderr
        found |= {line["done"]: line["reason"] for line in lines if "done" in line}
        if "begun" in lines[-1]:
            assert child.returncode < 0, child.stderr  # a signal; an exception that escaped would be a fault of ours
            found[lines[-1]["begun"]] = f"it ended the process by signal {-child.returncode}"
    return found


def mutated(count: int) -> Iterator[bytes]:
    """Seeded mutations of real files: of their bytes anywhere, of their footers, and of their columns."""
    draw = random.Random(20261121)
    sources = [export(to_table(run(run_id=THERE)), "parquet"), written(to_table(run(run_id=THERE)), compression="none")]
    sources += [path.read_bytes() for path in sorted((PROJECT / "data/gallery").glob("*.parquet"))[:4]]
    ways = (_flip, _flip, _cut, _splice, _footer, _footer, _footer, _values, _types)
    for _ in range(count):
        yield draw.choice(ways)(draw, draw.choice(sources))


def _flip(draw: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8, 64))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(draw: random.Random, content: bytes) -> bytes:
    begin = draw.randrange(len(content))
    return content[:begin] + (content[begin + draw.randrange(200) :] if draw.random() < 0.5 else b"")


def _splice(draw: random.Random, content: bytes) -> bytes:
    begin, end, to = (draw.randrange(len(content)) for _ in range(3))
    piece = content[min(begin, end) : max(begin, end)][:2_000]
    return content[:to] + piece + content[to + (len(piece) if draw.random() < 0.7 else 0) :]


def _footer(draw: random.Random, content: bytes) -> bytes:
    """Thrift: varints, type tags and lengths in the footer, which pyarrow believes."""
    changed = bytearray(content)
    length = int.from_bytes(changed[-8:-4], "little")
    begin = len(changed) - 8 - length
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        place = begin + draw.randrange(length)
        changed[place] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, changed[place] ^ 1 << draw.randrange(8)))
    if draw.random() < 0.2:
        place = begin + draw.randrange(length)
        changed[place:place] = bytes([draw.choice((0xFF, 0x80, 0x15, 0x19))]) * draw.choice((1, 4, 9))
        changed[-8:-4] = (len(changed) - 8 - begin).to_bytes(4, "little")
    return bytes(changed)


ODD: dict[Any, tuple[Any, ...]] = {
    pa.int64(): (-1, 0, 2**63 - 1, -(2**63), None, 7),
    pa.float64(): (math.nan, math.inf, -1.0, 1e308, None, 0.5),
    pa.string(): (HTML, "", "\x00", "‮abc", "x" * 30_000, "=1+1", None, "../../x"),
    pa.bool_(): (True, False, None),
    pa.binary(): (b"", b"\xff" * 1_000, None),
}


def _values(draw: random.Random, content: bytes) -> bytes:
    """A well-formed file with odd values in some columns."""
    table = to_table(run(run_id=THERE))
    for _ in range(draw.choice((1, 1, 2, 5))):
        index = draw.randrange(table.num_columns)
        field = SCHEMA.field(index)
        kind = field.type.value_type if pa.types.is_list(field.type) else field.type
        values: list[Any] = [draw.choice(ODD[kind]) for _ in range(table.num_rows)]
        if pa.types.is_list(field.type):
            values = [[value] * draw.choice((0, 1, 20)) for value in values]
        table = table.set_column(index, field, pa.array(values, field.type))
    return written(table)


def _types(draw: random.Random, content: bytes) -> bytes:
    """A well-formed file with a column of another type, twice, missing, renamed, or another version."""
    table = to_table(run(run_id=THERE))
    index = draw.randrange(table.num_columns)
    name = SCHEMA.field(index).name
    kinds = (
        pa.int8(),
        pa.date32(),
        pa.list_(pa.list_(pa.string())),
        pa.struct({HTML: pa.int8()}),
        pa.decimal128(38, 2),
    )
    match draw.randrange(5):
        case 0:
            kind = draw.choice(kinds)
            table = table.set_column(index, pa.field(name, kind), pa.nulls(table.num_rows, kind))
        case 1:
            table = table.append_column(name, table[name])
        case 2:
            table = table.drop_columns([name])
        case 3:
            table = table.rename_columns([HTML if old == name else old for old in table.column_names])
        case _:
            buffer, version = (
                io.BytesIO(),
                draw.choice((b"", b"-1", b"9" * 7, str(SCHEMA_VERSION + 1).encode(), HTML.encode())),
            )
            pq.write_table(table.replace_schema_metadata({VERSION_KEY: version}), buffer)
            return buffer.getvalue()
    return written(table)
