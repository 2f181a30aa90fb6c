"""Whether other programs shared the machine while rows were timed, and what that leaves of a comparison.

Turns make a disturbance meet both sides of a pair, so it cancels where it slows both alike. It does not where one side
needs more of the processor than the other: threads that wait for each other all wait for the one that was displaced.
How far that shifts a speedup is simulated, and measured beside real programs, by `tests/benchmarks/busy_machine.py`.
Blocks in, words and figures out; nothing here compares two times.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .. import units
from ..question.devices import capitalize_name
from ..question.experiment import inline_name
from ..results.schema import Trial
from .statistics import p90_to_median

MAX_SPREAD = 1.5
"""Highest 90th percentile of block times over their median, and median over 10th percentile, of an undisturbed row."""

SPREAD_BLOCKS = 10
"""Fewest blocks that tell of other programs; below, one slow block would pass for a busy machine."""

MAX_STEAL = 0.10
"""Highest share of processor time taken by other guests: one tick of the kernel's clock in a block of 100 ms."""

DISPLACEMENT_RATE, SHORT_S = 75.0, 0.1
"""Involuntary context switches, a second and thread, from which a block shared its processor: on a quiet machine the
median of a row is at most 60, beside one program that never rests 150 and more (docs/measuring.md). A shorter block
counts as one of so many seconds, since a single switch of it is no sign."""

LOAD_ROOM, CROWDED_FACTOR = 0.5, 3
"""Load average accepted beyond the processor threads of the machine: all of them at work, and the system's own bits.
Above it, so many times fewer switches are a sign: among many programs a thread is rarely displaced, and for long."""

MANY_BLOCKS = 1 / 3
"""Share of disturbed blocks from which the median is no longer that of undisturbed ones."""

SHIFT, MOST_SHIFT = 1.05, 20.0
"""By how much other programs can make the side that needs less of the processor look faster: where few blocks were
disturbed, 1.03 in 99 of 100 simulated runs; where many were, 2.9, and beside real programs up to 17 in small steps,
whose threads wait for each other every few microseconds (tests/benchmarks/busy_machine.py)."""

TOO_BUSY = "this machine was too busy"
"""How it is said that no verdict can be given, after a colon."""

BUSY_MARK = "Measured on a busy machine"


@dataclass(frozen=True, kw_only=True)
class Interference:
    """What other programs did to the blocks of one contender.

    Attributes:
        name: the contender as asked for, or the device of a table.
        needs: processors that it needs at once: its threads, and 0 for an accelerator, which the host only feeds.
        slow: 90th percentile of its block times over their median; 1 below `SPREAD_BLOCKS` blocks.
        fast: their median over their 10th percentile, likewise.
        displaced: share of its blocks in which other programs or guests took its processor; 0 where not counted.
    """

    name: str
    needs: int
    slow: float = 1.0
    fast: float = 1.0
    displaced: float = 0.0

    @property
    def many(self) -> bool:
        """Whether so many blocks were disturbed that their median is shifted too."""
        return self.fast > MAX_SPREAD or self.displaced >= MANY_BLOCKS

    @property
    def any(self) -> bool:
        """Whether other programs disturbed the measurement."""
        return self.many or self.slow > MAX_SPREAD

    @property
    def description(self) -> str:
        """What was seen of it, in words that go on after a colon."""
        if self.displaced >= MANY_BLOCKS:
            often = "every block" if self.displaced == 1 else f"{units.format_share(self.displaced)} of the blocks"
            return f"other programs took processor time from {self.name} in {often}"
        if self.fast > MAX_SPREAD:
            return f"half the blocks of {self.name} took {_spread_text(self.fast)} what the fastest took"
        accepted = f"{units.format_ratio(MAX_SPREAD)} is accepted"
        return f"one block in ten of {self.name} took {_spread_text(self.slow)} the median ({accepted})"

    @property
    def sentence(self) -> str:
        """The mark of a measurement that stands all the same; empty on a quiet machine."""
        return f"{BUSY_MARK}: {self.description}." if self.any else ""

    @property
    def hindrance(self) -> str:
        """Why its median cannot be believed where nothing cancels, after a colon; empty if it can."""
        return _too_busy_reason(self.description) if self.many else ""


@dataclass(frozen=True, kw_only=True)
class PairInterference:
    """Two contenders that were timed while other programs shared the machine."""

    baseline: Interference
    challenger: Interference

    @property
    def worse(self) -> Interference:
        """The one that was disturbed more."""
        return max(self.baseline, self.challenger, key=lambda one: (one.many, one.displaced, one.slow))

    @property
    def sentence(self) -> str:
        """The mark, for after a verdict."""
        return f"{BUSY_MARK}: {self.worse.description}{self._uneven}."

    @property
    def _uneven(self) -> str:
        hit, other = sorted((self.baseline, self.challenger), key=lambda one: -one.needs)
        if hit.needs == other.needs:
            return ""
        against = units.format_quantity(other.needs, "thread") if other.needs else other.name
        return f", and they slow {units.format_quantity(hit.needs, 'thread')} of the processor more than {against}"

    def refusal(self, low: float, high: float) -> str:
        """Why an interval tells no winner, in words that go on after a colon; empty if it can be believed.

        Args:
            low: lower end of the interval of the speedup, a logarithm.
            high: upper end.
        """
        if self.baseline.needs == self.challenger.needs:
            return ""
        if self.challenger.needs > self.baseline.needs:
            low, high = -high, -low
        shift = MOST_SHIFT if self.worse.many else SHIFT  # what may be theirs of a lead of the side that needs less
        if high < 0 or low > math.log(shift) or (low <= 0 and not self.worse.many):
            return ""
        return _too_busy_reason(f"{self.worse.description}{self._uneven}, by up to {shift:g}×")


def row_interference(rows: Sequence[Trial]) -> Interference:
    """What other programs did to rows of one contender, one of each size or of one size only."""
    return _summarize_interference(
        inline_name(rows[0].contender),
        max(row.threads if row.device_kind == "cpu" else 0 for row in rows),
        [row.step_s for row in rows],
        [displaced for row in rows for displaced in _find_displacements(row)],
    )


def readings_interference(name: str, groups: Sequence[Sequence[float]]) -> Interference:
    """The same of a table of times, of which nothing else is known: readings of each size."""
    return _summarize_interference(name, 0, groups, [])


def pair_interference(baseline: Interference, challenger: Interference) -> PairInterference | None:
    """The two together; None on a machine that was quiet."""
    return PairInterference(baseline=baseline, challenger=challenger) if baseline.any or challenger.any else None


def trial_pair_interference(baseline: Trial, challenger: Trial) -> PairInterference | None:
    """What other programs did to two rows of one run; None on a machine that was quiet."""
    return pair_interference(row_interference([baseline]), row_interference([challenger]))


def _spread_text(spread: float) -> str:
    """A spread that is more than is accepted, also where it would be rounded to what is."""
    shown = units.format_ratio(spread)
    return f"more than {shown}" if shown == units.format_ratio(MAX_SPREAD) else f"at least {shown}"


def _too_busy_reason(description: str) -> str:
    return f"{TOO_BUSY}: {description}, so close other programs and measure again"


def _summarize_interference(
    name: str, needs: int, groups: Sequence[Sequence[float]], displaced: Sequence[bool]
) -> Interference:
    relative = [time / middle for times in groups if (middle := statistics.median(times or (0.0,))) for time in times]
    if len(relative) < SPREAD_BLOCKS or min(relative) <= 0:
        return Interference(name=name, needs=needs)
    return Interference(
        name=name,
        needs=needs,
        slow=p90_to_median(relative),
        fast=statistics.median(relative) / statistics.quantiles(relative, n=10, method="inclusive")[0],
        displaced=sum(displaced) / len(displaced) if displaced else 0.0,
    )


def _find_displacements(row: Trial) -> list[bool]:
    """Of each block, whether its processor was shared; empty where that was not counted."""
    threads = max(1, row.threads) if row.device_kind == "cpu" else 1
    most = math.inf if row.loader_workers else DISPLACEMENT_RATE * threads  # workers of a loader are our own company
    blocks = zip(row.block_switches, row.block_steal, row.block_load, row.block_s, strict=False)
    return [
        steal > MAX_STEAL
        or switches > max(s, SHORT_S) * (most / CROWDED_FACTOR if load > row.cores + LOAD_ROOM else most)
        for switches, steal, load, s in blocks
    ]


REASONS = {0x04: "its power limit", 0x60: "its heat", 0x88: "a lack of power or another brake of its hardware"}
"""Bits of nvmlClocksEventReasons that lower a clock under load → what did, for people."""


def gpu_notes(*trials: Trial) -> str:
    """Sentences on the cards of rows; empty where nothing hindered them, as far as they tell."""
    return " ".join(dict.fromkeys(sentence for trial in trials for sentence in _gpu_sentences(trial)))


def _gpu_sentences(trial: Trial) -> list[str]:
    said, all_blocks, card = [], len(trial.block_steps), inline_name(trial.device)
    if others := max(trial.block_other_processes, default=0):
        shared = _count_of_blocks(sum(count > 0 for count in trial.block_other_processes), all_blocks)
        who = f"up to {others} other processes" if others > 1 else "another process"
        longer = "so its times may be longer than they would be alone"
        said.append(f"{capitalize_name(card)} was shared with {who} in {shared}, {longer}.")
    lowered = {reason: sum(bool(bits & mask) for bits in trial.block_throttle) for mask, reason in REASONS.items()}
    said += [
        f"The clock of {card} was held down by {reason} after {_count_of_blocks(count, all_blocks)}."
        for reason, count in lowered.items()
        if count
    ]
    held_s = sum(trial.block_throttled_s)
    if held_s > 0 and not any(lowered.values()):
        said.append(f"The clock of {card} was held down for {units.format_duration(held_s)} while it was measured.")
    if trial.device_ecc_errors:
        errors = units.format_quantity(trial.device_ecc_errors, "memory error")
        said.append(
            f"{capitalize_name(card)} has had {errors} that could not be corrected, so what it computes may be wrong."
        )
    return said


def _count_of_blocks(count: int, every: int) -> str:
    return f"{count} of {units.format_quantity(every, 'block')}"
