"""Answers of a run, each computed on first access and cached.

Pages, the command line, comparisons and exports read these answers and compute no statistics themselves. An error in
one answer is raised on access to it; the others remain readable.
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
from . import accuracy, causes, remedies, speedup, training_cost
from .causes import StepParts
from .remedies import BestVariantPair, Remedies, find_best_variants
from .speedup import StepTime
from .training_cost import BreakEven
from .verdict import Verdict


@dataclass(frozen=True, eq=False)
class RunRow:
    """Answers from one row; each is documented in the function of this folder that computes it."""

    row: Trial

    @cached_property
    def label(self) -> str:
        return speedup.contender_label(self.row)

    @cached_property
    def step(self) -> StepTime:
        return speedup.step_time(self.row)

    @cached_property
    def epoch_s(self) -> tuple[float, ...]:
        return training_cost.epoch_times(self.row)

    @property
    def median_epoch_s(self) -> float | None:
        """Median seconds of an epoch; None if no epoch was timed."""
        return statistics.median(self.epoch_s) if self.epoch_s else None

    @cached_property
    def epoch_check(self) -> str:
        return training_cost.epoch_check_sentence(self.row)

    @cached_property
    def startup_s(self) -> float | None:
        return training_cost.startup_s(self.row)

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
        """Share of right answers on the test items; None if the model was not tested.

        Raises:
            InvalidValue: the counts do not match the classes of the data set.
        """
        return accuracy.accuracy(self.row)

    @property
    def accuracy_shown(self) -> str:
        """Accuracy as text; empty if the model was not tested, or its counts do not match the data set."""
        with contextlib.suppress(InvalidValue):
            return "" if self.accuracy is None else units.format_counted_share(self.accuracy, digits=1)
        return ""

    @cached_property
    def classification(self) -> dict[str, Any] | None:
        return accuracy.classification(self.row)

    @cached_property
    def classification_text(self) -> str:
        """The classification report as text; empty if the model was not tested."""
        return accuracy.classification_text(self.row) if self.row.confusion else ""


@dataclass(frozen=True, eq=False)
class RunPair:
    """Comparison of two rows of a run. Each answer raises `NotComparable` if the rows are not comparable."""

    baseline: Trial
    challenger: Trial

    @cached_property
    def speedup(self) -> Verdict:
        return speedup.speedup(self.baseline, self.challenger)

    @cached_property
    def verdict(self) -> str:
        return self.speedup.sentence

    @cached_property
    def cause(self) -> str:
        return causes.difference_cause(self.baseline, self.challenger, self.speedup)

    @cached_property
    def thread_waits(self) -> str:
        """How the CPU threads waited for each other, with the line to set; empty if it hardly matters."""
        return speedup.describe_thread_waits(self.baseline, self.challenger)

    @cached_property
    def break_even(self) -> BreakEven:
        return training_cost.find_break_even(self.baseline, self.challenger)

    @cached_property
    def agreement(self) -> accuracy.PredictionAgreement | None:
        return accuracy.compare_predictions(self.baseline, self.challenger)


@dataclass(frozen=True, eq=False)
class Run:
    """Answers of a run, from its rows, the baseline first."""

    trials: Sequence[Trial]

    @cached_property
    def rows(self) -> tuple[RunRow, ...]:
        return tuple(map(RunRow, self.trials))

    @cached_property
    def pairs(self) -> tuple[RunPair, ...]:
        """Comparisons of each other row with the first."""
        return tuple(RunPair(self.trials[0], other) for other in self.trials[1:])

    @cached_property
    def remedies(self) -> tuple[Remedies, ...]:
        """Effects of each device's variants; raises `NotComparable` if the rows are not of one run."""
        return remedies.lane_remedies(self.trials)

    @cached_property
    def best_variants(self) -> BestVariantPair | None:
        """The best variants of two devices; raises `NotComparable` as `remedies` does."""
        return find_best_variants(self.trials)
