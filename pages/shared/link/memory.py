"""What a session remembers of what was asked, expected and handed in: what its link cannot say."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.question.sweep import Sweep

RECALLED, REPORTS = "_recalled", "_reports"
"""Where the session has the name of what the store answered, and the reports that were made."""


def recall(name: str) -> None:
    """Note that a run or a sweep was asked for, and that the store had it already."""
    st.session_state[RECALLED] = name


def recalled(name: str) -> bool:
    """Whether the run or sweep was asked for in this session and came from the store."""
    return bool(st.session_state.get(RECALLED) == name)


def remember(sweep: Sweep) -> None:
    """Keep what was asked, so that it stays in view when its settings are changed."""
    st.session_state.setdefault("_sweeps", {})[sweep.id] = sweep


def remembered(sweep_id: str) -> Sweep | None:
    """A sweep that was asked for in this session."""
    found: Sweep | None = st.session_state.get("_sweeps", {}).get(sweep_id)
    return found


def expect(name: str, expected: str | None) -> None:
    """Keep what was expected of a tutorial or a lesson, also while its page is left."""
    if expected is not None:
        st.session_state.setdefault("_predictions", {})[name] = expected


def expected(name: str) -> str | None:
    """What was expected of a tutorial or a lesson; None if nothing was."""
    found: str | None = st.session_state.get("_predictions", {}).get(name)
    return found


def open_unexpected(name: str) -> None:
    """Note, in the link too, that what a tutorial or a lesson shows is wanted without expecting anything."""
    st.query_params["shown"] = name
    st.session_state.setdefault("_opened", set()).add(name)


def opened_unexpected(name: str) -> bool:
    """Whether what a tutorial or a lesson shows is wanted without expecting anything."""
    return name in st.session_state.get("_opened", ()) or st.query_params.get("shown") == name


def keep_report(name: str, rests_on: object, files: Mapping[str, str]) -> None:
    """Keep the report of a tutorial or a lesson, by the ending of its file, with what it rests on."""
    st.session_state.setdefault(REPORTS, {})[name] = (rests_on, files)


def kept_report(name: str, rests_on: object) -> Mapping[str, str]:
    """The report that was made of just this; empty if none was."""
    basis, files = st.session_state.get(REPORTS, {}).get(name, (None, {}))
    return files if basis == rests_on else {}


def visitor() -> str:
    """A name of this session that nobody else knows."""
    name: str = st.session_state.setdefault("_visitor", secrets.token_hex(16))
    return name


def give_back(name: str, value: str) -> None:
    """Let a control that the page has not drawn yet stand at a value, unless the session or the link has another.

    A value that is given as the usual one instead would leave the link.
    """
    if name not in st.session_state and name not in st.query_params:
        st.session_state[name] = value


def standing(name: str) -> Any:
    """What a control of this page stands at."""
    return st.session_state[name]


def selected(table: str) -> Sequence[int]:
    """Places of the lines that are selected in a table."""
    chosen: Sequence[int] = st.session_state[table]["selection"]["rows"]
    return chosen


def put(values: Mapping[str, Any]) -> None:
    """Let controls stand at values, before they are drawn or from a callback."""
    st.session_state.update(values)
