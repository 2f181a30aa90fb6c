"""What machines that share a store settle among themselves: who compacts it, and which rows count where several came.

Folders that mirror no place have theirs within them, for those who share the folder. What every reader and writer needs
is in `core.results.finding.mirrored`.
"""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from urllib.parse import quote

from core.errors import StoreError
from core.files.address import ONCE
from core.files.shared import mirror
from core.files.shared.lease import Lease
from core.files.shared.place import Place
from core.results.finding import mirrored

COMPACTION_S = 120
"""Seconds after which a compaction that says nothing any more counts as dead."""


def place_of(folder: Path) -> Place:
    """What machines share that share a store: what its folder mirrors, or a folder within that.

    Raises:
        StoreError: the place cannot be used.
    """
    shared = mirrored.mirror_of(folder)
    return shared.place if shared is not None else Place(f"file://{quote(str(folder.absolute()))}/shared", ours=True)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[Callable[[], None]]:
    """Let no other machine compact a shared place meanwhile; an ordinary folder has its lock.

    Yields:
        What makes sure that this is still so, to be called before anything is removed: two who each believe that the
        other keeps a copy would remove both.

    Raises:
        StoreError: another one does, or the place cannot be reached.
    """
    shared = mirrored.mirror_of(folder)
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
        shared = mirrored.mirror_of(folder)
        if shared is not None and {path.name for path in paths} & set(shared.waiting()):
            raise StoreError(shared.failure or f"The store {shared.place.address} has not taken all files.")


def remove(paths: Collection[Path]) -> None:
    """Remove files of one folder from the place that it mirrors, if it is a mirror; here that is left to the caller.

    Of those that count once it is remembered that they were there.

    Raises:
        StoreError: the place cannot be reached; some may be gone.
    """
    for folder in {path.parent for path in paths}:
        if once := [path.name for path in paths if path.parent == folder and path.name.startswith(ONCE)]:
            mirror.take(place_of(folder), once)
        if (shared := mirrored.mirror_of(folder)) is not None:
            shared.remove({path.name for path in paths})


def is_taken(target: Path) -> bool:
    """Whether a file that counts once was merged into another.

    Raises:
        StoreError: what machines share cannot be reached.
    """
    return mirror.is_taken(place_of(target.parent), target.name)
