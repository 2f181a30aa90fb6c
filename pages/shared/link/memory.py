"""What a session remembers of what was asked, expected and handed in: what its link cannot say."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, cast

import streamlit as st

from core.question.sweep import Sweep

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
