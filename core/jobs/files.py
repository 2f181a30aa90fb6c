"""Small files that several processes read while one writes: JSON and rows, replaced whole or not at all.

A reader sees the old content or the new one, never a part. JSON is read by `core.documents`. Nothing here knows what a
job is.
"""

import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq

from core.errors import ForeignFile
from core.results import whole
from core.results.reading import read_file
from core.results.schema import Trial, from_table, to_table


def replace(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """Put a file in the place of another, or of a folder that has its name and is put aside.

    After a loss of power, nobody goes on where they were, so that nothing is flushed.

    Raises:
        OSError: the folder cannot be written.
    """
    if path.is_dir() and not path.is_symlink():
        set_aside(path)
    whole.write(path, fill, lasting=False)


def set_aside(path: Path) -> None:
    """Give what lies at a path the ending `.damaged`, in the place of what has that name.

    Raises:
        OSError: it cannot be renamed.
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


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object in `path`; None where there is none that can be read."""
    with contextlib.suppress(OSError, ValueError):
        data = json.loads(path.read_text(encoding="utf-8"))
        return data if isinstance(data, dict) else None
    return None


def write_rows(path: Path, trials: Sequence[Trial]) -> None:
    """Replace `path` by a parquet file of `trials`.

    Raises:
        OSError: the folder cannot be written.
    """
    replace(path, lambda file: pq.write_table(to_table(list(trials)), file, write_page_checksum=True))


def read_rows(path: Path) -> list[Trial]:
    """The rows in `path`; none where it is missing, or holds something else than rows."""
    with contextlib.suppress(OSError, ForeignFile):
        return from_table(read_file(path)[1])
    return []
