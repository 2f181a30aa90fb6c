"""Whole rows by name, from stores of any size: where each row lies is remembered, and only that is decoded.

Of every file the names of its rows are read once and kept as hashes, 44 bytes a row. What is decoded for a question is
a row group at a time, checked like any file, and the latest are kept up to a number of bytes. Nothing here writes.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.errors import ForeignFile, StoreError
from core.results.finding.index import FILE, TRIES, File, FolderIndex, Skipped, folder_index
from core.results.finding.kept import Kept
from core.results.reading import read_piece
from core.results.schema import SCHEMA
from core.results.tables import object_bytes

KEYS = ("trial_id", "run_id", "experiment_id", "machine_id")
"""Columns by which rows are looked up."""

BUCKETS = 2**16
"""Groups of hashes that end alike."""

Hashes: TypeAlias = npt.NDArray[np.int64]

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
        A table of `SCHEMA`. Which of several rows of one trial counts, and whether it is the one that was wanted, is
        left to the caller.

    Raises:
        StoreError: the folder cannot be read, or the rows take more than `most_bytes`.
    """
    index, unreadable = _index(folder), set[File]()
    for _ in range(TRIES):
        found = index.now()
        tables, size = [SCHEMA.empty_table()], 0
        try:
            for number, group, places in _places(found.table, wanted):
                file = found.files[number]
                if file not in unreadable and file.path not in besides:
                    tables.append(_group(file, group).take(places))
                    size += object_bytes(tables[-1])
                    _require_room(size, most_bytes)
        except FileNotFoundError:  # merged into another since the folder was listed
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


def _require_room(size: int, most_bytes: int | None) -> None:
    if most_bytes is not None and size > most_bytes:
        raise StoreError(f"These rows take more than {most_bytes // 2**20:,} MiB of memory and are not read at once.")


def several(folder: Path, trial_ids: Collection[str]) -> set[str]:
    """Those of the trials that have several rows in a store."""
    keys = _column(_index(folder).now().table, "trial_id")
    hashes = _hashes(trial_ids)
    names, counts = np.unique(keys[_find(keys, hashes)], return_counts=True)
    again = set(names[counts > 1].tolist())
    return {name for name, key in zip(trial_ids, hashes.tolist(), strict=True) if key in again}


def _index(folder: Path) -> FolderIndex:
    """Where the rows of a folder lie."""
    return folder_index(folder, _names, _no_names)


def _no_names() -> pa.Table:
    columns = {**dict.fromkeys(KEYS, pa.int64()), "group": pa.int32(), "row": pa.int32()}
    return pa.schema(columns).empty_table()


def _names(file: Path) -> tuple[int, pa.Table]:
    """The hashed names of a file's rows, and where they lie in it; raises as `read_piece` does."""
    piece = read_piece(file, columns=KEYS)
    names = {name: pa.array(_hashes(piece.table[name].to_pylist()), pa.int64()) for name in KEYS}
    group = np.repeat(np.arange(len(piece.groups)), piece.groups)
    row = np.concatenate([np.arange(count) for count in piece.groups]) if piece.groups else group
    return piece.version, pa.table({**names, "group": group, "row": row}, schema=_no_names().schema)


def _hashes(names: Collection[str]) -> Hashes:
    return np.fromiter(map(hash, names), np.int64, len(names))


def _places(table: pa.Table, wanted: Mapping[str, Collection[str]]) -> Iterator[tuple[int, int, pa.Array]]:
    """File, row group and rows in it of the trials that were asked for; two names of one hash are told apart later."""
    (first, names), *others = wanted.items()
    asked = _find(_column(table, first), _hashes(names))
    for name, names in others:
        asked = asked[np.isin(_column(table, name)[asked], _hashes(names))]
    trials = _column(table, "trial_id")
    found = table.take(pa.array(_find(trials, np.unique(trials[asked]))))
    groups = found.group_by([FILE, "group"], use_threads=False).aggregate([("row", "list")])
    for number, group, places in zip(*(groups[name] for name in (FILE, "group", "row_list")), strict=True):
        yield number.as_py(), group.as_py(), places.values


def _find(keys: Hashes, wanted: Hashes) -> Hashes:
    """Places of some hashes among many: most are told apart by their last bits, without comparing them."""
    last = np.zeros(BUCKETS, dtype=bool)
    last[wanted % BUCKETS] = True
    near = np.flatnonzero(last[keys & (BUCKETS - 1)])
    return near[np.isin(keys[near], wanted)]


def _column(table: pa.Table, name: str) -> Hashes:
    """A column without a copy, where it is in one piece."""
    column = table[name]
    values: Hashes = column.chunk(0).to_numpy() if column.num_chunks == 1 else column.to_numpy()
    return values


def _group(file: File, group: int) -> pa.Table:
    """A row group with all its columns, decoded and checked unless that was done lately."""
    return _groups.get((file, group), lambda: read_piece(file.path, groups=[group]).table.combine_chunks())


def _bytes(table: pa.Table) -> int:
    return int(table.nbytes) + COLUMN_BYTES * int(table.num_columns)


_groups: Kept[tuple[File, int], pa.Table] = Kept(CACHE_BYTES, _bytes)
