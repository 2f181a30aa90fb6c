"""The address of a store: the local read cache, a folder of this machine that represents the address.

Files of a store never change, so a copy of the right size is valid. Reading downloads missing files; writing goes only
to the address (`remote_store`), and either succeeds or raises. The folder names its address in the file `.address`;
deleting the folder loses nothing. This module does not know what a file contains.
"""

import contextlib
import functools
import hashlib
import os
import re
import threading
import time
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import StoreError, unwritable
from ..files import documents
from ..files.project import DATA

if TYPE_CHECKING:  # pyarrow's file systems are loaded only for a store that has an address
    from .remote_store import RemoteFile, RemoteStore

CACHES = DATA / "shared"
"""Folder of all caches, unless the environment names another one."""

CACHES_VARIABLE = "CROSSOVER_SHARED"
"""Environment variable with another folder for the caches."""

ADDRESS_FILE = ".address"
"""Name of the file in a cache that contains its address."""

FILES_FOLDER = "files"
"""Folder of a cache with the downloaded files, in the same layout as at the address."""

MOST_BYTES = 2 * 2**30
"""Size of the downloaded files above which the oldest are removed."""

LIST_EVERY_S = 2.0
"""Seconds for which a listing is reused. A slow listing is reused for 20 times its duration, so that readers wait at
most a twentieth of the time.
"""

RETRY_AFTER_S = 20.0
"""Seconds for which a listing is reused after a failed attempt, because readers wait for each attempt."""

AT_ONCE = 12
"""Number of files that are downloaded or removed at the same time."""

LISTINGS = 5
"""Maximum number of listings until no file of the previous one is missing."""

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_NAME = re.compile(r"([A-Za-z0-9][\w.+@=-]{0,180}/){0,4}[A-Za-z0-9][\w.+@=-]{0,180}", re.ASCII)


def is_address(text: str) -> bool:
    """Return whether a text is an address instead of a folder of this machine."""
    return bool(_ADDRESS.match(text))


def read_address(folder: Path) -> str:
    """Return the address of a cache folder; empty for an ordinary folder."""
    try:
        return (folder / ADDRESS_FILE).read_text()
    except OSError:
        return ""


def is_remote(folder: Path) -> bool:
    """Return whether a folder is the cache of an address."""
    return bool(read_address(folder))


def describe_store(folder: Path) -> str:
    """Return the name of a store for messages: its address, or its folder."""
    return read_address(folder) or str(folder)


def resolve_store(text: str) -> Path:
    """Return the folder of a store that is given as a folder or as an address; the cache of an address is created.

    Raises:
        InvalidValue: the text looks like an address but is not valid.
        StoreError: the folder of the cache cannot be created.
    """
    if not is_address(text):
        return Path(text).expanduser()
    from .remote_store import RemoteStore

    RemoteStore(text)
    caches = Path(os.environ.get(CACHES_VARIABLE) or CACHES).absolute()
    folder = caches / hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / ADDRESS_FILE).exists():
            documents.write_bytes(folder / ADDRESS_FILE, text.encode())
    except OSError as error:
        raise StoreError(unwritable(f"The folder {folder}", error)) from error
    return folder


def open_cache(folder: Path) -> "LocalCache | None":
    """Return the cache in a folder, one for each process; None for an ordinary folder.

    Raises:
        StoreError: the address cannot be used.
    """
    address = read_address(folder)
    return _open_cache(folder, address) if address else None


@functools.lru_cache(maxsize=16)
def _open_cache(folder: Path, address: str) -> "LocalCache":
    from .remote_store import RemoteStore

    return LocalCache(folder, RemoteStore(address))


class LocalCache:
    """Files of a remote store, downloaded when they are needed; shared by threads.

    Attributes:
        folder: folder of the cache on this machine.
        remote: the files at the address.
        failure: why the last listing failed, in a sentence; empty if it succeeded.
    """

    def __init__(self, folder: Path, remote: "RemoteStore") -> None:
        self.folder, self.remote, self.failure = folder, remote, ""
        self._lock = threading.Lock()
        self._listing: dict[str, RemoteFile] | None = None
        self._next_at = 0.0

    def list_files(self, *, now: bool = False) -> "dict[str, RemoteFile]":
        """Return the files at the address by name, from a recent listing.

        While the server does not answer, the last listing is used, and `failure` says so.

        Args:
            now: whether to list again even if there is a recent listing.

        Raises:
            StoreError: the store cannot be reached, and this process has no earlier listing.
        """
        with self._lock:
            if now or self._listing is None or time.monotonic() >= self._next_at:
                self._refresh()
            return self._listing or {}

    def _refresh(self) -> None:
        began = time.monotonic()
        try:
            self._listing, self.failure = self._list_until_stable(), ""
        except StoreError as error:
            self.failure = str(error)
            if self._listing is None:
                raise
        ended = time.monotonic()
        self._next_at = ended + (RETRY_AFTER_S if self.failure else max(LIST_EVERY_S, 20 * (ended - began)))

    def _list_until_stable(self) -> "dict[str, RemoteFile]":
        """List until no file of the previous listing is missing; a compaction may move rows during a listing."""
        before = self._list() if self._listing is None else self._listing
        for _ in range(LISTINGS):
            listing = self._list()
            if before.keys() <= listing.keys():
                break
            before = listing
        return listing

    def _list(self) -> "dict[str, RemoteFile]":
        return {name: file for name, file in self.remote.list_files().items() if _NAME.fullmatch(name)}

    @property
    def signature(self) -> int:
        """A number that changes whenever files are added or removed; 0 while the store cannot be reached."""
        try:
            return hash(frozenset(self.list_files()))
        except StoreError:
            return 0

    def path_of(self, name: str) -> Path:
        """Return the path of a file on this machine after its download."""
        return self.folder / FILES_FOLDER / name

    def name_of(self, path: Path) -> str:
        """Return the name at the address of the file with a local path, which may not be downloaded yet."""
        return path.relative_to(self.folder / FILES_FOLDER).as_posix()

    def fetch_file(self, path: Path, size: int) -> None:
        """Download a file unless it exists with the size in the listing.

        Raises:
            FileNotFoundError: there is no such file at the address.
            OSError: the folder of the cache cannot be written.
            StoreError: the store cannot be reached.
        """
        if _has_size(path, size):
            return
        data = self.remote.read_file(self.name_of(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        documents.write_atomically(path, lambda file: file.write(data), lasting=False)

    def fetch_files(self, files: Iterable[tuple[Path, int]]) -> None:
        """Download several files in parallel, and free space for them; errors recur when the files are read."""

        def fetch(file: tuple[Path, int]) -> None:
            with contextlib.suppress(OSError, StoreError):
                self.fetch_file(*file)

        missing = [(path, size) for path, size in files if not _has_size(path, size)]
        if missing:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(fetch, missing))
            self._make_room()

    def _make_room(self) -> None:
        """Remove the oldest downloaded files above `MOST_BYTES`."""
        paths = [path for path in (self.folder / FILES_FOLDER).rglob("*") if path.is_file()]
        facts = sorted(((path.stat(), path) for path in paths), key=lambda fact: fact[0].st_mtime_ns)
        excess = sum(fact.st_size for fact, _ in facts) - MOST_BYTES
        for fact, path in facts:
            if excess <= 0:
                return
            with contextlib.suppress(OSError):  # Windows does not remove a file while it is read
                path.unlink()
                excess -= fact.st_size

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file to the address; the next listing includes it.

        Raises:
            StoreError: the store cannot be reached or written.
        """
        self.remote.write_file(name, data)
        self._next_at = 0.0

    def remove_files(self, paths: Collection[Path]) -> None:
        """Remove files from the address and from this machine.

        Raises:
            StoreError: the store cannot be reached; some files may be gone.
        """
        names = [self.name_of(path) for path in paths]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self.remote.remove_file, names))
        for path in paths:
            path.unlink(missing_ok=True)
        self._next_at = 0.0


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False
