"""What pages read and work out once for all visitors: the machine, jobs, stored rows, crossovers, reports and charts.

Nothing here measures. Whatever reads the store raises StoreError where it cannot be read, or the rows take more than
`cache.MAX_READ_BYTES`.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from core import units
from core.answer import (
    accuracy,
    best_lanes,
    comparable,
    recorded_machines,
    remedies,
    speedup,
    timings_csv,
    two_machines,
)
from core.answer import expectations as crossing_meaning
from core.answer import expectations as how_long_sweeps
from core.answer import study as grouping
from core.answer.best_lanes import LanePick
from core.answer.charts import run_charts, speedup_charts, study_charts
from core.answer.charts.speedup_charts import Cell
from core.answer.gallery import overview
from core.answer.gallery.overview import Overview, StudyLine
from core.answer.recorded_machines import Accelerator
from core.answer.remedies import Remedy
from core.answer.result import Basis, Crossover, Evidence
from core.answer.study import Study
from core.answer.timings_csv import Timings
from core.answer.two_machines import Meeting
from core.errors import InvalidValue, StoreError
from core.jobs import client
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.jobs.shared.members import Member
from core.progress import Progress
from core.question import policy
from core.question.experiment import Contender, Experiment, Point, display_name
from core.question.sweep import Axis, Sweep
from core.remote.local_cache import is_remote, resolve_store
from core.results import exchange, exhibits
from core.results.exchange import Proposal
from core.results.exhibits import Exhibit
from core.results.index import Skipped
from core.results.schema import Trial
from core.results.store import GALLERY, RESULTS, Accepted, Store, any_run, newest_answers
from pages.shared import cache
from pages.shared.cache import cache_answers, make_rows_key

MAX_IMPORTED_ROWS = 5_000
"""Rows of a file that a page takes; the command line takes more."""

RESULTS_VARIABLE = "CROSSOVER_RESULTS"
"""Environment variable that names another folder of results, or the address of a store that machines share."""


def open_queue() -> Queue:
    return _open_queue(os.environ.get(JOBS_VARIABLE, ""))


def open_store() -> Store:
    return Store(resolve_store(os.environ.get(RESULTS_VARIABLE) or str(RESULTS)))


def read_machine() -> Machine | None:
    """This machine as its measuring process sees it, which is started if none runs; None until it has reported.

    Where nothing can be run none is started, and what the last one said is all that is known.
    """
    if not explain_no_runs():
        client.ensure_worker(open_queue(), same_context=True)
    return client.load_machine(open_queue())


def is_store_shared() -> bool:
    """Whether other machines may see the store: it has an address, or lies in a folder that the host has named."""
    return bool(os.environ.get(RESULTS_VARIABLE))


def list_machines() -> tuple[list[Member], str]:
    """The machines at work for who shares the store, as they said a moment ago; and why they cannot be told, if so."""
    return _list_members(open_store().folder)


def explain_no_runs() -> str:
    """Why nothing can be run on this host whoever asks, in one sentence; empty if something can."""
    if policy.load_policy().who_may_run == "nobody":
        return "Nothing is run on this host; what is stored can be looked at."
    if not client.has_torch():
        return "PyTorch is not installed here, so nothing can be run; what is stored can be looked at."
    return ""


def describe_loading() -> str:
    """What the measuring process is doing before it can measure, in a sentence; empty once it is ready."""
    serving = open_queue().worker_file.serving
    if serving is None or serving.ready:
        return ""
    last = client.load_machine(open_queue())
    took = f", which took {units.format_duration(last.loading_s)} last time" if last and last.loading_s else ""
    return f"PyTorch is being loaded{took}."


def read_overview() -> Overview:
    """One light line for every trial of this machine's store and of the gallery that ships with the app."""
    return _load_overview(_open_stores())


def list_refused_files() -> tuple[Skipped, ...]:
    """Files whose rows are listed, and turned out not to be readable when they were asked for."""
    return tuple(entry for store in _open_stores() for entry in store.list_refused())


def find_rows(*, trial_ids: Collection[str] = (), run_ids: Collection[str] = ()) -> list[Trial]:
    """The whole rows of some trials or runs, in the order of runs and their contenders; no trial twice."""
    wanted = {"trial_id": trial_ids, "run_id": run_ids}
    named = tuple((column, tuple(sorted(names))) for column, names in wanted.items() if names)
    return list(cache.read_rows(_open_stores(), named)) if named else []


def find_known_answers(
    experiments: Sequence[Experiment], machine: Machine, *, accepted: Accepted = speedup.answers_experiment
) -> dict[str, list[Trial]]:
    """Experiment id → its newest answer that was measured on this machine, by `core.results.store`."""
    names = tuple(sorted({experiment.id for experiment in experiments}))
    wanted = (("experiment_id", names), ("machine_id", (machine.local_machine.machine_id,)))
    return newest_answers(
        cache.read_rows(_open_stores(), wanted), experiments, machine.local_machine, accepted=accepted
    )


def find_newest_answers(experiments: Sequence[Experiment], machine: Machine) -> dict[str, list[Trial]]:
    """The answers of `find_known_answers`; without one, what was measured all the same, as on a busy machine."""
    return find_known_answers(experiments, machine, accepted=any_run) | find_known_answers(experiments, machine)


def list_study_lines() -> list[StudyLine]:
    """Every study that is stored here or came with the app, those with the most sizes first."""
    return _group_study_lines(_open_stores())


def find_study_line(study_id: str) -> StudyLine | None:
    """One study with all its sizes; None if no study of that name is listed."""
    return next((line for line in list_study_lines() if line.id == study_id), None)


def find_study(study_id: str) -> Study | None:
    """One study with its whole rows; None as in `find_study_line`."""
    line = find_study_line(study_id)
    return cache.read_studies(_open_stores(), [line]).get(study_id) if line else None


def find_studies(lines: Sequence[StudyLine]) -> dict[str, Study]:
    """Some studies with their whole rows, by name, read in one go; one that cannot be read is missing."""
    with contextlib.suppress(StoreError):  # one of them may be too large; it must not hide the others
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
    """The sweep that settings ask for, checked once, which takes long; raises InvalidValue if a point is impossible."""
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
    """Parameters of each point of a sweep, or of each size to choose from."""
    return tuple(point.network.parameters for point in request.points)


def find_sweep_answers(request: Sweep, machine: Machine) -> tuple[tuple[Trial, ...], bool]:
    """What this machine measured of a sweep itself, with its devices and torch of now; whether every point has rows."""
    return _find_sweep_answers(request, open_store(), machine)


@cache_answers(64)
def find_job_rows(job: Job) -> list[Trial]:
    return client.load_job_rows(open_queue(), job)


def list_exhibits() -> list[Exhibit]:
    """Every exhibit of this machine's store and of the gallery that ships with the app, the gallery's first."""
    return _load_exhibits(*_sign_exhibit_folders())[0]


def list_unread_exhibits() -> tuple[Skipped, ...]:
    """The files among them that are none, or cannot be read."""
    return _load_exhibits(*_sign_exhibit_folders())[1]


def propose_import(data: bytes, name: str) -> Proposal:
    """What would become of a foreign file in this machine's store; checked once, whoever uploads it."""
    return _propose_import(data, name, open_store())


@cache_answers(4, ttl_s=5)
def _list_members(folder: Path) -> tuple[list[Member], str]:
    from core.jobs.shared import board  # with what reaches servers, which most stores do not need

    try:
        return board.board_of(folder).members(), ""
    except StoreError as error:
        return [], str(error)


@functools.cache
def _open_queue(folder: str) -> Queue:
    return Queue(Path(folder) if folder else None)


def _open_stores() -> tuple[Store, Store]:
    """Where there are rows: those measured here, and the gallery's."""
    return open_store(), Store(GALLERY)


@cache_answers(2)
def _load_overview(stores: tuple[Store, Store]) -> Overview:
    return overview.load_overview([(stores[0], "measured here"), (stores[1], "gallery")])


@cache_answers(2)
def _group_study_lines(stores: tuple[Store, Store]) -> list[StudyLine]:
    return overview.find_study_lines(_load_overview(stores).frame)


def _sign_exhibit_folders() -> tuple[tuple[Path, ...], tuple[int, ...]]:
    stores = (GALLERY, open_store().folder)
    return stores, tuple(map(_sign_exhibits, stores))


def _sign_exhibits(store: Path) -> int:
    """Return a number that changes with any file of a store's exhibits; at an address all its files count."""
    return hash((cache.sign_folder(store / exhibits.EXHIBITS_FOLDER), is_remote(store) and cache.sign_folder(store)))


@cache_answers(4)
def _load_exhibits(stores: tuple[Path, ...], signatures: tuple[int, ...]) -> tuple[list[Exhibit], tuple[Skipped, ...]]:
    """What can be read of each, and what cannot; a folder that cannot be read hides no other."""
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
"""Seconds of a step from which its time tells how fast a machine computes."""

MAX_REMEDY_ROWS = 50
"""Rows of other settings that are read at most, the newest first."""

Rows = TypeVar("Rows")


@dataclass(frozen=True, kw_only=True)
class LocatedCrossover:
    """A crossover with what it rests on; its charts are drawn when they are first wanted, for all visitors.

    `kinds` are those of the baseline's and the challenger's device; `recorded`, whether the challenger was recorded on
    another machine.
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
        return speedup_charts.speedup_chart(self.answer, kinds=self.kinds)


@cache_answers(256)
def make_chart(draw: Callable[[Rows], dict[str, Any]], rows: Rows) -> dict[str, Any]:
    """The finished chart that `draw`, a function of `core.answer.charts`, makes of rows or of one."""
    return draw(rows)


@cache_answers(64)
def make_live_chart(job_id: str, elapsed_s: float, _progress: Progress, _is_custom: bool) -> dict[str, Any]:
    """The loss curve of a running measurement, or of one's `own` training; one for all who watch it."""
    return run_charts.live_loss_chart(_progress, kinds=_read_device_kinds(), custom=_is_custom)


def group_studies(trials: Sequence[Trial], axis: str) -> list[Study]:
    """The studies along an axis that rows hold, down to a single size."""
    return _group_studies(make_rows_key(trials), axis, trials)


@cache_answers(512)
def locate_crossover(study: Study, basis: Basis) -> LocatedCrossover:
    """The answer of a study on a cost basis; raises CrossoverError where its rows cannot be compared."""
    answer, evidence = grouping.crossover(study, basis), grouping.study_evidence(study, basis)
    return LocatedCrossover(answer=answer, evidence=tuple(evidence), kinds=_read_study_kinds(study))


@cache_answers(256)
def explain_crossover(study: Study, basis: Basis) -> tuple[str, ...]:
    """What the one crossing of a study means, if rows ask for what there is; raises as `locate_crossover` does."""
    found = locate_crossover(study, basis)
    try:
        return crossing_meaning.meaning_sentences(Point.from_row(study.runs[-1][0]), found.answer, found.evidence)
    except InvalidValue:
        return ()


@cache_answers(256)
def locate_meeting(met: Meeting, basis: Basis) -> LocatedCrossover:
    """The answer of two machines on a cost basis; raises as `locate_crossover` does."""
    answer, evidence = two_machines.meeting_crossover(met, basis), two_machines.meeting_evidence(met, basis)
    kinds = (met.measured[-1].device_kind, met.recorded[-1].device_kind)
    return LocatedCrossover(answer=answer, evidence=tuple(evidence), kinds=kinds, recorded=True)


@cache_answers(64)
def locate_best_lanes(study: Study, picks: Sequence[LanePick], basis: Basis) -> LocatedCrossover:
    """The crossover of the lanes that were picked at each size of a study; raises as `locate_crossover` does."""
    answer, evidence = best_lanes.best_lanes_crossover(study, picks, basis)
    return LocatedCrossover(answer=answer, evidence=tuple(evidence), kinds=_read_study_kinds(study))


@cache_answers(16)
def locate_timings(data: bytes, name: str, devices: tuple[str, str] | None = None) -> tuple[Timings, LocatedCrossover]:
    """Somebody's own timings, and the answer that they give; raises CrossoverError where they cannot be read."""
    read = timings_csv.read_timings(data, name, devices=devices)
    return read, LocatedCrossover(answer=timings_csv.timings_crossover(read), evidence=read.evidence)


@cache_answers(64)
def make_winners_chart(cells: Sequence[Cell], axes: tuple[str, str], study: Study) -> dict[str, Any]:
    devices = display_name(study.baseline), display_name(study.challenger)
    return speedup_charts.winners_chart(cells, axes=axes, devices=devices, kinds=_read_study_kinds(study))


@cache_answers(256)
def make_class_report(trial: Trial) -> dict[str, Any] | None:
    """The classification report of a trial by class name; None if it was not tested."""
    return accuracy.classification(trial)


def estimate_sweep_seconds(request: Sweep, machine: Machine) -> tuple[float, float]:
    """The least and the most seconds that a sweep is expected to take here."""
    return _estimate_sweep_seconds(request, _find_rates(read_overview(), machine.local_machine.machine_id))


def estimate_lanes_seconds(request: Experiment, machine: Machine) -> tuple[float, float]:
    """The least and the most seconds that measuring the lanes of one training is expected to take here."""
    return how_long_sweeps.estimate_lanes_s(request, _find_rates(read_overview(), machine.local_machine.machine_id))


def list_accelerators(exclude: str) -> tuple[Accelerator, ...]:
    """Every recorded accelerator that something was timed on, without those of the machine `exclude`."""
    return _list_accelerators(read_overview(), exclude)


def find_other_remedies(row: Trial) -> tuple[Remedy, ...]:
    """What another data path or batch size did on the machine of a row."""
    return _find_other_remedies(read_overview(), row.trial_id, len(row.block_pair), row)


@cache_answers(256)
def _estimate_sweep_seconds(request: Sweep, rates: tuple[float, ...]) -> tuple[float, float]:
    return how_long_sweeps.estimate_sweep_s(request, rates)


@cache_answers(2)
def _find_rates(overview: Overview, machine_id: str) -> tuple[float, ...]:
    """Operations a second of the slower and of the faster trainings of a machine whose steps are no overhead alone."""
    frame = overview.frame
    known = (frame["flops_per_step"] > 0) & (frame["step_s"] >= LONG_STEP_S)  # of one's own training none is known
    timed = frame.loc[known & (frame["machine_id"] == machine_id)]
    rates = timed["flops_per_step"] / timed["step_s"]
    return tuple(rates.quantile([0.1, 0.9]).tolist()) if len(rates) else ()


@cache_answers(128)
def _group_studies(key: Hashable, axis: str, _trials: Sequence[Trial]) -> list[Study]:
    return grouping.studies(_trials, axis=axis, least=1)


@cache_answers(8)
def _list_accelerators(overview: Overview, exclude: str) -> tuple[Accelerator, ...]:
    frame = overview.frame
    timed = frame.loc[(frame["device_kind"] != "cpu") & (frame["pairs"] > 0), list(recorded_machines.RECORDING_COLUMNS)]
    return recorded_machines.list_accelerators(timed.itertuples(index=False), exclude_machine=exclude)


@cache_answers(64)
def _find_other_remedies(overview: Overview, trial_id: str, blocks: int, _row: Trial) -> tuple[Remedy, ...]:
    alike = _find_similar_rows(overview, _row)
    return remedies.effects_from_other_runs(_row, find_rows(trial_ids=alike)) if alike else ()


def _find_similar_rows(overview: Overview, row: Trial) -> list[str]:
    """Names of the rows that differ from one in how data reach the device, or in the batch size."""
    table = overview.frame
    fixed = [name for name in comparable.REMEDY_COLUMNS if name not in (*comparable.DATA_COLUMNS, "batch_size")]
    masks = (table[name] == getattr(row, name) for name in (*fixed, "origin") if name in table)
    same = table.loc[functools.reduce(lambda one, other: one & other, masks) & (table["pairs"] > 0)]
    lines = [line for line in same.itertuples(index=False) if remedies.find_single_difference(row, line)]
    return [str(line.trial_id) for line in lines[:MAX_REMEDY_ROWS]]


def _read_study_kinds(study: Study) -> tuple[str, str]:
    return study.runs[0][0].device_kind, study.runs[0][1].device_kind


def _read_device_kinds() -> dict[str, str]:
    """Device → its kind, as far as the measuring process has said."""
    known = client.load_machine(open_queue())
    return {info.device: info.kind for info in known.devices} if known else {}
