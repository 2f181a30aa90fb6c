"""The controls of a question, bound to the link: training, devices, variants, a custom script, and differences.

Controls store the words that the link, the command line and the store use, and show readable names. A page that varies
a field leaves out its control. `core.question` alone decides which questions are valid. `pages.shared.permits` decides
which custom scripts are offered, and the measuring process which variants a device supports.
"""

import bisect
import contextlib
import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.answer import recorded_machines as recordings
from core.errors import InvalidValue
from core.jobs.machine import Machine
from core.question import catalog, describe, experiment, lanes, models, sweep
from core.question.custom import LARGEST_SIZE
from core.question.experiment import CUSTOM_PAIRS, Contender, Point
from core.question.fields import DATA_PATHS, FIELDS, LOADER_PATHS, TRAINING, Training, short_label
from core.question.lanes import PLAIN, Lane, capitalize_name
from core.question.presets import default_contenders
from pages.shared import custom_files, links, permits, queries, session
from pages.shared.custom_files import CustomFile
from pages.shared.elements import plain

DOUBLING_DEPTH_DEFAULT = 8
"""Depth of the published example that reaches zero training error; its last layers are 128 → 256 → classes."""

DEFAULTS = Point()

Fields = dict[str, Any]
"""Fields of a `Point` by name, with the values of their controls."""


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
    """Return the label of a field for a model family: samples of a fit are rows of a table."""
    called = models.families.answer_axis_name(name, model)
    return FIELDS[name].label if called == name else called.capitalize()


def choose_family() -> models.Family:
    families, told = list(models.FAMILIES), _describe_choices(models.FAMILIES.values())
    chosen = st.selectbox("Model", families, help=told, **bind_words("model", families, DEFAULTS.model))
    return models.family(chosen)


def abbreviate_training(dataset: catalog.Dataset, model: models.Family) -> tuple[str, str]:
    """Return the short names of the data set and the model that their controls show."""
    return short_label("dataset", dataset.name), short_label("model", model.name)


def bind_words(name: str, words: Sequence[str], usual: str) -> Fields:
    """Return the arguments that bind a choice of a field to the link, with short labels."""
    return session.bind_choice(name, words, usual, functools.partial(short_label, name))


def _describe_choices(choices: Iterable[catalog.Dataset | models.Family]) -> str:
    """Describe several choices, a line each."""
    return "  \n".join(f"**{choice.title}**: {choice.summary}" for choice in choices)


AXIS_HELP = "The setting to vary. Crossover finds the value at which the faster device changes."


def choose_axis(family: models.Family, dataset: catalog.Dataset, place: DeltaGenerator) -> str:
    """Draw the choice of the size to vary, in a place."""
    axes, named = sweep.size_axes(family.name, dataset.name), functools.partial(label_field, model=family.name)
    bound = session.bind_choice("axis", axes, axes[0], named)
    chosen: str = place.selectbox("Vary", axes, help=AXIS_HELP, **bound)
    return chosen


def choose_sizes(family: models.Family, dataset: str, without: Collection[str] = ()) -> Fields:
    axes = models.list_model_sizes(family.name, dataset)
    return {axis: choose_number(axis, dataset, family.name) for axis in axes if axis not in without}


def choose_training_numbers(dataset: str, model: str, without: Collection[str] = ()) -> Fields:
    """Draw the controls of the numbers that every training has: batch size, epochs, learning rate and others."""
    settled = models.families.SETTLED if models.family(model).library else {}
    names = [name for name in TRAINING if FIELDS[name].panel == "training" and name not in {*without, *settled}]
    return {name: choose_number(name, dataset, model) for name in names if not FIELDS[name].words}


def choose_word(name: str) -> str:
    """Draw the choice of a word for a field."""
    entry, words = FIELDS[name], list(FIELDS[name].words)
    return st.selectbox(entry.label, words, help=entry.help, **bind_words(name, words, entry.default))


def choose_number(name: str, dataset: str, model: str) -> Any:
    """Draw a slider for a number of a training, over its stops or over every whole number."""
    entry = FIELDS[name]
    if entry.stops:
        return choose_stop(name)
    low, high = experiment.value_range(name, dataset=dataset, model=model)
    usual = DOUBLING_DEPTH_DEFAULT if (name, model) == ("depth", "doubling-mlp") else entry.default
    bound = session.bind_value(name, range(int(low), int(high) + 1), usual)
    return st.slider(entry.label, int(low), int(high), usual, help=entry.help, **bound)


def choose_data_path(model: str) -> Fields:
    """Draw the choice of how data reach the device; the rows of a fit reach it in only one way."""
    if models.family(model).library:
        return {"data_path": models.families.SETTLED["data_path"]}
    captions, bound = list(DATA_PATHS.values()), bind_words("data_path", list(DATA_PATHS), DEFAULTS.data_path)
    return {"data_path": st.radio("Data path", list(DATA_PATHS), captions=captions, **bound)}


def choose_feeding(path: str, dataset: str, model: str, without: Collection[str] = ()) -> Fields:
    """Draw the order of samples, the loader's workers, and the fields whose values are words; nothing for a fit."""
    if models.family(model).library:
        return {}
    shuffle = st.toggle("Shuffle every epoch", DEFAULTS.shuffle, **bind_switch("shuffle", DEFAULTS.shuffle))
    fields: Fields = {"shuffle": shuffle}
    fields |= {name: choose_word(name) for name in TRAINING if FIELDS[name].panel == "training" and FIELDS[name].words}
    if path in LOADER_PATHS and "loader_workers" not in without:
        fields["loader_workers"] = choose_number("loader_workers", dataset, model)
    return fields


def bind_switch(name: str, usual: bool) -> Fields:
    """Return the arguments that bind a switch to the link."""
    return session.bind_value(name, (False, True), usual)


def choose_seed() -> Fields:
    entry = FIELDS["seed"]
    bound = session.bind_value("seed", range(int(entry.low), int(entry.high) + 1), entry.default)
    chosen = st.number_input(entry.label, int(entry.low), int(entry.high), entry.default, **bound)
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
    """Draw a slider over the stops of a field, or over other stops, with the value of the link.

    Args:
        name: the field.
        title: label of the slider; by default the label of the field.
        default: initial value; by default that of the field.
        stops: stops instead of those of the field.
        minimum: lowest value that a link may set, if it is higher than the lowest stop.
        maximum: highest value that a link may set, if it is lower than that of the field.
    """
    entry = FIELDS[name]
    usual = describe.simplify_number(entry.default if default is None else default)
    high = entry.high if maximum is None else maximum
    offered = sorted({describe.simplify_number(stop) for stop in stops or entry.stops if entry.low <= stop <= high})
    numbers = read_linked_numbers(name, last=True)
    if numbers and max(entry.low, minimum or entry.low) <= numbers[0] <= high and numbers[0] not in offered:
        bisect.insort(offered, numbers[0])
    bound = session.bind_numbers(name, offered, usual)
    return st.select_slider(title or entry.label, offered, value=usual, help=entry.help, **bound)


def parse_point(link: Mapping[str, Sequence[str]]) -> tuple[Point, list[str]]:
    """Return the training of a link without its invalid fields, and a sentence for each of these."""
    said = {name: values[-1] for name, values in link.items() if name in TRAINING}
    faults: list[str] = []
    while True:
        try:
            return Point.parse(said), faults
        except InvalidValue as error:
            faults.append(describe.format_page_error(error))
            if said.pop(error.field, None) is None:
                return Point(), faults


def collect_faults(*checks: Callable[[], object]) -> list[str]:
    """Return the errors of several checks, a sentence each."""
    found: list[str] = []
    for check in checks:
        try:
            check()
        except InvalidValue as error:
            found.append(describe.format_page_error(error))
    return list(dict.fromkeys(found))


def parse_number(name: str, text: str) -> float:
    """Return a number of a link; raises InvalidValue if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        entry = FIELDS[name]
        raise InvalidValue(name, text, f"a number between {entry.low:g} and {entry.high:g}") from None


def read_linked(name: str, spelled: Callable[[str], str]) -> list[str]:
    """Return the values of the link for a control, as `spelled` writes them, without invalid ones."""
    found: list[str] = []
    for text in session.read_arrived_settings().get(name, ()):
        with contextlib.suppress(InvalidValue):
            found.append(spelled(text))
    return found


def read_linked_numbers(name: str, *, last: bool = False) -> list[float]:
    """Return the numbers of the link for a control; a control with a single value uses the last."""
    texts, found = session.read_arrived_settings().get(name, ()), []
    for text in texts[-1:] if last else texts:
        with contextlib.suppress(ValueError, OverflowError):  # not a number, or infinite
            found.append(describe.simplify_number(float(text)))
    return found


def make_recording_query(fields: Mapping[str, Any]) -> Mapping[str, object] | None:
    """Return the settings that find recordings of a training; None if its fields are invalid."""
    try:
        return recordings.point_settings(Point(**fields))
    except InvalidValue:
        return None


ONE_THREAD = Contender(threads=1)

DEVICES_HELP = "The others are compared with the first. `cpu` without a number of threads tries several."


def choose_devices(machine: Machine | None, key: str = "devices") -> list[str]:
    """Draw the choice of devices, and return the chosen contenders in the order of the machine.

    So the order of clicks does not change the question.
    """
    if machine is None:
        wait_for_devices()
        return []
    linked = read_linked(key, lambda text: str(Contender.parse(text)))
    linked = [text for text in linked if Contender.parse(text).device in machine.device_names]
    options = list(dict.fromkeys([*map(str, list_contenders(machine)), *linked]))
    chosen = st.multiselect(
        "Devices",
        options,
        max_selections=experiment.MAX_CONTENDERS,
        help=DEVICES_HELP,
        **session.bind_choice(
            key,
            options,
            [str(contender) for contender in pick_default_contenders(machine)],
            experiment.display_name,
            most=experiment.MAX_CONTENDERS,
        ),
    )
    say_cut(key, experiment.MAX_CONTENDERS, "devices")
    return sorted(chosen, key=options.index)


def say_cut(name: str, most: int, noun: str) -> None:
    """Show a note if the link of the session chooses more than a control accepts."""
    named = len(dict.fromkeys(session.read_arrived_settings().get(name, ())))
    if named > most and not session.has_changed():
        st.caption(f"The link names {named} {noun}; the first {most} are chosen.")


def join_titles(chosen: Sequence[str]) -> str:
    """Return the labels of contenders in a line; names of variants can contain commas."""
    titles = [experiment.display_name(text) for text in chosen]
    return ("; " if any("," in title for title in titles) else ", ").join(titles)


def wait_for_devices() -> None:
    """Wait until the measuring process has reported this machine's devices; show why if nothing can run."""
    if reason := queries.explain_no_runs():
        st.selectbox("Devices", ["none"], disabled=True)
        st.caption(reason)
    else:
        poll_machine(_draw_device_search)


DEVICE_SEARCH = "device_search"
"""Key of the placeholder that is shown during the search for devices."""


def _draw_device_search() -> None:
    st.selectbox("Devices", ["Looking at this machine's devices…"], disabled=True, key=DEVICE_SEARCH)
    if waits_for := queries.describe_loading():
        st.caption(waits_for)


@st.fragment(run_every=0.5)
def poll_machine(draw: Callable[[], object]) -> None:
    """Draw the placeholder until the measuring process, which it keeps running, has reported the devices."""
    queries.start_measuring_process()
    if queries.read_machine() is not None:
        st.rerun()
    draw()


def list_contenders(machine: Machine) -> tuple[Contender, ...]:
    """Return the devices of this machine, the baseline first."""
    others = tuple(Contender(device=info.device) for info in machine.devices if info.kind != "cpu")
    if others:
        return (Contender(), ONE_THREAD, *others)
    return (*default_contenders(machine.device_names, machine.environment.cores_usable), Contender())


def pick_default_contenders(machine: Machine) -> tuple[Contender, ...]:
    """Return the default devices to compare; with a recorded accelerator the CPU is enough."""
    if session.read_accelerator() and len(machine.devices) == 1:
        return (Contender(),)
    return default_contenders(machine.device_names, machine.environment.cores_usable)


def find_missing_device(request: Sequence[Contender], machine: Machine | None) -> str:
    """Return a sentence on a requested device that this machine lacks; empty if there is none."""
    absent = [contender.device for contender in request if machine and contender.device not in machine.device_names]
    if machine is None or not absent:
        return ""
    seen = " and ".join(map(experiment.inline_name, machine.device_names))
    return f"{capitalize_name(experiment.inline_name(absent[0]))} is not on this machine: PyTorch sees {seen}."


LANES_HELP = (
    "Execution variants to compare with the default eager fp32 loop, on every chosen device. "
    "`compiled10`: torch.compile, ten steps per call. `graph`: CUDA graph replay. `fused`, `foreach`: optimizer "
    "implementation. `kept`: reuse freed CPU memory instead of returning it to the system. `micro250`: micro-batches "
    "of 250 samples. `benchmark`: cuDNN autotuning. `bf16`, `fp16`, `tf32`: lower precision."
)


def choose_lanes(machine: Machine | None, training: Training) -> list[str]:
    """Draw the control once the machine is known; variants that no device supports are named with the reason."""
    if machine is None:
        return []
    wanted = {spell_lane(lane): lane for host in (True, False) for lane in lanes.worth_trying(training, on_host=host)}
    refused = {words: reason for words, lane in wanted.items() if (reason := _explain_missing_lane(lane, machine))}
    offered = [words for words in wanted if words not in refused]
    linked = read_linked("lanes", lambda text: spell_lane(parse_lane(text)))
    options = list(dict.fromkeys([*offered, *filter(None, linked), *session.read_chosen_lanes()]))
    if not options and not refused:  # a fit has no variants
        return []
    chosen = st.multiselect(
        "Variants",
        options,
        placeholder="default loop only",
        help=LANES_HELP,
        **session.bind_choice("lanes", options, [], _title_lane),
    )
    if refused:
        reasons = {why: [_title_lane(words) for words in refused if refused[words] == why] for why in refused.values()}
        listed = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        st.caption(plain(f"Not on this machine: {listed}."))
    return sorted(chosen, key=options.index)


def apply_lanes(chosen: Sequence[str], words: Sequence[str], machine: Machine | None) -> list[str]:
    """Return contenders with each chosen variant that their device supports, default ones first; report the others."""
    if machine is None:
        return []
    found, left_out = list(chosen), []
    for text in chosen:
        contender = Contender.parse(text)
        for each in words if contender.lane == PLAIN else ():
            lane = parse_lane(each)
            who = experiment.inline_name(f"{text}+{each}")
            if reason := lanes.why_not(lane, machine.refusals[contender.device], who):
                left_out.append(reason)
            else:
                found.append(f"{text}+{spell_lane(lane)}")
    if left_out:
        st.caption(plain(" ".join(left_out)))
    return list(dict.fromkeys(found))


def refuse_lane_count(contenders: Sequence[str], words: Sequence[str]) -> str:
    """Explain why so many contenders cannot be measured together, in a sentence; empty if they can."""
    most = experiment.MAX_CONTENDERS
    if not words or len(contenders) <= most:
        return ""
    allowed = f"fewer: with these devices they make {len(contenders)} trainings to compare, and {most} fit into one run"
    return describe.format_page_error(InvalidValue("lanes", "; ".join(map(_title_lane, words)), allowed))


def parse_lane(text: str) -> Lane:
    """Return a variant from a link; raises InvalidValue if it is invalid."""
    return Lane.parse(re.findall(r"\w+", text))


def check_lanes(link: Mapping[str, Sequence[str]]) -> None:
    """Raise InvalidValue if a link has an invalid variant."""
    for text in link.get("lanes", ()):
        parse_lane(text)


def spell_lane(lane: Lane) -> str:
    return "+".join(lane.words)


def _title_lane(words: str) -> str:
    return parse_lane(words).title


def _explain_missing_lane(lane: Lane, machine: Machine) -> str:
    """Return why no device of a machine supports a variant, as text after a colon; empty if one does."""
    reasons = [
        next((refusals[kind] for kind in lane.kinds if kind in refusals), "") for refusals in machine.refusals.values()
    ]
    return reasons[0] if all(reasons) else ""


CUSTOM_SIZES = [2**power for power in range(25)]
"""Sizes that the ends of a range can be set to; a link may have others."""

FILE_REFRESH_S = 2.0
"""Longest time in seconds until a change of the file is noticed."""

CATALOGUE_TITLE = "A model built-in training"
SIZE_HELP = "Size passed to the function of the file, such as the width of the model."
PAIR_STOPS, POSSIBLE_PAIRS = (2, 4, 6, 10, 15, 20, 30, 50, 100), range(1, 101)
"""Numbers of pairs that the control offers, and that a link may set."""

PAIRS_HELP = "One block of every device makes a pair. More pairs make the intervals narrower."
CUSTOM_CAPTION = "Your script runs unchanged, in its own process. Facts that it does not report stay unknown."


def choose_custom_training(refusals: DeltaGenerator) -> CustomFile | None:
    """Draw the choice between the catalogue and custom scripts, and the facts about the chosen file.

    Args:
        refusals: place for the warning that a link names an unavailable script, outside of anything that folds.

    Returns:
        The chosen script, or None for the catalogue.
    """
    offered = permits.trainings()
    with refusals:
        _warn_unavailable(list(offered))
    if not offered:
        session.write_link("training", [])
        return None
    titles = {"": CATALOGUE_TITLE, **{name: f"Your script: {file.title}" for name, file in offered.items()}}
    chosen = st.selectbox(
        "Training", list(titles), **session.bind_choice("training", list(titles), "", titles.__getitem__)
    )
    if not chosen:
        return None
    file = offered[chosen]
    st.caption(f"{plain(file.name)} · source {file.source_hash[:6] or 'cannot be read'} · {CUSTOM_CAPTION}")
    st.fragment(_rerun_on_change, run_every=FILE_REFRESH_S)(
        file, file.source_hash
    )  # notices a change while the page is idle
    return file


def choose_custom_size() -> dict[str, int]:
    """Draw the control of the size, the one number that a file's function is called with."""
    usual = int(FIELDS["size"].usual_values[1])
    bound = session.bind_value("size", range(1, LARGEST_SIZE + 1), usual)
    chosen = st.number_input("Size", 1, LARGEST_SIZE, usual, help=SIZE_HELP, **bound)
    return {"size": int(chosen or usual)}


def choose_custom_limits() -> dict[str, float]:
    """Draw the controls of the sizes of a custom script."""
    stops = sorted(
        {*PAIR_STOPS, *(pairs for pairs in read_linked_numbers("pairs", last=True) if pairs in POSSIBLE_PAIRS)}
    )
    bound = session.bind_numbers("pairs", stops, CUSTOM_PAIRS)
    pairs = st.select_slider("Pairs of blocks", stops, CUSTOM_PAIRS, help=PAIRS_HELP, **bound)
    return {"pairs": int(pairs), "budget_s": float(choose_stop("budget_s"))}


def check_custom_size(link: Mapping[str, Sequence[str]]) -> None:
    """Raise InvalidValue if the size of a link is invalid for every file."""
    for text in link.get("size", ())[-1:] if link.get("training") else ():
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:20]) <= LARGEST_SIZE:
            raise InvalidValue("size", text, f"a whole number between 1 and {LARGEST_SIZE:,}")


def invite_custom_training() -> None:
    """Draw one line on how to add a custom script; nothing if that is not possible or done already."""
    if permits.on_own_machine() and not permits.trainings():
        # not st.code: the browser would load 1.5 MB to highlight this line
        st.caption(
            "To compare your own training, write a function `build(size, device)` and start the app with it: "
            f"`{custom_files.START_COMMAND}`"
        )


def _rerun_on_change(file: CustomFile, source_hash: str) -> None:
    if file.source_hash != source_hash:
        st.rerun()


def _warn_unavailable(offered: list[str]) -> None:
    """Show a warning if the link names a training that is not offered; the link has no other effect."""
    for name in session.read_arrived_settings().get("training", ())[-1:]:
        if name and name not in offered and not session.has_changed():
            here = f"Available: {', '.join(offered)}." if offered else "No custom training script is available."
            st.warning(
                plain(
                    f"This link asks for the training {links.shorten_list([name])}, which is not offered here. {here}"
                )
            )


def make_point_values(point: Point, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the control values for a training, without sizes of other families and settings of unused loaders."""
    if point.training:
        found = {"training": point.training, "size": point.size} if point.training in permits.trainings() else {}
        return {name: value for name, value in found.items() if name not in without}
    fields = {name: getattr(point, name) for name in TRAINING if name not in {*without} | point.idle}
    return {**fields, "training": ""}
