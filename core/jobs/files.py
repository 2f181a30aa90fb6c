"""Small files that several processes read while one writes: JSON and rows, replaced whole or not at all.

A reader sees the old content or the new one, never a part. Nothing here knows what a job is.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.results.schema import SCHEMA, Trial, from_table, to_table

_REPLACE_TRIES, _REPLACE_PAUSE_S = 20, 0.01
"""Windows refuses to replace a file while a reader has it open; a reader of ours is done within milliseconds."""


def write_json(path: Path, data: object) -> None:
    """Replace `path` by `data` as JSON.

    Raises:
        OSError: the folder cannot be written.
    """
    replace(path, lambda temporary: temporary.write_text(json.dumps(data), encoding="utf-8"))


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
    replace(path, lambda temporary: pq.write_table(to_table(list(trials)), temporary))


def read_rows(path: Path) -> list[Trial]:
    """The rows in `path`; none where it is missing or torn."""
    with contextlib.suppress(OSError, pa.ArrowException):
        return from_table(pq.read_table(path, schema=SCHEMA, partitioning=None))
    return []


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in the place of `path` at once.

    Raises:
        OSError: the folder cannot be written; nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        _rename(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _rename(temporary: Path, path: Path) -> None:
    for _ in range(_REPLACE_TRIES - 1):
        with contextlib.suppress(PermissionError):
            temporary.replace(path)
            return
        time.sleep(_REPLACE_PAUSE_S)
    temporary.replace(path)
