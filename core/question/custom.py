"""A training of one's own: a Python file with a function that builds it, in place of a model of the catalogue.

Its identity is the file's name, its function and a hash of its source; where the file lies is no part of that. Nothing
here is ever read from a link, and nothing here runs the file: that is the business of `core.measure.custom`.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidValue
from . import models

CUSTOM = "own"
"""Data set, model and data path of a training of one's own."""

FIELDS = ("training", "source_hash", "size")
"""What tells such a training from others."""

DEFAULT_FUNCTION = "build"

LARGEST_SIZE = 2**40

SETTLED: dict[str, Any] = {
    **dict.fromkeys(("dataset", "model", "data_path"), CUSTOM),
    **dict.fromkeys(("samples", "batch_size", "epochs"), 1),
    **dict.fromkeys((*models.AXES, "loader_workers", "seed"), 0),
    "learning_rate": 1.0,
    "dtype": "float32",
    "shuffle": False,
}
"""What the fields of the catalogue are in a training of one's own. It means nothing, as nobody knows it."""

NAME = re.compile(r"[\w .()+@=-]{1,120}\.py:[A-Za-z_]\w{0,79}", re.ASCII)
NAMED = (
    "a file whose name ends in .py and has nothing but letters from a to z, digits, spaces and any of . _ - ( ) + @ ="
)
SOURCE = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, kw_only=True)
class CustomFields:
    """What a training of one's own is known by; empty and 0 in a training of the catalogue.

    Attributes:
        training: name of its file and of the function that builds it, as `my_training.py:build`.
        source_hash: hash of that file and of all that it imports from its own folder, 16 hexadecimal digits.
        size: what the function is called with.
    """

    training: str = ""
    source_hash: str = ""
    size: int = 0


def check_custom_fields(fields: CustomFields) -> None:
    """Refuse fields that are none of a training of one's own, or half of one.

    Raises:
        InvalidValue: names the first that is wrong.
    """
    if not fields.training:
        for name in ("source_hash", "size"):
            if getattr(fields, name):
                raise InvalidValue(name, getattr(fields, name), "given with a training of one's own")
        return
    if not isinstance(fields.training, str) or not NAME.fullmatch(fields.training):
        raise InvalidValue("training", fields.training, "a Python file with a function, such as my_training.py:build")
    if not isinstance(fields.source_hash, str) or not SOURCE.fullmatch(fields.source_hash):
        raise InvalidValue("source_hash", fields.source_hash, "16 hexadecimal digits")
    if isinstance(fields.size, bool) or not isinstance(fields.size, int) or not 1 <= fields.size <= LARGEST_SIZE:
        raise InvalidValue("size", fields.size, f"a whole number between 1 and {LARGEST_SIZE:,}")


def locate_script(text: str) -> tuple[Path, str]:
    """File and function of what was typed: `folder/my_training.py:build`, or the file alone for `build`.

    Raises:
        InvalidValue: it is neither, or there is no such file.
    """
    before, colon, after = text.rpartition(":")
    file, function = (before, after) if colon and after.isidentifier() else (text, DEFAULT_FUNCTION)
    path = Path(file).absolute()
    if not path.is_file():
        raise InvalidValue("training", text, "a Python file that is there, with a function: my_training.py:build")
    if not NAME.fullmatch(f"{path.name}:{function}"):
        raise InvalidValue("training", text, NAMED)
    return path, function
