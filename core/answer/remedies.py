"""Possible improvements: the measured effect of each variant on one training, as a ratio to default eager fp32 steps.

Variant and default are measured on the same device, in alternating blocks of one run; nothing is predicted. Variants
with the same numerics are listed separately from the others. A variant that promises the same numerics but computes
others is named and never recommended. A setting that was measured in another run (another data path or batch size) also
counts as an improvement, with an unpaired interval.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from .. import units
from ..errors import CrossoverError
from ..question.experiment import inline_name
from ..question.fields import LOADER_PATHS, value_label
from ..question.lanes import PLAIN, Lane
from ..results.schema import Trial
from . import accuracy, comparable, interference, speedup, training_cost
from .statistics import MIN_PAIRS, TIE, ratio_interval
from .verdict import closeness_reason

Standing = Literal["same", "other", "broken", "unchecked"]
"""Numerics of a variant compared with the default: the same, lower precision, other than promised, or unknown."""

LANE_PREPARATION = {"compiled": "its compiling", "graph": "recording its graph"}
"""One-time preparation of a variant, by its execution."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """Another way to train the same model, with its measured effect.

    Attributes:
        contender: the measured contender, e.g. `cpu@1+compiled10`.
        title: readable difference from the default: "compiled, 10 steps a call".
        value: time of the default divided by the time of the variant, with its 95 % interval from `low` to `high`;
            above 1 the variant is faster; None if unknown.
        helps: whether the variant is faster by more than 10 %, beyond the noise.
        pays_off_epochs: number of epochs after which the one-time cost is paid back; None if never, or without a cost.
        note: remark on the numerics; empty if there is none.
    """

    contender: str
    title: str
    standing: Standing
    value: float | None
    low: float | None
    high: float | None
    helps: bool
    pays_off_epochs: float | None
    sentence: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Remedies:
    """Effects of the variants of one device in one run.

    Attributes:
        device: contender without a variant: `cpu@1`; `name` is its readable form.
        same: variants with the numerics of the default, or unchecked ones, the largest effect first.
        other: variants of lower precision.
        broken: variants that promised the same numerics but have others; never recommended.
        headline: sentence that names the most helpful variant, or says that no gain is known.
    """

    device: str
    name: str
    same: tuple[Remedy, ...]
    other: tuple[Remedy, ...]
    broken: tuple[Remedy, ...]
    headline: str


def base_contender(trial: Trial) -> str:
    """Return the contender without its variant: `cpu@1+compiled` → `cpu@1`."""
    return trial.contender.partition("+")[0]


def is_plain(trial: Trial) -> bool:
    """Return whether a row was measured with the default variant."""
    return speedup.find_lane(trial) == PLAIN


def lane_standing(trial: Trial) -> Standing:
    """Return the numerics of a row's variant compared with the default."""
    lane, found = speedup.find_lane(trial), speedup.check_lane(trial)
    if lane == PLAIN:
        return "same"
    if lane is not None and not lane.has_same_numerics:
        return "other"
    if found is None:
        return "unchecked"
    return "broken" if found.broken else "same"


def lane_remedies(trials: Sequence[Trial]) -> tuple[Remedies, ...]:
    """Return the effects of each device's variants in a run; devices without a default or a variant are left out.

    Raises:
        NotComparable: the rows are not of one run.
    """
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(base_contender(trial), []).append(trial)
    found = (_device_remedies(name, group) for name, group in groups.items())
    return tuple(one for one in found if one is not None)


def effects_from_other_runs(plain: Trial, other_rows: Iterable[Trial]) -> tuple[Remedy, ...]:
    """Return the effects of other data paths or batch sizes on this machine, from other runs, the largest first.

    Args:
        plain: a row of the run.
        other_rows: rows of any runs; rows with other differences are skipped, and of equal rows the newest counts.
    """
    newest: dict[tuple[object, ...], Trial] = {}
    for row in sorted(other_rows, key=lambda row: row.started_at):
        if find_single_difference(plain, row):
            newest[comparable.column_values(row, (*comparable.DATA_COLUMNS, "batch_size"))] = row
    found = (_effect_from_other_run(plain, row, find_single_difference(plain, row)) for row in newest.values())
    return _sort_remedies(one for one in found if one is not None)


def find_single_difference(plain: object, row: object) -> Literal["", "data_path", "batch_size"]:
    """Return the only setting in which a row, or a light line of a row, differs from another one.

    Empty if they differ in no setting or in several.
    """
    unlike = set(comparable.differing_columns(plain, row, comparable.REMEDY_COLUMNS))
    if unlike == {"batch_size"}:
        return "batch_size"
    return "data_path" if "data_path" in unlike and unlike <= set(comparable.DATA_COLUMNS) else ""


def remedy_sentences(device: Remedies) -> list[str]:
    """List all sentences on a device: the headline, then one for each variant."""
    lanes = (*device.same, *device.other, *device.broken)
    return [device.headline, *(" ".join(filter(None, (one.sentence, one.note))) for one in lanes)]


def _device_remedies(device: str, rows: Sequence[Trial]) -> Remedies | None:
    plain = next((row for row in rows if is_plain(row)), None)
    laned = [(row, lane) for row in rows if (lane := speedup.find_lane(row)) is not None and lane != PLAIN]
    if plain is None or not laned:
        return None
    found: Mapping[Standing, list[Remedy]] = {"same": [], "other": [], "broken": [], "unchecked": []}
    for row, lane in laned:
        remedy = _remedy(plain, row, lane)
        found[remedy.standing].append(remedy)
    same, other = _sort_remedies([*found["same"], *found["unchecked"]]), _sort_remedies(found["other"])
    return Remedies(
        device=device,
        name=speedup.contender_label(plain),
        same=same,
        other=other,
        broken=_sort_remedies(found["broken"]),
        headline=_headline(device, same, other, plain),
    )


def _hindrance_reason(row: Trial) -> str:
    """Return why a row cannot be compared, as text that follows a colon."""
    return speedup.verdict_obstacle(row, row) or interference.row_interference([row]).hindrance


def _remedy(plain: Trial, row: Trial, lane: Lane) -> Remedy:
    found, stands, hindrance = speedup.speedup(plain, row), lane_standing(row), _hindrance_reason(plain)
    if hindrance and not found.has_winner:  # reported once, for the device
        found = replace(found, verdict="missing", value=None, low=None, high=None, reason="")
    helps = found.winner == row.contender and not found.is_conditional
    epochs = training_cost.find_break_even(plain, row).epochs if helps and row.startup_compile_s else None
    paid = _paid_back(plain, lane, epochs) if helps and row.startup_compile_s else ""
    text = effect_figures(_beginning(lane.title), found.value, found.low, found.high, found.reason)
    broken = stands == "broken"
    return Remedy(
        contender=row.contender,
        title=lane.title,
        standing=stands,
        value=found.value,
        low=found.low,
        high=found.high,
        helps=helps and not broken,
        pays_off_epochs=epochs,
        sentence=f"Not recommended: {_lane_note(plain, row, stands)}" if broken else f"{text}{paid}.",
        note="" if broken else _lane_note(plain, row, stands),
    )


def effect_figures(title: str, value: float | None, low: float | None, high: float | None, reason: str) -> str:
    """Return the measured effect, without the full stop."""
    if value is None or low is None or high is None:
        return f"{title}: unknown" + (f", because {reason}" if reason else "")
    figures = f"{title}: {units.format_ratio(value)} (95 %: {units.format_ratio(low)} to {units.format_ratio(high)})"
    if reason:
        return f"{figures}; {reason}"
    return figures if value > 1 else f"{figures}, so it is slower here"


def _paid_back(plain: Trial, lane: Lane, epochs: float | None) -> str:
    """Return a sentence on the one-time cost of a variant."""
    what = LANE_PREPARATION.get(lane.execution, "its start-up")
    if epochs is None:
        return f"; the number of epochs after which {what} pays off is unknown"
    beyond = f", and this training has {units.format_count(plain.epochs)}" if epochs > plain.epochs else ""
    when = "within the first epoch" if epochs < 1 else f"after {units.format_significant(epochs, 2)} epochs"
    return f"; {what} pays off {when}{beyond}"


def _lane_note(plain: Trial, row: Trial, stands: Standing) -> str:
    if stands == "unchecked":
        return f"Training on {inline_name(row.contender)} was not checked against the default loop."
    if stands == "same":
        return ""
    held = speedup.check_lane(row)
    told = [held.sentence] if held else [f"Training on {inline_name(row.contender)} uses lower precision."]
    if stands == "other" and plain.confusion and row.confusion:
        sentence = _predictions_note(plain, row)
        told += [sentence] if sentence else []
    return " ".join(told)


def _predictions_note(plain: Trial, row: Trial) -> str:
    try:
        found = accuracy.compare_predictions(plain, row)
    except CrossoverError as error:
        return str(error)
    return found.sentence if found else ""


def _headline(device: str, same: Sequence[Remedy], other: Sequence[Remedy], plain: Trial) -> str:
    helping = [one for one in same if one.helps and one.standing == "same"]
    if helping:
        best = helping[0]
        headline = (
            f"Of the measured variants, this helps {inline_name(device)} most: {best.title}, {_short_figures(best)}."
        )
        return " ".join(filter(None, (headline, interference.row_interference([plain]).sentence)))
    if hindrance := _hindrance_reason(plain):
        return f"It is unknown what would speed up {inline_name(device)}: {hindrance}."
    outside = [one for one in other if one.helps]
    beyond = f" With lower precision: {outside[0].title}, {_short_figures(outside[0])}." if outside else ""
    return f"{_no_gain(inline_name(device), same)}{beyond}"


def _no_gain(device: str, same: Sequence[Remedy]) -> str:
    """Return the headline if no variant certainly helps; it denies any gain only if every variant is decided."""
    if all(one.value is None for one in same):
        return f"No effect of a variant with the same numerics is known on {device}."
    if faster := next((one for one in same if one.helps), None):  # unchecked, else the headline would recommend it
        return (
            f"No gain is certain on {device}: the fastest variant, {faster.title}, was not checked for equal results."
        )
    open_ones = [one for one in same if one.high is None or one.high > TIE]
    if open_ones:
        lanes = units.format_quantity(len(same), "variant")
        count = f"{len(open_ones)} of the {lanes}" if len(same) > 1 else "the one variant"
        told = f"it is unknown whether {count} with the same numerics would help"
        return f"No gain is certain on {device}: {told}."
    which = "the one variant" if len(same) == 1 else f"none of the {len(same)} variants"
    verb = "is not" if len(same) == 1 else "is"
    return f"No gain on {device}: {which} with the same numerics {verb} clearly faster than the default loop."


def _short_figures(remedy: Remedy) -> str:
    return (
        f"{units.format_if_known(remedy.value, units.format_ratio)} "
        f"({units.format_interval(remedy.low, remedy.high, units.format_ratio)})"
    )


def _effect_from_other_run(plain: Trial, row: Trial, what: str) -> Remedy | None:
    """Compare a row of another run with a row of this run, by the time of an epoch; None if that is impossible."""
    if _hindrance_reason(plain) or _hindrance_reason(row) or min(len(plain.step_s), len(row.step_s)) < MIN_PAIRS:
        return None
    ours, theirs = ([step_s * trial.steps_per_epoch for step_s in trial.step_s] for trial in (plain, row))
    value = statistics.median(ours) / statistics.median(theirs)
    low, high = ratio_interval(ours, theirs)
    reason = closeness_reason(*map(math.log, (value, low, high)))
    title = _change_title(plain, row, what)
    updates = (
        f"{units.format_count(row.steps_per_epoch)} updates per epoch instead of "
        f"{units.format_count(plain.steps_per_epoch)}"
    )
    text = effect_figures(_beginning(title), value, low, high, reason)
    return Remedy(
        contender=row.contender,
        title=title,
        standing="same" if what == "data_path" else "other",
        value=value,
        low=low,
        high=high,
        helps=not reason and value > 1,
        pays_off_epochs=None,
        sentence=f"{text}.",
        note=f"It learns differently: {updates}." if what == "batch_size" else "",
    )


def _change_title(plain: Trial, row: Trial, what: str) -> str:
    if what == "batch_size":
        return f"batch size {units.format_count(row.batch_size)} instead of {units.format_count(plain.batch_size)}"
    return f"data path {_path(row)} instead of {_path(plain)}"


def _path(row: Trial) -> str:
    workers = f" with {row.loader_workers} workers" if row.data_path in LOADER_PATHS and row.loader_workers else ""
    return f"“{value_label('data_path', row.data_path)}{workers}”"


def _sort_remedies(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    return tuple(sorted(remedies, key=lambda one: (one.value is None, -(one.value or 0.0), one.contender)))


def _beginning(title: str) -> str:
    """Capitalize a title for the beginning of a sentence; names such as bf16 stay unchanged."""
    first = title.partition(" ")[0]
    return title if any(letter.isdigit() for letter in first) else title[:1].upper() + title[1:]
