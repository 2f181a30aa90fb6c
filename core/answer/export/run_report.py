"""Everything that is said of one run: as one JSON document for scripts, and as text for a terminal.

Brings the other answers together; computes nothing of its own.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from core import units
from core.answer.run import causes, remedies, training_time
from core.answer.run import learned as parity
from core.answer.run import speedup as summary
from core.answer.run.speedup import Speedup
from core.answer.study import best_lanes
from core.errors import CrossoverError
from core.results.schema import Trial


def document(trials: Sequence[Trial], *, from_store: bool) -> dict[str, Any]:
    """The run as plain data.

    Args:
        trials: rows of one run, the baseline first.
        from_store: whether they were measured earlier.

    Returns:
        `run_id`, `measured_at`, `from_store`, `trials` (one object a contender), `comparisons` (one object for each
        other contender against the first), and where there are lanes `remedies` (one object a device) and
        `best_against_best`.
    """
    first = trials[0]
    return {
        "run_id": first.run_id,
        "experiment_id": first.experiment_id,
        "measured_at": first.started_at,
        "from_store": from_store,
        "parameters": first.parameters,
        "flops_per_step": first.flops_per_step,
        "trials": [_trial(trial) for trial in trials],
        "comparisons": [_comparison(first, other) for other in trials[1:]],
        **_lanes(trials),
    }


def text(trials: Sequence[Trial]) -> str:
    """The run for a terminal: a line for each contender, then what follows from them."""
    lines = [f"{_training(trials[0])}", ""]
    lines += [_contender_line(trial) for trial in trials]
    for other in trials[1:]:
        lines += ["", *_comparison_lines(trials[0], other)]
    lines += [line for told in _lane_lines(trials) for line in ("", *told)]
    reports = [f"{trial.contender}, test items:\n{report}" for trial in trials if (report := _report(trial))]
    return "\n".join([*lines, "", *reports]).rstrip() + "\n"


def _training(trial: Trial) -> str:
    return (
        f"{trial.model} on {trial.dataset}: {units.count(trial.parameters)} parameters, batch {trial.batch_size}, "
        f"{units.operations(trial.flops_per_step)} a step, {trial.steps_per_epoch} steps an epoch"
    )


def _contender_line(trial: Trial) -> str:
    step, accuracy = summary.step_time(trial), parity.accuracy(trial)
    if step.median_s is None:
        return f"{summary.label(trial)}: {trial.message or trial.outcome}"
    interval = ""
    if step.low_s is not None and step.high_s is not None:
        interval = f" (95 %: {units.duration(step.low_s)} to {units.duration(step.high_s)})"
    learned = f", test accuracy {units.share(accuracy)}" if accuracy is not None else ""
    note = f"; {trial.message}" if trial.message else ""
    return f"{summary.label(trial)}: {units.duration(step.median_s)} a step{interval}{learned}{note}"


def _comparison_lines(baseline: Trial, challenger: Trial) -> list[str]:
    try:
        lines = [
            summary.verdict_sentence(summary.speedup(baseline, challenger)),
            causes.cause(baseline, challenger),
            training_time.break_even(baseline, challenger).sentence,
        ]
        agreement = parity.agreement(baseline, challenger)
    except CrossoverError as error:
        return [str(error)]
    return [*lines, agreement.sentence] if agreement else lines


def _lane_lines(trials: Sequence[Trial]) -> list[list[str]]:
    """What lanes did, a sentence each, device by device."""
    try:
        duel = best_lanes.duel(trials)
        told = [remedies.sentences(found) for found in remedies.remedies(trials)]
    except CrossoverError as error:
        return [[str(error)]]
    return [*told, [duel.sentence]] if duel else told


def _lanes(trials: Sequence[Trial]) -> dict[str, Any]:
    try:
        found, duel = remedies.remedies(trials), best_lanes.duel(trials)
    except CrossoverError as error:
        return {"remedies": [], "refused": str(error)}
    if not found:
        return {}
    return {
        "remedies": [dataclasses.asdict(one) for one in found],
        "best_against_best": dataclasses.asdict(duel) if duel else None,
    }


def _report(trial: Trial) -> str:
    return parity.classification_text(trial) if trial.confusion else ""


def _trial(trial: Trial) -> dict[str, Any]:
    parts = causes.parts(trial)
    return {
        "contender": trial.contender,
        "device_name": trial.device_name,
        "outcome": trial.outcome,
        "message": trial.message,
        "threads": trial.threads,
        "step": dataclasses.asdict(summary.step_time(trial)),
        "epoch_s": list(training_time.epoch_times(trial)),
        "startup_s": training_time.startup_s(trial),
        "breakdown": dataclasses.asdict(parts) if parts else None,
        "test_accuracy": parity.accuracy(trial),
        "classification": parity.classification(trial),
    }


def _comparison(baseline: Trial, challenger: Trial) -> dict[str, Any]:
    try:
        speedup: Speedup = summary.speedup(baseline, challenger)
        agreement = parity.agreement(baseline, challenger)
        return {
            **dataclasses.asdict(speedup),
            "sentence": summary.verdict_sentence(speedup),
            "cause": causes.cause(baseline, challenger),
            "break_even": dataclasses.asdict(training_time.break_even(baseline, challenger)),
            "agreement": dataclasses.asdict(agreement) if agreement else None,
        }
    except CrossoverError as error:
        return {"baseline": baseline.contender, "challenger": challenger.contender, "refused": str(error)}
