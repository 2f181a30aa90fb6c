"""Small files that several processes read while one writes: JSON and rows, replaced whole or not at all.

A reader sees the old content or the new one, never a part. JSON is read by `core.documents`. Nothing here knows what a
job is.
"""

import contextlib
import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from core.errors import ForeignFile
from core.results import whole
from core.results.reading import read_file
from core.results.schema import Trial, from_table, to_table

replace = functools.partial(whole.write, lasting=False)
"""Put a file in the place of another; after a loss of power, nobody goes on where they were."""


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
