"""Every field by its name, those that can be varied, and how they and their values are called."""

import dataclasses

from core.question.fields.field import PANELS, Field
from core.question.fields.training import Training

GRID_PAIRS, ADAPTIVE_PAIRS = 6, 3
"""Pairs of blocks timed at each point unless asked otherwise. Six are the fewest that give a single point a
distribution-free interval of 95 %; an adaptive search measures neighbours instead, and three make a median."""

OUTCOME_TITLES = {
    "budget_spent": "time was up",
    "out_of_memory": "out of memory",
}
"""How a training ended, in few words, where the word of the column is not one for people."""

FIELDS: dict[str, Field] = {
    **{entry.name: entry.metadata["field"] for entry in dataclasses.fields(Training)},
    "parameters": Field(
        default=0,
        title="parameters",
        low=1,
        stops=tuple(step * 10**power for power in range(2, 8) for step in (1, 2, 5)),
        panel="model",
        axis="size",
        place="{} parameters",
        usual_range=(1_000, 5_000_000),
        usual_values=(10_000, 100_000, 1_000_000),
    ),
    "size": Field(
        default=0,
        title="size",
        low=1,
        panel="model",
        axis="size",
        place="a size of {}",
        usual_range=(64, 4_096),
        usual_values=(64, 256, 1_024),
    ),
    "threads": Field(default=0, title="threads", high=1_024),
    "budget_s": Field(
        default=60.0,
        title="time budget",
        unit="s",
        low=1,
        high=86_400,
        stops=(5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600),
        help="Training stops there; what was measured by then is kept.",
    ),
    "sweep_budget_s": Field(
        default=600.0,
        title="time budget",
        unit="s",
        low=1,
        high=86_400,
        stops=(30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400),
        help="After this no further point is begun; what was measured by then is kept.",
    ),
    "point_budget_s": Field(
        default=20.0,
        title="time for one point",
        unit="s",
        low=1,
        high=3_600,
        stops=(1, 2, 5, 10, 20, 30, 60, 120, 300),
        help="A point that needs more is skipped, and the page says so.",
    ),
    "pairs": Field(
        default=0,
        title="pairs of blocks at each point",
        high=100,
        stops=(0, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50, 100),
        help="One block of every device makes a pair. More pairs make the intervals narrower. "
        f"0 stands for what is usual: {GRID_PAIRS}, or {ADAPTIVE_PAIRS} in a search, which measures more sizes "
        "instead.",
    ),
}
"""Every field by its name: those of a training, its parameters, which follow from it, and what limits a measurement."""

_AXES = sorted((item for item in FIELDS.items() if item[1].axis), key=lambda item: PANELS.index(item[1].panel))

SIZE_AXES: dict[str, str] = {name: entry.title for name, entry in _AXES if entry.axis == "size"}
"""Axes along which a crossover is looked for, with their names for people."""

OTHER_AXES: dict[str, str] = {name: entry.title for name, entry in _AXES if entry.axis == "other"}
"""Axes that a grid may vary as well; no size, so no crossover lies on them."""

AXES = SIZE_AXES | OTHER_AXES


def axis_title(axis: str) -> str:
    """The name of an axis for people; a name that is not ours as it is."""
    return AXES.get(axis, axis)


def field_title(name: str) -> str:
    """The name of a field for people; of a name that is not ours, the same with spaces."""
    return FIELDS[name].title if name in FIELDS else name.replace("_", " ")


def value_label(name: str, value: object) -> str:
    """A value of a field for people: "Digits (1,797 images)", "Copied once"; one that has no label as it is written."""
    labels = OUTCOME_TITLES if name == "outcome" else FIELDS[name].labels if name in FIELDS else {}
    return labels.get(str(value), str(value))


def short_label(name: str, value: object) -> str:
    """A value of a field without what stands in brackets, for a line that says more: "Digits"."""
    return value_label(name, value).partition(" (")[0]
