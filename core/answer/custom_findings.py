"""Findings about a custom training script: its known facts, the costs of its steps, and anything unusual.

The functions turn rows into facts and sentences. A finding that could not be measured is reported as unknown.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from .. import units
from ..question import custom
from ..question.experiment import inline_name
from ..question.lanes import PLAIN
from ..results.schema import Trial
from . import speedup
from .speedup import is_host, step_time
from .statistics import median_interval


def custom_part_times(trial: Trial) -> dict[str, float]:
    """Return the median seconds of loader, transfer and step, if they were timed separately."""
    timed = {
        "loader": trial.breakdown_loader_s,
        "transfer": trial.breakdown_transfer_s,
        "step": trial.breakdown_step_s,
    }
    return {part: statistics.median(values) for part, values in timed.items() if values}


def custom_facts(trial: Trial) -> dict[str, str]:
    """Return the known facts about a row, except its times, by title."""
    found = {
        "Loss after the first step": units.format_if_known(trial.own_first_loss, units.format_significant),
        "Its own evaluation": units.format_if_known(trial.own_evaluation, units.format_significant),
    }
    return {title: text for title, text in found.items() if text}


def unknown_facts_sentence(trial: Trial) -> str:
    """List the unknown facts about a timed row in a sentence; empty if all are known."""
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
    return f"Unknown, because the object that build returns does not provide it: {', '.join(absent)}."


Cause = Literal["loader", "before", "transfer", "host", "waits", "calls", "float64", "arithmetic", "uneven"]

MOST_CALLS = 3
"""Maximum factor of the calling time over calls on bare tensors, because modules do more work per call. The rest of the
time counts as arithmetic, because a shared machine makes all of it longer.
"""


LONG = 3
"""Multiple of the usual step time from which a step counts as long."""


def weigh_long_steps(times: Sequence[float]) -> tuple[float, float, float]:
    """Return the share of steps that take more than `LONG` times the usual, their cost, and their length.

    Args:
        times: times of single steps.

    Returns:
        Share of long steps; share of the time that they take beyond the usual; their median as a multiple of the usual.
    """
    whole = sum(times)
    if not whole:
        return 0.0, 0.0, 0.0
    usual = statistics.median(times)
    long = [each for each in times if each > LONG * usual]
    if not long:
        return 0.0, 0.0, 0.0
    cost = sum(each - usual for each in long) / whole
    return len(long) / len(times), cost, statistics.median(long) / usual if usual else math.inf


@dataclass(frozen=True, kw_only=True)
class CustomSteps:
    """Times and counts of steps; times in seconds, empty or None where unknown.

    Attributes:
        on_host: whether the CPU does the work.
        step_s: time of an undisturbed step, including everything.
        loader_s: part of the step that waits for the batch.
        before_s: part of the step before the forward pass, if the loader's time is unknown.
        transfer_s: time of placing the batch on the device, if it is separate from the step.
        busy_s: time for which an accelerator works, if it never waits.
        steps: number of trained steps.
        looked: number of steps that were examined one by one; 0 if none were.
        uneven: result of `weigh_long_steps`.
        long_at: file, line and function of long steps; empty if unknown.
        first_s: time of the first step, with its setup; None if unknown.
        first_at: place where the first step spent most of its time, and the activity there.
        operations: number of PyTorch operations in each observed step; the next attributes are also per observed step.
        waits: number of values that the host read.
        waits_at: file and line of most of these reads.
        syncs: number of times that CUDA made the host wait.
        syncs_at: file and line of most of these waits.
        copies: number of tensors copied to the device.
        elsewhere: number of operations on another device.
        float64: number of operations in float64.
        kept: number of live tensors.
        inside_s: time in operations, with synchronization and counting.
        float64_s: part of `inside_s` in float64.
        between_s: time in long stretches between operations; the minimum counts, because other programs only make
            stretches longer.
        floor_s: times in an almost empty training: of an operation with its call; of a counted operation; of reading a
            value.
        learns: whether a parameter changes.
        threads_set: whether steps set the number of threads.
        printed: number of printed lines.
    """

    on_host: bool
    step_s: float | None = None
    loader_s: float | None = None
    before_s: float | None = None
    transfer_s: float | None = None
    busy_s: float | None = None
    steps: int = 0
    looked: int = 0
    uneven: tuple[float, float, float] = (0.0, 0.0, 0.0)
    long_at: str = ""
    first_s: float | None = None
    first_at: str = ""
    operations: Sequence[int] = ()
    waits: Sequence[int] = ()
    waits_at: str = ""
    syncs: Sequence[int] = ()
    syncs_at: str = ""
    copies: Sequence[int] = ()
    elsewhere: Sequence[int] = ()
    float64: Sequence[int] = ()
    kept: Sequence[int] = ()
    inside_s: Sequence[float] = ()
    float64_s: Sequence[float] = ()
    between_s: Sequence[float] = ()
    floor_s: Sequence[float] = ()
    learns: bool | None = None
    threads_set: bool = False
    printed: int = 0

    @property
    def reads(self) -> bool:
        """Whether each step made the host wait for a value."""
        return bool(self.waits) and min(self.waits) > 0

    @property
    def unseen(self) -> bool:
        """Whether a step has no PyTorch operation, so that its activity cannot be observed."""
        return bool(self.operations) and max(self.operations) == 0

    @cached_property
    def costs(self) -> dict[Cause, float]:
        """Share of an undisturbed step that each cause costs; empty if the step time is unknown."""
        if not self.step_s:
            return {}
        usual_s = self.step_s * (1 - self.uneven[1])  # the counts come from usual steps
        known = self._on_host(usual_s) if self.on_host else self._on_accelerator(usual_s)
        costs = {cause: min(1.0, max(0.0, seconds / self.step_s)) for cause, seconds in known.items()}
        return costs | ({"uneven": self.uneven[1]} if self.uneven[1] else {})

    @property
    def examined(self) -> float:
        """Share of the time of all steps that was spent in steps with counted operations."""
        return 1 - self.uneven[1] if self.operations else 0.0

    @property
    def idle(self) -> float | None:
        """Share of a step in which an accelerator is idle; None if it is unknown, and on a CPU."""
        busy_s = None if self.on_host else self._busy_s
        return None if busy_s is None or not self.step_s else min(1.0, max(0.0, 1 - busy_s / self.step_s))

    @property
    def _outside(self) -> dict[Cause, float]:
        """Times that were measured separately from the step itself."""
        timed: tuple[tuple[Cause, float | None], ...] = (
            ("loader", self.loader_s),
            ("before", self.before_s),
            ("transfer", self.transfer_s),
        )
        return {cause: seconds for cause, seconds in timed if seconds is not None}

    @property
    def _counted(self) -> bool:
        return bool(self.inside_s and self.between_s and self.floor_s and not self.unseen and self.operations)

    @property
    def _arithmetic_s(self) -> float:
        """Time in operations beyond the time of empty operations."""
        return max(0.0, statistics.median(self.inside_s) - statistics.median(self.operations) * self.floor_s[1])

    @property
    def _float64_share(self) -> float:
        """Share of the arithmetic that is in float64."""
        whole = sum(self.inside_s)
        return sum(self.float64_s) / whole if whole else 0.0

    @property
    def _busy_s(self) -> float | None:
        if self.busy_s is not None:
            return self.busy_s
        return self._arithmetic_s if self._counted else None

    def _on_host(self, step_s: float) -> dict[Cause, float]:
        outside = self._outside
        if not self._counted:
            return outside
        left = max(0.0, step_s - sum(outside.values()))
        reads_s = min(left, _median(self.waits) * self.floor_s[2])
        host_s = min(left - reads_s, min(self.between_s))
        left -= reads_s + host_s
        arithmetic_s = min(self._arithmetic_s, left)
        least_s = (_median(self.operations) - _median(self.waits)) * self.floor_s[0]
        calls_s = min(left, max(least_s, min(left - arithmetic_s, MOST_CALLS * least_s)))
        arithmetic_s = left - calls_s
        in_float64 = arithmetic_s * self._float64_share
        return {
            **outside,
            "host": host_s,
            "waits": reads_s,
            "calls": calls_s,
            "float64": in_float64,
            "arithmetic": arithmetic_s - in_float64,
        }

    def _on_accelerator(self, step_s: float) -> dict[Cause, float]:
        outside, busy_s = self._outside, self._busy_s
        if busy_s is None:
            return outside
        idle_s = max(0.0, step_s - busy_s)
        if not self._counted:
            return {cause: min(seconds, idle_s) for cause, seconds in outside.items()}
        host_s, calls_s = min(self.between_s), _median(self.operations) * self.floor_s[0]
        all_s = sum(outside.values()) + host_s + calls_s
        waits_s = min(idle_s, max(0.0, step_s - all_s)) if self.reads else 0.0
        costs: dict[Cause, float] = {**outside, "host": host_s, "waits": waits_s}
        costs = {cause: min(seconds, idle_s) for cause, seconds in costs.items()}
        costs["calls"] = min(calls_s, idle_s - waits_s)  # without waits, calls would overlap with other work
        hidden_s = 0.0 if self.reads else min(all_s, step_s)
        costs["float64"] = min(busy_s * self._float64_share, step_s - hidden_s)
        return costs


def _median(counts: Sequence[int]) -> float:
    return statistics.median(counts) if counts else 0.0


NOTABLE_SHARE = 0.1
"""Minimum share of a step for a cost to be reported."""

IDLE = 0.2
"""Minimum share of a step to be reported as time of calling operations, or as idle time of a device."""

MANY_OPERATIONS = 0.5
"""Minimum share of a step's operations to be reported as on another device, or as float64."""

FLOAT64_NOTE = "most GPUs run it at a fraction of their float32 speed"
"""Explanation of the cost of float64."""

FEW_STEPS = 3
"""Number of steps that must all keep more tensors than the previous one; the first step, which may set up data, is
ignored.
"""


@dataclass(frozen=True, kw_only=True)
class StepFinding:
    """A finding about steps.

    Attributes:
        kind: subject in one word: `loader`, `before`, `transfer`, `host`, `waits`, `small`, `idle`, `float64`,
            `elsewhere`, `uneven`; and without a share `unseen`, `first`, `learns`, `syncs`, `copies`, `grows`,
            `threads`, `prints`.
        share: share of a step that the finding costs; None if unknown.
        sentence: text that follows the name of a device.
    """

    kind: str
    share: float | None
    sentence: str


def list_findings(steps: CustomSteps) -> list[StepFinding]:
    """Return all findings, with the largest costs first.

    Long steps without a known line come after other costs, because other programs may cause them.
    """
    is_unplaced = not steps.long_at and not steps.looked
    costs = [*_wrong_device_findings(steps), *_costs(steps), *_idle(steps)]
    named = {each.kind for each in costs}
    odd = [StepFinding(kind=kind, share=None, sentence=said) for kind, said in _oddities(steps) if kind not in named]

    def rank(each: StepFinding) -> tuple[bool, bool, float]:
        return each.kind != "elsewhere", each.kind == "uneven" and is_unplaced, -(each.share or 0.0)

    return [*sorted(costs, key=rank), *odd]


def grows(counts: Sequence[int]) -> bool:
    """Return whether each of the last counts is higher than the previous one."""
    last = counts[1:]
    return len(last) >= FEW_STEPS and all(after > before for before, after in itertools.pairwise(last))


def _costs(steps: CustomSteps) -> Iterator[StepFinding]:
    for kind, share in steps.costs.items():
        least = IDLE if kind == "calls" else NOTABLE_SHARE
        if kind != "arithmetic" and share >= least:
            yield StepFinding(
                kind="small" if kind == "calls" else kind,
                share=share,
                sentence=_cost_sentence(kind, units.format_share(share), steps),
            )


def _cost_sentence(kind: Cause, share: str, steps: CustomSteps) -> str:
    operations = _count_text(steps.operations)
    match kind:
        case "uneven":
            return _long_steps_sentence(steps)
        case "loader":
            return f"waiting for the next batch takes {share} of a step."
        case "before":
            return f"the work before the forward pass takes {share} of a step: the batch, copying it, other work."
        case "transfer":
            return f"placing the batch takes {share} of a step."
        case "host":
            return f"the host's work between PyTorch's operations takes {share} of a step: Python, NumPy, files, sleep."
        case "waits":
            most = "" if steps.on_host else "up to "
            return f"{_reading(steps)}: that takes {most}{share} of a step."
        case "float64":
            return f"arithmetic in float64 takes {share} of a step; {FLOAT64_NOTE}."
        case _ if steps.on_host:
            each = units.format_duration(steps.floor_s[0])
            return (
                f"calling its {operations} operations takes {share} of a step, about {each} each before any "
                "arithmetic: they are too small."
            )
    return f"launching its {operations} operations takes {share} of a step, while the device is idle."


def _wrong_device_findings(steps: CustomSteps) -> Iterator[StepFinding]:
    share = sum(steps.elsewhere) / (sum(steps.operations) or 1)
    if share > MANY_OPERATIONS:
        said = "most operations run on another device: the requested device is not used."
        yield StepFinding(kind="elsewhere", share=share, sentence=said)


def _idle(steps: CustomSteps) -> Iterator[StepFinding]:
    """Report idle time if the activity of the host is unknown, as in rows of older versions."""
    idle = steps.idle
    if idle is not None and idle >= IDLE and "calls" not in steps.costs:
        launched = f", of {_count_text(steps.operations)} operations" if steps.operations else ""
        said = f"the device has nothing to do for {units.format_share(idle)} of a step{launched}."
        yield StepFinding(kind="idle", share=idle, sentence=said)


def _oddities(steps: CustomSteps) -> Iterator[tuple[str, str]]:
    operations = sum(steps.operations)
    if first := _first_step_sentence(steps):
        yield "first", first
    if steps.unseen:
        yield "unseen", "its steps call no PyTorch operation, so their work is not visible."
    if steps.learns is False:
        yield "learns", "no parameter changes, so it trains nothing."
    if steps.reads:
        yield "waits", f"{_reading(steps)}."
    if steps.syncs and min(steps.syncs) > 0:
        where = f", most often at {steps.syncs_at}" if steps.syncs_at else ""
        yield "syncs", f"CUDA makes the host wait {_count_text(steps.syncs, 'time')} in each step{where}."
    if steps.float64 and sum(steps.float64) > MANY_OPERATIONS * operations:
        share = units.format_share(sum(steps.float64) / operations)
        yield (
            "float64",
            f"{share} of the operations are in float64, which most GPUs run at a fraction of their float32 speed.",
        )
    if steps.copies and min(steps.copies) > 0:
        yield "copies", f"each step copies {_count_text(steps.copies, 'tensor')} to the device."
    yield from _change_oddities(steps)
    if steps.threads_set:
        yield "threads", "its steps set the number of threads themselves, so the requested number is not used."
    if 2 * steps.printed > steps.steps > 0:
        yield "prints", f"it prints {units.format_count(steps.printed)} lines, which are not shown here."


def _change_oddities(steps: CustomSteps) -> Iterator[tuple[str, str]]:
    """Report differences from step to step."""
    if grows(steps.kept) or grows(steps.operations):
        yield "grows", "each step keeps more tensors alive than the one before, so memory grows."


def _long_steps_sentence(steps: CustomSteps) -> str:
    often, beyond, times = steps.uneven
    longer = f"{units.format_significant(times)} times" if math.isfinite(times) else "many times"
    why = f", most of it at {steps.long_at}" if steps.long_at else ": occasional work, or other programs"
    said = (
        f"{units.format_share(often)} of its steps take {longer} as long as a usual one and account for "
        f"{units.format_share(beyond)} of the time{why}. {_find_advice(steps.long_at)}"
    )
    return said.strip()


def _find_advice(place: str) -> str:
    """Return advice on how to avoid the activity of a script at a place; empty if there is none."""
    return next((advice for activity, advice in custom.ACTIVITIES.items() if place.endswith(activity)), "")


FIRST_S, FIRST_TIMES = 1.0, 20.0
"""Minimum seconds of a first step, and minimum multiple of the usual step, for the first step to be reported."""


def _first_step_sentence(steps: CustomSteps) -> str:
    """Describe the time of the first step if it is much longer than the others; otherwise empty."""
    if not steps.step_s or not steps.first_s or steps.first_s < max(FIRST_S, FIRST_TIMES * steps.step_s):
        return ""
    times, where = units.format_significant(steps.first_s / steps.step_s), ""
    if steps.first_at:
        where = f", most of it at {steps.first_at}"
    took = units.format_duration(steps.first_s)
    return f"the first step took {took}, {times} times as long as a step{where}. {_find_advice(steps.first_at)}".strip()


def _reading(steps: CustomSteps) -> str:
    where = f", most often at {steps.waits_at}" if steps.waits_at else ""
    times = _count_text(steps.waits, "time")
    if steps.on_host:  # it is unknown where tensors would be in a GPU run: some stay on the host
        return f"each step reads values or sizes {times}{where}; with tensors on a GPU, each read makes the host wait"
    return f"each step makes the host wait for the device {times}, as it reads values or sizes{where}"


def _count_text(counts: Sequence[int], noun: str = "") -> str:
    """Format the median count per step: "3", or with a noun "1 value", "3 values"."""
    if not counts:
        return "unknown"
    number = int(statistics.median(counts))
    return units.format_quantity(number, noun) if noun else units.format_count(number)


SAME_LOSS = 0.01
"""Relative difference of the first losses above which devices started differently."""

NOTHING_ODD = "Nothing unusual was found in its steps: the time is spent on the work itself."
"""Sentence for steps without findings."""

LEAST_EXAMINED = 0.8
"""Share of the time of steps that must have been examined before the work itself is named as the cause."""


def custom_training_line(trial: Trial) -> str:
    """Describe the training of a row in one line."""
    known = [
        f"{units.format_count(trial.parameters)} parameters" if trial.parameters else "parameters unknown",
        f"{units.format_operations(trial.flops_per_step)} a step" if trial.flops_per_step else "operations unknown",
    ]
    return f"{trial.training} (your script, source {trial.source_hash[:6]}), size {trial.size:,}: {', '.join(known)}"


def custom_steps(trial: Trial) -> CustomSteps:
    """Collect the times and counts of the steps of a row."""
    timed: dict[str, Sequence[float]] = {
        "loader_s": trial.breakdown_loader_s,
        "transfer_s": trial.breakdown_transfer_s,
        "busy_s": trial.busy_step_s,
    }
    counted = ("operations", "waits", "copies", "elsewhere", "float64", "kept", "learns", "threads_set", "printed")
    seen = ("waits_at", "syncs", "syncs_at", "inside_s", "float64_s", "between_s", "floor_s")
    known: dict[str, Any] = {name: statistics.median(values) for name, values in timed.items() if values}
    parts = [part for part in (trial.breakdown_transfer_s, trial.breakdown_step_s) if part]
    known["uneven"] = weigh_long_steps(trial.own_single_s or tuple(map(sum, zip(*parts, strict=False))))
    known |= {"long_at": trial.own_heavy_at, "first_at": trial.own_first_at, "first_s": trial.startup_first_step_s}
    known |= {name: getattr(trial, f"own_{name}") for name in (*counted, *seen)}
    return CustomSteps(on_host=is_host(trial), step_s=step_time(trial).median_s, steps=trial.steps, **known)


def finding_sentences(trial: Trial) -> list[str]:
    """Describe the findings on one row, the most expensive first; empty without findings."""
    return [f"On {inline_name(trial.contender)}, {found.sentence}" for found in list_findings(custom_steps(trial))]


BATCH_WORDS = {
    "workers0": "steps are {} as fast without loader workers",
    "workers2": "steps are {} as fast with two persistent loader workers",
    "pinned": "steps are {} as fast with batches in pinned memory",
    "resident": "steps are {} as fast with batches already on the device",
    "larger": "samples are trained {} as fast in batches four times as large",
}
"""Descriptions of the alternatives to a script's own batches, by column; they follow the name of a device."""

LEARNS = {"larger": " It learns differently: the same samples give a quarter of the updates."}
"""Remarks on some of these alternatives, by column."""


def batch_effects(trial: Trial) -> list[str]:
    """Describe the effects of other batches measured in turns with the script's own, the most helpful first."""
    told: list[tuple[float, str]] = []
    for name, words in BATCH_WORDS.items():
        pairs = zip(trial.own_given_s, getattr(trial, f"own_{name}_s"), strict=False)
        ratios = [given / other for given, other in pairs if other > 0]
        if interval := median_interval(ratios):
            value, low, high = (units.format_ratio(each) for each in (statistics.median(ratios), *interval))
            unsure = "inconclusive: " if interval[0] <= 1 <= interval[1] else ""
            said = f"On {inline_name(trial.contender)}, {unsure}{words.format(value)} (95 %: {low} to {high})."
            said += LEARNS.get(name, "")
            told.append((statistics.median(ratios), said))
    return [said for _, said in sorted(told, reverse=True)]


def larger_batches_hint(trial: Trial) -> str:
    """Describe how to try larger batches if they might help a row but were not tried; otherwise empty."""
    if not trial.training or trial.own_given_s or speedup.find_lane(trial) != PLAIN:
        return ""
    if not any(found.kind in ("small", "idle") for found in list_findings(custom_steps(trial))):
        return ""
    return (
        "Larger batches might help, but were not tried: only the batches of a DataLoader can be enlarged from outside. "
        "If the code makes its own batches, let size be the batch size, and sweep it."
    )


def oddity_sentences(trials: Sequence[Trial]) -> list[str]:
    """Describe the findings on the steps of rows, and a difference in the first loss between devices."""
    return [
        *itertools.chain.from_iterable(map(finding_sentences, trials)),
        *filter(None, [first_losses_sentence(trials)]),
    ]


def batch_sentences(trials: Sequence[Trial]) -> list[str]:
    """Describe the effects of other batches, or how to try larger ones."""
    return [
        *itertools.chain.from_iterable(map(batch_effects, trials)),
        *dict.fromkeys(filter(None, map(larger_batches_hint, trials))),
    ]


def custom_sentences(trials: Sequence[Trial]) -> list[str]:
    """Return all findings on the steps of rows."""
    return [*oddity_sentences(trials), *batch_sentences(trials)]


def first_losses_sentence(trials: Sequence[Trial]) -> str:
    """Describe a difference in first losses between devices; empty where they agree or are unknown."""
    plain = [row for row in trials if speedup.find_lane(row) == PLAIN]
    known = [(row.contender, row.own_first_loss) for row in plain if row.own_first_loss is not None]
    for (first, one), (second, other) in itertools.pairwise(known):
        if one is not None and other is not None and abs(one - other) > SAME_LOSS * max(abs(one), abs(other)):
            return (
                f"After the first step the loss is {units.format_significant(one)} on {inline_name(first)} and "
                f"{units.format_significant(other)} on {inline_name(second)}: random numbers differ between "
                "devices. Create weights and batches on the CPU, then move them."
            )
    return ""


def custom_cause(baseline: Trial, challenger: Trial) -> str:
    """Explain the difference of two rows, as far as the findings show it."""
    told = [finding_sentences(row)[:1] for row in (challenger, baseline)]
    said = " ".join(itertools.chain.from_iterable(told))
    return said or _unexamined_sentence((challenger, baseline)) or NOTHING_ODD


def _unexamined_sentence(rows: Sequence[Trial]) -> str:
    """Explain why the work itself cannot be named as the cause, although there are no findings; empty if it can."""
    for row in rows:
        device, share = inline_name(row.contender), custom_steps(row).examined
        if not share:
            return f"The cause is unknown: the operations of steps on {device} were not examined."
        if share < LEAST_EXAMINED:
            held = units.format_share(share)
            return f"The cause is unknown: the steps examined on {device} account for {held} of the time."
    return ""
