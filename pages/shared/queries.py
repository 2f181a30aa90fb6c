"""Cached lookups for all visitors: the machine, jobs, stored rows, crossovers, reports and charts.

Nothing here measures. A function that reads the store raises StoreError if it cannot be read, or if the rows take more
than `cache.MAX_READ_BYTES`.
"""

import collections
import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow.compute as pc

from core import units
from core.answer import accuracy, expectations, predict, recorded_machines, remedies, speedup, timings_csv
from core.answer import study as grouping
from core.answer.charts import run_charts, study_charts
from core.answer.charts.study_charts import Cell
from core.answer.gallery import overview
from core.answer.gallery.overview import Overview, StudyLine
from core.answer.judgement import Basis, Crossover, Evidence
from core.answer.recorded_machines import Accelerator, Meeting
from core.answer.remedies import LanePick, Remedy
from core.answer.study import Study
from core.answer.timings_csv import Timings
from core.errors import InvalidValue, StoreError
from core.jobs import client
from core.jobs.cluster_machine import ClusterMachine
from core.jobs.job import Job
from core.jobs.machine import Machine, MachineUse, UseMeter
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.progress import Progress
from core.question import policy
from core.question.experiment import Contender, Experiment, Point, display_name
from core.question.sweep import Axis, Sweep
from core.remote import is_remote, resolve_store
from core.results import exchange, exhibits
from core.results.exchange import Proposal
from core.results.exhibits import Exhibit
from core.results.index import Skipped
from core.results.schema import Trial
from core.results.store import GALLERY, RESULTS, Accepted, Store, any_run, newest_answers
from core.text import as_label
from pages.shared import cache
from pages.shared.cache import cache_answers, make_rows_key

MAX_IMPORTED_ROWS = 5_000
"""Largest number of rows in a file that a page imports; the command line accepts more."""

RESULTS_VARIABLE = "CROSSOVER_RESULTS"
"""Environment variable that names another folder of results, or the address of one."""


def open_queue() -> Queue:
    return _open_queue(os.environ.get(JOBS_VARIABLE, ""))


def open_store() -> Store:
    return Store(resolve_store(os.environ.get(RESULTS_VARIABLE) or str(RESULTS)))


def read_machine() -> Machine | None:
    """Return this machine as its measuring process last reported it; None before the first report."""
    return client.load_machine(open_queue())


def start_measuring_process() -> None:
    """Start the measuring process unless it runs, or nothing can run here; raises JobError if it cannot be started."""
    if not explain_no_runs():
        client.ensure_worker(open_queue(), same_context=True)


_use_lock = threading.Lock()
_use: list[tuple[float, UseMeter, MachineUse]] = []
"""The last reading of this machine's load: its time, its meter and its result; empty before the first one."""

USE_S, MAX_USE_S = 3.0, 10.0
"""Shortest and longest time in seconds that a reading of this machine's load covers."""


def read_machine_use() -> MachineUse:
    """Return how much other programs used this machine in the last seconds; quiet at the first reading.

    All visitors share one reading, so that reading does not disturb a measurement.
    """
    with _use_lock:
        now = time.monotonic()
        read_at, meter, use = _use.pop() if _use else (-MAX_USE_S, UseMeter(), MachineUse())
        if now - read_at > MAX_USE_S:  # no visitor read it meanwhile
            read_at, meter, use = now, UseMeter(), MachineUse()
        elif now - read_at >= USE_S:
            read_at, use = now, meter.read()
        _use.append((read_at, meter, use))
        return use


def list_cluster_machines() -> tuple[ClusterMachine, ...]:
    """Return the machines of the last sweep on a cluster, as they reported; empty if there was none."""
    return next((job.machines for job in reversed(open_queue().jobs()) if job.machines), ())


def name_devices() -> str:
    """Return a short name of this machine's GPUs, as far as its measuring process has reported them."""
    known = read_machine()
    if known is None:
        return "Devices"
    others = [info.name for info in known.devices if info.kind != "cpu"]
    return as_label(others[0]) + (f" + {len(others) - 1}" if others[1:] else "") if others else "No GPU here"


def describe_repeatability() -> str:
    """Describe how well results on this machine repeat, in one sentence; empty if no experiment was repeated."""
    known = read_machine()
    with contextlib.suppress(StoreError):
        return _describe_repeatability(read_overview(), known.environment.machine_id) if known else ""
    return ""


def explain_no_runs() -> str:
    """Return why no visitor can run anything on this host, in one sentence; empty if runs are possible."""
    if policy.load_policy().who_may_run == "nobody":
        return "This host runs nothing. You can look at stored results."
    if not client.has_torch():
        return "PyTorch is not installed here, so nothing can run. You can look at stored results."
    return ""


def describe_loading() -> str:
    """Describe what the measuring process loads before it can measure, in a sentence; empty once it is ready."""
    serving = open_queue().worker_file.serving
    if serving is None or serving.ready:
        return ""
    last = read_machine()
    took = f", which took {units.format_duration(last.loading_s)} last time" if last and last.loading_s else ""
    return f"PyTorch is being loaded{took}."


def read_overview() -> Overview:
    """Return a short line for every trial of this machine's store and of the gallery in the app."""
    return _load_overview(_open_stores())


def list_refused_files() -> tuple[Skipped, ...]:
    """Return files whose rows are listed but could not be read on request."""
    return tuple(entry for store in _open_stores() for entry in store.list_refused())


def find_rows(*, trial_ids: Collection[str] = (), run_ids: Collection[str] = ()) -> list[Trial]:
    """Return the complete rows of some trials or runs, ordered by run and contender; no trial twice."""
    wanted = {"trial_id": trial_ids, "run_id": run_ids}
    named = tuple((column, tuple(sorted(names))) for column, names in wanted.items() if names)
    return list(cache.read_rows(_open_stores(), named)) if named else []


def compare_with_predictions() -> Mapping[str, predict.Comparison]:
    """Compare every predictable run on a GPU with its prediction, by key of the GPU; empty without a store."""
    with contextlib.suppress(StoreError):
        overview = read_overview()
        return _compare_with_predictions(overview, _list_predictable_rows(overview))
    return {}


@cache_answers(4)
def _list_predictable_rows(overview: Overview) -> tuple[str, ...]:
    """Return the trials on predicted GPUs and those on the CPU in the same runs."""
    lines = overview.list_lines(("trial_id", "run_id", "device_name"), pc.field("device_kind") == "cuda")
    cards = {name: predict.card_of_device(name) for name in {line.device_name for line in lines}}
    chosen = [line for line in lines if cards[line.device_name]]
    in_runs = pc.field("run_id").isin(list({line.run_id for line in chosen}))
    beside = overview.list_lines(("trial_id",), in_runs & (pc.field("device_kind") == "cpu")) if chosen else []
    return tuple(line.trial_id for line in (*chosen, *beside))


@cache_answers(4)
def _compare_with_predictions(overview: Overview, trial_ids: tuple[str, ...]) -> Mapping[str, predict.Comparison]:
    return predict.compare_runs(find_rows(trial_ids=trial_ids))


def find_known_answers(
    experiments: Sequence[Experiment], machine: Machine, *, accepted: Accepted = speedup.answers_experiment
) -> dict[str, list[Trial]]:
    """Return the newest answer of this machine for each experiment id, by the rules of `core.results.store`."""
    names = tuple(sorted({experiment.id for experiment in experiments}))
    wanted = (("experiment_id", names), ("machine_id", (machine.local_machine.machine_id,)))
    return newest_answers(
        cache.read_rows(_open_stores(), wanted), experiments, machine.local_machine, accepted=accepted
    )


def find_newest_answers(experiments: Sequence[Experiment], machine: Machine) -> dict[str, list[Trial]]:
    """Return the answers of `find_known_answers`, or else the newest rows, for example from a busy machine."""
    return find_known_answers(experiments, machine, accepted=any_run) | find_known_answers(experiments, machine)


def list_study_lines() -> list[StudyLine]:
    """Return every study of this machine's store and of the gallery, the studies with the most sizes first."""
    return _group_study_lines(_open_stores())


def find_study_line(study_id: str) -> StudyLine | None:
    """Return a study with all its sizes; None if no study with that id is listed."""
    return next((line for line in list_study_lines() if line.id == study_id), None)


def find_study(study_id: str) -> Study | None:
    """Return a study with its complete rows; None as in `find_study_line`."""
    line = find_study_line(study_id)
    return cache.read_studies(_open_stores(), [line]).get(study_id) if line else None


def find_studies(lines: Sequence[StudyLine]) -> dict[str, Study]:
    """Return some studies with their complete rows, by id, in one read; leaves out unreadable ones."""
    with contextlib.suppress(StoreError):  # one study may be too large, which must not hide the others
        return cache.read_studies(_open_stores(), lines)
    found: dict[str, Study] = {}
    for line in lines:
        with contextlib.suppress(StoreError):
            found |= cache.read_studies(_open_stores(), [line])
    return found


@cache_answers(256)
def make_sweep(
    fields: Mapping[str, Any],
    axes: tuple[Axis, ...],
    contenders: tuple[str, ...],
    adaptive: bool,
    limits: Mapping[str, float],
    folder: str = "",
) -> Sweep:
    """Return the sweep of the settings, checked once because that is slow.

    Raises:
        InvalidValue: a point is impossible.
    """
    first = {axes[0].name: axes[0].values[0]} if axes[0].name != "parameters" else {}
    return Sweep(
        point=Point(**{**fields, **first}),
        axes=axes,
        contenders=tuple(Contender.parse(text) for text in contenders) or (Contender(),),
        adaptive=adaptive,
        pairs=int(limits["pairs"]),
        budget_s=limits["budget_s"],
        point_budget_s=limits["point_budget_s"],
        folder=folder,
    )


@cache_answers(256)
def count_parameters(request: Sweep) -> tuple[int, ...]:
    """Return the number of parameters of each point of a sweep, or of each size to choose from."""
    return tuple(point.network.parameters for point in request.points)


def find_sweep_answers(request: Sweep, machine: Machine) -> tuple[tuple[Trial, ...], bool]:
    """Return this machine's own rows for a sweep, and whether every point has an answer.

    The rows must be from the current devices and torch version.
    """
    return _find_sweep_answers(request, open_store(), machine)


@cache_answers(64)
def find_job_rows(job: Job) -> list[Trial]:
    return client.load_job_rows(open_queue(), job)


def list_exhibits() -> list[Exhibit]:
    """Return every exhibit of the gallery in the app and of this machine's store, the gallery's first."""
    return _load_exhibits(*_sign_exhibit_folders())[0]


def list_unread_exhibits() -> tuple[Skipped, ...]:
    """Return the exhibit files that are invalid or cannot be read."""
    return _load_exhibits(*_sign_exhibit_folders())[1]


def propose_import(data: bytes, name: str) -> Proposal:
    """Return what an import of a file into this machine's store would do; checked once for all visitors."""
    return _propose_import(data, name, open_store())


@functools.cache
def _open_queue(folder: str) -> Queue:
    return Queue(Path(folder) if folder else None)


def _open_stores() -> tuple[Store, Store]:
    """Return the stores that have rows: this machine's and the gallery's."""
    return open_store(), Store(GALLERY)


@cache_answers(2)
def _load_overview(stores: tuple[Store, Store]) -> Overview:
    return overview.load_overview([(stores[0], "measured here"), (stores[1], "gallery")])


@cache_answers(2)
def _group_study_lines(stores: tuple[Store, Store]) -> list[StudyLine]:
    return overview.find_study_lines(_load_overview(stores).table)


def _sign_exhibit_folders() -> tuple[tuple[Path, ...], tuple[int, ...]]:
    stores = (GALLERY, open_store().folder)
    return stores, tuple(map(_sign_exhibits, stores))


def _sign_exhibits(store: Path) -> int:
    """Return a number that changes with any file of a store's exhibits; at an address, all files of the store count."""
    return hash((cache.sign_folder(store / exhibits.EXHIBITS_FOLDER), is_remote(store) and cache.sign_folder(store)))


@cache_answers(4)
def _load_exhibits(stores: tuple[Path, ...], signatures: tuple[int, ...]) -> tuple[list[Exhibit], tuple[Skipped, ...]]:
    """Return the readable exhibits of each store, and the unreadable ones; an unreadable folder hides no other."""
    found: list[Exhibit] = []
    skipped: list[Skipped] = []
    for store in stores:
        try:
            shown, left_out = exhibits.read_exhibits(store)
            found, skipped = found + shown, [*skipped, *left_out]
        except StoreError as error:
            skipped.append(Skipped(name=exhibits.EXHIBITS_FOLDER, reason=str(error)))
    return found, tuple(skipped)


@cache_answers(64)
def _find_sweep_answers(request: Sweep, store: Store, machine: Machine) -> tuple[tuple[Trial, ...], bool]:
    experiments = [request.experiment(point) for point in request.points]
    newest, answered = find_newest_answers(experiments, machine), find_known_answers(experiments, machine)
    rows = tuple(row for experiment in experiments for row in newest.get(experiment.id, ()))
    return rows, all(experiment.id in answered for experiment in experiments)


@cache_answers(2, ttl_s=600, spinner="Checking the file …")
def _propose_import(data: bytes, name: str, store: Store) -> Proposal:
    return exchange.check_import(data, name, store, most_rows=MAX_IMPORTED_ROWS)


LONG_STEP_S = 1e-3
"""Shortest step in seconds whose time shows how fast a machine computes."""

MAX_REPEATS = 60
"""Maximum number of runs in the description of how well results repeat."""

MAX_REMEDY_ROWS = 50
"""Largest number of rows with other settings that are read, the newest first."""

Rows = TypeVar("Rows")


@dataclass(frozen=True, kw_only=True)
class LocatedCrossover:
    """A crossover with its evidence; charts are made on first use, for all visitors.

    Attributes:
        answer: the crossover.
        evidence: the measurements behind it.
        kinds: device kinds of the baseline and the challenger.
        recorded: whether the challenger was recorded on another machine.
    """

    answer: Crossover
    evidence: tuple[Evidence, ...]
    kinds: tuple[str, str] | None = None
    recorded: bool = False

    @functools.cached_property
    def chart(self) -> dict[str, Any]:
        return study_charts.crossover_chart(self.answer, self.evidence, kinds=self.kinds, recorded=self.recorded)

    @functools.cached_property
    def speedup(self) -> dict[str, Any]:
        return study_charts.speedup_chart(self.answer, kinds=self.kinds)


@cache_answers(256)
def make_chart(draw: Callable[[Rows], dict[str, Any]], rows: Rows) -> dict[str, Any]:
    """Return the finished chart that `draw`, a function of `core.answer.charts`, makes of rows or of one row."""
    return draw(rows)


@cache_answers(64)
def make_live_chart(job_id: str, update: int, _progress: Progress, _is_custom: bool) -> dict[str, Any]:
    """Return the loss curve of a running measurement at an update; all viewers share it."""
    return run_charts.live_loss_chart(_progress, kinds=_read_device_kinds(), custom=_is_custom)


def group_studies(trials: Sequence[Trial], axis: str) -> list[Study]:
    """Return the studies over an axis that rows form, also those with a single size."""
    return _group_studies(make_rows_key(trials), axis, trials)


@cache_answers(512)
def locate_crossover(study: Study, basis: Basis) -> LocatedCrossover:
    """Return the crossover of a study on a cost basis; raises CrossoverError if its rows cannot be compared."""
    answer, evidence = study.crossover(basis), study.evidence(basis)
    return LocatedCrossover(answer=answer, evidence=tuple(evidence), kinds=_read_study_kinds(study))


@cache_answers(256)
def explain_crossover(study: Study, basis: Basis) -> tuple[str, ...]:
    """Explain the single crossing of a study; empty if this version does not support the settings of its rows.

    Raises as `locate_crossover` does.
    """
    found = locate_crossover(study, basis)
    try:
        return expectations.meaning_sentences(Point.from_row(study.runs[-1][0]), found.answer, found.evidence)
    except InvalidValue:
        return ()


@cache_answers(256)
def locate_meeting(met: Meeting, basis: Basis) -> LocatedCrossover:
    """Return the crossover of two machines on a cost basis; raises as `locate_crossover` does."""
    answer, evidence = recorded_machines.meeting_crossover(met, basis), recorded_machines.meeting_evidence(met, basis)
    kinds = (met.measured[-1].device_kind, met.recorded[-1].device_kind)
    return LocatedCrossover(answer=answer, evidence=tuple(evidence), kinds=kinds, recorded=True)


@cache_answers(64)
def locate_best_lanes(study: Study, picks: Sequence[LanePick], basis: Basis) -> LocatedCrossover:
    """Return the crossover of the chosen variants at each size of a study; raises as `locate_crossover` does."""
    answer, evidence = remedies.best_lanes_crossover(study, picks, basis)
    return LocatedCrossover(answer=answer, evidence=tuple(evidence), kinds=_read_study_kinds(study))


@cache_answers(16)
def locate_timings(data: bytes, name: str, devices: tuple[str, str] | None = None) -> tuple[Timings, LocatedCrossover]:
    """Return a user's own timings and their crossover; raises CrossoverError if they cannot be read."""
    read = timings_csv.read_timings(data, name, devices=devices)
    return read, LocatedCrossover(answer=timings_csv.timings_crossover(read), evidence=read.evidence)


@cache_answers(64)
def make_winners_chart(cells: Sequence[Cell], axes: tuple[str, str], study: Study) -> dict[str, Any]:
    devices = display_name(study.baseline), display_name(study.challenger)
    return study_charts.winners_chart(cells, axes=axes, devices=devices, kinds=_read_study_kinds(study))


@cache_answers(256)
def make_class_report(trial: Trial) -> dict[str, Any] | None:
    """Return the classification report of a trial by class name; None if it was not tested."""
    return accuracy.classification(trial)


def estimate_sweep_seconds(request: Sweep, machine: Machine) -> tuple[float, float]:
    """Return the shortest and the longest time in seconds that a sweep should take here."""
    return _estimate_sweep_seconds(request, _find_rates(read_overview(), machine.local_machine.machine_id))


def estimate_lanes_seconds(request: Experiment, machine: Machine) -> tuple[float, float]:
    """Return the shortest and the longest time in seconds that the variants of a training should take here."""
    return expectations.estimate_lanes_s(request, _find_rates(read_overview(), machine.local_machine.machine_id))


def list_accelerators(exclude: str) -> tuple[Accelerator, ...]:
    """Return every recorded accelerator with timed rows, without those of the machine `exclude`."""
    return _list_accelerators(read_overview(), exclude)


def find_other_remedies(row: Trial) -> tuple[Remedy, ...]:
    """Return the effects of another data path or batch size on the machine of a row."""
    return _find_other_remedies(read_overview(), row.trial_id, len(row.block_pair), row)


@cache_answers(256)
def _estimate_sweep_seconds(request: Sweep, rates: tuple[float, ...]) -> tuple[float, float]:
    return expectations.estimate_sweep_s(request, rates)


@cache_answers(2)
def _find_rates(overview: Overview, machine_id: str) -> tuple[float, ...]:
    """Return the 10 % and 90 % quantiles of the operations per second of a machine's trainings.

    Trainings whose steps consist only of overhead are left out.
    """
    known = (pc.field("flops_per_step") > 0) & (pc.field("step_s") >= LONG_STEP_S)  # unknown for custom scripts
    timed = overview.list_lines(("flops_per_step", "step_s"), known & (pc.field("machine_id") == machine_id))
    rates = [line.flops_per_step / line.step_s for line in timed]
    return tuple(np.quantile(rates, [0.1, 0.9]).tolist()) if rates else ()


@cache_answers(2)
def _describe_repeatability(overview: Overview, machine_id: str) -> str:
    here = (pc.field("machine_id") == machine_id) & (pc.field("pairs") > 0)
    rows = overview.list_lines(("started_at", "run_id", "experiment_id"), here)
    runs = {row.run_id: row.experiment_id for row in sorted(rows, key=lambda row: row.started_at)}
    times = collections.Counter(runs.values())
    repeated = tuple(run_id for run_id, experiment_id in runs.items() if times[experiment_id] > 1)
    if not repeated:
        return ""
    found = speedup.measure_repeatability(find_rows(run_ids=repeated[-MAX_REPEATS:]), machine_id)
    if not found.freedom:
        return ""
    counted = units.format_quantity(found.freedom, "repeated run")
    return f"Results on this machine repeat to within about ±{units.format_share(found.reach)} ({counted})."


@cache_answers(128)
def _group_studies(key: Hashable, axis: str, _trials: Sequence[Trial]) -> list[Study]:
    return grouping.studies(_trials, axis=axis, least=1)


@cache_answers(8)
def _list_accelerators(overview: Overview, exclude: str) -> tuple[Accelerator, ...]:
    timed = (pc.field("device_kind") != "cpu") & (pc.field("pairs") > 0)
    lines = overview.list_lines(recorded_machines.RECORDING_COLUMNS, timed)
    return recorded_machines.list_accelerators(lines, exclude_machine=exclude)


@cache_answers(64)
def _find_other_remedies(overview: Overview, trial_id: str, blocks: int, _row: Trial) -> tuple[Remedy, ...]:
    alike = _find_similar_rows(overview, _row)
    return remedies.effects_from_other_runs(_row, find_rows(trial_ids=alike)) if alike else ()


def _find_similar_rows(overview: Overview, row: Trial) -> list[str]:
    """Return the ids of rows that differ from a row only in the data path or the batch size."""
    fixed = [name for name in speedup.REMEDY_COLUMNS if name not in (*speedup.DATA_COLUMNS, "batch_size")]
    known = overview.table.column_names
    equal = {name: getattr(row, name) for name in (*fixed, "origin") if name in known}
    same = overview.list_lines(known, pc.field("pairs") > 0, equal)
    lines = [line for line in same if remedies.find_single_difference(row, line)]
    return [line.trial_id for line in lines[:MAX_REMEDY_ROWS]]


def _read_study_kinds(study: Study) -> tuple[str, str]:
    return study.runs[0][0].device_kind, study.runs[0][1].device_kind


def _read_device_kinds() -> dict[str, str]:
    """Return the kind of each device, as far as the measuring process has reported it."""
    known = read_machine()
    return {info.device: info.kind for info in known.devices} if known else {}
