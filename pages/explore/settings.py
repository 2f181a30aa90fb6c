"""The settings of a training, at one size or at a range of sizes: its fields, the devices it runs on, its time budget.

The controls are in `controls`. At a range, the control of a varied field is replaced by the range of its values.
`core.question.experiment` and `core.question.sweep` alone decide what is allowed. The error of a link that requests
more is shown here, before a control resets the value.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core import units
from core.answer import wording
from core.errors import CrossoverError, InvalidValue, StoreError, require_choice
from core.jobs.machine import Machine
from core.question import describe, experiment, models
from core.question.experiment import Contender, Experiment, Point
from core.question.fields import FIELDS, LOADER_PATHS, OTHER_AXES, Training, axis_title
from core.question.presets import PRESETS
from core.question.sweep import LIMITS, Axis, Sweep, size_axes
from pages.explore import picture, view
from pages.explore.picture import Settings
from pages.shared import accelerators_view, controls, job_view, links, queries, session
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
    return _draw_custom_one_size(file, machine, sides) if file else _draw_one_size_settings(machine, sides)


def _draw_custom_one_size(file: CustomFile, machine: Machine | None, sides: Sides) -> Settings:
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


def _draw_one_size_settings(machine: Machine | None, sides: Sides) -> Settings:
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
    fault = ("" if session.has_changed() else _find_run_link_fault(machine)) or fault
    point = None
    try:
        point = Point(**fields)
        contenders = tuple(Contender.parse(text) for text in chosen)
        asked = Experiment(point=point, contenders=contenders, **limits) if machine else None
    except InvalidValue as error:
        return point, None, fault or describe.format_page_error(error)
    fault = fault or models.families.explain_missing_library(point.model)
    return point, None if fault else asked, fault


def _find_run_link_fault(machine: Machine | None) -> str:
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


MAX_MORE_AXES = 3
"""Axes after the first."""

ADAPTIVE_HELP = "Measures only the sizes that narrow down the crossover. Off: measures every doubling of the range."
ALSO_HELP = "Measures every combination with these values too, for a map and a sorted table."
FAIR_HELP = (
    "Many comparisons give the CPU only one thread. This measures both and shows how far that moves the crossover."
)


NOT_KNOWN_YET = ("cpu@1", "cpu")
"""Placeholder contenders of a sweep until the devices of this machine are known: any two devices."""


@dataclass(frozen=True, kw_only=True)
class Varied:
    """Values of the axis controls: the range or sizes of the first axis, and the values of the others."""

    axis: str
    ends: tuple[float, float]
    others: Mapping[str, tuple[float, ...]]
    adaptive: bool
    sizes: tuple[float, ...] = ()

    @property
    def span(self) -> str:
        """The ends of the first axis in words: "16 to 2,048"."""
        return " to ".join(map(wording.format_size, self.ends))

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the sweep; raises InvalidValue if a range or a value is invalid."""
        if self.sizes:
            first = Axis(name=self.axis, values=self.sizes)
        else:
            first = Axis.from_range(self.axis, *self.ends, adaptive=self.adaptive)
        return (first, *(Axis(name=name, values=values) for name, values in self.others.items()))


def draw_sweep_settings(machine: Machine | None, sides: Sides) -> Settings:
    """Draw the controls, a summary of the sweep, and the button that starts it."""
    with sides.settings:
        file = controls.choose_custom_training(sides.ask)
    return _draw_custom_range(file, machine, sides) if file else _draw_range_settings(machine, sides)


def _draw_custom_range(file: CustomFile, machine: Machine | None, sides: Sides) -> Settings:
    """Draw the settings of a custom script, which has one axis."""
    with sides.settings:
        chosen = _choose_sweep_devices(machine)
        ends = _choose_range("size", list(controls.CUSTOM_SIZES))
        adaptive = st.toggle("Adaptive search", True, help=ADAPTIVE_HELP, **controls.bind_switch("adaptive", True))
        with st.expander("More settings", **session.bind_view("more")):
            bounds = _choose_bounds()
    varied = Varied(axis="size", ends=ends, others={}, adaptive=adaptive)
    with sides.ask:
        draw_settings_line(file.title, f"size {varied.span}", controls.join_titles(chosen))
        asked, fault = _make_sweep_question(
            file.fields(), varied, chosen, bounds, machine, "", folder=str(file.path.parent)
        )
        if asked:
            st.caption(
                f"{_count_points(asked)} · takes at most {units.format_duration(asked.budget_s)} plus the time of "
                "the last one"
            )
        job_view.draw_run_button("Find the crossover", asked, fault, machine)
    return Settings(request=asked, point=asked.point if asked else None, fault=fault, is_range=True)


def _choose_bounds() -> dict[str, float]:
    return {field: controls.choose_stop(name, minimum=LIMITS[field][0]) for name, field in links.SWEEP_LIMITS.items()}


def _draw_range_settings(machine: Machine | None, sides: Sides) -> Settings:
    with sides.settings:
        first, over = st.container(gap="xsmall"), st.container(gap="xsmall")
        data = model = two_abreast()
        beside = st.container(gap="xsmall")
        more = st.expander("More settings", **session.bind_view("more"))
    with data:
        dataset = controls.choose_dataset()
    with model:
        family = controls.choose_family()
    axes, axis = size_axes(family.name, dataset.name), controls.choose_axis(family, dataset, over)
    with more:
        fields = controls.choose_data_path(family.name)
        also = _choose_more_axes(axis, axes, family, fields["data_path"])
    taken = describe.fields_set_by_axes((axis, *also), family)
    with data:
        fields |= {"dataset": dataset.name, **controls.choose_samples(dataset, family.name, taken)}
    with model:
        fields |= {"model": family.name, **controls.choose_sizes(family, dataset.name, taken)}
    with data:
        fields |= controls.choose_training_numbers(dataset.name, family.name, taken)
    with more:
        fields |= {
            **controls.choose_feeding(fields["data_path"], dataset.name, family.name, taken),
            **controls.choose_seed(),
        }
        bounds = _choose_bounds()
        lanes = controls.choose_lanes(machine, Training(**{"batch_size": 0, **fields}))
    wanted = _make_accelerator_query(fields, family, axis)
    with sides.ask:
        where = view.choose_measuring_place()
    stock = accelerators_view.list_recorded_accelerators(machine)
    with beside if stock else more:
        accelerator = accelerators_view.choose_accelerator(stock, machine, wanted, axis)
    with over:
        sizes = accelerators_view.choose_recorded_sizes(accelerator, wanted, axis)
        varied = _choose_varied(
            axis, also, sizes, dataset=dataset.name, family=family, samples=fields.get("samples", 0)
        )
    with first:
        chosen = (
            view.choose_remote_devices()
            if where
            else controls.apply_lanes(_choose_sweep_devices(machine), lanes, machine)
        )
        picture.choose_card(machine)
    with sides.ask:
        draw_settings_line(
            *controls.abbreviate_training(dataset, family),
            f"{axis_title(axis)} {varied.span}",
            controls.join_titles(chosen),
        )
        asked, fault = _make_sweep_question(
            fields, varied, chosen, bounds, machine, controls.refuse_lane_count(chosen, lanes)
        )
        if asked:
            _draw_sweep_facts(asked, None if where else machine)
        job_view.draw_run_button("Find the crossover", asked, fault, machine, where)
    with sides.settings:
        accelerators_view.draw_accelerators_table(stock, wanted, axis)
    usual = experiment.Point(dataset=dataset.name, model=family.name)
    point = asked.point if asked else None
    return Settings(request=asked, point=point, fault=fault, usual=usual, is_range=True)


def _draw_sweep_facts(sweep: Sweep, machine: Machine | None) -> None:
    counts = queries.count_parameters(sweep)
    low, high = units.format_count(min(counts)), units.format_count(max(counts))
    span = "" if sweep.point.is_fit else f" · {low if low == high else f'{low} to {high}'} parameters"
    st.caption(f"{_count_points(sweep)}{span}{_describe_duration(sweep, machine)}")


def _count_points(sweep: Sweep) -> str:
    count = len(sweep.points)
    return f"Up to **{count}** sizes to choose from" if sweep.adaptive else f"**{count}** points"


def _describe_duration(sweep: Sweep, machine: Machine | None) -> str:
    if machine is None:
        return ""
    try:
        least, most = map(units.format_rough_time, queries.estimate_sweep_seconds(sweep, machine))
    except StoreError:  # shown when the sweep is started
        return ""
    expected = least if least == most else f"{least} to {most}"
    return f" · expected to take **{expected}**, at most about {units.format_duration(sweep.budget_s)}"


def _choose_more_axes(axis: str, axes: Sequence[str], family: models.Family, path: str) -> tuple[str, ...]:
    others = [name for name in (*axes, *OTHER_AXES) if name not in (axis, "loader_workers")]
    others += ["loader_workers"] if path in LOADER_PATHS else []
    if "parameters" in (axis, *others):
        clash = {family.size} if axis == "parameters" else {"parameters"}
        others = [name for name in others if name not in clash]
    bound = session.bind_choice(
        "also", others, [], functools.partial(controls.label_field, model=family.name), most=MAX_MORE_AXES
    )
    chosen = st.multiselect(
        "Vary also", others, max_selections=MAX_MORE_AXES, placeholder="nothing else", help=ALSO_HELP, **bound
    )
    controls.say_cut("also", MAX_MORE_AXES, "settings to vary")
    return tuple(sorted(chosen, key=others.index))


def _make_accelerator_query(fields: Mapping[str, Any], family: models.Family, axis: str) -> Mapping[str, object] | None:
    """Return the training whose recordings at any size are searched; None if the settings are invalid."""
    varied = family.size if axis == "parameters" else axis
    lowest = 0 if axis == "samples" else FIELDS[varied].low
    return controls.make_recording_query({**fields, varied: int(lowest)})


def _choose_varied(
    axis: str, also: Sequence[str], sizes: tuple[float, ...], *, dataset: str, family: models.Family, samples: int
) -> Varied:
    stops = functools.partial(_list_stops, dataset=dataset, family=family, samples=samples)
    ends = (sizes[0], sizes[-1]) if sizes else _choose_range(axis, stops(axis))
    others = {name: _choose_values(name, stops(name)) for name in also}
    adaptive = not (also or sizes) and st.toggle(
        "Adaptive search", True, help=ADAPTIVE_HELP, **controls.bind_switch("adaptive", True)
    )
    return Varied(axis=axis, ends=ends, others=others, adaptive=adaptive, sizes=sizes)


def _list_stops(axis: str, *, dataset: str, family: models.Family, samples: int) -> list[float]:
    low, high = experiment.value_range(axis, dataset=dataset, model=family.name)
    if axis == "batch_size" and samples:
        high = min(high, samples)
    stops = FIELDS[axis].axis_stops or FIELDS[axis].stops or range(int(low), int(high) + 1)
    return [describe.simplify_number(stop) for stop in stops if low <= stop <= high]


def _choose_range(axis: str, stops: list[float]) -> tuple[float, float]:
    key = links.RANGE.format(axis=axis)
    linked = [value for value in controls.read_linked_numbers(key) if _is_possible(axis, value)]
    stops = sorted({*stops, *linked})
    low, high = (min(stops, key=lambda stop: abs(stop - end)) for end in FIELDS[axis].usual_range)
    bound = session.bind_numbers(key, stops, (low, high))
    chosen = st.select_slider(f"{FIELDS[axis].label} from … to", stops, value=(low, high), **bound)
    return chosen[0], chosen[1]


def _choose_values(axis: str, stops: list[float]) -> tuple[float, ...]:
    key = links.VALUES.format(axis=axis)
    stops = sorted({*stops, *controls.read_linked_numbers(key)})
    usual = [value for value in FIELDS[axis].usual_values if value in stops] or stops[:1]
    bound = session.bind_numbers(key, stops, usual)
    return tuple(sorted(st.multiselect(f"{FIELDS[axis].label}, each of", stops, **bound)))


def _choose_sweep_devices(machine: Machine | None) -> list[str]:
    chosen = controls.choose_devices(machine, "contenders")
    if machine is None:
        return []
    if len(machine.devices) == 1:
        return chosen
    fair = st.toggle("Fair CPU: also against one thread", True, help=FAIR_HELP, **controls.bind_switch("fair", True))
    if not fair or str(Contender()) not in chosen or str(controls.ONE_THREAD) in chosen or len(chosen) < 2:
        return chosen
    return [chosen[0], str(controls.ONE_THREAD), *chosen[1:]]


def _make_sweep_question(
    fields: Mapping[str, Any],
    varied: Varied,
    chosen: Sequence[str],
    bounds: Mapping[str, float],
    machine: Machine | None,
    fault: str,
    folder: str = "",
) -> tuple[Sweep | None, str]:
    """Return the question that the settings make, or why they are invalid, in one sentence."""
    fault = ("" if session.has_changed() else _find_range_link_fault(machine)) or fault
    try:
        contenders = tuple(chosen) if machine else NOT_KNOWN_YET
        asked = queries.make_sweep(fields, varied.axes, contenders, varied.adaptive, bounds, folder)
        if machine and len(asked.contenders) < 2 and not session.read_accelerator():
            raise InvalidValue("contenders", ", ".join(chosen), "at least two different devices")
    except CrossoverError as error:
        return None, fault or describe.format_page_error(error)
    fault = fault or models.families.explain_missing_library(asked.point.model)
    return None if fault else asked, fault


def _find_range_link_fault(machine: Machine | None) -> str:
    """Return why the link of this session is invalid here, a sentence per fault; empty if it is valid."""
    link = session.read_arrived_settings()
    asked: list[Contender] = []
    point, faults = controls.parse_point(link)
    axes = size_axes(point.model, point.dataset)
    axis = (link.get("axis") or axes[:1])[-1]
    limits = [(name, field, link[name][-1]) for name, field in links.SWEEP_LIMITS.items() if name in link]
    faults += controls.collect_faults(
        lambda: _check_axes(link, axes, axis),
        *(functools.partial(_check_limit, *limit) for limit in limits),
        lambda: asked.extend(map(Contender.parse, link.get("contenders", ()))),
        lambda: controls.check_lanes(link),
    )
    return " ".join(faults) or controls.find_missing_device(tuple(asked), machine)


def _check_axes(link: Mapping[str, Sequence[str]], axes: Sequence[str], axis: str) -> None:
    """Raise InvalidValue for an axis that the family lacks, or a value outside its range."""
    require_choice("axis", axis, axes)
    for name in link.get("also", ()):
        require_choice("also", name, (*axes, *OTHER_AXES))
    first = "size" if link.get("training") else axis
    for name, values in [(first, links.RANGE), *((name, links.VALUES) for name in link.get("also", ()))]:
        for text in link.get(values.format(axis=name), ()):
            value, *more = Axis.parse(name, text.replace(":", "")).values
            if more:
                raise InvalidValue(
                    values.format(axis=name), text, "a single number; repeat the parameter for more values"
                )
            if not _is_possible(name, value):
                entry = FIELDS[name]
                raise InvalidValue(values.format(axis=name), text, f"between {entry.low:g} and {entry.high:g}")
    if ends := link.get(links.RANGE.format(axis=first), ()):
        Axis.parse(first, ":".join(ends))


def _check_limit(name: str, field: str, text: str) -> None:
    low, high = LIMITS[field]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high and not (value == 0 and name == "pairs"):
        raise InvalidValue(name, text, f"a number between {low:,g} and {high:,g}")


def _is_possible(axis: str, value: float) -> bool:
    return FIELDS[axis].low <= value <= FIELDS[axis].high
