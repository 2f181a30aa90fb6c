"""How long a training takes: seconds of its epochs, its start-up, and after how many epochs that is paid back.

Reconstructed from the timed blocks of rows; nothing here measures.
"""

import itertools
import math
import statistics
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from .. import units
from ..question.experiment import inline_name
from ..results.schema import Trial
from . import causes
from .speedup import speedup, step_time

NOTABLE_EXCESS = 0.005
"""Smallest relative difference that still shows when percentages are rounded to whole numbers."""


@dataclass(frozen=True, kw_only=True)
class BreakEven:
    """When the challenger's faster steps have paid back its longer start-up.

    Attributes:
        epochs: epochs of training until then, 0 if at once; None if never or not known.
    """

    epochs: float | None
    sentence: str


def epoch_times(trial: Trial) -> tuple[float, ...]:
    """Seconds of each epoch that was asked for and over by the last timed block, reconstructed from the blocks.

    A step in a timed block costs that block's time per step, a lead-in step as much as its block's, and any other
    step (the first, warm-up) the median.
    """
    if not trial.block_first_step:
        return ()
    timed = trial.block_first_step[-1] + trial.block_steps[-1]
    done = min(trial.epochs, timed // trial.steps_per_epoch)
    ends = training_seconds(trial, [epoch * trial.steps_per_epoch for epoch in range(done + 1)])
    return tuple(after - before for before, after in itertools.pairwise(ends))


def training_seconds(trial: Trial, steps: Iterable[int]) -> tuple[float, ...]:
    """Seconds of training, start-up apart, after which each of `steps` was done; counted as in `epoch_times`.

    Steps after the last block cost the median. Empty if no block was timed, or it is not known after which steps.
    """
    if not trial.block_first_step:
        return ()
    segments = _segments(trial)
    counts = list(itertools.accumulate((count for count, _ in segments), initial=0))
    seconds = list(itertools.accumulate((count * step_s for count, step_s in segments), initial=0.0))
    rates = [step_s for _, step_s in segments] + [statistics.median(trial.step_s)]
    places = [(step, bisect_right(counts, step) - 1) for step in steps]
    return tuple(seconds[place] + (step - counts[place]) * rates[place] for step, place in places)


def epoch_check_sentence(trial: Trial) -> str:
    """How one epoch in one piece compares with its steps: the check that blocks stand for real training."""
    median_s = step_time(trial).median_s
    if trial.epoch_check_s is None or median_s is None:
        return f"No whole epoch was timed in one piece on {inline_name(trial.contender)}."
    excess = trial.epoch_check_s / (trial.steps_per_epoch * median_s) - 1
    if abs(excess) < NOTABLE_EXCESS:
        return (
            f"On {inline_name(trial.contender)} a whole epoch in one piece took as long as its steps, to within 0.5 %."
        )
    direction = "longer" if excess > 0 else "less"
    took = f"{units.format_share(abs(excess))} {direction}"
    return f"On {inline_name(trial.contender)} a whole epoch in one piece took {took} than its steps."


def startup_s(trial: Trial) -> float | None:
    """Seconds of start-up in a fresh process: device, model, resident data, compiling and first step.

    Resident data that were never copied ahead (other data paths) cost nothing here, nor does compiling in an eager
    lane. None if not measured.
    """
    needed = (trial.startup_device_s, trial.startup_build_s, trial.startup_first_step_s)
    known = [part for part in needed if part is not None]
    paid_once = (trial.startup_transfer_s or 0.0) + (trial.startup_compile_s or 0.0)
    return sum(known) + paid_once if len(known) == len(needed) else None


def find_break_even(baseline: Trial, challenger: Trial) -> BreakEven:
    """After how many epochs the challenger's faster steps have paid back its longer start-up.

    Raises:
        NotComparable: the rows are not comparable, see `speedup`.
    """
    outcome = speedup(baseline, challenger)
    start_base_s, start_s = startup_s(baseline), startup_s(challenger)
    if start_base_s is None or start_s is None:
        return BreakEven(
            epochs=None, sentence="The break-even is not known: start-up was not measured on both devices."
        )
    if outcome.value is None or not outcome.decided:
        return BreakEven(
            epochs=None, sentence="The break-even is not known, as it is not known which of them is faster."
        )
    # Both medians and the paired ratio go in, so that swapping the two changes nothing but the sign.
    middle_s = math.sqrt(statistics.median(baseline.step_s) * statistics.median(challenger.step_s))
    saved_s = middle_s * (math.sqrt(outcome.value) - 1 / math.sqrt(outcome.value)) * baseline.steps_per_epoch
    found = _pay_back(baseline, challenger, start_base_s, start_s, saved_s)
    if baseline.training:  # of which a step counts as an epoch
        return BreakEven(epochs=found.epochs, sentence=found.sentence.replace("epoch", "step").split("; this")[0])
    if causes.is_fit(baseline):
        return BreakEven(epochs=found.epochs, sentence=causes.fit_wording(baseline, found.sentence.split("; this")[0]))
    return found


def _segments(trial: Trial) -> list[tuple[int, float]]:
    """(steps, seconds a step) in the order in which the training's step counter ran, up to the last block's end."""
    segments, done, median_s = [], 0, statistics.median(trial.step_s)
    for first, count, step_s in zip(trial.block_first_step, trial.block_steps, trial.step_s, strict=True):
        untimed = max(0, first - done)
        lead_in = min(untimed, trial.lead_in_steps)
        segments += [(untimed - lead_in, median_s), (lead_in + count, step_s)]
        done = first + count
    return segments


def _pay_back(baseline: Trial, challenger: Trial, start_base_s: float, start_s: float, saved_s: float) -> BreakEven:
    """`saved_s`: seconds that the challenger saves in an epoch, negative if it loses them."""
    name, other = inline_name(challenger.contender), inline_name(baseline.contender)
    extra_s = start_s - start_base_s
    both = f"{units.format_duration(start_s)} against {units.format_duration(start_base_s)}"
    start = f"start-up {both}"
    if saved_s > 0 and extra_s <= 0:
        sentence = f"Training on {name} pays off at once: it starts no later than on {other} ({start}) and is faster."
        return BreakEven(epochs=0.0, sentence=sentence)
    if saved_s > 0:
        epochs = extra_s / saved_s
        never = epochs > baseline.epochs
        beyond = f"; this training has only {units.format_quantity(baseline.epochs, 'epoch')}" if never else ""
        sentence = (
            f"Training on {name} {'would pay' if never else 'pays'} back its longer start-up ({both}) after "
            f"{_epochs(epochs)}, saving {units.format_duration(saved_s)} in each{beyond}."
        )
        return BreakEven(epochs=epochs, sentence=sentence)
    if extra_s >= 0:
        sentence = f"Training on {name} never pays off: it starts no sooner than on {other} ({start}) and is slower."
        return BreakEven(epochs=None, sentence=sentence)
    sentence = (
        f"Training on {name} starts sooner than on {other} ({start}) but is slower: "
        f"it is ahead for {_epochs(extra_s / saved_s)} and never again."
    )
    return BreakEven(epochs=None, sentence=sentence)


def _epochs(number: float) -> str:
    """A number of epochs, as exact as anybody wants to know it: "1.4 epochs", "62 epochs"."""
    if number < 1:
        return "less than one epoch"
    said = units.format_significant(number, 2)
    return "one epoch" if said == "1.0" else f"{said} epochs"
