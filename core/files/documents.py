"""Small files of Crossover, JSON, TOML or text, parsed into typed values, and written as a whole or not at all.

A person with write access, or a broken disk, can put any content into such a file. Examples are a wrong type, a huge
number, invalid text, deep nesting, a pipe, or a link. This module raises `DamagedFile` in all these cases, with a
reason and a name. Errors of a settings file name the key. Rows are parquet and are read by `core.results.parquet`.

Each file is written under a temporary name in the same folder, then renamed. So a reader sees the old content or the
new one, never a part.
"""

import contextlib
import errno
import functools
import itertools
import json
import os
import re
import stat
import time
import tomllib
import uuid
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeVar, cast

import msgspec

from ..errors import CrossoverError, DamagedFile, InvalidValue

_REPLACE_TRIES, _REPLACE_PAUSE_S = 20, 0.01
"""Tries of a replacement and seconds between them.

Windows refuses to replace a file while a reader has it open; readers in Crossover close it within milliseconds.
"""


ABANDONED_S = 3_600
"""Age in seconds from which a temporary file is abandoned, because its writer was killed."""

SWEEP_EVERY_S = 600
"""Minimum seconds between two sweeps of a folder by one process, because a sweep lists the folder."""

MOST_SWEPT = 300
"""Maximum number of files that are removed at a time, so that writers do not wait."""

_OURS = re.compile(r"\..+\.[0-9a-f]{8}\.tmp|\.probe-[0-9a-f]{32}")
"""Names of Crossover's temporary files: those of `write_atomically`, and the probe files of `core.results.store`."""


def write_atomically(path: Path, fill: Callable[[BinaryIO], object], *, lasting: bool = True) -> None:
    """Let `fill` write a temporary file next to `path`, then replace `path` with it at once.

    Args:
        path: path of the file, in an existing folder.
        fill: writes the content.
        lasting: whether the content is flushed to disk before the rename, so that it survives a loss of power.

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


def replace(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """Replace a file; a folder of the same name is renamed first.

    Nothing is flushed, because the content is not needed after a loss of power.

    Raises:
        OSError: the folder cannot be written.
    """
    if path.is_dir() and not path.is_symlink():
        set_aside(path)
    write_atomically(path, fill, lasting=False)


def set_aside(path: Path) -> None:
    """Change the suffix of a file or folder to `.damaged`, replacing an earlier file of this name.

    Raises:
        OSError: the path cannot be renamed.
    """
    path.replace(path.with_suffix(".damaged"))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` by `data`.

    Raises:
        OSError: the folder cannot be written.
    """
    replace(path, lambda file: file.write(data))


def write_json(path: Path, data: object) -> None:
    """Replace `path` by `data` as JSON.

    Raises:
        OSError: the folder cannot be written.
    """
    write_bytes(path, json.dumps(data).encode())


def remove_abandoned_files(folder: Path) -> None:
    """Remove temporary files of killed writers from a folder, unless this was done recently; ignore failures."""
    _remove_abandoned_cached(folder, int(time.monotonic() / SWEEP_EVERY_S))


@functools.lru_cache(maxsize=64)
def _remove_abandoned_cached(folder: Path, _moment: int) -> None:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        ours = (entry for entry in entries if _OURS.fullmatch(entry.name))
        for entry in itertools.islice(filter(_is_abandoned, ours), MOST_SWEPT):
            with contextlib.suppress(OSError):
                os.unlink(entry)  # noqa: PTH108 - an entry of this folder, not its link target


def _is_abandoned(entry: "os.DirEntry[str]") -> bool:
    with contextlib.suppress(OSError):
        facts = entry.stat(follow_symlinks=False)
        return stat.S_ISREG(facts.st_mode) and time.time() - facts.st_mtime > ABANDONED_S
    return False


def flush_folder(folder: Path) -> None:
    """Flush created and removed names to disk; Windows and some network file systems cannot flush a folder."""
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


MAX_DOCUMENT_BYTES = 4 * 2**20
"""Limit of a file's size in bytes. Most files have some thousand bytes, the longest some hundred thousand."""

LARGEST = 2**53
"""Upper bound of counts and sizes, up to which a float represents every integer."""

Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]

MOST_KEPT = 16
"""Number of files whose contents `read_json_once` caches."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_REASON_LENGTH = 200

T = TypeVar("T")


def read_json(path: Path, kind: type[T], *, most_bytes: int = MAX_DOCUMENT_BYTES) -> T | None:
    """Read a JSON file; None if there is no such file.

    Args:
        path: path of the file.
        kind: type of the content: a frozen dataclass, or any other type. Unknown keys come from a later version and are
            ignored.
        most_bytes: limit of the size; a larger file is not read.

    Raises:
        DamagedFile: the file cannot be read, or has content of another type.
    """
    return _read_document(path, lambda text: parse_json(text, kind), most_bytes)


def read_json_once(path: Path, kind: type[T]) -> T | None:
    """Read a JSON file like `read_json`, and cache it until the file changes; for files that every run of a page reads.

    Args:
        path: path of a file that is replaced as a whole when it changes.
        kind: a frozen dataclass with immutable fields, because all readers share one object.

    Raises:
        DamagedFile: the file cannot be read, or has content of another type.
    """
    seen = stamp(path)
    return cast("T | None", _read_json_cached(path, cast(Hashable, kind), seen)) if seen else read_json(path, kind)


@functools.lru_cache(maxsize=MOST_KEPT)
def _read_json_cached(path: Path, kind: Any, _stamp: tuple[int, ...]) -> object:
    """Read a JSON file. If it is replaced during reading, its value is cached under a stamp that never recurs."""
    return read_json(path, kind)


def read_toml(path: Path, *, most_bytes: int = MAX_DOCUMENT_BYTES) -> dict[str, Any] | None:
    """Return the tables of a TOML file; None if there is no such file.

    Raises:
        DamagedFile: the file cannot be read, or is not TOML.
    """
    return _read_document(path, tomllib.loads, most_bytes)


def read_text(path: Path, *, most_bytes: int = MAX_DOCUMENT_BYTES) -> str | None:
    """Return the text of a file; None if there is no such file.

    Raises:
        DamagedFile: the file cannot be read, or is not text.
    """
    return _read_document(path, str, most_bytes)


def parse_json(text: str, kind: type[T]) -> T:
    """Parse JSON; raises ValueError, RecursionError or the errors of `convert_to_type`."""
    data = json.loads(text)
    if _SURROGATE.search(text):
        json.dumps(data, ensure_ascii=False).encode()  # a lone surrogate can be parsed, but not encoded
    return convert_to_type(data, kind)


def convert_to_type(data: object, kind: type[T]) -> T:
    """Convert data of basic types to a class.

    Raises:
        ValueError: a part is missing or of another type, or its number or length is not allowed; the message names it.
    """
    return msgspec.convert(data, kind, strict=True)


def stamp(path: Path) -> tuple[int, ...]:
    """Return a value that differs after every change of a file; empty if the file cannot be examined."""
    try:
        return _stamp_from_stat(path.stat())
    except OSError:
        return ()


def require_stamp(path: Path) -> tuple[int, ...]:
    """Return the stamp of a file with one disk access, or two for a link, which may be broken.

    Raises:
        OSError: the file does not exist or cannot be examined.
    """
    seen = path.lstat()
    return stamp(path) if stat.S_ISLNK(seen.st_mode) else _stamp_from_stat(seen)


def _stamp_from_stat(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino


def _read_document(path: Path, parse: Callable[[str], T], most_bytes: int) -> T | None:
    try:
        return parse(_content(path, most_bytes).decode())
    except FileNotFoundError:
        return None
    except DamagedFile:
        raise
    except OSError as error:
        raise DamagedFile(path.name, f"it cannot be read: {error.strerror or error}") from error
    except RecursionError as error:
        raise DamagedFile(path.name, "it is nested too deeply") from error
    except (ValueError, TypeError, OverflowError, CrossoverError) as error:
        raise DamagedFile(path.name, _reason(error)) from error


def _content(path: Path, most_bytes: int) -> bytes:
    """Return the bytes of a regular file; a pipe or a device is refused, because it might never end."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise DamagedFile(path.name, "it is not a regular file")
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise DamagedFile(path.name, f"it has more than the {most_bytes:,} bytes that are read")
    return data


def _reason(error: Exception) -> str:
    match error:
        case UnicodeError():
            return "it is not text"
        case json.JSONDecodeError() | tomllib.TOMLDecodeError():
            return f"it is incomplete or not valid {'JSON' if isinstance(error, json.JSONDecodeError) else 'TOML'}"
    return str(error).rstrip(".")[:_REASON_LENGTH] or type(error).__name__


LARGEST_SETTING = 10**12
"""Highest number that a key may have, unless its default is higher."""

WAYS = ("ray", "ray://HOST:PORT")
"""Valid names of a cluster, on the command line and in a settings file."""

_WAY = re.compile(r"ray|ray://[\w.-]{1,100}:\d{1,5}", re.ASCII)
_DOMAIN = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")


def require_type(key: str, value: object, kind: type, allowed: str) -> object:
    """Return a value if it has the required type.

    Raises:
        InvalidValue: the value has another type; `allowed` describes valid values.
    """
    if not isinstance(value, kind):
        raise InvalidValue(key, value, allowed)
    return value


def require_number(key: str, value: object, default: float) -> float:
    """Return a number that is not negative, and an integer if the default is one.

    Raises:
        InvalidValue: the value is not such a number, or too large.
    """
    whole = not isinstance(default, float)
    number = isinstance(value, int) or (isinstance(value, float) and not whole)
    most = max(LARGEST_SETTING, default)
    if isinstance(value, bool) or not number or not 0 <= value <= most:  # type: ignore[operator]  # refuses NaN
        raise InvalidValue(key, value, f"a {'whole ' if whole else ''}number from 0 to {most:,}")
    return value  # type: ignore[return-value]


def domains(key: str, value: object) -> tuple[str, ...]:
    """Return a list of domain names.

    Raises:
        InvalidValue: the value is not such a list.
    """
    texts = value if isinstance(value, list) else None
    if texts is None or not all(isinstance(text, str) and _DOMAIN.fullmatch(text) for text in texts):
        raise InvalidValue(key, value, 'a list of domains in lower case, such as ["school.example"]')
    return tuple(texts)


def ways(key: str, value: object) -> tuple[str, ...]:
    """Return a list of clusters.

    Raises:
        InvalidValue: the value is not such a list.
    """
    if not isinstance(value, list) or not all(map(is_way, value)):
        raise InvalidValue(key, value, 'a list of ways such as ["ray"], each one of {}', WAYS)
    return tuple(dict.fromkeys(value))


def is_way(text: object) -> bool:
    """Return whether a text names a cluster in one of the forms of `WAYS`."""
    return isinstance(text, str) and _WAY.fullmatch(text) is not None
