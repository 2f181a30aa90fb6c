"""A result and the settings beside it: whether they ask for it, and what can be asked next from it."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.jobs.machine import Machine
from core.question.experiment import Experiment
from core.question.sweep import size_axes
from core.results.schema import Trial
from pages.shared.answer import run_view
from pages.shared.data import reads
from pages.shared.form import unlike
from pages.shared.frame import navigation
from pages.shared.job import asking
from pages.shared.link import links, state

CROSSOVER_HELP = "From which size of this model on the other device is faster: its other settings go with it."


def is_new_question(request: Experiment | None, view: tuple[links.Kind, str] | None) -> bool:
    """Whether the settings ask for another training than the run that is shown, if any is."""
    if request is None or view is None:
        return view is None
    shown = reads.find_rows(run_ids=[view[1]]) if view[0] == "run" else []
    known = run_view.make_run_question(shown) if shown else None
    return known is not None and known.point != request.point


def adopt_run_view(view: tuple[links.Kind, str] | None, machine: Machine | None) -> None:
    """Set the controls as the run or the job that a link opens was asked for, if the link says nothing of that."""
    unlike.adopt_view(view, machine, _make_run_values)


def _make_run_values(kind: links.Kind, name: str, machine: Machine) -> Mapping[str, Any]:
    shown = _find_question(kind, name)
    return _make_run_controls(shown, machine) if shown else {}


def _find_question(kind: links.Kind, name: str) -> Experiment | None:
    if kind == "job":
        return reads.open_queue().job(name).experiment
    trials = reads.find_rows(run_ids=[name])
    return run_view.make_run_question(trials) if trials else None


def draw_run_differences(request: Experiment, reference: Experiment, machine: Machine | None) -> None:
    """Say where the settings ask for something else than what is shown below."""
    if machine is None:
        return
    values = _make_run_controls(reference, machine)
    found = [
        *unlike.compare_points(request.point, reference.point),
        *unlike.compare_contenders(request.contenders, reference.contenders),
    ]
    unlike.draw_differences(found, values)


def _make_run_controls(reference: Experiment, machine: Machine) -> Mapping[str, Any]:
    """The values of the page's controls that ask for a run, as far as this machine can be asked for it."""
    values = unlike.make_point_values(reference.point)
    if values and all(contender.device in machine.device_names for contender in reference.contenders):
        values |= {"devices": [str(contender) for contender in reference.contenders], "lanes": []}
    return values


def draw_next_steps(trials: Sequence[Trial], reference: Experiment | None, machine: Machine | None) -> None:
    """What can be asked next, in a row."""
    with st.container(horizontal=True, key="onward"):
        draw_again(trials, machine)
        if reference:
            draw_crossover_link(reference)


def draw_crossover_link(reference: Experiment) -> None:
    """Lead to the sizes of a model at which the answer changes, with the settings of one."""
    point = reference.point
    if point.training or len(reference.contenders) < 2:
        return
    if st.button("Find the crossover", icon=":material/timeline:", width="stretch", help=CROSSOVER_HELP):
        varied = size_axes(point.model, point.dataset)[:1]
        link: dict[str, str | list[str]] = {
            n: value for n, value in links.make_brief_link(point).items() if n not in varied
        }
        link |= {"contenders": [str(contender) for contender in reference.contenders], "fair": "false"}
        state.restart_page("crossover", link)
        st.switch_page(navigation.CROSSOVER, query_params=link)


def draw_again(trials: Sequence[Trial], machine: Machine | None) -> None:
    """Offer to measure a result once more, on the machine that measured it."""
    asked = run_view.make_run_question(trials)
    if asked and machine and trials[0].machine_id != machine.environment.machine_id:
        st.caption("Measured on another machine")
    else:
        asking.draw_again_button(asked, machine)
        asking.draw_continue_button(asked, machine)
