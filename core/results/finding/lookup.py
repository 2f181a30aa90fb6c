"""Whole rows by name, from stores of any size: where each row lies is remembered, and only that is decoded.

Of every file the names of its runs are kept as hashes, a line for each run and row group, 20 bytes in memory. Of a
large part, which nobody merges again, they lie beside it in a small file, so that it need not be opened, nor be on this
machine, before a row of it is wanted. What is decoded for a question is a row group at a time, checked like any file,
and the latest are kept up to a number of bytes. Nothing here writes.
"""

import zlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import ForeignFile, StoreError
from core.results.finding import mirrored
from core.results.finding.index import FILE, TRIES, File, FolderIndex, Skipped, folder_index
from core.results.finding.kept import Kept
from core.results.reading import MAX_FILE_ROWS, read_piece
from core.results.schema import SCHEMA, SCHEMA_VERSION, VERSION_KEY
from core.results.tables import object_bytes

KEYS = ("trial_id", "run_id", "experiment_id", "machine_id")
"""Columns by which rows are looked up."""

HASHED = KEYS[1:]
"""Those that are kept: a trial's name begins with that of its run."""

RUN_LENGTH = 12
"""Letters of a trial's name that are its run's."""

NAMES = pa.schema(
    {**dict.fromkeys(HASHED, pa.uint32()), "group": pa.uint16(), "rows": pa.uint16()},
    metadata={VERSION_KEY: str(SCHEMA_VERSION)},
)
"""What is kept of a file: the hashed names of a run, and how many rows of it lie in which row group."""

MAX_NAMES_BYTES = 4 * 2**20
"""Bytes of a file of names; ours have a tenth."""

BUCKETS = 2**16
"""Groups of hashes that end alike."""

Hashes: TypeAlias = npt.NDArray[np.uint32]

CACHE_BYTES = 32 * 2**20
"""What decoded row groups may take in memory."""

COLUMN_BYTES = 512
"""What a column of a decoded table takes besides its values; with one row, that is most of it."""


def rows(
    folder: Path,
    wanted: Mapping[str, Collection[str]],
    *,
    besides: Collection[Path] = (),
    most_bytes: int | None = None,
) -> pa.Table:
    """The rows of a store that have one of the wanted names in each of the columns, all rows of their trials included.

    Args:
        folder: of the store.
        wanted: column of `KEYS` → names.
        besides: files that are left out.
        most_bytes: what the rows may take as objects; nothing is read on where they take more.

    Returns:
        A table of `SCHEMA`, with other rows of the same runs. Which of several rows of one trial counts, and whether it
        is the one that was wanted, is left to the caller.

    Raises:
        StoreError: the folder cannot be read, a shared place that has the rows cannot be reached, or the rows take more
            than `most_bytes`.
    """
    index, unreadable = _index(folder), set[File]()
    for _ in range(TRIES):
        found = index.now()
        tables, size = [SCHEMA.empty_table()], 0
        runs = _runs(found.table, wanted)
        try:
            for number, group in _groups_with(found.table, runs):
                file = found.files[number]
                if file not in unreadable and file.path not in besides:
                    tables.append(_of_runs(_group(file, group), runs, wanted.get("trial_id")))
                    size += object_bytes(tables[-1])
                    require_room(size, most_bytes)
        except FileNotFoundError:  # merged into another since the folder was listed
            mirrored.require_brought(folder)
            unreadable.add(file)
            continue
        except ForeignFile as error:
            index.refuse(file, str(error))
            continue
        except OSError:
            unreadable.add(file)
            continue
        break
    return pa.concat_tables(tables)


def refused(folder: Path) -> tuple[Skipped, ...]:
    """Files of which something turned out to be wrong when their rows were read; a list of all rows may have them."""
    return _index(folder).refused


def count(folder: Path) -> int:
    """Rows of a store, those of one trial counted each."""
    return int(pc.sum(_index(folder).now().table["rows"]).as_py() or 0)


def require_room(size: int, most_bytes: int | None) -> None:
    """Refuse to read rows that would take too much memory; raises StoreError."""
    if most_bytes is not None and size > most_bytes:
        raise StoreError(f"These rows take more than {most_bytes // 2**20:,} MiB of memory and are not read at once.")


def several(folder: Path, trial_ids: Collection[str]) -> set[str]:
    """Those of the trials that may have several rows in a store: their run has more than these trials are."""
    table = _index(folder).now().table
    runs = [name[:RUN_LENGTH] for name in trial_ids]
    named = Counter(_hashes(runs).tolist())
    near = _find(_column(table, "run_id"), np.fromiter(named, np.uint32, len(named)))
    there = Counter[int]()
    for run, count in zip(_column(table, "run_id")[near].tolist(), _column(table, "rows")[near].tolist(), strict=True):
        there[run] += count
    return {name for name, run in zip(trial_ids, _hashes(runs).tolist(), strict=True) if there[run] > named[run]}


def _index(folder: Path) -> FolderIndex:
    """Where the rows of a folder lie."""
    return folder_index(folder, _derived, NAMES.empty_table)


def _derived(file: Path) -> tuple[int, pa.Table]:
    """What is kept of a file; raises as `read_piece` does."""
    kept = _kept_beside(file)
    return (SCHEMA_VERSION, kept) if kept is not None else names(file)


def names(file: Path) -> tuple[int, pa.Table]:
    """The schema version of a file, and the names of its runs, of `NAMES`; raises as `read_piece` does."""
    piece = read_piece(mirrored.here(file), columns=KEYS)
    return piece.version, names_of(piece.table, piece.groups)


def names_of(table: pa.Table, groups: Sequence[int]) -> pa.Table:
    """Names of rows that lie in row groups of so many rows."""
    hashed = {name: pa.array(_hashes(table[name].to_pylist()), pa.uint32()) for name in HASHED}
    lying = pa.table({**hashed, "group": pa.array(np.repeat(np.arange(len(groups)), groups), pa.uint16())})
    counted = lying.group_by(lying.column_names, use_threads=False).aggregate([([], "count_all")])
    return counted.rename_columns({"count_all": "rows"}).select(NAMES.names).cast(NAMES)


def _kept_beside(file: Path) -> pa.Table | None:
    """The names that lie beside a file; None if there are none, or they are not what they should be."""
    beside = file.with_suffix(mirrored.NAMES_SUFFIX)
    try:
        if beside.stat().st_size > MAX_NAMES_BYTES:
            return None
        with pq.ParquetFile(beside, page_checksum_verification=True) as opened:
            alike = opened.schema_arrow.equals(NAMES, check_metadata=True) and opened.metadata.num_rows <= MAX_FILE_ROWS
            table = opened.read(use_threads=False) if alike else None
    except (pa.ArrowException, ValueError, OSError):
        return None
    return table if table is not None and not any(column.null_count for column in table.columns) else None


def _hashes(texts: Collection[str]) -> Hashes:
    return np.fromiter((zlib.crc32(text.encode()) for text in texts), np.uint32, len(texts))


def _runs(table: pa.Table, wanted: Mapping[str, Collection[str]]) -> Hashes:
    """Runs that have one of the wanted names in each column; two names of one hash are told apart later."""
    hashed = {name: texts for name, texts in wanted.items() if name != "trial_id"}
    if (trials := wanted.get("trial_id")) is not None:
        runs = {name[:RUN_LENGTH] for name in trials}
        hashed["run_id"] = runs & set(hashed.get("run_id", runs))
    first = min(hashed, key=HASHED.index)
    places = _find(_column(table, first), _hashes(hashed.pop(first)))
    for name, texts in hashed.items():
        places = places[np.isin(_column(table, name)[places], _hashes(texts))]
    return np.unique(_column(table, "run_id")[places])


def _groups_with(table: pa.Table, runs: Hashes) -> list[tuple[int, int]]:
    """File and row group of all rows of some runs."""
    places = _find(_column(table, "run_id"), runs)
    found = zip(_column(table, FILE)[places].tolist(), _column(table, "group")[places].tolist(), strict=True)
    return sorted(set(found))


def _of_runs(table: pa.Table, runs: Hashes, trials: Collection[str] | None) -> pa.Table:
    """The rows of some runs; of some of their trials alone if these are named."""
    chosen = pa.array(np.isin(_hashes(table["run_id"].to_pylist()), runs))
    if trials is not None:
        chosen = pc.and_(chosen, pc.is_in(table["trial_id"], pa.array(list(trials), pa.string())))
    return table.filter(chosen)


def _find(keys: Hashes, wanted: Hashes) -> npt.NDArray[np.intp]:
    """Places of some hashes among many: most are told apart by their last bits, without comparing them."""
    last = np.zeros(BUCKETS, dtype=bool)
    last[wanted % BUCKETS] = True
    near = np.flatnonzero(last[keys & (BUCKETS - 1)])
    return near[np.isin(keys[near], wanted)]


def _column(table: pa.Table, name: str) -> npt.NDArray[np.uint32]:
    """A column without a copy, where it is in one piece."""
    column = table[name]
    values: Hashes = column.chunk(0).to_numpy() if column.num_chunks == 1 else column.to_numpy()
    return values


def _group(file: File, group: int) -> pa.Table:
    """A row group with all its columns, decoded and checked unless that was done lately."""
    return _groups.get(
        (file, group), lambda: read_piece(mirrored.here(file.path), groups=[group]).table.combine_chunks()
    )


def _bytes(table: pa.Table) -> int:
    return int(table.nbytes) + COLUMN_BYTES * int(table.num_columns)


_groups: Kept[tuple[File, int], pa.Table] = Kept(CACHE_BYTES, _bytes)
