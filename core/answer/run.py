"""What a run says, each part of it worked out when it is first asked for, and kept.

Pages, the command line, side by side and exports read it; none of them calls a statistic. What rows do not allow is
raised where it is asked for, and the rest can still be read.
"""

import contextlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .. import units
from ..errors import InvalidValue
from ..results.schema import Trial
from . import accuracy, best_lanes, causes, remedies, speedup, training_time
from .best_lanes import BestVariantPair
from .causes import StepParts
from .remedies import Remedies
from .speedup import Speedup, StepTime
from .training_time import BreakEven


@dataclass(frozen=True, eq=False)
class RowAnswer:
    """What one row says; each part is described where it is worked out, in the functions of this folder."""

    row: Trial

    @cached_property
    def label(self) -> str:
        return speedup.contender_label(self.row)

    @cached_property
    def step(self) -> StepTime:
        return speedup.step_time(self.row)

    @cached_property
    def epoch_s(self) -> tuple[float, ...]:
        return training_time.epoch_times(self.row)

    @property
    def median_epoch_s(self) -> float | None:
        """Median of the epochs; None where none was timed."""
        return statistics.median(self.epoch_s) if self.epoch_s else None

    @cached_property
    def epoch_check(self) -> str:
        return training_time.epoch_check_sentence(self.row)

    @cached_property
    def startup_s(self) -> float | None:
        return training_time.startup_s(self.row)

    @cached_property
    def parts(self) -> StepParts | None:
        return causes.step_parts(self.row)

    @cached_property
    def times(self) -> dict[str, float]:
        return causes.part_times(self.row)

    @cached_property
    def why_no_breakdown(self) -> str:
        return causes.why_no_breakdown(self.row)

    @cached_property
    def accuracy(self) -> float | None:
        """Share of right answers on the test items; None if it was not tested.

        Raises:
            InvalidValue: the counts are not those of the data set's classes.
        """
        return accuracy.accuracy(self.row)

    @property
    def accuracy_shown(self) -> str:
        """The same for people; empty where it was not tested, or its counts are not those of the data set."""
        with contextlib.suppress(InvalidValue):
            return "" if self.accuracy is None else units.format_counted_share(self.accuracy, digits=1)
        return ""

    @cached_property
    def classification(self) -> dict[str, Any] | None:
        return accuracy.classification(self.row)

    @cached_property
    def classification_text(self) -> str:
        """The classification report as text; empty if it was not tested."""
        return accuracy.classification_text(self.row) if self.row.confusion else ""


@dataclass(frozen=True, eq=False)
class PairAnswer:
    """What one row says against another of its run. Each part raises `NotComparable` where the rows are not."""

    baseline: Trial
    challenger: Trial

    @cached_property
    def speedup(self) -> Speedup:
        return speedup.speedup(self.baseline, self.challenger)

    @cached_property
    def verdict(self) -> str:
        return speedup.verdict_sentence(self.speedup)

    @cached_property
    def cause(self) -> str:
        return causes.difference_cause(self.baseline, self.challenger)

    @cached_property
    def break_even(self) -> BreakEven:
        return training_time.find_break_even(self.baseline, self.challenger)

    @cached_property
    def agreement(self) -> accuracy.PredictionAgreement | None:
        return accuracy.compare_predictions(self.baseline, self.challenger)


@dataclass(frozen=True, eq=False)
class RunAnswer:
    """What a run says, by its rows, the baseline first."""

    trials: Sequence[Trial]

    @cached_property
    def rows(self) -> tuple[RowAnswer, ...]:
        return tuple(map(RowAnswer, self.trials))

    @cached_property
    def pairs(self) -> tuple[PairAnswer, ...]:
        """What each other row says against the first."""
        return tuple(PairAnswer(self.trials[0], other) for other in self.trials[1:])

    @cached_property
    def remedies(self) -> tuple[Remedies, ...]:
        """What the lanes of each device did; raises `NotComparable` if the rows are not of one run."""
        return remedies.lane_remedies(self.trials)

    @cached_property
    def best_variants(self) -> BestVariantPair | None:
        """Best lane against best lane; raises `NotComparable` as `remedies` does."""
        return best_lanes.find_best_variants(self.trials)
