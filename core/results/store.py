"""The store: a folder of parquet files, or an address, for concurrent readers and writers.

The rows of a run are written into one file under a temporary name, flushed to disk and renamed. So a reader sees all of
them or none. Files that are truncated, foreign or hostile are reported and skipped; of files of a newer version, the
known columns are read. This module also decides which stored run answers a question, so that it need not be measured
again. Only rows measured on this machine, with its present devices and torch, can answer; imported rows never do.

Compaction merges many small files into few large ones, while other processes read and write. A part is written
completely, flushed and read back before any of its source files is removed. So a process that is killed at any moment
loses no row, and readers count a row that is in two files once. A copy is dropped only if both rows are among the
merged files. So two compactions of one address, on different machines, lose no row either. Files that are truncated,
foreign, of a newer version or not regular files are left unchanged and reported.
"""

import contextlib
import datetime
import io
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, TypedDict, Unpack, cast

import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock, Timeout

from .. import remote
from ..errors import ForeignFile, StoreError, unwritable
from ..files import documents
from ..files.project import DATA, SHIPPED_DATA
from ..question.experiment import EVERY_EPOCH, Experiment
from . import index, parquet
from .index import FILE, SUFFIX, File, FolderIndex, Skipped
from .parquet import PART_BYTES, from_table, read_file, read_piece, refusal, to_table
from .schema import SCHEMA, SCHEMA_VERSION, Trial

# Reuse


CUT_OFF = ("stopped", "interrupted")
"""Outcomes of trials that can be continued under the same name."""


@dataclass(frozen=True, kw_only=True)
class LocalMachine:
    """Identity of this machine for measurements.

    Attributes:
        machine_id: id of this machine.
        torch_version: version of PyTorch that would measure.
        device_names: device → name, as far as known; rows of a GPU that was replaced do not answer.
    """

    machine_id: str
    torch_version: str
    device_names: Mapping[str, str] = field(default_factory=dict, hash=False)

    def has_measured(self, trial: Trial) -> bool:
        """Return whether this machine measured a row."""
        known = (trial.origin, trial.machine_id, trial.torch_version) == ("", self.machine_id, self.torch_version)
        return known and trial.device_name == self.device_names.get(trial.device, trial.device_name)


Accepted: TypeAlias = Callable[[Experiment, Sequence[Trial]], bool]
"""Function that decides whether a whole run, with one row per contender, answers its question
(`core.answer.speedup`).
"""


def any_run(_asked: Experiment, _trials: Sequence[Trial]) -> bool:
    """Accept every run, to show all measurements."""
    return True


def newest_answers(
    trials: Iterable[Trial],
    experiments: Iterable[Experiment],
    local_machine: LocalMachine,
    *,
    since: str = "",
    accepted: Accepted = any_run,
) -> dict[str, list[Trial]]:
    """Return for each experiment the newest run measured here that answers it.

    A run answers a complete training if every contender trained all epochs, diverged, or spent at least the offered
    budget. If the training may end once the faster device is decided, a run also answers if all contenders were only
    timed. For a question of times alone, each contender needs one of four: the requested pairs, the offered budget
    spent, too little memory, or a variant that failed.

    Args:
        trials: rows of any experiments, in any order.
        experiments: the questions.
        local_machine: identity of this machine.
        since: only runs that began then or later, ISO 8601 with an offset; empty for all.
        accepted: function that decides for each whole run whether it is an answer.

    Returns:
        Experiment id → one row per contender, in the experiment's order. Questions without an answer are left out.
    """
    asked = {experiment.id: experiment for experiment in experiments}
    runs: dict[str, dict[str, dict[str, Trial]]] = {name: {} for name in asked}
    for trial in sorted(trials, key=lambda trial: (trial.started_at, trial.trial_id)):
        experiment = asked.get(trial.experiment_id)
        if (
            experiment
            and local_machine.has_measured(trial)
            and _began_since(trial, since)
            and _answers_question(trial, experiment)
        ):
            runs[experiment.id].setdefault(trial.run_id, {})[trial.contender] = trial
    found = {name: _find_newest_complete(runs[name].values(), of, accepted) for name, of in asked.items()}
    return {name: rows for name, rows in found.items() if rows}


def completeness(outcome: str, steps: int) -> tuple[bool, int]:
    """Return a sort key for rows of the same name: completed trials rank higher, then trials with more steps."""
    return outcome not in CUT_OFF, steps


def _find_newest_complete(
    runs: Iterable[Mapping[str, Trial]], experiment: Experiment, accepted: Accepted
) -> list[Trial]:
    """Return the rows of the newest accepted run with every contender, in the experiment's order."""
    wanted = [str(contender) for contender in experiment.contenders]
    for found in reversed(list(runs)):
        rows = [found[name] for name in wanted if name in found]
        if len(rows) == len(wanted) and accepted(experiment, rows):
            return rows
    return []


def _began_since(trial: Trial, since: str) -> bool:
    if not since:
        return True
    with contextlib.suppress(ValueError, TypeError):  # a foreign time may be invalid
        return datetime.datetime.fromisoformat(trial.started_at) >= datetime.datetime.fromisoformat(since)
    return False


def _answers_question(trial: Trial, experiment: Experiment) -> bool:
    """Return whether one row answers its part of a question; of incomplete rows, only failed variants do."""
    enough_time = trial.budget_s >= experiment.budget_s
    if experiment.pairs == EVERY_EPOCH:
        trained = trial.steps >= trial.epochs * trial.steps_per_epoch
        tested = bool(trial.confusion)  # not if only times were requested
        return (
            trial.outcome == "completed"
            or (trial.outcome == "timed" and not experiment.whole)
            or (trial.outcome == "diverged" and (trained or enough_time))
            or (trial.outcome == "budget_spent" and tested and enough_time)
        )
    if trial.outcome in CUT_OFF:
        return trial.lane_failed
    by_the_budget = enough_time and trial.outcome in ("budget_spent", "diverged")
    return trial.outcome == "out_of_memory" or len(trial.block_pair) >= experiment.pairs or by_the_budget


# The store


RESULTS = DATA / "results"
"""Folder of rows measured here."""
GALLERY = SHIPPED_DATA / "gallery"
"""Folder of rows that ship with the project; the app never writes to it."""

FREE_BYTES = 50 * 2**20
"""Minimum free space in bytes for a measurement; a row takes some ten kilobytes, a checkpoint more."""

RANKED_BY = ("trial_id", "outcome", "steps")
"""Columns that rank rows of the same name."""

NAME_LENGTH = 100
"""Maximum characters of the part of a file name that comes from a row; file systems allow 255 bytes in total."""


Names: TypeAlias = str | Collection[str] | None


class Named(TypedDict, total=False):
    """Columns by which rows are found, with one name or several in each."""

    run_id: Names
    experiment_id: Names
    trial_id: Names
    machine_id: Names


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Contents of a store.

    Attributes:
        table: all rows, of `SCHEMA`, without duplicate trials.
        skipped: files that were not read.
        newer: files of a newer version, of which the known columns were read.
    """

    table: pa.Table
    skipped: tuple[Skipped, ...] = ()
    newer: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Result of checking a store.

    Attributes:
        rows: number of readable rows, without duplicate trials.
        files: number of files with these rows.
        skipped: files that were not read.
        newer: files of a newer version, of which the known columns were read.
    """

    rows: int
    files: int
    skipped: tuple[Skipped, ...] = ()
    newer: tuple[str, ...] = ()


class Store:
    """The rows of one folder; a folder that does not exist is an empty store.

    Attributes:
        folder: where the files are; for an address such as s3://bucket/prefix, its local cache.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = remote.resolve_store(folder) if isinstance(folder, str) else Path(folder)

    def check_readable(self) -> None:
        """Check whether the files of the store can be listed now.

        Raises:
            StoreError: the files cannot be listed, or the server of an address did not answer the last time.
        """
        index.list_files(self.folder, now=True)
        cache = remote.open_cache(self.folder)
        if cache is not None and cache.failure:
            raise StoreError(cache.failure)

    @property
    def name(self) -> str:
        """Display name: the address or the folder."""
        return remote.describe_store(self.folder)

    def check_writable(self) -> None:
        """Check before a measurement whether its rows can be stored, and create their folder.

        Raises:
            StoreError: the folder cannot be created or written, or its disk is nearly full.
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
            raise StoreError(unwritable(f"The store {self.name}", error)) from error
        documents.remove_abandoned_files(self.folder)
        if (cache := remote.open_cache(self.folder)) is not None:
            cache.remote.check_writable()
        if free < FREE_BYTES:
            raise StoreError(
                f"The disk of the store {self.name} is nearly full: {free // 2**20} MiB are free, "
                f"{FREE_BYTES // 2**20} MiB are needed."
            )

    def add(self, trial: Trial) -> Path:
        """Write one row into a separate file, and return the file.

        Raises:
            StoreError: as `add_all`.
        """
        return self.add_all(to_table([trial]))

    def add_all(self, table: pa.Table) -> Path:
        """Write rows into one file, all of them or none, and return the file.

        The store's folder is created, but not its parent, so that late rows do not restore a deleted class or student.

        Args:
            table: one row or more, of `SCHEMA`.

        Raises:
            StoreError: the file cannot be written, the parent folder was removed, the address cannot be reached, or
                readers would refuse a row; no file is left behind.
        """
        if reason := refusal(table):
            raise StoreError(f"The store {self.folder} refused rows that could not be read again: {reason}.")
        name = f"{_file_name(from_table(table.slice(0, 1))[0])}{SUFFIX}"
        try:
            self.folder.mkdir(exist_ok=True)
            documents.remove_abandoned_files(self.folder)
            return write_file(self.folder, name, table)
        except OSError as error:
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()
            raise StoreError(unwritable(f"The store {self.folder}", error)) from error

    def read(self, columns: Collection[str] = tuple(SCHEMA.names)) -> Contents:
        """Return all readable rows, and the names of unreadable files. All rows are in memory at once.

        Args:
            columns: columns that are decoded, checked and returned.

        Raises:
            StoreError: the folder itself cannot be read.
        """
        names = [name for name in SCHEMA.names if name in {*columns, *RANKED_BY}]
        found = FolderIndex(
            self.folder, lambda file: _read_columns(file, names), SCHEMA.empty_table().select(names)
        ).now()
        table = keep_most_complete(found.table.drop_columns([FILE]))
        wanted = table.select([name for name in names if name in columns])
        return Contents(table=wanted, skipped=found.skipped, newer=found.newer)

    def check(self) -> Checked:
        """Read every file like `read`, and return only the number of rows and the errors.

        Raises:
            StoreError: the folder itself cannot be read.
        """
        names = ["trial_id"]
        found = FolderIndex(
            self.folder, lambda file: _read_checked_columns(file, names), SCHEMA.empty_table().select(names)
        ).now()
        rows = pc.count_distinct(found.table["trial_id"]).as_py()
        return Checked(rows=rows, files=len(found.files), skipped=found.skipped, newer=found.newer)

    def list_refused(self) -> tuple[Skipped, ...]:
        """List the files that were refused so far when rows were requested by name."""
        return index.list_refused(self.folder)

    def trials(self, *, most_bytes: int | None = None, **names: Unpack[Named]) -> list[Trial]:
        """Return rows of runs, experiments, trials or machines, or all, in the order of run and contender."""
        table = self.rows(most_bytes=most_bytes, **names)
        return from_table(table.sort_by([("started_at", "ascending"), ("trial_id", "ascending")]))

    def rows(self, *, most_bytes: int | None = None, **names: Unpack[Named]) -> pa.Table:
        """Return the rows of `trials` as a table of `SCHEMA`, in any order; it needs a quarter of the memory.

        With names, only the row groups with matching rows are read. Reading stops once the rows would need more than
        `most_bytes` as objects.

        Raises:
            StoreError: the folder itself cannot be read, or the rows are too many.
        """
        given = cast(Mapping[str, Names], names).items()
        wanted = {column: [of] if isinstance(of, str) else list(of) for column, of in given if of is not None}
        table = (
            keep_most_complete(index.find_rows(self.folder, wanted, most_bytes=most_bytes))
            if wanted
            else self.read().table
        )
        for column, of in wanted.items():
            table = table.filter(pc.is_in(table[column], pa.array(of, pa.string())))
        return table

    def answers(
        self,
        experiments: Collection[Experiment],
        local_machine: LocalMachine,
        *,
        since: str = "",
        accepted: Accepted = any_run,
    ) -> dict[str, list[Trial]]:
        """Return for each experiment the newest run measured here that answers it, by `newest_answers`."""
        names = [experiment.id for experiment in experiments]
        rows = self.trials(experiment_id=names, machine_id=local_machine.machine_id)
        return newest_answers(rows, experiments, local_machine, since=since, accepted=accepted)

    def find(self, experiment: Experiment, local_machine: LocalMachine, *, accepted: Accepted = any_run) -> list[Trial]:
        """Return the newest run measured here that answers one experiment; empty if there is none.

        Returns:
            One row per contender, in the experiment's order.
        """
        return self.answers([experiment], local_machine, accepted=accepted).get(experiment.id, [])


def write_file(folder: Path, name: str, table: pa.Table) -> Path:
    """Write rows into a file of a store, in its folder or at its address; return its local path.

    Raises:
        OSError: the folder cannot be written, or readers would refuse the file; no file is left behind.
        StoreError: the address cannot be reached.
    """
    cache = remote.open_cache(folder)
    if cache is None:
        parquet.write_table(folder / name, table)
        return folder / name
    content = io.BytesIO()
    parquet.encode_rows(table, content)
    cache.write_file(name, content.getvalue())
    return cache.path_of(name)


def keep_most_complete(table: pa.Table) -> pa.Table:
    """Return the most complete row of each name, because a trial may have been interrupted and continued later."""
    best: dict[str, tuple[tuple[bool, int], int]] = {}
    columns = (table[name].to_pylist() for name in RANKED_BY)
    for place, (name, outcome, steps) in enumerate(zip(*columns, strict=True)):
        rank = completeness(outcome, steps)
        if name not in best or rank > best[name][0]:
            best[name] = (rank, place)
    if len(best) == table.num_rows:
        return table
    return table.take(pa.array([place for _, place in best.values()], type=pa.int64()))


def _file_name(trial: Trial) -> str:
    """Return a unique file name, readable in a listing and valid in every file system, for any content of the row."""
    chosen = re.sub(r"[^A-Za-z0-9_.-]", "", f"{trial.started_at[:19]}-{trial.trial_id}")
    return f"{chosen[:NAME_LENGTH]}-{uuid.uuid4().hex[:8]}"


def _read_columns(file: Path, names: Sequence[str]) -> tuple[int, pa.Table]:
    piece = read_piece(file, columns=names)
    return piece.version, piece.table


def _read_checked_columns(file: Path, names: Sequence[str]) -> tuple[int, pa.Table]:
    """Return some columns of a file after all columns were checked."""
    version, table = read_file(file)
    return version, table.select(names)


LOCK = ".compaction.lock"
"""Name of the lock file of a compaction; the system releases the lock when its process ends."""

PREFIX = "compacted"
"""Prefix of the name of a part."""

OLD_SUFFIXES = (".names", ".keys")
"""Suffixes of obsolete files that earlier versions wrote with parts; nothing reads them."""

SMALL_BYTES = 2 * 2**20
"""Size on disk below which a file is merged; of the parts of a compaction, at most the last is smaller."""

BATCH_BYTES, BATCH_FILES = 2 * PART_BYTES, 500
"""Limits of the bytes of rows that are sorted at a time, which needs several times the memory, and of the number of
files.

If a compaction stops early, its finished batches remain.
"""

ORDER = ("machine_id", "dataset", "model", "started_at", "run_id", "trial_id")
"""Sort order of rows, which groups the rows of one crossover that were measured in sequence on one machine."""


@dataclass(frozen=True, kw_only=True)
class Compacted:
    """Result of a compaction.

    Attributes:
        merged: files that were merged and removed.
        parts: files that were created from them.
        rows: rows in these parts.
        copies: identical duplicates of rows that were removed.
        left: files that were left unchanged, with the reason.
    """

    merged: int = 0
    parts: int = 0
    rows: int = 0
    copies: int = 0
    left: tuple[Skipped, ...] = ()


def compact(folder: Path) -> Compacted:
    """Merge the small files of a store, while readers and writers continue.

    Raises:
        StoreError: another compaction is running on this machine, the folder is the gallery's or cannot be read or
            written, or the address cannot be reached.
    """
    if folder.resolve() == GALLERY.resolve():
        raise StoreError("The gallery of the project cannot be compacted; compact a copy of it.")
    if not folder.is_dir():
        return Compacted()
    try:
        with FileLock(folder / LOCK, timeout=0):
            return _compact_folder(folder)
    except Timeout as error:
        name = remote.describe_store(folder)
        raise StoreError(f"The store {name} is already being compacted. Wait until it finishes.") from error
    except OSError as error:
        raise StoreError(unwritable(f"The store {remote.describe_store(folder)}", error)) from error


def _compact_folder(folder: Path) -> Compacted:
    for pattern in (f".{PREFIX}-*.tmp", *(f"{PREFIX}-*{suffix}" for suffix in OLD_SUFFIXES)):
        for abandoned in folder.glob(pattern):
            abandoned.unlink(missing_ok=True)
    left: list[Skipped] = []
    done = Compacted()
    for files, table in _read_batches(folder, left):
        done = _merge(folder, files, table, done)
    return replace(done, left=tuple(left))


def _read_batches(folder: Path, left: list[Skipped]) -> Iterator[tuple[list[File], pa.Table]]:
    """Yield small files with their rows, ordered by name, in batches that can be sorted in memory."""
    listing = index.list_files(folder, now=True)
    small = sorted((file for file in listing if file.size < SMALL_BYTES), key=lambda file: file.path.name)
    index.fetch_files(folder, small)
    files: list[File] = []
    tables: list[pa.Table] = []
    size = 0
    for file in small:
        try:
            index.fetch_file(folder, file)
            tables.append(_read_small(file.path))
            files.append(file)
            size += tables[-1].nbytes
        except (ForeignFile, OSError) as error:
            reason = str(error) if isinstance(error, ForeignFile) else index.unreadable_because(error)
            left.append(Skipped(name=file.path.name, reason=reason))
        if size >= BATCH_BYTES or len(files) >= BATCH_FILES:
            yield files, pa.concat_tables(tables)
            files, tables, size = [], [], 0
    if files:
        yield files, pa.concat_tables(tables)


def _read_small(path: Path) -> pa.Table:
    """Return the rows of a file; raise ForeignFile if it must be left unchanged."""
    if path.is_symlink():
        raise ForeignFile("it is a link to another file")
    piece = read_piece(path)
    if piece.version > SCHEMA_VERSION:
        raise ForeignFile("it was written by a newer version")
    if not piece.has_known_columns:
        raise ForeignFile("it has columns that are unknown here")
    return piece.table


def _merge(folder: Path, files: Sequence[File], table: pa.Table, done: Compacted) -> Compacted:
    """Write the rows of some files into parts, then remove the files; return the updated result."""
    rows = _drop_copies(table)
    copies = table.num_rows - rows.num_rows
    if len(files) == 1 and not copies:
        return done
    ordered = rows.sort_by([(name, "ascending") for name in ORDER])
    parts = [_write_part(folder, part) for part in parquet.split(ordered)]
    removed = _remove_files(folder, files)
    return Compacted(
        merged=done.merged + removed,
        parts=done.parts + len(parts),
        rows=done.rows + rows.num_rows,
        copies=done.copies + copies,
    )


def _write_part(folder: Path, table: pa.Table) -> File:
    """Write rows into a new part, and read it back to verify it."""
    newest = parquet.format_file_date(max(table["started_at"].to_pylist()))
    path = write_file(folder, f"{PREFIX}-{newest}-{uuid.uuid4().hex}{SUFFIX}", table)
    part = next(file for file in index.list_files(folder, now=True) if file.path == path)
    try:
        index.fetch_file(folder, part)
        if read_piece(path).table.num_rows == table.num_rows:
            return part
        reason = "it lacks some of the rows"
    except ForeignFile as error:
        reason = str(error)
    _remove_files(folder, [part])
    name = remote.describe_store(folder)
    raise StoreError(f"The store {name} was not compacted: the new file cannot be read, because {reason}.")


def _remove_files(folder: Path, files: Sequence[File]) -> int:
    """Remove files unless they were changed; return the number of removed files."""
    if (cache := remote.open_cache(folder)) is not None:
        cache.remove_files([file.path for file in files])
        return len(files)
    removed = 0
    for file in filter(index.is_unchanged, files):
        with contextlib.suppress(PermissionError):  # on Windows while it is read; it is removed next time
            file.path.unlink(missing_ok=True)
            removed += 1
    documents.flush_folder(folder)
    return removed


def _drop_copies(table: pa.Table) -> pa.Table:
    """Return the rows without identical duplicates."""
    names = table["trial_id"].to_pylist()
    counts = Counter(names)
    seen, kept = set[str](), []
    for place, name in enumerate(names):
        row = repr(table.slice(place, 1).to_pylist()[0]) if counts[name] > 1 else ""
        kept.append(not row or row not in seen)
        seen.add(row)
    return table.filter(pa.array(kept, pa.bool_()))
