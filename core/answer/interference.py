"""Interference: the possible effect of other programs on times and on a comparison.

Because contenders alternate, a disturbance affects both sides of a pair and cancels if it slows both equally. It does
not cancel if one side needs more processors than the other: threads that wait for each other all wait for the displaced
one. Two measurements around each block bound the shift of a time. The first is the time that its threads were ready to
run and waited for a processor; a thread that does not wait is not slowed. The second is the processor time of other
programs; time that no other program used cannot be lost to one. The smaller of the two is the bound, for all devices.
The functions turn blocks into sentences and figures; they do not compare two times.

The module also diagnoses a whole study: interference over all sizes, and cautions about its readings.

Three or six pairs per size cannot show interference, so the blocks of all sizes are examined together.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import units
from ..question.experiment import inline_name
from ..question.lanes import capitalize_name
from ..question.models.families import ROWS
from ..results.schema import Trial
from . import wording
from .judgement import Crossover, Evidence
from .statistics import p90_to_median

MAX_SPREAD = 1.5
"""Maximum ratio of 90th percentile to median, and of median to 10th percentile, of an undisturbed row's block times."""

SPREAD_BLOCKS = 10
"""Minimum number of blocks whose spread indicates other programs; with fewer, one slow block would look like a busy
machine.
"""

MAX_STEAL = 0.10
"""Highest share of processor time that other guests may use: one tick of the kernel's clock in a block of 100 ms."""

DISPLACEMENT_RATE, SHORT_S = 75.0, 0.1
"""Involuntary context switches per second and thread from which a block counts as displaced, and a minimum block
length.

The rate is used if waits were not measured. On a quiet machine the median of a row is at most 60, and next to one
continuously running program 150 or more (docs/method.md). A shorter block counts as `SHORT_S` long, because a single
switch is not significant.
"""

LOAD_ROOM, CROWDED_FACTOR = 0.5, 3
"""Accepted load average beyond the processor threads of the machine. Above it, the limit of context switches is divided
by `CROWDED_FACTOR`, because among many programs a thread is displaced rarely but for a long time.
"""

MANY_BLOCKS = 1 / 3
"""Share of disturbed blocks above which the median does not represent undisturbed blocks."""

QUIET_SHIFT = math.log(1.05)
"""Logarithm of a shift that cannot change a verdict, because a winner is ahead by more than twice as much."""

UNKNOWN_SHIFT = math.log(20.0)
"""Logarithm of the shift that is assumed for disturbed rows without counted waits.

Next to real programs, small steps take up to 17 times as long (tests/benchmarks/busy_machine.py): their threads wait
for each other every few microseconds.
"""

MOST_WAITING = 0.99
"""Maximum share of waiting time for which the shift of a contender has a bound."""

TOO_BUSY = "this machine was too busy"
"""Reason that a time is unusable, as text that follows a colon."""

QUIET_ADVICE = "Close other programs or wait until they end, then measure again"

BUSY_MARK = "Measured on a busy machine"

TABLE_MARK = "The readings vary as on a busy machine"


@dataclass(frozen=True, kw_only=True)
class Interference:
    """Effect of other programs on the blocks of one contender.

    Attributes:
        name: the contender's written form, or the device of a table.
        needs: number of processors that it needs: its threads, or 0 for an accelerator, which the host only feeds.
        slow: 90th percentile of its block times over their median; 1 below `SPREAD_BLOCKS` blocks.
        fast: median of its block times over their 10th percentile; 1 below `SPREAD_BLOCKS` blocks.
        displaced: share of its blocks in which other programs or guests used its processor.
        other_use: share of all processors that other programs used at that time; None if it was not counted.
        steal: share of all processors that other virtual machines on the same host used at that time.
        shift: logarithm of the maximum ratio of its median to the median on a quiet machine; 0 on a quiet machine.
        reading: unit of a time: a `block`, or a `reading` of a table.
    """

    name: str
    needs: int
    slow: float = 1.0
    fast: float = 1.0
    displaced: float = 0.0
    other_use: float | None = None
    steal: float = 0.0
    shift: float = 0.0
    reading: str = "block"

    @property
    def many(self) -> bool:
        """Whether the shift of its median could change a verdict."""
        return self.shift > QUIET_SHIFT

    @property
    def any(self) -> bool:
        """Whether other programs disturbed the measurement."""
        return self.many or self.slow > MAX_SPREAD

    @property
    def description(self) -> str:
        """Description of the interference, as text that follows a colon."""
        if self.other_use is not None and self.many and self.fast <= MAX_SPREAD:
            return self._describe_use(self.other_use, "used")
        if self.displaced >= MANY_BLOCKS:
            often = "every block" if self.displaced == 1 else f"{units.format_share(self.displaced)} of the blocks"
            return f"other programs took processor time from {self.name} in {often}"
        if self.fast > MAX_SPREAD:
            return f"half the {self.reading}s of {self.name} took {_spread_text(self.fast)} what the fastest took"
        accepted = f"{units.format_ratio(MAX_SPREAD)} is accepted"
        return f"one {self.reading} in ten of {self.name} took {_spread_text(self.slow)} the median ({accepted})"

    @property
    def condition(self) -> str:
        """The load, as the beginning of a verdict that is valid only for this load."""
        if self.other_use is not None and self.fast <= MAX_SPREAD:
            return f"with {self._describe_use(self.other_use, 'using')}"
        if self.displaced >= MANY_BLOCKS:
            often = "every block" if self.displaced == 1 else f"{units.format_share(self.displaced)} of the blocks"
            return f"with other programs taking processor time from {self.name} in {often}"
        return f"on a machine as busy as it was ({self.description})"

    def _describe_use(self, other_use: float, verb: str) -> str:
        """Name who used more of the processors: other programs of this machine, or others on its host."""
        who = "other programs" if other_use >= self.steal else "other virtual machines on the same host"
        return f"{who} {verb} about {units.format_processor_share(max(other_use, self.steal))}"

    @property
    def sentence(self) -> str:
        """The mark of a measurement that remains valid; empty on a quiet machine."""
        mark = BUSY_MARK if self.reading == "block" else TABLE_MARK
        return f"{mark}: {self.description}." if self.any else ""

    @property
    def hindrance(self) -> str:
        """Reason that its median is unusable without pairs, as text that follows a colon; empty if it is usable."""
        return f"{TOO_BUSY}: {self.description}" if self.many else ""


@dataclass(frozen=True, kw_only=True)
class PairInterference:
    """The interference of two contenders that were timed while other programs shared the machine."""

    baseline: Interference
    challenger: Interference

    @property
    def worse(self) -> Interference:
        """The contender that was disturbed more."""
        return max(self.baseline, self.challenger, key=lambda one: (one.shift, one.displaced, one.slow))

    @property
    def sentence(self) -> str:
        """The mark that follows a verdict."""
        return self.worse.sentence

    def condition(self, middle: float, low: float, high: float) -> str:
        """Return the load without which a verdict could be different; empty if the load cannot change it.

        Only a disturbance of the slower contender can change the sign. If both need equally many processors, only the
        difference between their shifts counts.

        Args:
            middle: logarithm of the speedup.
            low: lower end of its interval, also a logarithm.
            high: upper end of its interval, also a logarithm.
        """
        base, other = self.baseline.shift, self.challenger.shift
        if self.baseline.needs == self.challenger.needs:
            base, other = max(0.0, base - other), max(0.0, other - base)
        if max(base, other) <= QUIET_SHIFT:
            return ""
        kept = low - base > 0 if middle > 0 else high + other < 0
        return "" if kept else self.worse.condition


def row_interference(rows: Sequence[Trial]) -> Interference:
    """Summarize the interference of other programs with rows of one configuration, at one size or several."""
    name, needs = inline_name(rows[0].contender), max(row.threads if row.device_kind == "cpu" else 0 for row in rows)
    spread = _measure_spread(name, needs, [row.step_s for row in rows])
    slowed = [share for row in rows for share in _displaced_shares(row)]
    use = [share for row in rows for share in row.block_other_use]
    if slowed and all(row.block_waiting and row.block_other_use for row in rows if row.block_steps):
        shift = -math.log1p(-min(MOST_WAITING, statistics.median(slowed)))
        displaced = sum(-math.log1p(-min(MOST_WAITING, share)) > QUIET_SHIFT for share in slowed) / len(slowed)
        steal = statistics.fmean(share for row in rows for share in row.block_steal)
        return _with_shift(spread, shift, displaced=displaced, other_use=statistics.fmean(use), steal=steal)
    hit = [displaced for row in rows for displaced in _find_displacements(row)]
    displaced = sum(hit) / len(hit) if hit else 0.0
    return _with_shift(spread, UNKNOWN_SHIFT if displaced > MANY_BLOCKS else 0.0, displaced=displaced)


def readings_interference(name: str, groups: Sequence[Sequence[float]]) -> Interference:
    """Estimate the interference in a table of times from the readings of each size alone."""
    return replace(_with_shift(_measure_spread(name, 0, groups), 0.0), reading="reading")


def pair_interference(baseline: Interference, challenger: Interference) -> PairInterference | None:
    """Return the interference of both contenders; None on a quiet machine."""
    return PairInterference(baseline=baseline, challenger=challenger) if baseline.any or challenger.any else None


def trial_pair_interference(baseline: Trial, challenger: Trial) -> PairInterference | None:
    """Summarize the interference of other programs with two rows of one run; None on a quiet machine."""
    return pair_interference(row_interference([baseline]), row_interference([challenger]))


def _spread_text(spread: float) -> str:
    """Format a spread as a lower bound, with "more than" if it rounds to the limit."""
    shown = units.format_ratio(spread)
    return f"more than {shown}" if shown == units.format_ratio(MAX_SPREAD) else f"at least {shown}"


def _with_shift(spread: Interference, shift: float, **seen: Any) -> Interference:
    """Return the interference with the larger shift: from waits, or from the median over the fastest blocks."""
    by_spread = math.log(spread.fast) if spread.fast > MAX_SPREAD else 0.0
    return replace(spread, shift=max(shift, by_spread), **seen)


def _measure_spread(name: str, needs: int, groups: Sequence[Sequence[float]]) -> Interference:
    relative = [time / middle for times in groups if (middle := statistics.median(times or (0.0,))) for time in times]
    if len(relative) < SPREAD_BLOCKS or min(relative) <= 0:
        return Interference(name=name, needs=needs)
    fast = statistics.median(relative) / statistics.quantiles(relative, n=10, method="inclusive")[0]
    return Interference(name=name, needs=needs, slow=p90_to_median(relative), fast=fast)


def _displaced_shares(row: Trial) -> list[float]:
    """Return for each block the share of its time in which others may have delayed it; empty if not counted.

    The share is the smaller of the waiting time of its threads and the use by others. Time used by other guests of the
    host is added, because a thread cannot observe it. The system counts use in ticks, so the use in a block is at least
    the mean of the row.
    """
    if not (row.block_waiting and row.block_other_use):
        return []
    mean = statistics.fmean(row.block_other_use)
    blocks = zip(row.block_waiting, row.block_other_use, row.block_steal, strict=False)
    return [min(waiting, max(use, mean) * row.cores) + steal * row.cores for waiting, use, steal in blocks]


def _find_displacements(row: Trial) -> list[bool]:
    """Return for each block whether its processor was shared, if no waits were counted.

    Switches are used only for a CPU, because the thread that feeds an accelerator waits for it. macOS counts every wait
    as a switch.
    """
    uncounted = row.device_kind != "cpu" or row.loader_workers or row.system.startswith("Darwin")
    most = math.inf if uncounted else DISPLACEMENT_RATE * max(1, row.threads)
    switches_of_blocks = row.block_switches or (0,) * len(row.block_steal)
    blocks = zip(switches_of_blocks, row.block_steal, row.block_load, row.block_s, strict=False)
    return [
        steal > MAX_STEAL
        or switches > max(s, SHORT_S) * (most / CROWDED_FACTOR if load > row.cores + LOAD_ROOM else most)
        for switches, steal, load, s in blocks
    ]


REASONS = {0x04: "its power limit", 0x60: "its heat", 0x88: "a lack of power or another limit of its hardware"}
"""Readable cause of a lowered clock under load, by bits of nvmlClocksEventReasons."""


def gpu_notes(*trials: Trial) -> str:
    """Return sentences on shared, throttled or faulty GPUs of rows; empty if no GPU reported such a problem."""
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
        f"The clock of {card} was lowered by {reason} after {_count_of_blocks(count, all_blocks)}."
        for reason, count in lowered.items()
        if count
    ]
    held_s = sum(trial.block_throttled_s)
    if held_s > 0 and not any(lowered.values()):
        said.append(f"The clock of {card} was lowered for {units.format_duration(held_s)} while it was measured.")
    if trial.device_ecc_errors:
        errors = units.format_quantity(trial.device_ecc_errors, "memory error")
        said.append(
            f"{capitalize_name(card)} has had {errors} that could not be corrected, so its results may be wrong."
        )
    return said


def _count_of_blocks(count: int, every: int) -> str:
    return f"{count} of {units.format_quantity(every, 'block')}"


def study_interference(pairs: Sequence[tuple[Trial, Trial]]) -> PairInterference | None:
    """Summarize the interference of other programs with rows of two devices, a pair per size; None without any."""
    if not pairs:
        return None
    baselines, challengers = zip(*pairs, strict=True)
    return pair_interference(row_interference(baselines), row_interference(challengers))


def evidence_interference(evidence: Sequence[Evidence], baseline: str, challenger: str) -> PairInterference | None:
    """Return the interference of imported timings, according to their spread."""
    sides = [entry.baseline_s for entry in evidence], [entry.challenger_s for entry in evidence]
    return pair_interference(readings_interference(baseline, sides[0]), readings_interference(challenger, sides[1]))


def mark_interference(answer: Crossover, interference: PairInterference | None, condition: str = "") -> Crossover:
    """Return the answer with the observed interference of other programs.

    The usual cause of several crossings is removed from the reason. An answer that other programs may have changed is
    limited to the loaded machine; any other answer only gets a mark.
    """
    if interference is None and not condition:
        return answer
    busy = interference.sentence if interference else ""
    busy = busy or f"{BUSY_MARK}, {condition}."
    told = replace(answer, busy=busy, condition=condition, reason=answer.reason.removesuffix(wording.USUAL_CAUSE))
    sentence = answer.sentence if told.reason == answer.reason else wording.crossover_sentence(told)
    return replace(told, sentence=wording.add_load(sentence, told))


UNIT_FACTOR = 20.0
"""Ratio of a time to its neighbours, or its inverse, from which the time is reported; seconds among milliseconds differ
by more.
"""

FEWEST_POWERS = 3
"""Minimum number of powers of two from which a study with no other sizes gets a remark."""

ONLY_POWERS = "Only powers of two were measured; other sizes may use a device less well and have another crossover."
"""Remark on a study with an answer; without an answer, there is no crossing to doubt."""

AXES_WITHOUT_TILES = ("depth", "samples", ROWS)
"""Axes without a relation to the tile sizes of a device."""


def caution_sentences(timed: Sequence[Evidence], answer: Crossover) -> Iterable[str]:
    """Yield remarks on the readings, one sentence each; `timed` is in ascending order of size.

    A question about the unit of a time applies only to imported tables: measurements have a unit.
    """
    brought = answer.basis == "as_given"
    for name, times in (
        (answer.baseline, [entry.baseline_s for entry in timed]),
        (answer.challenger, [entry.challenger_s for entry in timed]),
    ):
        yield from _unit_sentences(name, [entry.size for entry in timed], times) if brought else ()
    answered = answer.outcome in ("crossing", "gpu_always", "cpu_always") or answer.clear or answer.assumed
    if answered and answer.axis not in AXES_WITHOUT_TILES and _powers_of_two([entry.size for entry in timed]):
        yield ONLY_POWERS


def _unit_sentences(name: str, sizes: Sequence[float], times: Sequence[Sequence[float]]) -> Iterable[str]:
    """Yield a sentence for each time far outside the range of its neighbours; at an end, only against the trend."""
    middles = [statistics.median(each) for each in times]
    if len(middles) < 3:
        return
    for at, (size, middle) in enumerate(zip(sizes, middles, strict=True)):
        beside = [middles[other] for other in (at - 1, at + 1) if 0 <= other < len(middles)]
        long = middle / max(beside) if at < len(middles) - 1 else 0.0
        short = min(beside) / middle if at > 0 else 0.0
        factor = max(long, short)
        if factor > UNIT_FACTOR:
            way = "longer" if long > short else "shorter"
            yield (
                f"The time of {name} at {wording.format_size(size)} is {units.format_ratio(factor)} {way} than its "
                "neighbours': "
                "was it given in another unit?"
            )


def _powers_of_two(sizes: Sequence[float]) -> bool:
    return len(sizes) >= FEWEST_POWERS and all(math.frexp(size)[0] == 0.5 and size >= 1 for size in sizes)
