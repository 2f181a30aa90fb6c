"""Classes in the link and in the session: which one is open, who one is in it, and what was tried and refused."""

from typing import cast

import streamlit as st

ME = "me"
"""Parameter of the link that says who one is in its class, and proves it."""

TEACHER = "teach"
"""Parameter of the teacher's own link with the teacher's code, so that a reload keeps the teacher's view."""

MAX_REFUSALS = 20
"""Refused codes and proofs that a session remembers."""


def read_class_code() -> str:
    """The join code in the link; empty if there is none."""
    return st.query_params.get("class", "")


def open_class(code: str) -> None:
    """Put a join code into the link, in place of another class's and of who one is in that."""
    if read_class_code() != code:
        st.query_params["class"] = code
        for proof in (ME, TEACHER):
            if proof in st.query_params:
                del st.query_params[proof]


def read_class_proof() -> str:
    """What the link says of who one is in its class; empty if nothing."""
    return st.query_params.get(ME, "")


def list_entered_codes() -> set[str]:
    """Codes of classes that were opened in this session, by code or proof: nobody asks how often others tried these."""
    return cast(set[str], st.session_state.setdefault("_entered", set()))


def note_refusal(text: str, sentence: str) -> None:
    """Keep why a code, or a proof of having joined, was refused, so that a page drawn again does not try it again."""
    kept = [*st.session_state.get("_refused", {}).items(), (text[:200], sentence)]
    st.session_state["_refused"] = dict(kept[-MAX_REFUSALS:])


def find_refusal(text: str) -> str:
    """Why a code, or a proof of having joined, was refused; empty if it was not."""
    return str(st.session_state.get("_refused", {}).get(text[:200], ""))


def join_class(class_id: str, student_id: str, token: str) -> None:
    """Keep who one is in a class, and the token that proves it, in the session and in one's own link."""
    _read_memberships()[class_id] = (student_id, token)
    st.query_params[ME] = f"{student_id}.{token}"


def find_membership(class_id: str) -> tuple[str, str]:
    """Who one is in a class, with the token; both empty where one has not joined it."""
    return _read_memberships().get(class_id, ("", ""))


def note_teacher_code(class_id: str, secret: str) -> None:
    """Keep the right teacher's code of a class, in the session and in the teacher's own link."""
    _read_teacher_codes()[class_id] = secret
    st.query_params[TEACHER] = secret


def find_teacher_code(class_id: str) -> str:
    """The teacher's code of a class, if it was given in this session; else empty."""
    return _read_teacher_codes().get(class_id, "")


def read_teacher_code() -> str:
    """The teacher's code that the link says, right or wrong; empty if none."""
    return st.query_params.get(TEACHER, "")


def announce(sentence: str) -> None:
    """Keep a sentence that is shown when the page is drawn next."""
    st.session_state["_announced"] = sentence


def take_announcement() -> str:
    """The sentence that was kept for the next drawing; empty the second time."""
    return str(st.session_state.pop("_announced", ""))


def find_first_membership() -> tuple[str, str] | None:
    """The class that was joined first in this session, and who one is in it."""
    return next(((class_id, student_id) for class_id, (student_id, _) in _read_memberships().items()), None)


def _read_teacher_codes() -> dict[str, str]:
    return cast(dict[str, str], st.session_state.setdefault("_teaches", {}))


def _read_memberships() -> dict[str, tuple[str, str]]:
    return cast(dict[str, tuple[str, str]], st.session_state.setdefault("_classes", {}))
