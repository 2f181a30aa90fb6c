"""What would help: the measured effect of each lane on one training, as a ratio to plain steps on the same device.

Works on the rows of one run, whose lanes took turns with the plain one; nothing is predicted. Lanes that compute the
same are kept apart from those that do not, and one that broke its promise is named and never recommended. What was
measured at another time (another data path, another batch size) is a remedy too, with an interval that does not pair.
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
from . import accuracy, comparable, interference, lane_check, speedup, training_time
from .statistics import MIN_PAIRS, TIE, closeness_reason, ratio_interval

Standing = Literal["same", "other", "broken", "unchecked"]
"""What a lane computes beside plain steps: the same, other mathematics, other numbers than it promised, not known."""

LANE_PREPARATION = {"compiled": "its compiling", "graph": "recording its graph"}
"""What is paid once in a lane, by execution."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """One way to train the same thing faster, or not, with what it did here.

    Attributes:
        contender: who was measured, e.g. `cpu@1+compiled10`.
        title: what is different, for people: "compiled, 10 steps a call".
        value: time of plain steps over its own, above 1 it is faster, with its 95 % interval from `low` to `high`; None
            if that is not known.
        helps: whether it is faster by more than 10 %, beyond the noise.
        pays_off_epochs: epochs after which what it pays once is paid back; None if it never is, or nothing is paid.
        note: what has to be said of what it computes, in words; empty if nothing.
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
    """What the lanes of one device did in one run.

    Attributes:
        device: as asked for, without a lane: `cpu@1`; `name` is that for people.
        same: lanes that compute what plain steps compute, or were not checked, the largest effect first.
        other: lanes of other mathematics.
        broken: lanes that promised the same and did not keep it; never recommended.
        headline: what helps most, or that there is nothing to gain, in words.
    """

    device: str
    name: str
    same: tuple[Remedy, ...]
    other: tuple[Remedy, ...]
    broken: tuple[Remedy, ...]
    headline: str


def base_contender(trial: Trial) -> str:
    """The contender without its lane: `cpu@1+compiled` is served by `cpu@1`."""
    return trial.contender.partition("+")[0]


def is_plain(trial: Trial) -> bool:
    """Whether a row is of plain steps."""
    return lane_check.find_lane(trial) == PLAIN


def lane_standing(trial: Trial) -> Standing:
    """What a row's lane computes beside plain steps."""
    lane, found = lane_check.find_lane(trial), lane_check.check_lane(trial)
    if lane == PLAIN:
        return "same"
    if lane is not None and not lane.has_same_numerics:
        return "other"
    if found is None:
        return "unchecked"
    return "broken" if found.broken else "same"


def lane_remedies(trials: Sequence[Trial]) -> tuple[Remedies, ...]:
    """What the lanes of each device of a run did, in its order; devices without a plain lane or another are left out.

    Raises:
        NotComparable: they are not of one run.
    """
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(base_contender(trial), []).append(trial)
    found = (_device_remedies(name, group) for name, group in groups.items())
    return tuple(one for one in found if one is not None)


def effects_from_other_runs(plain: Trial, other_rows: Iterable[Trial]) -> tuple[Remedy, ...]:
    """What another data path or another batch size did on this machine at other times, the largest effect first.

    Args:
        plain: a row of the run.
        other_rows: rows of any runs; those that differ in more are skipped, of equal ones the newest counts.
    """
    newest: dict[tuple[object, ...], Trial] = {}
    for row in sorted(other_rows, key=lambda row: row.started_at):
        if find_single_difference(plain, row):
            newest[comparable.column_values(row, (*comparable.DATA_COLUMNS, "batch_size"))] = row
    found = (_effect_from_other_run(plain, row, find_single_difference(plain, row)) for row in newest.values())
    return _sort_remedies(one for one in found if one is not None)


def find_single_difference(plain: object, row: object) -> Literal["", "data_path", "batch_size"]:
    """The one thing in which a row, or a light line of one, differs from another; empty if it is none or more."""
    unlike = set(comparable.differing_columns(plain, row, comparable.REMEDY_COLUMNS))
    if unlike == {"batch_size"}:
        return "batch_size"
    return "data_path" if "data_path" in unlike and unlike <= set(comparable.DATA_COLUMNS) else ""


def remedy_sentences(device: Remedies) -> list[str]:
    """Everything that is said of a device, a sentence an entry: the headline, then one for each lane."""
    lanes = (*device.same, *device.other, *device.broken)
    return [device.headline, *(" ".join(filter(None, (one.sentence, one.note))) for one in lanes)]


def _device_remedies(device: str, rows: Sequence[Trial]) -> Remedies | None:
    plain = next((row for row in rows if is_plain(row)), None)
    laned = [(row, lane) for row in rows if (lane := lane_check.find_lane(row)) is not None and lane != PLAIN]
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
    """Why nothing can be told of what a row is compared with, in words that go on after a colon."""
    return speedup.verdict_obstacle(row, row) or interference.row_interference([row]).hindrance


def _remedy(plain: Trial, row: Trial, lane: Lane) -> Remedy:
    found, stands, hindrance = speedup.speedup(plain, row), lane_standing(row), _hindrance_reason(plain)
    if hindrance and not found.decided:  # said once, of the device
        found = replace(found, verdict="missing", value=None, low=None, high=None, reason="")
    helps = found.verdict != "missing" and not found.reason and (found.value or 0.0) > 1
    epochs = training_time.find_break_even(plain, row).epochs if helps and row.startup_compile_s else None
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
    """What was measured, without the full stop."""
    if value is None or low is None or high is None:
        return f"{title}: not known" + (f", because {reason}" if reason else "")
    figures = f"{title}: {units.format_ratio(value)} (95 %: {units.format_ratio(low)} to {units.format_ratio(high)})"
    if reason:
        return f"{figures}; {reason}"
    return figures if value > 1 else f"{figures}, so it is slower here"


def _paid_back(plain: Trial, lane: Lane, epochs: float | None) -> str:
    """What is said of what a lane pays once."""
    what = LANE_PREPARATION.get(lane.execution, "its start-up")
    if epochs is None:
        return f"; after how many epochs {what} pays off is not known"
    beyond = f", and this training has {units.format_count(plain.epochs)}" if epochs > plain.epochs else ""
    when = "within the first epoch" if epochs < 1 else f"after {units.format_significant(epochs, 2)} epochs"
    return f"; {what} pays off {when}{beyond}"


def _lane_note(plain: Trial, row: Trial, stands: Standing) -> str:
    if stands == "unchecked":
        return f"Whether training on {inline_name(row.contender)} computes what plain steps compute was not checked."
    if stands == "same":
        return ""
    held = lane_check.check_lane(row)
    told = [held.sentence] if held else [f"Training on {inline_name(row.contender)} uses other mathematics."]
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
        headline = f"Of what was measured, this helps {inline_name(device)} most: {best.title}, {_short_figures(best)}."
        return " ".join(filter(None, (headline, interference.row_interference([plain]).sentence)))
    if hindrance := _hindrance_reason(plain):
        return f"What would help {inline_name(device)} is not known: {hindrance}."
    outside = [one for one in other if one.helps]
    beyond = f" With other mathematics there is {outside[0].title}, {_short_figures(outside[0])}." if outside else ""
    return f"{_no_gain(inline_name(device), same)}{beyond}"


def _no_gain(device: str, same: Sequence[Remedy]) -> str:
    """What is said where no lane helps for certain; that there is nothing to gain only where every lane is decided."""
    if all(one.value is None for one in same):
        return f"No effect of a lane with the same mathematics is known on {device}."
    if faster := next((one for one in same if one.helps), None):  # not checked, or it would be said to help
        return (
            f"No gain is certain on {device}: whether the fastest lane, {faster.title}, computes the same is not known."
        )
    open_ones = [one for one in same if one.high is None or one.high > TIE]
    if open_ones:
        lanes = units.format_quantity(len(same), "lane")
        count = f"{len(open_ones)} of the {lanes}" if len(same) > 1 else "the one lane"
        told = f"of {count} with the same mathematics it is open whether it helps"
        return f"No gain is certain on {device}: {told}."
    which = "the one lane" if len(same) == 1 else f"none of the {len(same)} lanes"
    verb = "is not" if len(same) == 1 else "is"
    return f"Nothing to gain on {device}: {which} with the same mathematics {verb} clearly faster than plain steps."


def _short_figures(remedy: Remedy) -> str:
    return (
        f"{units.format_if_known(remedy.value, units.format_ratio)} "
        f"({units.format_interval(remedy.low, remedy.high, units.format_ratio)})"
    )


def _effect_from_other_run(plain: Trial, row: Trial, what: str) -> Remedy | None:
    """A row of another run against one of this run, by the time of an epoch; None if that cannot be told."""
    if _hindrance_reason(plain) or _hindrance_reason(row) or min(len(plain.step_s), len(row.step_s)) < MIN_PAIRS:
        return None
    ours, theirs = ([step_s * trial.steps_per_epoch for step_s in trial.step_s] for trial in (plain, row))
    value = statistics.median(ours) / statistics.median(theirs)
    low, high = ratio_interval(ours, theirs)
    reason = closeness_reason(*map(math.log, (value, low, high)))
    title = _change_title(plain, row, what)
    updates = (
        f"{units.format_count(row.steps_per_epoch)} updates an epoch instead of "
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
    """A title at the beginning of a sentence; names such as bf16 stay as they are."""
    first = title.partition(" ")[0]
    return title if any(letter.isdigit() for letter in first) else title[:1].upper() + title[1:]
