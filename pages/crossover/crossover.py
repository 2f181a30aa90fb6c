"""Crossover: the size from which one device wins, as a number with an interval."""

import streamlit as st

from core.jobs.job import Job
from core.jobs.machine import Machine
from core.question.sweep import Sweep
from pages.crossover import settings, view
from pages.shared import job_view, layout, links, queries, session, sweep_view
from pages.shared.text import show_errors


def draw_crossover_page() -> None:
    """The settings beside what they led to, then what is known without measuring."""
    machine = job_view.find_machine()
    shown = session.read_view() or job_view.find_visitor_job(sweeps=True)
    view.adopt_sweep_view(shown, machine)
    sides = layout.sides("Crossover", asked=job_view.describe_measured_job(shown))
    asked = settings.draw_sweep_settings(machine, sides)
    with sides.answer:
        _draw_answer(shown, machine, asked)


def _draw_answer(shown: tuple[links.Kind, str] | None, machine: Machine | None, request: Sweep | None) -> None:
    if shown is not None:
        _draw_view(shown, machine, request)
        st.divider()
    else:
        view.draw_aim(machine)
        job_view.offer_running_jobs(sweeps=True)
        view.draw_known_study(request, machine)
    view.draw_custom_timings()
    if shown is None:
        view.draw_studies_table(machine)
        return
    with st.expander("Recorded studies", expanded=True, **session.bind_view("recorded_studies")) as part:
        if part.open:
            view.draw_studies_table(machine)


def _draw_view(shown: tuple[links.Kind, str], machine: Machine | None, request: Sweep | None) -> None:
    """What the link names, or the sweep that is under way."""
    match shown:
        case ("job", job_id):
            _draw_job_by_id(job_id, machine)
        case ("sweep", sweep_id):
            _draw_sweep_by_id(sweep_id, machine, request)
        case ("study", study_id):
            _draw_study_by_id(study_id, machine, request)


@show_errors(st.warning)
def _draw_job_by_id(job_id: str, machine: Machine | None) -> None:
    job = queries.open_queue().job(job_id)
    if job.sweep is None:
        job_view.point_to_job_page(job)
    elif job.active:
        view.draw_sweep_job(job)
    else:
        ended = view.draw_remote_end if job.elsewhere else _draw_ended_sweep
        ended(job, job.sweep, machine)


def _draw_ended_sweep(job: Job, request: Sweep, machine: Machine | None) -> None:
    rows = queries.find_job_rows(job)
    job_view.draw_job_end(job, again=lambda: job_view.ask_question(request, machine) if machine else None)
    view.draw_sweep_notes(job)
    sweep_view.draw_whole_sweep(rows, request, lambda: job_view.draw_again_button(request, machine), machine)


def _draw_sweep_by_id(sweep_id: str, machine: Machine | None, request: Sweep | None) -> None:
    """What the store knows of a sweep that this session asked for, or that the settings of the link ask for."""
    known = session.read_asked_sweeps().get(sweep_id) or (request if request and request.id == sweep_id else None)
    if machine is None:
        return
    if known is None:
        view.draw_unknown_link(
            "The settings of this link were changed on the way, so it does not say which sweep it shows."
        )
        return
    view.draw_sweep_differences(request, known)
    rows, _ = queries.find_sweep_answers(known, machine)
    sweep_view.draw_whole_sweep(rows, known, lambda: job_view.draw_again_button(known, machine), machine)


@show_errors(st.warning)
def _draw_study_by_id(study_id: str, machine: Machine | None, request: Sweep | None) -> None:
    found = queries.find_study(study_id)
    if found is None:
        view.draw_unknown_link(
            f"There is no study {study_id} here; it was measured elsewhere, or its files were removed."
        )
        return
    rows, shown = [row for run in found.runs for row in run], sweep_view.find_sweep_of_study(found)
    sweep_view.draw_sweep_heading(rows, shown)
    view.draw_sweep_differences(request, shown)
    sweep_view.draw_study(found, machine)


draw_crossover_page()
