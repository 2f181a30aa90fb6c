"""Studies that are too old for the lists, found by name: in every file of a store, without listing its rows.

Beside large parts lie the keys of their studies; of other files they are worked out when such a study is asked for, and
kept. Only the row groups that may have rows of it are read, and of them the columns that say so.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from core.answer import comparable, study
from core.answer import study as study_keys
from core.answer.gallery import overview
from core.answer.gallery.overview import StudyLine
from core.answer.study import Study
from core.errors import ForeignFile
from core.results.finding import keys, mirrored
from core.results.finding.index import TRIES, File
from core.results.finding.kept import Kept
from core.results.finding.keys import Pairs
from core.results.reading import read_piece
from core.results.store import Store

KEPT_BYTES = 32 * 2**20
"""What the keys of files may take in memory that have none beside them."""

_kept: Kept[File, Pairs] = Kept(KEPT_BYTES, lambda pairs: pairs.nbytes)


def line(stores: Sequence[Store], frame: pd.DataFrame, study_id: str) -> StudyLine | None:
    """A study by its name, with all its sizes, whether they are listed or older; None if no older row is of it.

    Args:
        stores: of a trial that is in several the first counts.
        frame: the trials that are listed of them.
        study_id: name of the study.

    Raises:
        StoreError: a folder cannot be read, or a shared place that has the rows cannot be reached.
    """
    if not re.fullmatch("[0-9a-f]{12}", study_id):
        return None
    rows = [row for store in stores for row in _rows(store, study_id)]
    found = _named(rows, study_id)
    if found is None:
        return None
    found = _named([*rows, *_listed(frame, found)], study_id) or found
    trials = [row.trial_id for run in found.runs for row in run]
    whole = pa.concat_tables([store.rows(trial_id=trials) for store in stores])
    lines = overview.find_study_lines(overview.to_dataframe(whole.select(overview.SCALARS)), axis=found.axis, least=1)
    return next((line for line in lines if line.id == study_id), None)


def _named(rows: Sequence[Any], study_id: str) -> Study | None:
    return next((found for found in study.studies(rows, least=1) if found.id == study_id), None)


def _rows(store: Store, study_id: str) -> list[Any]:
    """The lines of a study in the files of a store that are too old for its list."""
    gone, rows = set[File](), list[Any]()
    for _ in range(TRIES):
        rows.clear()
        try:
            for file in set(overview.open_table_index(store).now().older) - gone:
                rows += _in_file(file, study_id)
            break
        except FileNotFoundError:  # merged into another since the folder was listed
            mirrored.require_brought(store.folder)
            gone.add(file)
    return rows


def _in_file(file: File, study_id: str) -> Iterator[Any]:
    key = study_keys.study_key(study_id)
    groups = keys.groups_beside(file.path, key)
    try:
        if groups is None:
            groups = keys.groups_among(_kept.get(file, lambda: _worked_out(file.path)), key)
        if groups:
            read = read_piece(mirrored.here(file.path), columns=study_keys.STUDY_KEY_COLUMNS, groups=groups).table
            of_study = {place for number, places in study_keys.STUDIES.of(read) if number == key for place in places}
            theirs = read.take(pa.array(sorted(of_study), pa.int64()))
            yield from study_keys.study_key_lines(theirs[name].to_pylist() for name in study_keys.STUDY_KEY_COLUMNS)
    except FileNotFoundError:
        raise
    except (ForeignFile, OSError, IndexError):  # it is named by who reads all of it; a group may not be there
        return


def _worked_out(path: Path) -> Pairs:
    piece = read_piece(mirrored.here(path), columns=study_keys.STUDY_KEY_COLUMNS)
    return study_keys.STUDIES.pairs(piece.table, piece.groups)


def _listed(frame: pd.DataFrame, of: Study) -> list[Any]:
    """The lines of a list that may be of a study: as one run of it is, but for the axis."""
    known, alike = of.runs[0][0], pd.Series(True, index=frame.index)
    for name in comparable.columns_except_axis(comparable.STUDY_COLUMNS, of.axis):
        alike &= frame[name] == getattr(known, name)
    return study_keys.study_key_lines(frame.loc[alike, name].tolist() for name in study_keys.STUDY_KEY_COLUMNS)
