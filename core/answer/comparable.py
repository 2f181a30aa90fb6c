"""The columns of two rows that must agree before the rows are compared, for every comparison.

The module does not compare results; it finds the columns that differ and refuses such rows.
"""

import dataclasses
import hashlib
from collections.abc import Iterable

from ..errors import NotComparable
from ..question import custom, lanes, models
from ..question.devices import capitalize_name
from ..question.experiment import Point, inline_name
from ..question.fields import FIELDS, field_title
from ..results.schema import Trial

TRAINING_COLUMNS = tuple(entry.name for entry in dataclasses.fields(Point))
"""Columns that describe the training."""

SETTING_COLUMNS = ("protocol_version", "dataset_hash", "drained", *TRAINING_COLUMNS)
"""Columns equal in rows of one training and one measurement method, on any machine; variants and devices may differ."""

RUN_COLUMNS = ("run_id", *SETTING_COLUMNS)
"""Columns equal in two rows whose speedup is computed pair by pair."""

DEVICE_COLUMNS = ("contender", "device_name", "device_driver")
"""Columns equal in the rows of one device of a study."""

CURVE_COLUMNS = ("torch_version", *DEVICE_COLUMNS)
"""Columns equal in all recordings of one curve, so that all its sizes have the same origin."""

STUDY_COLUMNS = (
    *("machine_id", "torch_version", "protocol_version", "precision", "execution", "drained", "dataset_hash"),
    *TRAINING_COLUMNS,
)
"""Columns equal in the runs of a study, except its axis and dependent columns; the name of the study is computed from
them in this order.
"""

CHART_COLUMNS = tuple(name for name in STUDY_COLUMNS if name not in ("machine_id", "torch_version"))
"""Columns equal in studies that may share a chart, except their axis: the training and how it was measured."""

DATA_COLUMNS = ("data_path", "loader_workers")
"""Columns that describe how data reach the device."""

SETUP_COLUMNS = (
    "machine_id",
    "contender",
    "device_name",
    "torch_version",
    "protocol_version",
    "precision",
    "execution",
)
"""Columns equal in rows of one device and variant, for any training."""

DELIVERY_COLUMNS = (*SETUP_COLUMNS, "dataset_hash", *(name for name in TRAINING_COLUMNS if name not in DATA_COLUMNS))
"""Columns equal in rows of one training whose data reached the device in different ways."""

BATCH_COLUMNS = (*SETUP_COLUMNS, "dataset", "model", "data_path", "dtype", "seed", *models.AXES)
"""Columns equal in rows of one model at several batch sizes."""

SEED_COLUMNS = tuple(name for name in TRAINING_COLUMNS if name != "seed")
"""Columns equal in rows of one training from several seeds; rows of one seed agree in data and seed as well. Variants
and devices may differ, because these rows show whether another precision learns the same.
"""

REMEDY_COLUMNS = tuple(
    dict.fromkeys((*SETUP_COLUMNS, "device_driver", "drained", "dataset_hash", *lanes.FIELDS, *TRAINING_COLUMNS))
)
"""Columns equal in rows of two runs that differ only in the remedy of one of them."""

DEPENDENT_COLUMNS: dict[str, frozenset[str]] = {
    "parameters": frozenset(models.AXES),
    **dict.fromkeys(("samples", "sequence_length", "embedding_rows"), frozenset({"dataset_hash"})),
}
"""Columns that differ between sizes of an axis because they depend on it."""


ABSENT_VALUES = {
    **{entry.name: entry.default for entry in dataclasses.fields(custom.CustomFields)},
    **{name: FIELDS[name].absent for name in FIELDS if FIELDS[name].later},
}
"""Values of newer columns in rows of older versions, and in rows to which the columns do not apply."""


def axis_dependent_columns(axis: str) -> frozenset[str]:
    """Return the columns that differ between sizes of an axis: the axis itself, and the columns that depend on it."""
    return DEPENDENT_COLUMNS.get(axis, frozenset()) | {axis}


def columns_except_axis(columns: Iterable[str], axis: str) -> tuple[str, ...]:
    """Select the columns that agree at all sizes of an axis."""
    return tuple(name for name in columns if name not in axis_dependent_columns(axis))


def identity_columns(columns: Iterable[str], row: object) -> tuple[str, ...]:
    """Select the columns that form a name, without newer columns in which the row has the value of older rows."""
    return tuple(name for name in columns if name not in ABSENT_VALUES or getattr(row, name) != ABSENT_VALUES[name])


def meaningful_columns(columns: Iterable[str], row: object) -> tuple[str, ...]:
    """Select the columns that describe a row's training; a custom script has no settings of the catalogue."""
    idle = (*custom.SETTLED, "dataset_hash") if getattr(row, "training", "") else custom.FIELDS
    return tuple(name for name in columns if name not in idle)


def column_values(row: object, columns: Iterable[str]) -> tuple[object, ...]:
    """Return the values of a row, or of a light line of a row, in some columns."""
    return tuple(getattr(row, name) for name in columns)


def differing_columns(first: object, second: object, columns: Iterable[str]) -> list[str]:
    """Return the columns in which two rows, or light lines of rows, differ."""
    return [name for name in columns if getattr(first, name) != getattr(second, name)]


def require_equal(first: Trial, second: Trial, columns: Iterable[str]) -> None:
    """Raise an error if two rows differ in one of `columns`.

    Raises:
        NotComparable: a column differs; the message names the first one and both values.
    """
    for column in differing_columns(first, second, columns):
        wanted, given = getattr(first, column), getattr(second, column)
        raise NotComparable(
            f"{capitalize_name(inline_name(second.contender))} cannot be compared with {inline_name(first.contender)}: "
            "its "
            f"{field_title(column)} is {given!r:.80}, not {wanted!r:.80}."
        )


def identity_hash(*agreed: object) -> str:
    """Return a name of 12 hexadecimal digits, computed from the columns that agree."""
    return hashlib.sha256(repr(agreed).encode()).hexdigest()[:12]
