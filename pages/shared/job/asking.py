"""From the settings to something to look at: the store's answer if it has one, a queued measurement if not."""

from collections.abc import Sequence

import streamlit as st

from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question.experiment import Experiment
from core.question.policy import Asked
from core.results.schema import Trial
from pages.compare import settings
from pages.shared.answer import run_view
from pages.shared.data import reads
from pages.shared.draw.text import plain
from pages.shared.frame import permits
from pages.shared.link import links, state


def machine() -> Machine | None:
    """This machine, or the sentence why it cannot be told."""
    try:
        return reads.machine()
    except CrossoverError as error:
        st.error(plain(str(error)))
        return None


def under_way(*, sweeps: bool) -> tuple[links.Kind, str] | None:
    """The oldest job of ours that waits or runs, of sweeps or of comparisons: what a page shows that was asked nothing.

    Somebody else's is offered, and not shown unasked: it would take the place of what a visitor is about to do.
    """
    active = [job for job in reads.queue().jobs() if job.active and (job.sweep if sweeps else job.experiment)]
    if mine := permits.ours(active):
        state.show("job", mine[0].id)
        return "job", mine[0].id
    if active:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption("A measurement that somebody else asked for is under way.", width="content")
            st.button("Watch it", key="watch", on_click=state.show, args=("job", active[0].id), type="tertiary")
    return None


def run_button(question: settings.RunAsked, machine: Machine | None) -> None:
    """Draw what the question costs, why it cannot be asked if so, and the button that asks it."""
    if question.point:
        settings.facts(question.point)
    ready = question.experiment is not None
    if pressed("Run", question.fault, ready=ready, asked=question.experiment) and question.experiment and machine:
        ask(question.experiment, machine)


def pressed(label: str, fault: str, *, ready: bool, asked: Asked | None = None) -> bool:
    """Draw why a question cannot be asked if so, and the button that asks it; whether it was pressed just now.

    What the store has can be shown to who may not run it, so the button stays; what it leads to is decided later.
    """
    if fault:
        st.error(plain(fault))
    if fault and not state.touched():
        st.button("Use the settings shown", on_click=state.touch)
    if asked and (reason := permits.refusal(asked)):
        st.caption(plain(f"{reason} What is stored is shown all the same."))
    return st.button(label, type="primary", icon=":material/play_arrow:", width="stretch", disabled=not ready)


def again(trials: Sequence[Trial], machine: Machine | None) -> None:
    """Draw the button that measures a run again, if it was measured on this machine."""
    asked = run_view.experiment_of(trials)
    if asked is None or machine is None:
        return
    if trials[0].machine_id != machine.environment.machine_id:
        st.caption("Measured on another machine")
    elif again_pressed(asked):
        ask(asked, machine, fresh=True)


def again_pressed(asked: Asked) -> bool:
    """Draw the button that measures once more; whether it was pressed just now."""
    reason = permits.refusal(asked)
    if reason:
        st.caption(plain(reason))
    return st.button("Measure again", icon=":material/replay:", width="stretch", disabled=bool(reason))


def ask(experiment: Experiment, machine: Machine, *, fresh: bool = False) -> None:
    """Show the stored answer, or queue the measurement and show that.

    Args:
        experiment: the question.
        machine: this machine; only what it measured itself answers.
        fresh: measure even if the store has the answer.
    """
    store = reads.results()
    try:
        stored = [] if fresh else _stored(experiment, machine)
        if stored:
            state.show("run", stored[0].run_id, recalled=True)
        else:
            state.show("job", permits.submit(experiment, store, fresh=fresh).id)
            reads.machine()
    except CrossoverError as error:
        st.error(plain(str(error)))
        return
    st.rerun()


def _stored(experiment: Experiment, machine: Machine) -> list[Trial]:
    """What this machine measured itself, with the devices and the torch that it has now."""
    return reads.results().find(experiment, machine.here)
