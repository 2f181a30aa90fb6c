"""The control of devices: what this machine can be asked to measure on, bound to the link."""

from collections.abc import Callable, Sequence

import streamlit as st

from core.jobs.machine import Machine
from core.question import experiment
from core.question.device_kinds import begun
from core.question.experiment import Contender
from core.question.usual import contenders
from pages.shared.data import reads
from pages.shared.form import controls
from pages.shared.link import choices, others

ONE_THREAD = Contender(threads=1)

DEVICES_HELP = "The first is what the others are compared with. The CPU without a number of threads tries several."


def choose_devices(machine: Machine | None, key: str = "devices") -> list[str]:
    """Draw the control; contenders in the machine's order, so that however they were clicked the question is one."""
    if machine is None:
        wait_for_devices()
        return []
    linked = controls.read_linked(key, lambda text: str(Contender.parse(text)))
    linked = [text for text in linked if Contender.parse(text).device in machine.device_names]
    options = list(dict.fromkeys([*map(str, list_contenders(machine)), *linked]))
    chosen = st.multiselect(
        "Devices",
        options,
        max_selections=experiment.MAX_CONTENDERS,
        help=DEVICES_HELP,
        **choices.bind_choice(
            key, options, [str(contender) for contender in pick_default_contenders(machine)], experiment.titled
        ),
    )
    return sorted(chosen, key=options.index)


def join_titles(chosen: Sequence[str]) -> str:
    """Contenders as people read them, in a line; names of lanes have commas themselves."""
    titles = [experiment.titled(text) for text in chosen]
    return ("; " if any("," in title for title in titles) else ", ").join(titles)


def wait_for_devices() -> None:
    """Wait for the measuring process to say what this machine has, where there is one."""
    if reason := reads.explain_no_runs():
        st.selectbox("Devices", ["none"], disabled=True)
        st.caption(reason)
    else:
        poll_machine(_draw_device_search)


def _draw_device_search() -> None:
    st.selectbox("Devices", ["Looking at this machine's devices…"], disabled=True)
    if waits_for := reads.describe_loading():
        st.caption(waits_for)


@st.fragment(run_every=0.5)
def poll_machine(draw: Callable[[], object]) -> None:
    """Draw what stands here until the measuring process has said what this machine has."""
    if reads.read_machine() is not None:
        st.rerun()
    draw()


def list_contenders(machine: Machine) -> tuple[Contender, ...]:
    """What this machine can train on, the baseline first."""
    others = tuple(Contender(device=info.device) for info in machine.devices if info.kind != "cpu")
    if others:
        return (Contender(), ONE_THREAD, *others)
    return (*contenders(machine.device_names, machine.environment.cores_usable), Contender())


def pick_default_contenders(machine: Machine) -> tuple[Contender, ...]:
    """What is compared unless asked otherwise; beside a recorded accelerator the CPU alone is enough."""
    if others.read_accelerator() and len(machine.devices) == 1:
        return (Contender(),)
    return contenders(machine.device_names, machine.environment.cores_usable)


def find_missing_device(request: Sequence[Contender], machine: Machine | None) -> str:
    """In a sentence, the device that was asked for and is not here; empty if none."""
    absent = [contender.device for contender in request if machine and contender.device not in machine.device_names]
    if machine is None or not absent:
        return ""
    seen = " and ".join(map(experiment.spoken, machine.device_names))
    return f"{begun(experiment.spoken(absent[0]))} is not on this machine: PyTorch sees {seen}."
