"""Files of rows that somebody changed: uploaded, or put into the folder of a store.

An uploaded one is checked in a process that may end of it. One that lies in a store's folder is read by the server
itself, here by a process that stands for it: that one may not end, and reads what lies beside all the same.
"""

import contextlib
import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.files.project import PROJECT
from core.results import exchange
from core.results.exchange import Proposal, export
from core.results.parquet import to_table
from core.results.schema import SCHEMA, SCHEMA_VERSION, VERSION_KEY, Trial
from core.results.store import Store
from tests.fuzz import entries, mutations
from tests.fuzz.campaign import Fuzzer, Given, Subject
from tests.fuzz.oddities import HTML
from tests.fuzz.reader import GOOD_RUN
from tests.fuzz.watching import Cost, Fault, Gauge, require_sentence, said
from tests.rows import run

THERE = "0123456789ab"
EACH = 250
"""Files that one process reads before the next one takes its place, as processes of a quarantine read one only."""

STORED, NO_FILE, UPLOADED = 0.4, 0.04, 0.005
"""Shares of the cases: that lie in a store, in which something lies there that is no file, and that are imported from
the beginning to the end."""

ODD: dict[Any, tuple[Any, ...]] = {
    pa.int64(): (-1, 0, 1, 2**63 - 1, -(2**63), None, 7),
    pa.float64(): (math.nan, math.inf, -1.0, 1e308, 0.0, None, 0.5),
    pa.string(): (HTML, "", "\x00", "\u202eabc", "x" * 30_000, "=1+1", None, "../../x"),
    pa.bool_(): (True, False, None),
    pa.binary(): (b"", b"\xff" * 1_000, None),
}


def written(table: pa.Table, **options: Any) -> bytes:
    """A table as the bytes of a file that says it is of this version."""
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(SCHEMA.metadata), buffer, **options)
    return buffer.getvalue()


class Parquet:
    """A store with rows of its own, and files from elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.uploads, self.store = folder / "uploads", Store(folder / "rows")
        self.uploads.mkdir()
        for row in run(run_id=GOOD_RUN):
            self.store.add(row)
        self.rows = self.store.trials()
        self.files = sorted(self.store.folder.iterdir())
        self.readers = {how: Reader(how) for how in ("quarantine", "store")}
        self.sources = [export(to_table(run(run_id=THERE)), "parquet")]
        self.sources.append(written(to_table(run(run_id=THERE)), compression="none"))
        self.sources += [path.read_bytes() for path in sorted((PROJECT / "data/gallery").glob("*.parquet"))[:4]]

    def close(self) -> None:
        for reader in self.readers.values():
            reader.close()

    def good(self) -> Given:
        """One that nobody changed, in the store."""
        return Given(data=self.sources[0], what="a file of rows", place="store", suffix=".parquet")

    def make(self, draw: Random) -> Given:
        """One with other bytes, another footer, other values or other columns."""
        place = "store" if draw.random() < STORED else "quarantine"
        if draw.random() < NO_FILE:
            entry = draw.choice(list(entries.ENTRIES))
            return Given(data=b"", entry=entry, what=f"{entry} in a store", place="store", suffix=".parquet")
        data = draw.choice(_WAYS)(draw, draw.choice(self.sources))
        if place == "quarantine" and draw.random() < UPLOADED:
            place = "upload"
        return Given(data=data, what=f"a changed file of rows, {place}", place=place, suffix=".parquet")

    def take(self, given: Given, draw: Random, gauge: Gauge) -> bool:
        """Let it be read, keep what is taken, and look at what was there."""
        taken = {"store": self._stored, "quarantine": self._uploaded, "upload": self._imported}[given.place](
            given, gauge
        )
        if taken:
            found = {row.trial_id: row for row in self.store.trials()}
            if any(found.get(row.trial_id) != row for row in self.rows):
                raise Fault("rows that were there have changed")
        for path in set(self.store.folder.iterdir()) - set(self.files):
            entries.remove(path)
        if missing := [path.name for path in self.files if not path.exists()]:
            raise Fault(f"it removed {missing}")
        return taken

    def _stored(self, given: Given, gauge: Gauge) -> bool:
        path = self.store.folder / f"changed{given.suffix}"
        if given.entry:
            entries.put(given.entry, path)
        else:
            path.write_bytes(given.data)
        left = entries.content(path)
        answer = self.readers["store"].read(path)
        if "done" not in answer:
            raise Fault(f"it ends the process that reads the store: {answer}")
        cost = Cost(part="reading the store", cpu_s=answer["cpu_s"], grown_bytes=answer["grown_bytes"])
        gauge.costs.append(cost)
        if answer["reason"]:
            require_sentence(answer["reason"])
        if entries.content(path) != left:
            raise Fault("reading changed it")
        entries.remove(path)
        return not answer["reason"] and not given.entry

    def _uploaded(self, given: Given, gauge: Gauge) -> bool:
        path = self.uploads / f"changed{given.suffix}"
        path.write_bytes(given.data)
        answer = self.readers["quarantine"].read(path)
        reason = answer.get("reason", "it ends the process that checks it")
        if reason:
            require_sentence(reason)
            return False
        with gauge.part("keeping"), pa.ipc.open_stream(str(path.with_suffix(".rows"))) as stream:
            exchange.keep(Proposal(new=stream.read_all()), self.store)
        return True

    def _imported(self, given: Given, gauge: Gauge) -> bool:
        with gauge.part("importing"):
            report = said(lambda: exchange.import_file(given.data, "changed.parquet", self.store))
        for refused in report.refused if report else ():
            require_sentence(refused.reason)
        return bool(report and report.added)


class Reader:
    """A process that reads files, and is begun anew when it ends, or has read many."""

    def __init__(self, how: str) -> None:
        self._how, self._read = how, 0
        self._process: subprocess.Popen[str] | None = None

    def read(self, file: Path) -> dict[str, Any]:
        """What it said last: that it is done, or had begun where it has ended by a signal.

        Raises:
            Fault: it ended otherwise.
        """
        if self._process is None or self._read >= EACH:
            self.close()
            self._begin()
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._read += 1
        self._process.stdin.write(json.dumps({"file": str(file), "how": self._how}) + "\n")
        self._process.stdin.flush()
        answers = [
            json.loads(line) for line in (self._process.stdout.readline(), self._process.stdout.readline()) if line
        ]
        if len(answers) == 2:
            return answers[1]
        code, said = self._process.wait(), self.close()
        if code >= 0:
            raise Fault(f"reading raised: {said}")
        return {"begun": str(file), "signal": -code}

    def close(self) -> str:
        """Let it end; what it complained of."""
        if self._process is None:
            return ""
        _, said = self._process.communicate()
        self._process = None
        return said

    def _begin(self) -> None:
        environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
        self._read = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.reader"],
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _footer(draw: Random, content: bytes) -> bytes:
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


def _values(draw: Random, content: bytes) -> bytes:
    """A well-formed file with odd values in some columns."""
    table = to_table(_rows())
    for _ in range(draw.choice((1, 1, 2, 5))):
        index = draw.randrange(table.num_columns)
        field = SCHEMA.field(index)
        kind = field.type.value_type if pa.types.is_list(field.type) else field.type
        values: list[Any] = [draw.choice(ODD[kind]) for _ in range(table.num_rows)]
        if pa.types.is_list(field.type):
            values = [[value] * draw.choice((0, 1, 20)) for value in values]
        table = table.set_column(index, field, pa.array(values, field.type))
    return written(table)


def _types(draw: Random, content: bytes) -> bytes:
    """A well-formed file with a column of another type, twice, missing, renamed, or another version."""
    table = to_table(_rows())
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
            buffer = io.BytesIO()
            version = draw.choice((b"", b"-1", b"9" * 7, str(SCHEMA_VERSION + 1).encode(), HTML.encode()))
            pq.write_table(table.replace_schema_metadata({VERSION_KEY: version}), buffer)
            return buffer.getvalue()
    return written(table)


def _rows() -> list[Trial]:
    return run(run_id=THERE)


_WAYS: tuple[Callable[[Random, bytes], bytes], ...] = (
    *(mutations.flip, mutations.flip, mutations.cut, mutations.splice, mutations.octets),
    *(_footer, _footer, _footer, _values, _types),
)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[Subject]:
    with contextlib.closing(Parquet(folder)) as subject:
        yield subject


FUZZER = Fuzzer(name="parquet", about="files of rows, uploaded or in a store", total=12_000, opened=_opened)
