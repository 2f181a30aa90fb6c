"""What is known of one's own training from its file: the parts of a step, its losses; and what stays unknown."""

import statistics

from core import units
from core.answer.run.speedup import step_time
from core.results.schema import Trial


def custom_part_times(trial: Trial) -> dict[str, float]:
    """Median seconds of loader, transfer and step where they were timed apart; a part that it has not is left out."""
    timed = {
        "loader": trial.breakdown_loader_s,
        "transfer": trial.breakdown_transfer_s,
        "step": trial.breakdown_step_s,
    }
    return {part: statistics.median(values) for part, values in timed.items() if values}


def custom_facts(trial: Trial) -> dict[str, str]:
    """What a row knows beside its times, for people, by its title; only what is known."""
    found = {
        "Loss after the first step": units.format_if_known(trial.own_first_loss, units.format_significant),
        "Its own evaluation": units.format_if_known(trial.own_evaluation, units.format_significant),
    }
    return {title: text for title, text in found.items() if text}


def unknown_facts_sentence(trial: Trial) -> str:
    """What is not known of a row that was timed, in a sentence; empty where everything is."""
    given = {
        "the share of its loader (batches)": trial.breakdown_loader_s,
        "the share of placing a batch (place)": trial.breakdown_transfer_s,
        "its loss (loss)": trial.own_first_loss is not None,
        "its parameters (parameters)": trial.parameters,
        "the operations of a step (flops)": trial.flops_per_step,
        "what it learned (evaluate)": trial.own_evaluation is not None,
    }
    absent = [name for name, value in given.items() if not value]
    if not absent or step_time(trial).median_s is None:
        return ""
    return f"Not known, because what build returns does not have it: {', '.join(absent)}."
