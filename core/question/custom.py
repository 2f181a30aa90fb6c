"""A custom training script: a Python file with a function that builds it, in place of a model of the catalogue.

Its identity is the file's name, its function and a hash of its source, without the file's folder. A custom script is
never read from a link, and nothing here runs the file: `core.measure.custom` does.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidValue
from . import models

CUSTOM = "own"
"""Data set, model and data path of a custom script."""

FIELDS = ("training", "source_hash", "size")
"""Fields that identify a custom script."""

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
"""Values of the catalogue's fields in a custom script. The values have no meaning, as the real ones are unknown."""

ACTIVITIES = {
    "compilation": "Compile within build, or leave torch.compile out and ask for the variant +compiled.",
    "a checkpoint": "Leave saving out of build and step, for example by an interval that is never reached.",
    "a download": "Download before the measurement, for example by running the script once.",
    "an evaluation": "Leave evaluation out of build and step, for example by an interval that is never reached.",
}
"""Activities of scripts that often take long → advice to avoid them."""

NAME = re.compile(r"[\w .()+@=-]{1,120}\.py:[A-Za-z_]\w{0,79}", re.ASCII)
NAMED = "a file whose name ends in .py and has only letters from a to z, digits, spaces and . _ - ( ) + @ ="
SOURCE = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, kw_only=True)
class CustomFields:
    """Fields that identify a custom script; empty and 0 in a training of the catalogue.

    Attributes:
        training: name of its file and of the function that builds it, as `my_training.py:build`.
        source_hash: hash of the file and of its imports from the same folder, 16 hexadecimal digits.
        size: argument of the function.
    """

    training: str = ""
    source_hash: str = ""
    size: int = 0


def check_custom_fields(fields: CustomFields) -> None:
    """Check the fields of a custom script, which must be complete, or all empty.

    Raises:
        InvalidValue: a field is invalid; the error names the first one.
    """
    if not fields.training:
        for name in ("source_hash", "size"):
            if getattr(fields, name):
                raise InvalidValue(name, getattr(fields, name), "given with a custom script")
        return
    if not isinstance(fields.training, str) or not NAME.fullmatch(fields.training):
        raise InvalidValue("training", fields.training, "a Python file with a function, such as my_training.py:build")
    if not isinstance(fields.source_hash, str) or not SOURCE.fullmatch(fields.source_hash):
        raise InvalidValue("source_hash", fields.source_hash, "16 hexadecimal digits")
    if isinstance(fields.size, bool) or not isinstance(fields.size, int) or not 1 <= fields.size <= LARGEST_SIZE:
        raise InvalidValue("size", fields.size, f"a whole number between 1 and {LARGEST_SIZE:,}")


def locate_script(text: str) -> tuple[Path, str]:
    """Parse file and function: `folder/my_training.py:build`, or the file alone for `build`.

    Raises:
        InvalidValue: the text has another form, or there is no such file.
    """
    before, colon, after = text.rpartition(":")
    file, function = (before, after) if colon and after.isidentifier() else (text, DEFAULT_FUNCTION)
    path = Path(file).absolute()
    if not path.is_file():
        raise InvalidValue("training", text, "an existing Python file with a function: my_training.py:build")
    if not NAME.fullmatch(f"{path.name}:{function}"):
        raise InvalidValue("training", text, NAMED)
    return path, function
