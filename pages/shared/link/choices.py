"""Controls whose options have names for people, while the link has the words of rows, columns and commands.

A control that Streamlit binds writes what it shows into the link; so these are kept beside it: a link that has changed
sets the control, and whatever else sets the control sets the link.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.question import describe
from pages.shared.link import state

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
    unbound = {option: value for option, value in state.bind_control(name).items() if option != "bind"}
    kept, linked = st.session_state.get(name, _NOTHING), st.query_params.get_all(name)
    said, before = state.read_spoken(name) or ([], usual)
    if unbound["disabled"] or (linked != said and (linked or not state.has_just_arrived())):
        stands = _keep_possible(options, [read(text) for text in linked if text], usual, is_given=bool(linked))
    elif kept is _NOTHING or kept == before:
        stands = usual
    else:
        stands = _keep_possible(options, _list_values(kept), usual, is_given=True)
    if kept is _NOTHING or stands != kept:
        st.session_state[name] = stands
    spoken = [] if stands == usual else list(map(describe.text, _list_values(stands))) or [""]
    state.write_spoken(name, (spoken, usual), linked)
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
        return describe.plain(float(text))
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
