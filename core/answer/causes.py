"""Explanations, computed from the rows, of where the time of a step goes and why a device is faster.

The parts of a step are timed separately, with synchronization between them, so their sum differs from the undisturbed
step; a sentence states the difference. Which device is faster is decided in `core.answer.speedup`.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .. import units
from ..question import models
from ..question.experiment import inline_name
from ..question.fields import short_label, value_label
from ..results.schema import Trial
from . import custom_findings
from .custom_findings import FLOAT64_NOTE, IDLE, NOTABLE_SHARE, StepFinding
from .speedup import is_host, speedup, step_time
from .statistics import TIE
from .verdict import Verdict

PART_TITLES = {
    "loader": "making the batch",
    "transfer": "copying the batch to the device",
    "forward": "the forward pass",
    "backward": "the backward pass",
    "optimizer": "the update of the weights",
}
"""Parts of a step in the order in which they happen."""

MAJORITY = 0.5
"""Share of a step above which a part is named as the cause: it is larger than all other parts together."""

BUSY_SHARE = 0.8
"""Minimum share of a step in which an accelerator must be busy for its speed to be named as the cause."""


@dataclass(frozen=True, kw_only=True)
class StepParts:
    """Median seconds per step of each part of one trial.

    Attributes:
        sum_s: sum of the five; `forward_s` includes the loss, `optimizer_s` the clearing of gradients.
        step_s: median of the undisturbed step.
        excess: sum divided by the undisturbed step, minus 1; synchronization prevents the parts from overlapping.
        launch_share: share of the undisturbed step in which the accelerator had nothing to do, 0 to 1; None if it was
            not measured, for example on a CPU.
        launch_range: smallest and largest `launch_share` of single readings; with five readings, the range contains the
            median in 94 % of cases.
    """

    contender: str
    loader_s: float
    transfer_s: float
    forward_s: float
    backward_s: float
    optimizer_s: float
    sum_s: float
    step_s: float
    excess: float
    launch_share: float | None
    launch_range: tuple[float, float] = (0.0, 1.0)

    @property
    def is_launch_bound(self) -> bool:
        """Whether the accelerator was idle for most of the step in every reading."""
        return self.launch_share is not None and self.launch_range[0] > MAJORITY

    @property
    def is_busy(self) -> bool:
        """Whether the accelerator was busy for nearly all of the step in every reading."""
        return self.launch_share is not None and self.launch_range[1] <= 1 - BUSY_SHARE

    def format_idle_share(self, *, busy: bool = False) -> str:
        """Format the share of the step in which the accelerator was idle, or busy, with its range."""
        ends = (self.launch_share or 0.0, *self.launch_range)
        share, low, high = (units.format_share(1 - end if busy else end) for end in ends)
        low, high = (high, low) if busy else (low, high)
        return share if low == high else f"{share} ({low} to {high})"

    def share(self, part: str) -> float:
        """Return the share of one of `PART_TITLES` in the sum of all parts."""
        seconds: float = getattr(self, f"{part}_s")
        return seconds / self.sum_s

    @property
    def largest(self) -> str:
        """The longest part."""
        return max(PART_TITLES, key=self.share)

    @property
    def excess_sentence(self) -> str:
        """Sentence on the sum of the parts, timed separately, and the undisturbed step."""
        sums, step = units.format_duration(self.sum_s), units.format_duration(self.step_s)
        return (
            f"On {inline_name(self.contender)} the parts timed separately add up to {sums}, the undisturbed step takes "
            f"{step}."
        )


def step_parts(trial: Trial) -> StepParts | None:
    """Summarize the breakdown of one trial; None if there is none. A part without entries took 0 s.

    A custom script has other parts, see `core.answer.custom_findings`.
    """
    if trial.training:
        return None
    times = {part: getattr(trial, f"breakdown_{part}_s") for part in PART_TITLES}
    medians = {f"{part}_s": statistics.median(values) if values else 0.0 for part, values in times.items()}
    sum_s, step_s = sum(medians.values()), step_time(trial).median_s
    if not sum_s or not step_s:
        return None
    return StepParts(
        contender=trial.contender,
        **medians,
        sum_s=sum_s,
        step_s=step_s,
        excess=sum_s / step_s - 1,
        launch_share=_idle_share(statistics.median(busy), step_s) if (busy := trial.busy_step_s) else None,
        launch_range=(_idle_share(max(busy), step_s), _idle_share(min(busy), step_s)) if busy else (0.0, 1.0),
    )


def _idle_share(busy_s: float, step_s: float) -> float:
    """Return the share of a step outside its busy time, limited to 0 to 1 because both times are measured."""
    return min(1.0, max(0.0, 1 - busy_s / step_s))


def part_times(trial: Trial) -> dict[str, float]:
    """Return the median seconds per step of each part, in the order in which the parts happen.

    A custom training script has different parts.

    Returns:
        Seconds by part; empty if the step was not profiled.
    """
    if trial.training:
        return custom_findings.custom_part_times(trial)
    known = step_parts(trial)
    return {part: getattr(known, f"{part}_s") for part in PART_TITLES} if known else {}


def difference_cause(baseline: Trial, challenger: Trial, verdict: Verdict | None = None) -> str:
    """Explain the difference of two contenders in a few sentences that follow from the rows.

    Args:
        baseline: row of the baseline.
        challenger: row of the challenger.
        verdict: verdict on the two, if it is based on more than these rows, as in a study; otherwise it is computed
            from them.
    """
    if baseline.training:
        return custom_findings.custom_cause(baseline, challenger)
    spared = next(
        (f"On {inline_name(row.contender)} {found.sentence}" for row, found in turn_findings(challenger, baseline)), ""
    )
    if not is_fit(baseline):
        return " ".join(filter(None, (parts_cause(baseline, challenger, verdict), spared)))
    if is_host(baseline) and is_host(challenger):
        shared = fit_wording(baseline, threads_sentence(baseline, challenger, verdict))
        return " ".join(filter(None, (shared, spared)))
    return spared or fit_cause(baseline, challenger)


def turn_findings(*rows: Trial) -> list[tuple[Trial, StepFinding]]:
    """Collect the findings from steps that alternated with another form: float64 steps, or fits with too few rows."""
    found = ((row, _float64(row) if row.float32_step_s else _rows_finding(row)) for row in rows)
    return [(row, finding) for row, finding in found if finding is not None]


def _float64(row: Trial) -> StepFinding | None:
    """Return a finding on the share of a step that float32 would save; None if the share is small or uncertain."""
    left = _ratios(row.float32_step_s, row.turns_step_s)
    share = 1 - statistics.median(left) if left else 0.0
    if share < NOTABLE_SHARE or max(left) >= 1:
        return None
    said = f"float64 takes {units.format_share(share)} of a step, which float32 would avoid; {FLOAT64_NOTE}."
    return StepFinding(kind="float64", share=share, sentence=said)


def _rows_finding(row: Trial) -> StepFinding | None:
    """Return a finding on the share of a fit that does not depend on its rows, from fits with twice as many rows.

    A fit whose time depends only on its rows would take twice as long.
    """
    longer = _ratios(row.doubled_step_s, row.turns_step_s)
    share = min(1.0, 2 - statistics.median(longer)) if longer else 0.0
    if share < IDLE or max(longer) >= 2:
        return None
    few = ": they are too few" if share > MAJORITY else ""
    said = f"{units.format_share(share)} of a fit does not depend on its rows, as fits with every row twice show{few}."
    return StepFinding(kind="rows", share=share, sentence=said)


def _ratios(times: tuple[float, ...], other_times: tuple[float, ...]) -> list[float]:
    return [mine / other for mine, other in zip(times, other_times, strict=False) if other > 0]


def parts_cause(baseline: Trial, challenger: Trial, verdict: Verdict | None = None) -> str:
    """Explain the difference of two networks by the parts of a step."""
    base, other = step_parts(baseline), step_parts(challenger)
    if base is None or other is None:
        absent = [
            inline_name(trial.contender) for trial, known in ((baseline, base), (challenger, other)) if known is None
        ]
        in_one_piece = [inline_name(trial.contender) for trial in (baseline, challenger) if trial.execution != "eager"]
        if in_one_piece:
            return _one_piece_sentence(in_one_piece)
        return f"The cause is unknown: no breakdown was measured on {' and '.join(absent)}."
    shared = _loader_bound(baseline, base, other)
    if shared:
        return shared
    if is_host(baseline) and is_host(challenger):
        return threads_sentence(baseline, challenger, verdict)
    return accelerator_sentence(base if is_host(challenger) else other)


def why_no_breakdown(trial: Trial) -> str:
    """Return a sentence on why a step has no parts; empty if it has parts or was not timed."""
    if trial.execution == "eager" or not trial.block_steps or step_parts(trial):
        return ""
    return _one_piece_sentence([inline_name(trial.contender)])


def _one_piece_sentence(names: Sequence[str]) -> str:
    return f"The parts of a compiled or recorded step cannot be timed separately: {' and '.join(names)}."


def _loader_bound(baseline: Trial, base: StepParts, other: StepParts) -> str:
    """Return a sentence on the loader as the cause on both devices, with Amdahl's bound.

    The result is empty if the loader is not the cause.
    """
    if min(base.share("loader"), other.share("loader")) <= MAJORITY:
        return ""
    ours, theirs = units.format_share(base.share("loader")), units.format_share(other.share("loader"))
    where = (
        f"{ours} of the step on both devices"
        if ours == theirs
        else f"{ours} of the step on {inline_name(base.contender)} and {theirs} on {inline_name(other.contender)}"
    )
    bound = 1 / base.share("loader")
    # The device itself makes resident batches, and loader processes work in parallel with it: no bound follows.
    bounded = baseline.data_path != "resident" and not baseline.loader_workers
    if not bounded or base.step_s / other.step_s > bound:
        return f"The loader takes {where}."
    most = f"{units.format_ratio(bound)} over {inline_name(base.contender)}"
    return f"The loader takes {where}, so no device can gain more than {most}."


def threads_sentence(baseline: Trial, challenger: Trial, verdict: Verdict | None = None) -> str:
    """Describe whether the step is large enough for several threads of one CPU, according to the verdict."""
    if baseline.threads == challenger.threads:
        return (
            f"Both trained with {units.format_quantity(baseline.threads, 'thread')}, so they did the same work in "
            "the same way."
        )
    found = verdict or speedup(baseline, challenger)
    few, many = sorted((baseline, challenger), key=lambda trial: trial.threads)
    threads, fewer = (units.format_quantity(row.threads, "thread") for row in (many, few))
    ratio, profit = _ratio_over(found, many), is_worth_sharing(baseline, challenger, found)
    if ratio is None or profit is None:
        return f"These blocks do not show whether splitting the step among {threads} pays off."
    value, _, high = ratio
    if not found.has_winner:  # the speedup may be 1, so only its upper end is given
        most = f"A step is at most {units.format_ratio(high)} as fast with {threads} as with {fewer}"
        return f"{most}: it is too small to benefit from more threads."
    rate = f"A step is {units.format_ratio(value)} as fast with {threads} as with {fewer}"
    return f"{rate}: it is {'large enough' if profit else 'too small'} to benefit from more threads."


def is_worth_sharing(baseline: Trial, challenger: Trial, verdict: Verdict | None = None) -> bool | None:
    """Return whether more threads of one CPU make a step faster; None if the verdict does not decide this."""
    found = verdict or speedup(baseline, challenger)
    many = max(baseline, challenger, key=lambda trial: trial.threads)
    ratio = _ratio_over(found, many)
    if ratio is None or found.is_conditional or (not found.has_winner and ratio[2] > TIE):
        return None
    return found.winner == many.contender


def _ratio_over(verdict: Verdict, row: Trial) -> tuple[float, float, float] | None:
    """Return the speedup of one row over the other, with its interval; None without a complete verdict."""
    if verdict.value is None or verdict.low is None or verdict.high is None:
        return None
    if verdict.challenger == row.contender:
        return verdict.value, verdict.low, verdict.high
    return 1 / verdict.value, 1 / verdict.high, 1 / verdict.low


def accelerator_sentence(parts: StepParts) -> str:
    """Describe the largest part of an accelerator's step, or the share of the step in which it is busy."""
    name, largest = inline_name(parts.contender), parts.largest
    if largest in ("loader", "transfer") and parts.share(largest) > MAJORITY:
        most = f"{PART_TITLES[largest]} takes {units.format_share(parts.share(largest))} of the step"
        return f"On {name} {most}, more than the training itself."
    if parts.launch_share is None:
        return (
            f"On {name} the largest part of the step is {PART_TITLES[largest]} with "
            f"{units.format_share(parts.share(largest))}."
        )
    busy = parts.format_idle_share(busy=True)
    if parts.is_launch_bound:
        return _launches(parts)
    if parts.is_busy:
        return f"For {busy} of a step {name} is busy: its own speed limits the step, not that of the host."
    return f"For {busy} of a step {name} is busy, and for the rest it waits for the host."


def _launches(parts: StepParts) -> str:
    idle = parts.format_idle_share()
    data = parts.share("loader") + parts.share("transfer")
    if data > 1 - BUSY_SHARE:
        return (
            f"For {idle} of a step {inline_name(parts.contender)} is idle: it waits for its data "
            f"({units.format_share(data)} of "
            "the parts timed separately) and for the host to launch its kernels."
        )
    name = inline_name(parts.contender)
    return f"On {name} {idle} of a step is launch overhead: it waits for the host to launch its kernels."


PIECE = "A fit cannot be divided: its library does not report where the time goes."


def is_fit(trial: Trial) -> bool:
    """Return whether a step of a row is a whole fit."""
    return not trial.training and trial.model in models.families.LIBRARIES


def fit_line(trial: Trial) -> str:
    """Describe a fit in a line; its numbers of operations and parameters are unknown."""
    return (
        f"{value_label('model', trial.model)} on {short_label('dataset', trial.dataset)}: "
        f"{units.format_count(trial.samples)} rows, "
        f"{units.format_quantity(trial.rounds, 'round')} of at most {trial.leaves} leaves, learning rate "
        f"{units.format_significant(trial.learning_rate)}; a step is a whole fit, whose parameters and "
        "operations are unknown"
    )


def fit_losses_sentence(trials: Sequence[Trial]) -> str:
    """Describe in a sentence how well each device's fit predicts its own training rows."""
    said = [f"{units.format_significant(row.loss[-1])} on {inline_name(row.contender)}" for row in trials if row.loss]
    return f"After a fit, the mean log loss over its first training rows is {' and '.join(said)}."


def fit_wording(trial: Trial, text: str) -> str:
    """Adapt a sentence about steps and epochs to a row: if steps are fits, both words are replaced by "fit"."""
    return (
        text.replace("the step", "a fit").replace("epoch", "fit").replace("a step", "a fit").replace("A step", "A fit")
        if is_fit(trial)
        else text
    )


def fit_cause(baseline: Trial, challenger: Trial) -> str:
    """Explain the difference of two devices, as far as it is known for fits."""
    library = models.families.LIBRARIES[baseline.model].title
    return (
        f"The cause is unknown: {library} does not report where the time of a fit goes. On "
        f"{inline_name(challenger.contender)} and {inline_name(baseline.contender)} it depends on rows, rounds and "
        "leaves, which Crossover can vary."
    )
