"""The file from which a killed measurement is continued: the state of its training.

Only the worker reads and writes it, and it is read without unpickling anything but tensors and plain data.
What the state consists of is the business of `core.trial`.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch

from core.jobs import files

KEPT_CHECKPOINTS = 8
"""Checkpoints of killed measurements that nobody continued; one holds the weights of every contender."""

_log = logging.getLogger(__name__)


def write(path: Path, state: Mapping[str, Any]) -> None:
    """Replace the checkpoint in `path`, and drop the oldest ones beside it.

    Args:
        path: its folder is made if need be.
        state: tensors, numbers, text, and lists and dictionaries of them.

    Raises:
        OSError: the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace(path, lambda file: _save(state, file))
    by_age = sorted(path.parent.glob("*.pt"), key=lambda entry: entry.stat().st_mtime_ns)
    for old in by_age[:-KEPT_CHECKPOINTS]:
        old.unlink(missing_ok=True)


def read(path: Path) -> dict[str, Any] | None:
    """The state in `path`, tensors on the host; None where there is none. A torn or foreign file is removed."""
    if not path.exists():
        return None
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # torch promises no type for what a torn file raises
        _log.warning("The checkpoint %s cannot be read and is removed: %s", path.name, error)
        path.unlink(missing_ok=True)
        return None


def _save(state: Mapping[str, Any], file: BinaryIO) -> None:
    try:
        torch.save(dict(state), file)
    except RuntimeError as error:  # what torch makes of a full disk
        raise OSError(f"torch could not write {file.name}: {error}") from error
