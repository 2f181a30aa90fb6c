"""A row as a recording that a run recorder shows: settings, loss curve, epoch times and accuracies.

Every value is a raw one of the row or follows from it as elsewhere in `core.answer`; nothing here writes a file.
"""

import itertools
from datetime import datetime

from ... import units
from ...question import models
from ...results.schema import Trial
from ...text import as_label, to_markdown
from .. import accuracy, comparable, speedup, training_time
from .tensorboard import EventRecording, Scalar

ABOUT = ("contender", "device_name", "threads", "outcome", "cpu_name", "torch_version", "machine_id", "started_at")
"""Columns that the text names beside the training's settings."""


def trial_recording(trial: Trial) -> EventRecording:
    """What a run recorder keeps of one row.

    Its clock is that of the training, start-up apart: the time between two values is the time that training took
    between them, not that in which other contenders had their turns.
    """
    settings = {
        name: getattr(trial, name) for name in comparable.meaningful_columns(comparable.TRAINING_COLUMNS, trial)
    }
    return EventRecording(
        name=_recording_name(trial),
        id=trial.trial_id,
        began=datetime.fromisoformat(trial.started_at).timestamp(),
        settings={**settings, "contender": trial.contender, "device_name": as_label(trial.device_name)},
        text=_recording_text(trial, settings),
        scalars={tag: values for tag, values in _scalars(trial).items() if values},
    )


def _recording_name(trial: Trial) -> str:
    if trial.training:
        return f"{trial.training}-size={trial.size}-{trial.contender}-{trial.run_id}"
    sizes = [f"{name}={value}" for name in models.AXES if (value := getattr(trial, name))]
    sizes += [f"batch={trial.batch_size}", f"workers={trial.loader_workers}"]
    return "-".join([trial.dataset, trial.model, *sizes, trial.contender, trial.run_id])


def _recording_text(trial: Trial, settings: dict[str, object]) -> str:
    rows = [*settings.items(), *((name, getattr(trial, name)) for name in ABOUT)]
    rows += [("parameters", trial.parameters or "unknown"), ("message", trial.message)]
    step_s = speedup.step_time(trial).median_s
    rows.append(("median step", units.format_duration(step_s) if step_s else "not timed"))
    lines = [f"| {name.replace('_', ' ')} | {to_markdown(str(value))} |" for name, value in rows]
    return "\n".join(["| setting | value |", "|---|---|", *lines])


def _scalars(trial: Trial) -> dict[str, tuple[Scalar, ...]]:
    epochs = () if trial.training else training_time.epoch_times(trial)  # nobody knows what one of one's own is
    ends = [epoch * trial.steps_per_epoch for epoch in range(1, len(epochs) + 1)]
    block_ends = tuple(map(sum, zip(trial.block_first_step, trial.block_steps, strict=True)))
    last = accuracy.final_tested_step(trial)
    step_s = speedup.step_time(trial).median_s
    shares = {
        "accuracy/train": trial.train_accuracy,
        "accuracy/validation": trial.validation_accuracy,
        "accuracy/test": accuracy.accuracy(trial),
        "epoch_s/median": step_s * trial.steps_per_epoch if step_s and not trial.training else None,
    }
    return {
        "loss/train": _scalar_series(trial, trial.loss_step, trial.loss),
        "epoch_s/each": tuple(
            (number, seconds, after)
            for number, (seconds, after) in enumerate(
                zip(epochs, training_time.training_seconds(trial, ends), strict=True), start=1
            )
        ),
        "step_s/block": _scalar_series(trial, block_ends, trial.step_s),
        **{tag: _scalar_series(trial, (last,), (share,)) for tag, share in shares.items() if share is not None},
    }


def _scalar_series(trial: Trial, steps: tuple[int, ...], values: tuple[float, ...]) -> tuple[Scalar, ...]:
    """Values with their step and training time; 0 where no block was timed."""
    seconds = training_time.training_seconds(trial, steps) if trial.block_first_step else itertools.repeat(0.0)
    return tuple(zip(steps, values, seconds, strict=False))
