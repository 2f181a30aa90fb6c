"""Caches that all visitors share between files and pages: rows by their size in bytes, answers by their content.

The store itself indexes its files. Keys are computed from contents: the rows of a run never change, and the files of a
folder have names and dates. So no code has to invalidate an entry, and a visitor who clears the caches loses nothing.
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
from core.answer.recorded_machines import Meeting
from core.answer.study import Study
from core.errors import StoreError
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.remote import open_cache
from core.results import index
from core.results.parquet import from_table, object_bytes
from core.results.schema import Trial
from core.results.store import Store

P = ParamSpec("P")
R = TypeVar("R")

MAX_READ_BYTES = 128 * 2**20
"""Largest size of rows in memory that one call may read: a study of 400 sizes needs a tenth of it. An imported file can
contain a study of any size. Its reader gets an error, and no other visitor has to wait."""

MAX_ROW_BYTES = 256 * 2**20
"""Largest total size of recently read rows and studies, for all visitors together. The limit is in bytes because a row
can have any number of blocks.
"""

RECHECK_S = 2.0
"""Seconds for which a folder with the same date counts as unchanged: a file gets its name when it is complete."""

SETTLED_NS = 50_000_000
"""Nanoseconds after which the date of a folder is reliable: changes within a shorter time can have the same date."""

COMPARED_BY_IDENTITY: object = object.__eq__
"""The comparison method of values that are equal only to themselves."""

NamesByColumn: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Columns for a lookup of rows, with the names to find in each."""

_rows: LRUCache[Hashable, tuple[Any, int]] = LRUCache(MAX_ROW_BYTES, getsizeof=lambda entry: entry[1])
_rows_lock = threading.Lock()


def cache_answers(
    max_entries: int, *, ttl_s: float | None = None, spinner: str | bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache the results of a function by the contents of its arguments; no caller may change a result.

    An argument whose name begins with an underscore is not part of the key. An argument that is equal only to itself,
    such as a table of all stored rows, stays in the cache with the answer. So no other object can get its identity.

    Args:
        max_entries: number of cached answers; the oldest are removed first.
        ttl_s: seconds until an answer expires; never by default.
        spinner: whether to show a spinner, or its text.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        def compute(key: int, _identities: tuple[object, ...], _make: Callable[[], R]) -> tuple[R, tuple[object, ...]]:
            return _make(), _identities

        compute.__module__, compute.__qualname__ = function.__module__, function.__qualname__  # Streamlit's name for it
        cached = st.cache_resource(max_entries=max_entries, ttl=ttl_s, show_spinner=spinner)(compute)

        @functools.wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> R:
            arguments = signature.bind(*args, **kwargs).arguments
            values = [value for name, value in arguments.items() if not name.startswith("_")]
            identities = tuple(value for value in values if type(value).__eq__ is COMPARED_BY_IDENTITY)
            # by name, because Streamlit searches for the name of each positional argument at every call
            key = hash(make_key(values))
            return cached(key=key, _identities=identities, _make=lambda: function(*args, **kwargs))[0]

        return answer

    return decorate


def make_key(value: Any) -> Hashable:
    """Return a value to compare by content: stores by files, studies and jobs by rows, machines by devices.

    A row counts with all of its values.
    """
    match value:
        case Store():
            return value.folder, sign_folder(value.folder)
        case Study():
            return value.id, value.axis, make_rows_key(row for run in value.every_run for row in run)
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
    """Return a key that changes with the rows, 40 times faster than hashing them all.

    A row with the same name changes only while it is measured.
    """
    return tuple((row.trial_id, row.outcome, len(row.block_steps)) for row in rows)


def sign_folder(folder: Path) -> int:
    """Return a number that changes with every file of a folder; the growth of a file counts a moment later.

    An unreadable entry counts with its error, and hides no change of another entry. For a store at an address, the
    remote files count.
    """
    try:
        if (remote := open_cache(folder)) is not None:
            return remote.signature
        changed = folder.stat().st_mtime_ns
        settled = time.time_ns() - changed > SETTLED_NS
        return _sign_entries(folder, changed, int(time.monotonic() / RECHECK_S) if settled else time.monotonic_ns())
    except (OSError, StoreError):
        return 0


@cache_answers(16)
def _sign_entries(folder: Path, changed: int, moment: int) -> int:
    """Return a hash of the name, date and size of every file of a folder; scans the folder once per moment."""
    with os.scandir(folder) as entries:
        return hash(tuple(sorted((entry.name, *_stat_entry(entry)) for entry in entries)))


def _stat_entry(entry: "os.DirEntry[str]") -> tuple[int, int]:
    """Return the date and size of an entry; if it cannot be read (a broken link, for example), the error number."""
    try:
        facts = entry.stat()
    except OSError as error:
        return -1, error.errno or 0
    return facts.st_mtime_ns, facts.st_size


def read_rows(stores: Sequence[Store], names: NamesByColumn) -> tuple[Trial, ...]:
    """Return rows by names in some columns, ordered by run and contender; the first store with a trial counts.

    Raises:
        StoreError: a store cannot be read, or the rows take more than `MAX_READ_BYTES`.
    """
    rows: tuple[Trial, ...] = _keep_rows(("rows", make_key(stores), names), lambda: _load_rows(stores, names))
    return rows


def read_studies(stores: Sequence[Store], lines: Sequence[StudyLine]) -> dict[str, Study]:
    """Return studies with their rows, by name; leaves out a study whose rows are gone. Raises as `read_rows` does."""
    key = ("studies", make_key(stores), tuple((line.id, line.trial_ids) for line in lines))
    studies: dict[str, Study] = _keep_rows(key, lambda: _load_studies(stores, lines))
    return studies


def _keep_rows(key: Hashable, load: Callable[[], tuple[Any, int]]) -> Any:
    """Return the first value of `load`, cached while its size (the second) fits; two threads may load it twice."""
    with _rows_lock:
        entry = _rows.get(key)
    if entry is None:
        entry = load()
        with _rows_lock:
            if entry[1] <= _rows.maxsize:
                _rows[key] = entry
    return entry[0]


def _load_studies(stores: Sequence[Store], lines: Sequence[StudyLine]) -> tuple[dict[str, Study], int]:
    """Return the studies, and the size of their rows in memory."""
    rows, size = _load_rows(stores, (("trial_id", tuple(name for line in lines for name in line.trial_ids)),))
    by_name = {row.trial_id: row for row in rows}
    studies: dict[str, Study] = {}
    for line in lines:
        of_line = [by_name[name] for name in line.trial_ids if name in by_name]
        grouped = grouping.studies(of_line, axis=line.axis, least=1)
        studies |= {study.id: study for study in grouped if study.id == line.id}
    return studies, size


def _load_rows(stores: Sequence[Store], names: NamesByColumn) -> tuple[tuple[Trial, ...], int]:
    """Return the rows, and their size in memory."""
    tables = [store.rows(**dict(names), most_bytes=MAX_READ_BYTES) for store in stores]
    size = sum(map(object_bytes, tables))
    index.require_room(size, MAX_READ_BYTES)
    rows: dict[str, Trial] = {}
    for trial in (trial for table in tables for trial in from_table(table)):
        rows.setdefault(trial.trial_id, trial)
    return tuple(sorted(rows.values(), key=lambda trial: (trial.started_at, trial.trial_id))), size
