"""Predictions for a training from stored rows of this machine, and their drawing.

The lookup uses all settings that the sizes of a study share, so a slider gets its answer in the same run of the page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from core.answer import expectations as expecting
from core.answer import recorded_machines, speedup, wording
from core.answer.charts import run_charts
from core.answer.expectations import ExpectedSpeedup
from core.answer.gallery.overview import Overview, StudyLine
from core.answer.recorded_machines import Accelerator, Meeting
from core.answer.study import Study
from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question.experiment import PROTOCOL_VERSION, Contender, Experiment, Point
from core.question.fields import SIZE_AXES, axis_title
from core.question.sweep import Sweep
from core.results.schema import Trial
from core.results.store import LocalMachine
from pages.shared import accelerators_view, elements, queries
from pages.shared.cache import cache_answers
from pages.shared.elements import plain
from pages.shared.queries import LocatedCrossover

AXES = tuple(name for name in SIZE_AXES if name in speedup.TRAINING_COLUMNS)
"""Sizes that are settings themselves; the number of parameters follows from other settings."""

AGREEING_SETTINGS = {axis: speedup.columns_except_axis(speedup.TRAINING_COLUMNS, axis) for axis in AXES}
"""Settings that are equal at all sizes of a study over an axis."""

Key = tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """The prediction for a training, and the measured sizes that it is based on.

    Attributes:
        told: predicted figures.
        located: crossover of the measured sizes, with its charts.
        baseline: the contender whose time is divided, as written in the question.
        challenger: the contender by whose time it is divided.
    """

    told: ExpectedSpeedup
    located: LocatedCrossover
    baseline: str
    challenger: str

    @property
    def chart(self) -> dict[str, Any]:
        """The measured speedups with a marker at the size of the training."""
        return _mark_chart(self.located, self.told)


def expect_training(
    point: Point, contenders: Sequence[str], origin: LocalMachine, accelerator: Accelerator | None = None
) -> Expectation | None:
    """Return the prediction for two contenders, or for one and a recorded accelerator; None without data.

    Both contenders are of this machine. If several studies include the training at other sizes, the study with the most
    sizes counts.
    """
    found = _expect_on_machine(point, contenders, origin)
    if found is None and accelerator is not None:
        found = _expect_from_accelerator(point, contenders, origin, accelerator)
    return found


def compare_with_expectation(baseline: Trial, challenger: Trial, measured: float | None) -> str:
    """Compare the expectation from other sizes with the measurement, in a sentence; empty without an expectation."""
    if measured is None:
        return ""
    for line, size in _find_lines(
        Point.from_row(baseline), (baseline.contender, challenger.contender), _read_origin(baseline)
    ):
        told, _ = _expect_from_study(line, size, exclude=size) or (None, None)
        if told is not None and (line.baseline, line.challenger) == (baseline.contender, challenger.contender):
            return expecting.compare_with_measured(told, measured)
    return ""


def expect_size(study: Study, size: float) -> ExpectedSpeedup | None:
    """Return the expectation at another size from the measured sizes of a study; None if they are too few."""
    try:
        return _interpolate_size(queries.locate_crossover(study, "steady"), size, None)
    except CrossoverError:
        return None


def find_matching_study(request: Sweep, origin: LocalMachine) -> StudyLine | None:
    """Return the study of this machine with the settings of a sweep, at any sizes."""
    axis, pair = request.axes[0].name, frozenset(map(str, request.contenders))
    if len(request.axes) > 1 or axis not in AXES:
        return None
    ours = _index_studies(queries.read_overview()).get((axis, pair, origin.machine_id, origin.torch_version), {})
    lines = ours.get(speedup.column_values(request.point, AGREEING_SETTINGS[axis]), ())
    return max(lines, key=lambda line: len(line.sizes), default=None)


def _read_origin(row: Trial) -> LocalMachine:
    return LocalMachine(machine_id=row.machine_id, torch_version=row.torch_version)


def _expect_on_machine(point: Point, contenders: Sequence[str], origin: LocalMachine) -> Expectation | None:
    for line, size in _find_lines(point, contenders, origin):
        if found := _expect_from_study(line, size):
            told, located = found
            return Expectation(told=told, located=located, baseline=line.baseline, challenger=line.challenger)
    return None


def _expect_from_study(
    line: StudyLine, size: float, exclude: float | None = None
) -> tuple[ExpectedSpeedup, LocatedCrossover] | None:
    try:
        study = queries.find_studies([line]).get(line.id)
        located = queries.locate_crossover(study, "steady") if study else None
    except CrossoverError:
        return None
    told = _interpolate_size(located, size, exclude) if located else None
    return (told, located) if told and located else None


@cache_answers(512)
def _interpolate_size(located: LocatedCrossover, size: float, exclude: float | None) -> ExpectedSpeedup | None:
    return expecting.expect_speedup(located.evidence, size, exclude=exclude)


def _find_lines(point: Point, contenders: Sequence[str], origin: LocalMachine) -> list[tuple[StudyLine, float]]:
    """Return studies of two contenders that include a training at other sizes, with the size of the training.

    Each study compares the first contender with one of the others.
    """
    index = _index_studies(queries.read_overview())
    found: list[tuple[StudyLine, float]] = []
    for axis in AXES:
        for other in contenders[1:]:
            ours = index.get((axis, frozenset((contenders[0], other)), origin.machine_id, origin.torch_version))
            lines = ours.get(speedup.column_values(point, AGREEING_SETTINGS[axis]), ()) if ours else ()
            found += [(line, float(getattr(point, axis))) for line in lines]
    within = [(line, size) for line, size in found if line.sizes[0] <= size <= line.sizes[-1]]
    return sorted(within, key=lambda one: -len(one[0].sizes))


@cache_answers(64)
def _mark_chart(located: LocatedCrossover, expected: ExpectedSpeedup) -> dict[str, Any]:
    return run_charts.expectation_chart(located.answer, expected)


@cache_answers(2)
def _index_studies(overview: Overview) -> Mapping[Key, Mapping[Key, list[StudyLine]]]:
    """Group studies by machine, devices and axis, and by the settings that all sizes share."""
    lines = [line for line in queries.list_study_lines() if line.protocol_version == PROTOCOL_VERSION]
    places = {trial_id: place for place, trial_id in enumerate(overview.table["trial_id"].to_pylist())}
    found: dict[Key, dict[Key, list[StudyLine]]] = {}
    for axis in AXES:
        along = [line for line in lines if line.axis == axis and line.trial_ids[0] in places]
        names = ("machine_id", "torch_version", *AGREEING_SETTINGS[axis])
        chosen = pa.array([places[line.trial_ids[0]] for line in along], pa.int64())
        rows = overview.table.select(names).take(chosen)
        columns = [rows[name].to_pylist() for name in names]
        for line, machine, torch, *settings in zip(along, *columns, strict=True):
            ours = found.setdefault((axis, frozenset((line.baseline, line.challenger)), machine, torch), {})
            ours.setdefault(tuple(settings), []).append(line)
    return found


def _expect_from_accelerator(
    point: Point, contenders: Sequence[str], origin: LocalMachine, accelerator: Accelerator
) -> Expectation | None:
    for axis in AXES:
        curve = recorded_machines.find_recorded_curve(accelerator, recorded_machines.point_settings(point), axis)
        if len(curve) < expecting.LEAST_SIZES:
            continue
        meeting = _find_meeting(
            queries.read_overview(), point, contenders[0], origin, axis, tuple(each.trial_id for each in curve)
        )
        try:
            located = queries.locate_meeting(meeting, "steady") if meeting else None
        except CrossoverError:
            continue
        if located and meeting and (told := _interpolate_size(located, float(getattr(point, axis)), None)):
            other = meeting.recorded[-1].contender
            return Expectation(told=told, located=located, baseline=contenders[0], challenger=other)
    return None


@cache_answers(64)
def _find_meeting(
    overview: Overview, point: Point, contender: str, origin: LocalMachine, axis: str, recordings: tuple[str, ...]
) -> Meeting | None:
    """Return the comparison of a contender of this machine with the recordings of an accelerator over an axis."""
    wanted = {"contender": contender, "machine_id": origin.machine_id, "torch_version": origin.torch_version}
    wanted |= {name: getattr(point, name) for name in AGREEING_SETTINGS[axis]}
    lines = overview.list_lines(("trial_id",), pc.field("pairs") > 0, wanted)
    ours = queries.find_rows(trial_ids=[line.trial_id for line in lines])
    found = recorded_machines.find_meetings(ours, queries.find_rows(trial_ids=recordings), axis) if ours else []
    return found[0] if found else None


def draw_expectation(request: Experiment | None, machine: Machine | None) -> None:
    """Draw the expectation for a valid training; nothing if there is none."""
    if request is None or machine is None:
        return
    names = [str(contender) for contender in request.contenders]
    if found := expect_training(
        request.point, names, machine.local_machine, accelerators_view.find_chosen_accelerator(machine)
    ):
        show_expectation(found, ending="Run measures it.")


def show_expectation(expectation: Expectation, *, ending: str) -> None:
    """Draw a prediction: its figures, its source, and the marker."""
    told, axis = expectation.told, expectation.located.answer.axis
    base, other = (Contender.parse(text).title for text in (expectation.baseline, expectation.challenger))
    where = wording.place_on_axis(axis, wording.format_size(told.size))
    st.markdown(f"**{plain(other)} against {plain(base)}, at {where}: {told.figures}**, {told.source}. {ending}")
    along = f"Speedup against {axis_title(axis)}"
    elements.draw_chart(expectation.chart, alt=f"{along}: measured sizes, and what is expected at {where}")
