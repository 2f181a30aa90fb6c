"""Files that are there as a whole or not at all: written beside their place, then put into it at once.

A reader sees the old content or the new one, never a part. Nothing here knows what is in a file.
"""

import contextlib
import errno
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_REPLACE_TRIES, _REPLACE_PAUSE_S = 20, 0.01
"""Windows refuses to replace a file while a reader has it open; a reader of ours is done within milliseconds."""


def write(path: Path, fill: Callable[[BinaryIO], object], *, lasting: bool = True) -> None:
    """Let `fill` write a temporary file beside `path`, then put it in the place of `path` at once.

    Args:
        path: of the file; its folder is there.
        fill: writes the content.
        lasting: whether the content is on the disk before the name is, so that it outlives a loss of power.

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


def flush_folder(folder: Path) -> None:
    """Make names that are new or gone last; Windows and some network file systems cannot flush a folder."""
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
