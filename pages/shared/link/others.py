"""What stands beside what a page shows: other studies or runs, and a recorded accelerator."""

from collections.abc import Sequence

import streamlit as st

from pages.shared.link import links, state


def read_compared(parameter: str = links.BESIDE) -> list[str]:
    """The studies, or the run, that the link puts beside the one that is open; none twice."""
    said = (text for value in st.query_params.get_all(parameter) for text in value.split(","))
    return list(dict.fromkeys(name for name in said if links.PATTERNS["study"].fullmatch(name)))


def set_compared(chosen: Sequence[str], parameter: str = links.BESIDE) -> None:
    """Put others beside the one that is open into the link, in place of what is there."""
    state.write_link(parameter, [",".join(chosen)] if chosen else [])


def read_accelerator() -> str:
    """Name of the recorded accelerator that is looked at beside this machine; empty if none is.

    None ever did a training of one's own; while one is chosen the name is kept, and means nothing.
    """
    return "" if st.session_state.get("training") else str(st.session_state.get("recorded") or "")


def make_accelerator_link() -> dict[str, str]:
    """The recorded accelerator as a parameter of a link; none if none is looked at."""
    return {"recorded": read_accelerator()} if read_accelerator() else {}
