"""Controls whose options have names for people, while the link has the words of rows, columns and commands.

A control that Streamlit binds writes what it shows into the link; so these are kept beside it: a link that has changed
sets the control, and whatever else sets the control sets the link.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pages.shared.link import state


def bound(name: str, options: Sequence[str], usual: Any, as_label: Callable[[Any], str]) -> dict[str, Any]:
    """What makes such a control part of the link, as `state.bound` does others.

    Args:
        name: one of `links.PAGES`.
        options: what may be chosen, as the link has it.
        usual: what stands there unless the link says otherwise, and then is not in it: an option, or a list of them.
        as_label: the name for people of an option.
    """
    kept, linked = st.session_state.get(name), st.query_params.get_all(name)
    said, before = state.said(name) or ([], usual)
    if linked != said and (linked or not state.came()):
        stands = _among(options, list(filter(None, linked)), usual, given=bool(linked))
    elif name not in st.session_state or kept == before:
        stands = usual
    else:
        stands = _among(options, kept if isinstance(kept, list) else [kept], usual, given=True)
    if name not in st.session_state or stands != kept:
        st.session_state[name] = stands
    texts = stands if isinstance(stands, list) else [stands]
    state.speak(name, ([] if stands == usual else texts or [""], usual))
    unbound = {option: value for option, value in state.bound(name).items() if option != "bind"}
    return {**unbound, "format_func": as_label, "persist_state": "session"}


def given(name: str) -> list[str]:
    """What the link or else the session has of a control of several, whether it can be chosen here or not."""
    return st.query_params.get_all(name) or list(st.session_state.get(name) or ())


def _among(options: Sequence[str], values: Sequence[Any], usual: Any, *, given: bool) -> Any:
    """Those of the values that may be chosen, in the form of the usual one, which stands where none may."""
    possible = [value for value in values if value in options]
    if isinstance(usual, list):
        return possible if given and (possible or not values) else usual
    return possible[-1] if possible else usual
