"""How long a sweep will take, before anything of it is measured: an estimate with a range, never a promise.

From what a point takes besides its blocks, from how many sizes a search measures, both as measured sweeps of small
networks took them (docs/crossover.md), and from how fast this machine was at other trainings.
"""

from collections.abc import Sequence

from core.answer.study.search import USUAL_SEARCH_SIZES
from core.question.experiment import Contender, Experiment, Point
from core.question.models import cost
from core.question.sweep import Sweep

BLOCK_S, BLOCK_STEPS = 0.13, 6
"""Seconds and steps of a block with its lead-in, at least (`core.measure.readings.timer`, which no page may import)."""

BEGIN_S = 0.8
"""Seconds until a contender of a point has its first block: its network is built, warmed up and counted."""

COMPILING_S = 25.0
"""The same of a compiled lane."""

ROUND_OVERHEAD = 1.5
"""Seconds of a visit over those of its blocks."""

SPREAD = (0.7, 1.6)
"""The range of the estimate of a point, as a share of it."""

LANES_SPREAD = (0.5, 3.5)
"""The same of lanes, whose compiling takes several times as long on a small busy machine."""

RATES = (2e9, 4e10)
"""Operations a second, at least and at most, of a machine that nothing is known of."""


def estimate_sweep_s(sweep: Sweep, rates: Sequence[float] = ()) -> tuple[float, float]:
    """The least and the most seconds that a sweep is expected to take, within its budget.

    Args:
        sweep: what is asked.
        rates: operations a second at which this machine trained before.
    """
    slowest, fastest = (min(rates), max(rates)) if rates else RATES
    points = sweep.points
    ends = [[_point_s(sweep, point, rate) for point in points] for rate in (fastest, slowest)]
    low, high = (share * sum(each) / len(points) for share, each in zip(SPREAD, ends, strict=True))
    least, most = (
        (min(count, len(points)) for count in USUAL_SEARCH_SIZES) if sweep.adaptive else (len(points), len(points))
    )
    return min(least * low, sweep.budget_s), min(most * high, sweep.budget_s)


def estimate_lanes_s(experiment: Experiment, rates: Sequence[float] = ()) -> tuple[float, float]:
    """The least and the most seconds that lanes beside plain steps are expected to take, their compiling included."""
    slowest, fastest = (min(rates), max(rates)) if rates else RATES
    begin_s = sum(map(_begin_s, experiment.contenders))
    flops = cost.work(experiment.point)
    visits = ROUND_OVERHEAD * len(experiment.contenders) * experiment.pairs
    low, high = (
        share * (begin_s + min(visits * max(BLOCK_S, BLOCK_STEPS * flops / rate), experiment.budget_s))
        for share, rate in zip(LANES_SPREAD, (fastest, slowest), strict=True)
    )
    return low, high


def _point_s(sweep: Sweep, point: Point, rate: float) -> float:
    step_s, steps = cost.work(point) / rate, 2 if point.is_fit else BLOCK_STEPS
    pair_s = ROUND_OVERHEAD * len(sweep.contenders) * max(BLOCK_S, steps * step_s)
    begin_s = sum(_begin_s(contender) for contender in sweep.contenders)
    return begin_s + min(sweep.pairs * pair_s, sweep.point_budget_s)


def _begin_s(contender: Contender) -> float:
    return COMPILING_S if contender.lane.execution == "compiled" else BEGIN_S
