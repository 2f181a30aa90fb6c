"""Crossover: the size from which one device wins, as a number with an interval."""

import streamlit as st

from core.jobs.job import Job
from core.jobs.machine import Machine
from core.question.sweep import Sweep
from pages.crossover import elsewhere, opened, progress, recorded, settings
from pages.shared.answer import sweep_view
from pages.shared.data import reads
from pages.shared.draw.text import told
from pages.shared.frame import layout
from pages.shared.job import asking, live
from pages.shared.link import links, memory, state


def page() -> None:
    """The settings beside what they led to, then what is known without measuring."""
    machine = asking.machine()
    view = state.view() or asking.ours(sweeps=True)
    opened.adopt(view, machine)
    sides = layout.sides("Crossover", asked=asking.measured(view))
    asked = settings.panel(machine, sides)
    with sides.answer:
        _answer(view, machine, asked)


def _answer(view: tuple[links.Kind, str] | None, machine: Machine | None, asked: Sweep | None) -> None:
    if view is not None:
        _view(view, machine, asked)
        st.divider()
    else:
        opened.aim(machine)
        asking.offer_others(sweeps=True)
        opened.known(asked, machine)
    recorded.own_timings()
    if view is None:
        recorded.table(machine)
        return
    with st.expander("Recorded studies", expanded=True, **state.bound_view("recorded_studies")) as part:
        if part.open:
            recorded.table(machine)


def _view(view: tuple[links.Kind, str], machine: Machine | None, asked: Sweep | None) -> None:
    """What the link names, or the sweep that is under way."""
    match view:
        case ("job", job_id):
            _job(job_id, machine)
        case ("sweep", sweep_id):
            _sweep(sweep_id, machine, asked)
        case ("study", study_id):
            _study(study_id, machine, asked)


@told(st.warning)
def _job(job_id: str, machine: Machine | None) -> None:
    job = reads.queue().job(job_id)
    if job.sweep is None:
        live.elsewhere(job)
    elif job.active:
        progress.draw(job)
    else:
        ended = elsewhere.ended if job.elsewhere else _ended
        ended(job, job.sweep, machine)


def _ended(job: Job, asked: Sweep, machine: Machine | None) -> None:
    rows = reads.job_rows(job)
    live.draw_end(job, again=lambda: asking.ask(asked, machine) if machine else None)
    progress.notes(job)
    sweep_view.whole(rows, asked, lambda: asking.again(asked, machine), machine)


def _sweep(sweep_id: str, machine: Machine | None, asked: Sweep | None) -> None:
    """What the store knows of a sweep that this session asked for, or that the settings of the link ask for."""
    known = memory.sweeps().get(sweep_id) or (asked if asked and asked.id == sweep_id else None)
    if machine is None:
        return
    if known is None:
        opened.unknown("The settings of this link were changed on the way, so it does not say which sweep it shows.")
        return
    opened.differs(asked, known)
    rows, _ = reads.answers(known, machine)
    sweep_view.whole(rows, known, lambda: asking.again(known, machine), machine)


@told(st.warning)
def _study(study_id: str, machine: Machine | None, asked: Sweep | None) -> None:
    found = reads.study(study_id)
    if found is None:
        opened.unknown(f"There is no study {study_id} here; it was measured elsewhere, or its files were removed.")
        return
    rows, shown = [row for run in found.runs for row in run], sweep_view.asked_by(found)
    sweep_view.heading(rows, shown)
    opened.differs(asked, shown)
    sweep_view.draw_study(found, machine)


page()
