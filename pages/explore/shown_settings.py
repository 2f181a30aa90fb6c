"""The settings of a shown result: the controls set to them, and how the controls differ from them now."""

import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import streamlit as st

from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question import models
from core.question.describe import format_value as spell
from core.question.describe import simplify_number as plain_number
from core.question.experiment import Contender, Experiment, Point
from core.question.fields import FIELDS, TRAINING, axis_title, short_label
from core.question.sweep import Sweep
from pages.shared import controls, links, queries, run_view, session, sweep_view
from pages.shared.elements import plain

CATALOGUE_SOURCE = "built-in training"
FILE_SOURCE = "source"
"""Title of a difference that no control sets: an earlier version of a custom script's file."""

MAX_NAMED_DIFFERENCES = 3
"""Number of different settings that are named; the rest are counted."""

Difference = tuple[str, str, str]
"""Title of a setting, its value in the controls, and its value in the shown result."""


def adopt_shown(view: tuple[links.Kind, str] | None, machine: Machine | None) -> None:
    """Set the controls to the question of the result that a link opens, unless the link has settings of a training.

    Args:
        view: the result that the page shows.
        machine: this machine; nothing is set until it is known.
    """
    if view is None or machine is None or session.has_changed():
        return
    if set(session.read_arrived_settings()) - {"recorded", "sizes"}:
        return
    with contextlib.suppress(CrossoverError):  # shown where the result appears
        if values := _make_shown_values(*view, machine):
            session.adopt_values(values)


def open_study(study_id: str, machine: Machine | None) -> None:
    """Open a study and set the controls as it was measured; from a callback."""
    shown = _read_study_sweep(study_id) if machine else None
    if shown and machine:
        session.adopt_values(_make_sweep_controls(shown, machine))
    session.show_view("study", study_id)


def draw_run_differences(request: Experiment, reference: Experiment, machine: Machine | None) -> None:
    """Draw the differences between the settings and the result shown below."""
    if machine is None:
        return
    values = _make_run_controls(reference, machine)
    found = [
        *_compare_points(request.point, reference.point),
        *_compare_contenders(request.contenders, reference.contenders),
    ]
    _draw_differences(found, values)


def draw_sweep_differences(request: Sweep | None, reference: Sweep | None) -> None:
    """Draw the differences between the settings and the result shown below."""
    machine = queries.read_machine() if request and reference else None
    if request and reference and machine:
        _draw_differences(_compare_sweeps(request, reference), _make_sweep_controls(reference, machine))


def _draw_differences(differences: Sequence[Difference], values: Mapping[str, Any]) -> None:
    """Draw the differences, if any, and a button that sets the controls to the shown result."""
    if not differences:
        return
    named = "; ".join(f"{title} {now}, not {then}" for title, now, then in differences[:MAX_NAMED_DIFFERENCES])
    more = f" and {len(differences) - MAX_NAMED_DIFFERENCES} more" if len(differences) > MAX_NAMED_DIFFERENCES else ""
    with st.container(horizontal=True, vertical_alignment="center", key="unlike"):
        st.caption(plain(f"The settings differ from the result shown: {named}{more}."), width="content")
        if values and any(title != FILE_SOURCE for title, _, _ in differences):
            icon = ":material/settings_backup_restore:"
            st.button(
                "Use the settings of the result",
                key="set_as_shown",
                icon=icon,
                on_click=session.adopt_values,
                args=(values,),
            )


def _make_shown_values(kind: links.Kind, name: str, machine: Machine) -> Mapping[str, Any]:
    shown = _find_question(kind, name)
    if isinstance(shown, Experiment):
        return _make_run_controls(shown, machine)
    values = _make_sweep_controls(shown, machine) if shown else {}
    return {**values, "adaptive": shown.adaptive} if shown and values and kind == "job" else values


def _find_question(kind: links.Kind, name: str) -> Experiment | Sweep | None:
    if kind == "job":
        job = queries.open_queue().job(name)
        return job.sweep or job.experiment
    if kind == "study":
        return _read_study_sweep(name)
    trials = queries.find_rows(run_ids=[name]) if kind == "run" else []
    return run_view.make_run_question(trials) if trials else None


def _read_study_sweep(study_id: str) -> Sweep | None:
    try:
        found = queries.find_study(study_id)
    except CrossoverError:
        return None
    return sweep_view.find_sweep_of_study(found) if found else None


def _make_sweep_controls(reference: Sweep, machine: Machine) -> Mapping[str, Any]:
    """Return the values of the controls that request a sweep, as far as this machine supports it."""
    first, point = reference.axes[0], reference.point
    values = controls.make_point_values(point, [axis.name for axis in reference.axes])
    if not values:
        return {}
    values |= {} if point.training else {"axis": first.name}
    values |= {
        links.RANGE.format(axis=first.name): (plain_number(first.values[0]), plain_number(first.values[-1])),
    }
    values |= {"sizes": "range", "also": [axis.name for axis in reference.axes[1:]], "lanes": []}
    values |= {links.VALUES.format(axis=axis.name): list(axis.values) for axis in reference.axes[1:]}
    if all(contender.device in machine.device_names for contender in reference.contenders):
        values |= {"contenders": [str(contender) for contender in reference.contenders], "fair": False}
    return values


def _make_run_controls(reference: Experiment, machine: Machine) -> Mapping[str, Any]:
    """Return the values of the controls that request a run, as far as this machine supports it."""
    values = controls.make_point_values(reference.point)
    values |= {"sizes": "one"} if values else {}
    if values and all(contender.device in machine.device_names for contender in reference.contenders):
        values |= {"devices": [str(contender) for contender in reference.contenders], "lanes": []}
    return values


def _compare_sweeps(request: Sweep, reference: Sweep) -> list[Difference]:
    """Return the differences other than the sizes."""
    if request.point.training != reference.point.training:
        return _compare_points(request.point, reference.point)
    if request.axes[0].name != reference.axes[0].name:
        return [("along", axis_title(request.axes[0].name), axis_title(reference.axes[0].name))]
    varied = {axis.name for axis in (*request.axes, *reference.axes)}
    without = varied | (set(models.AXES) if "parameters" in varied else set())
    return [
        *_compare_points(request.point, reference.point, without),
        *_compare_contenders(request.contenders, reference.contenders),
    ]


def _compare_points(request: Point, reference: Point, without: Collection[str] = ()) -> list[Difference]:
    """Return the differences between two trainings, without some of their fields."""
    if request.training != reference.training:
        return [("training", request.training or CATALOGUE_SOURCE, reference.training or CATALOGUE_SOURCE)]
    if request.training:
        known = {FILE_SOURCE: (request.source_hash[:6], reference.source_hash[:6])}
        known |= (
            {}
            if "size" in without
            else {"size": (session.format_number(request.size), session.format_number(reference.size))}
        )
        return [(title, now, then) for title, (now, then) in known.items() if now != then]
    used = {*controls.make_point_values(request, without), *controls.make_point_values(reference, without)}
    pairs = ((name, getattr(request, name), getattr(reference, name)) for name in TRAINING if name in used)
    return [
        (FIELDS[name].title, _spell_setting(name, now), _spell_setting(name, then))
        for name, now, then in pairs
        if now != then
    ]


def _spell_setting(name: str, value: Any) -> str:
    """Return the value of a setting as its control shows it."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return session.format_number(plain_number(value)) if number else short_label(name, spell(value))


def _compare_contenders(request: Sequence[Contender], reference: Sequence[Contender]) -> list[Difference]:
    """Return the devices of two questions if they differ."""
    now, then = (_join_names([contender.title for contender in each]) for each in (request, reference))
    return [("devices", now, then)] if now != then else []


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
