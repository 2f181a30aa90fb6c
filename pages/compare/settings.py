"""The settings of the Compare page: a training, the devices it runs on, and its time budget.

The controls are in `controls`. What may be asked for is decided by `core.question.experiment` alone; a link that asks
for more gets its sentence here, before a control resets it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core import units
from core.errors import InvalidValue
from core.jobs.machine import Machine
from core.question.experiment import Contender, Experiment, Point
from pages.shared.answer import accelerators
from pages.shared.form import controls, devices, lane_controls
from pages.shared.link import state


@dataclass(frozen=True, kw_only=True)
class RunAsked:
    """What the settings ask: the question; the training alone, of known cost; and why it cannot be asked, if so."""

    experiment: Experiment | None = None
    point: Point | None = None
    fault: str = ""


def panel(machine: Machine | None, answer: Callable[[RunAsked], None]) -> None:
    """Draw the controls and read them; `answer` draws what can be done with the question, beside the devices."""
    data, model, training, beside = st.columns([1, 1, 1, 1.3], gap="medium")
    fields: dict[str, Any] = {}
    with data:
        dataset = controls.dataset()
        fields |= {"dataset": dataset.name, **controls.samples(dataset)}
    with model:
        family = controls.family()
        fields |= {"model": family.name, **controls.sizes(family, dataset.name)}
    with training:
        fields |= controls.training(dataset.name, family.name)
    with st.expander("More settings", **state.bound_view("more")):
        more, budget_s = _more(dataset.name, family.name)
        lanes = lane_controls.choose(machine, batch_size=fields["batch_size"], model=family.name)
    wanted = controls.looked_for({**fields, **more})
    with beside:
        accelerators.choose(machine, wanted)
        chosen = lane_controls.applied(devices.choose(machine), lanes, machine)
        answer(_ask({**fields, **more}, chosen, budget_s, machine, lane_controls.too_many(chosen, lanes)))
    accelerators.listing(machine, wanted)


def facts(point: Point) -> None:
    """Draw what a training costs, known before anything runs."""
    network = point.network
    memory = units.memory(network.memory_bytes(point.batch_size))
    st.markdown(
        f"**{units.count(network.parameters)}** parameters · "
        f"**{units.operations(network.flops_per_step(point.batch_size))}** a step · **{memory}** of memory · "
        f"**{units.count(point.steps_per_epoch)}** steps an epoch, {units.count(point.total_steps)} in all"
    )


def _more(dataset: str, model: str) -> tuple[dict[str, Any], float]:
    """Fields of the training that are seldom changed, and the time budget in seconds."""
    route, feeding, limits = st.columns([2, 1, 1], gap="medium")
    with route:
        fields = controls.data_path()
    with feeding:
        fields |= controls.feeding(fields["data_path"], dataset, model)
    with limits:
        budget_s = controls.ladder("budget_s")
        fields |= controls.seed()
    return fields, float(budget_s)


def _ask(
    fields: Mapping[str, Any], chosen: Sequence[str], budget_s: float, machine: Machine | None, fault: str
) -> RunAsked:
    fault = ("" if state.touched() else link_fault(machine)) or fault
    try:
        point = Point(**fields)
    except InvalidValue as error:
        return RunAsked(fault=fault or str(error))
    if machine is None:
        return RunAsked(point=point, fault=fault)
    try:
        contenders = tuple(Contender.parse(text) for text in chosen)
        asked = Experiment(point=point, contenders=contenders, budget_s=budget_s)
    except InvalidValue as error:
        return RunAsked(point=point, fault=fault or str(error))
    return RunAsked(experiment=None if fault else asked, point=point, fault=fault)


def link_fault(machine: Machine | None) -> str:
    """Why the link that the session came with cannot be asked here, in one sentence; empty where it can."""
    link = state.arrived()
    try:
        controls.point_of(link)
        asked = tuple(Contender.parse(text) for text in link.get("devices", ()))
        budget_s = controls.parsed("budget_s", link["budget_s"][-1]) if "budget_s" in link else 60.0
        lane_controls.check(link)
        Experiment(point=Point(), contenders=asked or (Contender(),), budget_s=budget_s)
    except InvalidValue as error:
        return str(error)
    return devices.missing(asked, machine)
