"""The controls of a training: one for each field of a `Point`, bound to the link, for every page that asks for one.

Controls hold and show the words that the link, the command line and the store use. A page that varies a field leaves
its control out. What may be asked for is decided by `core.question.experiment` alone.
"""

import bisect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import streamlit as st

from core.errors import InvalidValue
from core.jobs.machine import Machine
from core.question import catalog, experiment, models
from core.question.experiment import Contender, Point
from pages.shared.data import reads
from pages.shared.link import links, state

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

DEVICES_HELP = (
    "The first is what the others are compared with. `cpu@1` is the CPU with one thread; `cpu` tries several."
)

DEFAULTS = Point()

Fields = dict[str, Any]
"""Fields of a `Point` by name, as their controls stand."""


def dataset() -> catalog.Dataset:
    """Which data set."""
    names = list(catalog.DATASETS)
    chosen = catalog.dataset(st.selectbox("Dataset", names, names.index(DEFAULTS.dataset), **state.bound("dataset")))
    st.caption(chosen.summary)
    return chosen


def samples(of: catalog.Dataset, without: Collection[str] = ()) -> Fields:
    """How much of it."""
    if "samples" in without:
        return {}
    stops = (*LADDERS["samples"], of.default_samples, of.max_samples)
    return {"samples": ladder("samples", "Training samples", of.default_samples, stops, most=of.max_samples)}


def family() -> models.Family:
    """Which model family."""
    families = list(models.FAMILIES)
    chosen = models.family(st.selectbox("Model", families, families.index(DEFAULTS.model), **state.bound("model")))
    st.caption(chosen.summary)
    return chosen


def sizes(of: models.Family, dataset: str, without: Collection[str] = ()) -> Fields:
    """The sizes that shape the family."""
    fields: Fields = {}
    if "hidden_size" in set(of.axes) - set(without):
        fields["hidden_size"] = ladder("hidden_size", "Hidden size", DEFAULTS.hidden_size)
    for axis in ("depth", "width"):
        if axis in set(of.axes) - set(without):
            low, high = experiment.allowed(axis, dataset=dataset, model=of.name)
            usual = DOUBLING_DEPTH_DEFAULT if of.name == "doubling-mlp" else getattr(DEFAULTS, axis)
            fields[axis] = st.slider(axis.capitalize(), int(low), int(high), usual, **state.bound(axis))
    return fields


def training(without: Collection[str] = ()) -> Fields:
    """Batch size, epochs and learning rate."""
    labels = {"batch_size": "Batch size", "epochs": "Epochs", "learning_rate": "Learning rate"}
    return {name: ladder(name, label, getattr(DEFAULTS, name)) for name, label in labels.items() if name not in without}


def data_path() -> Fields:
    """How data reach the device."""
    paths = experiment.DATA_PATHS
    return {"data_path": st.radio("Data path", list(paths), captions=list(paths.values()), **state.bound("data_path"))}


def feeding(path: str, without: Collection[str] = ()) -> Fields:
    """The order of samples, and who loads them where a loader runs."""
    fields: Fields = {"shuffle": st.toggle("Shuffle every epoch", DEFAULTS.shuffle, **state.bound("shuffle"))}
    if path in experiment.LOADER_PATHS and "loader_workers" not in without:
        low, high = experiment.RANGES["loader_workers"]
        fields["loader_workers"] = st.slider("Loader workers", int(low), int(high), 0, **state.bound("loader_workers"))
    return fields


def seed() -> Fields:
    """The seed of weights, data and order."""
    low, high = experiment.RANGES["seed"]
    return {"seed": int(st.number_input("Seed", int(low), int(high), DEFAULTS.seed, **state.bound("seed")) or 0)}


def contenders(key: str, offered: Sequence[Contender], usual: Sequence[Contender], machine: Machine) -> list[str]:
    """Contenders in the machine's order, so that the same choice is the same question however it was clicked."""
    linked = [text for text in linked_contenders(key) if is_here(text, machine)]
    options = list(dict.fromkeys([*map(str, offered), *linked]))
    chosen = st.multiselect(
        "Devices",
        options,
        default=[str(contender) for contender in usual],
        max_selections=experiment.MAX_CONTENDERS,
        help=DEVICES_HELP,
        **state.bound(key),
    )
    return sorted(chosen, key=options.index)


def wait_for_devices() -> None:
    """Wait for the measuring process to say what this machine has, where there is one."""
    if reason := reads.only_looking():
        st.selectbox("Devices", ["none"], disabled=True)
        st.caption(reason)
    else:
        _wait_for_devices()


@st.fragment(run_every=0.5)
def _wait_for_devices() -> None:
    if reads.machine() is not None:
        st.rerun()
    st.selectbox("Devices", ["Looking at this machine's devices…"], disabled=True)


def ladder(
    name: str,
    label: str,
    default: float,
    ladder: Sequence[float] = (),
    *,
    least: float | None = None,
    most: float | None = None,
    help: str | None = None,
) -> Any:
    """A slider over the stops of a ladder, and over the value that the link brought.

    Args:
        name: its key and its parameter of the link.
        label: for people.
        default: where it stands at first.
        ladder: its stops; those of `LADDERS` unless given.
        least: lowest value that the link may bring, if higher than the lowest stop.
        most: highest value, if lower than that of `RANGES`.
        help: shown on demand.
    """
    low, high = experiment.RANGES.get(name, (0, float("inf")))
    high = high if most is None else most
    stops = sorted({links.plain(stop) for stop in ladder or LADDERS[name] if low <= stop <= high})
    linked = linked_number(name)
    if linked is not None and max(low, least or low) <= linked <= high:
        if linked not in stops:
            bisect.insort(stops, linked)
        if str(linked) != state.arrived()[name][-1]:  # "1e-2" is no stop's name, so the control takes its default
            default = linked
    return st.select_slider(label, stops, value=links.plain(default), help=help, **state.bound(name))


def point_of(link: Mapping[str, Sequence[str]]) -> Point:
    """The training that a link asks for.

    Raises:
        InvalidValue: a field is not what it may be.
    """
    return Point.parse({name: values[-1] for name, values in link.items() if name in links.POINT_FIELDS})


def parsed(name: str, text: str) -> float:
    """A number of a link.

    Raises:
        InvalidValue: it is none.
    """
    low, high = experiment.RANGES[name]
    try:
        return float(text)
    except ValueError:
        raise InvalidValue(name, text, f"a number between {low:g} and {high:g}") from None


def linked_number(name: str) -> float | None:
    """The number that the link brought for a control; None if it brought none."""
    values = state.arrived().get(name, ())
    try:
        return links.plain(float(values[-1])) if values else None
    except (ValueError, OverflowError):
        return None


def linked_contenders(key: str) -> list[str]:
    """The contenders that the link brought, in their own spelling."""
    found: list[str] = []
    for text in state.arrived().get(key, ()):
        try:
            found.append(str(Contender.parse(text)))
        except InvalidValue:
            continue
    return found


def missing(asked: Sequence[Contender], machine: Machine | None, *, field: str = "devices") -> str:
    """In a sentence, the device that was asked for and is not here; empty if none."""
    absent = [str(contender) for contender in asked if machine and not is_here(str(contender), machine)]
    if machine is None or not absent:
        return ""
    return f"{field} is {absent[0]}, which this machine does not have: it has {', '.join(_names(machine))}."


def is_here(contender: str, machine: Machine) -> bool:
    """Whether this machine has a contender's device."""
    return Contender.parse(contender).device in _names(machine)


def _names(machine: Machine) -> list[str]:
    return [info.device for info in machine.devices]
