"""The one table of what can be asked: an entry for each field of a training, and for what goes with one.

Forms, axes, checks, columns of the store, sentences, links and the command line read it. A new axis is an entry of
`Training`, plus what trains it. Plain data: what a field may be beside others is decided in
`core.question.experiment`.
"""

from core.question.fields.field import PANELS, Field
from core.question.fields.table import (
    ADAPTIVE_PAIRS,
    AXES,
    FIELDS,
    GRID_PAIRS,
    OTHER_AXES,
    OUTCOME_TITLES,
    SIZE_AXES,
    axis_title,
    field_title,
    short_label,
    value_label,
)
from core.question.fields.training import DATA_PATH_TITLES, DATA_PATHS, DTYPES, LOADER_PATHS, TRAINING, Training

__all__ = [
    "ADAPTIVE_PAIRS",
    "AXES",
    "DATA_PATHS",
    "DATA_PATH_TITLES",
    "DTYPES",
    "FIELDS",
    "GRID_PAIRS",
    "LOADER_PATHS",
    "OTHER_AXES",
    "OUTCOME_TITLES",
    "PANELS",
    "SIZE_AXES",
    "TRAINING",
    "Field",
    "Training",
    "axis_title",
    "field_title",
    "short_label",
    "value_label",
]
