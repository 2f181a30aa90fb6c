"""What rows are found by besides the names in their columns: which keys lie in which row groups of a large part.

A key is a number that follows from several rows, such as the beginning of a study's name; what it is made of is said by
who compacts. Beside a part lies a small file with all its keys, sorted, in which one is found without reading the rest;
so nothing is kept in memory, whatever the size of the store. Who finds rows by a key looks whether they are the wanted
ones: a file that is not what it should be costs a look in vain. Nothing here knows what a key stands for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.results import writing

SUFFIX = ".keys"
"""What the file ends in that lies beside a large part."""

HEADER = b"CRSSKEY1"

PAIR = np.dtype([("key", "<u4"), ("group", "<u2")])
"""A key and a row group in which it is."""

Pairs: TypeAlias = npt.NDArray[np.void]


@dataclass(frozen=True, kw_only=True)
class Keys:
    """How keys follow from rows.

    Attributes:
        columns: that are needed for it.
        of: from rows with these columns to their keys, each with the places of the rows that it follows from.
    """

    columns: tuple[str, ...]
    of: Callable[[pa.Table], Sequence[tuple[int, Sequence[int]]]]

    def pairs(self, table: pa.Table, groups: Sequence[int]) -> Pairs:
        """The keys of rows that lie in row groups of so many rows, sorted."""
        group = np.repeat(np.arange(len(groups)), groups)
        lying = {(key, int(group[place])) for key, places in self.of(table) for place in places}
        return np.array(sorted(lying), PAIR)


def write(part: Path, table: pa.Table, pairs: Pairs) -> None:
    """Put the keys of a part's rows beside it, whole or not at all, here and in a shared place.

    Args:
        part: file of the rows.
        table: some columns of its rows, with machine and time.
        pairs: as `Keys.pairs` has them.

    Raises:
        OSError: the folder cannot be written.
    """
    content = HEADER + pairs["key"].tobytes() + pairs["group"].tobytes()
    writing.write_sidecar(part, SUFFIX, table, lambda file: file.write(content))


def groups_beside(part: Path, key: int) -> list[int] | None:
    """The row groups of a part that have a key, as the file beside it says; None if there is none that can be read."""
    try:
        content = np.memmap(part.with_suffix(SUFFIX), mode="r")
    except (OSError, ValueError):  # an empty file cannot be mapped
        return None
    count, rest = divmod(len(content) - len(HEADER), PAIR.itemsize)
    if rest or bytes(content[: len(HEADER)]) != HEADER:
        return None
    keys = content[len(HEADER) :][: 4 * count].view("<u4")
    groups = content[len(HEADER) + 4 * count :].view("<u2")
    return _between(keys, groups, key)


def groups_among(pairs: Pairs, key: int) -> list[int]:
    """The row groups that have a key, as pairs in memory say it."""
    return _between(pairs["key"], pairs["group"], key)


def _between(keys: npt.NDArray[np.uint32], groups: npt.NDArray[np.uint16], key: int) -> list[int]:
    first, end = (np.searchsorted(keys, np.uint32(key), side) for side in ("left", "right"))
    found: list[int] = groups[first:end].tolist()
    return found
