"""Exhibits: the results of demonstrations, which `core.measure` produces and the pages show.

Exhibits are stored as JSON, so that an exhibit recorded on one machine can be shown on another. A file is checked like
any foreign input. Nothing here measures, and nothing imports torch.
"""

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from msgspec import Meta

from .. import remote
from ..errors import CrossoverError, DamagedFile, InvalidValue, StoreError, unwritable
from ..files import documents
from ..files.documents import Count
from ..question.demonstrations import Demonstration, Kind
from ..question.experiment import MAX_CONTENDERS
from .index import Skipped, unreadable_because

MAX_TEXT = 20_000
"""Maximum characters of a text; the longest are PyTorch's messages."""

MAX_NAME = 300
"""Maximum characters of a name or a title."""

MAX_ENTRIES = 1_000
"""Maximum readings of a clock, or parameters of a network."""

MAX_PARTS = 100
"""Maximum pieces of code, notes, and clocks: eight devices with eleven recipes each give 88."""

Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Name = Annotated[str, Meta(max_length=MAX_NAME, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]*$")]
"""A name of visible characters, because names become part of charts, whose expressions other characters could end."""

Notes = Annotated[tuple[Text, ...], Meta(max_length=MAX_PARTS)]
Names = Annotated[tuple[Name, ...], Meta(max_length=MAX_PARTS)]
Reading = Annotated[float, Meta(ge=1e-9, le=1e9)]
"""A time from a nanosecond to thirty years, in seconds, so that a chart can show the ratio of two times."""

Difference = Annotated[float, Meta(ge=0, le=1e12)]


@dataclass(frozen=True, kw_only=True)
class ExhibitContender:
    """One contender of a demonstration.

    Attributes:
        contender: written form, as requested: `cpu`, `cpu@1`, `cuda:0`.
        device: `cpu`, `cuda:0`, `xpu:0` or `mps`.
        kind: `cpu`, `cuda`, `rocm`, `xpu` or `mps`.
        device_name: the device's own name.
        threads: CPU threads that served it.
        startup_s: seconds of the first use of the device in the process; None if it was not used.
    """

    contender: Name
    device: Name
    kind: Name
    device_name: Name
    threads: Count
    startup_s: Difference | None = None


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to time a training, with its readings on one contender.

    Attributes:
        name: key of `core.question.demonstrations.RECIPES`.
        title: label for people.
        explains: description of the method and its effect.
        switched: keys of `core.question.demonstrations.SHORTCUTS`.
        epoch_s: seconds of an epoch by this clock, one entry per reading. A reading covers `steps` steps and is scaled
            to an epoch.
        steps: training steps of one reading.
        contender: contender that was trained.
    """

    name: Name
    title: Name
    explains: Text
    switched: Names
    epoch_s: Annotated[tuple[Reading, ...], Meta(max_length=MAX_ENTRIES)]
    steps: Count
    contender: Name

    def __post_init__(self) -> None:
        if not self.epoch_s or min(self.epoch_s) <= 0:
            raise InvalidValue("epoch_s", self.epoch_s, "at least one number of seconds above 0")


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A training timed in several ways.

    Attributes:
        variants: variants grouped by contender, `ours` first.
        notes: a sentence for each variant that was left out.
    """

    variants: Annotated[tuple[Variant, ...], Meta(max_length=MAX_PARTS)]
    notes: Notes = ()

    def __post_init__(self) -> None:
        names = [(variant.contender, variant.name) for variant in self.variants]
        wanting = {contender for contender, _ in names} - {contender for contender, name in names if name == "ours"}
        if not names or wanting or len(set(names)) < len(names):
            raise InvalidValue("variants", names, "each name once per contender, including `ours`")

    def select_variants(self, contender: str) -> tuple[Variant, ...]:
        """Return the variants of one contender, `ours` first."""
        found = [variant for variant in self.variants if variant.contender == contender]
        return tuple(sorted(found, key=lambda variant: variant.name != "ours"))


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """A few lines of Python that were run, with their output.

    Attributes:
        title: the question that the lines answer.
        code: the lines, exactly as they were run.
        output: their printed output.
        error: type and message of PyTorch's exception; empty if there was none.
        device: the device used in addition to the CPU: `cuda:0`, …; `meta`, PyTorch's device without memory, if there
            is no accelerator; `cpu` if the lines need numbers and there is no accelerator.
    """

    title: Name
    code: Text
    output: Text
    error: Text
    device: Name


@dataclass(frozen=True, kw_only=True)
class Moving:
    """Results of the demonstration on moving tensors and modules.

    Attributes:
        snippets: snippets in reading order.
        notes: remarks to show with them, such as that `meta` substitutes for an accelerator.
    """

    snippets: Annotated[tuple[Snippet, ...], Meta(max_length=MAX_PARTS)]
    notes: Notes = ()


@dataclass(frozen=True, kw_only=True)
class FirstStep:
    """Difference of two contenders after one step from the same weights with the same batch.

    Attributes:
        parameters: name of each parameter with the relative difference of its gradients: the length of the
            difference over that of the first contender's gradient.
        loss_difference: difference of the loss of the first batch, relative to the loss of the first contender.
        contenders: written form of both contenders.
    """

    parameters: Annotated[tuple[tuple[Name, Difference], ...], Meta(max_length=MAX_ENTRIES)]
    loss_difference: Difference
    contenders: Names

    def __post_init__(self) -> None:
        if not self.parameters:
            raise InvalidValue("parameters", self.parameters, "at least one")
        if len(self.contenders) != 2:
            raise InvalidValue("contenders", self.contenders, "two")

    @property
    def largest(self) -> float:
        """Largest relative difference of a gradient."""
        return max(difference for _, difference in self.parameters)


Content = Clock | Moving | FirstStep

CONTENTS: dict[Kind, type[Clock] | type[Moving] | type[FirstStep]] = {
    "clock": Clock,
    "moving": Moving,
    "first_step": FirstStep,
}
"""Class of the content of each kind of demonstration."""


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """Result of one demonstration, with its time and machine.

    Attributes:
        id: name of the exhibit, 12 hexadecimal digits.
        demonstration: the request.
        measured_at: start time, ISO 8601, UTC.
        cpu_name: processor of the machine.
        machine_id: id of the machine.
        torch_version: version of PyTorch that ran it.
        app_commit: commit of the code that ran it.
        participants: one per contender, in the order of the request.
        content: result, of the type in `CONTENTS` for its kind.
    """

    id: str
    demonstration: Demonstration
    measured_at: str
    cpu_name: str
    machine_id: str
    torch_version: str
    app_commit: str
    participants: tuple[ExhibitContender, ...]
    content: Content

    def __post_init__(self) -> None:
        if len(self.id) != 12 or set(self.id) - set("0123456789abcdef"):
            raise InvalidValue("id", self.id, "12 hexadecimal digits")
        if not isinstance(self.content, CONTENTS[self.kind]):
            raise InvalidValue("content", type(self.content).__name__, f"what the lesson {self.kind} shows")

    @property
    def kind(self) -> Kind:
        """Key of `core.question.demonstrations.LESSON_KINDS`."""
        return self.demonstration.kind

    @property
    def device_names(self) -> dict[str, str]:
        """Contender → hardware name of its device."""
        return {entry.contender: entry.device_name for entry in self.participants}

    def to_json(self) -> dict[str, Any]:
        """Return data for a JSON file; `from_json` reads it back to an equal exhibit."""
        return {**dataclasses.asdict(self), "demonstration": self.demonstration.to_json()}

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Build an exhibit from `to_json`'s data; unknown keys of a later version are ignored.

        Raises:
            DamagedFile: the data are not those of an exhibit.
            InvalidValue: they contain an impossible value.
        """
        try:
            written = documents.convert_to_type(data, _Written)
            asked = Demonstration.from_json(written.demonstration)
            content = documents.convert_to_type(written.content, CONTENTS[asked.kind])
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise DamagedFile("exhibit", str(error)) from error
        return cls(**{**vars(written), "demonstration": asked, "content": content})


@dataclass(frozen=True, kw_only=True)
class _Written:
    """An exhibit in the form of its file; request and content are parsed according to its kind."""

    id: Name
    demonstration: dict[str, Any]
    measured_at: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d[\dTZ:.+-]{0,30}$")]
    cpu_name: Name
    machine_id: Name
    torch_version: Name
    app_commit: Name
    participants: Annotated[tuple[ExhibitContender, ...], Meta(max_length=MAX_CONTENDERS)]
    content: dict[str, Any]


# Files


EXHIBITS_FOLDER = "exhibits"
"""Name of the subfolder of a store for exhibits."""

SUFFIX = ".json"

MAX_BYTES = 500_000
"""Limit of a file's size in bytes; larger files are not read. Files of Crossover have some ten thousand bytes."""

MAX_FILES = 500
MAX_TOTAL_BYTES = 16 * 2**20
"""Maximum number of files that are read, newest first by name, and their maximum total size."""


def add_exhibit(store: Path, exhibit: Exhibit) -> Path:
    """Write one exhibit into a separate file, and return the file; writing it again changes nothing.

    Args:
        store: folder of the store.
        exhibit: exhibit to store.

    Raises:
        StoreError: the exhibit cannot be written, the parent folder of the store was removed, or the address cannot be
            reached; no file is left behind.
    """
    folder = store / EXHIBITS_FOLDER
    target = folder / f"{_stamp(exhibit)}-{exhibit.kind}-{exhibit.id}{SUFFIX}"
    text = json.dumps(exhibit.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    if (cache := remote.open_cache(store)) is not None:
        cache.write_file(f"{EXHIBITS_FOLDER}/{target.name}", text.encode())
        return cache.path_of(f"{EXHIBITS_FOLDER}/{target.name}")
    try:
        for place in (store, folder):  # not the parent of the store: see `core.results.store.Store.add_all`
            place.mkdir(exist_ok=True)
        documents.remove_abandoned_files(folder)
        documents.write_atomically(target, lambda file: file.write(text.encode()))
    except OSError as error:
        raise StoreError(unwritable(f"The store {store}", error)) from error
    return target


def read_exhibits(store: Path) -> tuple[list[Exhibit], tuple[Skipped, ...]]:
    """Return all exhibits of a store, the oldest first, and the invalid files; a missing folder is empty.

    Raises:
        StoreError: the folder itself cannot be read, or the address cannot be reached for the first time.
    """
    found: dict[str, Exhibit] = {}
    skipped: list[Skipped] = []
    for path in _newest_files([*_list_folder(store / EXHIBITS_FOLDER), *_download_files(store)], skipped):
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
    """Return the last exhibit of a demonstration on this machine; None if there is none.

    Args:
        exhibits: exhibits of any age and machine.
        demonstration: the request; its budget does not matter.
        machine_id: id of this machine.
        torch_version: version of PyTorch that would run it now.
    """
    wanted = (demonstration.id, machine_id, torch_version)
    found = [entry for entry in exhibits if (entry.demonstration.id, entry.machine_id, entry.torch_version) == wanted]
    return max(found, key=lambda entry: entry.measured_at, default=None)


def _newest_files(paths: Iterable[Path], skipped: list[Skipped]) -> Iterator[Path]:
    """Yield the files to read, ordered by name.

    Unreadable files, and files beyond the limit, are added to `skipped`.
    """
    total = 0
    for number, path in enumerate(sorted(paths, key=lambda path: path.name, reverse=True)):
        try:
            total += path.stat().st_size
        except OSError as error:
            if path.is_symlink():  # else it was removed since the listing
                skipped.append(Skipped(name=path.name, reason=unreadable_because(error)))
        else:
            if number < MAX_FILES and total <= MAX_TOTAL_BYTES:
                yield path
            else:
                skipped.append(Skipped(name=path.name, reason="there are too many newer ones, so it is not read"))


def _download_files(store: Path) -> list[Path]:
    """Download the newest exhibits of a store at an address, and return their files; empty for an ordinary folder."""
    cache = remote.open_cache(store)
    if cache is None:
        return []
    listing = cache.list_files()
    names = sorted(name for name in listing if name.startswith(f"{EXHIBITS_FOLDER}/") and name.endswith(SUFFIX))
    files = [(cache.path_of(name), listing[name].size) for name in names[-MAX_FILES:]]
    cache.fetch_files(file for file in files if file[1] <= MAX_BYTES)
    return [path for path, _ in files]


def _list_folder(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [folder / entry.name for entry in entries if entry.name.endswith(SUFFIX) and not _is_folder(entry)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"The folder {folder} cannot be read: {error.strerror or error}.") from error


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circular link
        return False


def _read_exhibit(path: Path) -> Exhibit | None:
    """Read the exhibit of a file; return None if the file was removed since the folder was listed."""
    data = documents.read_json(path, dict[str, Any], most_bytes=MAX_BYTES)
    return Exhibit.from_json(data) if data is not None else None


def _stamp(exhibit: Exhibit) -> str:
    """Return the time as a prefix of a file's name, digits and a T, so that names sort by age."""
    return "".join(character for character in exhibit.measured_at[:19] if character.isascii() and character.isalnum())
