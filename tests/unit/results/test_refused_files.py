"""Files that the store refuses: named with their reason, and the rest is read."""

import contextlib
import math
import os
import pickle
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ForeignFile
from core.files.project import PROJECT
from core.results import parquet, validation
from core.results import store as store_module
from core.results.parquet import from_table, to_table
from core.results.schema import SCHEMA, VERSION_KEY
from core.results.store import Store
from tests.rows import run, trial
from tests.unit.results.foreign import OTHER_RUN, having, of_version, put

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
    "empty": (lambda: b"", "incomplete or not a parquet file"),
    "text": (lambda: b"trial_id,steps\n1,2\n", "incomplete or not a parquet file"),
    "a pickle": (lambda: pickle.dumps({"trial_id": 1}), "incomplete or not a parquet file"),
    "magic only": (lambda: b"PAR1" * 3, "incomplete or not a parquet file"),
    "torn": (lambda: _bytes_of(to_table([trial()]))[:-20], "incomplete or not a parquet file"),
    "of another program": (lambda: pa.table({"a": [1]}), "not written by Crossover"),
    "of no version": (lambda: of_version(to_table([trial()]), b"latest"), "not written by Crossover"),
    "text for a number": (lambda: having("steps", pa.array(["many"])), "steps is string, not int64"),
    "another width": (lambda: having("steps", pa.array([1], pa.int32())), "steps is int32, not int64"),
    "a list of another type": (lambda: having("loss", pa.array([[1]])), "loss is list"),
    "an extension type": (lambda: having("message", _json_text()), "message is"),
    "a column twice": (
        lambda: to_table([trial()]).append_column("steps", pa.array([1])),
        "has the column steps 2 times",
    ),
    "no name": (lambda: to_table([trial()]).drop_columns(["trial_id"]), "trial_id has no value"),
    "an empty name": (lambda: having("trial_id", [None]), "trial_id has no value"),
    "broken text": (lambda: having("trial_id", _not_utf8()), "incomplete or not a parquet file"),
    "an unknown outcome": (lambda: to_table([trial(outcome="won")]), "outcome"),
    "an unknown kind of device": (lambda: to_table([trial(device_kind="abacus")]), "device_kind"),
    "a negative time": (lambda: to_table([trial(startup_build_s=-1.0)]), "startup_build_s has a negative"),
    "a negative time in a list": (lambda: to_table([trial(busy_step_s=(1.0, -1.0))]), "busy_step_s has a negative"),
    "an infinite time": (lambda: to_table([trial(epoch_check_s=math.inf)]), "epoch_check_s has a value that is not"),
    "no number": (lambda: to_table([trial(warmup_s=(1.0, math.nan, 1.0))]), "warmup_s has a value that is not"),
    "a negative count": (lambda: to_table([trial(samples=-1)]), "samples"),
    "blocks of unequal number": (lambda: to_table([trial(block_load=(1.0,))]), "not equally long"),
    "switches of one block": (lambda: to_table([trial(block_switches=(1,))]), "not equally long"),
    "losses of unequal number": (lambda: to_table([trial(loss=(1.0,))]), "not equally long"),
    "a gap in a list": (lambda: having("busy_step_s", [[1.0, None]]), "busy_step_s has an entry without a value"),
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
        lambda: to_table([trial(busy_step_s=(1.0,) * (validation.SHORT_LIST + 1))]),
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
    put(store, having("block_steps", [[100, 100, 100], [100]], pair))
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

    put(store, having("message", pa.ExtensionArray.from_storage(Unknown(), pa.array(["text"]))))
    assert store.trials() == [trial(message="text")]


@pytest.mark.parametrize(
    ("bound", "value", "reason"),
    [
        ("MAX_FILE_BYTES", 100, "bytes, more than the 100"),
        ("MAX_FILE_ROWS", 1, "claims 2 rows"),
        ("MAX_COLUMNS", 10, "columns, more than the 10 that are read"),
        ("MAX_TABLE_BYTES", 1_000, "more than the 1,000 that are read"),
    ],
)
def test_a_file_beyond_a_bound_is_refused(store, monkeypatch, bound, value, reason):
    put(store, to_table(run()))
    monkeypatch.setattr(parquet, bound, value)
    (skipped,) = store.read().skipped
    assert reason in skipped.reason


def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_large(store, monkeypatch):
    monkeypatch.setattr(parquet, "MAX_TABLE_BYTES", 2 * 2**20)
    path = put(store, pa.concat_tables([to_table([trial(message="x" * 10_000)])] * 1_000).combine_chunks())
    assert path.stat().st_size < 2**20
    (skipped,) = store.read().skipped
    assert "more than the 2,097,152" in skipped.reason


def test_what_a_file_claims_is_looked_at_before_anything_is_decoded(store, monkeypatch):
    monkeypatch.setattr(parquet, "MAX_TABLE_BYTES", 5_000_000)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("decoded"))
    put(store, to_table([trial()]).append_column("ballast", pa.array(["x" * 5_000_000])))
    (skipped,) = store.read().skipped
    assert skipped.reason.startswith("it claims 5,")


def test_a_file_of_too_many_bytes_is_not_opened(store, monkeypatch):
    put(store, to_table([trial()]))
    monkeypatch.setattr(parquet, "MAX_FILE_BYTES", 10)
    monkeypatch.setattr(store_module, "read_file", lambda _: pytest.fail("opened"))
    assert len(store.read().skipped) == 1


def test_a_text_that_every_row_repeats_is_unpacked_for_few_rows_at_once(store, monkeypatch):
    bound, rows, length = 1_000_000, 250, 100_000
    monkeypatch.setattr(parquet, "MAX_TABLE_BYTES", bound)
    put(store, pa.concat_tables([to_table([trial(pairs=0, message="x" * length)])] * rows).combine_chunks())
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
    monkeypatch.setattr(parquet, "MAX_TABLE_BYTES", 1_000_000)
    path = put(store, to_table([trial(busy_step_s=(0.0,) * 900_000)]))
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
    put(store, to_table([trial()]).replace_schema_metadata(metadata), "metadata.parquet")
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
    return parquet.read_file(pa.BufferReader(content))[1]


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
    script = (
        "import sys; from tests.unit.results.test_refused_files import read_broken_histograms; read_broken_histograms()"
    )
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
            parquet.read_file(pa.BufferReader(bytes(broken)))
