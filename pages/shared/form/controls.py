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
from core.question import catalog, describe, experiment, models
from core.question.experiment import Contender, Point
from core.question.fields import DATA_PATHS, FIELDS, LOADER_PATHS, TRAINING
from pages.shared.data import reads
from pages.shared.link import state

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
    stops = (*FIELDS["samples"].stops, of.default_samples, of.max_samples)
    return {"samples": ladder("samples", default=of.default_samples, stops=stops, most=of.max_samples)}


def family() -> models.Family:
    """Which model family."""
    families = list(models.FAMILIES)
    chosen = models.family(st.selectbox("Model", families, families.index(DEFAULTS.model), **state.bound("model")))
    st.caption(chosen.summary)
    return chosen


def sizes(of: models.Family, dataset: str, without: Collection[str] = ()) -> Fields:
    """The sizes that shape the family."""
    return {axis: number(axis, dataset, of.name) for axis in of.axes if axis not in without}


def training(dataset: str, model: str, without: Collection[str] = ()) -> Fields:
    """Batch size, epochs, learning rate, and whatever else every training has."""
    names = [name for name in TRAINING if FIELDS[name].panel == "training" and name not in without]
    return {name: number(name, dataset, model) for name in names}


def number(name: str, dataset: str, model: str) -> Any:
    """A number of a training of one data set and model family: a slider over its stops, or over every whole number."""
    entry = FIELDS[name]
    if entry.stops:
        return ladder(name)
    low, high = experiment.allowed(name, dataset=dataset, model=model)
    usual = DOUBLING_DEPTH_DEFAULT if (name, model) == ("depth", "doubling-mlp") else entry.default
    return st.slider(entry.label, int(low), int(high), usual, help=entry.help, **state.bound(name))


def data_path() -> Fields:
    """How data reach the device."""
    captions = list(DATA_PATHS.values())
    return {"data_path": st.radio("Data path", list(DATA_PATHS), captions=captions, **state.bound("data_path"))}


def feeding(path: str, dataset: str, model: str, without: Collection[str] = ()) -> Fields:
    """The order of samples, and who loads them where a loader runs."""
    fields: Fields = {"shuffle": st.toggle("Shuffle every epoch", DEFAULTS.shuffle, **state.bound("shuffle"))}
    if path in LOADER_PATHS and "loader_workers" not in without:
        fields["loader_workers"] = number("loader_workers", dataset, model)
    return fields


def seed() -> Fields:
    """The seed of weights, data and order."""
    entry = FIELDS["seed"]
    chosen = st.number_input(entry.label, int(entry.low), int(entry.high), entry.default, **state.bound("seed"))
    return {"seed": int(chosen or 0)}


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
    *,
    default: float | None = None,
    stops: Sequence[float] = (),
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """A slider over the stops of a field, and over the value that the link brought.

    Args:
        name: key of `core.question.fields.FIELDS`; that of its control and its parameter of the link.
        default: where it stands at first, if elsewhere than the field's own.
        stops: others than the field's own.
        least: lowest value that the link may bring, if higher than the lowest stop.
        most: highest value, if lower than the field's own.
    """
    entry = FIELDS[name]
    default = entry.default if default is None else default
    high = entry.high if most is None else most
    offered = sorted({describe.plain(stop) for stop in stops or entry.stops if entry.low <= stop <= high})
    linked = linked_number(name)
    if linked is not None and max(entry.low, least or entry.low) <= linked <= high:
        if linked not in offered:
            bisect.insort(offered, linked)
        if str(linked) != state.arrived()[name][-1]:  # "1e-2" is no stop's name, so the control takes its default
            default = linked
    return st.select_slider(entry.label, offered, value=describe.plain(default), help=entry.help, **state.bound(name))


def point_of(link: Mapping[str, Sequence[str]]) -> Point:
    """The training that a link asks for.

    Raises:
        InvalidValue: a field is not what it may be.
    """
    return Point.parse({name: values[-1] for name, values in link.items() if name in TRAINING})


def parsed(name: str, text: str) -> float:
    """A number of a link.

    Raises:
        InvalidValue: it is none.
    """
    try:
        return float(text)
    except ValueError:
        entry = FIELDS[name]
        raise InvalidValue(name, text, f"a number between {entry.low:g} and {entry.high:g}") from None


def linked_number(name: str) -> float | None:
    """The number that the link brought for a control; None if it brought none."""
    values = state.arrived().get(name, ())
    try:
        return describe.plain(float(values[-1])) if values else None
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
