"""Possible improvements: the measured effect of each variant on one training, as a ratio to default eager fp32 steps.

Variant and default are measured on the same device, in alternating blocks of one run; nothing is predicted. Variants
with the same numerics are listed separately from the others. A variant that promises the same numerics but computes
others is named and never recommended. A setting that was measured in another run (another data path or batch size) also
counts as an improvement, with an unpaired interval.

The fastest same-numerics variant of each of two devices is compared too, next to the default variant on both. Choosing
the best of several noisy variants and evaluating it by the same readings would overestimate it. Therefore variants are
chosen by every other pair of blocks and evaluated by the pairs in between.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from .. import units
from ..errors import CrossoverError
from ..question.experiment import display_name, inline_name
from ..question.fields import LOADER_PATHS, value_label
from ..question.lanes import PLAIN, Lane
from ..question.sweep import size_on_axis
from ..results.schema import Trial
from . import accuracy, interference, speedup, training_cost, wording
from . import study as studies
from .crossover import locate_crossover
from .judgement import Basis, Crossover, Evidence
from .statistics import MIN_PAIRS, TIE, ratio_interval
from .study import Study
from .verdict import Verdict, closeness_reason

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
            newest[speedup.column_values(row, (*speedup.DATA_COLUMNS, "batch_size"))] = row
    found = (_effect_from_other_run(plain, row, find_single_difference(plain, row)) for row in newest.values())
    return _sort_remedies(one for one in found if one is not None)


def find_single_difference(plain: object, row: object) -> Literal["", "data_path", "batch_size"]:
    """Return the only setting in which a row, or a light line of a row, differs from another one.

    Empty if they differ in no setting or in several.
    """
    unlike = set(speedup.differing_columns(plain, row, speedup.REMEDY_COLUMNS))
    if unlike == {"batch_size"}:
        return "batch_size"
    return "data_path" if "data_path" in unlike and unlike <= set(speedup.DATA_COLUMNS) else ""


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


CHOSEN_SEPARATELY = "The variants were chosen on every other pair of blocks and judged on the remaining pairs"
"""Explanation of why the choice does not bias the result."""

BLOCK_COLUMNS = tuple(entry.name for entry in dataclasses.fields(Trial) if entry.name.startswith("block_"))


@dataclass(frozen=True, kw_only=True)
class BestVariantPair:
    """The best variant of each of two devices in one run.

    Attributes:
        baseline: variant chosen for the first device.
        challenger: variant chosen for the other device.
        best: verdict on the two variants, by the pairs that were not used for the choice.
        plain: verdict on the default variant on both devices, by all pairs; None if a device has no default variant.
    """

    baseline: str
    challenger: str
    best: Verdict
    plain: Verdict | None
    sentence: str


@dataclass(frozen=True, kw_only=True)
class LanePick:
    """The variants chosen at one size.

    Attributes:
        size: size on the axis.
        baseline: row of the baseline device with only the blocks that are evaluated; None if no variant could be
            chosen.
        challenger: row of the other device, as `baseline`.
        obstacle: reason why nothing could be chosen; empty if a pair was chosen.
    """

    size: float
    baseline: Trial | None = None
    challenger: Trial | None = None
    obstacle: str = ""


def find_best_variants(trials: Sequence[Trial]) -> BestVariantPair | None:
    """Return the best variants of the first device of a run and of the first other device.

    On a machine with an accelerator, the devices are the CPU, with any number of threads, and the first accelerator.

    Returns:
        The pair; None if neither device has several variants.

    Raises:
        NotComparable: the rows are not of one run.
    """
    pair = _find_pair(trials)
    if pair is None or not _has_choice(trials, pair):
        return None
    sides = [_candidates(trials, _side(row, pair), pair) for row in pair]
    rounds = _rounds([row for side in sides for row in side])
    chosen = [_choose_row(side, "steady", rounds) for side in sides]
    if chosen[0] is None or chosen[1] is None:
        return None
    best = speedup.speedup(*(_with_rounds(row, _judging_rounds(rounds)) for row in chosen if row))
    plain = speedup.speedup(*pair) if all(map(is_plain, pair)) else None
    return BestVariantPair(
        baseline=best.baseline,
        challenger=best.challenger,
        best=best,
        plain=plain,
        sentence=_best_variants_sentence(best, plain),
    )


def pick_lanes(study: Study, rows: Sequence[Trial], basis: Basis = "steady") -> tuple[LanePick, ...]:
    """Choose the best variant of both devices of a study at each size, ascending.

    Returns:
        A choice for each size; empty if no device has several variants.
    """
    runs: dict[str, list[Trial]] = {}
    for row in rows:
        runs.setdefault(row.run_id, []).append(row)
    pairs = [(pair, runs.get(pair[0].run_id, list(pair))) for pair in study.runs]
    if not any(_has_choice(run, pair) for pair, run in pairs):
        return ()
    return tuple(_pick(size_on_axis(pair[0], study.axis), pair, run, basis) for pair, run in pairs)


def best_lanes_crossover(
    study: Study, picked: Sequence[LanePick], basis: Basis = "steady"
) -> tuple[Crossover, tuple[Evidence, ...]]:
    """Locate the crossover of a study's chosen variants for a cost basis, and return it with its evidence.

    Raises:
        CrossoverError: the rows cannot be compared.
    """
    evidence = _pick_evidence(picked, study, basis)
    base, other = (f"{display_name(_side(row, study.runs[-1]))} with its best variant" for row in study.runs[-1])
    answer = locate_crossover(evidence, axis=study.axis, basis=basis, baseline=base, challenger=other)
    chosen = [(pick.baseline, pick.challenger) for pick in picked if pick.baseline and pick.challenger]
    return interference.mark_interference(answer, interference.study_interference(chosen)), evidence


def find_plain_study(study: Study, other_studies: Sequence[Study]) -> Study | None:
    """Find the study of the default variant on the same two devices, over the same runs."""
    wanted = tuple(_side(row, study.runs[-1]) for row in study.runs[-1])
    runs = {pair[0].run_id for pair in study.runs}
    for one in (study, *other_studies):
        pair = one.runs[-1]
        same = {each[0].run_id for each in one.runs} == runs and one.axis == study.axis
        if same and all(map(is_plain, pair)) and tuple(_side(row, pair) for row in pair) == wanted:
            return one
    return None


def crossover_shift_sentence(plain: Crossover, best: Crossover) -> str:
    """Describe how far the best variants move the crossover; empty unless both studies have a crossover."""
    if plain.estimate is None or best.estimate is None:
        return ""
    shown = units.format_significant(best.estimate / plain.estimate, 2)
    way = "the same size to two digits" if float(shown) == 1 else f"{shown} of that size"
    return (
        f"The default loops cross at {_crossover_figures(plain)}, the best variants at "
        f"{_crossover_figures(best)}: {way}."
    )


def _best_variants_sentence(best: Verdict, plain: Verdict | None) -> str:
    told = [f"Best against best: {best.sentence}"]
    if plain is not None and plain.value is not None:
        ends = units.format_interval(plain.low, plain.high, units.format_ratio)
        figures = f"{units.format_ratio(plain.value)} (95 % interval {ends})"
        told.append(
            f"With the default loop on both devices, the speedup of {inline_name(plain.challenger)} is {figures}."
        )
    return " ".join([*told, f"{CHOSEN_SEPARATELY}."])


def _find_pair(trials: Sequence[Trial]) -> tuple[Trial, Trial] | None:
    """Return the rows of the baseline and of the other device, with the default variant if possible."""
    ordered = sorted(trials, key=lambda row: not is_plain(row))
    host = next(iter(ordered), None)
    accelerator = next((row for row in ordered if not speedup.is_host(row)), None)
    if accelerator is not None:
        host = next((row for row in ordered if speedup.is_host(row)), None)
        return (host, accelerator) if host else None
    other = next((row for row in ordered if host and base_contender(row) != base_contender(host)), None)
    return (host, other) if host and other else None


def _side(row: Trial, pair: Sequence[Trial]) -> str:
    """Return the device of a row; in a pair with an accelerator, the CPU is one device for any number of threads."""
    return base_contender(row) if all(map(speedup.is_host, pair)) else row.device


def _candidates(run: Sequence[Trial], side: str, pair: Sequence[Trial]) -> list[Trial]:
    """Select the timed rows of a device whose variants have the same numerics as the default variant."""
    ours = [row for row in run if _side(row, pair) == side]
    return [
        row for row in ours if lane_standing(row) == "same" and row.step_s and not speedup.verdict_obstacle(row, row)
    ]


def _has_choice(run: Sequence[Trial], pair: Sequence[Trial]) -> bool:
    """Return whether a device of a pair has several variants to choose from."""
    return any(len({speedup.find_lane(row) for row in _candidates(run, _side(one, pair), pair)}) > 1 for one in pair)


def _rounds(rows: Sequence[Trial]) -> list[int]:
    """Return the rounds in which all rows have a block."""
    return sorted(set.intersection(*(set(row.block_pair) for row in rows)))


def _judging_rounds(rounds: Sequence[int]) -> frozenset[int]:
    """Return the rounds for the evaluation: the larger half, because the interval is computed from them."""
    return frozenset(rounds[0::2])


def _with_rounds(row: Trial, rounds: frozenset[int]) -> Trial:
    """Return a copy of a row with only the blocks of some rounds; the copy is never stored."""
    kept = [place for place, each in enumerate(row.block_pair) if each in rounds]
    lists = {name: getattr(row, name) for name in BLOCK_COLUMNS}
    fewer: dict[str, Any] = {name: tuple(of[at] for at in kept) for name, of in lists.items() if of}
    return replace(row, **fewer)


def _choose_row(rows: Sequence[Trial], basis: Basis, rounds: Sequence[int]) -> Trial | None:
    """Return the row with the shortest time per step in the pairs for the choice; a single row needs no choice."""
    if len(rows) < 2:
        return rows[0] if rows else None
    known = [(cost, row) for row in rows if (cost := _cost(row, frozenset(rounds[1::2]), basis)) is not None]
    return min(known, key=lambda entry: entry[0])[1] if known else None


def _cost(row: Trial, rounds: frozenset[int], basis: Basis) -> float | None:
    """Return the seconds per step of some rounds, including the step's share of the one-time cost."""
    times, once_s = _with_rounds(row, rounds).step_s if rounds else (), studies.one_time_cost_s(row, basis)
    if not times or once_s is None:
        return None
    return statistics.median(times) + once_s / (row.epochs * row.steps_per_epoch)


def _pick(size: float, pair: tuple[Trial, Trial], run: Sequence[Trial], basis: Basis) -> LanePick:
    sides = [_candidates(run, _side(row, pair), pair) for row in pair]
    if not all(sides):
        hindrance = speedup.verdict_obstacle(*pair) or "one of the devices has no variant that could be timed"
        return LanePick(size=size, obstacle=hindrance)
    rounds = _rounds([*sides[0], *sides[1]])
    if len(rounds) < 2:
        return LanePick(
            size=size, obstacle="at least two pairs of blocks are needed, one to choose the variant and one to judge it"
        )
    baseline, challenger = (_choose_row(rows, basis, rounds) for rows in sides)
    if baseline is None or challenger is None:
        return LanePick(size=size, obstacle="start-up was not measured")
    judging = _judging_rounds(rounds)
    return LanePick(size=size, baseline=_with_rounds(baseline, judging), challenger=_with_rounds(challenger, judging))


def _pick_evidence(picked: Sequence[LanePick], study: Study, basis: Basis) -> tuple[Evidence, ...]:
    """Collect the evidence of the chosen variants at each size, in the order of the choices."""
    runs = tuple((pick.baseline, pick.challenger) for pick in picked if pick.baseline and pick.challenger)
    timed = iter(replace(study, runs=runs).evidence(basis))
    return tuple(
        next(timed) if pick.baseline and pick.challenger else Evidence(size=pick.size, obstacle=pick.obstacle)
        for pick in picked
    )


def _crossover_figures(answer: Crossover) -> str:
    """Format the size of a crossover with its interval."""
    about, low, high = (
        wording.format_size(float(f"{end or 0.0:.3g}")) for end in (answer.estimate, answer.low, answer.high)
    )
    return f"about {about} ({low} to {high})"
