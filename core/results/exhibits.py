"""Exhibits of lessons on disk: JSON files in the folder `exhibits` of a store, one each, replaced whole or not at all.

Those that ship with the project lie in the gallery and are shown as recorded. What is torn, foreign or hostile is
named and skipped. Nothing is ever deleted here.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from core.demonstration import Demonstration
from core.errors import InvalidValue, StoreError
from core.exhibits import Exhibit
from core.results import whole
from core.results.derived import Skipped

FOLDER = "exhibits"
"""Name of the folder inside a store's."""

MAX_BYTES = 2_000_000
"""Size of a file beyond which it is not read; ours have some ten thousand bytes."""

MAX_FILES = 2_000
"""Files that are read, the newest by name; more make nobody wiser."""


def add(store: Path, exhibit: Exhibit) -> Path:
    """Write one exhibit into a file of its own; returns the file. Writing it again changes nothing.

    Args:
        store: folder of the store.
        exhibit: to be kept.

    Raises:
        StoreError: it cannot be written; nothing is left behind.
    """
    folder = store / FOLDER
    target = folder / f"{_stamp(exhibit)}-{exhibit.kind}-{exhibit.id}.json"
    text = json.dumps(exhibit.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        whole.write(target, lambda file: file.write(text.encode()))
    except OSError as error:
        raise StoreError(f"The store {store} cannot be written: {error.strerror or error}.") from error
    return target


def read(store: Path) -> tuple[list[Exhibit], tuple[Skipped, ...]]:
    """Every exhibit of a store by age, the oldest first, and the files that are none; a missing folder is empty.

    Raises:
        StoreError: the folder itself cannot be read.
    """
    try:
        files = sorted(path for path in (store / FOLDER).iterdir() if path.suffix == ".json" and path.is_file())
    except FileNotFoundError:
        return [], ()
    except OSError as error:
        raise StoreError(f"The folder {store / FOLDER} cannot be read: {error.strerror or error}.") from error
    found, skipped = {}, []
    for path in files[-MAX_FILES:]:
        try:
            exhibit = _read(path)
        except FileNotFoundError:  # removed since the folder was listed
            continue
        except (InvalidValue, ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, InvalidValue) else "it is not JSON that can be read"
            skipped.append(Skipped(name=path.name, reason=reason))
        except OSError as error:
            skipped.append(Skipped(name=path.name, reason=f"it cannot be read: {error.strerror or error}"))
        else:
            found[exhibit.id] = exhibit
    return sorted(found.values(), key=lambda exhibit: (exhibit.measured_at, exhibit.id)), tuple(skipped)


def newest(
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


def _read(path: Path) -> Exhibit:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InvalidValue("file", path.name, f"at most {MAX_BYTES:,} bytes")
    return Exhibit.from_json(json.loads(data))


def _stamp(exhibit: Exhibit) -> str:
    """The time as the beginning of a file's name: digits and a T, so that names sort by age."""
    return "".join(character for character in exhibit.measured_at[:19] if character.isascii() and character.isalnum())
