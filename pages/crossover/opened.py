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
from pages.shared.draw.text import date, plain, told
from pages.shared.form import unlike
from pages.shared.job import asking
from pages.shared.link import links, others, state

AIM = "Vary one training, and find the size from which one device is faster than another."
ALONE = (
    "No accelerator is seen here, so one thread of the CPU meets all of them. That is a crossover too: sharing a step "
    "among threads costs time, as copying and launching on a GPU do, and pays off from some size on."
)


def aim(machine: Machine | None) -> None:
    """Say what the page is for, and what it finds on a machine without an accelerator."""
    alone = machine is not None and len(machine.devices) == 1 and not others.recorded()
    st.caption(f"{AIM} {ALONE}" if alone else AIM)


def unknown(sentence: str) -> None:
    """Say that a link leads to nothing here, and offer what is under way instead."""
    st.warning(sentence)
    asking.offer_others(sweeps=True)


def adopt(view: tuple[links.Kind, str] | None, machine: Machine | None) -> None:
    """Set the controls as the study or the job that a link opens was asked for, if the link says nothing of that."""
    unlike.adopt(view, machine, _of_link)


def _of_link(kind: links.Kind, name: str, machine: Machine) -> Mapping[str, Any]:
    asked = reads.queue().job(name).sweep if kind == "job" else None
    shown = asked or (_asked_by(name) if kind == "study" else None)
    values = _controls(shown, machine) if shown else {}
    return {**values, "adaptive": asked.adaptive} if asked and values else values


def select(study_id: str, machine: Machine | None) -> None:
    """Open a study and set the controls as it was measured; from a callback."""
    shown = _asked_by(study_id) if machine else None
    if shown and machine:
        state.adopt(_controls(shown, machine))
    state.show("study", study_id)


def differs(asked: Sweep | None, shown: Sweep | None) -> None:
    """Say where the settings ask for something else than what is shown below."""
    machine = reads.machine() if asked and shown else None
    if asked and shown and machine:
        unlike.say(_unlike(asked, shown), _controls(shown, machine))


@told(st.warning)
def known(asked: Sweep | None, machine: Machine | None) -> None:
    """Draw the study of this machine that measured what the settings ask for before, if there is one."""
    try:
        line = expectations.study_of(asked, machine.here) if asked and machine else None
        study = reads.study(line.id) if line else None
    except StoreError:  # which the list of recorded studies says
        return
    if study is not None:
        st.caption(plain(f"Measured here before, on {date(study.newest)}; the settings ask for the same training."))
        study_view.answer(study)


def _asked_by(study_id: str) -> Sweep | None:
    try:
        found = reads.study(study_id)
    except CrossoverError:
        return None
    return sweep_view.asked_by(found) if found else None


def _controls(shown: Sweep, machine: Machine) -> Mapping[str, Any]:
    """The values of the page's controls that ask for a sweep, as far as this machine can be asked for it."""
    first, point = shown.axes[0], shown.point
    values = unlike.point_values(point, [axis.name for axis in shown.axes])
    if not values:
        return {}
    values |= {} if point.training else {"axis": first.name}
    values |= {
        links.RANGE.format(axis=first.name): (plain_number(first.values[0]), plain_number(first.values[-1])),
    }
    values |= {"also": [axis.name for axis in shown.axes[1:]], "lanes": []}
    values |= {links.VALUES.format(axis=axis.name): list(axis.values) for axis in shown.axes[1:]}
    if all(contender.device in machine.device_names for contender in shown.contenders):
        values |= {"contenders": [str(contender) for contender in shown.contenders], "fair": False}
    return values


def _unlike(asked: Sweep, shown: Sweep) -> list[unlike.Difference]:
    """What differs but the sizes."""
    if asked.point.training != shown.point.training:
        return unlike.points(asked.point, shown.point)
    if asked.axes[0].name != shown.axes[0].name:
        return [("along", axis_title(asked.axes[0].name), axis_title(shown.axes[0].name))]
    varied = {axis.name for axis in (*asked.axes, *shown.axes)}
    without = varied | (set(models.AXES) if "parameters" in varied else set())
    return [
        *unlike.points(asked.point, shown.point, without),
        *unlike.contenders(asked.contenders, shown.contenders),
    ]
