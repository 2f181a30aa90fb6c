"""Reports of one run and of one sweep: as one JSON document for scripts, and as text for a terminal.

Combines the results of the other answer modules; computes nothing itself.
"""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ... import units
from ...errors import CrossoverError
from ...question import describe, models
from ...question.describe import describe_training
from ...question.experiment import Point, display_name
from ...question.fields import FIELDS, Training, axis_title, field_title, value_label
from ...question.sweep import Sweep, size_on_axis
from ...results.schema import OUTCOMES, Trial
from ...text import align_columns
from .. import causes, custom_findings, remedies, speedup, wording
from ..judgement import BASES, BASIS_TITLES, Crossover, Size, SpeedupAt
from ..run import Run, RunPair, RunRow
from ..study import Study


def run_document(trials: Sequence[Trial], *, from_store: bool) -> dict[str, Any]:
    """Return a run as simple data, from its rows with the baseline first.

    Args:
        trials: rows of the run.
        from_store: whether the rows were measured earlier.

    Returns:
        `run_id`, `measured_at`, `from_store`, `trials` (one object per contender) and `comparisons` (one object per
        other contender against the first). With several variants also `remedies` (one object per device) and
        `best_against_best`.
    """
    first, run = trials[0], Run(trials)
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
    """Return the run for a terminal: a line for each contender, then the conclusions."""
    run = Run(trials)
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
    steps = units.format_quantity(trial.steps_per_epoch, "step")
    return (
        f"{describe_training(trial)}: "
        f"{units.format_count(trial.parameters)} parameters{numbers}, batch {trial.batch_size}, "
        f"{units.format_operations(trial.flops_per_step)} a step, {steps} an epoch"
    )


def _oddity_lines(trials: Sequence[Trial]) -> list[str]:
    """Describe the findings on the steps of a custom training script."""
    return custom_findings.custom_sentences(trials)


def _contender_line(answer: RunRow) -> str:
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


def _comparison_lines(pair: RunPair) -> list[str]:
    try:
        lines = [pair.verdict, *filter(None, [pair.thread_waits]), pair.cause, pair.break_even.sentence]
        return [*lines, pair.agreement.sentence] if pair.agreement else lines
    except CrossoverError as error:
        return [str(error)]


def _lane_lines(run: Run) -> list[list[str]]:
    """Describe the effects of variants, a sentence each, device by device."""
    try:
        told, duel = [remedies.remedy_sentences(device) for device in run.remedies], run.best_variants
    except CrossoverError as error:
        return [[str(error)]]
    return [*told, [duel.sentence]] if duel else told


def _lanes(run: Run) -> dict[str, Any]:
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


def _trial_document(answer: RunRow) -> dict[str, Any]:
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


def _comparison(pair: RunPair) -> dict[str, Any]:
    try:
        return {
            **dataclasses.asdict(pair.speedup),
            "winner": pair.speedup.winner or None,
            "claim": pair.speedup.claim,
            "sentence": pair.verdict,
            "thread_waits": pair.thread_waits,
            "cause": pair.cause,
            "break_even": dataclasses.asdict(pair.break_even),
            "agreement": dataclasses.asdict(pair.agreement) if pair.agreement else None,
        }
    except CrossoverError as error:
        return {"baseline": pair.baseline.contender, "challenger": pair.challenger.contender, "refused": str(error)}


QUIET_FIELDS = ("loader_workers", "shuffle", "seed")
"""Fields that are only mentioned where they are not the default."""


def crossover_document(answer: Crossover) -> dict[str, Any]:
    """Return a crossover as simple data.

    Returns:
        `outcome`; `estimate`, `low` and `high`, which are None unless the outcome is `crossing`; and their basis:
        `axis`, `basis`, `baseline`, `challenger`, `tie`, `crossings`, `sizes`, `noise`, `level`, `reason`, `cautions`,
        `sentence`, `busy`. For undecided outcomes: `clear` (sizes at which one device is faster for certain),
        `contradicting`, and `assumed` (of single readings, if they scatter as is usual).
    """
    data = dataclasses.asdict(answer)
    del data["band"]  # for a chart
    data["tie"] = list(answer.tie) if answer.tie else None
    return {name: data.pop(name) for name in ("outcome", "estimate", "low", "high")} | data


RULE_VERSION = 1
"""Version of the rule format, raised when a key changes its meaning; programs that read rules refuse other versions."""


def rule_document(chosen: Study, answer: Crossover) -> dict[str, Any]:
    """Return a crossover as a rule for other programs: the device to use below and above a size, and why.

    Returns:
        `below` and `above`, which are None where nothing is decided; `low` and `high`, between which either may be
        faster; `sizes`, the smallest and the largest measured size; and `fingerprint`, the fingerprint of the machine.
    """
    row, challenger = chosen.runs[-1]
    winners = {"gpu_always": chosen.challenger, "cpu_always": chosen.baseline}
    below = above = winners.get(answer.outcome)
    if answer.outcome == "crossing":
        below, above = chosen.baseline, chosen.challenger
        if not answer.crossings[0].challenger_above:
            below, above = above, below
    return {
        "rule": "crossover",
        "version": RULE_VERSION,
        "axis": answer.axis,
        "basis": answer.basis,
        "outcome": answer.outcome,
        "baseline": chosen.baseline,
        "challenger": chosen.challenger,
        "below": below,
        "above": above,
        "estimate": answer.estimate,
        "low": answer.low,
        "high": answer.high,
        "sizes": [chosen.sizes[0], chosen.sizes[-1]],
        "reason": answer.reason,
        "sentence": answer.sentence,
        "fingerprint": {
            "machine_id": row.machine_id,
            "cpu": row.cpu_name,
            "cores": row.cores,
            "system": row.system,
            "device": challenger.device_name,
            "torch": row.torch_version,
        },
        "measured_at": chosen.newest,
        "study": chosen.id,
        "crossover_version": row.app_version,
    }


def rule_text(document: Mapping[str, Any]) -> str:
    """Return a rule for a terminal."""
    return f"{document['sentence']}\n\nWith --json this is a rule that other programs can read: examples/rule.\n"


def crossover_text(answer: Crossover, *, notes: Sequence[str] = ()) -> str:
    """Return a crossover for a terminal: the sentence, a line for each size, the cost basis, and notes."""
    lines = [answer.sentence, ""]
    if answer.sizes:
        names = (
            axis_title(answer.axis),
            wording.short_device(answer.baseline),
            wording.short_device(answer.challenger),
        )
        header = (*names, "speedup", f"{100 * answer.level:.4g} % interval", "verdict")
        lines += [*align_columns([header, *(_size_cells(size, answer) for size in answer.sizes)]), ""]
    known = BASES.get(answer.basis)
    counted = f"Included ({BASIS_TITLES[answer.basis]}): {known}."
    basis = counted if known else "The times are compared as given."
    lines += [basis, *notes]
    return "\n".join(lines) + "\n"


def sizes_text(entries: Sequence[SpeedupAt], answer: Crossover) -> str:
    """Format the speedups at single sizes for a terminal, a line for each."""
    header = (axis_title(answer.axis), "faster", "speedup", "95 % interval", "basis")
    return "\n".join(align_columns([header, *map(_size_at_cells, entries)])) + "\n"


def _size_at_cells(entry: SpeedupAt) -> tuple[str, ...]:
    faster = wording.short_device(entry.faster) if entry.faster else f"inconclusive: {entry.reason}"
    return (
        wording.format_size(entry.size),
        faster if entry.speedup is not None else entry.reason,
        units.format_if_known(entry.speedup, units.format_ratio),
        units.format_interval(entry.low, entry.high, units.format_ratio),
        entry.basis,
    )


def study_line(study: Study) -> str:
    """Return one line that identifies a study for people: name, axis, training, machine, devices, sizes."""
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
    """Return the runs of a sweep as simple data, in the order of `rows`.

    Each run has the values of the axes, and an object per trial.
    """
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
    """Return the trials of a sweep for a terminal, one line each, shortest epoch first, trials without times last.

    Trials of a custom script have no epoch time, because the length of its epoch is unknown.
    """
    times = ("step",) if sweep.point.training else ("epoch", "step")
    header = (*(axis.title for axis in sweep.axes), "device", *times, "speedup", "")
    baseline = {row.run_id: row for row in rows if row.contender == str(sweep.contenders[0])}
    ordered = sorted(rows, key=lambda row: median_epoch_s(row) or math.inf)
    body = [_trial_cells(sweep, row, baseline.get(row.run_id)) for row in ordered]
    return "\n".join(align_columns([header, *body])) + "\n"


def median_epoch_s(row: Trial) -> float | None:
    """Return the seconds of one epoch: median step × steps per epoch; None if nothing was timed."""
    return statistics.median(row.step_s) * row.steps_per_epoch if row.step_s else None


def other_axis_values(sweep: Sweep, study: Study) -> dict[str, float]:
    """Return the other axes of a sweep with their values in one of its studies."""
    row = study.runs[0][0]
    return {axis.name: size_on_axis(row, axis.name) for axis in sweep.axes if axis.name != study.axis}


def other_axes_text(sweep: Sweep, study: Study) -> str:
    """Return the other axes of a sweep with one study's values, for people: `batch size 64, learning rate 0.1`."""
    return ", ".join(
        f"{axis_title(name)} {wording.format_size(value)}" for name, value in other_axis_values(sweep, study).items()
    )


def size_figures(size: Size) -> tuple[str, ...]:
    """Return a size of an answer with its times, its speedup and the interval of the speedup, as text."""
    times = (units.format_if_known(seconds, units.format_duration) for seconds in (size.baseline_s, size.challenger_s))
    interval = units.format_interval(size.low, size.high, units.format_ratio)
    return (wording.format_size(size.size), *times, units.format_if_known(size.speedup, units.format_ratio), interval)


def _size_cells(size: Size, answer: Crossover) -> tuple[str, ...]:
    return (*size_figures(size), wording.size_verdict_text(size, answer))


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
    """Describe the settings that the runs of a study have in common."""
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
