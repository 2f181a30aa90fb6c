"""What an exhibit says, in figures and sentences: how far each clock is from ours, and how far two devices are apart.

Every sentence with a number is computed from the exhibit that it is about.
"""

import statistics
from dataclasses import dataclass

from core import units
from core.question.device_kinds import capitalize_name
from core.question.experiment import display_name, inline_name
from core.results.exhibits.exhibit import Clock, Exhibit, FirstStep, Moving, Variant

GRADIENT_ROUNDING = 1e-5
"""Largest relative difference of a gradient that another order of summation in fp32 usually gives, …"""

SUSPICIOUS_DIFFERENCE = 1e-3
"""… and the one beyond which something else must differ: a bug, or a precision below fp32."""


@dataclass(frozen=True, kw_only=True)
class ClockReading:
    """One clock beside ours.

    Attributes:
        epoch_s: median seconds of an epoch by this clock; `against_ours` is that over the median by our clock.
        spread: largest reading over smallest; None for a single one.
        within: whether this median lies between the smallest and the largest reading of ours, so that the difference
            may be chance.
    """

    variant: Variant
    epoch_s: float
    against_ours: float
    spread: float | None
    within: bool

    @property
    def sentence(self) -> str:
        """How it compares, in words."""
        if self.variant.name == "ours":
            return f"An epoch takes {units.format_duration(self.epoch_s)}."
        says = f"“{self.variant.title}” says {units.format_duration(self.epoch_s)}"
        above = self.against_ours >= 1
        amount = units.format_ratio(self.against_ours) if above else f"{units.format_share(self.against_ours)} of"
        chance = ": no more than our own readings differ" if self.within else ""
        return f"{says}, {amount} what our clock says{chance}."


def compare_clocks(clock: Clock, contender: str) -> tuple[ClockReading, ...]:
    """Each clock of one contender beside ours, ours first; none for a contender that did not take part."""
    variants = clock.select_variants(contender)
    medians = [statistics.median(variant.epoch_s) for variant in variants]
    ours = variants[0].epoch_s if variants else ()
    return tuple(
        ClockReading(
            variant=variant,
            epoch_s=median,
            against_ours=median / medians[0],
            spread=max(variant.epoch_s) / min(variant.epoch_s) if len(variant.epoch_s) > 1 else None,
            within=min(ours) <= median <= max(ours),
        )
        for variant, median in zip(variants, medians, strict=True)
    )


def clock_speedups(clock: Clock, baseline: str, challenger: str) -> dict[str, float]:
    """Clock → how many times as fast as the baseline it makes the challenger; those that both have."""
    ours, theirs = (
        {entry.variant.name: entry.epoch_s for entry in compare_clocks(clock, contender)}
        for contender in (baseline, challenger)
    )
    return {name: ours[name] / theirs[name] for name in ours if name in theirs}


def first_step_sentence(first_step: FirstStep) -> str:
    """What the differences mean."""
    one, other = map(inline_name, first_step.contenders)
    if first_step.largest == 0 == first_step.loss_difference:
        return f"{capitalize_name(one)} and {other} agree to the last bit after the first step."
    loss = f"by {units.format_power(first_step.loss_difference)}" if first_step.loss_difference else "not at all"
    most = units.format_power(first_step.largest)
    differ = f"The gradients of {one} and {other} differ by at most {most} after the first step, the loss {loss}"
    if first_step.largest <= GRADIENT_ROUNDING:
        return f"{differ}: that is rounding, they add up the same numbers in another order."
    if first_step.largest <= SUSPICIOUS_DIFFERENCE:
        return f"{differ}: more than rounding usually gives, less than another precision would."
    return f"{differ}: too much for rounding; one of them computes with less precision, or wrongly."


def exhibit_text(exhibit: Exhibit) -> str:
    """The exhibit for a terminal."""
    where = ", ".join(f"{display_name(entry.contender)}: {entry.device_name}" for entry in exhibit.participants)
    match exhibit.content:
        case Clock() as clock:
            lines = _clock_lines(clock)
        case Moving() as moving:
            lines = _moving_lines(moving)
        case FirstStep() as shown:
            lines = [first_step_sentence(shown), ""]
            lines += [f"{name:24} {difference:.1e}" for name, difference in shown.parameters]
    return "\n".join([f"{where}; torch {exhibit.torch_version}, {exhibit.measured_at}", "", *lines])


def _clock_lines(clock: Clock) -> list[str]:
    lines = []
    for contender in dict.fromkeys(variant.contender for variant in clock.variants):
        lines.append(f"{display_name(contender):32} {'an epoch':>12} {'of ours':>9} {'readings':>9}")
        for entry in compare_clocks(clock, contender):
            epoch, against = units.format_duration(entry.epoch_s), units.format_ratio(entry.against_ours)
            lines.append(f"  {entry.variant.title:30} {epoch:>12} {against:>9} {len(entry.variant.epoch_s):>9}")
        lines.append("")
    return [*lines, *clock.notes]


def _moving_lines(moving: Moving) -> list[str]:
    lines = [*moving.notes, ""] if moving.notes else []
    for snippet in moving.snippets:
        lines.append(f"{snippet.title} [{snippet.device}]")
        lines += [f"    {line}" for line in snippet.code.splitlines()]
        lines += [f"  → {line}" for line in [*snippet.output.splitlines(), *snippet.error.splitlines()]]
        lines.append("")
    return lines
