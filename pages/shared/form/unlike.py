"""What an answer is of, where the settings beside it ask for something else by now."""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import streamlit as st

from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question.describe import plain as plain_number
from core.question.describe import text
from core.question.experiment import Contender, Point
from core.question.fields import FIELDS, TRAINING, short_label
from pages.shared.draw.text import plain
from pages.shared.frame import permits
from pages.shared.link import choices, links, state

CATALOGUE_SOURCE = "of the catalogue"
FILE_SOURCE = "source"
"""Title of what no control can set: the file of one's own training as it was."""

MAX_NAMED_DIFFERENCES = 3
"""Settings that differ which are named before the rest are counted."""

Difference = tuple[str, str, str]
"""Title of a setting, its value in the settings and in what is shown."""


def draw_differences(differences: Sequence[Difference], values: Mapping[str, Any]) -> None:
    """Say what differs, if anything does, and offer the values of the controls that ask for what is shown."""
    if not differences:
        return
    named = "; ".join(f"{title} {now}, not {then}" for title, now, then in differences[:MAX_NAMED_DIFFERENCES])
    more = f" and {len(differences) - MAX_NAMED_DIFFERENCES} more" if len(differences) > MAX_NAMED_DIFFERENCES else ""
    with st.container(horizontal=True, vertical_alignment="center", key="unlike"):
        st.caption(plain(f"The settings ask for something other than what is shown: {named}{more}."), width="content")
        if values and any(title != FILE_SOURCE for title, _, _ in differences):
            icon = ":material/settings_backup_restore:"
            st.button("Set them as shown", key="set_as_shown", icon=icon, on_click=state.adopt_values, args=(values,))


def adopt_view(
    view: tuple[links.Kind, str] | None,
    machine: Machine | None,
    controls: Callable[[links.Kind, str, Machine], Mapping[str, Any]],
) -> None:
    """Set the controls as what a link opens was asked for, if the link says nothing of a training.

    Args:
        view: what the page shows.
        machine: this one; nothing is set before it is known.
        controls: the values of the controls that ask for what a link opens; none where that cannot be told. What it
            raises is said where that is drawn.
    """
    if view is None or machine is None or state.has_changed() or set(state.read_arrived_settings()) - {"recorded"}:
        return
    with contextlib.suppress(CrossoverError):
        if values := controls(*view, machine):
            state.adopt_values(values)


def compare_points(request: Point, reference: Point, without: Collection[str] = ()) -> list[Difference]:
    """What differs between two trainings, without some of their fields."""
    if request.training != reference.training:
        return [("training", request.training or CATALOGUE_SOURCE, reference.training or CATALOGUE_SOURCE)]
    if request.training:
        known = {FILE_SOURCE: (request.source_hash[:6], reference.source_hash[:6])}
        known |= (
            {}
            if "size" in without
            else {"size": (choices.format_number(request.size), choices.format_number(reference.size))}
        )
        return [(title, now, then) for title, (now, then) in known.items() if now != then]
    used = {*make_point_values(request, without), *make_point_values(reference, without)}
    pairs = ((name, getattr(request, name), getattr(reference, name)) for name in TRAINING if name in used)
    return [
        (FIELDS[name].title, _spell_setting(name, now), _spell_setting(name, then))
        for name, now, then in pairs
        if now != then
    ]


def _spell_setting(name: str, value: Any) -> str:
    """The value of a setting as its control shows it."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return choices.format_number(plain_number(value)) if number else short_label(name, text(value))


def compare_contenders(request: Sequence[Contender], reference: Sequence[Contender]) -> list[Difference]:
    """The devices of two questions, where they differ."""
    now, then = (_join_names([contender.title for contender in each]) for each in (request, reference))
    return [("devices", now, then)] if now != then else []


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def make_point_values(point: Point, without: Collection[str] = ()) -> dict[str, Any]:
    """The values of the controls that ask for a training; sizes of other families and idle loaders have none."""
    if point.training:
        found = {"training": point.training, "size": point.size} if point.training in permits.trainings() else {}
        return {name: value for name, value in found.items() if name not in without}
    fields = {name: getattr(point, name) for name in TRAINING if name not in {*without} | point.idle}
    return {**fields, "training": ""}
