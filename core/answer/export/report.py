"""Reports of one run and of one sweep: as one JSON document for scripts, and as text for a terminal.

Brings the other answers together; computes nothing of its own.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Any

from ... import units
from ...errors import CrossoverError
from ...question import describe, models
from ...question.describe import describe_training
from ...question.experiment import Point, display_name
from ...question.fields import FIELDS, Training, axis_title, field_title, value_label
from ...question.sweep import Sweep, size_on_axis
from ...results.schema import OUTCOMES, Trial
from .. import causes, custom_findings, remedies, speedup, wording
from ..result import BASES, BASIS_TITLES, Crossover, Size
from ..run import PairAnswer, RowAnswer, RunAnswer
from ..study import Study


def run_document(trials: Sequence[Trial], *, from_store: bool) -> dict[str, Any]:
    """The run as plain data, of its rows with the baseline first; `from_store`, whether they were measured earlier.

    Returns:
        `run_id`, `measured_at`, `from_store`, `trials` (one object a contender), `comparisons` (one object for each
        other contender against the first), and where there are lanes `remedies` (one object a device) and
        `best_against_best`.
    """
    first, run = trials[0], RunAnswer(trials)
    return {
        "run_id": first.run_id,
        "experiment_id": first.experiment_id,
        "measured_at": first.started_at,
        "from_store": from_store,
        "parameters": first.parameters,
        "flops_per_step": first.flops_per_step,
        "trials": [_trial_document(row) for row in run.rows],
        "comparisons": [_comparison(pair) for pair in run.pairs],
        **_lanes(run),
        **(
            {"training": first.training, "source_hash": first.source_hash, "size": first.size} if first.training else {}
        ),
        **({"seen": _oddity_lines(trials)} if first.training else {}),
    }


def run_text(trials: Sequence[Trial]) -> str:
    """The run for a terminal: a line for each contender, then what follows from them."""
    run = RunAnswer(trials)
    lines = [_training_line(trials[0]), "", *map(_contender_line, run.rows)]
    for pair in run.pairs:
        lines += ["", *_comparison_lines(pair)]
    lines += [line for told in _lane_lines(run) for line in ("", *told)]
    if seen := _oddity_lines(trials):
        lines += ["", *seen]
    tested = [row for row in run.rows if row.classification_text]
    reports = [f"{display_name(row.row.contender)}, test items:\n{row.classification_text}" for row in tested]
    return "\n".join([*lines, "", *reports]).rstrip() + "\n"


def _training_line(trial: Trial) -> str:
    if trial.training:
        return custom_findings.custom_training_line(trial)
    if causes.is_fit(trial):
        return causes.fit_line(trial)
    numbers = "" if trial.dtype == FIELDS["dtype"].default else f" in {trial.dtype}"
    return (
        f"{describe_training(trial)}: "
        f"{units.format_count(trial.parameters)} parameters{numbers}, batch {trial.batch_size}, "
        f"{units.format_operations(trial.flops_per_step)} a step, {trial.steps_per_epoch} steps an epoch"
    )


def _oddity_lines(trials: Sequence[Trial]) -> list[str]:
    """What stands out in the steps of one's own training."""
    return custom_findings.custom_sentences(trials)


def _contender_line(answer: RowAnswer) -> str:
    trial, step = answer.row, answer.step
    if step.median_s is None:
        return f"{answer.label}: {trial.message or value_label('outcome', trial.outcome)}"
    ends = units.format_interval(step.low_s, step.high_s, units.format_duration)
    interval = f" (95 %: {ends})" if ends else ""
    learned = f", test accuracy {units.format_counted_share(answer.accuracy)}" if answer.accuracy is not None else ""
    note = f". {trial.message}" if trial.message else ""
    tried = f"; threads tried: {', '.join(map(str, trial.threads_tried))}" if trial.threads_tried else ""
    each = causes.fit_wording(trial, "a step")
    return f"{answer.label}: {units.format_duration(step.median_s)} {each}{interval}{learned}{tried}{note}"


def _comparison_lines(pair: PairAnswer) -> list[str]:
    try:
        lines = [pair.verdict, pair.cause, pair.break_even.sentence]
        return [*lines, pair.agreement.sentence] if pair.agreement else lines
    except CrossoverError as error:
        return [str(error)]


def _lane_lines(run: RunAnswer) -> list[list[str]]:
    """What lanes did, a sentence each, device by device."""
    try:
        told, duel = [remedies.remedy_sentences(device) for device in run.remedies], run.best_variants
    except CrossoverError as error:
        return [[str(error)]]
    return [*told, [duel.sentence]] if duel else told


def _lanes(run: RunAnswer) -> dict[str, Any]:
    try:
        devices, duel = run.remedies, run.best_variants
    except CrossoverError as error:
        return {"remedies": [], "refused": str(error)}
    if not devices:
        return {}
    return {
        "remedies": [dataclasses.asdict(device) for device in devices],
        "best_against_best": dataclasses.asdict(duel) if duel else None,
    }


def _trial_document(answer: RowAnswer) -> dict[str, Any]:
    trial = answer.row
    return {
        "contender": trial.contender,
        "device_name": trial.device_name,
        "outcome": trial.outcome,
        "message": trial.message,
        "threads": trial.threads,
        "threads_tried": dict(zip(trial.threads_tried, trial.threads_tried_step_s, strict=False)),
        "step": dataclasses.asdict(answer.step),
        "epoch_s": list(answer.epoch_s),
        "startup_s": answer.startup_s,
        "breakdown": dataclasses.asdict(answer.parts) if answer.parts else None,
        "test_accuracy": answer.accuracy,
        "classification": answer.classification,
    }


def _comparison(pair: PairAnswer) -> dict[str, Any]:
    try:
        return {
            **dataclasses.asdict(pair.speedup),
            "sentence": pair.verdict,
            "cause": pair.cause,
            "break_even": dataclasses.asdict(pair.break_even),
            "agreement": dataclasses.asdict(pair.agreement) if pair.agreement else None,
        }
    except CrossoverError as error:
        return {"baseline": pair.baseline.contender, "challenger": pair.challenger.contender, "refused": str(error)}


QUIET_FIELDS = ("loader_workers", "shuffle", "seed")
"""Fields that are only mentioned where they are not the default."""


def crossover_document(answer: Crossover) -> dict[str, Any]:
    """A crossover as plain data.

    Returns:
        `outcome`; `estimate`, `low` and `high`, which are None unless the outcome is `crossing`; and what they follow
        from: `axis`, `basis`, `baseline`, `challenger`, `tie`, `crossings`, `sizes`, `noise`, `level`, `reason`,
        `cautions`, `sentence`, `busy`. What is known where nothing is decided: `clear` (sizes at which one device is
        faster for certain), `contradicting`, and `assumed` (of single readings, if they scatter as is usual).
    """
    data = dataclasses.asdict(answer)
    del data["band"]  # for a chart
    data["tie"] = list(answer.tie) if answer.tie else None
    return {name: data.pop(name) for name in ("outcome", "estimate", "low", "high")} | data


def crossover_text(answer: Crossover, *, notes: Sequence[str] = ()) -> str:
    """A crossover for a terminal: the sentence, a line for each size, the cost basis, and notes."""
    lines = [answer.sentence, ""]
    if answer.sizes:
        names = (
            axis_title(answer.axis),
            wording.short_device(answer.baseline),
            wording.short_device(answer.challenger),
        )
        header = (*names, "speedup", f"{100 * answer.level:.4g} % interval", "faster")
        lines += [*align_columns([header, *(_size_cells(size, answer) for size in answer.sizes)]), ""]
    known = BASES.get(answer.basis)
    counted = f"What is counted, {BASIS_TITLES[answer.basis]}: {known}."
    basis = counted if known else "The seconds are compared as they were given."
    lines += [basis, *notes]
    return "\n".join(lines) + "\n"


def study_line(study: Study) -> str:
    """One line by which people tell a study from others: name, axis, training, machine, devices, sizes."""
    row = study.runs[0][0]
    sizes = [size_on_axis(pair[0], study.axis) for pair in study.runs]
    return (
        f"{study.id}  {describe.label_axis(study.axis, row.model)} {wording.format_size(min(sizes))} to "
        f"{wording.format_size(max(sizes))} "
        f"({len(sizes)} sizes), {display_name(study.challenger)} against {display_name(study.baseline)}, "
        f"{_study_training(study)}, "
        f"{row.cpu_name} ({row.machine_id}), torch {row.torch_version}"
    )


def sweep_documents(sweep: Sweep, rows: Sequence[Trial]) -> list[dict[str, Any]]:
    """The runs of a sweep as plain data, in the order of `rows`: the values of the axes, and an object a trial."""
    runs: dict[str, list[Trial]] = {}
    for row in rows:
        runs.setdefault(row.run_id, []).append(row)
    return [
        {
            **{axis.name: size_on_axis(run[0], axis.name) for axis in sweep.axes},
            "run_id": run[0].run_id,
            "measured_at": run[0].started_at,
            "parameters": run[0].parameters,
            "trials": [_sweep_trial_document(row) for row in run],
        }
        for run in runs.values()
    ]


def grid_text(sweep: Sweep, rows: Sequence[Trial]) -> str:
    """The trials of a sweep for a terminal, a line each, the shortest epoch first; those without times last.

    Of a training of one's own nobody knows how long an epoch is.
    """
    times = ("step",) if sweep.point.training else ("epoch", "step")
    header = (*(axis.title for axis in sweep.axes), "device", *times, "speedup", "")
    baseline = {row.run_id: row for row in rows if row.contender == str(sweep.contenders[0])}
    ordered = sorted(rows, key=lambda row: median_epoch_s(row) or math.inf)
    body = [_trial_cells(sweep, row, baseline.get(row.run_id)) for row in ordered]
    return "\n".join(align_columns([header, *body])) + "\n"


def median_epoch_s(row: Trial) -> float | None:
    """Seconds of one epoch: median step × steps per epoch; None if nothing was timed."""
    return statistics.median(row.step_s) * row.steps_per_epoch if row.step_s else None


def align_columns(table: Sequence[Sequence[str]]) -> list[str]:
    """Lines of text in which the cells of each column begin below each other."""
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]


def other_axis_values(sweep: Sweep, study: Study) -> dict[str, float]:
    """The other axes of a sweep, with the values that they have in one study of it."""
    row = study.runs[0][0]
    return {axis.name: size_on_axis(row, axis.name) for axis in sweep.axes if axis.name != study.axis}


def other_axes_text(sweep: Sweep, study: Study) -> str:
    """The other axes of a sweep with their values in one study, for people: `batch size 64, learning rate 0.1`."""
    return ", ".join(
        f"{axis_title(name)} {wording.format_size(value)}" for name, value in other_axis_values(sweep, study).items()
    )


def size_figures(size: Size) -> tuple[str, ...]:
    """A size of an answer with its times, its speedup and the interval of that, as text."""
    times = (units.format_if_known(seconds, units.format_duration) for seconds in (size.baseline_s, size.challenger_s))
    interval = units.format_interval(size.low, size.high, units.format_ratio)
    return (wording.format_size(size.size), *times, units.format_if_known(size.speedup, units.format_ratio), interval)


def _size_cells(size: Size, answer: Crossover) -> tuple[str, ...]:
    if size.verdict in ("gpu_faster", "cpu_faster") and size.speedup is not None:
        said = wording.short_device(answer.challenger if size.speedup > 1 else answer.baseline)
    else:
        said = f"neither: {size.reason}" if size.verdict == "too_close" else f"not known: {size.reason}"
    return (*size_figures(size), said)


def _sweep_trial_document(row: Trial) -> dict[str, Any]:
    return {
        "trial_id": row.trial_id,
        "contender": row.contender,
        "device_name": row.device_name,
        "threads": row.threads,
        "outcome": row.outcome,
        "message": row.message,
        "step": dataclasses.asdict(speedup.step_time(row)),
        "epoch_s": median_epoch_s(row),
    }


def _trial_cells(sweep: Sweep, row: Trial, baseline: Trial | None) -> tuple[str, ...]:
    step_s = statistics.median(row.step_s) if row.step_s else None
    note = "" if row.step_s else row.message or OUTCOMES[row.outcome]
    where = [wording.format_size(size_on_axis(row, axis.name)) for axis in sweep.axes]
    known = (step_s,) if row.training else (median_epoch_s(row), step_s)
    times = (units.format_if_known(seconds, units.format_duration) for seconds in known)
    return (*where, display_name(row.contender), *times, _speedup_cell(baseline, row), note)


def _speedup_cell(baseline: Trial | None, row: Trial) -> str:
    if baseline is None or baseline is row:
        return ""
    try:
        return units.format_if_known(speedup.speedup(baseline, row).value, units.format_ratio)
    except CrossoverError:
        return ""


def _study_training(study: Study) -> str:
    """What the runs of a study have in common."""
    rows = [pair[0] for pair in study.runs]
    if rows[0].training:
        return describe.describe_question(Point.from_row(rows[0]), without=[study.axis])
    said = [describe.describe_training(rows[0])]
    for field in dataclasses.fields(Training):
        values = {getattr(row, field.name) for row in rows}
        name, value = field.name, values.pop()
        plain = (name in models.AXES and not value) or (name in QUIET_FIELDS and value == field.default)
        if name in ("dataset", "model") or values or plain:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        shown = wording.format_size(value) if number else value_label(name, value)
        said.append(f"{field_title(name)} {shown}")
    return ", ".join(said)
