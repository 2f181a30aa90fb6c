"""The store: a folder of parquet files, or an address, for concurrent readers and writers.

The rows of a run are written into one file under a temporary name, flushed to disk and renamed. So a reader sees all of
them or none; `core.results.compaction` merges such files. Files that are truncated, foreign or hostile are reported and
skipped; of files of a newer version, the known columns are read. Nothing here rewrites or deletes a row. This module
also decides which stored run answers a question, so that it need not be measured again. Only rows measured on this
machine, with its present devices and torch, can answer; imported rows never do.
"""

import contextlib
import datetime
import io
import re
import shutil
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypedDict, Unpack, cast

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import StoreError, unwritable
from ..files import atomic
from ..files.project import DATA, SHIPPED_DATA
from ..question.experiment import EVERY_EPOCH, Experiment
from ..remote import local_cache
from . import index, parquet
from .index import FILE, SUFFIX, FolderIndex, Skipped
from .parquet import from_table, read_file, read_piece, refusal, to_table
from .schema import SCHEMA, Trial

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
        self.folder = local_cache.resolve_store(folder) if isinstance(folder, str) else Path(folder)

    def check_readable(self) -> None:
        """Check whether the files of the store can be listed now.

        Raises:
            StoreError: the files cannot be listed, or the server of an address did not answer the last time.
        """
        index.list_files(self.folder, now=True)
        cache = local_cache.open_cache(self.folder)
        if cache is not None and cache.failure:
            raise StoreError(cache.failure)

    @property
    def name(self) -> str:
        """Display name: the address or the folder."""
        return local_cache.describe_store(self.folder)

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
        atomic.remove_abandoned_files(self.folder)
        if (cache := local_cache.open_cache(self.folder)) is not None:
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
            atomic.remove_abandoned_files(self.folder)
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
    cache = local_cache.open_cache(folder)
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
