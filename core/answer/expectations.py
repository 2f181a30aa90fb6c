"""Expectations before a measurement: speedup at an unmeasured size, time saved, duration, and the first question.

The curve of `core.answer.curve_estimate` gives the speedup between measured sizes; its interval includes the noise of a
reading and the shift between rounds. Nothing is expected beyond the measured sizes. Expectations are never stored.
"""

import contextlib
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import units
from ..errors import InvalidValue
from ..question import models
from ..question.experiment import Contender, Experiment, Point
from ..question.lanes import inline_device_name
from ..question.models import operations
from ..question.models.families import field_of_answer_axis
from ..question.sweep import Sweep
from ..results.schema import Trial
from . import wording
from .crossover import log_speedups
from .curve_estimate import SpeedupCurve, posterior_variance
from .judgement import Crossover, Evidence
from .search import USUAL_SEARCH_SIZES
from .speedup import speedup

LEAST_SIZES = 3
"""Minimum number of measured sizes for an expectation: two sizes do not show how the curve bends."""

MOST_SPREAD = 10.0
"""Ratio of the ends of an interval above which the interval is not useful."""

WIDE_INTERVAL = 1.2
"""Ratio of the ends of an interval above which a third digit has no meaning."""

REACH = 1.96
"""Half-width of the 95 % interval of a normal distribution, in standard deviations."""


@dataclass(frozen=True, kw_only=True)
class ExpectedSpeedup:
    """The expected speedup of a measurement at a size.

    Attributes:
        speedup: baseline time over challenger time; with 95 % probability a measurement is between `low` and `high`.
    """

    size: float
    speedup: float
    low: float
    high: float
    sizes: int

    @property
    def figures(self) -> str:
        """The speedup and its interval, with two or three digits: "about 1.4× (1.2× to 1.7×)", "about 1.04× (…)"."""
        digits = 2 if self.high > WIDE_INTERVAL * self.low else 3
        about, low, high = (
            f"{units.format_significant(ratio, digits)}×" for ratio in (self.speedup, self.low, self.high)
        )
        return f"about {about} ({low} to {high})"

    @property
    def source(self) -> str:
        """Origin of the expectation: "expected from 12 measured sizes"."""
        return f"expected from {units.format_quantity(self.sizes, 'measured size')}"


def expect_speedup(
    evidence: Sequence[Evidence], size: float, *, exclude: float | None = None
) -> ExpectedSpeedup | None:
    """Predict the speedup at a size; None beyond the measured sizes, or if they determine it too poorly.

    Args:
        evidence: timings, in any order.
        size: size on the axis.
        exclude: a size whose readings are left out, so that they can be compared with the prediction.
    """
    timed = sorted((one for one in evidence if not one.obstacle and one.size != exclude), key=lambda one: one.size)
    if len(timed) < LEAST_SIZES or not timed[0].size <= size <= timed[-1].size:
        return None
    readings = log_speedups(timed)
    if readings.noise.sd is None:
        return None
    fitted = SpeedupCurve(readings, float(readings.sizes[0]), float(readings.sizes[-1]))
    at = fitted.evaluate(np.array([math.log2(size)]))
    own = statistics.median((readings.spread * posterior_variance(readings.noise)).tolist())
    reach = REACH * math.sqrt(float(at.sd[0]) ** 2 + own + fitted.scatter**2)
    if 2 * reach > math.log(MOST_SPREAD):
        return None
    middle = float(at.mean[0])
    return ExpectedSpeedup(
        size=size,
        speedup=math.exp(middle),
        low=math.exp(middle - reach),
        high=math.exp(middle + reach),
        sizes=len(timed),
    )


def compare_with_measured(expectation: ExpectedSpeedup, measured: float) -> str:
    """Return one sentence that compares the prediction with the later measurement."""
    was = f"From {units.format_quantity(expectation.sizes, 'other measured size')} {expectation.figures} was expected"
    if expectation.low <= measured <= expectation.high:
        return f"{was}; {units.format_ratio(measured)} was measured, as expected."
    side = "less" if measured < expectation.low else "more"
    return f"{was}; {units.format_ratio(measured)} was measured, {side} than expected."


UNKNOWN_AXIS = "size"
"""Axis of a custom script, on which the meaning of a size is unknown."""

SAVING_FACTOR = 2
"""Multiple of the crossing's size at which the saving is reported, where one device is clearly ahead."""


def meaning_sentences(training: Point, answer: Crossover, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Describe the meaning of a crossover for a training of any size; empty unless there is exactly one."""
    if answer.outcome != "crossing" or answer.estimate is None or answer.axis == UNKNOWN_AXIS:
        return ()
    begin = math.ceil(answer.estimate) if wording.is_whole_axis(answer.axis) else answer.estimate
    return (*_parameters(training, answer.axis, begin), *_saving(training, answer, evidence, SAVING_FACTOR * begin))


def _parameters(training: Point, axis: str, size: float) -> Iterable[str]:
    if axis not in models.AXES:
        return
    with contextlib.suppress(InvalidValue):
        count = _point_at_size(training, axis, size).network.parameters
        where = wording.place_on_axis(axis, wording.format_size(size))
        yield f"{where[:1].upper()}{where[1:]} gives {units.format_count(count)} parameters."


def _saving(training: Point, answer: Crossover, evidence: Sequence[Evidence], size: float) -> Iterable[str]:
    timed = sorted((one for one in answer.sizes if one.speedup and one.baseline_s), key=lambda one: one.size)
    where = wording.place_on_axis(answer.axis, wording.format_size(float(f"{size:.3g}") if size >= 1_000 else size))
    if size > timed[-1].size:
        yield (
            f"Twice that, {where}, lies beyond the measured sizes, which end at {wording.format_size(timed[-1].size)}: "
            "the time saved there is unknown."
        )
        return
    told, steps = expect_speedup(evidence, size), _epoch_steps(training, answer.axis, size)
    if told is None or steps is None:
        return
    sizes_log, steps_log = np.log([one.size for one in timed]), np.log([one.baseline_s or 0.0 for one in timed])
    step_s = math.exp(float(np.interp(math.log(size), sizes_log, steps_log)))
    baseline_s, saved = step_s * steps, [1 - 1 / ratio for ratio in (told.low, told.speedup, told.high)]
    winner, loser, whole_s = answer.challenger, answer.baseline, baseline_s
    if not answer.crossings[0].challenger_above:
        winner, loser, whole_s = answer.baseline, answer.challenger, baseline_s / told.speedup
        saved = [1 - ratio for ratio in (told.high, told.speedup, told.low)]
    low, middle, high = (whole_s * share for share in saved)
    each = "a fit" if training.is_fit else "an epoch"
    slower, faster = (inline_device_name(wording.short_device(device)) for device in (loser, winner))
    yield (
        f"At twice that, {where}, {each} takes {_rough_duration(whole_s)} on {slower} and should take about "
        f"{_rough_duration(max(middle, 0.0))} less on {faster} ({_saving_range(low, high)}), {told.source}."
    )


def _saving_range(low: float, high: float) -> str:
    if low >= 0:
        return f"{_rough_duration(low)} to {_rough_duration(high)}"
    return f"between {_rough_duration(-low)} lost and {_rough_duration(max(high, 0.0))} saved"


def _rough_duration(seconds: float) -> str:
    """Format a predicted time, rounded according to its interval."""
    return units.format_duration(seconds, digits=2)


def _epoch_steps(training: Point, axis: str, size: float) -> int | None:
    """Return the number of steps per epoch at a size; None if no training has this size."""
    if axis == "parameters":
        return training.steps_per_epoch
    try:
        return _point_at_size(training, field_of_answer_axis(axis), size).steps_per_epoch
    except InvalidValue:
        return None


def _point_at_size(training: Point, axis: str, size: float) -> Point:
    sized: dict[str, Any] = {axis: int(size)}
    return replace(training, **sized)


BLOCK_S, BLOCK_STEPS = 0.13, 6
"""Minimum seconds and steps of a block with its lead-in, as in `core.measure.timer`, which pages must not import."""

BEGIN_S = 0.8
"""Seconds before the first block of a contender, for building the network, warm-up and counting."""

COMPILING_S = 25.0
"""Seconds before the first block of a compiled variant."""

ROUND_OVERHEAD = 1.5
"""Ratio of the seconds of a visit to the seconds of its blocks."""

SPREAD = (0.7, 1.6)
"""Range of the duration of a point, relative to its estimate."""

LANES_SPREAD = (0.5, 3.5)
"""Range of the duration of variants, relative to its estimate: compiling takes several times as long on a small busy
machine.
"""

RATES = (2e9, 4e10)
"""Minimum and maximum operations per second of an unknown machine."""


def estimate_sweep_s(sweep: Sweep, rates: Sequence[float] = ()) -> tuple[float, float]:
    """Estimate the minimum and maximum seconds of a sweep, within its budget.

    Args:
        sweep: the sweep to run.
        rates: operations per second at which this machine trained earlier.
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
    """Estimate the minimum and maximum seconds of measuring variants next to the default one, including compilation."""
    slowest, fastest = (min(rates), max(rates)) if rates else RATES
    begin_s = sum(map(_begin_s, experiment.contenders))
    flops = operations.work(experiment.point)
    visits = ROUND_OVERHEAD * len(experiment.contenders) * experiment.pairs
    low, high = (
        share * (begin_s + min(visits * max(BLOCK_S, BLOCK_STEPS * flops / rate), experiment.budget_s))
        for share, rate in zip(LANES_SPREAD, (fastest, slowest), strict=True)
    )
    return low, high


def _point_s(sweep: Sweep, point: Point, rate: float) -> float:
    step_s, steps = operations.work(point) / rate, 2 if point.is_fit else BLOCK_STEPS
    pair_s = ROUND_OVERHEAD * len(sweep.contenders) * max(BLOCK_S, steps * step_s)
    begin_s = sum(_begin_s(contender) for contender in sweep.contenders)
    return begin_s + min(sweep.pairs * pair_s, sweep.point_budget_s)


def _begin_s(contender: Contender) -> float:
    return COMPILING_S if contender.lane.execution == "compiled" else BEGIN_S


FIRST_SIZES = (1_024, 2_048, 4_096)
"""Hidden sizes of the first question, the usual one first. In the rows of the gallery, all threads are faster than one
by more than `CLEAR_SPEEDUP` from 512 neurons on. A larger size is used if rows of this machine contradict this.
"""

CLEAR_SPEEDUP = 1.2
"""Minimum lower end of the speedup's interval for a clear first answer."""


def first_training(
    contenders: Sequence[Contender], answers: Callable[[Sequence[Experiment]], Mapping[str, Sequence[Trial]]]
) -> Point:
    """Return the first training for these contenders, with a size at which the threads of a CPU matter.

    Args:
        contenders: the devices to compare, as in `core.question.presets`.
        answers: function that returns the stored runs of this machine by experiment id.
    """
    if len(contenders) < 2 or not all(contender.on_host for contender in contenders):
        return Point()
    pair = tuple(contenders)
    asked = [Experiment(point=Point(hidden_size=size), contenders=pair, whole=False) for size in FIRST_SIZES]
    known = answers(asked)
    left = [experiment.point for experiment in asked if _is_clear(known.get(experiment.id, ()))]
    return left[0] if left else asked[-1].point


def _is_clear(rows: Sequence[Trial]) -> bool:
    """Return whether more threads were clearly faster; true if there are no rows."""
    if not rows:
        return True
    low = speedup(rows[0], rows[-1]).low
    return low is not None and low >= CLEAR_SPEEDUP
