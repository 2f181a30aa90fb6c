"""How a column is declared: a field of a dataclass with its type in a file, its unit and its meaning.

The columns themselves are beside this module; `core.results.schema` puts them together.
"""

import dataclasses
from dataclasses import field
from typing import Any, TypeVar

import pyarrow as pa

from core.question.fields import FIELDS, TRAINING

STRING, BOOL = pa.string(), pa.bool_()
INT, FLOAT = pa.int64(), pa.float64()
INTS, FLOATS = pa.list_(INT), pa.list_(FLOAT)
BYTES = pa.binary()
OF_TYPE: dict[type, pa.DataType] = {str: STRING, bool: BOOL, int: INT, float: FLOAT}

RowClass = TypeVar("RowClass")


def column(
    kind: pa.DataType, meaning: str, *, unit: str = "", default: Any = dataclasses.MISSING, after: str = ""
) -> Any:
    """A dataclass field that is a column of the table; those of a training up to the one named `after` precede it."""
    metadata = {"type": kind, "unit": unit, "meaning": meaning, "after": after}
    if isinstance(default, tuple):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


def with_training(row: type[RowClass]) -> type[RowClass]:
    """A class of columns with those of a training put in, which are what `core.question.fields` says of its fields."""
    ordered: dict[str, Any] = {}
    left = list(TRAINING)
    for name, kind in row.__annotations__.items():
        after = getattr(row, name).metadata["after"]
        while after and after not in ordered:
            asked = left.pop(0)
            entry = FIELDS[asked]
            ordered[asked] = type(entry.default)
            default = entry.absent if entry.later else dataclasses.MISSING
            setattr(row, asked, column(OF_TYPE[ordered[asked]], entry.meaning, unit=entry.unit, default=default))
        ordered[name] = kind
    row.__annotations__ = ordered
    return row
