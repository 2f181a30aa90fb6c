"""The link and the session: the only place that names a key of either.

A view is in its link. The settings are bound to it by their widgets, under the names of the fields of
`core.experiment` and `core.sweep`, as the command line and the store spell them; here are the parameters that no
widget holds: `job` (a measurement that is queued, running or ended), `run` (a stored result), `study` (a stored
crossover), `sweep` (what the store knows of the points that the settings ask for) and `shown` (a tutorial or lesson
that is looked at without expecting anything), and those of a guided start (see `guide`). `LINKS` is the table of all
that a page puts into its link; a control that is not in it cannot be drawn. A session remembers only what a link cannot
say, for each page apart.
"""

import dataclasses
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

import streamlit as st

from core import models
from core.experiment import Experiment, Point
from core.presets import PRESETS
from core.sweep import AXES, SIZE_AXES, Sweep

POINT_FIELDS = tuple(entry.name for entry in dataclasses.fields(Point))
"""Settings of the training; each is a parameter of the link and the key of its control."""

SETTINGS = (*POINT_FIELDS, "devices", "lanes", "budget_s", "recorded")
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
    "lanes",
    "fair",
    "recorded",
    "recorded_sizes",
    *SWEEP_LIMITS,
)
"""Every setting of the Crossover page."""

TUTORIAL_SETTINGS = ("tutorial", "scale", "devices")
"""Every setting of the Tutorials page."""

LESSON_SETTINGS = ("lesson", "data", "seeds", "margin", "devices")
"""Every setting of the Lessons page."""

PREDICTION = "predict_{name}"
"""Parameter of the link with what was expected of a tutorial or a lesson."""

LESSON_NAMES = ("clock", "moving", "loader", "learning", "small")

GALLERY_FILTERS: tuple[str, ...] = (
    "in_machine",
    "in_kind",
    "in_device",
    "in_dataset",
    "in_model",
    "in_protocol",
    "in_trust",
)
GALLERY_FILTERS += ("in_source", "in_outcome")
BESIDE = "beside"
"""Parameter of the Gallery's link with the studies, or the run, that are put beside the one that is open."""

GALLERY_VIEWS = (*GALLERY_FILTERS, "filters", "view", "studies_page", "trials_page", "basis", "size", BESIDE)
"""Every control of the Gallery page."""

PageName = Literal["compare", "crossover", "devices", "tutorials", "lessons", "class", "gallery"]
Kind = Literal["job", "run", "study", "sweep"]


@dataclass(frozen=True, kw_only=True)
class PageLink:
    """What a page puts into its link.

    Attributes:
        settings: controls of what is asked; a link may lock and hide them.
        views: controls of what is shown of the answer; they stay open.
        kinds: what it may show beside the settings.
    """

    settings: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()


LINKS: dict[PageName, PageLink] = {
    "compare": PageLink(settings=SETTINGS, views=("more",), kinds=("job", "run")),
    "crossover": PageLink(settings=SWEEP_SETTINGS, views=("more", "slice", "basis"), kinds=("job", "study", "sweep")),
    "devices": PageLink(),
    "tutorials": PageLink(settings=TUTORIAL_SETTINGS, views=tuple(PREDICTION.format(name=name) for name in PRESETS)),
    "lessons": PageLink(settings=LESSON_SETTINGS, views=tuple(PREDICTION.format(name=name) for name in LESSON_NAMES)),
    "class": PageLink(views=("class",)),
    "gallery": PageLink(views=GALLERY_VIEWS, kinds=("run", "study")),
}
"""By page, every parameter of its link but those of a guided start."""

GUIDE = ("lock", "hide", "text", "lesson")
"""Parameters of a guided start that stay in the link; a `preset` turns into the settings that it stands for."""

KEPT = "kept"
"""Parameter of the link with the values of controls that gave way to others, each as `name:value`."""

READABLE = ",:@"
"""Letters that a link may have as they are."""

OPEN = "-"
"""Put before the name of a setting that `lock=all` leaves open."""

_PATTERNS: dict[Kind, re.Pattern[str]] = {
    "job": re.compile(r"\d{20}-[0-9a-f]{6}"),
    "run": re.compile(r"[0-9a-f]{12}"),
    "study": re.compile(r"[0-9a-f]{12}"),
    "sweep": re.compile(r"[0-9a-f]{16}"),
}
_PAGE, _ARRIVED, _TOUCHED, _VIEW, _RECALLED, _SWEEPS = "_page", "_arrived", "_touched", "_view", "_recalled", "_sweeps"
_PREDICTIONS, _OPENED, _REPORTS = "_predictions", "_opened", "_reports"
_CLASSES, _TEACHES, _VISITOR = "_classes", "_teaches", "_visitor"
_CLASS, _ME, _CODES, _ANNOUNCED = "class", "me", "_codes", "_announced"
_GUIDE, _DRAWN, _DRAWN_BEFORE, _HIDDEN, _SEEN = "_guide", "_drawn", "_drawn_before", "_hidden", "_seen"


def enter(page: PageName) -> None:
    """Say which page this is; first of all on a page that has settings."""
    st.session_state[_PAGE] = page
    if _own(_ARRIVED) not in st.session_state:
        _unfold()
        _mend_plus()
    arrived()  # before a control is drawn and resets what it cannot show
    _keep_guide()
    st.session_state[_own(_DRAWN)] = set()
    st.session_state[_own(_SEEN)] = in_link()


def leave() -> None:
    """Keep the values of controls that gave way to others in the link; last of all, once a page is drawn.

    The browser takes a parameter out of the link as soon as its control is gone, so these values stand under a name
    of their own there, until the control is back or the link is opened anew.
    """
    drawn, before = st.session_state[_own(_DRAWN)], st.session_state.get(_own(_DRAWN_BEFORE), set())
    kept = st.session_state.setdefault(_own(_HIDDEN), {})
    kept.update({name: values for name, values in st.session_state[_own(_SEEN)].items() if name in before - drawn})
    for name in drawn & set(kept):
        del kept[name]
    st.session_state[_own(_DRAWN_BEFORE)] = set(drawn)
    folded = [f"{name}:{value}" for name, values in kept.items() for value in values]
    if folded and st.query_params.get_all(KEPT) != folded:
        st.query_params[KEPT] = folded
    elif KEPT in st.query_params and not folded:
        del st.query_params[KEPT]


def _unfold() -> None:
    """Give the values that a link kept for controls that are not drawn back to these."""
    found: dict[str, list[str]] = {}
    for name, _, value in (text.partition(":") for text in st.query_params.get_all(KEPT)):
        if name in (*LINKS[_page()].settings, *LINKS[_page()].views) and name not in st.query_params:
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        st.query_params[name] = values
    if KEPT in st.query_params:
        del st.query_params[KEPT]


def bound(name: str) -> dict[str, Any]:
    """What makes a control part of the link: its key is its parameter, and the link may lock it.

    Args:
        name: of the control, one of those that `LINKS` has for the page.
    """
    if name not in (*LINKS[_page()].settings, *LINKS[_page()].views):
        raise LookupError(f"{name} is no control of the page {_page()}: see LINKS")
    st.session_state.setdefault(_own(_DRAWN), set()).add(name)
    return {"key": name, "bind": "query-params", "on_change": touch, "disabled": locked(name)}


def bound_view(name: str) -> dict[str, Any]:
    """The same for a part of a page that opens and closes."""
    return {option: value for option, value in bound(name).items() if option in ("key", "bind")}


def locked(name: str) -> bool:
    """Whether the link fixes a setting at its value; Streamlit then takes no other from the browser."""
    names = {*guided("lock"), *guided("hide")}
    all_but = "all" in names and OPEN + name not in names
    return name in LINKS[_page()].settings and (name in names or all_but)


def drawn_settings() -> list[str]:
    """The settings that the page shows now."""
    drawn = st.session_state.get(_own(_DRAWN), set())
    return [name for name in LINKS[_page()].settings if name in drawn]


def guided(name: str) -> tuple[str, ...]:
    """The names that `lock` or `hide` of the link lists."""
    return tuple(filter(None, (part.strip() for part in guide_text(name).split(","))))


def guide_text(name: str) -> str:
    """A parameter of the guided start that the page was opened with; empty if it has none."""
    return str(st.session_state.get(_own(_GUIDE), {}).get(name, ""))


def _mend_plus() -> None:
    """Put the plus back into contenders and lanes of a link that was typed by hand, where it arrives as a space.

    Controls take their values from the link as it was when the run began, so the page is run once more.
    """
    linked = {name: st.query_params.get_all(name) for name in ("devices", "contenders", "lanes")}
    broken = {name: values for name, values in linked.items() if any(" " in value for value in values)}
    for name, values in broken.items():
        st.query_params[name] = [value.replace(" ", "+") for value in values]
    if broken:
        st.rerun()


def _keep_guide() -> None:
    """Remember the guided start of a page, and put it back into a link that lost it on the way."""
    own = [name for name in GUIDE if name not in LINKS[_page()].settings]
    found = {name: st.query_params[name] for name in own if st.query_params.get(name)}
    kept = st.session_state.setdefault(_own(_GUIDE), found)
    for name in kept:
        if name not in found:
            st.query_params[name] = kept[name]


def in_link() -> dict[str, list[str]]:
    """What the link of this page says, without anything that is not of this page."""
    return {name: st.query_params.get_all(name) for name in _names() if name in st.query_params}


def _names() -> Iterator[str]:
    """Every parameter of this page's link."""
    of = LINKS[_page()]
    yield from dict.fromkeys((*of.settings, *of.views, *of.kinds, "shown", KEPT, *GUIDE))


def arrived() -> Mapping[str, tuple[str, ...]]:
    """The settings in the link that the session came to this page with, every value of each.

    Kept from the first look, because a control resets a value that it cannot show, in the link too.
    """
    key = _own(_ARRIVED)
    if key not in st.session_state:
        named = [name for name in LINKS[_page()].settings if name in st.query_params]
        st.session_state[key] = {name: tuple(st.query_params.get_all(name)) for name in named}
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
    for kind in LINKS[_page()].kinds:
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
    """Note, in the link too, that what a tutorial or a lesson shows is wanted without expecting anything."""
    st.query_params["shown"] = name
    st.session_state.setdefault(_OPENED, set()).add(name)


def opened_unexpected(name: str) -> bool:
    """Whether it is."""
    return name in st.session_state.get(_OPENED, ()) or st.query_params.get("shown") == name


def keep_report(name: str, rests_on: object, files: Mapping[str, str]) -> None:
    """Keep the report of a tutorial or a lesson, by the ending of its file, with what it rests on."""
    st.session_state.setdefault(_REPORTS, {})[name] = (rests_on, files)


def kept_report(name: str, rests_on: object) -> Mapping[str, str]:
    """The report that was made of just this; empty if none was."""
    of, files = st.session_state.get(_REPORTS, {}).get(name, (None, {}))
    return files if of == rests_on else {}


def beside() -> list[str]:
    """The studies, or the run, that the link puts beside the one that is open; none twice."""
    names = (text for value in st.query_params.get_all(BESIDE) for text in value.split(","))
    return list(dict.fromkeys(name for name in names if _PATTERNS["study"].fullmatch(name)))


def put_beside(names: Sequence[str]) -> None:
    """Put others beside the one that is open into the link, in place of what is there."""
    if names:
        st.query_params[BESIDE] = ",".join(names)
    elif BESIDE in st.query_params:
        del st.query_params[BESIDE]


def recorded() -> str:
    """Name of the recorded accelerator that is looked at beside this machine; empty if none is."""
    return str(st.session_state.get("recorded") or "")


def lanes() -> list[str]:
    """The lanes that are chosen beside plain steps."""
    return list(st.session_state.get("lanes") or ())


def beside_machine() -> dict[str, str]:
    """The recorded accelerator as a parameter of a link; none if none is looked at."""
    return {"recorded": recorded()} if recorded() else {}


def class_code() -> str:
    """The join code in the link; empty if there is none."""
    return st.query_params.get(_CLASS, "")


def open_class(code: str) -> None:
    """Put a join code into the link."""
    if st.query_params.get(_CLASS) != code:
        st.query_params[_CLASS] = code


def class_link() -> str:
    """What the link says of who one is in its class; empty if nothing."""
    return st.query_params.get(_ME, "")


def leave_class() -> None:
    """Take the class and who one is in it out of the link."""
    for name in (_CLASS, _ME):
        if name in st.query_params:
            del st.query_params[name]


def join_class(class_id: str, student_id: str, token: str) -> None:
    """Keep who one is in a class, and the token that proves it, in the session and in one's own link."""
    st.session_state.setdefault(_CLASSES, {})[class_id] = (student_id, token)
    st.query_params[_ME] = f"{student_id}.{token}"


def joined(class_id: str) -> tuple[str, str]:
    """Who one is in a class, with the token; both empty where one has not joined it."""
    found: tuple[str, str] = st.session_state.get(_CLASSES, {}).get(class_id, ("", ""))
    return found


def teach(class_id: str) -> None:
    """Note that the teacher's code of a class was given."""
    st.session_state.setdefault(_TEACHES, set()).add(class_id)


def teaches(class_id: str) -> bool:
    """Whether it was, in this session."""
    return class_id in st.session_state.get(_TEACHES, ())


def keep_codes(code: str, secret: str) -> None:
    """Keep the codes of a class that was just made, to be read off the page once."""
    st.session_state[_CODES] = (code, secret)


def kept_secret(code: str) -> str:
    """The teacher's code of a class that was made in this session last; empty for any other class."""
    made: tuple[str, str] = st.session_state.get(_CODES, ("", ""))
    return made[1] if made[0] == code else ""


def announce(sentence: str) -> None:
    """Keep a sentence that is shown when the page is drawn next."""
    st.session_state[_ANNOUNCED] = sentence


def announced() -> str:
    """The sentence that was kept; empty the second time."""
    sentence: str = st.session_state.pop(_ANNOUNCED, "")
    return sentence


def class_member() -> tuple[str, str] | None:
    """The class that was joined first in this session, and who one is in it."""
    classes: dict[str, tuple[str, str]] = st.session_state.get(_CLASSES, {})
    return next(((class_id, student_id) for class_id, (student_id, _) in classes.items()), None)


def visitor() -> str:
    """A name of this session that nobody else knows."""
    name: str = st.session_state.setdefault(_VISITOR, secrets.token_hex(16))
    return name


def adopt(values: Mapping[str, Any]) -> None:
    """Put other values into the controls of this page, from a callback; those that the link locks stay."""
    link = dict(arrived())
    for name, value in values.items():
        if not locked(name):
            st.session_state[name] = value
            link[name] = (_text(value),)  # so that a control has a stop for it
    st.session_state[_own(_ARRIVED)] = link
    touch()


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
    start("compare", settings(experiment))


def start(page: PageName, link: Mapping[str, str | list[str]]) -> None:
    """Forget what the session knows of a page, so that it opens as if by a link."""
    for name in LINKS[page].settings:
        st.session_state.pop(name, None)
    for key in (_TOUCHED, _VIEW, _GUIDE, _HIDDEN, _DRAWN_BEFORE):
        st.session_state.pop(_own(key, page), None)
    values = {name: (value,) if isinstance(value, str) else tuple(value) for name, value in link.items()}
    st.session_state[_own(_ARRIVED, page)] = {name: values[name] for name in LINKS[page].settings if name in values}


def brief(point: Point) -> dict[str, str]:
    """A training as parameters of a link, without those that its controls say anyway."""
    link, usual = point_settings(point), {**point_settings(Point(dataset=point.dataset)), "dataset": Point().dataset}
    shaped_by = models.family(point.model).axes
    if point.model != usual["model"]:  # a size of another family may usually be another
        usual = {name: text for name, text in usual.items() if name not in shaped_by}
    useless = set(models.AXES) - set(shaped_by)
    return {name: text for name, text in link.items() if name not in useless and text != usual.get(name)}


def address(parameters: Mapping[str, str | list[str]]) -> str:
    """The full address of the page that is open, with parameters."""
    bare = (st.context.url or "").split("?")[0]
    query = urlencode(parameters, doseq=True, safe=READABLE)
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
