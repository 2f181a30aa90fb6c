"""What a session remembers and the link of a page says; the only place that reads or writes either.

A view is in its link, whose parameters are named in `pages.shared.links`. Most are bound by their widgets; here are
those that no widget holds: `job` (a measurement that is queued, running or ended), `run` (a stored result), `study` (a
stored crossover), `sweep` (what the store knows of the points that the settings ask for) and `shown` (a tutorial or
lesson that is looked at without expecting anything), and those of a guided start (see `guide`). A session remembers
only what a link cannot say, for each page apart.

A control that Streamlit binds writes what it shows into the link; so controls whose options have names for people are
kept beside it (`bind_choice`): a link that has changed sets the control, and whatever else sets the control sets the
link.
"""

import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlencode

import streamlit as st
from streamlit.errors import StreamlitAPIException

from core.question import describe
from core.question.sweep import Sweep
from pages.shared import links

REPORTS = "_reports"
"""Where the session has the reports that were made."""


def note_recalled(name: str) -> None:
    """Note that a run or a sweep was asked for, and that the store had it already."""
    st.session_state["_recalled"] = name


def is_recalled(name: str) -> bool:
    """Whether the run or sweep was asked for in this session and came from the store."""
    return bool(st.session_state.get("_recalled") == name)


def read_asked_sweeps() -> dict[str, Sweep]:
    """What was asked in this session, by id, so that it stays in view when its settings are changed."""
    return cast(dict[str, Sweep], st.session_state.setdefault("_sweeps", {}))


def read_chosen_lanes() -> list[str]:
    """The lanes that are chosen on the page, before its control is drawn."""
    return list(st.session_state.get("lanes") or ())


def note_press(button: str) -> None:
    """Note that a button was pressed, whose question is asked once what it needs is known."""
    st.session_state["_pressed"] = button


def is_pressed(button: str) -> bool:
    """Whether a button was pressed whose question has not been asked yet."""
    return bool(st.session_state.get("_pressed") == button)


def clear_press() -> None:
    """Forget that a button was pressed."""
    st.session_state.pop("_pressed", None)


def read_expectations() -> dict[str, str]:
    """What was expected of tutorials and lessons, also while their pages are left."""
    return cast(dict[str, str], st.session_state.setdefault("_predictions", {}))


def skip_expectation(name: str) -> None:
    """Note, in the link too, that what a tutorial or a lesson shows is wanted without expecting anything."""
    st.query_params["shown"] = name
    st.session_state.setdefault("_opened", set()).add(name)


def has_skipped_expectation(name: str) -> bool:
    """Whether what a tutorial or a lesson shows is wanted without expecting anything."""
    return name in st.session_state.get("_opened", ()) or st.query_params.get("shown") == name


def read_reports() -> dict[str, tuple[object, Mapping[str, str]]]:
    """Of each tutorial or lesson what its report rests on, and the report by the ending of its file."""
    return cast(dict[str, tuple[object, Mapping[str, str]]], st.session_state.setdefault(REPORTS, {}))


def name_visitor() -> str:
    """A name of this session that nobody else knows."""
    name: str = st.session_state.setdefault("_visitor", secrets.token_hex(16))
    return name


def restore_value(name: str, value: str) -> None:
    """Let a control that the page has not drawn yet stand at a value, unless the session or the link has another.

    A value that is given as the usual one instead would leave the link.
    """
    if name not in st.session_state and name not in st.query_params:
        st.session_state[name] = value


def read_value(name: str) -> Any:
    """What a control of this page stands at."""
    return st.session_state[name]


def read_selected_rows(table: str) -> Sequence[int]:
    """Places of the lines that are selected in a table."""
    chosen: Sequence[int] = st.session_state[table]["selection"]["rows"]
    return chosen


def set_values(values: Mapping[str, Any]) -> None:
    """Let controls stand at values, before they are drawn or from a callback."""
    st.session_state.update(values)


_CURRENT, _PAGES = "_here", "_pages"

_entered_page: ContextVar["_Page | None"] = ContextVar("_entered", default=None)
"""The page that this thread entered last, which is one session's; of a session one asks slowly."""

Values = dict[str, list[str]]
"""Parameters of a link, each with all that it says."""

Spoken = tuple[list[str], Any]
"""What the link has of a control that shows names for people, and what stands there usually, which it has not."""


@dataclass(kw_only=True)
class _Page:
    """What a session remembers of one of its pages.

    Attributes:
        arrived: the settings in the link that the session came with; None before the first look.
        touched: whether the user has taken the settings into their own hands since.
        blank: whether the page was opened by a link that says nothing, and nothing was set since.
        view: what was shown beside the settings last.
        linked: whether the link said in the last run what is shown.
        came: whether this is the first run since the session came to the page, again or for the first time.
        said: of each control that shows names for people, what the link has.
        guide: the guided start that the page was opened with; None before the first look.
        before: controls of the run before, as `drawn` has those of this one.
        seen: what the link said when the run began.
        hidden: what controls stood at that gave way to others.
        cut: why a part of the link was not read, in one sentence.
        faults: what the link says that means nothing here, a sentence each.
    """

    name: links.PageName
    arrived: dict[str, tuple[str, ...]] | None = None
    touched: bool = False
    blank: bool = False
    view: tuple[links.Kind, str] | None = None
    linked: bool = False
    came: bool = False
    said: dict[str, Spoken] = field(default_factory=dict)
    guide: dict[str, str] | None = None
    locked: frozenset[str] = frozenset()
    drawn: set[str] = field(default_factory=set)
    before: set[str] = field(default_factory=set)
    seen: Values = field(default_factory=dict)
    hidden: Values = field(default_factory=dict)
    cut: str = ""
    faults: tuple[str, ...] = ()

    @property
    def link(self) -> links.PageLink:
        return links.PAGES[self.name]


def shorten_link(page: links.PageName) -> None:
    """Take out of a link what is beyond all that links of ours say, before anything reads it, and run the page anew.

    Only when the page is looked at first: from then on its controls hold what the link says.
    """
    here = _find_page(page)
    link = {name: st.query_params.get_all(name) for name in st.query_params} if here.arrived is None else {}
    beyond = links.find_excess(link)
    if not beyond:
        return
    what = "" if len(beyond) == len(link) else f" about {links.shorten_list(sorted(beyond))}"
    here.cut = f"This link says more{what} than a link of this app can, so the page opened as if it said nothing{what}."
    st.query_params.from_dict({name: values for name, values in link.items() if name not in beyond})
    st.rerun()


def explain_unread_parts() -> tuple[str, ...]:
    """Why parts of the link were not read, a sentence each; none where all were, and once settings change."""
    here = _find_current_page()
    return () if here.touched else (*filter(None, [here.cut]), *here.faults)


def enter_page(page: links.PageName) -> None:
    """Say which page this is, before anything of it is drawn."""
    before, here = st.session_state.get(_CURRENT), _find_page(page)
    st.session_state[_CURRENT] = here
    _entered_page.set(here)
    here.came = before is not here
    if here.came:
        here.blank = not read_link()
    _follow_back(here)
    if here.arrived is None:
        _restore_hidden(here)
        _mend_plus()
        here.faults = tuple(links.list_link_faults(page, read_link()))
    read_arrived_settings()  # before a control is drawn and resets what it cannot show
    _keep_guide(here)
    here.drawn, here.seen = set(), read_link()


def _follow_back(here: _Page) -> None:
    """Forget what was shown where the browser went back to a link of this page without it; a menu's link has none."""
    linked = any(kind in st.query_params for kind in here.link.kinds)
    if here.linked and not linked and not here.came:
        here.view = None
    here.linked = linked


def leave_page() -> None:
    """Keep the values of controls that gave way to others in the link; last of all, once a page is drawn.

    The browser takes a parameter out of the link as soon as its control is gone, so these values stand under a name
    of their own there, until the control is back or the link is opened anew.
    """
    here = _find_current_page()
    for name in set(here.said) - here.drawn:
        _remove_parameters(name)
        del here.said[name]
    here.hidden.update({name: values for name, values in here.seen.items() if name in here.before - here.drawn})
    for name in here.drawn & set(here.hidden):
        del here.hidden[name]
    here.before = here.drawn
    folded = [f"{name}:{value}" for name, values in here.hidden.items() for value in values]
    write_link(links.KEPT_VALUES, folded)


def _restore_hidden(here: _Page) -> None:
    """Give the values that a link kept for controls that are not drawn back to these."""
    found: dict[str, list[str]] = {}
    for name, _, value in (text.partition(":") for text in st.query_params.get_all(links.KEPT_VALUES)):
        if name in here.link.controls and name not in st.query_params:
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        st.query_params[name] = values
    _remove_parameters(links.KEPT_VALUES)


def bind_control(name: str) -> dict[str, Any]:
    """What makes a control, one of `links.PAGES`, part of the link: its key is its parameter; the link may lock it."""
    here = _find_current_page()
    if name not in here.link.controls:
        raise LookupError(f"{name} is no control of the page {here.name}: see `links.PAGES`")
    here.drawn.add(name)
    return {"key": name, "bind": "query-params", "on_change": note_change, "disabled": name in here.locked}


def bind_view(name: str) -> dict[str, Any]:
    """What makes a part of a page that opens and closes part of the link, as `bind_control` does a control."""
    return {option: value for option, value in bind_control(name).items() if option in ("key", "bind")}


def list_drawn_settings() -> list[str]:
    """The settings that the page shows now."""
    here = _find_current_page()
    return [name for name in here.link.settings if name in here.drawn]


def list_guided(name: str) -> tuple[str, ...]:
    """The names that `lock` or `hide` of the link lists."""
    return tuple(filter(None, (part.strip() for part in read_guide(name).split(","))))


def read_guide(name: str) -> str:
    """A parameter of the guided start that the page was opened with; empty if it has none."""
    return (_find_current_page().guide or {}).get(name, "")


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


def _keep_guide(here: _Page) -> None:
    """Remember the guided start of a page and what it locks, and put it back into a link that lost it on the way."""
    found = {name: st.query_params[name] for name in here.link.guide if st.query_params.get(name)}
    if here.guide is None:
        here.guide = found
        names = {*list_guided("lock"), *list_guided("hide")}
        shut = {name for name in here.link.settings if "all" in names and links.UNLOCK_PREFIX + name not in names}
        here.locked = frozenset(shut | (names & {*here.link.settings}))
    for name in here.guide:
        if name not in found:
            st.query_params[name] = here.guide[name]


def read_link() -> Values:
    """What the link of this page says, without anything that is not of this page."""
    present = set(st.query_params)
    return {name: st.query_params.get_all(name) for name in _find_current_page().link.parameters if name in present}


def read_arrived_settings() -> Mapping[str, tuple[str, ...]]:
    """The settings in the link that the session came to this page with, every value of each.

    Kept from the first look, because a control resets a value that it cannot show, in the link too.
    """
    here = _find_current_page()
    if here.arrived is None:
        named = [name for name in here.link.settings if name in st.query_params]
        here.arrived = {name: tuple(st.query_params.get_all(name)) for name in named}
    return here.arrived


def write_link(name: str, texts: Sequence[str]) -> None:
    """Let the link have these texts as a parameter, and nothing of it where there are none."""
    if not texts:
        _remove_parameters(name)
    elif st.query_params.get_all(name) != list(texts):
        st.query_params[name] = list(texts)


def read_spoken(name: str) -> Spoken | None:
    """What `write_spoken` kept of a control of this page; None before its first time, and once it was not drawn."""
    return _find_current_page().said.get(name)


def write_spoken(name: str, spoken: Spoken, linked: Sequence[str]) -> None:
    """Let the link, which has `linked`, say what a control of `pages.shared.session` stands at; and keep that."""
    _find_current_page().said[name] = spoken
    if spoken[0] != linked:
        write_link(name, spoken[0])


def has_just_arrived() -> bool:
    """Whether this is the first run since the session came to this page, again or for the first time."""
    return _find_current_page().came


def note_change() -> None:
    """Note that the user has changed a setting or accepted what is shown: the link's own fault is past."""
    here = _find_current_page()
    here.touched, here.blank = True, False


def has_changed() -> bool:
    """Whether the user has taken the page's settings into their own hands since they came."""
    return _find_current_page().touched


def is_blank() -> bool:
    """Whether the page was opened by a link that says nothing, and nothing was set since."""
    return _find_current_page().blank


def set_initial_values(values: Mapping[str, Any]) -> None:
    """Let the controls of a blank page begin with other values than usual, before any of them is drawn."""
    _find_current_page().blank = False
    st.session_state.update(values)


def read_view() -> tuple[links.Kind, str] | None:
    """What the page shows beside the settings, e.g. a job or a run, from the link or as last shown.

    A parameter that is not of the form of such a name is as good as none.
    """
    here = _find_current_page()
    for kind in here.link.kinds:
        text = st.query_params.get(kind)
        if text is not None and links.PATTERNS[kind].fullmatch(text):
            return kind, text
    if here.view is not None:
        show_view(*here.view)
    return here.view


def show_view(kind: links.Kind, name: str, *, recalled: bool = False) -> None:
    """Put what the page shows into the link, in place of what is there; `recalled` if the store had it when asked."""
    _remove_parameters(*(other for other in links.PATTERNS if other != kind))
    st.query_params[kind] = name
    _find_current_page().view = (kind, name)
    if recalled:
        note_recalled(name)


def clear_view() -> None:
    _remove_parameters(*links.PATTERNS)
    _find_current_page().view = None


def adopt_values(values: Mapping[str, Any]) -> None:
    """Put other values into the controls of this page, before they are drawn; those that the link locks stay."""
    here, link = _find_current_page(), dict(read_arrived_settings())
    for name, value in values.items():
        if name not in here.locked:
            st.session_state[name] = value
            several = value if isinstance(value, list | tuple) else (value,)
            link[name] = tuple(map(describe.format_value, several))  # so that a control has a stop for it
            if isinstance(value, bool):  # a switch, all of which are usually on, says in the link only what is pressed
                with contextlib.suppress(StreamlitAPIException):  # it was drawn before, and will say so itself
                    write_link(name, () if value else (describe.format_value(value),))
    here.arrived = link
    note_change()


def restart_page(page: links.PageName, link: Mapping[str, str | list[str]]) -> None:
    """Forget what the session knows of a page, so that it opens as if by a link."""
    for name in links.PAGES[page].settings:
        st.session_state.pop(name, None)
    values = {name: (value,) if isinstance(value, str) else tuple(value) for name, value in link.items()}
    known = {name: values[name] for name in links.PAGES[page].settings if name in values}
    _read_session_pages()[page] = _Page(name=page, arrived=known)


def make_address(parameters: Mapping[str, str | list[str]]) -> str:
    """The full address of the page that is open, with parameters."""
    bare = (st.context.url or "").split("?")[0]
    query = urlencode(parameters, doseq=True, safe=links.READABLE)
    return f"{bare}?{query}" if query else bare


def _remove_parameters(*names: str) -> None:
    for name in {*names} & {*st.query_params}:
        del st.query_params[name]


def _find_current_page() -> _Page:
    return _entered_page.get() or st.session_state.get(_CURRENT) or _find_page("compare")


def _find_page(page: links.PageName) -> _Page:
    return _read_session_pages().setdefault(page, _Page(name=page))


def _read_session_pages() -> dict[links.PageName, _Page]:
    return cast(dict[links.PageName, _Page], st.session_state.setdefault(_PAGES, {}))


_NOTHING: Any = object()
"""What a control stands at before it is drawn for the first time."""


def bind_choice(
    name: str, options: Sequence[Any], usual: Any, as_label: Callable[[Any], str], read: Callable[[str], Any] = str
) -> dict[str, Any]:
    """What makes such a control part of the link, as `state.bind_control` does others.

    Args:
        name: one of `links.PAGES`.
        options: what may be chosen, as rows, columns and commands have it.
        usual: what stands there unless the link says otherwise, and then is not in it: an option, a list of them, or a
            tuple with the ends of a range.
        as_label: the name for people of an option.
        read: what a text of the link stands for; anything that is no option where it stands for none.
    """
    unbound = {option: value for option, value in bind_control(name).items() if option != "bind"}
    kept, linked = st.session_state.get(name, _NOTHING), st.query_params.get_all(name)
    said, before = read_spoken(name) or ([], usual)
    if unbound["disabled"] or (linked != said and (linked or not has_just_arrived())):
        stands = _keep_possible(options, [read(text) for text in linked if text], usual, is_given=bool(linked))
    elif kept is _NOTHING or kept == before:
        stands = usual
    else:
        stands = _keep_possible(options, _list_values(kept), usual, is_given=True)
    if kept is _NOTHING or stands != kept:
        st.session_state[name] = stands
    spoken = [] if stands == usual else list(map(describe.format_value, _list_values(stands))) or [""]
    write_spoken(name, (spoken, usual), linked)
    return {**unbound, "format_func": as_label, "persist_state": "session"}


def bind_numbers(name: str, options: Sequence[float], usual: Any) -> dict[str, Any]:
    """The same for numbers, which people see with separators: 1,257 on a slider is 1257 in the link."""
    return bind_choice(name, options, usual, format_number, _parse_linked_number)


def format_number(value: float) -> str:
    """A number of a control, as tables and sentences write it."""
    return f"{value:,}"


def read_choices(name: str) -> list[str]:
    """What the link or else the session has of a control of several, whether it can be chosen here or not."""
    return st.query_params.get_all(name) or list(st.session_state.get(name) or ())


def _parse_linked_number(text: str) -> float | str:
    """A number that a link spells; the text itself where it spells none."""
    try:
        return describe.simplify_number(float(text))
    except (ValueError, OverflowError):
        return text


def _list_values(value: Any) -> list[Any]:
    """All that a control stands at."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _keep_possible(options: Sequence[Any], values: Sequence[Any], usual: Any, *, is_given: bool) -> Any:
    """Those of the values that may be chosen, in the form of the usual one, which stands where none may."""
    possible = [value for value in values if value in options]
    if isinstance(usual, tuple):
        return tuple(sorted(possible)) if len(possible) == len(usual) else usual
    if isinstance(usual, list):
        return possible if is_given and (possible or not values) else usual
    return possible[-1] if possible else usual


def read_compared(parameter: str = links.BESIDE) -> list[str]:
    """The studies, or the run, that the link puts beside the one that is open; none twice."""
    said = (text for value in st.query_params.get_all(parameter) for text in value.split(","))
    return list(dict.fromkeys(name for name in said if links.PATTERNS["study"].fullmatch(name)))


def set_compared(chosen: Sequence[str], parameter: str = links.BESIDE) -> None:
    """Put others beside the one that is open into the link, in place of what is there."""
    write_link(parameter, [",".join(chosen)] if chosen else [])


def read_accelerator() -> str:
    """Name of the recorded accelerator that is looked at beside this machine; empty if none is.

    None ever did a training of one's own; while one is chosen the name is kept, and means nothing.
    """
    return "" if st.session_state.get("training") else str(st.session_state.get("recorded") or "")


def make_accelerator_link() -> dict[str, str]:
    """The recorded accelerator as a parameter of a link; none if none is looked at."""
    return {"recorded": read_accelerator()} if read_accelerator() else {}
