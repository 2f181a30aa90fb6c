"""What pages read: the machine, jobs and stored rows, kept where reading again would cost time.

What is worked out of rows is in `pages.shared.data.prepared`. Keys are contents (a run's rows never change, a folder's
files are named and dated), so nothing has to be invalidated by hand, and nothing is lost when a visitor clears the
caches. Nothing here measures.
"""

import contextlib
import functools
import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from core.answer.gallery import table as overviews
from core.answer.gallery.table import Overview, StudyLine
from core.answer.study.study import Study
from core.errors import StoreError
from core.jobs import client
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.question import policy
from core.question.experiment import Contender, Experiment, Point
from core.question.sweep import Axis, Sweep
from core.results import exhibit_files
from core.results.exhibit import Exhibit
from core.results.index import Skipped
from core.results.intake import exchange
from core.results.intake.exchange import Proposal
from core.results.reuse import newest_answers
from core.results.schema import Trial
from core.results.store import GALLERY, RESULTS, Store
from pages.shared.data import folders, shelf
from pages.shared.data.shelf import Named

MOST_IMPORTED = 5_000
"""Rows of a file that a page takes; the command line takes more."""

RESULTS_VARIABLE = "CROSSOVER_RESULTS"
"""Environment variable that names another folder of results."""


@dataclass(frozen=True, kw_only=True)
class SweepCost:
    """What a sweep asks for, known before anything runs.

    Attributes:
        points: number of points, or of sizes to choose from.
        parameters: fewest and most of a point.
    """

    points: int
    parameters: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What the store knows of a sweep.

    Attributes:
        rows: in the order of points, and of contenders at each.
        complete: whether every point has its rows.
    """

    rows: tuple[Trial, ...]
    complete: bool


def queue() -> Queue:
    """The queue of this machine's measurements."""
    return _queue(os.environ.get(JOBS_VARIABLE, ""))


def results() -> Store:
    """The store that this machine's results go to."""
    return Store(Path(os.environ.get(RESULTS_VARIABLE) or RESULTS))


def machine() -> Machine | None:
    """This machine as its measuring process sees it, which is started if none runs; None until it has reported.

    Where nothing can be run none is started, and what the last one said is all that is known.
    """
    if not only_looking():
        client.ensure_worker(queue())
    return client.machine(queue())


def only_looking() -> str:
    """Why nothing can be run on this host whoever asks, in one sentence; empty if something can."""
    if policy.current().who_may_run == "nobody":
        return "Nothing is run on this host; what is stored can be looked at."
    if not client.has_torch():
        return "PyTorch is not installed here, so nothing can be run; what is stored can be looked at."
    return ""


def overview() -> Overview:
    """One light line for every trial of this machine's store and of the gallery that ships with the app."""
    return _overview(_stores(), *_now())


def refused() -> tuple[Skipped, ...]:
    """Files whose rows are listed, and turned out not to be readable when they were asked for."""
    return tuple(entry for folder, _ in _stores() for entry in Store(Path(folder)).refused())


def rows(*, trial_ids: Collection[str] = (), run_ids: Collection[str] = ()) -> list[Trial]:
    """The whole rows of some trials or runs, in the order of runs and their contenders; no trial twice.

    Raises:
        StoreError: the store cannot be read, or the rows take more than `shelf.MOST_BYTES`.
    """
    wanted = {"trial_id": trial_ids, "run_id": run_ids}
    named = tuple((column, tuple(sorted(names))) for column, names in wanted.items() if names)
    return list(_rows(named)) if named else []


def known(experiments: Sequence[Experiment], machine: Machine) -> dict[str, list[Trial]]:
    """Experiment id → its newest answer that was measured on this machine, by `core.results.reuse`.

    Raises:
        StoreError: the store cannot be read, or the rows take more than `shelf.MOST_BYTES`.
    """
    names = tuple(sorted({experiment.id for experiment in experiments}))
    wanted = (("experiment_id", names), ("machine_id", (machine.here.machine_id,)))
    return newest_answers(_rows(wanted), experiments, machine.here)


def study_lines() -> list[StudyLine]:
    """Every study that is stored here or came with the app, those with the most sizes first."""
    return _study_lines(_stores(), *_now())


def study(study_id: str) -> Study | None:
    """One of them with its whole rows; None if there is none of that name.

    Raises:
        StoreError: the store cannot be read, or the rows take more than `shelf.MOST_BYTES`.
    """
    return next((_whole([line]).get(line.id) for line in study_lines() if line.id == study_id), None)


def whole(lines: Sequence[StudyLine]) -> dict[str, Study]:
    """Some of them with their whole rows, by name, read in one go; missing is one that `study` has or reads not."""
    with contextlib.suppress(StoreError):  # one of them may be too large; it must not hide the others
        return _whole(lines)
    found: dict[str, Study] = {}
    for line in lines:
        with contextlib.suppress(StoreError):
            found |= _whole([line])
    return found


def sweep(
    fields: Mapping[str, Any],
    axes: tuple[Axis, ...],
    contenders: tuple[str, ...],
    adaptive: bool,
    limits: Mapping[str, float],
) -> Sweep:
    """The sweep that settings ask for; checking hundreds of points takes too long for every move of a slider.

    Raises:
        InvalidValue: a point of it cannot be tried.
    """
    return _sweep(tuple(fields.items()), axes, contenders, adaptive, tuple(limits.items()), hash(axes))


def sweep_cost(asked: Sweep) -> SweepCost:
    """How large a sweep is."""
    return _sweep_cost(hash(asked), asked)


def answers(asked: Sweep, known: Machine) -> Answers:
    """What this machine measured of a sweep itself, with the devices and the torch that it has now."""
    devices = tuple(sorted(known.device_names.items()))
    this = (known.environment.machine_id, known.environment.torch_version, devices)
    return _answers(hash(asked), folders.signature(results().folder), this, asked, known)


def job_rows(job: Job) -> list[Trial]:
    """The rows that a job has by now.

    Raises:
        StoreError: the store cannot be read.
    """
    return _job_rows(job.id, job.trial_ids, job.unsaved, job)


def exhibits() -> list[Exhibit]:
    """Every exhibit of this machine's store and of the gallery that ships with the app, the gallery's first."""
    return _exhibits(*_exhibit_folders())[0]


def unread_exhibits() -> tuple[Skipped, ...]:
    """The files among them that are none, or cannot be read."""
    return _exhibits(*_exhibit_folders())[1]


def proposal(data: bytes, name: str) -> Proposal:
    """What would become of a foreign file in this machine's store; checked once, whoever uploads it.

    Raises:
        StoreError: the store cannot be read, or no process can be started.
    """
    folder = results().folder
    return _proposal(hashlib.sha256(data).hexdigest(), name, str(folder), folders.signature(folder), data)


@functools.cache
def _queue(folder: str) -> Queue:
    return Queue(Path(folder) if folder else None)


def _stores() -> tuple[tuple[str, str], ...]:
    """Folders of rows, with where their rows are from, for people. As text: caches find a text sooner than a path."""
    return ((str(results().folder), "measured here"), (str(GALLERY), "gallery"))


def _now() -> tuple[int, ...]:
    """Changes whenever a file of one of them does."""
    return tuple(folders.signature(Path(folder)) for folder, _ in _stores())


@st.cache_resource(max_entries=2, show_spinner=False)
def _overview(stores: tuple[tuple[str, str], ...], *signatures: int) -> Overview:
    return overviews.whole([(Store(Path(folder)), source) for folder, source in stores])


@st.cache_resource(max_entries=2, show_spinner=False)
def _study_lines(stores: tuple[tuple[str, str], ...], *signatures: int) -> list[StudyLine]:
    return overviews.studies(_overview(stores, *signatures).frame)


def _rows(named: Named) -> tuple[Trial, ...]:
    return shelf.rows(_folders(), _now(), named)


def _whole(lines: Sequence[StudyLine]) -> dict[str, Study]:
    return shelf.studies(_folders(), _now(), lines)


def _folders() -> tuple[str, ...]:
    return tuple(folder for folder, _ in _stores())


def _exhibit_folders() -> tuple[tuple[Path, ...], tuple[int, ...]]:
    stores = (GALLERY, results().folder)
    return stores, tuple(folders.signature(store / exhibit_files.FOLDER) for store in stores)


@st.cache_resource(max_entries=4, show_spinner=False)
def _exhibits(stores: tuple[Path, ...], signatures: tuple[int, ...]) -> tuple[list[Exhibit], tuple[Skipped, ...]]:
    """What can be read of each, and what cannot; a folder that cannot be read hides no other."""
    found: list[Exhibit] = []
    skipped: list[Skipped] = []
    for store in stores:
        try:
            shown, left_out = exhibit_files.read(store)
            found, skipped = found + shown, [*skipped, *left_out]
        except StoreError as error:
            skipped.append(Skipped(name=exhibit_files.FOLDER, reason=str(error)))
    return found, tuple(skipped)


@st.cache_resource(max_entries=256, show_spinner=False)
def _sweep(
    fields: tuple[tuple[str, Any], ...],
    _axes: tuple[Axis, ...],
    contenders: tuple[str, ...],
    adaptive: bool,
    limits: tuple[tuple[str, float], ...],
    axes_key: int,
) -> Sweep:
    first = {_axes[0].name: _axes[0].values[0]} if _axes[0].name != "parameters" else {}
    return Sweep(
        point=Point(**{**dict(fields), **first}),
        axes=_axes,
        contenders=tuple(Contender.parse(text) for text in contenders) or (Contender(),),
        adaptive=adaptive,
        pairs=int(dict(limits)["pairs"]),
        budget_s=dict(limits)["budget_s"],
        point_budget_s=dict(limits)["point_budget_s"],
    )


@st.cache_resource(max_entries=256, show_spinner=False)
def _sweep_cost(key: int, _asked: Sweep) -> SweepCost:
    counts = [point.network.parameters for point in _asked.points]
    return SweepCost(points=len(counts), parameters=(min(counts), max(counts)))


@st.cache_resource(max_entries=64, show_spinner=False)
def _answers(key: int, signature: int, this: tuple[Any, ...], _asked: Sweep, _known: Machine) -> Answers:
    asked = [_asked.experiment(point) for point in _asked.points]
    found = known(asked, _known)
    mine = tuple(row for experiment in asked for row in found.get(experiment.id, ()))
    return Answers(rows=mine, complete=all(experiment.id in found for experiment in asked))


@st.cache_resource(max_entries=64, show_spinner=False)
def _job_rows(job_id: str, trial_ids: tuple[str, ...], unsaved: bool, _job: Job) -> list[Trial]:
    return client.rows(queue(), _job)


@st.cache_resource(max_entries=2, ttl=600, show_spinner="Checking the file …")
def _proposal(key: str, name: str, folder: str, signature: int, _data: bytes) -> Proposal:
    return exchange.check(_data, name, results(), most_rows=MOST_IMPORTED)
