"""What was measured before, and the settings: a study that is opened sets them, and what differs from them is said."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question import models
from core.question.describe import plain as plain_number
from core.question.describe import text
from core.question.fields import FIELDS, LOADER_PATHS, TRAINING, axis_title
from core.question.sweep import Sweep
from pages.shared.answer import study_view, sweep_view
from pages.shared.data import expectations, reads
from pages.shared.draw.text import date, plain, told
from pages.shared.link import links, state

MOST_NAMED = 3
"""Settings that differ which are named before the rest are counted."""


def adopt(view: tuple[links.Kind, str] | None, machine: Machine | None) -> None:
    """Set the controls as a study was measured that a link opens which says nothing of them."""
    if view is None or view[0] != "study" or machine is None or state.touched() or state.arrived():
        return
    if shown := _asked_by(view[1]):
        state.adopt(_controls(shown, machine))


def select(study_id: str, machine: Machine | None) -> None:
    """Open a study and set the controls as it was measured; from a callback."""
    shown = _asked_by(study_id) if machine else None
    if shown and machine:
        state.adopt(_controls(shown, machine))
    state.show("study", study_id)


def differs(asked: Sweep | None, shown: Sweep | None) -> None:
    """Say where the settings ask for something else than what is shown below."""
    if asked is None or shown is None:
        return
    found = [f"{title} {now}, not {then}" for title, now, then in _unlike(asked, shown)]
    if not found:
        return
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    said = f"The settings ask for something else than what is shown: {'; '.join(found[:MOST_NAMED])}{more}."
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(plain(said), width="content")
        machine = reads.machine()
        if machine:
            values = _controls(shown, machine)
            st.button("Set them as shown", key="set_as_shown", type="tertiary", on_click=state.adopt, args=(values,))


@told(st.warning)
def known(asked: Sweep | None, machine: Machine | None) -> None:
    """Draw the study of this machine that measured what the settings ask for before, if there is one."""
    line = expectations.study_of(asked, machine.here) if asked and machine else None
    study = reads.study(line.id) if line else None
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
    varied = {axis.name for axis in shown.axes} | set(models.AXES) - set(models.family(point.model).axes)
    if point.data_path not in LOADER_PATHS:
        varied.add("loader_workers")
    values = {name: getattr(point, name) for name in TRAINING if name not in varied}
    values |= {
        "axis": first.name,
        links.RANGE.format(axis=first.name): (plain_number(first.values[0]), plain_number(first.values[-1])),
    }
    values |= {"also": [axis.name for axis in shown.axes[1:]], "lanes": []}
    values |= {links.VALUES.format(axis=axis.name): list(axis.values) for axis in shown.axes[1:]}
    if all(contender.device in machine.device_names for contender in shown.contenders):
        values |= {"contenders": [str(contender) for contender in shown.contenders], "fair": False}
    return values


def _unlike(asked: Sweep, shown: Sweep) -> list[tuple[str, str, str]]:
    """Title, value of the settings and value of what is shown, of all that differs but the sizes."""
    if asked.axes[0].name != shown.axes[0].name:
        return [("along", axis_title(asked.axes[0].name), axis_title(shown.axes[0].name))]
    varied = {axis.name for axis in (*asked.axes, *shown.axes)}
    names = [name for name in TRAINING if name not in varied and not ("parameters" in varied and name in models.AXES)]
    pairs = ((name, getattr(asked.point, name), getattr(shown.point, name)) for name in names)
    found = [(FIELDS[name].title, text(now), text(then)) for name, now, then in pairs if now != then]
    now, then = (" and ".join(contender.title for contender in sweep.contenders) for sweep in (asked, shown))
    return found if now == then else [*found, ("devices", now, then)]
