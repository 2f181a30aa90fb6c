"""The settings of the Compare page: one control for each field of an experiment, bound to the link.

Controls hold and show the words that the link, the command line and the store use. What may be asked for is decided by
`core.experiment` alone; a link that asks for more gets its sentence here, before a control resets it.
"""

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core import catalog, experiment, models, units
from core.errors import InvalidValue
from core.experiment import Contender, Experiment, Point
from core.jobs.machine import Machine
from pages.shared import loaders, state

LADDERS: dict[str, tuple[float, ...]] = {
    "samples": (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000),
    "hidden_size": tuple(2**power for power in range(2, 15)),
    "batch_size": tuple(2**power for power in range(17)),
    "epochs": (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000),
    "learning_rate": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1),
    "budget_s": (5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600),
}
"""Values a slider stops at; any other allowed value can come by link and is then a stop of its own."""

DOUBLING_DEPTH_DEFAULT = 8
"""The published example that reaches no training error: 128 → 256 → classes at its end."""

DEFAULTS = Point()
ONE_THREAD = Contender(threads=1)

BUDGET_HELP = "Training stops there; what was measured by then is kept."
DEVICES_HELP = (
    "The first is what the others are compared with. `cpu@1` is the CPU with one thread; `cpu` tries several."
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What the settings ask.

    Attributes:
        experiment: the question, None where the settings cannot be asked.
        point: the training alone, None where it is not possible; its cost is known without a device.
        fault: why it cannot be asked, in one sentence; empty where it can.
    """

    experiment: Experiment | None = None
    point: Point | None = None
    fault: str = ""


def panel(machine: Machine | None, answer: Callable[[Question], None]) -> None:
    """Draw the controls and read them.

    Args:
        machine: this machine; None while it is not known, and then nothing can be asked yet.
        answer: draws what can be done with the question, beside the devices.
    """
    state.arrived()  # before a control is drawn and resets what it cannot show
    data, model, training, devices = st.columns(4, gap="medium")
    fields: dict[str, Any] = {}
    with data:
        fields |= _data()
    with model:
        fields |= _model(fields["dataset"])
    with training:
        fields |= _training()
    with st.expander("More settings"):
        fields |= _more()
        budget_s = fields.pop("budget_s")
    with devices:
        chosen = _devices(machine) if machine else _unknown_devices()
        answer(_ask(fields, chosen, budget_s, machine))


def offered(machine: Machine) -> tuple[Contender, ...]:
    """What this machine can train on, the baseline first."""
    accelerators = tuple(Contender(device=info.device) for info in machine.devices if info.kind != "cpu")
    return (Contender(), ONE_THREAD, *accelerators) if accelerators else (ONE_THREAD, Contender())


def usual(machine: Machine) -> tuple[Contender, ...]:
    """What is compared unless asked otherwise: the CPU with the first accelerator, or one thread with all of them."""
    accelerators = [contender for contender in offered(machine) if not contender.on_host]
    if accelerators:
        return (Contender(), accelerators[0])
    return (ONE_THREAD, Contender()) if machine.environment.cores_usable > 1 else (Contender(),)


def facts(point: Point) -> None:
    """Draw what a training costs, known before anything runs."""
    network = point.network
    memory = units.memory(network.memory_bytes(point.batch_size))
    st.markdown(
        f"**{units.count(network.parameters)}** parameters · "
        f"**{units.operations(network.flops_per_step(point.batch_size))}** a step · **{memory}** of memory · "
        f"**{units.count(point.steps_per_epoch)}** steps an epoch, {units.count(point.total_steps)} in all"
    )


def sentence(point: Point) -> str:
    """The training in one line, e.g. "digits · mlp, hidden size 128, depth 2 · batch 64 · 5 epochs"."""
    sizes = [f"{axis.replace('_', ' ')} {getattr(point, axis):,}" for axis in models.family(point.model).axes]
    parts = [
        f"{point.dataset}, {point.samples:,} samples",
        ", ".join([point.model, *sizes]),
        f"batch {point.batch_size:,}",
        f"{point.epochs:,} epoch{'s' if point.epochs > 1 else ''}",
        f"learning rate {state.plain(point.learning_rate)}",
        point.data_path.replace("_", " "),
    ]
    return " · ".join(parts)


def _data() -> dict[str, Any]:
    names = list(catalog.DATASETS)
    chosen = catalog.dataset(st.selectbox("Dataset", names, names.index(DEFAULTS.dataset), key="dataset", **_BOUND))
    st.caption(chosen.summary)
    ladder = (*LADDERS["samples"], chosen.default_samples, chosen.max_samples)
    samples = _ladder("samples", "Training samples", chosen.default_samples, ladder, most=chosen.max_samples)
    return {"dataset": chosen.name, "samples": samples}


def _model(dataset: str) -> dict[str, Any]:
    families = list(models.FAMILIES)
    chosen = models.family(st.selectbox("Model", families, families.index(DEFAULTS.model), key="model", **_BOUND))
    st.caption(chosen.summary)
    sizes: dict[str, Any] = {}
    if "hidden_size" in chosen.axes:
        sizes["hidden_size"] = _ladder("hidden_size", "Hidden size", DEFAULTS.hidden_size)
    for axis in ("depth", "width"):
        if axis in chosen.axes:
            low, high = experiment.allowed(axis, dataset=dataset, model=chosen.name)
            usual = DOUBLING_DEPTH_DEFAULT if chosen.name == "doubling-mlp" else getattr(DEFAULTS, axis)
            sizes[axis] = st.slider(axis.capitalize(), int(low), int(high), usual, key=axis, **_BOUND)
    return {"model": chosen.name, **sizes}


def _training() -> dict[str, Any]:
    return {
        "batch_size": _ladder("batch_size", "Batch size", DEFAULTS.batch_size),
        "epochs": _ladder("epochs", "Epochs", DEFAULTS.epochs),
        "learning_rate": _ladder("learning_rate", "Learning rate", DEFAULTS.learning_rate),
    }


def _devices(machine: Machine) -> list[str]:
    """Contenders in the machine's order, so that the same choice is the same question however it was clicked."""
    linked = [text for text in _linked_contenders() if _is_here(text, machine)]
    options = list(dict.fromkeys([*map(str, offered(machine)), *linked]))
    chosen = st.multiselect(
        "Devices",
        options,
        default=[str(contender) for contender in usual(machine)],
        key="devices",
        max_selections=experiment.MAX_CONTENDERS,
        help=DEVICES_HELP,
        **_BOUND,
    )
    return sorted(chosen, key=options.index)


def _unknown_devices() -> list[str]:
    _wait_for_devices()
    return []


@st.fragment(run_every=0.5)
def _wait_for_devices() -> None:
    """Wait for the measuring process to say what this machine has."""
    if loaders.machine() is not None:
        st.rerun()
    st.selectbox("Devices", ["Looking at this machine's devices…"], disabled=True)


def _more() -> dict[str, Any]:
    paths = experiment.DATA_PATHS
    route, feeding, limits = st.columns([2, 1, 1], gap="medium")
    with route:
        path = st.radio("Data path", list(paths), captions=list(paths.values()), key="data_path", **_BOUND)
    fields: dict[str, Any] = {"data_path": path}
    with feeding:
        fields["shuffle"] = st.toggle("Shuffle every epoch", DEFAULTS.shuffle, key="shuffle", **_BOUND)
        if path in experiment.LOADER_PATHS:
            low, high = experiment.RANGES["loader_workers"]
            workers = st.slider("Loader workers", int(low), int(high), 0, key="loader_workers", **_BOUND)
            fields["loader_workers"] = workers
    with limits:
        fields["budget_s"] = _ladder("budget_s", "Time budget (seconds)", 60, help=BUDGET_HELP)
        low, high = experiment.RANGES["seed"]
        fields["seed"] = int(st.number_input("Seed", int(low), int(high), DEFAULTS.seed, key="seed", **_BOUND) or 0)
    return fields


def _ladder(
    name: str,
    label: str,
    default: float,
    ladder: Sequence[float] = (),
    *,
    most: float | None = None,
    help: str | None = None,
) -> Any:
    """A slider over the stops of a ladder, and over the value that the link brought."""
    low, high = experiment.RANGES[name]
    high = high if most is None else most
    stops = sorted({state.plain(stop) for stop in ladder or LADDERS[name] if low <= stop <= high})
    linked = _linked_number(name)
    if linked is not None and low <= linked <= high:
        if linked not in stops:
            bisect.insort(stops, linked)
        if str(linked) != state.arrived()[name][-1]:  # "1e-2" is no stop's name, so the control takes its default
            default = linked
    return st.select_slider(label, stops, value=state.plain(default), key=name, help=help, **_BOUND)


def _ask(fields: Mapping[str, Any], chosen: Sequence[str], budget_s: float, machine: Machine | None) -> Question:
    fault = "" if state.touched() else link_fault(machine)
    try:
        point = Point(**fields)
    except InvalidValue as error:
        return Question(fault=fault or str(error))
    if machine is None:
        return Question(point=point, fault=fault)
    try:
        contenders = tuple(Contender.parse(text) for text in chosen)
        asked = Experiment(point=point, contenders=contenders, budget_s=float(budget_s))
    except InvalidValue as error:
        return Question(point=point, fault=fault or str(error))
    return Question(experiment=None if fault else asked, point=point, fault=fault)


def link_fault(machine: Machine | None) -> str:
    """Why the link that the session came with cannot be asked here, in one sentence; empty where it can."""
    link = state.arrived()
    try:
        Point.parse({name: values[-1] for name, values in link.items() if name in state.POINT_FIELDS})
        asked = tuple(Contender.parse(text) for text in link.get("devices", ()))
        budget_s = _parsed("budget_s", link["budget_s"][-1]) if "budget_s" in link else 60.0
        Experiment(point=Point(), contenders=asked or (Contender(),), budget_s=budget_s)
    except InvalidValue as error:
        return str(error)
    missing = [str(contender) for contender in asked if machine and not _is_here(str(contender), machine)]
    if machine is None or not missing:
        return ""
    return f"devices is {missing[0]}, which this machine does not have: it has {', '.join(_names(machine))}."


def _parsed(name: str, text: str) -> float:
    low, high = experiment.RANGES[name]
    try:
        return float(text)
    except ValueError:
        raise InvalidValue(name, text, f"a number between {low:g} and {high:g}") from None


def _linked_number(name: str) -> float | None:
    values = state.arrived().get(name, ())
    try:
        return state.plain(float(values[-1])) if values else None
    except (ValueError, OverflowError):
        return None


def _linked_contenders() -> list[str]:
    found: list[str] = []
    for text in state.arrived().get("devices", ()):
        try:
            found.append(str(Contender.parse(text)))
        except InvalidValue:
            continue
    return found


def _is_here(contender: str, machine: Machine) -> bool:
    return Contender.parse(contender).device in _names(machine)


def _names(machine: Machine) -> list[str]:
    return [info.device for info in machine.devices]


_BOUND: dict[str, Any] = {"bind": "query-params", "on_change": state.touch}
"""Every control is in the link, and changing one takes the settings into the user's hands."""
