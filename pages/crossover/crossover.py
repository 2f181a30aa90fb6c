"""Crossover: the size from which one device wins, as a number with an interval."""

import streamlit as st

from core.jobs.job import Job
from core.jobs.machine import Machine
from core.question.sweep import Sweep
from pages.crossover import elsewhere, opened, progress, recorded, settings
from pages.shared.answer import sweep_view
from pages.shared.data import reads
from pages.shared.draw.text import show_errors
from pages.shared.frame import layout
from pages.shared.job import asking, live
from pages.shared.link import links, memory, state


def draw_crossover_page() -> None:
    """The settings beside what they led to, then what is known without measuring."""
    machine = asking.find_machine()
    view = state.read_view() or asking.find_visitor_job(sweeps=True)
    opened.adopt_sweep_view(view, machine)
    sides = layout.sides("Crossover", asked=asking.describe_measured_job(view))
    asked = settings.draw_sweep_settings(machine, sides)
    with sides.answer:
        _draw_answer(view, machine, asked)


def _draw_answer(view: tuple[links.Kind, str] | None, machine: Machine | None, request: Sweep | None) -> None:
    if view is not None:
        _draw_view(view, machine, request)
        st.divider()
    else:
        opened.draw_aim(machine)
        asking.offer_running_jobs(sweeps=True)
        opened.draw_known_study(request, machine)
    recorded.draw_custom_timings()
    if view is None:
        recorded.draw_studies_table(machine)
        return
    with st.expander("Recorded studies", expanded=True, **state.bind_view("recorded_studies")) as part:
        if part.open:
            recorded.draw_studies_table(machine)


def _draw_view(view: tuple[links.Kind, str], machine: Machine | None, request: Sweep | None) -> None:
    """What the link names, or the sweep that is under way."""
    match view:
        case ("job", job_id):
            _draw_job_by_id(job_id, machine)
        case ("sweep", sweep_id):
            _draw_sweep_by_id(sweep_id, machine, request)
        case ("study", study_id):
            _draw_study_by_id(study_id, machine, request)


@show_errors(st.warning)
def _draw_job_by_id(job_id: str, machine: Machine | None) -> None:
    job = reads.open_queue().job(job_id)
    if job.sweep is None:
        live.point_to_job_page(job)
    elif job.active:
        progress.draw_sweep_job(job)
    else:
        ended = elsewhere.draw_remote_end if job.elsewhere else _draw_ended_sweep
        ended(job, job.sweep, machine)


def _draw_ended_sweep(job: Job, request: Sweep, machine: Machine | None) -> None:
    rows = reads.find_job_rows(job)
    live.draw_job_end(job, again=lambda: asking.ask_question(request, machine) if machine else None)
    progress.draw_sweep_notes(job)
    sweep_view.draw_whole_sweep(rows, request, lambda: asking.draw_again_button(request, machine), machine)


def _draw_sweep_by_id(sweep_id: str, machine: Machine | None, request: Sweep | None) -> None:
    """What the store knows of a sweep that this session asked for, or that the settings of the link ask for."""
    known = memory.read_asked_sweeps().get(sweep_id) or (request if request and request.id == sweep_id else None)
    if machine is None:
        return
    if known is None:
        opened.draw_unknown_link(
            "The settings of this link were changed on the way, so it does not say which sweep it shows."
        )
        return
    opened.draw_sweep_differences(request, known)
    rows, _ = reads.find_sweep_answers(known, machine)
    sweep_view.draw_whole_sweep(rows, known, lambda: asking.draw_again_button(known, machine), machine)


@show_errors(st.warning)
def _draw_study_by_id(study_id: str, machine: Machine | None, request: Sweep | None) -> None:
    found = reads.find_study(study_id)
    if found is None:
        opened.draw_unknown_link(
            f"There is no study {study_id} here; it was measured elsewhere, or its files were removed."
        )
        return
    rows, shown = [row for run in found.runs for row in run], sweep_view.find_sweep_of_study(found)
    sweep_view.draw_sweep_heading(rows, shown)
    opened.draw_sweep_differences(request, shown)
    sweep_view.draw_study(found, machine)


draw_crossover_page()
