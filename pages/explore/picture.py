"""The live picture: the curve over a size, the step on each device, the network, and a sentence for every size.

The server sends the data of all sizes of the slider once, and the browser moves through them without a request.
`picture.js` only draws; it decides nothing. One value returns to the server, when the slider is released.
"""

import contextlib
import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import streamlit as st

from core import units
from core.answer import causes, predict, speedup, wording
from core.answer.charts import look
from core.answer.gallery.overview import Overview
from core.answer.gallery.published import find_published_curves
from core.answer.predict import CpuSide
from core.answer.study import Study
from core.answer.training_cost import break_even_sentence, cheaper_from, describe_costs, find_list_prices
from core.answer.verdict import Verdict
from core.errors import CrossoverError, InvalidValue, StoreError
from core.jobs.machine import Machine
from core.question import describe
from core.question.experiment import PROTOCOL_VERSION, Experiment, Point, display_name, value_range
from core.question.fields import FIELDS, axis_title
from core.question.lanes import PLAIN, Lane
from core.question.sweep import Sweep, size_axes, size_on_axis, vary
from core.results import environment
from core.results.schema import Trial
from core.text import as_line
from pages.shared import accelerators_view, controls, elements, expectations, queries, session
from pages.shared.cache import cache_answers
from pages.shared.elements import format_date, plain, show_errors

MAX_VALUES = 64
"""Maximum number of sizes of the slider; a long range of whole numbers is thinned out."""

NOTHING_KNOWN = "This training has not been measured on this machine. {button} measures it."

_HERE = Path(__file__)
_component = st.components.v2.component(
    "crossover_picture",
    css=_HERE.with_suffix(".css").read_text(encoding="utf-8"),
    js=_HERE.with_suffix(".js").read_text(encoding="utf-8"),
)

PART_COLOURS = {
    **look.PART_COLOURS,
    "copy": look.PART_COLOURS["transfer"],
    "launches": "#99DDFF",
    "arithmetic": look.PART_COLOURS["forward"],
    "update": look.PART_COLOURS["optimizer"],
}
PART_TITLES = {"loader": "loader", "transfer": "copy", "optimizer": "update"}
"""Titles of parts whose label differs from their name."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """A study of a training over a size, and whether it was recorded on another machine."""

    study: Study
    is_recorded: bool

    @property
    def rows(self) -> list[Trial]:
        return [row for run in self.study.runs for row in run]


def choose_card(machine: Machine | None) -> str:
    """Draw the choice of a GPU that this machine lacks; return its key, or an empty string."""
    alone = machine is None or len(machine.devices) == 1
    keys = ["", *(card.key for card in predict.list_cards())]
    bound = session.bind_choice("card", keys, keys[1] if alone and keys[1:] else "", _title_card)
    return st.selectbox("A GPU that is not here", keys, help=CARD_HELP, **bound) or ""


CARD_HELP = (
    "Its step is predicted from the operations of the network: a range, never a point, and never part of a result. "
    "It contained 90 % of published trainings like these."
)


def _title_card(key: str) -> str:
    return predict.find_card(key).title if key else "none"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The question that the controls of Explore make.

    Attributes:
        request: question of the button; None if it is invalid, or while this machine is unknown.
        point: its training; None if the settings are invalid.
        fault: why the question is invalid, in a sentence.
        usual: training shown if the settings are invalid: the same model with default settings.
    """

    request: Experiment | Sweep | None
    point: Point | None
    fault: str = ""
    usual: Point | None = None
    is_range: bool = False

    @property
    def contenders(self) -> tuple[str, ...]:
        """The requested devices."""
        return tuple(map(str, self.request.contenders)) if self.request else ()


def draw_picture(
    settings: Settings,
    machine: Machine | None,
    *,
    axis: str,
    card: str,
    fresh: Sequence[Trial] = (),
    shown: Sequence[Trial] = (),
) -> None:
    """Draw the picture of a training over one of its sizes; if the settings are invalid, use the model's default.

    Args:
        settings: question of the controls.
        machine: this one.
        axis: the size that is varied, if the training has it.
        card: key of a GPU that this machine lacks; empty for none.
        fresh: rows of a running measurement.
        shown: rows of the result below; their devices take the place of those of the controls.
    """
    point = settings.point or settings.usual
    if point is None:
        return
    if settings.point is None:
        st.warning("The picture shows this model with its usual settings.")
    axes = _list_axes(point)
    axis = axis if axis in axes else axes[0]
    with show_errors(st.warning):
        data = make_picture(settings, point, axis, card, machine, fresh, shown)
        # in a list, since Streamlit imports pandas to look for data frames in a mapping
        _component(data=[data], key="picture", on_size_change=_take_size, default={"size": None})
        if data["band"]:
            _draw_prices(point, card, data["band"])


def _list_axes(point: Point) -> list[str]:
    if point.training:
        return ["size"]
    return [name for name in size_axes(point.model, point.dataset) if name in expectations.AXES]


PRICES_HELP = "Price per hour, in any currency. Enter your own prices; they are not stored and not part of a link."


def _draw_prices(point: Point, card: str, band: Mapping[str, Any]) -> None:
    """Draw the fields for two prices, the break-even speedup, and the accuracy of such predictions."""
    money, accuracy = st.columns(2)
    with money.expander("Time and money"):
        places, prices = st.columns(2), _read_prices()
        for place, (key, label) in zip(places, PRICES.items(), strict=True):
            place.number_input(label, 0.0, value=None, placeholder="none", key=key, help=PRICES_HELP)
        if prices:
            st.markdown(plain(break_even_sentence(prices["cpu"], prices["gpu"])))
        _draw_list_prices(card)
    with accuracy.expander("How good is this prediction?", **session.bind_view("accuracy")) as part:
        if part.open:
            _draw_accuracy(card, band["record"])


def _draw_list_prices(card: str) -> None:
    """Offer published prices of a GPU and of a CPU at the same provider, grey if they are outdated."""
    listed = find_list_prices(card)
    if listed is None:
        st.caption("The list price of this GPU is unknown. Enter the prices you pay.")
        return
    for one in listed:
        is_old = one.is_stale(datetime.date.today())
        price = f"{one.provider}, {format_date(one.retrieved)}: ${one.usd_per_hour:g} per hour, {one.title}"
        shown = plain(f"{price}, from {one.source}")
        st.caption(f":gray[Outdated: {shown}]" if is_old else shown)
    st.button("Fill in list prices", on_click=_fill_prices, args=[one.usd_per_hour for one in listed])


def _fill_prices(cpu: float, gpu: float) -> None:
    st.session_state.update(dict(zip(PRICES, (cpu, gpu), strict=True)))


def _draw_accuracy(card: str, record: str) -> None:
    """Compare published trainings on a GPU with predictions fitted without that GPU, and describe later runs."""
    everything = predict.load_accuracy()
    shown = everything.of_card(predict.find_card(card).name)
    inside, of = sum(row.inside for row in everything.rows), len(everything.rows)
    st.markdown(
        f"Each of {of} published trainings was predicted without data of its own GPU: {inside} were within the range. "
        f"The median error was {units.format_share(everything.median_error)}. {plain(record)}"
    )
    if not shown.rows:
        st.caption("None of them used this GPU, so its range is wider.")
        return
    lines = [
        {
            "Training": row.row.step,
            "Published": units.format_duration(row.row.ms / 1e3),
            "Predicted": f"{units.format_duration(row.low_s, 2)} to {units.format_duration(row.high_s, 2)}",
            "Inside": "yes" if row.inside else "no",
        }
        for row in shown.rows
    ]
    elements.draw_table(lines, alt="Published trainings on this GPU against their predictions")


PRICES = {"price_cpu": "The CPU, per hour", "price_gpu": "The GPU, per hour"}
"""Key and label of each price that a visitor may type; prices are in no link and in no row."""


def _read_prices() -> dict[str, float]:
    """Return both prices; empty unless both were typed."""
    typed = {key.removeprefix("price_"): st.session_state.get(key) for key in PRICES}
    return {name: float(price) for name, price in typed.items() if price is not None and None not in typed.values()}


def _take_size() -> None:
    """Set the control of a size to the value at which the slider of the picture was released."""
    chosen = st.session_state["picture"].get("size")
    if chosen and chosen["axis"] in expectations.AXES:
        session.adopt_values({chosen["axis"]: describe.simplify_number(chosen["value"])})


def make_picture(
    settings: Settings,
    point: Point,
    axis: str,
    card: str,
    machine: Machine | None,
    fresh: Sequence[Trial],
    shown: Sequence[Trial],
) -> dict[str, Any]:
    """Return all data that the browser draws, ready for JSON."""
    rows = _find_rows(point, axis, fresh)
    known = _find_known(rows, axis, settings.contenders, machine, shown)
    recorded = _find_recording(rows, axis, machine, known)
    values = _list_values(point, axis, {size for one in (known, recorded) if one for size in one.study.sizes})
    band = _predict_band(point, axis, card, values, _read_cpu(known))
    crossovers = _list_crossovers(known, band, axis)
    start = crossovers[0]["low"] if settings.is_range and crossovers else getattr(point, axis)
    place = values.index(_nearest(values, start))
    is_recorded = known is not None and known.is_recorded
    beside = _make_curves(recorded)[1:] if recorded else []
    beside_said = _describe_recorded(recorded, beside[0]["points"]) if recorded else {}
    button = "Find the crossover" if settings.is_range else "Run"
    is_known = not (point.is_fit or point.training)
    figures = predict.sample_figures(point, axis, values) if is_known else {}
    return {
        "axis": {"name": axis, "title": axis_title(axis), "label": controls.label_field(axis, point.model)},
        "values": values,
        "place": place,
        "sends": not settings.is_range,
        "steps": [vary(point, {axis: value}).steps_per_epoch for value in values] if not point.training else [],
        "curves": [*(_make_curves(known) if known else []), *beside],
        "published": _list_published(point, axis, values),
        "band": {**band, "costs": list(map(_name_recorded_cpu, band["costs"]))} if band and is_recorded else band,
        "crossovers": crossovers,
        "sentences": [
            _list_sentences(known, beside_said.get(value, ""), band, place, value, button)
            for place, value in enumerate(values)
        ],
        "figures": _describe_figures(figures, values),
        "launches": figures["figures"]["launches"] if figures else [0] * len(values),
        "layers": figures["layers"] if figures else [],
        "part_colours": PART_COLOURS,
        "part_titles": PART_TITLES,
    }


def _list_published(point: Point, axis: str, values: Sequence[float]) -> list[dict[str, Any]]:
    """Return published speedups of such a training over the axis, or the size from which the GPU was faster."""
    return [
        {
            "name": found.source,
            "address": found.address,
            "points": [[size, speedup] for size, speedup in found.speedups if values[0] <= size <= values[-1]],
            "wins_from": found.wins_from,
        }
        for found in find_published_curves(point, axis)
    ]


def _list_values(point: Point, axis: str, measured: Collection[float]) -> list[float]:
    """Return the stops of the slider: those of the control, the current size, and the measured sizes."""
    low, high = value_range(axis, dataset=point.dataset, model=point.model)
    usual = controls.CUSTOM_SIZES if point.training else range(int(low), int(high) + 1)
    stops = FIELDS[axis].axis_stops or FIELDS[axis].stops or usual
    found = {describe.simplify_number(stop) for stop in (*stops, getattr(point, axis), *measured)}
    possible = sorted(stop for stop in found if low <= stop <= high and _is_possible(point, axis, stop))
    kept = {getattr(point, axis), *measured}
    every = -(-len(possible) // MAX_VALUES)
    return [stop for place, stop in enumerate(possible) if place % every == 0 or stop in kept]


def _is_possible(point: Point, axis: str, value: float) -> bool:
    try:
        return vary(point, {axis: value}) is not None
    except InvalidValue:
        return False


def _nearest(values: Sequence[float], wanted: float) -> float:
    return min(values, key=lambda value: abs(value - wanted))


def _find_rows(point: Point, axis: str, fresh: Sequence[Trial]) -> list[Trial]:
    """Return the fresh rows and the stored rows of a training at any size."""
    rows = list(fresh)
    with contextlib.suppress(StoreError):  # shown in place of the answer
        rows += queries.find_rows(trial_ids=_list_alike(queries.read_overview(), point, axis))
    return rows


def _find_known(
    rows: Sequence[Trial], axis: str, names: tuple[str, ...], machine: Machine | None, shown: Sequence[Trial]
) -> Known | None:
    """Return the study of the shown result, else the one with the most sizes of this machine and the chosen devices.

    Without either, return a study that was recorded on another machine, with an accelerator if there is one.
    """
    here = _find_machine_id(machine)
    if study := _find_shown_study([row for row in rows if row.trial_id in {one.trial_id for one in shown}], rows, axis):
        return Known(study=study, is_recorded=study.runs[0][0].machine_id != here)
    ours = queries.group_studies([row for row in rows if row.machine_id == here], axis)
    chosen = [study for study in ours if not machine or {study.baseline, study.challenger} <= {*names}]
    if chosen:
        return Known(study=max(chosen, key=lambda study: len(study.runs)), is_recorded=False)
    recorded = _find_recording(rows, axis, machine, None)
    others = [] if recorded else queries.group_studies([row for row in rows if row.machine_id != here], axis)
    return recorded or (Known(study=others[0], is_recorded=True) if others else None)


def _find_recording(rows: Sequence[Trial], axis: str, machine: Machine | None, known: Known | None) -> Known | None:
    """Return the recorded study of another machine's CPU and accelerator with the most sizes; None without any.

    It is that of the chosen accelerator, if one is chosen. Otherwise nothing is added to a study of an accelerator.
    """
    accelerator = accelerators_view.find_chosen_accelerator(machine) if machine else None
    if known and (known.is_recorded or not (accelerator or speedup.is_host(known.study.runs[-1][1]))):
        return None
    here = _find_machine_id(machine)
    found = []
    for study in queries.group_studies([row for row in rows if row.machine_id != here], axis):
        base, other = study.runs[-1]
        if speedup.is_host(base) and not speedup.is_host(other):
            is_chosen = accelerator is not None and accelerator.matches_row(other)
            found.append((is_chosen, Lane.from_row(other) == PLAIN, len(study.runs), study))
    best = max(found, key=lambda one: one[:3], default=None)
    return Known(study=best[-1], is_recorded=True) if best else None


def _find_machine_id(machine: Machine | None) -> str:
    return (machine.local_machine if machine else environment.read_environment()).machine_id


def _find_shown_study(shown: Sequence[Trial], rows: Sequence[Trial], axis: str) -> Study | None:
    """Return the study with the most sizes of the machine and the devices of a result; None without comparable rows."""
    if not shown:
        return None
    machine, devices = shown[0].machine_id, {row.contender for row in shown}
    found = queries.group_studies([row for row in rows if row.machine_id == machine], axis)
    pairs = [study for study in found if {study.baseline, study.challenger} <= devices]
    return max(pairs, key=lambda study: len(study.runs), default=None)


@cache_answers(64)
def _list_alike(overview: Overview, point: Point, axis: str) -> tuple[str, ...]:
    """Return the ids of the rows that match a training in all settings but one size."""
    alike = (pc.field("pairs") > 0) & (pc.field("protocol_version") == PROTOCOL_VERSION)
    settings = {name: getattr(point, name) for name in expectations.AGREEING_SETTINGS[axis]}
    return tuple(line.trial_id for line in overview.list_lines(("trial_id",), alike, settings))


def _read_cpu(known: Known | None) -> CpuSide | None:
    """Return the CPU side of a prediction, from the rows of the chart."""
    rows = [row for row in known.rows if speedup.is_host(row)] if known else []
    return predict.read_cpu(rows) if rows else None


def _predict_band(
    point: Point, axis: str, card: str, values: Sequence[float], cpu: CpuSide | None
) -> dict[str, Any] | None:
    """Return the predicted step of a GPU at each size; None if none is chosen, or no size has a prediction."""
    if not card or point.is_fit or point.training:
        return None
    record = queries.compare_with_predictions()
    sampled, prices = predict.sample_curve(point, axis, values, card, cpu, record=record), _read_prices()
    return {
        "name": predict.find_card(card).title,
        "low": sampled["gpu_step_s"]["low"],
        "high": sampled["gpu_step_s"]["high"],
        "parts": sampled["parts"],
        "sentence": sampled["sentence"],
        "crossover": sampled["crossover"],
        "costs": describe_costs(point, sampled, prices),
        "record": record[card].sentence if card in record else "",
        "cheaper": _mark_range(cheaper_from(sampled, prices["cpu"], prices["gpu"]), axis, "cheaper from")
        if prices
        else None,
    }


def _mark_range(ends: Mapping[str, Any] | None, axis: str, words: str) -> dict[str, Any] | None:
    """Return a range of sizes to shade, with its label; None if an end is unknown."""
    if not ends or ends["low"] is None or ends["high"] is None:
        return None
    return {**ends, "words": f"{words} {' to '.join(wording.interval_ends(axis, ends['low'], ends['high']))}"}


def _make_curves(known: Known) -> list[dict[str, Any]]:
    """Return both devices of a study with their times, intervals, speedups and step breakdowns."""
    study, last = known.study, known.study.runs[-1]
    colours = look.contender_colours([row.device_kind for row in last])
    return [
        {
            "name": as_line(display_name(row.contender)),
            "note": f"{as_line(row.device_name)}, recorded" if known.is_recorded else "measured here",
            "mark": "recorded" if known.is_recorded else "measured",
            "colour": colours[place],
            "points": [_make_point(run[place], study.axis) for run in study.runs],
            "speedup": _make_speedups(study) if place else [],
            "parts": _list_parts(study, place),
        }
        for place, row in enumerate(last)
    ]


def _make_point(row: Trial, axis: str) -> list[float | None]:
    step = speedup.step_time(row)
    return [size_on_axis(row, axis), step.median_s, step.low_s, step.high_s]


def _make_speedups(study: Study) -> list[list[float | None]]:
    try:
        sizes = queries.locate_crossover(study, "steady").answer.sizes
    except CrossoverError:
        return []
    return [[size.size, size.speedup, size.low, size.high] for size in sizes if size.speedup]


def _list_parts(study: Study, place: int) -> Mapping[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {}
    for run in study.runs:
        for part, seconds in causes.part_times(run[place]).items():
            found.setdefault(part, []).append([size_on_axis(run[place], study.axis), seconds])
    return found


def _list_crossovers(known: Known | None, band: Mapping[str, Any] | None, axis: str) -> list[dict[str, Any]]:
    """Return the ranges where the faster device changes: measured or recorded, then predicted."""
    found = []
    if known:
        with contextlib.suppress(CrossoverError):
            answer = queries.locate_crossover(known.study, "steady").answer
            if answer.outcome == "crossing" and answer.low and answer.high:
                found.append(_mark_range({"low": answer.low, "high": answer.high}, axis, "crossover"))
    if band:
        found.append(_mark_range(band["crossover"], axis, "predicted crossover"))
    return [one for one in found if one]


def _list_sentences(
    known: Known | None,
    beside: str,
    band: Mapping[str, Any] | None,
    place: int,
    value: float,
    button: str,
) -> list[str]:
    """Return the sentences about a size, the answer first."""
    measured = _describe_known(known, value) if known else ""
    predicted = band["sentence"][place] if band else ""
    if known and known.is_recorded:
        predicted = _name_recorded_cpu(predicted)
    return [said for said in (measured, predicted, beside) if said] or [NOTHING_KNOWN.format(button=button)]


def _describe_recorded(recorded: Known, points: Sequence[Sequence[float | None]]) -> dict[float | None, str]:
    """Return by size what an accelerator of another machine took, from the points of its curve."""
    name = as_line(recorded.study.runs[-1][1].device_name)
    return {
        size: f"Another machine's {name} took {units.format_duration(median_s)} per step."
        for size, median_s, *_ in points
        if median_s
    }


def _name_recorded_cpu(said: str) -> str:
    return said.replace("this CPU", "the recorded CPU").replace("This CPU", "The recorded CPU")


@cache_answers(2048)
def _describe_known(known: Known, value: float) -> str:
    """Describe a size of a study: the verdict of its run, or the expectation from the other sizes."""
    where = f"At {wording.place_on_axis(known.study.axis, wording.format_size(value))}"
    origin = f" Recorded on {as_line(known.study.runs[0][0].cpu_name)}." if known.is_recorded else ""
    for base, other in known.study.runs:
        if size_on_axis(base, known.study.axis) == value:
            said = _find_verdict(known.study, base, other).claim
            return f"{where}: {said}{'' if said.endswith('.') else '.'}{origin}"
    told = expectations.expect_size(known.study, value)
    if told is None:
        return ""
    names = f"{display_name(known.study.challenger)} against {display_name(known.study.baseline)}"
    return f"{where}, {names}: {told.figures}, {told.source}.{origin}"


def _find_verdict(study: Study, baseline: Trial, challenger: Trial) -> Verdict:
    """Return the verdict of a run, or that of the study at its size if the run has too few pairs, as in a sweep."""
    verdict = speedup.speedup(baseline, challenger)
    if verdict.verdict != "missing" or len(study.runs) < 2:
        return verdict
    with contextlib.suppress(CrossoverError):  # the study has no answer, which is shown with it
        answer = queries.locate_crossover(study, "steady").answer
        return study.verdict_at(size_on_axis(baseline, study.axis), answer) or verdict
    return verdict


def _describe_figures(figures: Mapping[str, Any], values: Sequence[float]) -> list[str]:
    """Return the parameters, operations and memory of the network at each size, as text."""
    if not figures:
        return ["" for _ in values]
    columns = (figures["figures"][name] for name in ("parameters", "flops", "memory_bytes"))
    return [
        f"{units.format_count(parameters)} parameters · {units.format_operations(flops)} a step · "
        f"{units.format_memory(memory)}"
        for parameters, flops, memory in zip(*columns, strict=True)
    ]
