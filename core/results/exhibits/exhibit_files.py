"""Exhibits of lessons on disk: JSON files in the folder `exhibits` of a store, one each, replaced whole or not at all.

Those that ship with the project lie in the gallery and are shown as recorded. What is torn, foreign or hostile is
named and skipped. Nothing is ever deleted here.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from core.errors import CrossoverError, DamagedFile, StoreError, unwritable
from core.files import atomic, documents
from core.question.demonstrations import Demonstration
from core.results.exhibits.exhibit import Exhibit
from core.results.finding.index import Skipped, unreadable_because

EXHIBITS_FOLDER = "exhibits"
"""Name of the folder inside a store's."""

SUFFIX = ".json"

MAX_BYTES = 500_000
"""Size of a file beyond which it is not read; ours have some ten thousand bytes."""

MAX_FILES = 500
MAX_TOTAL_BYTES = 16 * 2**20
"""Files that are read, the newest by name, and what they may have together; more make nobody wiser."""


def add_exhibit(store: Path, exhibit: Exhibit) -> Path:
    """Write one exhibit into a file of its own; returns the file. Writing it again changes nothing.

    Args:
        store: folder of the store.
        exhibit: to be kept.

    Raises:
        StoreError: it cannot be written, or the folder that the store lies in is gone; nothing is left behind.
    """
    folder = store / EXHIBITS_FOLDER
    target = folder / f"{_stamp(exhibit)}-{exhibit.kind}-{exhibit.id}{SUFFIX}"
    text = json.dumps(exhibit.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    try:
        for place in (store, folder):  # not what the store lies in: see `core.results.store.Store.add_all`
            place.mkdir(exist_ok=True)
        atomic.remove_abandoned_files(folder)
        atomic.write_atomically(target, lambda file: file.write(text.encode()))
    except OSError as error:
        raise StoreError(unwritable(f"The store {store}", error)) from error
    return target


def read_exhibits(store: Path) -> tuple[list[Exhibit], tuple[Skipped, ...]]:
    """Every exhibit of a store by age, the oldest first, and the files that are none; a missing folder is empty.

    Raises:
        StoreError: the folder itself cannot be read.
    """
    found: dict[str, Exhibit] = {}
    skipped: list[Skipped] = []
    for path in _newest_files(store / EXHIBITS_FOLDER, skipped):
        try:
            exhibit = _read_exhibit(path)
        except DamagedFile as error:
            skipped.append(Skipped(name=path.name, reason=error.reason))
        except CrossoverError as error:
            skipped.append(Skipped(name=path.name, reason=str(error)))
        else:
            found |= {exhibit.id: exhibit} if exhibit else {}
    skipped.sort(key=lambda entry: entry.name)
    return sorted(found.values(), key=lambda exhibit: (exhibit.measured_at, exhibit.id)), tuple(skipped)


def find_newest_exhibit(
    exhibits: Iterable[Exhibit], demonstration: Demonstration, *, machine_id: str, torch_version: str
) -> Exhibit | None:
    """The last exhibit that shows what is asked on this machine; None if none does.

    Args:
        exhibits: of any age and machine.
        demonstration: what is asked; its budget does not matter.
        machine_id: of this machine.
        torch_version: that would show it now.
    """
    wanted = (demonstration.id, machine_id, torch_version)
    found = [entry for entry in exhibits if (entry.demonstration.id, entry.machine_id, entry.torch_version) == wanted]
    return max(found, key=lambda entry: entry.measured_at, default=None)


def _newest_files(folder: Path, skipped: list[Skipped]) -> Iterator[Path]:
    """The files that are read, by name; those that cannot be looked at, or are too many, are named in `skipped`."""
    total = 0
    for number, name in enumerate(sorted(_names(folder), reverse=True)):
        try:
            total += (folder / name).stat().st_size
        except OSError as error:
            if (folder / name).is_symlink():  # otherwise it was removed since the folder was listed
                skipped.append(Skipped(name=name, reason=unreadable_because(error)))
        else:
            if number < MAX_FILES and total <= MAX_TOTAL_BYTES:
                yield folder / name
            else:
                skipped.append(Skipped(name=name, reason="there are too many newer ones, so it is not read"))


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.name.endswith(SUFFIX) and not _is_folder(entry)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"The folder {folder} cannot be read: {error.strerror or error}.") from error


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle
        return False


def _read_exhibit(path: Path) -> Exhibit | None:
    """What a file shows; None where it was removed since the folder was listed."""
    data = documents.read_json(path, dict[str, Any], most_bytes=MAX_BYTES)
    return Exhibit.from_json(data) if data is not None else None


def _stamp(exhibit: Exhibit) -> str:
    """The time as the beginning of a file's name: digits and a T, so that names sort by age."""
    return "".join(character for character in exhibit.measured_at[:19] if character.isascii() and character.isalnum())
