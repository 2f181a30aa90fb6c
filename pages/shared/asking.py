"""From the settings to something to look at: the store's answer if it has one, a queued measurement if not."""

from collections.abc import Sequence

import streamlit as st

from core.errors import CrossoverError
from core.experiment import Experiment
from core.jobs.machine import Machine
from core.results.schema import Trial
from pages.shared import loaders, result, settings, state
from pages.shared.text import plain


def machine() -> Machine | None:
    """This machine, or the sentence why it cannot be told."""
    try:
        return loaders.machine()
    except CrossoverError as error:
        st.error(plain(str(error)))
        return None


def under_way(*, sweeps: bool) -> tuple[state.Kind, str] | None:
    """The oldest job that waits or runs, of sweeps or of comparisons: what a page shows that was asked nothing."""
    active = [job for job in loaders.queue().jobs() if job.active and (job.sweep if sweeps else job.experiment)]
    if not active:
        return None
    state.show("job", active[0].id)
    return "job", active[0].id


def run_button(question: settings.Question, machine: Machine | None) -> None:
    """Draw what the question costs, why it cannot be asked if so, and the button that asks it."""
    if question.point:
        settings.facts(question.point)
    if pressed("Run", question.fault, ready=question.experiment is not None) and question.experiment and machine:
        ask(question.experiment, machine)


def pressed(label: str, fault: str, *, ready: bool) -> bool:
    """Draw why a question cannot be asked if so, and the button that asks it; whether it was pressed just now."""
    if fault:
        st.error(plain(fault))
    if fault and not state.touched():
        st.button("Use the settings shown", on_click=state.touch)
    return st.button(label, type="primary", icon=":material/play_arrow:", width="stretch", disabled=not ready)


def again(trials: Sequence[Trial], machine: Machine | None) -> None:
    """Draw the button that measures a run again, if it was measured on this machine."""
    asked = result.experiment_of(trials)
    if asked is None or machine is None:
        return
    if trials[0].machine_id != machine.environment.machine_id:
        st.caption("Measured on another machine")
    elif st.button("Measure again", icon=":material/replay:", width="stretch"):
        ask(asked, machine, fresh=True)


def ask(experiment: Experiment, machine: Machine, *, fresh: bool = False) -> None:
    """Show the stored answer, or queue the measurement and show that.

    Args:
        experiment: the question.
        machine: this machine; only what it measured itself answers.
        fresh: measure even if the store has the answer.
    """
    store = loaders.results()
    try:
        stored = [] if fresh else _stored(experiment, machine)
        if stored:
            state.show("run", stored[0].run_id, recalled=True)
        else:
            state.show("job", loaders.queue().submit(experiment, store, fresh=fresh).id)
            loaders.machine()
    except CrossoverError as error:
        st.error(plain(str(error)))
        return
    st.rerun()


def _stored(experiment: Experiment, machine: Machine) -> list[Trial]:
    """What this machine measured itself, with the devices and the torch that it has now."""
    return loaders.results().find(
        experiment,
        machine_id=machine.environment.machine_id,
        torch_version=machine.environment.torch_version,
        device_names=machine.device_names,
    )
