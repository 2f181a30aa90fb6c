"""The link and the session: the only place that names a key of either.

A view is in its link. The settings are bound to it by their widgets, under the names of the fields of
`core.experiment`, as the command line and the store spell them; here are the two parameters that no widget holds:
`job` (a measurement that is queued, running or ended) and `run` (a stored result). A session remembers only what a
link cannot say.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlencode

import streamlit as st

from core.experiment import Experiment, Point

POINT_FIELDS = tuple(entry.name for entry in dataclasses.fields(Point))
"""Settings of the training; each is a parameter of the link and the key of its control."""

SETTINGS = (*POINT_FIELDS, "devices", "budget_s")
"""Every setting of the Compare page."""

Kind = Literal["job", "run"]

_PATTERNS: dict[Kind, re.Pattern[str]] = {"job": re.compile(r"\d{20}-[0-9a-f]{6}"), "run": re.compile(r"[0-9a-f]{12}")}
_ARRIVED, _TOUCHED, _VIEW, _RECALLED = "_arrived", "_touched", "_view", "_recalled"


def arrived() -> Mapping[str, tuple[str, ...]]:
    """The settings in the link that the session came with, every value of each.

    Kept from the first look, because a control resets a value that it cannot show, in the link too.
    """
    if _ARRIVED not in st.session_state:
        params = st.query_params
        st.session_state[_ARRIVED] = {name: tuple(params.get_all(name)) for name in SETTINGS if name in params}
    found: Mapping[str, tuple[str, ...]] = st.session_state[_ARRIVED]
    return found


def touch() -> None:
    """Note that the user has changed a setting or accepted what is shown: the link's own fault is past."""
    st.session_state[_TOUCHED] = True


def touched() -> bool:
    """Whether the user has taken the settings into their own hands since they came."""
    return bool(st.session_state.get(_TOUCHED))


def view() -> tuple[Kind, str] | None:
    """What the Compare page shows beside the settings: a job or a run, from the link or as last shown.

    A parameter that is not of the form of such a name is as good as none.
    """
    for kind, pattern in _PATTERNS.items():
        text = st.query_params.get(kind)
        if text is not None and pattern.fullmatch(text):
            return kind, text
    remembered: tuple[Kind, str] | None = st.session_state.get(_VIEW)
    if remembered is not None:
        show(*remembered)
    return remembered


def show(kind: Kind, name: str, *, recalled: bool = False) -> None:
    """Put a job or a run into the link, in place of the one that is there.

    Args:
        kind: which of the two.
        name: its id.
        recalled: whether the store had the run already when it was asked for.
    """
    for other in _PATTERNS:
        if other != kind and other in st.query_params:
            del st.query_params[other]
    st.query_params[kind] = name
    st.session_state[_VIEW] = (kind, name)
    if recalled:
        st.session_state[_RECALLED] = name


def recalled(run_id: str) -> bool:
    """Whether the run was asked for in this session and came from the store."""
    return bool(st.session_state.get(_RECALLED) == run_id)


def opened_run() -> str | None:
    """The run that the Gallery's link opens."""
    text = st.query_params.get("run")
    return text if text is not None and _PATTERNS["run"].fullmatch(text) else None


def open_run(run_id: str | None) -> None:
    """Put a run into the Gallery's link, or take it out."""
    if run_id is not None:
        st.query_params["run"] = run_id
    elif "run" in st.query_params:
        del st.query_params["run"]


def settings(experiment: Experiment) -> dict[str, str | list[str]]:
    """An experiment as parameters of a link to the Compare page."""
    data = experiment.to_json()
    point = {name: _text(value) for name, value in data["point"].items()}
    return {**point, "devices": data["contenders"], "budget_s": _text(data["budget_s"])}


def arrive(experiment: Experiment) -> None:
    """Let the Compare page open with an experiment's settings, as if by a link to them."""
    link = settings(experiment)
    for name in SETTINGS:
        st.session_state.pop(name, None)
    st.session_state[_ARRIVED] = {
        name: (value,) if isinstance(value, str) else tuple(value) for name, value in link.items()
    }
    st.session_state.pop(_TOUCHED, None)
    st.session_state.pop(_VIEW, None)


def address(parameters: Mapping[str, str | list[str]]) -> str:
    """The full address of the page that is open, with parameters."""
    bare = (st.context.url or "").split("?")[0]
    query = urlencode(parameters, doseq=True)
    return f"{bare}?{query}" if query else bare


def plain(value: float) -> float:
    """A number as controls hold and links spell it: 60.0 is 60."""
    return int(value) if value == int(value) else value


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(plain(value)) if isinstance(value, float) else str(value)
