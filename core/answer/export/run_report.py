"""Everything that is said of one run: as one JSON document for scripts, and as text for a terminal.

Brings the other answers together; computes nothing of its own.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from core import units
from core.answer.run import fits, own, remedies
from core.answer.run.run_answer import PairAnswer, RowAnswer, RunAnswer
from core.errors import CrossoverError
from core.question.describe import describe_training
from core.question.experiment import display_name
from core.question.fields import FIELDS, value_label
from core.results.schema import Trial


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
        return own.custom_training_line(trial)
    if fits.is_fit(trial):
        return fits.fit_line(trial)
    numbers = "" if trial.dtype == FIELDS["dtype"].default else f" in {trial.dtype}"
    return (
        f"{describe_training(trial)}: "
        f"{units.format_count(trial.parameters)} parameters{numbers}, batch {trial.batch_size}, "
        f"{units.format_operations(trial.flops_per_step)} a step, {trial.steps_per_epoch} steps an epoch"
    )


def _oddity_lines(trials: Sequence[Trial]) -> list[str]:
    """What stands out in the steps of one's own training."""
    return own.custom_sentences(trials)


def _contender_line(answer: RowAnswer) -> str:
    trial, step = answer.row, answer.step
    if step.median_s is None:
        return f"{answer.label}: {trial.message or value_label('outcome', trial.outcome)}"
    ends = units.format_interval(step.low_s, step.high_s, units.format_duration)
    interval = f" (95 %: {ends})" if ends else ""
    learned = f", test accuracy {units.format_counted_share(answer.accuracy)}" if answer.accuracy is not None else ""
    note = f". {trial.message}" if trial.message else ""
    tried = f"; threads tried: {', '.join(map(str, trial.threads_tried))}" if trial.threads_tried else ""
    each = fits.fit_wording(trial, "a step")
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
