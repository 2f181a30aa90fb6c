"""The settings of the Crossover page: a training, what is varied, the devices, and how much time it may take.

The control of a field that is varied gives way to the range of its values. What may be asked for is decided by
`core.question.sweep` alone; a link that asks for more gets its sentence here, before a control resets it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core import units
from core.answer.study import recorded as recordings
from core.errors import CrossoverError, InvalidValue
from core.jobs.machine import Machine
from core.question import experiment, models
from core.question.experiment import Contender, Point
from core.question.sweep import ADAPTIVE_PAIRS, GRID_PAIRS, LIMITS, OTHER_AXES, SHAPED_BY, SIZE_AXES, Axis, Sweep
from pages.compare import settings
from pages.shared.answer import accelerators
from pages.shared.data import reads
from pages.shared.form import controls, lane_controls
from pages.shared.link import links, state

STOPS: dict[str, tuple[float, ...]] = {
    "hidden_size": controls.LADDERS["hidden_size"],
    "parameters": tuple(step * 10**power for power in range(2, 8) for step in (1, 2, 5)),
    "batch_size": controls.LADDERS["batch_size"],
    "samples": controls.LADDERS["samples"],
    "learning_rate": controls.LADDERS["learning_rate"],
    "loader_workers": (0, 1, 2, 4, 8, 16),
}
"""Values at which a range can begin and end; depth and width have every value."""

USUAL_RANGE: dict[str, tuple[float, float]] = {
    "hidden_size": (16, 2_048),
    "depth": (2, 12),
    "width": (1, 16),
    "parameters": (1_000, 5_000_000),
    "batch_size": (1, 1_024),
    "samples": (100, 1_000_000),
}

USUAL_VALUES: dict[str, tuple[float, ...]] = {
    "hidden_size": (64, 256, 1_024),
    "depth": (2, 4),
    "width": (1, 4),
    "parameters": (10_000, 100_000, 1_000_000),
    "batch_size": (16, 64, 256),
    "samples": (500, 1_000),
    "learning_rate": (0.01, 0.1),
    "loader_workers": (0, 1),
}
"""What is varied unless asked otherwise, along the axis and beside it."""

LADDERS: dict[str, tuple[float, ...]] = {
    "sweep_budget_s": (30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400),
    "point_budget_s": (1, 2, 5, 10, 20, 30, 60, 120, 300),
    "pairs": (0, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50, 100),
}
USUAL_LIMITS = {"sweep_budget_s": 600, "point_budget_s": 20, "pairs": 0}
LIMIT_LABELS = {
    "sweep_budget_s": "Time budget (seconds)",
    "point_budget_s": "Time for one point (seconds)",
    "pairs": "Pairs of blocks at each point",
}
LIMIT_HELP = {
    "sweep_budget_s": "After this no further point is begun; what was measured by then is kept.",
    "point_budget_s": "A point that needs more is skipped, and the page says so.",
    "pairs": "One block of every device makes a pair. More pairs make the intervals narrower. "
    f"0 stands for what is usual: {GRID_PAIRS}, or {ADAPTIVE_PAIRS} in a search, which measures more sizes instead.",
}

MOST_ALSO = 3
"""Axes beside the first."""

AXIS_HELP = "What grows from one measurement to the next; the crossover is a value on it."
ADAPTIVE_HELP = (
    "Measures only the sizes that narrow down the crossover, and as few as it takes. "
    "Without it every doubling of the range is measured."
)
ALSO_HELP = "Measures every combination with the values of these too, for a map and a sorted table."
FAIR_HELP = (
    "Many comparisons let the CPU use one thread only. This measures both, and shows how far that moves the crossover."
)
ALONE = (
    "No accelerator is seen here, so one thread of the CPU meets all of them. That is a crossover too: sharing a step "
    "among threads costs time, as copying and launching on a GPU do, and pays off from some size on."
)


@dataclass(frozen=True, kw_only=True)
class SweepAsked:
    """What the settings ask.

    Attributes:
        sweep: the question, None where the settings cannot be asked.
        fault: why it cannot be asked, in one sentence; empty where it can.
    """

    sweep: Sweep | None = None
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class Varied:
    """What the controls of the axes say.

    Attributes:
        axis: name of the first axis.
        also: names of the others.
        ends: lowest and highest value of the first.
        values: of each of the others.
        adaptive: whether to choose among the values of the range.
        sizes: of the first, in place of a range; none where there is one.
    """

    axis: str
    also: tuple[str, ...]
    ends: tuple[float, float]
    values: tuple[tuple[float, ...], ...]
    adaptive: bool
    sizes: tuple[float, ...] = ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the sweep.

        Raises:
            InvalidValue: a range or a value is not possible.
        """
        others = zip(self.also, self.values, strict=True)
        first = (
            Axis(name=self.axis, values=self.sizes)
            if self.sizes
            else Axis.between(self.axis, *self.ends, adaptive=self.adaptive)
        )
        return (first, *(Axis(name=name, values=values) for name, values in others))


def panel(machine: Machine | None, answer: Callable[[SweepAsked], None]) -> SweepAsked:
    """Draw the controls and read them; what they ask.

    Args:
        machine: this machine; None while it is not known, and then nothing can be asked yet.
        answer: draws what can be done with the question, beside the devices.
    """
    along, over, beside = st.columns([1, 2, 1.3], gap="medium")
    data, model, training, devices = st.columns([1, 1, 1, 1.3], gap="medium")
    with data:
        dataset = controls.dataset()
    with model:
        family = controls.family()
    with along:
        axis = _axis(family)
    with st.expander("More settings", **state.bound_view("more")):
        route, feeding, limits = st.columns([2, 1, 1], gap="medium")
    with route:
        fields = controls.data_path()
    with beside:
        also = _also(axis, family, fields["data_path"])
    taken = _taken(axis, *also, family=family)
    with data:
        fields |= {"dataset": dataset.name, **controls.samples(dataset, taken)}
    with model:
        fields |= {"model": family.name, **controls.sizes(family, dataset.name, taken)}
    with training:
        fields |= controls.training(taken)
    with feeding:
        fields |= {**controls.feeding(fields["data_path"], taken), **controls.seed()}
    with limits:
        bounds = _limits()
    with route:
        lanes = lane_controls.choose(machine, batch_size=int(fields.get("batch_size", 0)), model=family.name)
    wanted = _wanted(fields, family, axis)
    with devices:
        accelerator = accelerators.choose(machine, wanted, axis)
    with over:
        sizes = accelerators.sizes(accelerator, wanted, axis)
        varied = _varied(axis, also, sizes, dataset=dataset.name, family=family, samples=fields.get("samples", 0))
    with devices:
        chosen = lane_controls.applied(_devices(machine), lanes, machine) if machine else _unknown_devices()
        question = _ask(fields, varied, chosen, bounds, machine, lane_controls.too_many(chosen, lanes))
        answer(question)
    accelerators.listing(machine, wanted, axis)
    return question


def offered(machine: Machine) -> tuple[Contender, ...]:
    """What this machine can measure, the baseline first."""
    others = tuple(Contender(device=info.device) for info in machine.devices if info.kind != "cpu")
    if others:
        return (Contender(), settings.ONE_THREAD, *others)
    return (settings.ONE_THREAD, Contender(threads=machine.environment.cores_usable), Contender())


def usual(machine: Machine) -> tuple[Contender, ...]:
    """What is measured unless asked otherwise: the CPU with the first accelerator, or one thread with all of them."""
    others = [contender for contender in offered(machine) if not contender.on_host]
    if not others and state.recorded():
        return (Contender(),)
    return (Contender(), others[0]) if others else tuple(dict.fromkeys(offered(machine)[:2]))


def facts(sweep: Sweep) -> None:
    """Draw what a sweep is, known before anything runs: how many points, and at most how long."""
    cost = reads.sweep_cost(sweep)
    longest = units.duration(min(sweep.budget_s, cost.points * sweep.point_budget_s))
    low, high = (units.count(parameters) for parameters in cost.parameters)
    points = f"up to **{cost.points}** sizes to choose from" if sweep.adaptive else f"**{cost.points}** points"
    st.markdown(f"{points} · {low} to {high} parameters · at most about **{longest}**")


def sentence(sweep: Sweep) -> str:
    """The sweep in one line: what is varied, then what is the same at every point."""
    ends = [f"{axis.title} {_number(axis.values[0])} to {_number(axis.values[-1])}" for axis in sweep.axes]
    return f"{', '.join(ends)} · {settings.sentence(sweep.point, without=_taken_by(sweep))}"


def _taken(*names: str, family: models.Family) -> set[str]:
    """Fields that the axes set, so that they have no control of their own."""
    shaped = {SHAPED_BY[family.name]} if "parameters" in names and family.name in SHAPED_BY else set()
    return {*names} | shaped


def _taken_by(sweep: Sweep) -> set[str]:
    return _taken(*(axis.name for axis in sweep.axes), family=models.family(sweep.point.model))


def _size_axes(family: models.Family) -> list[str]:
    """The sizes that a family can be varied along, its own first."""
    own = [*family.axes, *(["parameters"] if family.name in SHAPED_BY else [])]
    return [*own, *(name for name in SIZE_AXES if name in ("batch_size", "samples"))]


def _axis(family: models.Family) -> str:
    options = _size_axes(family)
    chosen: str = st.selectbox("Along", options, help=AXIS_HELP, **state.bound("axis"))
    return chosen


def _also(axis: str, family: models.Family, path: str) -> tuple[str, ...]:
    others = [name for name in (*_size_axes(family), *OTHER_AXES) if name not in (axis, "loader_workers")]
    others += ["loader_workers"] if path in experiment.LOADER_PATHS else []
    if "parameters" in (axis, *others):
        clash = {SHAPED_BY[family.name]} if axis == "parameters" else {"parameters"}
        others = [name for name in others if name not in clash]
    chosen = st.multiselect(
        "Vary also",
        others,
        max_selections=MOST_ALSO,
        placeholder="nothing else",
        help=ALSO_HELP,
        **state.bound("also"),
    )
    return tuple(sorted(chosen, key=others.index))


def _wanted(fields: Mapping[str, Any], family: models.Family, axis: str) -> Mapping[str, object] | None:
    """The training as recordings of any size along an axis are looked for; None where the settings make none."""
    varied = SHAPED_BY[family.name] if axis == "parameters" else axis
    usual = {"samples": 0} if axis == "samples" else {varied: experiment.RANGES[varied][0]}
    try:
        return recordings.asked(Point(**{**fields, **{name: int(value) for name, value in usual.items()}}))
    except InvalidValue:
        return None


def _varied(
    axis: str, also: Sequence[str], sizes: Sequence[float], *, dataset: str, family: models.Family, samples: int
) -> Varied:
    def stops(name: str) -> list[float]:
        return _stops(name, dataset=dataset, family=family, samples=samples)

    ends = (sizes[0], sizes[-1]) if sizes else _range(axis, stops(axis))
    values = tuple(_values(name, stops(name)) for name in also)
    adaptive = not (also or sizes) and st.toggle("Adaptive search", True, help=ADAPTIVE_HELP, **state.bound("adaptive"))
    return Varied(axis=axis, also=tuple(also), ends=ends, values=values, adaptive=adaptive, sizes=tuple(sizes))


def _stops(axis: str, *, dataset: str, family: models.Family, samples: int) -> list[float]:
    """Values that an axis may begin and end at."""
    low, high = 1.0, math.inf
    if axis != "parameters":
        low, high = experiment.allowed(axis, dataset=dataset, model=family.name)
    if axis == "batch_size" and samples:
        high = min(high, samples)
    ladder = STOPS.get(axis) or range(int(low), int(high) + 1)
    return [links.plain(stop) for stop in ladder if low <= stop <= high]


def _range(axis: str, stops: list[float]) -> tuple[float, float]:
    """A slider with two ends."""
    key = links.RANGE.format(axis=axis)
    linked = [value for value in _linked_numbers(key) if axis == "parameters" or _possible(axis, value)]
    stops = sorted({*stops, *linked})
    low, high = (min(stops, key=lambda stop: abs(stop - end)) for end in USUAL_RANGE[axis])
    label = f"{SIZE_AXES[axis].capitalize()} from … to"
    chosen = st.select_slider(label, stops, value=(low, high), **state.bound(key))
    return chosen[0], chosen[1]


def _values(axis: str, stops: list[float]) -> tuple[float, ...]:
    key = links.VALUES.format(axis=axis)
    stops = sorted({*stops, *_linked_numbers(key)})
    usual = [value for value in USUAL_VALUES[axis] if value in stops] or stops[:1]
    label = f"{(SIZE_AXES | OTHER_AXES)[axis].capitalize()}, each of"
    return tuple(sorted(st.multiselect(label, stops, default=usual, **state.bound(key))))


def _limits() -> dict[str, float]:
    return {
        field: controls.ladder(
            name,
            LIMIT_LABELS[name],
            USUAL_LIMITS[name],
            LADDERS[name],
            least=LIMITS[field][0],
            most=LIMITS[field][1],
            help=LIMIT_HELP[name],
        )
        for name, field in links.SWEEP_LIMITS.items()
    }


def _devices(machine: Machine) -> list[str]:
    chosen = controls.contenders("contenders", offered(machine), usual(machine), machine)
    if len(machine.devices) == 1:
        if not state.recorded():
            st.caption(ALONE)
        return chosen
    fair = st.toggle("Fair CPU: also against one thread", True, help=FAIR_HELP, **state.bound("fair"))
    if not fair or str(Contender()) not in chosen or str(settings.ONE_THREAD) in chosen or len(chosen) < 2:
        return chosen
    return [chosen[0], str(settings.ONE_THREAD), *chosen[1:]]


def _unknown_devices() -> list[str]:
    controls.wait_for_devices()
    return []


def _ask(
    fields: Mapping[str, Any],
    varied: Varied,
    chosen: Sequence[str],
    bounds: Mapping[str, float],
    machine: Machine | None,
    fault: str,
) -> SweepAsked:
    fault = ("" if state.touched() else link_fault(machine)) or fault
    try:
        asked = reads.sweep(fields, varied.axes, tuple(chosen), varied.adaptive, bounds)
        if machine and len(asked.contenders) < 2 and not state.recorded():
            raise InvalidValue("contenders", ", ".join(chosen), "two different devices at least, to be compared")
    except CrossoverError as error:
        return SweepAsked(fault=fault or str(error))
    return SweepAsked(sweep=None if fault else asked, fault=fault)


def link_fault(machine: Machine | None) -> str:
    """Why the link that the session came with cannot be asked here, in one sentence; empty where it can."""
    link = state.arrived()
    try:
        point = controls.point_of(link)
        axis = (link.get("axis") or _size_axes(models.family(point.model))[:1])[-1]
        _check_axes(link, models.family(point.model), axis)
        for name, field in links.SWEEP_LIMITS.items():
            if name in link:
                _check_limit(name, field, link[name][-1])
        asked = tuple(Contender.parse(text) for text in link.get("contenders", ()))
        lane_controls.check(link)
    except InvalidValue as error:
        return str(error)
    return controls.missing(asked, machine, field="contenders")


def _check_axes(link: Mapping[str, Sequence[str]], family: models.Family, axis: str) -> None:
    """Refuse axes that the family has not, and values that they cannot take."""
    if axis not in _size_axes(family):
        raise InvalidValue("axis", axis, f"one of {', '.join(_size_axes(family))}")
    for name in link.get("also", ()):
        if name not in (*_size_axes(family), *OTHER_AXES):
            raise InvalidValue("also", name, f"one of {', '.join((*_size_axes(family), *OTHER_AXES))}")
    for name, values in [(axis, links.RANGE), *((name, links.VALUES) for name in link.get("also", ()))]:
        for text in link.get(values.format(axis=name), ()):
            value, *more = Axis.parse(name, text.replace(":", "")).values
            if more:
                raise InvalidValue(values.format(axis=name), text, "one number each time that the link says it")
            if name != "parameters" and not _possible(name, value):
                low, high = experiment.RANGES[name]
                raise InvalidValue(values.format(axis=name), text, f"between {low:g} and {high:g}")
    ends = link.get(links.RANGE.format(axis=axis), ())
    if ends:
        Axis.parse(axis, ":".join(ends))


def _check_limit(name: str, field: str, text: str) -> None:
    low, high = LIMITS[field]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high and not (value == 0 and name == "pairs"):
        raise InvalidValue(name, text, f"a number between {low:,g} and {high:,g}")


def _possible(axis: str, value: float) -> bool:
    low, high = experiment.RANGES[axis]
    return low <= value <= high


def _linked_numbers(name: str) -> list[float]:
    found = []
    for text in state.arrived().get(name, ()):
        try:
            value = float(text)
        except ValueError:
            continue
        if math.isfinite(value):
            found.append(links.plain(value))
    return found


def _number(value: float) -> str:
    return f"{value:,}" if value == int(value) else f"{value:g}"
