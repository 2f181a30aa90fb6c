"""Folders that others write into: whether anything in one has changed since it was looked at.

What a page keeps of a folder's files is kept under a signature of them, so that nothing has to be invalidated. An entry
that cannot be looked at counts as it is, and hides no change of another.
"""

import functools
import os
import time
from pathlib import Path

LOOKED_S = 2.0
"""How long a folder that kept its date is taken for unchanged: what is put there gets its name once it is whole."""

SETTLED_NS = 50_000_000
"""A folder's date is believed after so many nanoseconds: two changes at once have the same one."""


def signature(folder: Path) -> int:
    """Changes whenever a file of the folder does; one that grows under its name is seen a moment later."""
    try:
        changed = folder.stat().st_mtime_ns
        settled = time.time_ns() - changed > SETTLED_NS
        return _files(folder, changed, int(time.monotonic() / LOOKED_S) if settled else time.monotonic_ns())
    except OSError:
        return 0


@functools.lru_cache(maxsize=16)
def _files(folder: Path, _changed: int, _moment: int) -> int:
    """Changes with the name, date and size of every file of the folder; looked at once in a moment."""
    with os.scandir(folder) as entries:
        return hash(tuple(sorted((entry.name, *_dated(entry)) for entry in entries)))


def _dated(entry: "os.DirEntry[str]") -> tuple[int, int]:
    """Date and size of an entry; of one that cannot be looked at, such as a link to nothing, why not."""
    try:
        facts = entry.stat()
    except OSError as error:
        return -1, error.errno or 0
    return facts.st_mtime_ns, facts.st_size
