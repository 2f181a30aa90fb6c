"""The store: a folder of parquet files, one atomic file a trial, read by many and written by many at once.

A file is written under a temporary name, flushed to disk and renamed, so that a reader sees all of it or nothing.
Files that are torn, foreign or hostile are named and skipped; those of a newer version are read as far as they are
known. Nothing here rewrites or deletes a row, and nothing computes a statistic.
"""

import contextlib
import datetime
import errno
import os
import re
import shutil
import threading
import uuid
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import ForeignFile, StoreError
from core.experiment import EVERY_EPOCH, Experiment
from core.results.reading import MAX_FILE_BYTES, read_file
from core.results.schema import SCHEMA, SCHEMA_VERSION, Trial, from_table, to_table

PROJECT = Path(__file__).parents[2]
RESULTS = PROJECT / "data" / "results"
"""What is measured here."""
GALLERY = PROJECT / "data" / "gallery"
"""What ships with the project; never written by the app."""

SUFFIX = ".parquet"

FREE_BYTES = 50 * 2**20
"""Free space below which nothing is measured; a row takes some ten kilobytes, a checkpoint more."""

CUT_OFF = ("stopped", "interrupted")
"""Outcomes of trials that can be continued under the same name."""

NAME_LENGTH = 100
"""Characters of a file's name that a row may choose; file systems take 255 bytes, the rest of the name is ours."""

CACHED_FILES = 20_000
"""Files never change, so what was read once need not be read again."""


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

    def trials(
        self, *, run_id: str | Collection[str] | None = None, experiment_id: str | Collection[str] | None = None
    ) -> list[Trial]:
        """Rows of one or several runs or experiments, or all, in the order of run and contender."""
        table = self.read().table
        for column, wanted in (("run_id", run_id), ("experiment_id", experiment_id)):
            if wanted is not None:
                names = [wanted] if isinstance(wanted, str) else list(wanted)
                table = table.filter(pc.is_in(table[column], value_set=pa.array(names, pa.string())))
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

        Which runs answer, and what the arguments mean, is said in `newest_answers`.

        Returns:
            One row a contender, in the experiment's order.
        """
        found = newest_answers(
            self.trials(experiment_id=experiment.id),
            [experiment],
            machine_id=machine_id,
            torch_version=torch_version,
            device_names=device_names,
        )
        return found.get(experiment.id, [])

    def _files(self) -> list[Path]:
        try:
            return sorted(entry for entry in self.folder.iterdir() if entry.suffix == SUFFIX and entry.is_file())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"The store {self.folder} cannot be read: {error.strerror or error}.") from error


def newest_answers(
    trials: Iterable[Trial],
    experiments: Iterable[Experiment],
    *,
    machine_id: str,
    torch_version: str,
    device_names: Mapping[str, str] = MappingProxyType({}),
    since: str = "",
) -> dict[str, list[Trial]]:
    """For each experiment the newest run measured here, on this machine, that answers it.

    A run answers a training that was asked for to its end if every contender trained all epochs, diverged, or spent
    at least the budget that is offered. It answers a question for times alone if every contender has as many pairs as
    are asked for, spent at least the budget that is offered, or did not fit into memory.
    Imported rows never answer: machines of the same name may still differ.

    Args:
        trials: rows of any experiments, in any order.
        experiments: the questions.
        machine_id: of this machine.
        torch_version: that would measure now.
        device_names: device → its name now, as far as it is known; rows of a card that was replaced do not answer.
        since: only runs that began then or later, ISO 8601 with an offset; empty for all.

    Returns:
        Experiment id → one row a contender, in the experiment's order. Questions without an answer are left out.
    """
    asked = {experiment.id: experiment for experiment in experiments}
    runs: dict[str, dict[str, dict[str, Trial]]] = {name: {} for name in asked}
    for trial in sorted(trials, key=lambda trial: (trial.started_at, trial.trial_id)):
        known = (trial.origin, trial.machine_id, trial.torch_version) == ("", machine_id, torch_version)
        known = known and trial.device_name == device_names.get(trial.device, trial.device_name)
        experiment = asked.get(trial.experiment_id)
        if experiment and known and _began_since(trial, since) and _answers(trial, experiment):
            runs[experiment.id].setdefault(trial.run_id, {})[trial.contender] = trial
    found = {name: _newest_whole(runs[name].values(), of) for name, of in asked.items()}
    return {name: rows for name, rows in found.items() if rows}


def _newest_whole(runs: Iterable[Mapping[str, Trial]], experiment: Experiment) -> list[Trial]:
    """Of runs by age, contender → row, the last that has every contender; its rows in the experiment's order."""
    wanted = [str(contender) for contender in experiment.contenders]
    for found in reversed(list(runs)):
        if all(name in found for name in wanted):
            return [found[name] for name in wanted]
    return []


def _began_since(trial: Trial, since: str) -> bool:
    if not since:
        return True
    with contextlib.suppress(ValueError, TypeError):  # a time by another hand may be anything
        return datetime.datetime.fromisoformat(trial.started_at) >= datetime.datetime.fromisoformat(since)
    return False


def _answers(trial: Trial, asked: Experiment) -> bool:
    """Whether one row answers its part of a question; nobody knows better what was cut off."""
    enough_time = trial.budget_s >= asked.budget_s
    if asked.pairs == EVERY_EPOCH:
        trained = trial.steps >= trial.epochs * trial.steps_per_epoch
        tested = bool(trial.confusion)  # where only times were asked for, nothing was
        return (
            trial.outcome == "completed"
            or (trial.outcome == "diverged" and (trained or enough_time))
            or (trial.outcome == "budget_spent" and tested and enough_time)
        )
    if trial.outcome in CUT_OFF:
        return False
    by_the_budget = enough_time and trial.outcome in ("budget_spent", "diverged")
    return trial.outcome == "out_of_memory" or len(trial.block_pair) >= asked.pairs or by_the_budget


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
