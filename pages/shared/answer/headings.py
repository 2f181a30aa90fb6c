"""What stands above an answer: what was asked, when and on what, and a verdict with its small print."""

from typing import Any

import streamlit as st

from core.answer.verdicts import WordedVerdict
from core.question import describe
from core.question.experiment import Point
from core.question.sweep import Sweep
from core.results.schema import Trial
from pages.shared.draw.text import date, plain


def asked(row: Trial, question: Point | Sweep | None, *, recalled: bool) -> None:
    """Draw what was asked, when and on what, as the newest row of the answer says it.

    Where there is no question, its rows ask for what this version does not offer.
    """
    said = describe.sentence(question) if question else describe.in_short(row)
    when = "Measured before, on" if recalled else "Measured on"
    st.caption(
        f"{plain(said)}  \n{when} {plain(date(row.started_at))} · {plain(row.cpu_name)} · "
        f"{plain(row.system)} · torch {plain(row.torch_version)}"
    )


def verdict(words: WordedVerdict, *, key: str, help: str) -> Any:
    """Draw a verdict in two lines, the claim and its small print; returns the place for what follows from it."""
    place = st.container(key=key)
    place.markdown(f"## {plain(words.claim)}")
    place.caption(plain(words.basis), help=help)
    return place
