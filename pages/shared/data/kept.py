"""What is worked out once for all visitors: one decorator, which makes the key of what a function is given.

Keys are contents (a run's rows never change, a folder's files are named and dated), so nothing has to be invalidated
by hand, and nothing is lost when a visitor clears the caches.
"""

import functools
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

import streamlit as st

from core.answer.study.machines.two_machines import Meeting
from core.answer.study.study import Study
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.results.schema import Trial
from core.results.store import Store
from pages.shared.data import folders

P = ParamSpec("P")
R = TypeVar("R")

ALONE: object = object.__eq__
"""How a value compares that is equal to itself alone."""


def kept(
    most: int, *, seconds: float | None = None, spinner: str | bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep what a function returns, under the contents of its arguments; nobody may change what it returned.

    An argument whose name begins with an underscore is no part of the key. One that is equal to itself alone, such as
    a table of everything that is stored, is kept with the answer, so that no other can take its place.

    Args:
        most: answers that are kept; the oldest go first.
        seconds: how long one is kept; for good unless given.
        spinner: whether, or with which words, a visitor is told to wait.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        def made(key: int, _held: tuple[object, ...], _make: Callable[[], R]) -> tuple[R, tuple[object, ...]]:
            return _make(), _held

        made.__module__, made.__qualname__ = function.__module__, function.__qualname__  # by which Streamlit knows it
        cached = st.cache_resource(max_entries=most, ttl=seconds, show_spinner=spinner)(made)

        @functools.wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> R:
            given = signature.bind(*args, **kwargs).arguments
            counted = [value for name, value in given.items() if not name.startswith("_")]
            held = tuple(value for value in counted if type(value).__eq__ is ALONE)
            # by name, as Streamlit looks for the name of each argument that has none anew
            return cached(key=hash(content(counted)), _held=held, _make=lambda: function(*args, **kwargs))[0]

        return answer

    return decorate


def content(value: Any) -> Hashable:
    """What a value says, to be compared: a store by its files, studies and jobs by their rows, machines by devices.

    A row counts with all that it holds.
    """
    match value:
        case Store():
            return value.folder, folders.signature(value.folder)
        case Study():
            return value.id, value.axis, rows_content(row for run in value.runs for row in run)
        case Meeting():
            return value.id, rows_content(value.measured)
        case Job():
            now = value.progress if value.active else None
            return value.id, value.trial_ids, value.unsaved, (now.sweep or now).pairs if now else 0
        case Machine():
            return value.here, *sorted(value.device_names.items())
        case Mapping():
            return tuple((name, content(entry)) for name, entry in value.items())
        case list() | tuple():
            return tuple(map(content, value))
    return value  # type: ignore[no-any-return]


def rows_content(rows: Iterable[Trial]) -> Hashable:
    """Changes whenever rows do, in a fortieth of the time: a row of one name changes only while it is measured."""
    return tuple((row.trial_id, row.outcome, len(row.block_steps)) for row in rows)
