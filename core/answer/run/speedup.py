"""What a run says: step times, the speedup with its interval, its verdict, epoch times and the break-even.

Everything follows from the raw values of the rows; nothing here measures, reads a file or draws. A run's first
contender is the baseline, another one the challenger, and rows that were not measured together are refused.
Medians only: no block is ever deleted, outliers are counted instead.
"""

import dataclasses
import functools
import itertools
import math
import statistics
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from core import units
from core.answer.lesson import coins
from core.answer.run import lane_check
from core.errors import NotComparable
from core.question.experiment import Point
from core.results.schema import Trial

Verdict = Literal["gpu_faster", "cpu_faster", "too_close", "missing"]

MIN_PAIRS = 6
"""Fewest values from which order statistics give a 95 % interval of the median: from 5 they reach 93.75 % at most."""

TAIL = 1 / 40
"""What an interval of 95 % leaves out at either end."""

TIE = 1.10
"""Ratios between 1/TIE and TIE are too close to matter; PyTorch's own benchmark calls 10 % a fluctuation."""

MAX_SPREAD = 1.5
"""Highest 90th percentile of block times over their median; above it something else used the machine."""

SPREAD_BLOCKS = 10
"""Fewest blocks that have a 90th percentile of their own; below, one slow block would pass for a busy machine."""

OUTLIER = 14.83
"""Distance from the median, in median absolute deviations, of an outlier: ten standard deviations (hyperfine)."""

NOTABLE = 0.005
"""Smallest relative difference that still shows when percentages are rounded to whole numbers."""

COMPARABLE = (
    "run_id",
    "protocol_version",
    "dataset_hash",
    "drained",
    *(entry.name for entry in dataclasses.fields(Point)),
)
"""Columns in which two rows must agree before one is divided by the other; their lanes may differ, as devices may."""


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """Seconds a step of one trial, summarised over its timed blocks.

    Attributes:
        median_s: median; None if no block was timed.
        low_s: lower end of the 95 % interval of the median; None below `MIN_PAIRS` blocks.
        high_s: upper end.
        noise: interquartile range over the median; None below two blocks and where the median is 0.
        outliers: blocks further than `OUTLIER` median absolute deviations from the median; they stay in.
        blocks: number of timed blocks.
    """

    median_s: float | None
    low_s: float | None
    high_s: float | None
    noise: float | None
    outliers: int
    blocks: int


@dataclass(frozen=True, kw_only=True)
class Speedup:
    """Baseline time over challenger time per step, start-up apart; above 1 the challenger is faster.

    Attributes:
        baseline: written form of the baseline, e.g. `cpu`.
        challenger: written form of the challenger, e.g. `cuda:0`.
        baseline_name: the same with device name and threads, for people.
        challenger_name: the same with device name and threads, for people.
        verdict: `gpu_faster` or `cpu_faster` by the kind of the winner; between two devices of one sort `gpu_faster`
            stands for the challenger and `cpu_faster` for the baseline. `too_close`, or `missing` if refused.
        value: median ratio over the pairs; None exactly if the verdict is missing.
        low: lower end of its 95 % interval.
        high: upper end of its 95 % interval.
        pairs: pairs of blocks that were measured.
        reason: why there is no winner or no verdict, in words; empty where there is a winner.
        caution: what is to be said of lanes that compute other numbers than plain steps, in sentences; mostly empty.
    """

    baseline: str
    challenger: str
    baseline_name: str
    challenger_name: str
    verdict: Verdict
    value: float | None
    low: float | None
    high: float | None
    pairs: int
    reason: str
    caution: str = ""

    @property
    def decided(self) -> bool:
        """Whether the interval says which of the two is faster, by however little."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


@dataclass(frozen=True, kw_only=True)
class BreakEven:
    """When the challenger's faster steps have paid back its longer start-up.

    Attributes:
        epochs: epochs of training until then, 0 if at once; None if never or not known.
        sentence: the same in words.
    """

    epochs: float | None
    sentence: str


def label(trial: Trial) -> str:
    """The contender with its device and lane for people: `cpu (AMD EPYC, 2 threads)`, `cuda:0+bf16 (H200, bf16)`."""
    threads = f", {_counted(trial.threads, 'thread')}" if is_host(trial) and trial.threads else ""
    lane = f", {title}" if (title := lane_check.title(trial)) else ""
    return f"{trial.contender} ({trial.device_name}{threads}{lane})"


def is_host(trial: Trial) -> bool:
    """Whether the training ran on the CPU."""
    return trial.device_kind == "cpu"


def step_time(trial: Trial) -> StepTime:
    """Summarise the timed blocks of one trial; warm-up and start-up are not part of it."""
    return _summarised(trial.step_s)


@functools.lru_cache(maxsize=32)
def _summarised(times: tuple[float, ...]) -> StepTime:
    """A page asks for it a dozen times for each of its rows, which may have many thousand blocks."""
    interval = median_interval(times)
    return StepTime(
        median_s=statistics.median(times) if times else None,
        low_s=interval[0] if interval else None,
        high_s=interval[1] if interval else None,
        noise=_noise(times),
        outliers=_outliers(times),
        blocks=len(times),
    )


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of the median by order statistics, None below `MIN_PAIRS` values.

    It covers at least 95 % whatever the distribution, since each value is below the true median with probability
    1/2 (Hoefler & Belli, SC'15, doi 10.1145/2807591.2807644). An interval from the median absolute deviation is a
    little narrower but covers 91–94 % up to 20 values of one point, simulated. A coarse clock can make the middle
    values coincide; the interval is then the range of all, and is a point only if every value is alike.
    """
    if len(values) < MIN_PAIRS:
        return None
    ordered, rank = sorted(values), _rank(len(values))
    low, high = ordered[rank], ordered[-1 - rank]
    return (low, high) if low < high else (ordered[0], ordered[-1])


def speedup(baseline: Trial, challenger: Trial) -> Speedup:
    """The challenger against the baseline, from the pairs of blocks that were measured back to back.

    The logarithm of each pair's ratio, their median, and the interval of that median: what disturbs both blocks of
    a pair cancels, and swapping the two inverts the answer.

    Raises:
        NotComparable: the rows differ in a column of `COMPARABLE`.
    """
    require_equal(baseline, challenger, COMPARABLE)
    hindrance = obstacle(baseline, challenger)
    pairs = len(set(baseline.block_pair) & set(challenger.block_pair))
    ratios = [] if hindrance else _log_ratios(baseline, challenger)
    interval = median_interval(ratios)
    if interval is None:
        return _speedup(
            baseline, challenger, verdict="missing", pairs=pairs, reason=hindrance or _too_few(baseline, pairs)
        )
    estimate = statistics.median(ratios)
    value, low, high = math.exp(estimate), math.exp(interval[0]), math.exp(interval[1])
    reason = _closeness(estimate, *interval)
    verdict = "too_close" if reason else _winner_code(baseline, challenger, challenger_won=estimate > 0)
    return _speedup(baseline, challenger, verdict=verdict, value=value, low=low, high=high, pairs=pairs, reason=reason)


def verdict_sentence(speedup: Speedup) -> str:
    """The verdict in one sentence, with the figures that it rests on, and what has to be said of its lanes."""
    return " ".join(filter(None, (_verdict(speedup), speedup.caution)))


def _verdict(speedup: Speedup) -> str:
    value, low, high = speedup.value, speedup.low, speedup.high
    if value is None or low is None or high is None:
        return f"No verdict on {speedup.challenger_name} against {speedup.baseline_name}: {speedup.reason}."
    if speedup.verdict == "too_close":
        return (
            f"Too close to call between {speedup.challenger_name} and {speedup.baseline_name}: "
            f"{speedup.reason} (speedup {units.ratio(value)}, {_interval(low, high, speedup.pairs)})."
        )
    winner, loser = speedup.challenger_name, speedup.baseline_name
    if value < 1:
        winner, loser, value, low, high = loser, winner, 1 / value, 1 / high, 1 / low
    return (
        f"{winner} trains {units.ratio(value)} as fast as {loser}, start-up not counted "
        f"({_interval(low, high, speedup.pairs)})."
    )


def epoch_times(trial: Trial) -> tuple[float, ...]:
    """Seconds of each epoch that was asked for and over by the last timed block, reconstructed from the blocks.

    A step in a timed block costs that block's time per step, a lead-in step as much as its block's, and any other
    step (the first, warm-up) the median.
    """
    if not trial.block_first_step:
        return ()
    timed = trial.block_first_step[-1] + trial.block_steps[-1]
    done = min(trial.epochs, timed // trial.steps_per_epoch)
    ends = seconds_at(trial, [epoch * trial.steps_per_epoch for epoch in range(done + 1)])
    return tuple(after - before for before, after in itertools.pairwise(ends))


def seconds_at(trial: Trial, steps: Iterable[int]) -> tuple[float, ...]:
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


def epoch_check(trial: Trial) -> str:
    """How one epoch in one piece compares with its steps: the check that blocks stand for real training."""
    median_s = step_time(trial).median_s
    if trial.epoch_check_s is None or median_s is None:
        return f"No whole epoch was timed in one piece on {trial.contender}."
    excess = trial.epoch_check_s / (trial.steps_per_epoch * median_s) - 1
    if abs(excess) < NOTABLE:
        return f"On {trial.contender} a whole epoch in one piece took as long as its steps, to within 0.5 %."
    direction = "longer" if excess > 0 else "less"
    return (
        f"On {trial.contender} a whole epoch in one piece took {units.share(abs(excess))} {direction} than its steps."
    )


def startup_s(trial: Trial) -> float | None:
    """Seconds of start-up in a fresh process: device, model, resident data, compiling and first step.

    Resident data that were never copied ahead (other data paths) cost nothing here, nor does compiling in an eager
    lane. None if not measured.
    """
    needed = (trial.startup_device_s, trial.startup_build_s, trial.startup_first_step_s)
    known = [part for part in needed if part is not None]
    paid_once = (trial.startup_transfer_s or 0.0) + (trial.startup_compile_s or 0.0)
    return sum(known) + paid_once if len(known) == len(needed) else None


def break_even(baseline: Trial, challenger: Trial) -> BreakEven:
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
        return BreakEven(epochs=None, sentence=f"The break-even is not known: {outcome.reason}.")
    # Both medians and the paired ratio go in, so that swapping the two changes nothing but the sign.
    middle_s = math.sqrt(statistics.median(baseline.step_s) * statistics.median(challenger.step_s))
    saved_s = middle_s * (math.sqrt(outcome.value) - 1 / math.sqrt(outcome.value)) * baseline.steps_per_epoch
    return _pay_back(baseline, challenger, start_base_s, start_s, saved_s)


def require_equal(a: Trial, b: Trial, columns: Iterable[str]) -> None:
    """Refuse two rows that differ in one of `columns`.

    Raises:
        NotComparable: names the first column that differs, and both values.
    """
    for column in columns:
        wanted, given = getattr(a, column), getattr(b, column)
        if wanted != given:
            raise NotComparable(
                f"{b.contender} cannot be set against {a.contender}: its {column} is {given!r:.80}, not {wanted!r:.80}."
            )


@functools.cache
def _rank(count: int) -> int:
    """Values outside each end of the interval of the median of `count`: as many as leave 2.5 % in each tail."""
    return coins.most_within(TAIL, count)


def _noise(times: Sequence[float]) -> float | None:
    if len(times) < 2:
        return None
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    return (high - low) / median if median else None


def _outliers(times: Sequence[float]) -> int:
    if not times:
        return 0
    median = statistics.median(times)
    distances = [abs(time - median) for time in times]
    deviation = statistics.median(distances)
    return sum(distance > OUTLIER * deviation for distance in distances)


def obstacle(baseline: Trial, challenger: Trial) -> str:
    """Why no verdict can be given, in words that go on after a colon; empty if none stands in the way yet."""
    for trial in (baseline, challenger):
        times = trial.step_s
        if trial.outcome == "out_of_memory":
            return f"the model and its batch did not fit into the memory of {trial.contender}, so nothing was timed"
        if any(time <= 0 for time in times):
            return f"the clock readings of {trial.contender} hold a block that took no time"
        if len(times) >= SPREAD_BLOCKS and (slowest := spread(times)) > MAX_SPREAD:
            return (
                f"this machine was too busy: one block in ten of {trial.contender} took at least "
                f"{units.ratio(slowest)} its median ({units.ratio(MAX_SPREAD)} is accepted), so close other programs "
                "and measure again"
            )
    return ""


def spread(times: Sequence[float]) -> float:
    """90th percentile over the median; stolen processor time does not reveal a busy machine, this does."""
    return statistics.quantiles(times, n=10, method="inclusive")[8] / statistics.median(times)


def _too_few(trial: Trial, pairs: int) -> str:
    advice = "so ask for more pairs" if trial.outcome == "timed" else "so give it a larger time budget"
    return (
        f"{_counted(pairs, 'pair')} of blocks {'was' if pairs == 1 else 'were'} measured and {MIN_PAIRS} are needed, "
        f"{advice}"
    )


def paired_steps(baseline: Trial, challenger: Trial) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Seconds a step of both in each round in which both have a block, in the order of rounds."""
    base = dict(zip(baseline.block_pair, baseline.step_s, strict=True))
    other = dict(zip(challenger.block_pair, challenger.step_s, strict=True))
    rounds = sorted(base.keys() & other.keys())
    return tuple(base[each] for each in rounds), tuple(other[each] for each in rounds)


def _log_ratios(baseline: Trial, challenger: Trial) -> list[float]:
    """ln(baseline time / challenger time) of each round in which both have a block, in the order of rounds."""
    return [math.log(base) - math.log(other) for base, other in zip(*paired_steps(baseline, challenger), strict=True)]


def _closeness(estimate: float, low: float, high: float) -> str:
    """Why nobody wins, from logarithms of ratios; empty if somebody does."""
    if low <= 0 <= high:
        return "either could be faster, the interval of the speedup contains 1"
    if abs(estimate) <= math.log(TIE):
        return f"the difference is within {units.share(TIE - 1)}, too small to matter"
    return ""


def _winner_code(baseline: Trial, challenger: Trial, *, challenger_won: bool) -> Verdict:
    if is_host(baseline) != is_host(challenger):
        winner = challenger if challenger_won else baseline
        return "cpu_faster" if is_host(winner) else "gpu_faster"
    return "gpu_faster" if challenger_won else "cpu_faster"


def _speedup(
    baseline: Trial,
    challenger: Trial,
    *,
    verdict: Verdict,
    pairs: int,
    reason: str,
    value: float | None = None,
    low: float | None = None,
    high: float | None = None,
) -> Speedup:
    return Speedup(
        baseline=baseline.contender,
        challenger=challenger.contender,
        baseline_name=label(baseline),
        challenger_name=label(challenger),
        verdict=verdict,
        value=value,
        low=low,
        high=high,
        pairs=pairs,
        reason=reason,
        caution=lane_check.warning(baseline, challenger),
    )


def _interval(low: float, high: float, pairs: int) -> str:
    return f"95 % interval {units.ratio(low)} to {units.ratio(high)} from {_counted(pairs, 'pair')} of blocks"


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
    name, other, extra_s = challenger.contender, baseline.contender, start_s - start_base_s
    start = f"start-up {units.duration(start_s)} against {units.duration(start_base_s)}"
    if saved_s > 0 and extra_s <= 0:
        sentence = f"{name} pays off at once: it starts no later than {other} ({start}) and trains faster."
        return BreakEven(epochs=0.0, sentence=sentence)
    if saved_s > 0:
        epochs = extra_s / saved_s
        beyond = f"; this training has {_counted(baseline.epochs, 'epoch')}" if epochs > baseline.epochs else ""
        sentence = (
            f"{name} has paid back its longer start-up ({start}) after {_epochs(epochs)}, "
            f"saving {units.duration(saved_s)} in each{beyond}."
        )
        return BreakEven(epochs=epochs, sentence=sentence)
    if extra_s >= 0:
        sentence = f"{name} never pays off: it starts no sooner than {other} ({start}) and trains more slowly."
        return BreakEven(epochs=None, sentence=sentence)
    sentence = (
        f"{name} starts sooner than {other} ({start}) but trains more slowly: "
        f"it is ahead for {_epochs(extra_s / saved_s)} and never again."
    )
    return BreakEven(epochs=None, sentence=sentence)


def _epochs(number: float) -> str:
    return "less than one epoch" if number < 1 else f"{units.significant(number)} epochs"


def _counted(number: int, noun: str) -> str:
    return f"{units.count(number)} {noun}" if number == 1 else f"{units.count(number)} {noun}s"
