"""What Compare shows beside a run: how the page works, and what can be asked next."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.jobs.machine import Machine
from core.question.experiment import Experiment
from core.question.sweep import size_axes
from core.results.schema import Trial
from pages.shared import controls, job_view, links, navigation, queries, run_view, session
from pages.shared.text import plain

WELCOME = """
1. **Set** a training; what it costs is shown as you change it.
2. **Run** trains it on every chosen device, in turns{alike}.
3. **Read** which device is faster, by how much (with an interval), why, and whether both learned the same.

The measurement runs in a process of its own: you may close this page and come back. The same settings asked again are
answered at once from the store.
"""

ALIKE = ", from the same weights and with the same batches"

WITHOUT_ACCELERATOR = (
    "So Compare sets one CPU thread against all of them. With an accelerator, it would train on the CPU and on that."
)
RECORDED = (
    "So Compare trains on the CPU here, and sets what the accelerator that you chose did elsewhere beside it: two "
    "machines."
)


def draw_welcome(machine: Machine | None, *, is_custom: bool = False) -> None:
    """Draw how the page works, of a custom training too, and what is missing where there is no accelerator."""
    st.header("How this works")
    st.markdown(WELCOME.format(alike="; it is built anew for each" if is_custom else ALIKE))
    if machine and len(machine.devices) == 1:
        instead = RECORDED if session.read_accelerator() else WITHOUT_ACCELERATOR
        st.info(f"**No accelerator is seen here.** {plain(machine.hint)}\n\n{instead}")
    controls.invite_custom_training()


CROSSOVER_HELP = "From which size of this model on the other device is faster: its other settings go with it."


def is_new_question(request: Experiment | None, view: tuple[links.Kind, str] | None) -> bool:
    """Whether the settings ask for another training than the run that is shown, if any is."""
    if request is None or view is None:
        return view is None
    shown = queries.find_rows(run_ids=[view[1]]) if view[0] == "run" else []
    known = run_view.make_run_question(shown) if shown else None
    return known is not None and known.point != request.point


def adopt_run_view(view: tuple[links.Kind, str] | None, machine: Machine | None) -> None:
    """Set the controls as the run or the job that a link opens was asked for, if the link says nothing of that."""
    controls.adopt_view(view, machine, _make_run_values)


def _make_run_values(kind: links.Kind, name: str, machine: Machine) -> Mapping[str, Any]:
    shown = _find_question(kind, name)
    return _make_run_controls(shown, machine) if shown else {}


def _find_question(kind: links.Kind, name: str) -> Experiment | None:
    if kind == "job":
        return queries.open_queue().job(name).experiment
    trials = queries.find_rows(run_ids=[name])
    return run_view.make_run_question(trials) if trials else None


def draw_run_differences(request: Experiment, reference: Experiment, machine: Machine | None) -> None:
    """Say where the settings ask for something else than what is shown below."""
    if machine is None:
        return
    values = _make_run_controls(reference, machine)
    found = [
        *controls.compare_points(request.point, reference.point),
        *controls.compare_contenders(request.contenders, reference.contenders),
    ]
    controls.draw_differences(found, values)


def _make_run_controls(reference: Experiment, machine: Machine) -> Mapping[str, Any]:
    """The values of the page's controls that ask for a run, as far as this machine can be asked for it."""
    values = controls.make_point_values(reference.point)
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
        session.restart_page("crossover", link)
        st.switch_page(navigation.CROSSOVER, query_params=link)


def draw_again(trials: Sequence[Trial], machine: Machine | None) -> None:
    """Offer to measure a result once more, on the machine that measured it."""
    asked = run_view.make_run_question(trials)
    if asked and machine and trials[0].machine_id != machine.environment.machine_id:
        st.caption("Measured on another machine")
    else:
        job_view.draw_again_button(asked, machine)
        job_view.draw_continue_button(asked, machine)
