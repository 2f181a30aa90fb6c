"""Atomic writing of files: each is written under a temporary name in the same folder, then renamed at once.

A reader sees the old content or the new one, never a part. Nothing here knows the content of a file.
"""

import contextlib
import errno
import functools
import itertools
import json
import os
import re
import stat
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_REPLACE_TRIES, _REPLACE_PAUSE_S = 20, 0.01
"""Tries of a replacement and seconds between them.

Windows refuses to replace a file while a reader has it open; readers in Crossover close it within milliseconds.
"""


ABANDONED_S = 3_600
"""Age in seconds from which a temporary file is abandoned, because its writer was killed."""

SWEEP_EVERY_S = 600
"""Minimum seconds between two sweeps of a folder by one process, because a sweep lists the folder."""

MOST_SWEPT = 300
"""Maximum number of files that are removed at a time, so that writers do not wait."""

_OURS = re.compile(r"\..+\.[0-9a-f]{8}\.tmp|\.probe-[0-9a-f]{32}")
"""Names of Crossover's temporary files: those of `write_atomically`, and the probe files of `core.results.store`."""


def write_atomically(path: Path, fill: Callable[[BinaryIO], object], *, lasting: bool = True) -> None:
    """Let `fill` write a temporary file next to `path`, then replace `path` with it at once.

    Args:
        path: path of the file, in an existing folder.
        fill: writes the content.
        lasting: whether the content is flushed to disk before the rename, so that it survives a loss of power.

    Raises:
        OSError: the folder cannot be written; no temporary file is left behind.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("wb") as file:
            fill(file)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        _rename(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    if lasting:
        flush_folder(path.parent)


def replace(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """Replace a file; a folder of the same name is renamed first.

    Nothing is flushed, because the content is not needed after a loss of power.

    Raises:
        OSError: the folder cannot be written.
    """
    if path.is_dir() and not path.is_symlink():
        set_aside(path)
    write_atomically(path, fill, lasting=False)


def set_aside(path: Path) -> None:
    """Change the suffix of a file or folder to `.damaged`, replacing an earlier file of this name.

    Raises:
        OSError: the path cannot be renamed.
    """
    path.replace(path.with_suffix(".damaged"))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` by `data`.

    Raises:
        OSError: the folder cannot be written.
    """
    replace(path, lambda file: file.write(data))


def write_json(path: Path, data: object) -> None:
    """Replace `path` by `data` as JSON.

    Raises:
        OSError: the folder cannot be written.
    """
    write_bytes(path, json.dumps(data).encode())


def remove_abandoned_files(folder: Path) -> None:
    """Remove temporary files of killed writers from a folder, unless this was done recently; ignore failures."""
    _remove_abandoned_cached(folder, int(time.monotonic() / SWEEP_EVERY_S))


@functools.lru_cache(maxsize=64)
def _remove_abandoned_cached(folder: Path, _moment: int) -> None:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        ours = (entry for entry in entries if _OURS.fullmatch(entry.name))
        for entry in itertools.islice(filter(_is_abandoned, ours), MOST_SWEPT):
            with contextlib.suppress(OSError):
                os.unlink(entry)  # noqa: PTH108 - an entry of this folder, not its link target


def _is_abandoned(entry: "os.DirEntry[str]") -> bool:
    with contextlib.suppress(OSError):
        facts = entry.stat(follow_symlinks=False)
        return stat.S_ISREG(facts.st_mode) and time.time() - facts.st_mtime > ABANDONED_S
    return False


def flush_folder(folder: Path) -> None:
    """Flush created and removed names to disk; Windows and some network file systems cannot flush a folder."""
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


def _rename(temporary: Path, path: Path) -> None:
    for _ in range(_REPLACE_TRIES - 1):
        with contextlib.suppress(PermissionError):
            temporary.replace(path)
            return
        time.sleep(_REPLACE_PAUSE_S)
    temporary.replace(path)
