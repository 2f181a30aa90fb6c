"""Compare: one training on several devices, side by side."""

import functools

import streamlit as st

from core.jobs import client
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.question.experiment import Experiment
from pages.compare import onward, settings, welcome
from pages.shared.answer import accelerators, expectation, run_view
from pages.shared.data import reads
from pages.shared.draw.text import told
from pages.shared.frame import layout
from pages.shared.job import asking, live
from pages.shared.link import links, state


def page() -> None:
    """The settings beside what they led to."""
    machine = asking.machine()
    view = state.view() or asking.ours(sweeps=False)
    onward.adopt(view, machine)
    sides = layout.sides("Compare", asked=asking.measured(view))
    asked = settings.panel(machine, sides)
    with sides.answer, told():
        if onward.is_new(asked, view):
            with told():
                expectation.draw(asked, machine)
        _view(view, machine, asked)


def _view(view: tuple[links.Kind, str] | None, machine: Machine | None, asked: Experiment | None) -> None:
    """The job or the run that the link names; without one, the measurement that is under way; else what to expect."""
    match view:
        case ("job", job_id):
            _job(job_id, machine)
        case ("run", run_id):
            _run(run_id, machine, asked)
        case _:
            _nothing(machine, own=bool(asked and asked.point.training))


def _nothing(machine: Machine | None, *, own: bool = False) -> None:
    """What stands where there is no result: the measurement that is under way, if any is, and how the page works."""
    asking.offer_others(sweeps=False)
    welcome.draw(machine, own=own)


def _job(job_id: str, machine: Machine | None) -> None:
    job = None
    with told(st.warning):
        job = reads.queue().job(job_id)
    if job is None:
        _nothing(machine)
    else:
        _draw_job(job, machine)


@told(st.warning)
def _draw_job(job: Job, machine: Machine | None) -> None:
    if job.experiment is None:
        live.elsewhere(job)
    elif job.active:
        live.draw(job)
    else:
        _ended(job, job.experiment, machine)


def _ended(job: Job, asked: Experiment, machine: Machine | None) -> None:
    rows = client.rows(reads.queue(), job)
    if job.state == "finished" and rows and not job.message:
        state.show("run", job.run_id)
        st.rerun()
    live.draw_end(job, again=lambda: asking.ask(asked, machine, fresh=False) if machine else None)
    if rows:
        run_view.heading(rows)
        run_view.draw(rows, accelerators.beside(rows, machine), machine)


def _run(run_id: str, machine: Machine | None, asked: Experiment | None) -> None:
    trials = reads.rows(run_ids=[run_id])
    if not trials:
        st.warning(f"There is no run {run_id} here; it was measured elsewhere, or its files were removed.")
        _nothing(machine)
        return
    shown = run_view.experiment_of(trials)
    if asked and shown:
        onward.differs(asked, shown, machine)
    run_view.heading(trials)
    onwards = functools.partial(onward.draw, trials, shown, machine)
    run_view.draw(trials, accelerators.beside(trials, machine), machine, onwards)


page()
