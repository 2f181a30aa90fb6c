"""The controls of a question, bound to the link: training, devices, lanes, a custom training, and what differs.

Controls hold the words that the link, the command line and the store use, and show their names for people. A page
that varies a field leaves its control out. What may be asked for is decided by `core.question` alone, which custom
trainings are offered by `pages.shared.permits`, and which lanes a device has by its measuring process.
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
from core.errors import CrossoverError, InvalidValue
from core.jobs.machine import Machine
from core.question import catalog, describe, experiment, lanes, models, refusals
from core.question.custom import LARGEST_SIZE
from core.question.defaults import default_contenders
from core.question.describe import format_value as spell
from core.question.describe import simplify_number as plain_number
from core.question.devices import capitalize_name
from core.question.experiment import CUSTOM_PAIRS, Contender, Point
from core.question.fields import DATA_PATHS, FIELDS, LOADER_PATHS, TRAINING, Training, short_label
from core.question.lanes import PLAIN, Lane
from pages.shared import custom_files, links, permits, queries, session
from pages.shared.custom_files import CustomFile
from pages.shared.text import plain

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
    called = models.boosting.answer_axis_name(name, model)
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
    return session.bind_choice(name, words, usual, functools.partial(short_label, name))


def _describe_choices(choices: Iterable[catalog.Dataset | models.Family]) -> str:
    """What each of several choices is, a line each."""
    return "  \n".join(f"**{choice.title}**: {choice.summary}" for choice in choices)


def choose_sizes(family: models.Family, dataset: str, without: Collection[str] = ()) -> Fields:
    axes = models.list_model_sizes(family.name, dataset)
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
    low, high = experiment.value_range(name, dataset=dataset, model=model)
    usual = DOUBLING_DEPTH_DEFAULT if (name, model) == ("depth", "doubling-mlp") else entry.default
    return st.slider(entry.label, int(low), int(high), usual, help=entry.help, **session.bind_control(name))


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
    fields: Fields = {"shuffle": st.toggle("Shuffle every epoch", DEFAULTS.shuffle, **session.bind_control("shuffle"))}
    fields |= {name: choose_word(name) for name in TRAINING if FIELDS[name].panel == "training" and FIELDS[name].words}
    if path in LOADER_PATHS and "loader_workers" not in without:
        fields["loader_workers"] = choose_number("loader_workers", dataset, model)
    return fields


def choose_seed() -> Fields:
    entry = FIELDS["seed"]
    chosen = st.number_input(
        entry.label, int(entry.low), int(entry.high), entry.default, **session.bind_control("seed")
    )
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
    usual = describe.simplify_number(entry.default if default is None else default)
    high = entry.high if maximum is None else maximum
    offered = sorted({describe.simplify_number(stop) for stop in stops or entry.stops if entry.low <= stop <= high})
    numbers = read_linked_numbers(name, last=True)
    if numbers and max(entry.low, minimum or entry.low) <= numbers[0] <= high and numbers[0] not in offered:
        bisect.insort(offered, numbers[0])
    bound = session.bind_numbers(name, offered, usual)
    return st.select_slider(title or entry.label, offered, value=usual, help=entry.help, **bound)


def parse_point(link: Mapping[str, Sequence[str]]) -> tuple[Point, list[str]]:
    """The training that a link asks for, without the fields that are not what they may be; a sentence for each."""
    said = {name: values[-1] for name, values in link.items() if name in TRAINING}
    faults: list[str] = []
    while True:
        try:
            return Point.parse(said), faults
        except InvalidValue as error:
            faults.append(refusals.format_page_error(error))
            if said.pop(error.field, None) is None:
                return Point(), faults


def collect_faults(*checks: Callable[[], object]) -> list[str]:
    """What each of several checks refuses, a sentence each."""
    found: list[str] = []
    for check in checks:
        try:
            check()
        except InvalidValue as error:
            found.append(refusals.format_page_error(error))
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
    for text in session.read_arrived_settings().get(name, ()):
        with contextlib.suppress(InvalidValue):
            found.append(spelled(text))
    return found


def read_linked_numbers(name: str, *, last: bool = False) -> list[float]:
    """The numbers that the link brought for a control of several, or for one, which takes the last."""
    texts, found = session.read_arrived_settings().get(name, ()), []
    for text in texts[-1:] if last else texts:
        with contextlib.suppress(ValueError, OverflowError):  # no number, or infinite
            found.append(describe.simplify_number(float(text)))
    return found


def make_recording_query(fields: Mapping[str, Any]) -> Mapping[str, object] | None:
    """A training as recordings of it are looked for; None where its fields make none."""
    try:
        return recordings.point_settings(Point(**fields))
    except InvalidValue:
        return None


ONE_THREAD = Contender(threads=1)

DEVICES_HELP = "The first is what the others are compared with. The CPU without a number of threads tries several."


def choose_devices(machine: Machine | None, key: str = "devices") -> list[str]:
    """Draw the control; contenders in the machine's order, so that however they were clicked the question is one."""
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
            key, options, [str(contender) for contender in pick_default_contenders(machine)], experiment.display_name
        ),
    )
    return sorted(chosen, key=options.index)


def join_titles(chosen: Sequence[str]) -> str:
    """Contenders as people read them, in a line; names of lanes have commas themselves."""
    titles = [experiment.display_name(text) for text in chosen]
    return ("; " if any("," in title for title in titles) else ", ").join(titles)


def wait_for_devices() -> None:
    """Wait for the measuring process to say what this machine has, where there is one."""
    if reason := queries.explain_no_runs():
        st.selectbox("Devices", ["none"], disabled=True)
        st.caption(reason)
    else:
        poll_machine(_draw_device_search)


def _draw_device_search() -> None:
    st.selectbox("Devices", ["Looking at this machine's devices…"], disabled=True)
    if waits_for := queries.describe_loading():
        st.caption(waits_for)


@st.fragment(run_every=0.5)
def poll_machine(draw: Callable[[], object]) -> None:
    """Draw what stands here until the measuring process has said what this machine has."""
    if queries.read_machine() is not None:
        st.rerun()
    draw()


def list_contenders(machine: Machine) -> tuple[Contender, ...]:
    """What this machine can train on, the baseline first."""
    others = tuple(Contender(device=info.device) for info in machine.devices if info.kind != "cpu")
    if others:
        return (Contender(), ONE_THREAD, *others)
    return (*default_contenders(machine.device_names, machine.environment.cores_usable), Contender())


def pick_default_contenders(machine: Machine) -> tuple[Contender, ...]:
    """What is compared unless asked otherwise; beside a recorded accelerator the CPU alone is enough."""
    if session.read_accelerator() and len(machine.devices) == 1:
        return (Contender(),)
    return default_contenders(machine.device_names, machine.environment.cores_usable)


def find_missing_device(request: Sequence[Contender], machine: Machine | None) -> str:
    """In a sentence, the device that was asked for and is not here; empty if none."""
    absent = [contender.device for contender in request if machine and contender.device not in machine.device_names]
    if machine is None or not absent:
        return ""
    seen = " and ".join(map(experiment.inline_name, machine.device_names))
    return f"{capitalize_name(experiment.inline_name(absent[0]))} is not on this machine: PyTorch sees {seen}."


LANES_HELP = (
    "Other ways to run the same steps, measured in turns with plain ones on every chosen device. "
    "`compiled10`: ten steps in one compiled call. `graph`: a recorded CUDA graph. `fused`, `foreach`: the update in "
    "few operations. `kept`: memory that a step on the CPU frees is kept for the next. `micro250`: the batch in pieces "
    "that fit the cache. `bf16`, `tf32`: other mathematics."
)


def choose_lanes(machine: Machine | None, training: Training) -> list[str]:
    """Draw the control, once the machine is known; lanes that no device of it has are named with their reason."""
    if machine is None:
        return []
    wanted = {spell_lane(lane): lane for host in (True, False) for lane in lanes.worth_trying(training, on_host=host)}
    refused = {words: reason for words, lane in wanted.items() if (reason := _explain_missing_lane(lane, machine))}
    offered = [words for words in wanted if words not in refused]
    linked = read_linked("lanes", lambda text: spell_lane(parse_lane(text)))
    options = list(dict.fromkeys([*offered, *filter(None, linked), *session.read_chosen_lanes()]))
    if not options and not refused:  # a fit has none
        return []
    chosen = st.multiselect(
        "Lanes",
        options,
        placeholder="plain steps only",
        help=LANES_HELP,
        **session.bind_choice("lanes", options, [], _title_lane),
    )
    if refused:
        reasons = {why: [_title_lane(words) for words in refused if refused[words] == why] for why in refused.values()}
        listed = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        st.caption(plain(f"Not on this machine: {listed}."))
    return sorted(chosen, key=options.index)


def apply_lanes(chosen: Sequence[str], words: Sequence[str], machine: Machine | None) -> list[str]:
    """Contenders with each chosen lane that their device has, the plain ones first; what is left out is said."""
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
    """Why so many contenders cannot be measured together, in a sentence; empty if they can."""
    most = experiment.MAX_CONTENDERS
    if not words or len(contenders) <= most:
        return ""
    allowed = f"fewer: with these devices they make {len(contenders)} trainings to compare, and {most} fit into one run"
    return refusals.format_page_error(InvalidValue("lanes", "; ".join(map(_title_lane, words)), allowed))


def parse_lane(text: str) -> Lane:
    """A lane of a link; raises InvalidValue where it is none."""
    return Lane.parse(re.findall(r"\w+", text))


def check_lanes(link: Mapping[str, Sequence[str]]) -> None:
    """Refuse a link with a lane that is none; raises InvalidValue."""
    for text in link.get("lanes", ()):
        parse_lane(text)


def spell_lane(lane: Lane) -> str:
    return "+".join(lane.words)


def _title_lane(words: str) -> str:
    return parse_lane(words).title


def _explain_missing_lane(lane: Lane, machine: Machine) -> str:
    """Why no device of a machine has a lane, to go on after a colon; empty if one has."""
    reasons = [
        next((refusals[kind] for kind in lane.kinds if kind in refusals), "") for refusals in machine.refusals.values()
    ]
    return reasons[0] if all(reasons) else ""


CUSTOM_SIZES = [2**power for power in range(25)]
"""Sizes that the ends of a range can be set to; a link may have others."""

FILE_REFRESH_S = 2.0
"""Seconds after which a change of the file is noticed, at most."""

CATALOGUE_TITLE = "A model of the catalogue"
SIZE_HELP = "What the function of the file is called with: whatever its training grows with."
PAIR_STOPS, POSSIBLE_PAIRS = (2, 4, 6, 10, 15, 20, 30, 50, 100), range(1, 101)
"""Pairs that are offered, and that a link may ask for."""

PAIRS_HELP = "One block of every device makes a pair. More pairs make the intervals narrower."
CUSTOM_CAPTION = (
    "It is run as it is, in a process of its own that ends with it. What it does not say of itself is not known."
)


def choose_custom_training(refusals: DeltaGenerator) -> CustomFile | None:
    """Draw which training it is, where one of one's own is offered, and what is known of its file.

    Args:
        refusals: where it is said that a link names one that is not offered; not where it would be folded away.

    Returns:
        The chosen one, or None for the catalogue.
    """
    offered = permits.trainings()
    with refusals:
        _warn_unavailable(list(offered))
    if not offered:
        session.write_link("training", [])
        return None
    titles = {"": CATALOGUE_TITLE, **{name: f"Your own training: {file.title}" for name, file in offered.items()}}
    chosen = st.selectbox(
        "Training", list(titles), **session.bind_choice("training", list(titles), "", titles.__getitem__)
    )
    if not chosen:
        return None
    file = offered[chosen]
    st.caption(f"{plain(file.name)} · source {file.source_hash[:6] or 'cannot be read'} · {CUSTOM_CAPTION}")
    st.fragment(_rerun_on_change, run_every=FILE_REFRESH_S)(
        file, file.source_hash
    )  # a change is seen while nothing else happens
    return file


def choose_custom_size() -> dict[str, int]:
    """The control of the one number that a file is called with."""
    usual = int(FIELDS["size"].usual_values[1])
    chosen = st.number_input("Size", 1, LARGEST_SIZE, usual, help=SIZE_HELP, **session.bind_control("size"))
    return {"size": int(chosen or usual)}


def choose_custom_limits() -> dict[str, float]:
    """The controls of how far a training of one's own is measured."""
    stops = sorted(
        {*PAIR_STOPS, *(pairs for pairs in read_linked_numbers("pairs", last=True) if pairs in POSSIBLE_PAIRS)}
    )
    pairs = st.select_slider("Pairs of blocks", stops, CUSTOM_PAIRS, help=PAIRS_HELP, **session.bind_control("pairs"))
    return {"pairs": int(pairs), "budget_s": float(choose_stop("budget_s"))}


def check_custom_size(link: Mapping[str, Sequence[str]]) -> None:
    """Refuse a link with a size that no file can be called with; raises InvalidValue."""
    for text in link.get("size", ())[-1:] if link.get("training") else ():
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:20]) <= LARGEST_SIZE:
            raise InvalidValue("size", text, f"a whole number between 1 and {LARGEST_SIZE:,}")


def invite_custom_training() -> None:
    """Draw one line on how to bring one's own training; nothing where that cannot be done, or was."""
    if permits.on_own_machine() and not permits.trainings():
        st.caption("To compare your own training, write a function `build(size, device)` and start the app with it:")
        st.code(custom_files.START_COMMAND, language=None, wrap_lines=True)


def _rerun_on_change(file: CustomFile, source_hash: str) -> None:
    if file.source_hash != source_hash:
        st.rerun()


def _warn_unavailable(offered: list[str]) -> None:
    """Say that a link names a training that is not offered, which is all that becomes of it."""
    for name in session.read_arrived_settings().get("training", ())[-1:]:
        if name and name not in offered and not session.has_changed():
            here = f"What is offered: {', '.join(offered)}." if offered else "No training of one's own is."
            st.warning(
                plain(
                    f"This link asks for the training {links.shorten_list([name])}, which is not offered here. {here}"
                )
            )


CATALOGUE_SOURCE = "of the catalogue"
FILE_SOURCE = "source"
"""Title of what no control can set: the file of one's own training as it was."""

MAX_NAMED_DIFFERENCES = 3
"""Settings that differ which are named before the rest are counted."""

Difference = tuple[str, str, str]
"""Title of a setting, its value in the settings and in what is shown."""


def draw_differences(differences: Sequence[Difference], values: Mapping[str, Any]) -> None:
    """Say what differs, if anything does, and offer the values of the controls that ask for what is shown."""
    if not differences:
        return
    named = "; ".join(f"{title} {now}, not {then}" for title, now, then in differences[:MAX_NAMED_DIFFERENCES])
    more = f" and {len(differences) - MAX_NAMED_DIFFERENCES} more" if len(differences) > MAX_NAMED_DIFFERENCES else ""
    with st.container(horizontal=True, vertical_alignment="center", key="unlike"):
        st.caption(plain(f"The settings ask for something other than what is shown: {named}{more}."), width="content")
        if values and any(title != FILE_SOURCE for title, _, _ in differences):
            icon = ":material/settings_backup_restore:"
            st.button("Set them as shown", key="set_as_shown", icon=icon, on_click=session.adopt_values, args=(values,))


def adopt_view(
    view: tuple[links.Kind, str] | None,
    machine: Machine | None,
    controls: Callable[[links.Kind, str, Machine], Mapping[str, Any]],
) -> None:
    """Set the controls as what a link opens was asked for, if the link says nothing of a training.

    Args:
        view: what the page shows.
        machine: this one; nothing is set before it is known.
        controls: the values of the controls that ask for what a link opens; none where that cannot be told. What it
            raises is said where that is drawn.
    """
    if view is None or machine is None or session.has_changed() or set(session.read_arrived_settings()) - {"recorded"}:
        return
    with contextlib.suppress(CrossoverError):
        if values := controls(*view, machine):
            session.adopt_values(values)


def compare_points(request: Point, reference: Point, without: Collection[str] = ()) -> list[Difference]:
    """What differs between two trainings, without some of their fields."""
    if request.training != reference.training:
        return [("training", request.training or CATALOGUE_SOURCE, reference.training or CATALOGUE_SOURCE)]
    if request.training:
        known = {FILE_SOURCE: (request.source_hash[:6], reference.source_hash[:6])}
        known |= (
            {}
            if "size" in without
            else {"size": (session.format_number(request.size), session.format_number(reference.size))}
        )
        return [(title, now, then) for title, (now, then) in known.items() if now != then]
    used = {*make_point_values(request, without), *make_point_values(reference, without)}
    pairs = ((name, getattr(request, name), getattr(reference, name)) for name in TRAINING if name in used)
    return [
        (FIELDS[name].title, _spell_setting(name, now), _spell_setting(name, then))
        for name, now, then in pairs
        if now != then
    ]


def _spell_setting(name: str, value: Any) -> str:
    """The value of a setting as its control shows it."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return session.format_number(plain_number(value)) if number else short_label(name, spell(value))


def compare_contenders(request: Sequence[Contender], reference: Sequence[Contender]) -> list[Difference]:
    """The devices of two questions, where they differ."""
    now, then = (_join_names([contender.title for contender in each]) for each in (request, reference))
    return [("devices", now, then)] if now != then else []


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def make_point_values(point: Point, without: Collection[str] = ()) -> dict[str, Any]:
    """The values of the controls that ask for a training; sizes of other families and idle loaders have none."""
    if point.training:
        found = {"training": point.training, "size": point.size} if point.training in permits.trainings() else {}
        return {name: value for name, value in found.items() if name not in without}
    fields = {name: getattr(point, name) for name in TRAINING if name not in {*without} | point.idle}
    return {**fields, "training": ""}
