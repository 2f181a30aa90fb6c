"""The settings of the Compare page: a training, the devices it runs on, and its time budget.

The controls are in `controls`. What may be asked for is decided by `core.question.experiment` alone; a link that asks
for more gets its sentence here, before a control resets it.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core import units
from core.answer import expectations
from core.errors import InvalidValue, StoreError
from core.jobs.machine import Machine
from core.question import describe, models, refusals
from core.question.experiment import Contender, Experiment, Point
from core.question.fields import TRAINING, Training
from pages.shared import accelerators_view, controls, job_view, queries, session
from pages.shared.custom_files import CustomFile
from pages.shared.layout import Sides, draw_settings_line, two_abreast
from pages.shared.text import plain

WHOLE_HELP = (
    "Trains every epoch and tests what was learned. Without it a run ends as soon as it is certain which device is "
    "faster."
)


def draw_run_settings(machine: Machine | None, sides: Sides) -> Experiment | None:
    """Draw the controls, what the training that they make costs, and the button that asks for it; the question."""
    if machine and session.is_blank():
        _set_first_training(machine)
    with sides.settings:
        file = controls.choose_custom_training(sides.ask)
    return _draw_custom_settings(file, machine, sides) if file else _draw_catalogue_settings(machine, sides)


def _draw_custom_settings(file: CustomFile, machine: Machine | None, sides: Sides) -> Experiment | None:
    """Draw the settings of a training of one's own, of which nothing but a size can be set."""
    with sides.settings:
        fields = {**file.fields(), **controls.choose_custom_size()}
        chosen = controls.choose_devices(machine)
        limits = {**controls.choose_custom_limits(), "whole": False, "folder": str(file.path.parent)}
    with sides.ask:
        draw_settings_line(file.title, controls.join_titles(chosen))
        _, asked, fault = _make_question(fields, chosen, limits, machine, "")
        job_view.draw_run_button("Run", asked, fault, machine)
    return asked


def _draw_catalogue_settings(machine: Machine | None, sides: Sides) -> Experiment | None:
    stock = accelerators_view.list_recorded_accelerators(machine)
    with sides.settings:
        beside, both, below = st.container(), two_abreast(), st.container() if stock else None
        more = st.expander("More settings", **session.bind_view("more"))
    with both:
        dataset, family = controls.choose_dataset(), controls.choose_family()
        fields: dict[str, Any] = {
            "dataset": dataset.name,
            "model": family.name,
            **controls.choose_samples(dataset, family.name),
        }
        fields |= controls.choose_sizes(family, dataset.name)
        fields |= controls.choose_training_numbers(dataset.name, family.name)
    with more:
        seldom, limits = _draw_more_settings(dataset.name, family.name)
        fields |= seldom
        lanes = controls.choose_lanes(machine, Training(**fields))
    wanted = controls.make_recording_query(fields)
    with below or more:
        accelerators_view.choose_accelerator(stock, machine, wanted)  # first: beside one the CPU alone is enough
    with beside:
        chosen = controls.apply_lanes(controls.choose_devices(machine), lanes, machine)
    with sides.ask:
        named = (
            () if family.library else controls.abbreviate_training(dataset, family)
        )  # which the facts of a fit begin with
        draw_settings_line(*named, controls.join_titles(chosen))
        point, asked, fault = _make_question(fields, chosen, limits, machine, controls.refuse_lane_count(chosen, lanes))
        if point:
            _draw_training_facts(point)
        job_view.draw_run_button("Run", asked, fault, machine)
    with sides.settings:
        accelerators_view.draw_accelerators_table(stock, wanted)
    return asked


def _set_first_training(machine: Machine) -> None:
    """Begin with a training whose answer teaches something on this machine."""
    known, usual = functools.partial(queries.find_known_answers, machine=machine), Point()
    try:
        first = expectations.first_training(controls.pick_default_contenders(machine), known)
    except StoreError:  # whoever asks is told so
        first = usual
    session.set_initial_values(
        {name: value for name in TRAINING if (value := getattr(first, name)) != getattr(usual, name)}
    )


def _draw_training_facts(point: Point) -> None:
    if point.is_fit:
        st.caption(plain(describe.describe_question(point)))
        return
    network = point.network
    memory = units.format_memory(network.memory_bytes(point.batch_size))
    st.caption(
        f"**{units.format_count(network.parameters)}** parameters · "
        f"**{units.format_operations(network.flops_per_step(point.batch_size))}** a step · **{memory}** of memory · "
        f"**{units.format_count(point.steps_per_epoch)}** steps an epoch, {units.format_count(point.total_steps)} in "
        "all"
    )


def _draw_more_settings(dataset: str, model: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of the training that are seldom changed, and how far it goes."""
    whole = st.toggle("Whole training", False, help=WHOLE_HELP, **session.bind_control("whole"))
    limits = {"budget_s": float(controls.choose_stop("budget_s")), "whole": whole}
    fields = controls.choose_data_path(model)
    fields |= {**controls.choose_feeding(fields["data_path"], dataset, model), **controls.choose_seed()}
    return fields, limits


def _make_question(
    fields: Mapping[str, Any], chosen: Sequence[str], limits: Mapping[str, Any], machine: Machine | None, fault: str
) -> tuple[Point | None, Experiment | None, str]:
    """The training, whose cost is known without a device; the question; or why it cannot be asked, in one sentence."""
    fault = ("" if session.has_changed() else _find_link_fault(machine)) or fault
    point = None
    try:
        point = Point(**fields)
        contenders = tuple(Contender.parse(text) for text in chosen)
        asked = Experiment(point=point, contenders=contenders, **limits) if machine else None
    except InvalidValue as error:
        return point, None, fault or refusals.format_page_error(error)
    fault = fault or models.boosting.explain_missing_library(point.model)
    return point, None if fault else asked, fault


def _find_link_fault(machine: Machine | None) -> str:
    """Why the link that the session came with cannot be asked here, a sentence a fault; empty where it can."""
    link = session.read_arrived_settings()
    asked: list[Contender] = []
    _, faults = controls.parse_point(link)
    faults += controls.collect_faults(
        lambda: asked.extend(map(Contender.parse, link.get("devices", ()))),
        lambda: controls.check_lanes(link),
        lambda: controls.check_custom_size(link),
        lambda: _check_budget(link),
        lambda: Experiment(point=Point(), contenders=tuple(asked) or (Contender(),)),
    )
    if faults:
        return " ".join(faults)
    return controls.find_missing_device(tuple(asked), machine)


def _check_budget(link: Mapping[str, Sequence[str]]) -> None:
    """Refuse a budget that no run can have; raises InvalidValue."""
    if "budget_s" in link:
        Experiment(
            point=Point(), contenders=(Contender(),), budget_s=controls.parse_number("budget_s", link["budget_s"][-1])
        )
