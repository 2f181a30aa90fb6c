"""Stores whose folder mirrors a place that many machines share: rows are read here, and written here and there.

Whoever reads or writes the folder of a store need not know that; what is different about such a folder is here. What
reaches servers is imported where there is one: most stores have none. What one machine at a time should do there is in
`core.results.finding.sharing`.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from core.errors import StoreError
from core.files import address
from core.files.address import ONCE
from core.files.project import PROJECT
from core.results.reading import MAX_FILE_BYTES

if TYPE_CHECKING:
    from core.files.shared.mirror import Mirror

MIRRORS = PROJECT / "data" / "shared"
"""Where copies of shared stores are unless the environment says; whoever deletes them loses nothing that was sent."""

MIRRORS_VARIABLE = "CROSSOVER_SHARED"
"""Environment variable that names another folder for the copies of shared stores."""

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
    if not address.is_address(text):
        return Path(text).expanduser()
    from core.files.shared import mirror

    return mirror.made(text, Path(os.environ.get(MIRRORS_VARIABLE) or MIRRORS).absolute())


def mirror_of(folder: Path) -> "Mirror | None":
    """What keeps a folder and a shared place alike; None for an ordinary store.

    Raises:
        StoreError: the place cannot be used.
    """
    if not is_mirror(folder):
        return None
    from core.files.shared import mirror

    return mirror.of(folder, MAX_FILE_BYTES, NAMES_SUFFIX)


def is_mirror(folder: Path) -> bool:
    """Whether a folder mirrors a shared place."""
    return bool(address.read_mirror_address(folder))


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
    if not target.name.startswith(ONCE) or is_mirror(target.parent):
        return True
    from core.results.finding import sharing

    return not (target.exists() or sharing.is_taken(target))


def once(name: str) -> str:
    """The beginning of the name of a file whose rows count once, however many machines write it."""
    return f"{ONCE}{_plain(name)}"


def partition(name: str, table: pa.Table) -> str:
    """The folder of the place that rows go to: by machine, and by the month in which the first was measured.

    A file that counts once goes to the same one, whoever writes it and whenever.
    """
    machines = set(table["machine_id"].to_pylist())
    machine = machines.pop() if len(machines) == 1 else SEVERAL
    month = "shared" if name.startswith(ONCE) else _plain(min(table["started_at"].to_pylist())[:7])
    return f"machine={_plain(machine)}/month={month}"


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isascii() and (letter.isalnum() or letter in "-_")) or SEVERAL
