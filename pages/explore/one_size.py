"""The settings of a training at one size: its fields, the devices it runs on, and its time budget.

The controls are in `controls`. `core.question.experiment` alone decides what is allowed. The error of a link that
requests more is shown here, before a control resets the value.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core import units
from core.errors import InvalidValue
from core.jobs.machine import Machine
from core.question import describe, models
from core.question.experiment import Contender, Experiment, Point
from core.question.fields import Training
from core.question.presets import PRESETS
from pages.explore import picture
from pages.explore.picture import Settings
from pages.shared import accelerators_view, controls, job_view, session
from pages.shared.custom_files import CustomFile
from pages.shared.elements import plain
from pages.shared.layout import Sides, draw_settings_line, two_abreast

FIRST = dataclasses.replace(PRESETS["disc"].point_at_scale("class"), depth=11)
"""The question of the first tutorial, one layer beyond the published size at which the faster device changes.

At that size the devices are almost equally fast, so many runs would end without a winner. Recordings of two machines
come with the app.
"""

WHOLE_HELP = "Trains every epoch and tests the model. Off: a run ends as soon as one device is clearly faster."


def draw_run_settings(machine: Machine | None, sides: Sides) -> Settings:
    """Draw the controls, the cost of the training, and the button that starts it."""
    with sides.settings:
        file = controls.choose_custom_training(sides.ask)
    return _draw_custom_settings(file, machine, sides) if file else _draw_catalogue_settings(machine, sides)


def _draw_custom_settings(file: CustomFile, machine: Machine | None, sides: Sides) -> Settings:
    """Draw the settings of a custom script, whose only setting is a size."""
    with sides.settings:
        fields = {**file.fields(), **controls.choose_custom_size()}
        chosen = controls.choose_devices(machine)
        limits = {**controls.choose_custom_limits(), "whole": False, "folder": str(file.path.parent)}
    with sides.ask:
        draw_settings_line(file.title, controls.join_titles(chosen))
        point, asked, fault = _make_question(fields, chosen, limits, machine, "")
        job_view.draw_run_button("Run", asked, fault, machine)
    return Settings(request=asked, point=point, fault=fault)


def _draw_catalogue_settings(machine: Machine | None, sides: Sides) -> Settings:
    stock = accelerators_view.list_recorded_accelerators(machine)
    with sides.settings:
        beside, both, below = st.container(), two_abreast(), st.container() if stock else None
        more = st.expander("More settings", **session.bind_view("more"))
    with both:
        picture.choose_card(machine)
        over = st.container()
        dataset, family = controls.choose_dataset(), controls.choose_family()
        controls.choose_axis(family, dataset, over)
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
        accelerators_view.choose_accelerator(stock, machine, wanted)  # first: with one, the CPU alone is enough
    with beside:
        chosen = controls.apply_lanes(controls.choose_devices(machine), lanes, machine)
    with sides.ask:
        named = (
            () if family.library else controls.abbreviate_training(dataset, family)
        )  # the facts of a fit begin with these
        draw_settings_line(*named, controls.join_titles(chosen))
        point, asked, fault = _make_question(fields, chosen, limits, machine, controls.refuse_lane_count(chosen, lanes))
        if point:
            _draw_training_facts(point)
        job_view.draw_run_button("Run", asked, fault, machine)
    with sides.settings:
        accelerators_view.draw_accelerators_table(stock, wanted)
    usual = Point(dataset=dataset.name, model=family.name)
    return Settings(request=asked, point=point, fault=fault, usual=usual)


def set_first_training() -> None:
    """Set the controls to an instructive training that soon has a verdict."""
    usual = controls.make_point_values(Point())
    values = controls.make_point_values(FIRST)
    session.set_initial_values({name: value for name, value in values.items() if value != usual.get(name)})


def _draw_training_facts(point: Point) -> None:
    if point.is_fit:
        st.caption(plain(describe.describe_question(point)))
        return
    network = point.network
    memory = units.format_memory(network.memory_bytes(point.batch_size))
    steps = "step" if point.steps_per_epoch == 1 else "steps"
    st.caption(
        f"**{units.format_count(network.parameters)}** parameters · "
        f"**{units.format_operations(network.flops_per_step(point.batch_size))}** a step · **{memory}** of memory · "
        f"**{units.format_count(point.steps_per_epoch)}** {steps} per epoch, {units.format_count(point.total_steps)} "
        "in all"
    )


def _draw_more_settings(dataset: str, model: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw the rarely changed settings; return the fields of the training and its limits."""
    whole = st.toggle("Whole training", False, help=WHOLE_HELP, **controls.bind_switch("whole", False))
    limits = {"budget_s": float(controls.choose_stop("budget_s")), "whole": whole}
    fields = controls.choose_data_path(model)
    fields |= {**controls.choose_feeding(fields["data_path"], dataset, model), **controls.choose_seed()}
    return fields, limits


def _make_question(
    fields: Mapping[str, Any], chosen: Sequence[str], limits: Mapping[str, Any], machine: Machine | None, fault: str
) -> tuple[Point | None, Experiment | None, str]:
    """Return the training, whose cost needs no device, and the question, or why it is invalid, in one sentence."""
    fault = ("" if session.has_changed() else _find_link_fault(machine)) or fault
    point = None
    try:
        point = Point(**fields)
        contenders = tuple(Contender.parse(text) for text in chosen)
        asked = Experiment(point=point, contenders=contenders, **limits) if machine else None
    except InvalidValue as error:
        return point, None, fault or describe.format_page_error(error)
    fault = fault or models.families.explain_missing_library(point.model)
    return point, None if fault else asked, fault


def _find_link_fault(machine: Machine | None) -> str:
    """Return why the link of this session is invalid here, a sentence per fault; empty if it is valid."""
    link = session.read_arrived_settings()
    asked: list[Contender] = []
    _, faults = controls.parse_point(link)
    faults += controls.collect_faults(
        lambda: asked.extend(map(Contender.parse, link.get("devices", ()))),
        lambda: controls.check_lanes(link),
        lambda: controls.check_custom_size(link),
        lambda: _check_budget(link),
    )
    if faults:
        return " ".join(faults)
    return controls.find_missing_device(tuple(asked), machine)


def _check_budget(link: Mapping[str, Sequence[str]]) -> None:
    """Raise InvalidValue for a time budget outside the allowed range."""
    if "budget_s" in link:
        Experiment(
            point=Point(), contenders=(Contender(),), budget_s=controls.parse_number("budget_s", link["budget_s"][-1])
        )
