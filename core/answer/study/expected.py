"""What to expect at a size that was not measured, from the sizes of the same training that were.

The curve of `core.answer.study.estimate` gives the speedup between measured sizes. What a measurement there would
read differs from it by its own noise and by what a visit of the machine does, so both are in the interval. Beyond the
measured sizes nothing is expected. An expectation is said, never stored, and never called measured.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core import units
from core.answer.study.crossover import log_speedups
from core.answer.study.estimate.curve import SpeedupCurve
from core.answer.study.estimate.noise import posterior_variance
from core.answer.study.result import Evidence

LEAST_SIZES = 3
"""Measured sizes below which nothing is expected between them: two say nothing of how the curve bends."""

MOST_SPREAD = 10.0
"""Ratio of the ends of an interval from which it tells nothing that one would want to know."""

WIDE_INTERVAL = 1.2
"""Ratio of the ends of an interval from which a third digit tells nothing."""

REACH = 1.96
"""Standard deviations of a normal distribution that hold 95 %."""


@dataclass(frozen=True, kw_only=True)
class ExpectedSpeedup:
    """The speedup that a measurement at a size is expected to read.

    Attributes:
        speedup: baseline time over challenger time; a measurement would read it from `low` to `high` with 95 %.
    """

    size: float
    speedup: float
    low: float
    high: float
    sizes: int

    @property
    def figures(self) -> str:
        """The speedup with its interval, no finer than that is: "about 1.4× (1.2× to 1.7×)", "about 1.04× (…)"."""
        digits = 2 if self.high > WIDE_INTERVAL * self.low else 3
        about, low, high = (
            f"{units.format_significant(ratio, digits)}×" for ratio in (self.speedup, self.low, self.high)
        )
        return f"about {about} ({low} to {high})"

    @property
    def source(self) -> str:
        """On what it rests: "expected from 12 measured sizes"."""
        return f"expected from {units.format_quantity(self.sizes, 'measured size')}"


def expect_speedup(
    evidence: Sequence[Evidence], size: float, *, exclude: float | None = None
) -> ExpectedSpeedup | None:
    """What to expect at a size; None beyond the measured ones, or where they say too little.

    Args:
        evidence: what was timed, in any order.
        size: on the axis.
        exclude: a size whose own readings are left out, so that they can be set beside what was expected.
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
    """One sentence on what was expected and what was then measured."""
    was = f"From {units.format_quantity(expectation.sizes, 'other measured size')} {expectation.figures} was expected"
    if expectation.low <= measured <= expectation.high:
        return f"{was}; {units.format_ratio(measured)} was measured, as expected."
    side = "less" if measured < expectation.low else "more"
    return f"{was}; {units.format_ratio(measured)} was measured, {side} than expected."
