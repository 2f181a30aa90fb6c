"""Studies by name in stores of any size: the beginning of each study's name is a key of the rows that make it.

With the keys beside large parts (`core.results.finding.keys`) a link to a study finds its rows, however old they are.
Nothing here reads a file.
"""

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa

from core.answer import comparable
from core.answer.study import study
from core.question.fields import SIZE_AXES
from core.results.finding.keys import Keys

STUDY_KEY_COLUMNS = tuple(
    dict.fromkeys(
        (
            *("run_id", "trial_id", "started_at", "outcome"),  # of no part in a study's name, and first therefore
            *("device_kind", *comparable.STUDY_COLUMNS, *comparable.DEVICE_COLUMNS, *SIZE_AXES),
        )
    )
)
"""Columns of a row by which it is told which studies it belongs to, and whether it is the one that counts there."""

NAMING = STUDY_KEY_COLUMNS.index("device_kind")
"""Where those begin that are in a study's name."""


def study_key(study_id: str) -> int:
    """The key of a study, by its name."""
    return int(study_id[:8], 16)


def study_key_lines(columns: Iterable[Sequence[Any]]) -> list[Any]:
    """Return rows reduced to the values of `STUDY_KEY_COLUMNS`, which are all that grouping into studies needs.

    Each has its `place` among them, and as `told` what is in names of studies.
    """
    values = enumerate(zip(*columns, strict=True))
    return [
        SimpleNamespace(**dict(zip(STUDY_KEY_COLUMNS, row, strict=True)), place=place, told=row[NAMING:])
        for place, row in values
    ]


def _study_keys(table: pa.Table) -> list[tuple[int, Sequence[int]]]:
    """The keys of all studies, along any axis and of any number of sizes, that two rows of one run belong to."""
    known: dict[tuple[Any, ...], list[int]] = {}
    found: list[tuple[int, Sequence[int]]] = []
    rows = study_key_lines(table[name].to_pylist() for name in STUDY_KEY_COLUMNS)
    for pair in cast(Iterable[tuple[Any, Any]], study.contender_pairs(rows)):
        told = (pair[0].told, pair[1].told)
        if told not in known:
            along = (axis for axis in study.study_axes(None) if getattr(pair[0], axis))
            known[told] = [study_key(study.study_identity(pair, axis)) for axis in along]
        places = [row.place for row in pair]
        found += [(number, places) for number in known[told]]
    return found


STUDIES = Keys(columns=STUDY_KEY_COLUMNS, of=_study_keys)
