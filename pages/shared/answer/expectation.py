"""What the settings of the moment are expected to show: a marker on the measured sizes, before Run is pressed.

Nothing is said where no study of this training but for one size is there, and nothing is stored.
"""

import streamlit as st

from core.answer.study import wording
from core.jobs.machine import Machine
from core.question.experiment import Contender, Experiment
from core.question.fields import axis_title
from pages.shared.answer import accelerators
from pages.shared.data import expectations
from pages.shared.data.expectations import Expectation
from pages.shared.draw import charts
from pages.shared.draw.text import plain


def draw_expectation(request: Experiment | None, machine: Machine | None) -> None:
    """Draw what to expect of a training that can be asked for; nothing where nothing is known."""
    if request is None or machine is None:
        return
    names = [str(contender) for contender in request.contenders]
    if found := expectations.expect_training(
        request.point, names, machine.here, accelerators.find_chosen_accelerator(machine)
    ):
        show_expectation(found, ending="Run measures it.")


def show_expectation(expectation: Expectation, *, ending: str) -> None:
    """Draw an expectation: its figures, on what they rest, and the marker."""
    told, axis = expectation.told, expectation.located.answer.axis
    base, other = (Contender.parse(text).title for text in (expectation.baseline, expectation.challenger))
    where = wording.place(axis, wording.size(told.size))
    st.markdown(f"**{plain(other)} against {plain(base)}, at {where}: {told.figures}**, {told.source}. {ending}")
    along = f"Speedup against {axis_title(axis)}"
    charts.draw_chart(expectation.chart, alt=f"{along}: measured sizes, and what is expected at {where}")
