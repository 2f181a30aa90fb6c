"""What is worked out of rows once for all visitors: crossovers, reports, remedies, finished charts."""

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from core.answer import comparable
from core.answer.charts import grids, runs, speedups
from core.answer.charts import studies as study_charts
from core.answer.charts.grids import Cell
from core.answer.gallery.table import Overview
from core.answer.run import learned, remedies
from core.answer.run.remedies import Remedy
from core.answer.study import best_lanes
from core.answer.study import how_long as how_long_sweeps
from core.answer.study import meaning as crossing_meaning
from core.answer.study import study as grouping
from core.answer.study.best_lanes import Pick
from core.answer.study.brought import timings
from core.answer.study.brought.timings import Timings
from core.answer.study.machines import recorded, two_machines
from core.answer.study.machines.recorded import Accelerator
from core.answer.study.machines.two_machines import Meeting
from core.answer.study.result import Basis, Crossover, Evidence
from core.answer.study.study import Study
from core.errors import InvalidValue
from core.jobs import client
from core.jobs.machine import Machine
from core.progress import Progress
from core.question.experiment import Experiment, Point, titled
from core.question.sweep import Sweep
from core.results.schema import Trial
from pages.shared.cache import cache_answers, make_rows_key
from pages.shared.data import reads

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
        return study_charts.crossover(self.answer, self.evidence, kinds=self.kinds, recorded=self.recorded)

    @functools.cached_property
    def speedup(self) -> dict[str, Any]:
        return speedups.speedup(self.answer, kinds=self.kinds)


@cache_answers(256)
def make_chart(draw: Callable[[Rows], dict[str, Any]], rows: Rows) -> dict[str, Any]:
    """The finished chart that `draw`, a function of `core.answer.charts`, makes of rows or of one."""
    return draw(rows)


@cache_answers(64)
def make_live_chart(job_id: str, elapsed_s: float, _progress: Progress, _is_custom: bool) -> dict[str, Any]:
    """The loss curve of a running measurement, or of one's `own` training; one for all who watch it."""
    return runs.live_loss(_progress, kinds=_read_device_kinds(), own=_is_custom)


def group_studies(trials: Sequence[Trial], axis: str) -> list[Study]:
    """The studies along an axis that rows hold, down to a single size."""
    return _group_studies(make_rows_key(trials), axis, trials)


@cache_answers(512)
def locate_crossover(study: Study, basis: Basis) -> LocatedCrossover:
    """The answer of a study on a cost basis; raises CrossoverError where its rows cannot be compared."""
    answer, evidence = grouping.crossover(study, basis), grouping.evidence(study, basis)
    return LocatedCrossover(answer=answer, evidence=tuple(evidence), kinds=_read_study_kinds(study))


@cache_answers(256)
def explain_crossover(study: Study, basis: Basis) -> tuple[str, ...]:
    """What the one crossing of a study means to who asked, if rows ask for what there is; raises as `locate_crossover` does."""
    found = locate_crossover(study, basis)
    try:
        return crossing_meaning.sentences(Point.of(study.runs[-1][0]), found.answer, found.evidence)
    except InvalidValue:
        return ()


@cache_answers(256)
def locate_meeting(met: Meeting, basis: Basis) -> LocatedCrossover:
    """The answer of two machines on a cost basis; raises as `locate_crossover` does."""
    answer, evidence = two_machines.crossover(met, basis), two_machines.evidence(met, basis)
    kinds = (met.measured[-1].device_kind, met.recorded[-1].device_kind)
    return LocatedCrossover(answer=answer, evidence=tuple(evidence), kinds=kinds, recorded=True)


@cache_answers(64)
def locate_best_lanes(study: Study, picks: Sequence[Pick], basis: Basis) -> LocatedCrossover:
    """The crossover of the lanes that were picked at each size of a study; raises as `locate_crossover` does."""
    answer, evidence = best_lanes.crossover(study, picks, basis)
    return LocatedCrossover(answer=answer, evidence=tuple(evidence), kinds=_read_study_kinds(study))


@cache_answers(16)
def locate_timings(data: bytes, name: str, devices: tuple[str, str] | None = None) -> tuple[Timings, LocatedCrossover]:
    """Somebody's own timings, and the answer that they give; raises CrossoverError where they cannot be read."""
    read = timings.read(data, name, devices=devices)
    return read, LocatedCrossover(answer=timings.answer(read), evidence=read.evidence)


@cache_answers(64)
def make_winners_chart(cells: Sequence[Cell], axes: tuple[str, str], study: Study) -> dict[str, Any]:
    devices = titled(study.baseline), titled(study.challenger)
    return grids.winners(cells, axes=axes, devices=devices, kinds=_read_study_kinds(study))


@cache_answers(256)
def make_class_report(trial: Trial) -> dict[str, Any] | None:
    """The classification report of a trial by class name; None if it was not tested."""
    return learned.classification(trial)


def estimate_sweep_seconds(request: Sweep, machine: Machine) -> tuple[float, float]:
    """The least and the most seconds that a sweep is expected to take here."""
    return _estimate_sweep_seconds(request, _find_rates(reads.read_overview(), machine.here.machine_id))


def estimate_lanes_seconds(request: Experiment, machine: Machine) -> tuple[float, float]:
    """The least and the most seconds that measuring the lanes of one training is expected to take here."""
    return how_long_sweeps.lanes_seconds(request, _find_rates(reads.read_overview(), machine.here.machine_id))


def list_accelerators(exclude: str) -> tuple[Accelerator, ...]:
    """Every recorded accelerator that something was timed on, without those of the machine `exclude`."""
    return _list_accelerators(reads.read_overview(), exclude)


def find_other_remedies(row: Trial) -> tuple[Remedy, ...]:
    """What another data path or batch size did on the machine of a row."""
    return _find_other_remedies(reads.read_overview(), row.trial_id, len(row.block_pair), row)


@cache_answers(256)
def _estimate_sweep_seconds(request: Sweep, rates: tuple[float, ...]) -> tuple[float, float]:
    return how_long_sweeps.seconds(request, rates)


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
    timed = frame.loc[(frame["device_kind"] != "cpu") & (frame["pairs"] > 0), list(recorded.COLUMNS)]
    return recorded.accelerators(timed.itertuples(index=False), but=exclude)


@cache_answers(64)
def _find_other_remedies(overview: Overview, trial_id: str, blocks: int, _row: Trial) -> tuple[Remedy, ...]:
    alike = _find_similar_rows(overview, _row)
    return remedies.apart(_row, reads.find_rows(trial_ids=alike)) if alike else ()


def _find_similar_rows(overview: Overview, row: Trial) -> list[str]:
    """Names of the rows that differ from one in how data reach the device, or in the batch size."""
    table = overview.frame
    fixed = [name for name in comparable.REMEDY if name not in (*comparable.DATA, "batch_size")]
    masks = (table[name] == getattr(row, name) for name in (*fixed, "origin") if name in table)
    same = table.loc[functools.reduce(lambda one, other: one & other, masks) & (table["pairs"] > 0)]
    lines = [line for line in same.itertuples(index=False) if remedies.differs(row, line)]
    return [str(line.trial_id) for line in lines[:MAX_REMEDY_ROWS]]


def _read_study_kinds(study: Study) -> tuple[str, str]:
    return study.runs[0][0].device_kind, study.runs[0][1].device_kind


def _read_device_kinds() -> dict[str, str]:
    """Device → its kind, as far as the measuring process has said."""
    known = client.machine(reads.open_queue())
    return {info.device: info.kind for info in known.devices} if known else {}
