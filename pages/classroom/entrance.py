"""The ways into a class: its link, its code, or a new one.

Nothing is ever taken out of a link: where its code is refused, the sentence stands above the ways in, and where codes
are looked up slowly just now, the page tries again by itself.
"""

import streamlit as st

from core.classroom import codes
from core.classroom.classes import Class
from core.classroom.limits import TooOften
from core.errors import CrossoverError
from pages.classroom import access, teacher
from pages.shared import membership
from pages.shared.text import plain, show_errors

RETRY_S = 2.0
"""How often a page that waits for its turn asks again."""


def find_linked_class() -> Class | None:
    """The class of the link; None where there is none, with the sentence why."""
    code = membership.read_class_code()
    if not code:
        return None
    with show_errors():
        try:
            return access.find(code)
        except TooOften:
            st.fragment(_knock, run_every=RETRY_S)(code)
    return None


def draw_class_entrance() -> None:
    left, right = st.columns(2, gap="medium")
    with left, st.form("enter", border=True):
        st.markdown("**Join a class**")
        code = st.text_input("Join code", max_chars=20, placeholder=codes.EXAMPLE)
        if st.form_submit_button("Go to the class", type="primary", icon=":material/login:"):
            _enter(code)
    with right:
        teacher.create()


def _enter(code: str) -> None:
    with show_errors():
        try:
            membership.open_class(access.find(code).code)
        except TooOften:
            membership.open_class(codes.format_code(code))  # where the page tries again by itself
        st.rerun()


def _knock(code: str) -> None:
    try:
        access.find(code)
    except TooOften as error:
        st.warning(plain(f"{error} This page tries again by itself."))
        return
    except CrossoverError:  # which the page says
        pass
    st.rerun()
