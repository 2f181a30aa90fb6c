"""What is seen of a training of one's own: where the time of a step goes, and what is odd about it, in sentences.

Everything follows from what was counted and timed apart from the blocks. What could not be seen is not guessed at.
"""

import itertools
import statistics
from collections.abc import Sequence

from core import units
from core.answer.run.speedup import is_host, step_time
from core.question.experiment import titled
from core.results.schema import Trial

NOTABLE = 0.1
"""Share of a step from which loader and transfer are named."""

MANY = 0.5
"""Share of a step's operations from which on they are said to be elsewhere, or in float64."""

SAME_LOSS = 0.01
"""Relative difference of the first losses beyond which devices did not begin alike."""

FEW_STEPS = 3
"""Steps that must all keep more than the one before, and the first ones, which may set up something, are left out."""

IDLE = 0.2
"""Share of a step for which an accelerator has nothing to do, from which on that is said."""


def training(trial: Trial) -> str:
    """The training of a row in a line."""
    known = [
        f"{units.count(trial.parameters)} parameters" if trial.parameters else "parameters unknown",
        f"{units.operations(trial.flops_per_step)} a step" if trial.flops_per_step else "operations unknown",
    ]
    return f"{trial.training} (one's own, source {trial.source_hash[:6]}), size {trial.size:,}: {', '.join(known)}"


def shares(trial: Trial) -> dict[str, float]:
    """Share of loader, transfer and step in what a step takes when they are timed apart; empty if they were not."""
    timed = {
        "loader": trial.breakdown_loader_s,
        "transfer": trial.breakdown_transfer_s,
        "step": trial.breakdown_step_s,
    }
    medians = {name: statistics.median(values) for name, values in timed.items() if values}
    whole = sum(medians.values())
    return {name: seconds / whole for name, seconds in medians.items()} if "step" in medians and whole else {}


def findings(trial: Trial) -> list[str]:
    """What is worth knowing of one row, that which costs most first; empty where nothing was seen."""
    return [said for _, said in kinds(trial)]


def kinds(trial: Trial) -> list[tuple[str, str]]:
    """The same, each with what it is about in a word: `loader`, `transfer`, `idle`, `waits`, `float64` and so on."""
    name = titled(trial.contender)
    return [(kind, f"On {name} {said}") for kind, said in (*_time(trial), *_oddities(trial))]


def first_losses(trials: Sequence[Trial]) -> str:
    """Whether devices began alike, in a sentence; empty where that is so, or not known."""
    known = [(row.contender, row.own_first_loss) for row in trials if row.own_first_loss is not None]
    for (first, one), (second, other) in itertools.pairwise(known):
        if one is not None and other is not None and abs(one - other) > SAME_LOSS * max(abs(one), abs(other)):
            return (
                f"After the first step the loss is {units.significant(one)} on {titled(first)} and "
                f"{units.significant(other)} on {titled(second)}: its randomness differs between devices. Draw weights "
                "and batches on the CPU, and move them."
            )
    return ""


def cause(baseline: Trial, challenger: Trial) -> str:
    """Why two rows differ as they do, as far as that can be seen."""
    told = [findings(row)[:1] for row in (challenger, baseline)]
    said = " ".join(itertools.chain.from_iterable(told))
    return said or "Nothing of what can be seen of its steps stands out: the work itself decides."


def _time(trial: Trial) -> list[tuple[str, str]]:
    known, step_s = shares(trial), step_time(trial).median_s
    said = [
        (known[part], part, f"{work} takes {units.share(known[part])} of a step.")
        for part, work in (("loader", "waiting for the next batch"), ("transfer", "placing the batch"))
        if known.get(part, 0.0) >= NOTABLE
    ]
    if trial.busy_step_s and step_s and not is_host(trial):
        idle = min(1.0, max(0.0, 1 - statistics.median(trial.busy_step_s) / step_s))
        launched = f", of {_each(trial.own_operations)} operations" if trial.own_operations else ""
        if idle >= IDLE:
            said.append((idle, "idle", f"the device has nothing to do for {units.share(idle)} of a step{launched}."))
    return [(kind, sentence) for _, kind, sentence in sorted(said, reverse=True)]


def _oddities(trial: Trial) -> list[tuple[str, str]]:
    operations, said = sum(trial.own_operations), list[tuple[str, str]]()
    if trial.own_elsewhere and sum(trial.own_elsewhere) > MANY * operations:
        odd = "most operations run on another device: build does not use the device that it is given."
        said.append(("elsewhere", odd))
    if trial.own_learns is False:
        said.append(("learns", "no parameter changes: it trains nothing."))
    if trial.own_waits and min(trial.own_waits) > 0:
        where = f", most often at {trial.own_waits_at}" if trial.own_waits_at else ""
        said.append(("waits", f"each step reads {_each(trial.own_waits)} values, for which the host waits{where}."))
    if trial.own_float64 and sum(trial.own_float64) > MANY * operations:
        share = units.share(sum(trial.own_float64) / operations)
        odd = f"{share} of the operations are in float64, which many GPUs do at a small part of their speed."
        said.append(("float64", odd))
    if trial.own_copies and min(trial.own_copies) > 0:
        said.append(("copies", f"each step copies {_each(trial.own_copies)} tensors to the device."))
    if grows(trial.own_kept) or grows(trial.own_operations):
        said.append(("grows", "each step leaves more behind than the one before: it grows with every step."))
    if trial.own_threads_set:
        odd = "its steps set the number of threads themselves, so it is not the one that was asked for."
        said.append(("threads", odd))
    if 2 * trial.own_printed > trial.steps > 0:
        said.append(("prints", f"it prints {units.count(trial.own_printed)} lines, which are not shown here."))
    return said


def grows(counts: Sequence[int]) -> bool:
    """Whether each of the last counts is higher than the one before."""
    last = counts[1:]
    return len(last) >= FEW_STEPS and all(after > before for before, after in itertools.pairwise(last))


def _each(counts: Sequence[int]) -> str:
    return units.count(int(statistics.median(counts)))
