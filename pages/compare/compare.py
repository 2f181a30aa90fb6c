"""Compare: one training on several devices, side by side."""

import functools

import streamlit as st

from core.jobs import client
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.question.experiment import Experiment
from pages.compare import settings, view
from pages.shared import accelerators_view, expectations, job_view, layout, links, queries, run_view, session
from pages.shared.text import show_errors


def draw_compare_page() -> None:
    """The settings beside what they led to."""
    machine = job_view.find_machine()
    shown = session.read_view() or job_view.find_visitor_job(sweeps=False)
    view.adopt_run_view(shown, machine)
    sides = layout.sides("Compare", asked=job_view.describe_measured_job(shown))
    asked = settings.draw_run_settings(machine, sides)
    with sides.answer, show_errors():
        if view.is_new_question(asked, shown):
            with show_errors():
                expectations.draw_expectation(asked, machine)
        _draw_view(shown, machine, asked)


def _draw_view(shown: tuple[links.Kind, str] | None, machine: Machine | None, request: Experiment | None) -> None:
    """The job or the run that the link names; without one, the measurement that is under way; else what to expect."""
    match shown:
        case ("job", job_id):
            _draw_job_by_id(job_id, machine)
        case ("run", run_id):
            _draw_run_by_id(run_id, machine, request)
        case _:
            _draw_empty(machine, is_custom=bool(request and request.point.training))


def _draw_empty(machine: Machine | None, *, is_custom: bool = False) -> None:
    """What stands where there is no result: the measurement that is under way, if any is, and how the page works."""
    job_view.offer_running_jobs(sweeps=False)
    view.draw_welcome(machine, is_custom=is_custom)


def _draw_job_by_id(job_id: str, machine: Machine | None) -> None:
    job = None
    with show_errors(st.warning):
        job = queries.open_queue().job(job_id)
    if job is None:
        _draw_empty(machine)
    else:
        _draw_compare_job(job, machine)


@show_errors(st.warning)
def _draw_compare_job(job: Job, machine: Machine | None) -> None:
    if job.experiment is None:
        job_view.point_to_job_page(job)
    elif job.active:
        job_view.draw_job(job)
    else:
        _draw_ended_job(job, job.experiment, machine)


def _draw_ended_job(job: Job, request: Experiment, machine: Machine | None) -> None:
    rows = client.load_job_rows(queries.open_queue(), job)
    if job.state == "finished" and rows and not job.message:
        session.show_view("run", job.run_id)
        st.rerun()
    job_view.draw_job_end(job, again=lambda: job_view.ask_question(request, machine, fresh=False) if machine else None)
    if rows:
        run_view.draw_run_heading(rows)
        run_view.draw_run(rows, accelerators_view.find_recorded_rows(rows, machine), machine)


def _draw_run_by_id(run_id: str, machine: Machine | None, request: Experiment | None) -> None:
    trials = queries.find_rows(run_ids=[run_id])
    if not trials:
        st.warning(f"There is no run {run_id} here; it was measured elsewhere, or its files were removed.")
        _draw_empty(machine)
        return
    shown = run_view.make_run_question(trials)
    if request and shown:
        view.draw_run_differences(request, shown, machine)
    run_view.draw_run_heading(trials)
    onwards = functools.partial(view.draw_next_steps, trials, shown, machine)
    run_view.draw_run(trials, accelerators_view.find_recorded_rows(trials, machine), machine, onwards)


draw_compare_page()
