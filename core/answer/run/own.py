"""What is seen of a training of one's own: where the time of a step goes, and what is odd about it, in sentences.

Everything follows from what was counted and timed apart from the blocks. What could not be seen is not guessed at.
"""

import itertools
import statistics
from collections.abc import Sequence
from typing import Any

from core import units
from core.answer.own.findings import list_findings
from core.answer.own.steps import CustomSteps
from core.answer.run import lane_check
from core.answer.run.speedup import is_host, step_time
from core.answer.statistics import median_interval
from core.question.experiment import inline_name
from core.question.lanes import PLAIN
from core.results.schema import Trial

SAME_LOSS = 0.01
"""Relative difference of the first losses beyond which devices did not begin alike."""

NOTHING_ODD = "Nothing of what can be seen of its steps stands out: the work itself decides."
"""What is said to decide where nothing is odd."""


def custom_training_line(trial: Trial) -> str:
    """The training of a row in a line."""
    known = [
        f"{units.format_count(trial.parameters)} parameters" if trial.parameters else "parameters unknown",
        f"{units.format_operations(trial.flops_per_step)} a step" if trial.flops_per_step else "operations unknown",
    ]
    return f"{trial.training} (one's own, source {trial.source_hash[:6]}), size {trial.size:,}: {', '.join(known)}"


def custom_steps(trial: Trial) -> CustomSteps:
    """What is known of the steps of a row."""
    timed: dict[str, Sequence[float]] = {
        "loader_s": trial.breakdown_loader_s,
        "transfer_s": trial.breakdown_transfer_s,
        "busy_s": trial.busy_step_s,
    }
    counted = ("operations", "waits", "copies", "elsewhere", "float64", "kept", "learns", "threads_set", "printed")
    seen = ("waits_at", "syncs", "syncs_at", "inside_s", "float64_s", "between_s", "floor_s")
    known: dict[str, Any] = {name: statistics.median(values) for name, values in timed.items() if values}
    known |= {name: getattr(trial, f"own_{name}") for name in (*counted, *seen)}
    return CustomSteps(on_host=is_host(trial), step_s=step_time(trial).median_s, steps=trial.steps, **known)


def finding_sentences(trial: Trial) -> list[str]:
    """What is worth knowing of one row, that which costs most first; empty where nothing was seen."""
    return [f"On {inline_name(trial.contender)}, {found.sentence}" for found in list_findings(custom_steps(trial))]


BATCH_WORDS = {
    "workers0": "steps are {} as fast without workers of its loader",
    "workers2": "steps are {} as fast with two workers of its loader that stay from epoch to epoch",
    "pinned": "steps are {} as fast with batches in pinned memory",
    "resident": "steps are {} as fast with batches that are on the device already",
    "larger": "samples are trained {} as fast in batches four times as large",
}
"""What was tried in place of its batches, by column, in words that go on after the name of a device."""

LEARNS = {"larger": " It learns differently: each sample makes a fourth of the updates."}
"""What has to be said of some of them."""


def batch_effects(trial: Trial) -> list[str]:
    """What other batches did in turns with its own, a sentence each, that which helps most first."""
    told: list[tuple[float, str]] = []
    for name, words in BATCH_WORDS.items():
        pairs = zip(trial.own_given_s, getattr(trial, f"own_{name}_s"), strict=False)
        ratios = [given / other for given, other in pairs if other > 0]
        if interval := median_interval(ratios):
            value, low, high = (units.format_ratio(each) for each in (statistics.median(ratios), *interval))
            unsure = "it cannot be told whether it helps: " if interval[0] <= 1 <= interval[1] else ""
            said = f"On {inline_name(trial.contender)}, {unsure}{words.format(value)} (95 %: {low} to {high})."
            said += LEARNS.get(name, "")
            told.append((statistics.median(ratios), said))
    return [said for _, said in sorted(told, reverse=True)]


def larger_batches_hint(trial: Trial) -> str:
    """How larger batches could be tried, where they might help a row and were not; empty elsewhere."""
    if not trial.training or trial.own_given_s or lane_check.find_lane(trial) != PLAIN:
        return ""
    if not any(found.kind in ("small", "idle") for found in list_findings(custom_steps(trial))):
        return ""
    return (
        "Larger batches might help, and were not tried: from outside only those of a DataLoader can be made larger. "
        "Where the code makes its batches itself, let size be the number of samples in a batch, and sweep it."
    )


def oddity_sentences(trials: Sequence[Trial]) -> list[str]:
    """What stands out in the steps of rows, and whether devices began alike."""
    return [
        *itertools.chain.from_iterable(map(finding_sentences, trials)),
        *filter(None, [first_losses_sentence(trials)]),
    ]


def batch_sentences(trials: Sequence[Trial]) -> list[str]:
    """What other batches did, or how larger ones could be tried."""
    return [
        *itertools.chain.from_iterable(map(batch_effects, trials)),
        *dict.fromkeys(filter(None, map(larger_batches_hint, trials))),
    ]


def custom_sentences(trials: Sequence[Trial]) -> list[str]:
    """All that is seen of the steps of rows."""
    return [*oddity_sentences(trials), *batch_sentences(trials)]


def first_losses_sentence(trials: Sequence[Trial]) -> str:
    """Whether devices began alike, in a sentence; empty where that is so, or not known."""
    plain = [row for row in trials if lane_check.find_lane(row) == PLAIN]
    known = [(row.contender, row.own_first_loss) for row in plain if row.own_first_loss is not None]
    for (first, one), (second, other) in itertools.pairwise(known):
        if one is not None and other is not None and abs(one - other) > SAME_LOSS * max(abs(one), abs(other)):
            return (
                f"After the first step the loss is {units.format_significant(one)} on {inline_name(first)} and "
                f"{units.format_significant(other)} on {inline_name(second)}: its randomness differs between "
                "devices. Draw weights "
                "and batches on the CPU, and move them."
            )
    return ""


def custom_cause(baseline: Trial, challenger: Trial) -> str:
    """Why two rows differ as they do, as far as that can be seen."""
    told = [finding_sentences(row)[:1] for row in (challenger, baseline)]
    said = " ".join(itertools.chain.from_iterable(told))
    return said or NOTHING_ODD
