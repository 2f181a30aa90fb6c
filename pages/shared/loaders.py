"""What pages read: the machine, jobs, stored rows, and charts of them, kept where reading again would cost time.

All caching is here. Keys are contents (a run's rows never change, a folder's files are named and dated), so nothing
has to be invalidated by hand, and nothing is lost when a visitor clears the caches. Nothing here measures.
"""

import functools
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from core.answer import charts, parity
from core.jobs import runner
from core.jobs.machine import Machine
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.progress import Progress
from core.results import exchange
from core.results.exchange import Format
from core.results.schema import Trial, from_table, to_table
from core.results.store import GALLERY, RESULTS, Skipped, Store

RESULTS_VARIABLE = "CROSSOVER_RESULTS"
"""Environment variable that names another folder of results."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One stored trial with what a list shows of it.

    Attributes:
        trial: the row.
        facets: what it can be found by; keys as in the link.
        step_s: median seconds a step; None if no block was timed.
    """

    trial: Trial
    facets: Mapping[str, str]
    step_s: float | None


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Every row that can be looked at.

    Attributes:
        entries: no trial twice, newest run first, contenders of a run in their order.
        skipped: files that could not be read, with the reason.
        newer: files of a newer version, of which the known columns were read.
    """

    entries: tuple[Entry, ...]
    skipped: tuple[Skipped, ...]
    newer: tuple[str, ...]

    def run(self, run_id: str) -> list[Trial]:
        """The rows of one run, in the order of its contenders; none if it is not here."""
        return [entry.trial for entry in self.entries if entry.trial.run_id == run_id]


def queue() -> Queue:
    """The queue of this machine's measurements."""
    return _queue(os.environ.get(JOBS_VARIABLE, ""))


def results() -> Store:
    """The store that this machine's results go to."""
    return Store(Path(os.environ.get(RESULTS_VARIABLE) or RESULTS))


def machine() -> Machine | None:
    """This machine as its measuring process sees it, which is started if none runs; None until it has reported."""
    runner.ensure_worker(queue())
    return runner.machine(queue())


def shelf() -> Shelf:
    """Every row of this machine's store and of the gallery that ships with the app."""
    folders = (results().folder, GALLERY)
    return _shelf(folders, tuple(_signature(folder) for folder in folders))


def chart(draw: Callable[[Sequence[Trial]], dict[str, Any]], trials: Sequence[Trial]) -> dict[str, Any]:
    """The finished chart that `draw`, a function of `core.answer.charts`, makes of rows."""
    return _chart(draw.__name__, hash(tuple(trials)), draw, trials)


def confusion(trial: Trial) -> dict[str, Any]:
    """The finished confusion matrix of a trial that was tested."""
    return _chart(charts.confusion.__name__, hash(trial), charts.confusion, trial)


@st.cache_data(max_entries=64, show_spinner=False)
def live_chart(job_id: str, elapsed_s: float, _progress: Progress) -> dict[str, Any]:
    """The loss curve of a running measurement; one for all who watch it."""
    return charts.live_loss(_progress, by="seconds", kinds=_kinds())


def report(trial: Trial) -> dict[str, Any] | None:
    """The classification report of a trial by class name; None if it was not tested."""
    return _report(hash(trial), trial)


def download(trials: Sequence[Trial], kind: Format) -> bytes:
    """Rows as a file."""
    return _download(hash(tuple(trials)), kind, trials)


@functools.cache
def _queue(folder: str) -> Queue:
    return Queue(Path(folder) if folder else None)


@st.cache_resource(max_entries=4, show_spinner=False)
def _shelf(folders: tuple[Path, ...], signatures: tuple[int, ...]) -> Shelf:
    contents = [Store(folder).read() for folder in folders]
    entries: dict[str, Entry] = {}
    for folder, content in zip(folders, contents, strict=True):
        for trial in from_table(content.table):
            source = "gallery" if folder == GALLERY else "imported" if trial.origin else "measured here"
            entries.setdefault(trial.trial_id, _entry(trial, source))
    listed = sorted(entries.values(), key=lambda entry: entry.trial.trial_id)
    return Shelf(
        entries=tuple(sorted(listed, key=lambda entry: entry.trial.started_at, reverse=True)),
        skipped=tuple(file for content in contents for file in content.skipped),
        newer=tuple(name for content in contents for name in content.newer),
    )


def _entry(trial: Trial, source: str) -> Entry:
    facets = {
        "in_dataset": trial.dataset,
        "in_model": trial.model,
        "in_kind": trial.device_kind,
        "in_machine": f"{trial.cpu_name} ({trial.machine_id[:6]})",
        "in_outcome": trial.outcome,
        "in_source": source,
    }
    return Entry(trial=trial, facets=facets, step_s=statistics.median(trial.step_s) if trial.block_steps else None)


@st.cache_data(max_entries=256, show_spinner=False)
def _chart(name: str, key: int, _draw: Callable[[Any], dict[str, Any]], _rows: Any) -> dict[str, Any]:
    return _draw(_rows)


@st.cache_data(max_entries=256, show_spinner=False)
def _report(key: int, _trial: Trial) -> dict[str, Any] | None:
    return parity.classification(_trial)


@st.cache_data(max_entries=16, show_spinner=False)
def _download(key: int, kind: Format, _trials: Sequence[Trial]) -> bytes:
    return exchange.export(to_table(list(_trials)), kind)


def _kinds() -> dict[str, str]:
    """Device → its kind, as far as the measuring process has said."""
    known = runner.machine(queue())
    return {info.device: info.kind for info in known.devices} if known else {}


def _signature(folder: Path) -> int:
    """Changes whenever a file of the folder does."""
    try:
        with os.scandir(folder) as entries:
            stats = ((entry.name, entry.stat()) for entry in entries)
            return hash(tuple(sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)))
    except OSError:
        return 0
