"""Whole rows of stores, read once for all visitors and kept as far as memory goes.

What a file holds is not known before it is read: a study may have any number of sizes, a row any number of blocks. So
what is read at once is bounded, and so is what is kept, in bytes and not in entries. Which stores there are is the
business of `pages.shared.data.reads`.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from core.answer.gallery.table import StudyLine
from core.answer.study import study as grouping
from core.answer.study.study import Study
from core.results.finding import lookup
from core.results.finding.kept import Kept
from core.results.schema import Trial
from core.results.store import Store
from core.results.tables import from_table, object_bytes
from pages.shared.data.kept import content

MOST_BYTES = 128 * 2**20
"""What rows that are read at once may take as objects: a study of 400 sizes takes a tenth of that. A file that came in
may hold a study of any size; who opens it is told so, and everybody else is not kept waiting."""

KEPT_BYTES = 256 * 2**20
"""What rows and studies may take that were read lately, for all visitors together."""

Named: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Columns by which rows are looked up, with names in each."""

_kept: Kept[tuple[Any, ...], tuple[Any, int]] = Kept(KEPT_BYTES, itemgetter(1))


def rows(stores: Sequence[Store], named: Named) -> tuple[Trial, ...]:
    """Rows by the names of some columns, in the order of runs and their contenders; of a trial the first store counts.

    Raises:
        StoreError: a store cannot be read, or the rows take more than `MOST_BYTES`.
    """
    found: tuple[Trial, ...] = _kept.get(("rows", content(stores), named), lambda: _read(stores, named))[0]
    return found


def studies(stores: Sequence[Store], lines: Sequence[StudyLine]) -> dict[str, Study]:
    """Studies with their rows, by name; one whose rows are gone is missing. Raises as `rows` does."""
    key = ("studies", content(stores), tuple((line.id, line.trial_ids) for line in lines))
    found: dict[str, Study] = _kept.get(key, lambda: _put_together(stores, lines))[0]
    return found


def _put_together(stores: Sequence[Store], lines: Sequence[StudyLine]) -> tuple[dict[str, Study], int]:
    """The studies, and what their rows take in memory."""
    rows, size = _read(stores, (("trial_id", tuple(name for line in lines for name in line.trial_ids)),))
    known = {row.trial_id: row for row in rows}
    found: dict[str, Study] = {}
    for line in lines:
        theirs = [known[name] for name in line.trial_ids if name in known]
        found |= {of.id: of for of in grouping.studies(theirs, axis=line.axis, least=1) if of.id == line.id}
    return found, size


def _read(stores: Sequence[Store], named: Named) -> tuple[tuple[Trial, ...], int]:
    """The rows, and what they take in memory."""
    tables = [store.rows(**dict(named), most_bytes=MOST_BYTES) for store in stores]
    size = sum(map(object_bytes, tables))
    lookup.require_room(size, MOST_BYTES)
    found: dict[str, Trial] = {}
    for trial in (trial for table in tables for trial in from_table(table)):
        found.setdefault(trial.trial_id, trial)
    return tuple(sorted(found.values(), key=lambda trial: (trial.started_at, trial.trial_id))), size
