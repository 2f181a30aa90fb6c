"""The state of a session and the link of a page; the only module that reads or writes either.

The link describes a view, with parameters from `pages.shared.links`. Widgets bind most of them. This module binds the
others:

- `job`: a queued, running or ended measurement.
- `run`: a stored result.
- `study`: a stored crossover.
- `sweep`: the store's rows for the points of the settings.
- `shown`: a tutorial or lesson without a prediction.
- The parameters of a guided start (see `guide`).

A session stores only facts that a link cannot contain, separately for each page.

A control that Streamlit binds writes its shown text into the link. So controls whose options have readable names are
bound by `bind_choice` instead: a change of the link sets the control, and any other change of the control sets the
link.
"""

import functools
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlencode

import streamlit as st

from core.question import describe
from core.question.sweep import Sweep
from pages.shared import links

REPORTS = "_reports"
"""Key of the session's reports."""


def note_recalled(name: str) -> None:
    """Note that a run or a sweep was requested and found in the store."""
    st.session_state["_recalled"] = name


def is_recalled(name: str) -> bool:
    """Return whether this session requested the run or sweep and the store answered it."""
    return bool(st.session_state.get("_recalled") == name)


def read_asked_sweeps() -> dict[str, Sweep]:
    """Return the sweeps that this session requested by id, so that they stay in view when settings change."""
    return cast(dict[str, Sweep], st.session_state.setdefault("_sweeps", {}))


def read_chosen_lanes() -> list[str]:
    """Return the chosen variants, before their control appears."""
    return list(st.session_state.get("lanes") or ())


def note_press(button: str) -> None:
    """Note a pressed button, whose question is submitted once its inputs are known."""
    st.session_state["_pressed"] = button


def is_pressed(button: str) -> bool:
    """Return whether a pressed button's question is not submitted yet."""
    return bool(st.session_state.get("_pressed") == button)


def clear_press() -> None:
    """Forget that a button was pressed."""
    st.session_state.pop("_pressed", None)


def read_expectations() -> dict[str, str]:
    """Return the predictions for tutorials and lessons, which outlive a change of page."""
    return cast(dict[str, str], st.session_state.setdefault("_predictions", {}))


def skip_expectation(name: str) -> None:
    """Note in the session and the link that a tutorial or a lesson is shown without a prediction."""
    st.query_params["shown"] = name
    st.session_state.setdefault("_opened", set()).add(name)


def has_skipped_expectation(name: str) -> bool:
    """Return whether a tutorial or a lesson is shown without a prediction."""
    return name in st.session_state.get("_opened", ()) or st.query_params.get("shown") == name


def read_reports() -> dict[str, tuple[object, Mapping[str, str]]]:
    """Return, for each tutorial or lesson, the basis of its report, and the report by file extension."""
    return cast(dict[str, tuple[object, Mapping[str, str]]], st.session_state.setdefault(REPORTS, {}))


def name_visitor() -> str:
    """Return a secret name of this session."""
    name: str = st.session_state.setdefault("_visitor", secrets.token_hex(16))
    return name


def restore_value(name: str, value: str) -> None:
    """Set a control that the page has not shown yet, unless the session or the link has a value.

    Passing the value as the default instead would remove it from the link.
    """
    if name not in st.session_state and name not in st.query_params:
        st.session_state[name] = value


def read_value(name: str) -> Any:
    """Return the value of a control of this page."""
    return st.session_state[name]


def find_value(name: str) -> str:
    """Return the value of a text control; empty if it has never been shown."""
    return str(st.session_state.get(name) or "")


def read_selected_rows(table: str) -> Sequence[int]:
    """Return the indices of the selected lines of a table."""
    chosen: Sequence[int] = st.session_state[table]["selection"]["rows"]
    return chosen


def set_values(values: Mapping[str, Any]) -> None:
    """Set the values of controls, before they appear or from a callback."""
    st.session_state.update(values)


_CURRENT, _PAGES = "_here", "_pages"

_entered_page: ContextVar["_Page | None"] = ContextVar("_entered", default=None)
"""The page that this thread entered last, which belongs to one session; reading the session is slow."""

Values = dict[str, list[str]]
"""Parameters of a link, each with all its values."""

Spoken = tuple[list[str], Any]
"""The link value of a control with labels, and its default, which the link leaves out."""


@dataclass(kw_only=True)
class _Page:
    """The state of one page in a session.

    Attributes:
        arrived: the settings in the first link of the session; None before the first look.
        touched: whether the user has changed the settings since.
        chosen: settings that the user or the link set, which the link contains even if they are defaults.
        blank: whether the page was opened by an empty link, and nothing was set since.
        view: the result that was last shown with the settings.
        linked: whether the link of the last run contained the shown result.
        came: whether this is the first run since the session came to the page, again or for the first time.
        said: link value and default of each control with readable names.
        guide: the guided start that the page was opened with; None before the first look.
        before: controls of the previous run; `drawn` has the controls of this run.
        seen: contents of the link when the run began.
        hidden: values of controls that were replaced by others.
        cut: why a part of the link was not read, in one sentence.
        faults: values of the link that have no meaning here, a sentence each.
    """

    name: links.PageName
    arrived: dict[str, tuple[str, ...]] | None = None
    touched: bool = False
    chosen: set[str] = field(default_factory=set)
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
    """Remove from a link the values that exceed its limits, before any code reads them, and rerun the page.

    This happens only at the first look at the page: from then on its controls have the values of the link.
    """
    here = _find_page(page)
    link = {name: st.query_params.get_all(name) for name in st.query_params} if here.arrived is None else {}
    beyond = links.find_excess(link)
    if not beyond:
        return
    what = "" if len(beyond) == len(link) else f" about {links.shorten_list(sorted(beyond))}"
    here.cut = f"This link has too many values{what}. The page ignored them."
    st.query_params.from_dict({name: values for name, values in link.items() if name not in beyond})
    st.rerun()


def explain_unread_parts() -> tuple[str, ...]:
    """Return why parts of the link were not read, a sentence each; empty if all were, or once settings change."""
    here = _find_current_page()
    return () if here.touched else (*filter(None, [here.cut]), *here.faults)


def enter_page(page: links.PageName) -> None:
    """Set the current page, before any part of it appears."""
    before, here = st.session_state.get(_CURRENT), _find_page(page)
    st.session_state[_CURRENT] = here
    _entered_page.set(here)
    here.came = before is not here
    if here.came:
        here.blank = here.arrived is None and not read_link()
    _follow_back(here)
    if here.arrived is None:
        _restore_hidden(here)
        _mend_plus()
        here.faults = tuple(links.list_link_faults(page, read_link()))
    read_arrived_settings()  # first, because a control resets values that it cannot show
    _keep_guide(here)
    here.drawn, here.seen = set(), read_link()


def _follow_back(here: _Page) -> None:
    """Forget the shown result if the browser went back to a link of this page without it; menu links have none."""
    linked = any(kind in st.query_params for kind in here.link.kinds)
    if here.linked and not linked and not here.came:
        here.view = None
    here.linked = linked


def leave_page() -> None:
    """Store the values of replaced controls in the link; called at the end of a page.

    The browser removes a parameter from the link as soon as its control disappears. So these values have a separate
    parameter until the control returns or the link is opened again.
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
    """Restore the values of replaced controls from a link."""
    found: dict[str, list[str]] = {}
    for name, _, value in (text.partition(":") for text in st.query_params.get_all(links.KEPT_VALUES)):
        if name in here.link.controls and name not in st.query_params:
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        st.query_params[name] = values
    _remove_parameters(links.KEPT_VALUES)


def bind_control(name: str) -> dict[str, Any]:
    """Return the arguments that bind a control of `links.PAGES` to the link, with its parameter as the key.

    The link may lock the control.
    """
    here = _find_current_page()
    if name not in here.link.controls:
        raise LookupError(f"{name} is no control of the page {here.name}: see `links.PAGES`")
    here.drawn.add(name)
    return {
        "key": name,
        "bind": "query-params",
        "on_change": functools.partial(note_change, name),
        "disabled": name in here.locked,
    }


def bind_view(name: str) -> dict[str, Any]:
    """Return the arguments that bind a part of a page that opens and closes to the link, as `bind_control` does."""
    return {option: value for option, value in bind_control(name).items() if option in ("key", "bind")}


def list_drawn_settings() -> list[str]:
    """Return the settings that the page shows now."""
    here = _find_current_page()
    return [name for name in here.link.settings if name in here.drawn]


def list_guided(name: str) -> tuple[str, ...]:
    """Return the names that `lock` or `hide` of the link lists."""
    return tuple(filter(None, (part.strip() for part in read_guide(name).split(","))))


def read_guide(name: str) -> str:
    """Return a parameter of the guided start that the page was opened with; empty if it has none."""
    return (_find_current_page().guide or {}).get(name, "")


def _mend_plus() -> None:
    """Restore the plus in contenders and variants of a link that was typed by hand, where it arrives as a space.

    Controls read the link as it was when the run began, so the page runs once more.
    """
    linked = {name: st.query_params.get_all(name) for name in ("devices", "contenders", "lanes")}
    broken = {name: values for name, values in linked.items() if any(" " in value for value in values)}
    for name, values in broken.items():
        st.query_params[name] = [value.replace(" ", "+") for value in values]
    if broken:
        st.rerun()


def _keep_guide(here: _Page) -> None:
    """Store the guided start of a page and its locks, and add it again to a link that has lost it."""
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
    """Return the parameters of the link that belong to this page."""
    present = set(st.query_params)
    return {name: st.query_params.get_all(name) for name in _find_current_page().link.parameters if name in present}


def read_arrived_settings() -> Mapping[str, tuple[str, ...]]:
    """Return the settings in the link with which the session came to this page, with every value of each.

    The settings are stored at the first call, because a control resets a value that it cannot show, also in the link.
    """
    here = _find_current_page()
    if here.arrived is None:
        named = [name for name in here.link.settings if name in st.query_params]
        here.arrived = {name: tuple(st.query_params.get_all(name)) for name in named}
        here.chosen |= here.arrived.keys()
    return here.arrived


def write_link(name: str, texts: Sequence[str]) -> None:
    """Set a parameter of the link to these texts, or remove it if there are none."""
    if not texts:
        _remove_parameters(name)
    elif st.query_params.get_all(name) != list(texts):
        st.query_params[name] = list(texts)


def read_spoken(name: str) -> Spoken | None:
    """Return the link value that `write_spoken` stored for a control of this page.

    Returns None before the first call of `write_spoken`, and after a run without the control.
    """
    return _find_current_page().said.get(name)


def write_spoken(name: str, spoken: Spoken, linked: Sequence[str]) -> None:
    """Store the link value of a control, and write it into the link, which has `linked`, if it differs."""
    _find_current_page().said[name] = spoken
    if spoken[0] != linked:
        write_link(name, spoken[0])


def carry_choice(source: str, target: str) -> None:
    """Set a control that has not appeared yet to the value of another one."""
    if chosen := st.session_state.get(source):
        st.session_state[target] = list(chosen)


def has_just_arrived() -> bool:
    """Return whether this is the first run since the session came to this page, again or for the first time."""
    return _find_current_page().came


def note_change(name: str = "") -> None:
    """Note that the user has changed a setting or accepted the shown ones: faults of the link become irrelevant."""
    here = _find_current_page()
    here.chosen |= {name} & {*here.link.settings}
    here.touched, here.blank = True, False


def has_changed() -> bool:
    """Return whether the user has changed the page's settings since they came."""
    return _find_current_page().touched


def is_blank() -> bool:
    """Return whether the page was opened by an empty link, and nothing was set since."""
    return _find_current_page().blank


def set_initial_values(values: Mapping[str, Any]) -> None:
    """Set other initial values for the controls of a blank page, before any of them appears."""
    here = _find_current_page()
    here.blank = False
    here.arrived = {
        name: (describe.format_value(value),) for name, value in values.items()
    }  # so that the slider has a stop for it
    st.session_state.update(values)


def read_view() -> tuple[links.Kind, str] | None:
    """Return the result that the page shows with the settings, such as a job or a run, from the link or as last shown.

    A parameter in an invalid format is ignored.
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
    """Set the result that the link and the page show; `recalled` means that the store already had it."""
    _remove_parameters(*(other for other in links.PATTERNS if other != kind))
    st.query_params[kind] = name
    _find_current_page().view = (kind, name)
    if recalled:
        note_recalled(name)


def clear_view() -> None:
    _remove_parameters(*links.PATTERNS)
    _find_current_page().view = None


def adopt_values(values: Mapping[str, Any]) -> None:
    """Set other values for the controls of this page, before they appear; locked controls do not change."""
    here, link = _find_current_page(), dict(read_arrived_settings())
    for name, value in values.items():
        if name not in here.locked:
            st.session_state[name] = value
            several = value if isinstance(value, list | tuple) else (value,)
            link[name] = tuple(map(describe.format_value, several))  # so that a slider has a stop for it
    here.arrived = link
    note_change()


def restart_page(page: links.PageName, link: Mapping[str, str | list[str]]) -> None:
    """Forget the state of a page, so that it opens as if by a link."""
    for name in links.PAGES[page].settings:
        st.session_state.pop(name, None)
    values = {name: (value,) if isinstance(value, str) else tuple(value) for name, value in link.items()}
    known = {name: values[name] for name in links.PAGES[page].settings if name in values}
    _read_session_pages()[page] = _Page(name=page, arrived=known, chosen=set(known))


def make_address(parameters: Mapping[str, str | list[str]]) -> str:
    """Return the full address of the open page, with parameters."""
    bare = (st.context.url or "").split("?")[0]
    query = urlencode(parameters, doseq=True, safe=links.READABLE)
    return f"{bare}?{query}" if query else bare


def _remove_parameters(*names: str) -> None:
    for name in {*names} & {*st.query_params}:
        del st.query_params[name]


def _find_current_page() -> _Page:
    return _entered_page.get() or st.session_state.get(_CURRENT) or _find_page("explore")


def _find_page(page: links.PageName) -> _Page:
    return _read_session_pages().setdefault(page, _Page(name=page))


def _read_session_pages() -> dict[links.PageName, _Page]:
    return cast(dict[links.PageName, _Page], st.session_state.setdefault(_PAGES, {}))


_NOTHING: Any = object()
"""Value of a control before it appears for the first time."""


def bind_choice(
    name: str,
    options: Sequence[Any],
    usual: Any,
    as_label: Callable[[Any], str],
    read: Callable[[str], Any] = str,
    most: int | None = None,
) -> dict[str, Any]:
    """Return the arguments that bind a control with options to the link, as `bind_control` does for others.

    Args:
        name: one of `links.PAGES`.
        options: the possible choices, as rows, columns and commands spell them.
        usual: the default, which is in the link only if it was set: an option, a list of options, or a tuple with the
            ends of a range.
        as_label: returns the label of an option.
        read: parses a text of the link; the result is ignored unless it is an option.
        most: largest number of chosen options; a link that names more gets the first of them.
    """
    unbound = {option: value for option, value in bind_control(name).items() if option != "bind"}
    kept, linked = st.session_state.get(name, _NOTHING), st.query_params.get_all(name)
    said, before = read_spoken(name) or ([], usual)
    here = _find_current_page()
    is_set = name in here.chosen
    if unbound["disabled"] or (linked != said and (linked or not has_just_arrived())):
        stands = _keep_possible(
            options, [read(text) for text in linked if text or "" in options], usual, is_given=bool(linked)
        )
        is_set = is_set and _spell_values(stands) == linked
    elif kept is _NOTHING or (kept == before and not is_set):
        stands = usual
    else:
        stands = _keep_possible(options, _list_values(kept), usual, is_given=True)
    stands = stands[:most] if isinstance(stands, list) else stands
    if kept is _NOTHING or stands != kept:
        st.session_state[name] = stands
    here.chosen -= set() if is_set else {name}
    spoken = [] if stands == usual and not is_set else _spell_values(stands) or [""]
    write_spoken(name, (spoken, usual), linked)
    return {**unbound, "format_func": as_label, "persist_state": "session"}


def bind_numbers(name: str, options: Sequence[float], usual: Any) -> dict[str, Any]:
    """Bind a control of numbers, which show separators: 1,257 on a slider is 1257 in the link."""
    return bind_choice(name, options, usual, format_number, _parse_linked_number)


def bind_value(name: str, options: Sequence[Any], usual: Any) -> dict[str, Any]:
    """Bind a switch, whose options are False and True, or a control that formats its numbers itself."""
    bound = bind_choice(name, options, usual, str, _parse_linked_number if len(options) > 2 else _parse_linked_switch)
    return {option: value for option, value in bound.items() if option != "format_func"}


def _parse_linked_switch(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text.lower(), text)


def format_number(value: float) -> str:
    """Return a number as controls, tables and sentences show it."""
    return f"{value:,}"


def read_choices(name: str) -> list[str]:
    """Return the values of a multiple choice from the link, or else the session, even if they are not offered."""
    return st.query_params.get_all(name) or list(st.session_state.get(name) or ())


def _parse_linked_number(text: str) -> float | str:
    """Return the number that a text of the link spells; the text itself if it spells none."""
    try:
        return describe.simplify_number(float(text))
    except (ValueError, OverflowError):
        return text


def _spell_values(value: Any) -> list[str]:
    """Return all values of a control, as the link spells them."""
    return list(map(describe.format_value, _list_values(value)))


def _list_values(value: Any) -> list[Any]:
    """Return all values of a control."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _keep_possible(options: Sequence[Any], values: Sequence[Any], usual: Any, *, is_given: bool) -> Any:
    """Return the values that are valid options, in the form of the default; the default if none is valid."""
    if isinstance(options, range):  # a range searches all its values for other types
        values = [value for value in values if isinstance(value, int)]
    possible = [value for value in dict.fromkeys(values) if value in options]
    if isinstance(usual, tuple):
        return tuple(sorted(possible)) if len(possible) == len(usual) else usual
    if isinstance(usual, list):
        return possible if is_given and (possible or not values) else usual
    return possible[-1] if possible else usual


def read_compared(parameter: str = links.BESIDE) -> list[str]:
    """Return the studies, or the run, that the link compares with the open one, without duplicates."""
    said = (text for value in st.query_params.get_all(parameter) for text in value.split(","))
    return list(dict.fromkeys(name for name in said if links.PATTERNS["study"].fullmatch(name)))


def set_compared(chosen: Sequence[str], parameter: str = links.BESIDE) -> None:
    """Replace the items of the link that are compared with the open one."""
    write_link(parameter, [",".join(chosen)] if chosen else [])


def read_accelerator() -> str:
    """Return the name of the chosen recorded accelerator; empty if there is none.

    Recorded accelerators have no rows of custom scripts: while a script is chosen, the name is stored but ignored.
    """
    return "" if st.session_state.get("training") else str(st.session_state.get("recorded") or "")


def make_accelerator_link() -> dict[str, str]:
    """Return the chosen recorded accelerator as a parameter of a link; empty if there is none."""
    return {"recorded": read_accelerator()} if read_accelerator() else {}
