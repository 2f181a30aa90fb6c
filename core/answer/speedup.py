"""The speedup of two rows of a run with its interval and verdict, how certain it is, and the step time of one row.

Everything follows from the raw values of the rows; nothing here measures, reads a file or draws. A run's first
contender is the baseline, another one the challenger, and rows that were not measured together are refused.
Medians only: no block is ever deleted, outliers are counted instead.
"""

import functools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from .. import units
from ..question.defaults import LOOKS
from ..question.devices import capitalize_name, does, inline_device_name
from ..question.experiment import EVERY_EPOCH, Experiment, display_name, inline_name
from ..results.schema import Trial
from . import comparable, interference, lane_check
from .statistics import MIN_PAIRS, TIE, closeness_reason, count_outliers, median_interval, relative_noise

Verdict = Literal["gpu_faster", "cpu_faster", "too_close", "missing"]


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """Seconds a step of one trial, summarised over its timed blocks.

    Attributes:
        low_s: the 95 % interval of the median begins there, and ends at `high_s`; None below `MIN_PAIRS` blocks.
        noise: interquartile range over the median; None below two blocks and where the median is 0.
        outliers: blocks further than `OUTLIER` median absolute deviations from the median; they stay in.
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
        baseline: written form, e.g. `cpu`; `baseline_name` has device name and threads as well, for people.
        challenger: the same of the other, e.g. `cuda:0`.
        verdict: `gpu_faster` or `cpu_faster` by the kind of the winner; between two devices of one sort `gpu_faster`
            stands for the challenger and `cpu_faster` for the baseline. `too_close`, or `missing` if refused.
        value: median ratio over the pairs, with its 95 % interval from `low` to `high`; None exactly if the verdict is
            missing.
        reason: why there is no winner or no verdict, in words; empty where there is a winner.
        caution: what is to be said of lanes that compute other numbers than plain steps, and of cards that were
            hindered, in sentences; mostly empty.
        busy: the mark of a verdict that was measured while other programs shared the machine, a sentence; empty where
            nothing was seen of them, and without a verdict.
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
    busy: str = ""

    @property
    def decided(self) -> bool:
        """Whether the interval says which of the two is faster, by however little."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


def contender_label(trial: Trial) -> str:
    """The contender with its device for people: `CPU (AMD EPYC, 2 threads)`, `1 CPU thread (AMD EPYC)`."""
    name = display_name(trial.contender)
    said = "CPU thread" in name or not (is_host(trial) and trial.threads)
    threads = "" if said else f", {units.format_quantity(trial.threads, 'thread')}"
    return f"{name} ({trial.device_name}{threads})"


def is_host(trial: Trial) -> bool:
    """Whether the training ran on the CPU."""
    return trial.device_kind == "cpu"


def step_time(trial: Trial) -> StepTime:
    """Summarise the timed blocks of one trial; warm-up and start-up are not part of it."""
    return _summarize_times(trial.step_s)


@functools.lru_cache(maxsize=32)
def _summarize_times(times: tuple[float, ...]) -> StepTime:
    """A page asks for it a dozen times for each of its rows, which may have many thousand blocks."""
    interval = median_interval(times)
    return StepTime(
        median_s=statistics.median(times) if times else None,
        low_s=interval[0] if interval else None,
        high_s=interval[1] if interval else None,
        noise=relative_noise(times),
        outliers=count_outliers(times),
        blocks=len(times),
    )


def speedup(baseline: Trial, challenger: Trial) -> Speedup:
    """The challenger against the baseline, from the pairs of blocks that were measured back to back.

    The logarithm of each pair's ratio, their median, and the interval of that median: what disturbs both blocks of
    a pair cancels, and swapping the two inverts the answer.

    Raises:
        NotComparable: the rows differ in a column of `comparable.RUN`.
    """
    comparable.require_equal(baseline, challenger, comparable.RUN_COLUMNS)
    hindrance = verdict_obstacle(baseline, challenger)
    pairs = len(set(baseline.block_pair) & set(challenger.block_pair))
    ratios = [] if hindrance else log_ratios(baseline, challenger)
    interval = median_interval(ratios)
    unknown = Speedup(
        baseline=baseline.contender,
        challenger=challenger.contender,
        baseline_name=contender_label(baseline),
        challenger_name=contender_label(challenger),
        verdict="missing",
        value=None,
        low=None,
        high=None,
        pairs=pairs,
        reason=hindrance or _too_few_reason(baseline, pairs),
        caution=" ".join(
            filter(None, (warn(baseline, challenger) for warn in (lane_check.lane_warning, interference.gpu_notes)))
        ),
    )
    if interval is None:
        return unknown
    company = interference.trial_pair_interference(baseline, challenger)
    if company and (refusal := company.refusal(*interval)):
        return replace(unknown, reason=refusal)
    estimate = statistics.median(ratios)
    value, low, high = math.exp(estimate), math.exp(interval[0]), math.exp(interval[1])
    reason = closeness_reason(estimate, *interval, ratio="speedup")
    verdict = "too_close" if reason else _winner_code(baseline, challenger, challenger_won=estimate > 0)
    mark = company.sentence if company else ""
    return replace(unknown, verdict=verdict, value=value, low=low, high=high, reason=reason, busy=mark)


def verdict_sentence(speedup: Speedup) -> str:
    """The verdict with the figures that it rests on, the mark of a busy machine, and what its lanes call for."""
    figures = None if speedup.value is None else (speedup.value, speedup.low or 0.0, speedup.high or 0.0)
    names, counted = (speedup.challenger_name, speedup.baseline_name), units.format_quantity(speedup.pairs, "pair")
    said = verdict_text(names, figures, speedup.reason, ratio="speedup", counted=f"{counted} of blocks")
    return " ".join(filter(None, (said, speedup.busy, speedup.caution)))


def verdict_text(
    names: tuple[str, str], figures: tuple[float, float, float] | None, reason: str, *, ratio: str, counted: str
) -> str:
    """A verdict in one sentence, with the figures that it rests on.

    Args:
        names: the challenger and the baseline, for people.
        figures: time of the baseline over that of the challenger, and its 95 % interval; None without a verdict.
        reason: why there is no winner or no verdict; empty where there is a winner.
        ratio: what the ratio is called.
        counted: what it rests on: "20 pairs of blocks".
    """
    winner, loser = names
    if figures is None:
        return f"No verdict on {inline_device_name(winner)} against {inline_device_name(loser)}: {reason}."
    value, low, high = figures
    if not reason and value < 1:
        winner, loser, value, low, high = loser, winner, 1 / value, 1 / high, 1 / low
    interval = f"95 % interval {units.format_ratio(low)} to {units.format_ratio(high)} from {counted}"
    if reason:
        close = f"Too close to call between {inline_device_name(winner)} and {inline_device_name(loser)}: {reason}"
        return f"{close} ({ratio} {units.format_ratio(value)}, {interval})."
    trains = capitalize_name(does(winner, "trains", "train"))
    return (
        f"{trains} {units.format_ratio(value)} as fast as {inline_device_name(loser)}, start-up not counted "
        f"({interval})."
    )


def verdict_obstacle(baseline: Trial, challenger: Trial) -> str:
    """Why no verdict can be given, in words that go on after a colon; empty if none stands in the way yet."""
    for trial in (baseline, challenger):
        if trial.outcome == "out_of_memory":
            where = inline_name(trial.contender)
            return f"the model and its batch did not fit into the memory of {where}, so nothing was timed"
        if trial.lane_failed:
            return f"the lane of {inline_name(trial.contender)} failed, so nothing was timed"
        if any(time <= 0 for time in trial.step_s):
            return f"the clock readings of {inline_name(trial.contender)} hold a block that took no time"
    return ""


def _too_few_reason(trial: Trial, pairs: int) -> str:
    known = {"timed": "ask for more pairs", "completed": "train more epochs"}
    advice = f"so {known.get(trial.outcome, 'give it a larger time budget')}"
    were = "was" if pairs == 1 else "were"
    return f"{units.format_quantity(pairs, 'pair')} of blocks {were} measured and {MIN_PAIRS} are needed, {advice}"


def find_timed_pairs(rows: Iterable[Trial], baseline: str, challenger: str) -> list[tuple[Trial, Trial]]:
    """The two rows of each run that has timed both contenders."""
    runs: dict[str, dict[str, Trial]] = {}
    for row in rows:
        if row.block_steps:
            runs.setdefault(row.run_id, {})[row.contender] = row
    return [(run[baseline], run[challenger]) for run in runs.values() if {baseline, challenger} <= run.keys()]


def pair_steps(baseline: Trial, challenger: Trial) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Seconds a step of both in each round in which both have a block, in the order of rounds."""
    base = dict(zip(baseline.block_pair, baseline.step_s, strict=True))
    other = dict(zip(challenger.block_pair, challenger.step_s, strict=True))
    rounds = sorted(base.keys() & other.keys())
    return tuple(base[each] for each in rounds), tuple(other[each] for each in rounds)


def log_ratios(baseline: Trial, challenger: Trial) -> list[float]:
    """ln(baseline time / challenger time) of each round in which both have a block, in the order of rounds."""
    return [math.log(base) - math.log(other) for base, other in zip(*pair_steps(baseline, challenger), strict=True)]


def _winner_code(baseline: Trial, challenger: Trial, *, challenger_won: bool) -> Verdict:
    if is_host(baseline) != is_host(challenger):
        winner = challenger if challenger_won else baseline
        return "cpu_faster" if is_host(winner) else "gpu_faster"
    return "gpu_faster" if challenger_won else "cpu_faster"


LEVEL = 0.002
"""What the interval by which a run ends early leaves out, both ends together."""

LONE_CONTENDER_BLOCKS = 20
"""Blocks of a contender that nobody is compared with: they give its time to about 4 % where they scatter by 5 %."""


def is_certain(trials: Sequence[Trial]) -> bool:
    """Whether more pairs would not change who of a run's contenders is named the faster one, against its first.

    Who was not timed, and never will be, is left out.
    """
    timed = [trial for trial in trials if trial.step_s]
    if not trials or not trials[0].step_s:
        return True
    if len(timed) == 1:
        return len(trials) > 1 or len(timed[0].step_s) >= LONE_CONTENDER_BLOCKS
    return all(_is_pair_certain(timed[0], other) for other in timed[1:])


def answers_experiment(experiment: Experiment, trials: Sequence[Trial]) -> bool:
    """Whether a stored run, one row a contender, is served as the answer to its question.

    One without a verdict because this machine was busy never is. One that was timed only answers who did not ask for
    the whole training if it may have ended by itself.
    """
    if any(_is_too_busy(trials[0], other) for other in trials[1:]):
        return False
    if experiment.whole or experiment.pairs != EVERY_EPOCH or any(trial.outcome != "timed" for trial in trials):
        return True
    return is_certain(trials) or min(len(trial.block_pair) for trial in trials) >= LOOKS[-1]


def is_beyond_doubt(ratios: Sequence[float]) -> bool:
    """Whether so many pairs leave no doubt who is faster, by enough to matter as is told, or that nobody is.

    Args:
        ratios: logarithms of the baseline's time over the challenger's, of every pair so far.
    """
    wide, told = median_interval(ratios, LEVEL / 2), median_interval(ratios)
    if wide is None or told is None:
        return False
    (low, high), tie = wide, math.log(TIE)
    return (low > 0 and told[0] > tie) or (high < 0 and told[1] < -tie) or (-tie <= low and high <= tie)


def _is_pair_certain(baseline: Trial, challenger: Trial) -> bool:
    known = speedup(baseline, challenger).low is not None  # it is not while the machine is too busy
    return known and is_beyond_doubt(log_ratios(baseline, challenger))


def _is_too_busy(baseline: Trial, challenger: Trial) -> bool:
    company = interference.trial_pair_interference(baseline, challenger)
    if company is None or min(*baseline.step_s, *challenger.step_s, math.inf) <= 0:
        return False
    interval = median_interval(log_ratios(baseline, challenger))
    return interval is not None and bool(company.refusal(*interval))
