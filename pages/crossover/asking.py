"""From the settings of a sweep to something to look at: what the store knows if that is all, a queued job if not."""

import streamlit as st

from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question.sweep import Sweep
from pages.crossover import settings
from pages.shared.data import reads
from pages.shared.draw.text import plain
from pages.shared.frame import permits
from pages.shared.job import asking
from pages.shared.link import state


def run_button(question: settings.SweepAsked, machine: Machine | None) -> None:
    """Draw what the question costs, why it cannot be asked if so, and the button that asks it."""
    if question.sweep:
        settings.facts(question.sweep)
    ready = question.sweep is not None and machine is not None
    pressed = asking.pressed("Find the crossover", question.fault, ready=ready, asked=question.sweep)
    if pressed and question.sweep and machine:
        ask(question.sweep, machine)


def again(asked: Sweep, machine: Machine | None) -> None:
    """Draw the button that measures every point of a sweep again."""
    if machine and asking.again_pressed(asked):
        ask(asked, machine, fresh=True)


def ask(asked: Sweep, machine: Machine, *, fresh: bool = False) -> None:
    """Show what is stored if every point of a grid is, or queue the sweep and show that.

    Which points an adaptive sweep needs is found out as it goes; those in the store are not measured again either.

    Args:
        asked: the question.
        machine: this machine; only what it measured itself answers.
        fresh: measure even what the store has.
    """
    state.remember(asked)
    try:
        if not fresh and not asked.adaptive and reads.answers(asked, machine).complete:
            state.show("sweep", asked.id, recalled=True)
        else:
            state.show("job", permits.submit(asked, reads.results(), fresh=fresh).id)
            reads.machine()
    except CrossoverError as error:
        st.error(plain(str(error)))
        return
    st.rerun()
