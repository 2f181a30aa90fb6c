"""What may lie in the place of a file and is none: links in a circle, folders, pipes, what cannot be read."""

import contextlib
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

UNREADABLE = Path("/proc/self/mem")
"""Said to be a plain file, and no byte of it can be read, not even by who may read everything."""


def remove(path: Path) -> None:
    """Remove whatever lies there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _dangling(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def _folder(path: Path) -> None:
    path.mkdir()
    (path / path.name).mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _unreadable(path: Path) -> None:
    if hasattr(os, "getuid") and os.getuid() == 0:  # root reads whatever its permissions are
        path.symlink_to(UNREADABLE)
    else:
        path.write_bytes(b"{}")
        path.chmod(0)


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the address of a socket has some hundred letters at most
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


ENTRIES: dict[str, Callable[[Path], None]] = {
    "a link loop": _loop,
    "a dangling link": _dangling,
    "a folder": _folder,
    "a pipe": _pipe,
    "an unreadable file": _unreadable,
    "a socket": _socket,
    "a device without end": _endless,
}
"""By what it is: makes it where nothing lies."""


def put(name: str, path: Path) -> None:
    """Put something that is no file in the place of a file."""
    remove(path)
    ENTRIES[name](path)


FILE, FOLDER = b"a file: ", b"a folder"


def content(path: Path) -> bytes:
    """What lies at a path, as bytes that can be compared; nothing that is no plain file is opened."""
    if path.is_symlink():
        return b"a link to " + os.fsencode(path.readlink())
    if path.is_file():
        with contextlib.suppress(PermissionError):
            return FILE + path.read_bytes()
        return b"a file that cannot be read"
    return FOLDER if path.is_dir() else b"something else"
