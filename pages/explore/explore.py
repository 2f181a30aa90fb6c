"""Explore: one training on several devices, at one size or at a range of them, with a picture that answers first."""

import contextlib
import functools

import streamlit as st

from core.errors import CrossoverError
from core.jobs import client
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.question.experiment import Experiment
from core.question.sweep import Sweep
from core.results.schema import Trial
from pages.explore import picture, shown_settings, view
from pages.explore.settings import draw_run_settings, draw_sweep_settings, set_first_training
from pages.shared import (
    accelerators_view,
    elements,
    expectations,
    job_view,
    layout,
    links,
    queries,
    run_view,
    session,
    sweep_view,
)
from pages.shared.elements import plain, show_errors

QUESTION = "When does training on a GPU pay off?"


def draw_explore_page() -> None:
    """Draw the settings next to the result, then for a range of sizes the stored studies."""
    machine = job_view.find_machine()
    shown = session.read_view() or job_view.find_visitor_job()
    shown_settings.adopt_shown(shown, machine)
    if shown is None and session.is_blank():
        set_first_training()
    sides = layout.sides("Explore", asked=job_view.describe_measured_job(shown))
    with sides.settings:
        is_range = view.choose_sizes() == "range"
    draw_settings = draw_sweep_settings if is_range else draw_run_settings
    settings = draw_settings(machine, sides)
    with sides.answer, show_errors():
        st.caption(f"**{QUESTION}**")
        _draw_picture(shown, settings, machine)
        _draw_answer(shown, machine, settings.request)
        if is_range:
            _draw_stored(machine, is_alone=shown is None)


def _draw_picture(shown: tuple[links.Kind, str] | None, settings: picture.Settings, machine: Machine | None) -> None:
    """Draw the picture of the settings; during a measurement, update it with every new point."""
    draw = functools.partial(
        picture.draw_picture,
        settings,
        machine,
        axis=session.find_value("axis"),
        card=session.find_value("card"),
        shown=_find_shown_rows(shown),
    )

    @st.fragment(run_every=job_view.CHART_REFRESH_S)
    def follow(job_id: str) -> None:
        draw(fresh=queries.find_job_rows(queries.open_queue().job(job_id)))

    if shown and shown[0] == "job":
        with contextlib.suppress(CrossoverError):  # shown with the job
            if queries.open_queue().job(shown[1]).active:
                follow(shown[1])
                return
    draw()


def _find_shown_rows(shown: tuple[links.Kind, str] | None) -> list[Trial]:
    """Return the rows of the run or study that the link names."""
    with contextlib.suppress(CrossoverError):  # shown with the result
        if shown and shown[0] == "run":
            return queries.find_rows(run_ids=[shown[1]])
        if shown and shown[0] == "study" and (study := queries.find_study(shown[1])):
            return [row for run in study.runs for row in run]
    return []


def _draw_answer(
    shown: tuple[links.Kind, str] | None, machine: Machine | None, request: Experiment | Sweep | None
) -> None:
    """Draw the result that the link names, or the prediction and stored results for the settings."""
    run = request if isinstance(request, Experiment) else None
    sweep = request if isinstance(request, Sweep) else None
    if session.read_accelerator() and view.is_new_question(run, shown):  # not in the picture
        with show_errors():
            expectations.draw_expectation(run, machine)
    match shown:
        case ("job", job_id):
            _draw_job_by_id(job_id, machine)
        case ("run", run_id):
            _draw_run_by_id(run_id, machine, run)
        case ("sweep", sweep_id):
            _draw_sweep_by_id(sweep_id, machine, sweep)
        case ("study", study_id):
            _draw_study_by_id(study_id, machine, sweep)
        case _:
            _draw_opening(machine, request)


def _draw_opening(machine: Machine | None, request: Experiment | Sweep | None) -> None:
    """Draw the page without a result: running jobs, earlier results, and how the page works."""
    job_view.offer_running_jobs()
    if isinstance(request, Sweep):
        view.draw_known_study(request, machine)
    else:
        with show_errors():
            queries.read_overview()
    view.draw_welcome(machine, is_custom=bool(request and request.point.training))


def _draw_stored(machine: Machine | None, *, is_alone: bool) -> None:
    if not is_alone:
        st.divider()
    view.draw_custom_timings()
    if is_alone:
        view.draw_studies_table(machine)
        return
    with st.expander("Recorded studies", expanded=True, **session.bind_view("recorded_studies")) as part:
        if part.open:
            view.draw_studies_table(machine)


def _draw_job_by_id(job_id: str, machine: Machine | None) -> None:
    job = None
    with show_errors(st.warning):
        job = queries.open_queue().job(job_id)
    if job is None:
        _draw_opening(machine, None)
    else:
        _draw_job(job, machine)


@show_errors(st.warning)
def _draw_job(job: Job, machine: Machine | None) -> None:
    if job.experiment is not None:
        draw, end = job_view.draw_job, functools.partial(_draw_ended_run, request=job.experiment)
    elif job.sweep is not None:
        draw = view.draw_sweep_job
        end = functools.partial(view.draw_remote_end if job.elsewhere else _draw_ended_sweep, request=job.sweep)
    else:
        job_view.point_to_job_page(job)
        return
    if job.active:
        draw(job)
        st.caption(plain(job_view.describe_measured_job(("job", job.id))))
        if again := job_view.explain_second_measurement(job, machine):
            st.caption(plain(again))
    else:
        end(job, machine=machine)


def _draw_ended_run(job: Job, request: Experiment, machine: Machine | None) -> None:
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
        _draw_opening(machine, None)
        return
    shown = run_view.make_run_question(trials)
    if request and shown:
        shown_settings.draw_run_differences(request, shown, machine)
    run_view.draw_run_heading(trials)
    onwards = functools.partial(view.draw_next_steps, trials, shown, machine)
    with elements.draw_index():
        run_view.draw_run(trials, accelerators_view.find_recorded_rows(trials, machine), machine, onwards)


def _draw_ended_sweep(job: Job, request: Sweep, machine: Machine | None) -> None:
    rows = queries.find_job_rows(job)
    job_view.draw_job_end(job, again=lambda: job_view.ask_question(request, machine) if machine else None)
    view.draw_sweep_notes(job)
    sweep_view.draw_whole_sweep(rows, request, lambda: job_view.draw_again_button(request, machine), machine)


def _draw_sweep_by_id(sweep_id: str, machine: Machine | None, request: Sweep | None) -> None:
    """Draw the stored results of the sweep that this session or the link requested."""
    known = session.read_asked_sweeps().get(sweep_id) or (request if request and request.id == sweep_id else None)
    if machine is None:
        return
    if known is None:
        view.draw_unknown_link("This link was damaged, so it does not name a sweep.")
        return
    shown_settings.draw_sweep_differences(request, known)
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
    shown_settings.draw_sweep_differences(request, shown)
    sweep_view.draw_study(found, machine)


draw_explore_page()
