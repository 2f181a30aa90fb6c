"""What is kept for all visitors between a file and a page: rows by bytes, and answers by content.

The index of a store's files is the store's own. Keys are contents (a run's rows never change, a folder's files are
named and dated), so nothing has to be invalidated by hand, and nothing is lost when a visitor clears the caches.
"""

import functools
import inspect
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar

import streamlit as st
from cachetools import LRUCache

from core.answer import study as grouping
from core.answer.gallery.overview import StudyLine
from core.answer.study import Study
from core.answer.two_machines import Meeting
from core.errors import StoreError
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.remote import local_cache
from core.results import index
from core.results.parquet import from_table, object_bytes
from core.results.schema import Trial
from core.results.store import Store

P = ParamSpec("P")
R = TypeVar("R")

MAX_READ_BYTES = 128 * 2**20
"""What rows that are read at once may take as objects: a study of 400 sizes takes a tenth of that. A file that came in
may hold a study of any size; who opens it is told so, and everybody else is not kept waiting."""

MAX_ROW_BYTES = 256 * 2**20
"""What rows and studies may take that were read lately, for all visitors together: bytes, as a row has any number of
blocks."""

RECHECK_S = 2.0
"""How long a folder that kept its date is taken for unchanged: what is put there gets its name once it is whole."""

SETTLED_NS = 50_000_000
"""A folder's date is believed after so many nanoseconds: two changes at once have the same one."""

COMPARED_BY_IDENTITY: object = object.__eq__
"""How a value compares that is equal to itself alone."""

NamesByColumn: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Columns by which rows are looked up, with names in each."""

_rows: LRUCache[Hashable, tuple[Any, int]] = LRUCache(MAX_ROW_BYTES, getsizeof=lambda entry: entry[1])
_rows_lock = threading.Lock()


def cache_answers(
    max_entries: int, *, ttl_s: float | None = None, spinner: str | bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep what a function returns, under the contents of its arguments; nobody may change what it returned.

    An argument whose name begins with an underscore is no part of the key. One that is equal to itself alone, such as
    a table of everything that is stored, is kept with the answer, so that no other can take its place.

    Args:
        max_entries: answers that are kept; the oldest go first.
        ttl_s: seconds that one is kept; for good unless given.
        spinner: whether, or with which words, a visitor is told to wait.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        def compute(key: int, _identities: tuple[object, ...], _make: Callable[[], R]) -> tuple[R, tuple[object, ...]]:
            return _make(), _identities

        compute.__module__, compute.__qualname__ = function.__module__, function.__qualname__  # Streamlit's name of it
        cached = st.cache_resource(max_entries=max_entries, ttl=ttl_s, show_spinner=spinner)(compute)

        @functools.wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> R:
            arguments = signature.bind(*args, **kwargs).arguments
            values = [value for name, value in arguments.items() if not name.startswith("_")]
            identities = tuple(value for value in values if type(value).__eq__ is COMPARED_BY_IDENTITY)
            # by name, as Streamlit looks for the name of each argument that has none anew
            key = hash(make_key(values))
            return cached(key=key, _identities=identities, _make=lambda: function(*args, **kwargs))[0]

        return answer

    return decorate


def make_key(value: Any) -> Hashable:
    """What a value says, to be compared: a store by its files, studies and jobs by their rows, machines by devices.

    A row counts with all that it holds.
    """
    match value:
        case Store():
            return value.folder, sign_folder(value.folder)
        case Study():
            return value.id, value.axis, make_rows_key(row for run in value.runs for row in run)
        case Meeting():
            return value.id, make_rows_key(value.measured)
        case Job():
            now = value.progress if value.active else None
            return value.id, value.trial_ids, value.unsaved, (now.sweep or now).pairs if now else 0
        case Machine():
            return value.local_machine, *sorted(value.device_names.items())
        case Mapping():
            return tuple((name, make_key(entry)) for name, entry in value.items())
        case list() | tuple():
            return tuple(map(make_key, value))
    return value  # type: ignore[no-any-return]


def make_rows_key(rows: Iterable[Trial]) -> Hashable:
    """Changes whenever rows do, in a fortieth of the time: a row of one name changes only while it is measured."""
    return tuple((row.trial_id, row.outcome, len(row.block_steps)) for row in rows)


def sign_folder(folder: Path) -> int:
    """A number that changes whenever a file of the folder does; one that grows under its name is seen a moment later.

    An entry that cannot be looked at counts as it is, and hides no change of another. Of a store at an address, the
    files there count.
    """
    try:
        if (remote := local_cache.open_cache(folder)) is not None:
            return remote.signature
        changed = folder.stat().st_mtime_ns
        settled = time.time_ns() - changed > SETTLED_NS
        return _sign_entries(folder, changed, int(time.monotonic() / RECHECK_S) if settled else time.monotonic_ns())
    except (OSError, StoreError):
        return 0


@cache_answers(16)
def _sign_entries(folder: Path, changed: int, moment: int) -> int:
    """Changes with the name, date and size of every file of the folder; looked at once in a moment."""
    with os.scandir(folder) as entries:
        return hash(tuple(sorted((entry.name, *_stat_entry(entry)) for entry in entries)))


def _stat_entry(entry: "os.DirEntry[str]") -> tuple[int, int]:
    """Date and size of an entry; of one that cannot be looked at, such as a link to nothing, why not."""
    try:
        facts = entry.stat()
    except OSError as error:
        return -1, error.errno or 0
    return facts.st_mtime_ns, facts.st_size


def read_rows(stores: Sequence[Store], names: NamesByColumn) -> tuple[Trial, ...]:
    """Rows by the names of some columns, in the order of runs and their contenders; of a trial the first store counts.

    Raises:
        StoreError: a store cannot be read, or the rows take more than `MAX_READ_BYTES`.
    """
    rows: tuple[Trial, ...] = _keep_rows(("rows", make_key(stores), names), lambda: _load_rows(stores, names))
    return rows


def read_studies(stores: Sequence[Store], lines: Sequence[StudyLine]) -> dict[str, Study]:
    """Studies with their rows, by name; one whose rows are gone is missing. Raises as `read_rows` does."""
    key = ("studies", make_key(stores), tuple((line.id, line.trial_ids) for line in lines))
    studies: dict[str, Study] = _keep_rows(key, lambda: _load_studies(stores, lines))
    return studies


def _keep_rows(key: Hashable, load: Callable[[], tuple[Any, int]]) -> Any:
    """What `load` returns first, kept while the bytes that it returns second fit; two threads may load the same."""
    with _rows_lock:
        entry = _rows.get(key)
    if entry is None:
        entry = load()
        with _rows_lock:
            if entry[1] <= _rows.maxsize:
                _rows[key] = entry
    return entry[0]


def _load_studies(stores: Sequence[Store], lines: Sequence[StudyLine]) -> tuple[dict[str, Study], int]:
    """The studies, and what their rows take in memory."""
    rows, size = _load_rows(stores, (("trial_id", tuple(name for line in lines for name in line.trial_ids)),))
    by_name = {row.trial_id: row for row in rows}
    studies: dict[str, Study] = {}
    for line in lines:
        of_line = [by_name[name] for name in line.trial_ids if name in by_name]
        grouped = grouping.studies(of_line, axis=line.axis, least=1)
        studies |= {study.id: study for study in grouped if study.id == line.id}
    return studies, size


def _load_rows(stores: Sequence[Store], names: NamesByColumn) -> tuple[tuple[Trial, ...], int]:
    """The rows, and what they take in memory."""
    tables = [store.rows(**dict(names), most_bytes=MAX_READ_BYTES) for store in stores]
    size = sum(map(object_bytes, tables))
    index.require_room(size, MAX_READ_BYTES)
    rows: dict[str, Trial] = {}
    for trial in (trial for table in tables for trial in from_table(table)):
        rows.setdefault(trial.trial_id, trial)
    return tuple(sorted(rows.values(), key=lambda trial: (trial.started_at, trial.trial_id))), size
