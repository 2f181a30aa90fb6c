"""Compare: one training on several devices, side by side."""

import streamlit as st

from core.errors import CrossoverError
from core.jobs import runner
from core.jobs.machine import Machine
from pages.shared import accelerators, asking, live, loaders, result, settings, state, welcome
from pages.shared.text import plain


def page() -> None:
    """The settings on top, what they led to below."""
    st.title("Compare")
    st.caption("Train one model on several devices, side by side, and read which is faster, by how much and why.")
    machine = asking.machine()
    with st.container(border=True):
        settings.panel(machine, lambda question: asking.run_button(question, machine))
    _view(machine)


def _view(machine: Machine | None) -> None:
    """The job or the run that the link names; without one, the measurement that is under way; else what to expect."""
    match state.view() or asking.under_way(sweeps=False):
        case ("job", job_id):
            _job(job_id, machine)
        case ("run", run_id):
            _run(run_id, machine)
        case _:
            welcome.draw(machine)


def _job(job_id: str, machine: Machine | None) -> None:
    try:
        job = loaders.queue().job(job_id)
        if job.experiment is None:
            live.elsewhere(job)
            return
        if job.active:
            live.draw(job)
            return
        rows = runner.rows(loaders.queue(), job)
    except CrossoverError as error:
        st.warning(plain(str(error)))
        return
    if job.state == "finished" and rows and not job.message:
        state.show("run", job.run_id)
        st.rerun()
    live.draw_end(job, again=lambda: asking.ask(job.experiment, machine, fresh=False) if machine else None)
    if rows:
        result.heading(rows)
        result.draw(rows, accelerators.beside(rows, machine), machine)


def _run(run_id: str, machine: Machine | None) -> None:
    trials = loaders.rows(run_ids=[run_id])
    if not trials:
        st.warning(f"There is no run {run_id} here; it was measured elsewhere, or its files were removed.")
        return
    words, action = st.columns([4, 1], vertical_alignment="center")
    with words:
        result.heading(trials)
    with action:
        asking.again(trials, machine)
    result.draw(trials, accelerators.beside(trials, machine), machine)


page()
