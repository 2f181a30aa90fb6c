"""The store: a folder of parquet files, read by many and written by many at once.

The rows of a run are written into one file, under a temporary name, flushed to disk and renamed, so that a reader sees
all of them or none; `core.results.compaction` merges such files. Files that are torn, foreign or hostile are named and
skipped; those of a newer version are read as far as they are known. Nothing here rewrites or deletes a row, and nothing
computes a statistic.
"""

import contextlib
import re
import shutil
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypedDict, Unpack, cast

import pyarrow as pa
import pyarrow.compute as pc

from core.errors import StoreError, unwritable
from core.files import atomic
from core.files.project import PROJECT
from core.question.experiment import Experiment
from core.results import writing
from core.results.finding import lookup, mirrored
from core.results.finding.index import FILE, SUFFIX, FolderIndex, Skipped
from core.results.reading import read_file, read_piece, refusal
from core.results.reuse import Accepted, LocalMachine, any_run, completeness, newest_answers
from core.results.schema import SCHEMA, Trial
from core.results.tables import from_table, to_table

RESULTS = PROJECT / "data" / "results"
"""What is measured here."""
GALLERY = PROJECT / "data" / "gallery"
"""What ships with the project; never written by the app."""

FREE_BYTES = 50 * 2**20
"""Free space below which nothing is measured; a row takes some ten kilobytes, a checkpoint more."""

RANKED_BY = ("trial_id", "outcome", "steps")
"""Columns by which rows of the same name are told from each other."""

NAME_LENGTH = 100
"""Characters of a file's name that a row may choose; file systems take 255 bytes, the rest of the name is ours."""


Names: TypeAlias = str | Collection[str] | None


class Named(TypedDict, total=False):
    """Columns by which rows are found, with one name or several in each."""

    run_id: Names
    experiment_id: Names
    trial_id: Names
    machine_id: Names


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


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a store was found to hold.

    Attributes:
        rows: that can be read, no trial twice.
        files: that hold them.
        skipped: files that were not read.
        newer: files of a newer version, read as far as their columns are known here.
    """

    rows: int
    files: int
    skipped: tuple[Skipped, ...] = ()
    newer: tuple[str, ...] = ()


class Store:
    """The rows of one folder; a folder that does not exist is an empty store.

    Attributes:
        folder: where the files are; for an address such as s3://bucket/prefix, of this machine's copy.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = mirrored.located(folder) if isinstance(folder, str) else Path(folder)

    def check_writable(self) -> None:
        """Find out before a measurement whether its rows could be kept, and make the folder that they go to.

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
            raise StoreError(unwritable(f"The store {self.folder}", error)) from error
        atomic.remove_abandoned_files(self.folder)
        if (shared := mirrored.mirror_of(self.folder)) is not None:
            shared.place.check()
        if free < FREE_BYTES:
            raise StoreError(
                f"The disk of the store {self.folder} is nearly full: {free // 2**20} MiB are free, "
                f"{FREE_BYTES // 2**20} MiB are needed."
            )

    def add(self, trial: Trial) -> Path:
        """Write one row into a file of its own; returns the file.

        Raises:
            StoreError: as `add_all`.
        """
        return self.add_all(to_table([trial]))

    def add_all(self, table: pa.Table, *, once: str = "") -> Path:
        """Write rows into one file, all of them or none; returns the file.

        The store's folder is made, but not the one that it lies in: rows that come late bring back no class and no
        student that was deleted meanwhile.

        Args:
            table: one row or more, of `SCHEMA`.
            once: what these rows answer; of all who write rows under such a name, on whatever machine, the first
                counts, and what others bring later is dropped.

        Raises:
            StoreError: it cannot be written, the folder that the store lies in is gone, or a row is one that readers
                refuse; nothing is left behind.
        """
        if reason := refusal(table):
            raise StoreError(f"The store {self.folder} takes no rows that nobody could read again: {reason}.")
        name = mirrored.once(once) if once else _file_name(from_table(table.slice(0, 1))[0])
        target = self.folder / f"{name}{SUFFIX}"
        if not mirrored.counts(target):
            return target
        try:
            self.folder.mkdir(exist_ok=True)
            atomic.remove_abandoned_files(self.folder)
            writing.write_table(target, table)
        except OSError as error:
            with contextlib.suppress(OSError):
                target.unlink()
            raise StoreError(unwritable(f"The store {self.folder}", error)) from error
        return target

    def read(self, columns: Collection[str] = tuple(SCHEMA.names)) -> Contents:
        """Every row that can be read, and the name of every file that cannot. All of it is in memory at once.

        Args:
            columns: those that are decoded, checked and returned.

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
        """Read every file as `read` does, and keep nothing but what is wrong and how many rows there are.

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
        """Files that were refused when rows were asked for by name, so far."""
        return lookup.refused(self.folder)

    def trials(self, *, most_bytes: int | None = None, **names: Unpack[Named]) -> list[Trial]:
        """Rows of one or several runs, experiments, trials or machines, or all, in the order of run and contender."""
        table = self.rows(most_bytes=most_bytes, **names)
        return from_table(table.sort_by([("started_at", "ascending"), ("trial_id", "ascending")]))

    def rows(self, *, most_bytes: int | None = None, **names: Unpack[Named]) -> pa.Table:
        """The rows that `trials` finds as a table of `SCHEMA`, in any order; a table takes a fourth of the room.

        With a name, only the row groups that have such rows are read; and no further, once they would take more than
        `most_bytes` as objects.

        Raises:
            StoreError: the folder itself cannot be read, or the rows are too many.
        """
        given = cast(Mapping[str, Names], names).items()
        wanted = {column: [of] if isinstance(of, str) else list(of) for column, of in given if of is not None}
        table = (
            keep_most_complete(lookup.rows(self.folder, wanted, most_bytes=most_bytes)) if wanted else self.read().table
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
        """For each experiment the newest run measured here that answers it, by `newest_answers`."""
        names = [experiment.id for experiment in experiments]
        rows = self.trials(experiment_id=names, machine_id=local_machine.machine_id)
        return newest_answers(rows, experiments, local_machine, since=since, accepted=accepted)

    def find(self, experiment: Experiment, local_machine: LocalMachine, *, accepted: Accepted = any_run) -> list[Trial]:
        """The newest run measured here that answers one experiment; empty if none does.

        Returns:
            One row a contender, in the experiment's order.
        """
        return self.answers([experiment], local_machine, accepted=accepted).get(experiment.id, [])


def keep_most_complete(table: pa.Table) -> pa.Table:
    """Of rows with the same name the most complete: a trial may have been cut off first and continued later."""
    best: dict[str, tuple[tuple[bool, int], int]] = {}
    columns = (table[name].to_pylist() for name in RANKED_BY)
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


def _read_columns(file: Path, names: Sequence[str]) -> tuple[int, pa.Table]:
    piece = read_piece(mirrored.here(file), columns=names)
    return piece.version, piece.table


def _read_checked_columns(file: Path, names: Sequence[str]) -> tuple[int, pa.Table]:
    """Some columns of a file of which all were checked."""
    version, table = read_file(mirrored.here(file))
    return version, table.select(names)
