"""What pages read: the machine, jobs, stored rows, and charts of them, kept where reading again would cost time.

All caching is here. Keys are contents (a run's rows never change, a folder's files are named and dated), so nothing
has to be invalidated by hand, and nothing is lost when a visitor clears the caches. Nothing here measures.
"""

import functools
import hashlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from core import policy
from core.answer import crossover, parity, timings
from core.answer import overview as overviews
from core.answer import study as grouping
from core.answer.charts import grids, runs
from core.answer.charts import studies as study_charts
from core.answer.charts.grids import Cell
from core.answer.outcome import Basis, Crossover, Evidence
from core.answer.overview import Overview, StudyLine
from core.answer.study import Study
from core.answer.timings import Timings
from core.exhibits import Exhibit
from core.experiment import Contender, Experiment, Point
from core.jobs import runner
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.progress import Progress
from core.results import exchange
from core.results import exhibits as exhibit_files
from core.results.answers import newest_answers
from core.results.exchange import Proposal
from core.results.schema import Trial
from core.results.store import GALLERY, RESULTS, Store
from core.sweep import Axis, Sweep

KEPT_ROWS = 400
"""Names of rows that are asked for at once and kept: those of a study; more are read for a download, and let go."""

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


@dataclass(frozen=True, kw_only=True)
class Located:
    """A crossover with what it rests on and its charts.

    Attributes:
        answer: the crossover.
        evidence: what was timed at each size.
        chart: finished, time against size.
        speedup: finished, speedup against size.
    """

    answer: Crossover
    evidence: tuple[Evidence, ...]
    chart: dict[str, Any]
    speedup: dict[str, Any]


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
        runner.ensure_worker(queue())
    return runner.machine(queue())


def only_looking() -> str:
    """Why nothing can be run on this host whoever asks, in one sentence; empty if something can."""
    if policy.current().who_may_run == "nobody":
        return "Nothing is run on this host; what is stored can be looked at."
    if not runner.has_torch():
        return "PyTorch is not installed here, so nothing can be run; what is stored can be looked at."
    return ""


def overview() -> Overview:
    """One light line for every trial of this machine's store and of the gallery that ships with the app."""
    return _overview(_stores(), *_now())


def rows(*, trial_ids: Collection[str] = (), run_ids: Collection[str] = ()) -> list[Trial]:
    """The whole rows of some trials or runs, in the order of runs and their contenders; no trial twice.

    Raises:
        StoreError: the store cannot be read.
    """
    wanted = {"trial_id": trial_ids, "run_id": run_ids}
    named = tuple((column, tuple(sorted(names))) for column, names in wanted.items() if names)
    if not named:
        return []
    few = sum(len(names) for _, names in named) <= KEPT_ROWS
    return list(_rows(_stores(), _now(), hash(named), named)) if few else _read(_stores(), named)


def known(experiments: Sequence[Experiment], machine: Machine) -> dict[str, list[Trial]]:
    """Experiment id → its newest answer that was measured on this machine, by `core.results.answers`.

    Raises:
        StoreError: the store cannot be read.
    """
    names = tuple(sorted({experiment.id for experiment in experiments}))
    wanted = (("experiment_id", names), ("machine_id", (machine.here.machine_id,)))
    return newest_answers(_rows(_stores(), _now(), hash(wanted), wanted), experiments, machine.here)


def study_lines() -> list[StudyLine]:
    """Every study that is stored here or came with the app, those with the most sizes first."""
    return _study_lines(_stores(), *_now())


def study(study_id: str) -> Study | None:
    """One of them with its whole rows; None if there is none of that name."""
    return whole([line for line in study_lines() if line.id == study_id][:1]).get(study_id)


def whole(lines: Sequence[StudyLine]) -> dict[str, Study]:
    """Some of them with their whole rows, by name, read in one go; one whose rows are gone is missing."""
    return _whole(_stores(), _now(), hash(tuple((line.id, tuple(line.trial_ids)) for line in lines)), lines)


@st.cache_resource(max_entries=128, show_spinner=False)
def _whole(
    stores: tuple[tuple[str, str], ...], signatures: tuple[int, ...], key: int, _lines: Sequence[StudyLine]
) -> dict[str, Study]:
    known = {
        row.trial_id: row
        for row in _read(stores, (("trial_id", tuple(name for line in _lines for name in line.trial_ids)),))
    }
    found: dict[str, Study] = {}
    for line in _lines:
        theirs = [known[name] for name in line.trial_ids if name in known]
        found |= {of.id: of for of in grouping.studies(theirs, axis=line.axis, least=1) if of.id == line.id}
    return found


def chart(draw: Callable[[Sequence[Trial]], dict[str, Any]], trials: Sequence[Trial]) -> dict[str, Any]:
    """The finished chart that `draw`, a function of `core.answer.charts`, makes of rows."""
    return _chart(_name(draw), hash(tuple(trials)), draw, trials)


def confusion(trial: Trial) -> dict[str, Any]:
    """The finished confusion matrix of a trial that was tested."""
    return _chart(_name(runs.confusion), hash(trial), runs.confusion, trial)


@st.cache_resource(max_entries=64, show_spinner=False)
def live_chart(job_id: str, elapsed_s: float, _progress: Progress) -> dict[str, Any]:
    """The loss curve of a running measurement; one for all who watch it."""
    return runs.live_loss(_progress, by="seconds", kinds=_kinds())


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
    return _answers(hash(asked), _signature(results().folder), this, asked, known)


def job_rows(job: Job) -> list[Trial]:
    """The rows that a job has by now.

    Raises:
        StoreError: the store cannot be read.
    """
    return _job_rows(job.id, job.trial_ids, job.unsaved, job)


def studies(trials: Sequence[Trial], axis: str) -> list[Study]:
    """The studies along an axis that rows hold, down to a single size."""
    return _studies(_content(trials), axis, trials)


def located(of: Study, basis: Basis) -> Located:
    """The answer of a study on a cost basis, with what it rests on and its charts.

    Raises:
        CrossoverError: its rows cannot be compared.
    """
    return _located(of.id, of.axis, _content([row for run in of.runs for row in run]), basis, of)


def located_timings(data: bytes, name: str) -> tuple[Timings, Located]:
    """Somebody's own timings, the answer that they give, and its charts.

    Raises:
        CrossoverError: the file is not of the kind that is read, or a value in it is none that can be.
    """
    return _located_timings(hashlib.sha256(data).hexdigest(), name, data)


def winners(cells: Sequence[Cell], axes: tuple[str, str], of: Study) -> dict[str, Any]:
    """The finished map of a grid."""
    kinds = (of.runs[0][0].device_kind, of.runs[0][1].device_kind)
    return _winners(hash((tuple(cells), axes)), (of.baseline, of.challenger), kinds, cells, axes)


def exhibits() -> list[Exhibit]:
    """Every exhibit of this machine's store and of the gallery that ships with the app, the gallery's first."""
    folders = (GALLERY, results().folder)
    return _exhibits(folders, tuple(_signature(folder / exhibit_files.FOLDER) for folder in folders))


def report(trial: Trial) -> dict[str, Any] | None:
    """The classification report of a trial by class name; None if it was not tested."""
    return _report(hash(trial), trial)


def proposal(data: bytes, name: str) -> Proposal:
    """What would become of a foreign file in this machine's store; checked once, whoever uploads it.

    Raises:
        StoreError: the store cannot be read, or no process can be started.
    """
    folder = results().folder
    return _proposal(hashlib.sha256(data).hexdigest(), name, str(folder), _signature(folder), data)


@functools.cache
def _queue(folder: str) -> Queue:
    return Queue(Path(folder) if folder else None)


def _stores() -> tuple[tuple[str, str], ...]:
    """Folders of rows, with where their rows are from, for people. As text: caches find a text sooner than a path."""
    return ((str(results().folder), "measured here"), (str(GALLERY), "gallery"))


def _now() -> tuple[int, ...]:
    """Changes whenever a file of one of them does."""
    return tuple(_signature(Path(folder)) for folder, _ in _stores())


@st.cache_resource(max_entries=2, show_spinner=False)
def _overview(stores: tuple[tuple[str, str], ...], *signatures: int) -> Overview:
    return overviews.whole([(Store(Path(folder)), source) for folder, source in stores])


@st.cache_resource(max_entries=2, show_spinner=False)
def _study_lines(stores: tuple[tuple[str, str], ...], *signatures: int) -> list[StudyLine]:
    return overviews.studies(_overview(stores, *signatures).frame)


@st.cache_resource(max_entries=64, show_spinner=False)
def _rows(
    stores: tuple[tuple[str, str], ...],
    signatures: tuple[int, ...],
    key: int,
    _named: tuple[tuple[str, tuple[str, ...]], ...],
) -> list[Trial]:
    return _read(stores, _named)


def _read(stores: tuple[tuple[str, str], ...], named: tuple[tuple[str, tuple[str, ...]], ...]) -> list[Trial]:
    found: dict[str, Trial] = {}
    for folder, _ in stores:
        for trial in Store(Path(folder)).trials(**dict(named)):
            found.setdefault(trial.trial_id, trial)
    return sorted(found.values(), key=lambda trial: (trial.started_at, trial.trial_id))


@st.cache_resource(max_entries=4, show_spinner=False)
def _exhibits(folders: tuple[Path, ...], signatures: tuple[int, ...]) -> list[Exhibit]:
    return [shown for folder in folders for shown in exhibit_files.read(folder)[0]]


@st.cache_resource(max_entries=256, show_spinner=False)
def _chart(name: str, key: int, _draw: Callable[[Any], dict[str, Any]], _rows: Any) -> dict[str, Any]:
    return _draw(_rows)


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
    return runner.rows(queue(), _job)


@st.cache_resource(max_entries=128, show_spinner=False)
def _studies(key: int, axis: str, _trials: Sequence[Trial]) -> list[Study]:
    return grouping.studies(_trials, axis=axis, least=1)


@st.cache_resource(max_entries=512, show_spinner=False)
def _located(study_id: str, axis: str, key: int, basis: Basis, _of: Study) -> Located:
    kinds = (_of.runs[0][0].device_kind, _of.runs[0][1].device_kind)
    return _drawn(grouping.crossover(_of, basis), grouping.evidence(_of, basis), kinds)


@st.cache_resource(max_entries=16, show_spinner=False)
def _located_timings(key: str, name: str, _data: bytes) -> tuple[Timings, Located]:
    read = timings.read(_data, name)
    found = crossover.locate(
        read.evidence, axis="size", basis="as_given", baseline=read.baseline, challenger=read.challenger
    )
    return read, _drawn(found, read.evidence, None)


def _drawn(answer: Crossover, evidence: Sequence[Evidence], kinds: tuple[str, str] | None) -> Located:
    return Located(
        answer=answer,
        evidence=tuple(evidence),
        chart=study_charts.crossover(answer, evidence, kinds=kinds),
        speedup=study_charts.speedup(answer, kinds=kinds),
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _winners(
    key: int, devices: tuple[str, str], kinds: tuple[str, str], _cells: Sequence[Cell], _axes: tuple[str, str]
) -> dict[str, Any]:
    return grids.winners(_cells, axes=_axes, devices=devices, kinds=kinds)


@st.cache_data(max_entries=256, show_spinner=False)
def _report(key: int, _trial: Trial) -> dict[str, Any] | None:
    return parity.classification(_trial)


@st.cache_resource(max_entries=4, ttl=600, show_spinner="Checking the file …")
def _proposal(key: str, name: str, folder: str, signature: int, _data: bytes) -> Proposal:
    return exchange.check(_data, name, results())


def _content(trials: Sequence[Trial]) -> int:
    """Changes whenever the rows do; a row of one name changes only while it is measured."""
    return hash(tuple((trial.trial_id, trial.outcome, len(trial.block_steps)) for trial in trials))


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


def _name(draw: Callable[..., Any]) -> str:
    """Name of a chart among all."""
    return f"{draw.__module__}.{draw.__qualname__}"
