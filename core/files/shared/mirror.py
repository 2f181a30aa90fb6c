"""A folder of this machine that holds the files of a shared place: read here, written here and there.

Files of a place are never rewritten, only added and, once they were merged, taken away. So a copy is up to date as soon
as it has the same names. A large file that has a small one beside it, which says what is in it, is brought when it is
wanted, and put into a folder of its own beside the copy, which may be emptied at any time. What is written here is
there for readers here at once, and waits beside its marker until the place has it: nothing is lost while the place
cannot be reached. Nothing here knows what is in a file.
"""

import contextlib
import errno
import functools
import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core.errors import StoreError, unwritable
from core.files import address, atomic
from core.files.address import ONCE
from core.files.shared import brought
from core.files.shared.place import Found, Place

WAITING = ".waiting"
"""What the name of a marker ends in; it holds the folder of the place that the file goes to."""

ROWS = "rows"
"""Folder of the place that is mirrored."""

BRING_EVERY_S = 2.0
"""A place is asked so often at most by one process."""

QUICK_S = 0.1
"""What asking may take for that; a place of many thousand files takes longer and is asked as much more rarely, so that
readers wait for a twentieth of the time at most."""

AGAIN_S = 20.0
"""The same once it could not be reached: finding that out takes seconds, for which readers wait."""

AT_ONCE = 12
"""Files that are brought, sent or removed at the same time: a server may be far away, and others ask it too."""

LAG_S = 30.0
"""Age up to which a file that is here stays, though the place does not list it: some list late what was written."""

LOOKS = 5
"""Listings that are made until none of the names of the one before is missing."""

TAKEN = "taken"
"""Folder of the place with the names of files that count once and were merged since: nobody's counts any more."""

LARGE = ".parquet"
"""Ending of files that may be left where they are."""

BROUGHT = ".brought"
"""What the folder of a mirror is called with for those of them that were wanted."""

NAME = re.compile(r"[A-Za-z0-9][\w.+@=-]{0,180}\.(parquet|names|keys)", re.ASCII)
"""Names of files that are brought; others are left where they are."""


class Mirror:
    """The mirror in one folder.

    Attributes:
        folder: of this machine.
        place: that it mirrors.
        failure: why the place could not be brought up to date lately; empty if it could.
    """

    def __init__(self, folder: Path, place: Place, most_bytes: int, beside: str = "") -> None:
        """Take a folder; nothing is asked of the place yet.

        Args:
            folder: of this machine; it is there.
            place: that it mirrors.
            most_bytes: of a file; larger ones stay where they are.
            beside: what a file ends in that says what is in the one beside it, which is then brought when it is wanted.
        """
        self.folder, self.place, self._most_bytes, self._beside = folder, place, most_bytes, beside
        self.failure = ""
        self._lock = threading.Lock()
        self._there: dict[str, str] = {}
        self._next = 0.0

    def bring(self, *, now: bool = False) -> None:
        """Take over what the place has gained and lost, and send what waits; what cannot be done is done next time.

        Args:
            now: even if that was done a moment ago.
        """
        with self._lock:
            if not now and time.monotonic() < self._next:
                return
            self._try(self._take_over, self.send)

    def _try(self, *steps: Callable[[], None]) -> None:
        """Do what needs the place; what fails is done next time, which is not at once."""
        began = time.monotonic()
        try:
            for step in steps:
                step()
            self.failure = ""
        except StoreError as error:
            self.failure = str(error)
        except OSError as error:
            self.failure = unwritable(f"The copy {self.folder}", error)
        now = time.monotonic()
        self._next = now + (AGAIN_S if self.failure else BRING_EVERY_S * max(1.0, (now - began) / QUICK_S))

    @contextlib.contextmanager
    def adding(self, name: str, under: str) -> Iterator[None]:
        """Send a file that is written here meanwhile; it waits if the place cannot be reached, or could not lately.

        Args:
            name: of the file.
            under: folder of the place, below that of all files, in which it will lie.

        Raises:
            OSError: the folder cannot be written.
        """
        marker = self._marker(name)
        atomic.write_atomically(
            marker, lambda file: file.write(under.encode())
        )  # a row without it would be taken for removed
        try:
            yield
        except BaseException:
            marker.unlink(missing_ok=True)
            raise
        if self.failure:
            self.bring()  # all that waits, once it is time and the place is what it was
        else:
            self._try(lambda: self._send(name))

    def _marker(self, name: str) -> Path:
        return self.folder / f".{name}{WAITING}"

    def _send(self, name: str) -> None:
        """Send a file that waits; nothing happens if another process has done that."""
        try:
            under, data = self._marker(name).read_text(), (self.folder / name).read_bytes()
        except FileNotFoundError:
            return
        target = "/".join(filter(None, (ROWS, under, name)))
        if name.startswith(ONCE) and (self.place.has(target) or is_taken(self.place, name)):
            self._marker(name).unlink(missing_ok=True)  # before the file, or what is brought next would wait to be sent
            (self.folder / name).unlink(missing_ok=True)
            return
        self.place.write(target, data)
        self._there[name] = target
        self._marker(name).unlink(missing_ok=True)

    def waiting(self) -> list[str]:
        """Names of files that the place does not have yet."""
        marked = (path.name[1 : -len(WAITING)] for path in self.folder.glob(f".*{WAITING}"))
        return sorted(name for name in marked if (self.folder / name).exists())

    def remove(self, names: Set[str]) -> None:
        """Take files away there; here that is left to the caller.

        Raises:
            StoreError: the place cannot be reached; some may be gone.
        """
        if not names <= self._there.keys():
            self._there = _local_names(self.place.names(ROWS))
        targets = [target for name in names if (target := self._there.pop(name, ""))]
        _each(self.place.remove, targets)

    def send(self) -> None:
        """Send what waits.

        Raises:
            StoreError: the place cannot be reached; some may wait still.
        """
        _each(self._send, self.waiting())

    def _take_over(self) -> None:
        # what is here and marked by nobody was there before this listing, so what is missing from it was removed there
        waiting = set(self.waiting())
        present = {path.name for path in self.folder.iterdir() if NAME.fullmatch(path.name)}
        here = present - waiting - set(self.waiting())
        found = self._listed()
        if here and not found:
            kept = f"those in its copy {self.folder} are kept, delete that folder if this is meant"
            raise StoreError(f"The store {self.place.address} has no rows any more; {kept}.")
        self._there = self._whole(_local_names(found))
        wanted = [name for name in self._there.keys() - here if not self._left_there(name)]
        _each(lambda name: self._fetch(name, found[self._there[name]]), wanted)
        for name in here - self._there.keys():
            self._drop(self.folder / name)

    def _drop(self, path: Path) -> None:
        """Remove what the place has not any more, unless it may only not list it yet."""
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime >= LAG_S:
                path.unlink()

    def _listed(self) -> dict[str, Found]:
        """What is there, none of those missing that hold its rows, though a listing is not made in one moment.

        A listing may miss a file that was merged from others since it began, and those others. But then these were
        there when the listing before was made.
        """
        now = self.place.names(ROWS)
        for _ in range(LOOKS):
            before, now = now, self.place.names(ROWS)
            if before.keys() <= now.keys():
                break
        return now

    def fetched(self, name: str) -> Path:
        """A file that was left in the place until it is wanted, which is now.

        Raises:
            FileNotFoundError: there is none.
            StoreError: the place cannot be reached, or the file not be kept here.
        """
        path = self.folder.with_name(self.folder.name + BROUGHT) / name
        if brought.wanted(path):
            return path
        if self.failure and time.monotonic() < self._next:
            raise StoreError(self.failure)
        if name not in self._there:
            self._there = _local_names(self.place.names(ROWS))
        data = self.place.read(self._there[name], self._most_bytes) if name in self._there else None
        if data is None:
            raise FileNotFoundError(errno.ENOENT, "it is not there any more", name)
        try:
            brought.keep(path, data)
        except OSError as error:
            raise StoreError(unwritable(f"The folder {path.parent}", error)) from error
        return path

    def _whole(self, there: dict[str, str]) -> dict[str, str]:
        """Without files that say what is in another that is not there, or not yet."""
        orphans = {name for name in there if self._beside and name.endswith(self._beside)}
        orphans = {name for name in orphans if name.removesuffix(self._beside) + LARGE not in there}
        return {name: path for name, path in there.items() if name not in orphans}

    def _left_there(self, name: str) -> bool:
        """Whether a file stays in the place until it is wanted, because the one beside it says what is in it."""
        return bool(self._beside) and name.endswith(LARGE) and name.removesuffix(LARGE) + self._beside in self._there

    def _fetch(self, name: str, found: Found) -> None:
        path = self.folder / name
        if path.exists() or found.size > self._most_bytes:
            return
        data = self.place.read(self._there[name], self._most_bytes)
        if data is not None and len(data) == found.size:
            atomic.replace(path, lambda file: file.write(data))


def is_taken(place: Place, name: str) -> bool:
    """Whether a file of a name that counts once was merged into another.

    Raises:
        StoreError: the place cannot be reached.
    """
    return place.has(f"{TAKEN}/{name}")


def take(place: Place, names: Iterable[str]) -> None:
    """Remember of files that are merged into others which of them count once.

    Raises:
        StoreError: the place cannot be reached.
    """
    _each(lambda name: place.write(f"{TAKEN}/{name}", b""), [name for name in names if name.startswith(ONCE)])


def _local_names(paths: Iterable[str]) -> dict[str, str]:
    """Names here of what lies in folders there; where people put two of one name there, each has one of its own."""
    names: dict[str, str] = {}
    for path in sorted(paths):
        name = path.rpartition("/")[2]
        if NAME.fullmatch(name):
            twin = f"{hashlib.sha256(path.encode()).hexdigest()[:12]}-{name}"
            names[twin if name in names else name] = path
    return names


def _each(do: Callable[[str], None], names: Iterable[str]) -> None:
    """Do something with each of some files, many at once; what fails is raised when no other is begun any more."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            list(pool.map(do, names))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def made(at: str, root: Path) -> Path:
    """The folder of this machine that mirrors an address, made if it is not there.

    Args:
        at: address of the place.
        root: where such folders are.

    Raises:
        InvalidValue: the address is none.
        StoreError: the folder cannot be made.
    """
    Place(at)
    folder = root / hashlib.sha256(at.encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / address.FILE).exists():
            atomic.write_bytes(folder / address.FILE, at.encode())
    except OSError as error:
        raise StoreError(unwritable(f"The folder {folder}", error)) from error
    return folder


def of(folder: Path, most_bytes: int, beside: str = "") -> Mirror | None:
    """The mirror in a folder, one for a process; None if the folder is an ordinary one.

    Raises:
        StoreError: the place that it mirrors cannot be used.
    """
    at = address.read_mirror_address(folder)
    return _of(folder, at, most_bytes, beside) if at else None


@functools.lru_cache(maxsize=16)
def _of(folder: Path, at: str, most_bytes: int, beside: str) -> Mirror:
    return Mirror(folder, Place(at), most_bytes, beside)
