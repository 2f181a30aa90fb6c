"""What was measured before, and the settings: a study that is opened sets them, and what differs from them is said."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.errors import CrossoverError, StoreError
from core.jobs.machine import Machine
from core.question import models
from core.question.describe import plain as plain_number
from core.question.fields import axis_title
from core.question.sweep import Sweep
from pages.shared.answer import study_view, sweep_view
from pages.shared.data import expectations, reads
from pages.shared.draw.text import format_date, plain, show_errors
from pages.shared.form import unlike
from pages.shared.job import asking
from pages.shared.link import links, others, state

AIM = "Vary one training, and find the size from which one device is faster than another."
NO_ACCELERATOR = (
    "No accelerator is seen here, so one thread of the CPU meets all of them. That is a crossover too: sharing a step "
    "among threads costs time, as copying and launching on a GPU do, and pays off from some size on."
)


def draw_aim(machine: Machine | None) -> None:
    """Say what the page is for, and what it finds on a machine without an accelerator."""
    alone = machine is not None and len(machine.devices) == 1 and not others.read_accelerator()
    st.caption(f"{AIM} {NO_ACCELERATOR}" if alone else AIM)


def draw_unknown_link(sentence: str) -> None:
    """Say that a link leads to nothing here, and offer what is under way instead."""
    st.warning(sentence)
    asking.offer_running_jobs(sweeps=True)


def adopt_sweep_view(view: tuple[links.Kind, str] | None, machine: Machine | None) -> None:
    """Set the controls as the study or the job that a link opens was asked for, if the link says nothing of that."""
    unlike.adopt_view(view, machine, _make_sweep_values)


def _make_sweep_values(kind: links.Kind, name: str, machine: Machine) -> Mapping[str, Any]:
    asked = reads.open_queue().job(name).sweep if kind == "job" else None
    shown = asked or (_read_study_sweep(name) if kind == "study" else None)
    values = _make_sweep_controls(shown, machine) if shown else {}
    return {**values, "adaptive": asked.adaptive} if asked and values else values


def open_study(study_id: str, machine: Machine | None) -> None:
    """Open a study and set the controls as it was measured; from a callback."""
    shown = _read_study_sweep(study_id) if machine else None
    if shown and machine:
        state.adopt_values(_make_sweep_controls(shown, machine))
    state.show_view("study", study_id)


def draw_sweep_differences(request: Sweep | None, reference: Sweep | None) -> None:
    """Say where the settings ask for something else than what is shown below."""
    machine = reads.read_machine() if request and reference else None
    if request and reference and machine:
        unlike.draw_differences(_compare_sweeps(request, reference), _make_sweep_controls(reference, machine))


@show_errors(st.warning)
def draw_known_study(request: Sweep | None, machine: Machine | None) -> None:
    """Draw the study of this machine that measured what the settings ask for before, if there is one."""
    try:
        line = expectations.find_matching_study(request, machine.here) if request and machine else None
        study = reads.find_study(line.id) if line else None
    except StoreError:  # which the list of recorded studies says
        return
    if study is not None:
        st.caption(
            plain(f"Measured here before, on {format_date(study.newest)}; the settings ask for the same training.")
        )
        study_view.draw_crossover_answer(study)


def _read_study_sweep(study_id: str) -> Sweep | None:
    try:
        found = reads.find_study(study_id)
    except CrossoverError:
        return None
    return sweep_view.find_sweep_of_study(found) if found else None


def _make_sweep_controls(reference: Sweep, machine: Machine) -> Mapping[str, Any]:
    """The values of the page's controls that ask for a sweep, as far as this machine can be asked for it."""
    first, point = reference.axes[0], reference.point
    values = unlike.make_point_values(point, [axis.name for axis in reference.axes])
    if not values:
        return {}
    values |= {} if point.training else {"axis": first.name}
    values |= {
        links.RANGE.format(axis=first.name): (plain_number(first.values[0]), plain_number(first.values[-1])),
    }
    values |= {"also": [axis.name for axis in reference.axes[1:]], "lanes": []}
    values |= {links.VALUES.format(axis=axis.name): list(axis.values) for axis in reference.axes[1:]}
    if all(contender.device in machine.device_names for contender in reference.contenders):
        values |= {"contenders": [str(contender) for contender in reference.contenders], "fair": False}
    return values


def _compare_sweeps(request: Sweep, reference: Sweep) -> list[unlike.Difference]:
    """What differs but the sizes."""
    if request.point.training != reference.point.training:
        return unlike.compare_points(request.point, reference.point)
    if request.axes[0].name != reference.axes[0].name:
        return [("along", axis_title(request.axes[0].name), axis_title(reference.axes[0].name))]
    varied = {axis.name for axis in (*request.axes, *reference.axes)}
    without = varied | (set(models.AXES) if "parameters" in varied else set())
    return [
        *unlike.compare_points(request.point, reference.point, without),
        *unlike.compare_contenders(request.contenders, reference.contenders),
    ]
