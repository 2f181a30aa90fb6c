"""Whether a run says what it was measured for: whether it may end, and whether it answers when it is asked again.

Who looks again and again until an interval excludes 1 finds a winner where there is none. So a run may end early by an
interval that is wider than the one that is told: it leaves out `LEVEL` in all, and there are ten looks, so that all of
them together name a wrong side in at most 2 of 100 runs, whatever the distribution of the pairs. It has to exclude 1
while the one that is told lies beyond what is too close to matter, or to lie within that altogether. Simulated by
`tests/benchmarks/early_end.py`.
"""

import math
from collections.abc import Sequence

from core.answer.run import busy
from core.answer.run.speedup import log_ratios, speedup
from core.answer.statistics import TIE, median_interval
from core.question.experiment import EVERY_EPOCH, Experiment
from core.question.usual import LOOKS
from core.results.schema import Trial

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
    company = busy.trial_pair_interference(baseline, challenger)
    if company is None or min(*baseline.step_s, *challenger.step_s, math.inf) <= 0:
        return False
    interval = median_interval(log_ratios(baseline, challenger))
    return interval is not None and bool(company.refusal(*interval))
