"""Small files of Crossover, JSON, TOML or text, parsed into typed values, or refused with a reason and a name.

A person with write access, or a broken disk, can put any content into such a file. Examples are a wrong type, a huge
number, invalid text, deep nesting, a pipe, or a link. This module raises `DamagedFile` in all these cases. Rows are
parquet and are read by `core.results.parquet`. Nothing here writes.
"""

import functools
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import msgspec

from ..errors import CrossoverError, DamagedFile

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
