"""Compare: one training on several devices, side by side."""

from collections.abc import Sequence

import streamlit as st

from core.jobs import client
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.question import models
from core.question.experiment import Experiment
from core.results.schema import Trial
from pages.compare import settings, welcome
from pages.shared.answer import accelerators, expectation, run_view
from pages.shared.data import reads
from pages.shared.draw.text import told
from pages.shared.form import unlike
from pages.shared.frame import layout, navigation
from pages.shared.job import asking, live
from pages.shared.link import links, state

CROSSOVER_HELP = "From which size of this model on the other device is faster: its other settings go along."


def page() -> None:
    """The settings beside what they led to."""
    machine = asking.machine()
    view = state.view() or asking.ours(sweeps=False)
    sides = layout.sides("Compare", asked=asking.measured(view))
    asked = settings.panel(machine, sides)
    with sides.answer:
        if _is_new(asked, view):
            with told():
                expectation.draw(asked, machine)
        _view(view, machine, asked)


def _is_new(asked: Experiment | None, view: tuple[links.Kind, str] | None) -> bool:
    """Whether the settings ask for another training than the run that is shown, if any is."""
    if asked is None or view is None:
        return view is None
    shown = reads.rows(run_ids=[view[1]]) if view[0] == "run" else []
    known = run_view.experiment_of(shown) if shown else None
    return known is not None and known.point != asked.point


def _view(view: tuple[links.Kind, str] | None, machine: Machine | None, asked: Experiment | None) -> None:
    """The job or the run that the link names; without one, the measurement that is under way; else what to expect."""
    match view:
        case ("job", job_id):
            _job(job_id, machine)
        case ("run", run_id):
            _run(run_id, machine, asked)
        case _:
            asking.offer_others(sweeps=False)
            welcome.draw(machine)


@told(st.warning)
def _job(job_id: str, machine: Machine | None) -> None:
    job = reads.queue().job(job_id)
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
        return
    shown = run_view.experiment_of(trials)
    if asked and shown:
        _differs(asked, shown, machine)
    words, action = st.columns([3, 1], vertical_alignment="center")
    with words:
        run_view.heading(trials)
    with action:
        _again(trials, machine)
        if shown:
            _crossover(shown)
    run_view.draw(trials, accelerators.beside(trials, machine), machine)


def _differs(asked: Experiment, shown: Experiment, machine: Machine | None) -> None:
    """Say where the settings ask for something else than what is shown below."""
    if machine is None or shown.point.training:
        return
    values = unlike.point_values(shown.point)
    if all(contender.device in machine.device_names for contender in shown.contenders):
        values |= {"devices": [str(contender) for contender in shown.contenders], "lanes": []}
    found = [*unlike.points(asked.point, shown.point), *unlike.contenders(asked.contenders, shown.contenders)]
    unlike.say(found, values)


def _crossover(shown: Experiment) -> None:
    """Lead to the sizes of a model at which the answer changes, with the settings of one."""
    point = shown.point
    if point.training or len(shown.contenders) < 2:
        return
    if st.button("Find the crossover", icon=":material/timeline:", width="stretch", help=CROSSOVER_HELP):
        varied = models.family(point.model).axes[:1]
        link: dict[str, str | list[str]] = {n: value for n, value in links.brief(point).items() if n not in varied}
        link |= {"contenders": [str(contender) for contender in shown.contenders], "fair": "false"}
        state.start("crossover", link)
        st.switch_page(navigation.CROSSOVER, query_params=link)


def _again(trials: Sequence[Trial], machine: Machine | None) -> None:
    asked = run_view.experiment_of(trials)
    if asked and machine and trials[0].machine_id != machine.environment.machine_id:
        st.caption("Measured on another machine")
    else:
        asking.again(asked, machine)
        asking.go_on(asked, machine)


page()
