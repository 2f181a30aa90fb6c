"""The speedup of two rows of a run with its interval and verdict, and the step time of one row.

Everything follows from the raw values of the rows; nothing here measures, reads a file or draws. A run's first
contender is the baseline, another one the challenger, and rows that were not measured together are refused.
Medians only: no block is ever deleted, outliers are counted instead.
"""

import functools
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from core import units
from core.answer import comparable
from core.answer.run import busy, card_notes, lane_check
from core.answer.statistics import MIN_PAIRS, closeness, median_interval, noise, outliers
from core.answer.verdicts import WordedVerdict, write_verdict
from core.question.experiment import spoken, titled
from core.results.schema import Trial

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

    @property
    def words(self) -> WordedVerdict:
        """The verdict in words."""
        known = self.value is not None and self.low is not None and self.high is not None
        return write_verdict(
            (spoken(self.baseline), spoken(self.challenger)),
            (self.baseline_name, self.challenger_name),
            (self.value or 0.0, self.low or 0.0, self.high or 0.0) if known else None,
            self.reason,
            counted=f"{units.counted(self.pairs, 'pair')} of blocks",
            notes=(self.busy, self.caution),
        )


def label(trial: Trial) -> str:
    """The contender with its device for people: `CPU (AMD EPYC, 2 threads)`, `1 CPU thread (AMD EPYC)`."""
    name = titled(trial.contender)
    said = "CPU thread" in name or not (is_host(trial) and trial.threads)
    threads = "" if said else f", {units.counted(trial.threads, 'thread')}"
    return f"{name} ({trial.device_name}{threads})"


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
        noise=noise(times),
        outliers=outliers(times),
        blocks=len(times),
    )


def speedup(baseline: Trial, challenger: Trial) -> Speedup:
    """The challenger against the baseline, from the pairs of blocks that were measured back to back.

    The logarithm of each pair's ratio, their median, and the interval of that median: what disturbs both blocks of
    a pair cancels, and swapping the two inverts the answer.

    Raises:
        NotComparable: the rows differ in a column of `comparable.RUN`.
    """
    comparable.require_equal(baseline, challenger, comparable.RUN)
    hindrance = obstacle(baseline, challenger)
    pairs = len(set(baseline.block_pair) & set(challenger.block_pair))
    ratios = [] if hindrance else log_ratios(baseline, challenger)
    interval = median_interval(ratios)
    unknown = Speedup(
        baseline=baseline.contender,
        challenger=challenger.contender,
        baseline_name=label(baseline),
        challenger_name=label(challenger),
        verdict="missing",
        value=None,
        low=None,
        high=None,
        pairs=pairs,
        reason=hindrance or _too_few(baseline, pairs),
        caution=" ".join(filter(None, (warn(baseline, challenger) for warn in (lane_check.warning, card_notes.notes)))),
    )
    if interval is None:
        return unknown
    company = busy.of_pair(baseline, challenger)
    if company and (refusal := company.refusal(*interval)):
        return replace(unknown, reason=refusal)
    estimate = statistics.median(ratios)
    value, low, high = math.exp(estimate), math.exp(interval[0]), math.exp(interval[1])
    reason = closeness(estimate, *interval, ratio="speedup")
    verdict = "too_close" if reason else _winner_code(baseline, challenger, challenger_won=estimate > 0)
    mark = company.sentence if company else ""
    return replace(unknown, verdict=verdict, value=value, low=low, high=high, reason=reason, busy=mark)


def verdict_sentence(speedup: Speedup) -> str:
    """Write the verdict with the figures that it rests on."""
    return speedup.words.sentence


def obstacle(baseline: Trial, challenger: Trial) -> str:
    """Why no verdict can be given, in words that go on after a colon; empty if none stands in the way yet."""
    for trial in (baseline, challenger):
        if trial.outcome == "out_of_memory":
            where = spoken(trial.contender)
            return f"the model and its batch did not fit into the memory of {where}, so nothing was timed"
        if trial.lane_failed:
            return f"the lane of {spoken(trial.contender)} failed, so nothing was timed"
        if any(time <= 0 for time in trial.step_s):
            return f"the clock readings of {spoken(trial.contender)} hold a block that took no time"
    return ""


def _too_few(trial: Trial, pairs: int) -> str:
    known = {"timed": "ask for more pairs", "completed": "train more epochs"}
    advice = f"so {known.get(trial.outcome, 'give it a larger time budget')}"
    were = "was" if pairs == 1 else "were"
    return f"{units.counted(pairs, 'pair')} of blocks {were} measured and {MIN_PAIRS} are needed, {advice}"


def timed_pairs(rows: Iterable[Trial], baseline: str, challenger: str) -> list[tuple[Trial, Trial]]:
    """The two rows of each run that has timed both contenders."""
    runs: dict[str, dict[str, Trial]] = {}
    for row in rows:
        if row.block_steps:
            runs.setdefault(row.run_id, {})[row.contender] = row
    return [(run[baseline], run[challenger]) for run in runs.values() if {baseline, challenger} <= run.keys()]


def paired_steps(baseline: Trial, challenger: Trial) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Seconds a step of both in each round in which both have a block, in the order of rounds."""
    base = dict(zip(baseline.block_pair, baseline.step_s, strict=True))
    other = dict(zip(challenger.block_pair, challenger.step_s, strict=True))
    rounds = sorted(base.keys() & other.keys())
    return tuple(base[each] for each in rounds), tuple(other[each] for each in rounds)


def log_ratios(baseline: Trial, challenger: Trial) -> list[float]:
    """ln(baseline time / challenger time) of each round in which both have a block, in the order of rounds."""
    return [math.log(base) - math.log(other) for base, other in zip(*paired_steps(baseline, challenger), strict=True)]


def _winner_code(baseline: Trial, challenger: Trial, *, challenger_won: bool) -> Verdict:
    if is_host(baseline) != is_host(challenger):
        winner = challenger if challenger_won else baseline
        return "cpu_faster" if is_host(winner) else "gpu_faster"
    return "gpu_faster" if challenger_won else "cpu_faster"
