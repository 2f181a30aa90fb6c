"""Stores whose folder mirrors a place that many machines share: rows are read here, and written here and there.

Whoever reads or writes the folder of a store need not know that; what is different about such a folder is here.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from core.errors import StoreError
from core.files.project import PROJECT
from core.files.shared import mirror, place
from core.files.shared.lease import Lease
from core.files.shared.mirror import Mirror
from core.files.shared.place import Place
from core.results.reading import MAX_FILE_BYTES

MIRRORS = PROJECT / "data" / "shared"
"""Where copies of shared stores are unless the environment says; whoever deletes them loses nothing that was sent."""

MIRRORS_VARIABLE = "CROSSOVER_SHARED"
"""Environment variable that names another folder for them."""

COMPACTION_S = 120
"""Seconds after which a compaction that says nothing any more counts as dead."""

NAMES_SUFFIX = ".names"
"""What the file ends in that lies beside a large part, and says whose rows are in it."""

SEVERAL = "several"
"""Machine of a file with rows of several."""


def located(text: str) -> Path:
    """The folder of a store that is given as a folder or as an address.

    Raises:
        InvalidValue: it looks like an address and is none.
        StoreError: the folder of its copy cannot be made.
    """
    if not place.is_address(text):
        return Path(text)
    return mirror.made(text, Path(os.environ.get(MIRRORS_VARIABLE) or MIRRORS).absolute())


def mirror_of(folder: Path) -> Mirror | None:
    """What keeps a folder and a shared place alike; None for an ordinary store.

    Raises:
        StoreError: the place cannot be used.
    """
    return mirror.of(folder, MAX_FILE_BYTES, NAMES_SUFFIX)


def place_of(folder: Path) -> Place:
    """What machines share that share a store: what its folder mirrors, or a folder within that.

    Raises:
        StoreError: the place cannot be used.
    """
    shared = mirror_of(folder)
    return shared.place if shared is not None else Place(f"file://{quote(str(folder.absolute()))}/shared", ours=True)


def is_mirror(folder: Path) -> bool:
    """Whether a folder mirrors a shared place."""
    return bool(mirror.address_of(folder))


def here(path: Path) -> Path:
    """Where a file of a store can be read on this machine, brought from a shared place if it was left there.

    Raises:
        FileNotFoundError: there is none.
        StoreError: the place cannot be reached.
    """
    if path.exists() or (shared := mirror_of(path.parent)) is None:
        return path
    return shared.fetched(path.name)


def bring(folder: Path) -> None:
    """Let a folder have what the place has that it mirrors, unless that was done a moment ago."""
    if (shared := mirror_of(folder)) is not None:
        shared.bring()


def bring_now(folder: Path) -> None:
    """The same, even if it was done a moment ago."""
    if (shared := mirror_of(folder)) is not None:
        shared.bring(now=True)


def require_brought(folder: Path) -> None:
    """Let a folder have now what the place has, as a file of it is gone there and its rows are in another.

    Raises:
        StoreError: the place cannot be reached.
    """
    bring_now(folder)
    if reason := failure(folder):
        raise StoreError(reason)


def failure(folder: Path) -> str:
    """Why a folder could not be brought up to date lately; empty if it could, or need not be."""
    shared = mirror_of(folder)
    return shared.failure if shared is not None else ""


@contextlib.contextmanager
def adding(target: Path, table: pa.Table) -> Iterator[None]:
    """Send a file of rows, or beside one, that is written meanwhile, where its folder is a mirror."""
    shared = mirror_of(target.parent)
    with shared.adding(target.name, partition(target.name, table)) if shared is not None else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def held(folder: Path) -> Iterator[Callable[[], None]]:
    """Let no other machine compact a shared place meanwhile; an ordinary folder has its lock.

    Yields:
        What makes sure that this is still so, to be called before anything is removed: two who each believe that the
        other keeps a copy would remove both.

    Raises:
        StoreError: another one does, or the place cannot be reached.
    """
    shared = mirror_of(folder)
    if shared is None:
        yield lambda: None
        return
    lease = Lease(shared.place, "compaction", COMPACTION_S)
    taken = StoreError(f"The store {shared.place.address} is being compacted already; wait until that is done.")
    if not lease.take():
        raise taken

    over, lost = threading.Event(), threading.Event()

    def keep() -> None:
        while not over.wait(COMPACTION_S / 4):
            with contextlib.suppress(StoreError):  # it is tried again in a while
                if not lease.renew():
                    lost.set()

    def require_held() -> None:
        if lost.is_set() or not lease.renew():
            raise taken

    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    try:
        shared.bring(now=True)
        if shared.failure:
            raise StoreError(shared.failure)
        yield require_held
    finally:
        over.set()
        keeper.join()  # or it might claim again what is released
        with contextlib.suppress(StoreError):
            lease.release()


def require_sent(paths: Collection[Path]) -> None:
    """Make sure that the place has files that were written here, before others are removed for them.

    Raises:
        StoreError: it has not.
    """
    for folder in {path.parent for path in paths}:
        shared = mirror_of(folder)
        if shared is not None and {path.name for path in paths} & set(shared.waiting()):
            raise StoreError(shared.failure or f"The store {shared.place.address} has not taken all files.")


def remove(paths: Collection[Path]) -> None:
    """Remove files of one folder from the place that it mirrors, if it is a mirror; here that is left to the caller.

    Of those that count once it is remembered that they were there.

    Raises:
        StoreError: the place cannot be reached; some may be gone.
    """
    for folder in {path.parent for path in paths}:
        if once := [path.name for path in paths if path.parent == folder and path.name.startswith(mirror.ONCE)]:
            mirror.take(place_of(folder), once)
        if (shared := mirror_of(folder)) is not None:
            shared.remove({path.name for path in paths})


def waiting(folder: Path) -> int:
    """Files of a folder that the place does not have yet which it mirrors."""
    shared = mirror_of(folder)
    return len(shared.waiting()) if shared is not None else 0


def counts(target: Path) -> bool:
    """Whether rows may go to a file: not to one that counts once, and was written or merged into others before.

    Where the folder is a mirror, its place is asked when the file is sent.

    Raises:
        StoreError: what machines share cannot be reached.
    """
    if not target.name.startswith(mirror.ONCE) or is_mirror(target.parent):
        return True
    return not (target.exists() or mirror.is_taken(place_of(target.parent), target.name))


def once(name: str) -> str:
    """The beginning of the name of a file whose rows count once, however many machines write it."""
    return f"{mirror.ONCE}{_plain(name)}"


def partition(name: str, table: pa.Table) -> str:
    """The folder of the place that rows go to: by machine, and by the month in which the first was measured.

    A file that counts once goes to the same one, whoever writes it and whenever.
    """
    machines = set(table["machine_id"].to_pylist())
    machine = machines.pop() if len(machines) == 1 else SEVERAL
    month = "shared" if name.startswith(mirror.ONCE) else _plain(min(table["started_at"].to_pylist())[:7])
    return f"machine={_plain(machine)}/month={month}"


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isascii() and (letter.isalnum() or letter in "-_")) or SEVERAL
