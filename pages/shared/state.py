"""The link and the session: the only place that names a key of either.

A view is in its link. The settings are bound to it by their widgets, under the names of the fields of
`core.experiment` and `core.sweep`, as the command line and the store spell them; here are the parameters that no
widget holds: `job` (a measurement that is queued, running or ended), `run` (a stored result), `study` (a stored
crossover) and `sweep` (what the store knows of the points that the settings ask for). A session remembers only what
a link cannot say, for each page apart.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlencode

import streamlit as st

from core.experiment import Experiment, Point
from core.sweep import AXES, SIZE_AXES, Sweep

POINT_FIELDS = tuple(entry.name for entry in dataclasses.fields(Point))
"""Settings of the training; each is a parameter of the link and the key of its control."""

SETTINGS = (*POINT_FIELDS, "devices", "budget_s")
"""Every setting of the Compare page."""

RANGE, VALUES = "{axis}_range", "{axis}_values"
"""Parameters of the link with the range of the axis, and the values of another one; one each, as their stops differ."""

SWEEP_LIMITS = {"sweep_budget_s": "budget_s", "point_budget_s": "point_budget_s", "pairs": "pairs"}
"""Parameter of the link → field of a sweep; the budget of a sweep is not the one of a comparison."""

SWEEP_SETTINGS = (
    *POINT_FIELDS,
    "axis",
    *(RANGE.format(axis=axis) for axis in SIZE_AXES),
    "adaptive",
    "also",
    *(VALUES.format(axis=axis) for axis in AXES),
    "contenders",
    "fair",
    *SWEEP_LIMITS,
)
"""Every setting of the Crossover page."""

TUTORIAL_SETTINGS = ("tutorial", "scale", "devices")
"""Every setting of the Tutorials page."""

LESSON_SETTINGS = ("lesson", "data", "seeds", "margin", "devices")
"""Every setting of the Lessons page."""

PREDICTION = "predict_{name}"
"""Parameter of the link with what was expected of a tutorial or a lesson."""

PageName = Literal["compare", "crossover", "tutorials", "lessons"]
Kind = Literal["job", "run", "study", "sweep"]

_SETTINGS: dict[PageName, tuple[str, ...]] = {
    "compare": SETTINGS,
    "crossover": SWEEP_SETTINGS,
    "tutorials": TUTORIAL_SETTINGS,
    "lessons": LESSON_SETTINGS,
}
_KINDS: dict[PageName, tuple[Kind, ...]] = {
    "compare": ("job", "run"),
    "crossover": ("job", "study", "sweep"),
    "tutorials": (),
    "lessons": (),
}
_PATTERNS: dict[Kind, re.Pattern[str]] = {
    "job": re.compile(r"\d{20}-[0-9a-f]{6}"),
    "run": re.compile(r"[0-9a-f]{12}"),
    "study": re.compile(r"[0-9a-f]{12}"),
    "sweep": re.compile(r"[0-9a-f]{16}"),
}
_PAGE, _ARRIVED, _TOUCHED, _VIEW, _RECALLED, _SWEEPS = "_page", "_arrived", "_touched", "_view", "_recalled", "_sweeps"
_PREDICTIONS, _OPENED = "_predictions", "_opened"


def enter(page: PageName) -> None:
    """Say which page this is; first of all on a page that has settings."""
    st.session_state[_PAGE] = page
    arrived()  # before a control is drawn and resets what it cannot show


def arrived() -> Mapping[str, tuple[str, ...]]:
    """The settings in the link that the session came to this page with, every value of each.

    Kept from the first look, because a control resets a value that it cannot show, in the link too.
    """
    key = _own(_ARRIVED)
    if key not in st.session_state:
        params = st.query_params
        st.session_state[key] = {name: tuple(params.get_all(name)) for name in _SETTINGS[_page()] if name in params}
    found: Mapping[str, tuple[str, ...]] = st.session_state[key]
    return found


def touch() -> None:
    """Note that the user has changed a setting or accepted what is shown: the link's own fault is past."""
    st.session_state[_own(_TOUCHED)] = True


def touched() -> bool:
    """Whether the user has taken the page's settings into their own hands since they came."""
    return bool(st.session_state.get(_own(_TOUCHED)))


def view() -> tuple[Kind, str] | None:
    """What the page shows beside the settings, e.g. a job or a run, from the link or as last shown.

    A parameter that is not of the form of such a name is as good as none.
    """
    for kind in _KINDS[_page()]:
        text = st.query_params.get(kind)
        if text is not None and _PATTERNS[kind].fullmatch(text):
            return kind, text
    remembered: tuple[Kind, str] | None = st.session_state.get(_own(_VIEW))
    if remembered is not None:
        show(*remembered)
    return remembered


def show(kind: Kind, name: str, *, recalled: bool = False) -> None:
    """Put what the page shows into the link, in place of what is there.

    Args:
        kind: of what.
        name: its id.
        recalled: whether the store had the run already when it was asked for.
    """
    for other in _PATTERNS:
        if other != kind and other in st.query_params:
            del st.query_params[other]
    st.query_params[kind] = name
    st.session_state[_own(_VIEW)] = (kind, name)
    if recalled:
        st.session_state[_RECALLED] = name


def show_nothing() -> None:
    """Take what the page shows out of the link."""
    for kind in _PATTERNS:
        if kind in st.query_params:
            del st.query_params[kind]
    st.session_state.pop(_own(_VIEW), None)


def recalled(name: str) -> bool:
    """Whether the run or sweep was asked for in this session and came from the store."""
    return bool(st.session_state.get(_RECALLED) == name)


def remember(sweep: Sweep) -> None:
    """Keep what was asked, so that it stays in view when its settings are changed."""
    st.session_state.setdefault(_SWEEPS, {})[sweep.id] = sweep


def remembered(sweep_id: str) -> Sweep | None:
    """A sweep that was asked for in this session."""
    found: Sweep | None = st.session_state.get(_SWEEPS, {}).get(sweep_id)
    return found


def expect(name: str, expected: str | None) -> None:
    """Keep what was expected of a tutorial or a lesson, also while its page is left."""
    if expected is not None:
        st.session_state.setdefault(_PREDICTIONS, {})[name] = expected


def expected(name: str) -> str | None:
    """What was expected of a tutorial or a lesson; None if nothing was."""
    found: str | None = st.session_state.get(_PREDICTIONS, {}).get(name)
    return found


def open_unexpected(name: str) -> None:
    """Note that what a tutorial or a lesson shows is wanted without expecting anything."""
    st.session_state.setdefault(_OPENED, set()).add(name)


def opened_unexpected(name: str) -> bool:
    """Whether it is."""
    return name in st.session_state.get(_OPENED, ())


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
    return {**point_settings(experiment.point), "devices": data["contenders"], "budget_s": _text(data["budget_s"])}


def point_settings(point: Point) -> dict[str, str]:
    """A training as parameters of a link."""
    return {name: _text(value) for name, value in dataclasses.asdict(point).items()}


def sweep_settings(sweep: Sweep) -> dict[str, str | list[str]]:
    """A sweep as parameters of a link to the Crossover page."""
    data, axis = sweep.to_json(), sweep.axes[0]
    ends = [_text(axis.values[0]), _text(axis.values[-1])]
    varied = {of.name for of in sweep.axes}
    link: dict[str, str | list[str]] = {n: v for n, v in point_settings(sweep.point).items() if n not in varied}
    link |= {"axis": axis.name, RANGE.format(axis=axis.name): ends, "adaptive": _text(sweep.adaptive)}
    if len(sweep.axes) > 1:
        link["also"] = [other.name for other in sweep.axes[1:]]
    link |= {VALUES.format(axis=of.name): [_text(value) for value in of.values] for of in sweep.axes[1:]}
    limits = {name: _text(data[field]) for name, field in SWEEP_LIMITS.items()}
    return {**link, "contenders": data["contenders"], "fair": "false", **limits}


def arrive(experiment: Experiment) -> None:
    """Let the Compare page open with an experiment's settings, as if by a link to them."""
    link = settings(experiment)
    for name in SETTINGS:
        st.session_state.pop(name, None)
    st.session_state[_own(_ARRIVED, "compare")] = {
        name: (value,) if isinstance(value, str) else tuple(value) for name, value in link.items()
    }
    st.session_state.pop(_own(_TOUCHED, "compare"), None)
    st.session_state.pop(_own(_VIEW, "compare"), None)


def address(parameters: Mapping[str, str | list[str]]) -> str:
    """The full address of the page that is open, with parameters."""
    bare = (st.context.url or "").split("?")[0]
    query = urlencode(parameters, doseq=True)
    return f"{bare}?{query}" if query else bare


def _page() -> PageName:
    page: PageName = st.session_state.get(_PAGE, "compare")
    return page


def _own(key: str, page: PageName | None = None) -> str:
    """A key of the session that each page has for itself."""
    return f"{key}_{page or _page()}"


def plain(value: float) -> float:
    """A number as controls hold and links spell it: 60.0 is 60."""
    return int(value) if value == int(value) else value


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(plain(value)) if isinstance(value, float) else str(value)
