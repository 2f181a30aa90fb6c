"""What stands above an answer: what was asked, when and on what, and a speedup beside its verdict."""

from typing import Any

import streamlit as st

from core import units
from core.answer.run.speedup import Speedup
from core.answer.study.two_machines import Across
from core.question import describe
from core.question.experiment import Point
from core.question.sweep import Sweep
from core.results.schema import Trial
from pages.shared.draw.text import date, plain


def asked(row: Trial, question: Point | Sweep | None, *, recalled: bool) -> None:
    """Draw what was asked, when and on what, as the newest row of the answer says it.

    Where there is no question, its rows ask for what this version does not offer.
    """
    said = describe.sentence(question) if question else f"{row.dataset} · {row.model}"
    when = "Measured before, on" if recalled else "Measured on"
    st.caption(
        f"{plain(said)}  \n{when} {plain(date(row.started_at))} · {plain(row.cpu_name)} · "
        f"{plain(row.system)} · torch {plain(row.torch_version)}"
    )


def speedup(found: Speedup | Across, name: str, verdict: str, *, key: str, help: str) -> Any:
    """Draw a speedup with its interval and the verdict beside it; returns the place for what follows from it."""
    with st.container(border=True, key=key):
        figure, words = st.columns([1, 3], gap="medium", vertical_alignment="center")
    interval = f"95 %: {units.ratio(found.low)} to {units.ratio(found.high)}" if found.low and found.high else None
    figure.metric(
        f"Speedup of {plain(name)}",
        units.ratio(found.value) if found.value is not None else "—",
        delta=interval,
        delta_color="off",
        delta_arrow="off",
        help=help,
    )
    words.markdown(f"## {plain(verdict)}")
    return words
