"""Files of a place that were brought because they were wanted, in a folder that takes so much room and no more.

Those that were not wanted for longest go first. Whoever removes all of them loses nothing: they are brought again.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from core.files import atomic

MOST_BYTES = 2 * 2**30
"""What the files of a folder may take."""

WANTED_S = 60.0
"""How exactly it is remembered when a file was wanted: a question may ask for one a hundred times."""


def wanted(path: Path) -> bool:
    """Whether a file is there, and that it was wanted now."""
    with contextlib.suppress(OSError):  # its date cannot be written, or it was removed by another process
        if time.time() - path.stat().st_mtime > WANTED_S:
            os.utime(path)
    return path.exists()


def keep(path: Path, data: bytes) -> None:
    """Put a file there; others that were not wanted for longer make room for it.

    Raises:
        OSError: the folder cannot be written.
    """
    path.parent.mkdir(exist_ok=True)
    facts = sorted(_facts(path.parent))
    over = len(data) + sum(size for _, size, _ in facts) - MOST_BYTES
    for _, size, name in facts:
        if over <= 0:
            break
        with contextlib.suppress(OSError):  # somebody may read it just now, which Windows does not let us remove
            Path(name).unlink()
            over -= size
    atomic.replace(path, lambda file: file.write(data))


def _facts(folder: Path) -> Iterator[tuple[float, int, str]]:
    """When each file of a folder was wanted, its size and path; those that vanish meanwhile are left out."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                yield entry.stat().st_mtime, entry.stat().st_size, entry.path
