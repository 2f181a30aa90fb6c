"""Where a job's files go while their disk takes nothing: memory that outlives the process that wrote them.

A twin of the job's folder, made when the disk first refuses a file and gone when the disk has taken it. On Linux that
is memory that all processes of a user share; other systems have a temporary folder, which may be another disk at
least. It is lost when the machine is started anew. Nothing here knows what is in a file.
"""

import contextlib
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SPARE_VARIABLE = "CROSSOVER_SPARE"
"""Environment variable that names another folder in memory, for rows that no disk takes."""

_SHARED_MEMORY = Path("/dev/shm")


def twin(folder: Path) -> Path:
    """The place of a job folder's files while its disk takes none; there or not."""
    return _of_queue(folder.parent) / folder.name


def make(folder: Path) -> Path:
    """The place of a job folder's files, there from now on.

    Raises:
        OSError: there is no memory either, or somebody else has taken the place.
    """
    root = _root()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = root.lstat()
    if not stat.S_ISDIR(facts.st_mode) or (hasattr(os, "getuid") and facts.st_uid != os.getuid()):
        message = f"{root} belongs to somebody else"
        raise OSError(message)
    place = twin(folder)
    place.mkdir(parents=True, exist_ok=True)
    return place


def drop(folder: Path) -> None:
    """Remove the twin of a job's folder."""
    if twin(folder).exists():
        shutil.rmtree(twin(folder), ignore_errors=True)
        drop_empty(folder)


def drop_empty(folder: Path) -> None:
    """Remove the twin of a job's folder if nothing is left in it, and what was made for it."""
    place = twin(folder)
    with contextlib.suppress(OSError):  # whatever is not empty stays
        for empty in (place, place.parent):
            empty.rmdir()


def names(jobs: Path) -> Iterator[str]:
    """Names of the jobs of a queue that have a twin.

    Args:
        jobs: folder of the queue.
    """
    with contextlib.suppress(OSError):
        yield from sorted(path.name for path in _of_queue(jobs).iterdir())


def _of_queue(jobs: Path) -> Path:
    return _root() / hashlib.sha256(str(jobs.absolute()).encode()).hexdigest()[:16]


def _root() -> Path:
    if named := os.environ.get(SPARE_VARIABLE):
        return Path(named)
    user = os.getuid() if sys.platform != "win32" else "user"
    shared = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
    return shared / f"crossover-{user}"
