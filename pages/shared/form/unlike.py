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

CATALOGUE = "of the catalogue"
SOURCE = "source"
"""Title of what no control can set: the file of one's own training as it was."""

MOST_NAMED = 3
"""Settings that differ which are named before the rest are counted."""

Difference = tuple[str, str, str]
"""Title of a setting, its value in the settings and in what is shown."""


def say(found: Sequence[Difference], values: Mapping[str, Any]) -> None:
    """Say what differs, if anything does, and offer the values of the controls that ask for what is shown."""
    if not found:
        return
    named = "; ".join(f"{title} {now}, not {then}" for title, now, then in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    with st.container(horizontal=True, vertical_alignment="center", key="unlike"):
        st.caption(plain(f"The settings ask for something other than what is shown: {named}{more}."), width="content")
        if values and any(title != SOURCE for title, _, _ in found):
            icon = ":material/settings_backup_restore:"
            st.button("Set them as shown", key="set_as_shown", icon=icon, on_click=state.adopt, args=(values,))


def adopt(
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
    if view is None or machine is None or state.touched() or set(state.arrived()) - {"recorded"}:
        return
    with contextlib.suppress(CrossoverError):
        if values := controls(*view, machine):
            state.adopt(values)


def points(asked: Point, shown: Point, without: Collection[str] = ()) -> list[Difference]:
    """What differs between two trainings, without some of their fields."""
    if asked.training != shown.training:
        return [("training", asked.training or CATALOGUE, shown.training or CATALOGUE)]
    if asked.training:
        known = {SOURCE: (asked.source_hash[:6], shown.source_hash[:6])}
        known |= {} if "size" in without else {"size": (choices.grouped(asked.size), choices.grouped(shown.size))}
        return [(title, now, then) for title, (now, then) in known.items() if now != then]
    used = {*point_values(asked, without), *point_values(shown, without)}
    pairs = ((name, getattr(asked, name), getattr(shown, name)) for name in TRAINING if name in used)
    return [(FIELDS[name].title, _spoken(name, now), _spoken(name, then)) for name, now, then in pairs if now != then]


def _spoken(name: str, value: Any) -> str:
    """The value of a setting as its control shows it."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return choices.grouped(plain_number(value)) if number else short_label(name, text(value))


def contenders(asked: Sequence[Contender], shown: Sequence[Contender]) -> list[Difference]:
    """The devices of two questions, where they differ."""
    now, then = (_joined([contender.title for contender in each]) for each in (asked, shown))
    return [("devices", now, then)] if now != then else []


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def point_values(point: Point, without: Collection[str] = ()) -> dict[str, Any]:
    """The values of the controls that ask for a training; sizes of other families and idle loaders have none."""
    if point.training:
        found = {"training": point.training, "size": point.size} if point.training in permits.trainings() else {}
        return {name: value for name, value in found.items() if name not in without}
    fields = {name: getattr(point, name) for name in TRAINING if name not in {*without} | point.idle}
    return {**fields, "training": ""}
