"""The store: a folder of parquet files, one atomic file a trial, read by many and written by many at once.

A file is written under a temporary name, flushed to disk and renamed, so that a reader sees all of it or nothing.
Files that are torn, foreign or hostile are named and skipped; those of a newer version are read as far as they are
known. Nothing here rewrites or deletes a row, and nothing computes a statistic.
"""

import contextlib
import dataclasses
import errno
import os
import re
import shutil
import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import ForeignFile, StoreError
from core.experiment import Experiment
from core.results.schema import (
    COLUMNS,
    DEVICE_KINDS,
    OUTCOMES,
    SCHEMA,
    SCHEMA_VERSION,
    VERSION_KEY,
    Trial,
    from_table,
    to_table,
)

PROJECT = Path(__file__).parents[2]
RESULTS = PROJECT / "data" / "results"
"""What is measured here."""
GALLERY = PROJECT / "data" / "gallery"
"""What ships with the project; never written by the app."""

SUFFIX = ".parquet"

FREE_BYTES = 50 * 2**20
"""Free space below which nothing is measured; a row takes some ten kilobytes, a checkpoint more."""

MAX_FILE_BYTES = 64 * 2**20
MAX_ROWS = 200_000
MAX_COLUMNS = 500
MAX_TABLE_BYTES = 512 * 2**20
MAX_LIST = 1_000_000
"""Bounds of a file that is read. Ours have one row, compacted ones some thousand; a compressed bomb has more."""

CUT_OFF = ("stopped", "interrupted")
"""Outcomes of trials that can be continued under the same name."""

BATCH_ROWS = 256
"""Rows decoded at once, at most; what a file declares of its size need not be true, so the decoded size is watched."""

NAME_LENGTH = 100
"""Characters of a file's name that a row may choose; file systems take 255 bytes, the rest of the name is ours."""

CACHED_FILES = 20_000
"""Files never change, so what was read once need not be read again."""

_BLOCK_LISTS = tuple(c.name for c in COLUMNS if c.name.startswith("block_") and c.name != "block_clock_mhz")
_WARM_UP_LISTS = ("warmup_steps", "warmup_s")
_LOSS_LISTS = ("loss_step", "loss")
_EQUALLY_LONG = (_BLOCK_LISTS, _WARM_UP_LISTS, _LOSS_LISTS)
_AT_LEAST_ONE = ("block_steps", "warmup_steps", "steps_per_epoch", "batch_size", "samples", "epochs", "parameters")
_MAY_BE_ANY_NUMBER = ("loss",)
"""Losses may be NaN or infinite; no other number may, and none but these may be negative."""


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A file that was not read.

    Attributes:
        name: of the file.
        reason: in words.
    """

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a store holds.

    Attributes:
        table: all rows, of `SCHEMA`, no trial twice.
        skipped: files that were not read.
        newer: files of a newer version, read as far as their columns are known here.
    """

    table: pa.Table
    skipped: tuple[Skipped, ...] = ()
    newer: tuple[str, ...] = ()


class Store:
    """The rows of one folder; a folder that does not exist is an empty store.

    Attributes:
        folder: where the files are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def check_writable(self) -> None:
        """Find out before a measurement whether its rows could be kept.

        Raises:
            StoreError: the folder cannot be made or written, or its disk is nearly full.
        """
        probe = self.folder / f".probe-{uuid.uuid4().hex}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                probe.write_bytes(b"probe")
            finally:
                probe.unlink(missing_ok=True)
            free = shutil.disk_usage(self.folder).free
        except OSError as error:
            raise StoreError(f"The store {self.folder} cannot be written: {error.strerror or error}.") from error
        if free < FREE_BYTES:
            raise StoreError(
                f"The disk of the store {self.folder} is nearly full: {free // 2**20} MiB are free, "
                f"{FREE_BYTES // 2**20} MiB are needed."
            )

    def add(self, trial: Trial) -> Path:
        """Write one row into a file of its own; returns the file.

        Raises:
            StoreError: it cannot be written; nothing is left behind.
        """
        table, name = to_table([trial]), _file_name(trial)
        target, temporary = self.folder / f"{name}{SUFFIX}", self.folder / f".{name}.tmp"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                # statistics of a single value are that value again, three times
                pq.write_table(table, file, compression="zstd", write_page_checksum=True, write_statistics=False)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
            _flush_folder(self.folder)
        except OSError as error:
            for path in (temporary, target):
                with contextlib.suppress(OSError):
                    path.unlink()
            raise StoreError(f"The store {self.folder} cannot be written: {error.strerror or error}.") from error
        return target

    def read(self) -> Contents:
        """Every row that can be read, and the name of every file that cannot.

        Raises:
            StoreError: the folder itself cannot be read.
        """
        tables, skipped, newer = [SCHEMA.empty_table()], [], []
        for file in self._files():
            try:
                version, table = _cached(file)
            except FileNotFoundError:  # compacted or removed since the folder was listed
                continue
            except ForeignFile as error:
                skipped.append(Skipped(name=file.name, reason=str(error)))
                continue
            except OSError as error:
                skipped.append(Skipped(name=file.name, reason=f"it cannot be read: {error.strerror or error}"))
                continue
            tables.append(table)
            if version > SCHEMA_VERSION:
                newer.append(file.name)
        return Contents(table=each_once(pa.concat_tables(tables)), skipped=tuple(skipped), newer=tuple(newer))

    def trials(self, *, run_id: str | None = None, experiment_id: str | None = None) -> list[Trial]:
        """Rows of one run or of one experiment, in the order of run and contender."""
        table = self.read().table
        for column, value in (("run_id", run_id), ("experiment_id", experiment_id)):
            if value is not None:
                table = table.filter(pc.equal(table[column], value))
        return from_table(table.sort_by([("started_at", "ascending"), ("trial_id", "ascending")]))

    def find(
        self,
        experiment: Experiment,
        *,
        machine_id: str,
        torch_version: str,
        device_names: Mapping[str, str] = MappingProxyType({}),
    ) -> list[Trial]:
        """The newest run measured here, on this machine, that answers the experiment; empty if none does.

        A run answers if every contender trained all epochs or diverged, or spent at least the budget that is offered.
        Imported rows never answer: machines of the same name may still differ.

        Args:
            experiment: the question.
            machine_id: of this machine.
            torch_version: that would measure now.
            device_names: device → its name now, as far as it is known; rows of a card that was replaced do not answer.

        Returns:
            One row a contender, in the experiment's order.
        """
        runs: dict[str, dict[str, Trial]] = {}
        for trial in self.trials(experiment_id=experiment.id):
            known = (trial.origin, trial.machine_id, trial.torch_version) == ("", machine_id, torch_version)
            known = known and trial.device_name == device_names.get(trial.device, trial.device_name)
            if known and _answers(trial, experiment.budget_s):
                runs.setdefault(trial.run_id, {})[trial.contender] = trial
        wanted = [str(contender) for contender in experiment.contenders]
        for found in reversed(runs.values()):
            if all(name in found for name in wanted):
                return [found[name] for name in wanted]
        return []

    def _files(self) -> list[Path]:
        try:
            return sorted(entry for entry in self.folder.iterdir() if entry.suffix == SUFFIX and entry.is_file())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"The store {self.folder} cannot be read: {error.strerror or error}.") from error


def read_file(source: Path | pa.BufferReader) -> tuple[int, pa.Table]:
    """One file, checked before and while it is decoded.

    Args:
        source: a file, or the bytes of one.

    Returns:
        The version it was written with, and its rows, of `SCHEMA`.

    Raises:
        ForeignFile: it is torn, not ours, too large, or holds values that cannot be.
        OSError: the system does not let it be read.
    """
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            version, claimed_bytes = _check_outside(file)
            table = _decode(file, claimed_bytes)
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # pyarrow raises OSError for broken bytes too
            raise
        raise ForeignFile("it is torn or not a parquet file") from error
    table = _complete(table)
    _check_values(table)
    return version, table


def _check_outside(file: pq.ParquetFile) -> tuple[int, int]:
    """Refuse by what the file says of itself; returns its version and its claimed bytes before compression."""
    facts, schema = file.metadata, file.schema_arrow
    text = (schema.metadata or {}).get(VERSION_KEY, b"")
    if not re.fullmatch(rb"\d{1,6}", text):
        raise ForeignFile("it was not written by Crossover")
    if facts.num_rows > MAX_ROWS or facts.num_columns > MAX_COLUMNS:
        raise ForeignFile(f"it claims {facts.num_rows:,} rows of {facts.num_columns:,} columns, more than are read")
    # not from the columns' own metadata: on broken ones pyarrow ends the process instead of raising
    claimed = sum(facts.row_group(index).total_byte_size for index in range(facts.num_row_groups))
    if claimed > MAX_TABLE_BYTES:
        raise ForeignFile(f"it claims {claimed:,} bytes, more than the {MAX_TABLE_BYTES:,} that are read")
    _check_types(schema)
    return int(text), claimed


def _check_types(schema: pa.Schema) -> None:
    for wanted in SCHEMA:
        places = schema.get_all_field_indices(wanted.name)
        if len(places) > 1:
            raise ForeignFile(f"it has the column {wanted.name} {len(places)} times")
        if places and schema.field(places[0]).type != wanted.type:
            raise ForeignFile(f"its column {wanted.name} is {schema.field(places[0]).type}, not {wanted.type}")


def _decode(file: pq.ParquetFile, claimed_bytes: int) -> pa.Table:
    """The known columns; so many rows at once that even if each held all the claimed bytes they would fit."""
    present = set(file.schema_arrow.names)
    columns = [name for name in SCHEMA.names if name in present]
    rows = max(1, min(BATCH_ROWS, MAX_TABLE_BYTES // max(1, claimed_bytes)))
    size, batches = 0, []
    for batch in file.iter_batches(batch_size=rows, columns=columns, use_threads=False):
        size += batch.nbytes
        if size > MAX_TABLE_BYTES:
            raise ForeignFile(f"it unpacks to more than the {MAX_TABLE_BYTES:,} bytes that are read")
        batch.validate(full=True)  # text need not be UTF-8 otherwise
        batches.append(batch)
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    table = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema=schema)
    if table.num_rows != file.metadata.num_rows:  # pyarrow ends at a damaged page as if it were the last
        raise ForeignFile(f"it claims {file.metadata.num_rows:,} rows and has {table.num_rows:,}")
    return table


def _complete(table: pa.Table) -> pa.Table:
    """Columns that an older version did not have get their default; a value that nothing stands for is refused."""
    present, columns = dict(zip(table.column_names, table.columns, strict=True)), []
    for entry in COLUMNS:
        kind, default = entry.metadata["type"], _default(entry)
        column = present[entry.name] if entry.name in present else pa.nulls(table.num_rows, kind)
        if column.null_count and default is dataclasses.MISSING:
            raise ForeignFile(f"its column {entry.name} has no value")
        if column.null_count and default is not None:
            column = pc.coalesce(column, pa.scalar(list(default) if isinstance(default, tuple) else default, kind))
        columns.append(column)
    return pa.table(columns, schema=SCHEMA)


def _default(entry: "dataclasses.Field[object]") -> object:
    factory = entry.default_factory
    return entry.default if factory is dataclasses.MISSING else factory()


def _check_values(table: pa.Table) -> None:
    """Refuse rows that no measurement can have written."""
    for name, words in (("outcome", OUTCOMES), ("device_kind", DEVICE_KINDS)):
        known = pc.is_in(table[name], value_set=pa.array(list(words)))
        if not pc.all(known, min_count=0).as_py():
            raise ForeignFile(f"its column {name} has a value that is none of {', '.join(words)}")
    for names in _EQUALLY_LONG:
        lengths = [pc.list_value_length(table[name]) for name in names]
        if any(pc.any(pc.not_equal(lengths[0], other)).as_py() for other in lengths[1:]):
            raise ForeignFile(f"its lists {', '.join(names)} are not equally long")
    for field in SCHEMA:
        _check_numbers(field, table[field.name])
    for name in _AT_LEAST_ONE:
        if pc.any(pc.less(_values(table[name]), 1), min_count=0).as_py():
            raise ForeignFile(f"its column {name} has a value below 1")
    if pc.any(pc.less_equal(_values(table["block_end_ns"]), _values(table["block_begin_ns"])), min_count=0).as_py():
        raise ForeignFile("it has a block that does not end after it begins")


def _values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.list_flatten(column) if pa.types.is_list(column.type) else column


def _check_numbers(field: pa.Field, column: pa.ChunkedArray) -> None:
    kind = field.type
    if pa.types.is_list(kind):
        if (pc.max(pc.list_value_length(column)).as_py() or 0) > MAX_LIST:
            raise ForeignFile(f"its list {field.name} has more than {MAX_LIST:,} entries")
        column, kind = pc.list_flatten(column), kind.value_type
        if column.null_count:
            raise ForeignFile(f"its list {field.name} has an entry without a value")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) or field.name in _MAY_BE_ANY_NUMBER:
        return
    if pa.types.is_floating(kind) and not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise ForeignFile(f"its column {field.name} has a value that is not a finite number")
    if pc.any(pc.less(column, 0), min_count=0).as_py():
        raise ForeignFile(f"its column {field.name} has a negative value")


def _answers(trial: Trial, budget_s: float) -> bool:
    done = trial.outcome in ("completed", "diverged")
    return done or (trial.outcome == "budget_spent" and trial.budget_s >= budget_s)


def completeness(outcome: str, steps: int) -> tuple[bool, int]:
    """What decides between rows of the same name: a trial that came to its end, then the one with more steps."""
    return outcome not in CUT_OFF, steps


def each_once(table: pa.Table) -> pa.Table:
    """Of rows with the same name the most complete: a trial may have been cut off first and continued later."""
    best: dict[str, tuple[tuple[bool, int], int]] = {}
    columns = (table[name].to_pylist() for name in ("trial_id", "outcome", "steps"))
    for index, (name, outcome, steps) in enumerate(zip(*columns, strict=True)):
        rank = completeness(outcome, steps)
        if name not in best or rank > best[name][0]:
            best[name] = (rank, index)
    if len(best) == table.num_rows:
        return table
    return table.take(pa.array([index for _, index in best.values()], type=pa.int64()))


def _file_name(trial: Trial) -> str:
    """A name that no other row gets, readable in a listing and valid in every file system, whatever the row says."""
    chosen = re.sub(r"[^A-Za-z0-9_.-]", "", f"{trial.started_at[:19]}-{trial.trial_id}")
    return f"{chosen[:NAME_LENGTH]}-{uuid.uuid4().hex[:8]}"


def _flush_folder(folder: Path) -> None:
    """Make the new name last; Windows and some network file systems cannot flush a folder."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


_cache: OrderedDict[tuple[str, int, int], tuple[int, pa.Table]] = OrderedDict()
_cache_lock = threading.Lock()


def _cached(file: Path) -> tuple[int, pa.Table]:
    """`read_file`, once for each file."""
    facts = file.stat()
    if facts.st_size > MAX_FILE_BYTES:
        raise ForeignFile(f"it has {facts.st_size:,} bytes, more than the {MAX_FILE_BYTES:,} that are read")
    key = (str(file.absolute()), facts.st_size, facts.st_mtime_ns)
    with _cache_lock:
        if key in _cache:
            _cache.move_to_end(key)
            return _cache[key]
    read = read_file(file)
    with _cache_lock:
        _cache[key] = read
        while len(_cache) > CACHED_FILES:
            _cache.popitem(last=False)
    return read
