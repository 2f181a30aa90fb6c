"""From the settings of a sweep to something to look at: what the store knows if that is all, a queued job if not."""

import streamlit as st

from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.sweep import Sweep
from pages.shared import asking, loaders, permits, state, sweep_settings
from pages.shared.text import plain


def run_button(question: sweep_settings.Question, machine: Machine | None) -> None:
    """Draw what the question costs, why it cannot be asked if so, and the button that asks it."""
    if question.sweep:
        sweep_settings.facts(question.sweep)
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
        if not fresh and not asked.adaptive and loaders.answers(asked, machine).complete:
            state.show("sweep", asked.id, recalled=True)
        else:
            state.show("job", permits.submit(asked, loaders.results(), fresh=fresh).id)
            loaders.machine()
    except CrossoverError as error:
        st.error(plain(str(error)))
        return
    st.rerun()
