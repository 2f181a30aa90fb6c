"""The controls of a training: one for each field of a `Point`, bound to the link, for every page that asks for one.

Controls hold the words that the link, the command line and the store use, and show their names for people. A page
that varies a field leaves its control out. What may be asked for is decided by `core.question.experiment` alone.
"""

import bisect
import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from core.answer.study.machines import recorded as recordings
from core.errors import InvalidValue
from core.question import catalog, describe, experiment, models
from core.question.experiment import Point
from core.question.fields import DATA_PATHS, FIELDS, LOADER_PATHS, TRAINING, refused, short_label
from pages.shared.link import choices, state

DOUBLING_DEPTH_DEFAULT = 8
"""The published example that reaches no training error: 128 → 256 → classes at its end."""

DEFAULTS = Point()

Fields = dict[str, Any]
"""Fields of a `Point` by name, as their controls stand."""


def choose_dataset() -> catalog.Dataset:
    names, told = list(catalog.DATASETS), _describe_choices(catalog.DATASETS.values())
    chosen = st.selectbox("Data set", names, help=told, **bind_words("dataset", names, DEFAULTS.dataset))
    return catalog.dataset(chosen)


def choose_samples(dataset: catalog.Dataset, model: str, without: Collection[str] = ()) -> Fields:
    if "samples" in without:
        return {}
    stops, named = (
        (*FIELDS["samples"].stops, dataset.default_samples, dataset.max_samples),
        label_field("samples", model),
    )
    return {
        "samples": choose_stop(
            "samples", named, default=dataset.default_samples, stops=stops, maximum=dataset.max_samples
        )
    }


def label_field(name: str, model: str) -> str:
    """What the control of a field is called where a family is trained: samples of a fit are the rows of its table."""
    called = models.boosting.axis_called(name, model)
    return FIELDS[name].label if called == name else called.capitalize()


def choose_family() -> models.Family:
    families, told = list(models.FAMILIES), _describe_choices(models.FAMILIES.values())
    chosen = st.selectbox("Model", families, help=told, **bind_words("model", families, DEFAULTS.model))
    return models.family(chosen)


def abbreviate_training(dataset: catalog.Dataset, model: models.Family) -> tuple[str, str]:
    """The data set and the model in as few words as their controls show."""
    return short_label("dataset", dataset.name), short_label("model", model.name)


def bind_words(name: str, words: Sequence[str], usual: str) -> Fields:
    """What makes a control of the words of a field part of the link, with their short names for people."""
    return choices.bind_choice(name, words, usual, functools.partial(short_label, name))


def _describe_choices(choices: Iterable[catalog.Dataset | models.Family]) -> str:
    """What each of several choices is, a line each."""
    return "  \n".join(f"**{choice.title}**: {choice.summary}" for choice in choices)


def choose_sizes(family: models.Family, dataset: str, without: Collection[str] = ()) -> Fields:
    axes = models.shaped_by(family.name, dataset)
    return {axis: choose_number(axis, dataset, family.name) for axis in axes if axis not in without}


def choose_training_numbers(dataset: str, model: str, without: Collection[str] = ()) -> Fields:
    """Batch size, epochs, learning rate, and whatever other number every training has."""
    settled = models.boosting.SETTLED if models.family(model).library else {}
    names = [name for name in TRAINING if FIELDS[name].panel == "training" and name not in {*without, *settled}]
    return {name: choose_number(name, dataset, model) for name in names if not FIELDS[name].words}


def choose_word(name: str) -> str:
    """One of the words of a field."""
    entry, words = FIELDS[name], list(FIELDS[name].words)
    return st.selectbox(entry.label, words, help=entry.help, **bind_words(name, words, entry.default))


def choose_number(name: str, dataset: str, model: str) -> Any:
    """A number of a training of one data set and model family: a slider over its stops, or over every whole number."""
    entry = FIELDS[name]
    if entry.stops:
        return choose_stop(name)
    low, high = experiment.allowed(name, dataset=dataset, model=model)
    usual = DOUBLING_DEPTH_DEFAULT if (name, model) == ("depth", "doubling-mlp") else entry.default
    return st.slider(entry.label, int(low), int(high), usual, help=entry.help, **state.bind_control(name))


def choose_data_path(model: str) -> Fields:
    """How data reach the device; the rows of a fit do in one way only."""
    if models.family(model).library:
        return {"data_path": models.boosting.SETTLED["data_path"]}
    captions, bound = list(DATA_PATHS.values()), bind_words("data_path", list(DATA_PATHS), DEFAULTS.data_path)
    return {"data_path": st.radio("Data path", list(DATA_PATHS), captions=captions, **bound)}


def choose_feeding(path: str, dataset: str, model: str, without: Collection[str] = ()) -> Fields:
    """The order of samples, who loads them where a loader runs, and what has words for values; a fit has none of it."""
    if models.family(model).library:
        return {}
    fields: Fields = {"shuffle": st.toggle("Shuffle every epoch", DEFAULTS.shuffle, **state.bind_control("shuffle"))}
    fields |= {name: choose_word(name) for name in TRAINING if FIELDS[name].panel == "training" and FIELDS[name].words}
    if path in LOADER_PATHS and "loader_workers" not in without:
        fields["loader_workers"] = choose_number("loader_workers", dataset, model)
    return fields


def choose_seed() -> Fields:
    entry = FIELDS["seed"]
    chosen = st.number_input(entry.label, int(entry.low), int(entry.high), entry.default, **state.bind_control("seed"))
    return {"seed": int(chosen or 0)}


def choose_stop(
    name: str,
    title: str = "",
    *,
    default: float | None = None,
    stops: Sequence[float] = (),
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    """A slider over the stops of a field, or over others, and over the value that the link brought.

    It stands at `default` at first, if elsewhere than the field's own. `minimum` is the lowest value that the link may
    bring, if higher than the lowest stop, `maximum` the highest, if lower than the field's own.
    """
    entry = FIELDS[name]
    usual = describe.plain(entry.default if default is None else default)
    high = entry.high if maximum is None else maximum
    offered = sorted({describe.plain(stop) for stop in stops or entry.stops if entry.low <= stop <= high})
    numbers = read_linked_numbers(name, last=True)
    if numbers and max(entry.low, minimum or entry.low) <= numbers[0] <= high and numbers[0] not in offered:
        bisect.insort(offered, numbers[0])
    bound = choices.bind_numbers(name, offered, usual)
    return st.select_slider(title or entry.label, offered, value=usual, help=entry.help, **bound)


def parse_point(link: Mapping[str, Sequence[str]]) -> tuple[Point, list[str]]:
    """The training that a link asks for, without the fields that are not what they may be; a sentence for each."""
    said = {name: values[-1] for name, values in link.items() if name in TRAINING}
    faults: list[str] = []
    while True:
        try:
            return Point.parse(said), faults
        except InvalidValue as error:
            faults.append(refused.on_page(error))
            if said.pop(error.field, None) is None:
                return Point(), faults


def collect_faults(*checks: Callable[[], object]) -> list[str]:
    """What each of several checks refuses, a sentence each."""
    found: list[str] = []
    for check in checks:
        try:
            check()
        except InvalidValue as error:
            found.append(refused.on_page(error))
    return list(dict.fromkeys(found))


def parse_number(name: str, text: str) -> float:
    """A number of a link; raises InvalidValue where it is none."""
    try:
        return float(text)
    except ValueError:
        entry = FIELDS[name]
        raise InvalidValue(name, text, f"a number between {entry.low:g} and {entry.high:g}") from None


def read_linked(name: str, spelled: Callable[[str], str]) -> list[str]:
    """What the link brought for a control, as `spelled` writes it; what that refuses is left out."""
    found: list[str] = []
    for text in state.read_arrived_settings().get(name, ()):
        with contextlib.suppress(InvalidValue):
            found.append(spelled(text))
    return found


def read_linked_numbers(name: str, *, last: bool = False) -> list[float]:
    """The numbers that the link brought for a control of several, or for one, which takes the last."""
    texts, found = state.read_arrived_settings().get(name, ()), []
    for text in texts[-1:] if last else texts:
        with contextlib.suppress(ValueError, OverflowError):  # no number, or infinite
            found.append(describe.plain(float(text)))
    return found


def make_recording_query(fields: Mapping[str, Any]) -> Mapping[str, object] | None:
    """A training as recordings of it are looked for; None where its fields make none."""
    try:
        return recordings.asked(Point(**fields))
    except InvalidValue:
        return None
