"""A contender whose step is a whole fit of gradient boosting: the same clock, the same turns, blocks of fewer steps."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from core.errors import LibraryFailed
from core.measure.afterwards.examination import examine
from core.measure.boosting import libraries
from core.measure.boosting.training import NOTHING, BoostingTraining
from core.measure.contender import MeasuredContender
from core.measure.data.batches import Feed
from core.measure.data.datasets import Data, Split
from core.measure.preparing import room
from core.measure.preparing.fresh import FreshTrainings
from core.measure.preparing.threads import LONG_S
from core.measure.readings.timer import BLOCK_MARGIN, LEAD_IN_S, LONGEST_LEAD_IN_S, MIN_BLOCK_S
from core.measure.training import Training
from core.question.experiment import BEST_THREADS, Contender, Point
from core.question.lanes import Lane
from core.question.models.boosting import explain_missing_library

LONG_ON_ACCELERATOR_S = 10 * LONGEST_LEAD_IN_S
"""An accelerator's clocks have risen within a tenth of a fit of so long, which needs none before it."""


class FreshFits(FreshTrainings):
    """Makes fits of one point on one device; each of them begins from nothing."""

    def training(self, lane: Lane) -> Training:
        """One that was not fitted yet; it has no lane."""
        return BoostingTraining(self.point, self.data, str(self.device))

    def feed(self, first_step: int) -> Feed:
        """No batches."""
        return NOTHING


class BoostingContender(MeasuredContender):
    """One contender in the measurement of fits."""

    def __init__(self, contender: Contender, point: Point, data: Data) -> None:
        """Take a contender whose device was found; nothing is imported or fitted yet.

        Raises:
            LibraryFailed: the library of the family is not installed.
        """
        if told := explain_missing_library(point.model):
            raise LibraryFailed(told)
        super().__init__(contender, point, data)
        self._fresh = FreshFits(point=point, data=data, device=self._device.torch)

    @property
    def fits(self) -> BoostingTraining:
        """The training, once it was started."""
        training = self.training
        if not isinstance(training, BoostingTraining):
            raise TypeError("it is no gradient boosting")
        return training

    @property
    def facts(self) -> dict[str, Any]:
        """Nobody counts them in trees; 0 says that they are not known."""
        return {"parameters": 0, "flops_per_step": 0}

    def require_pace(self, budget_s: float) -> None:
        """Nothing: how long a fit takes is known when one was fitted."""

    def start(self) -> None:
        """Import the library, see whether it can use the device, and fit for the first time, each timed."""
        loaded_s = libraries.load(self._point.model)
        used_s = 0.0 if self.contender.on_host else libraries.first_use(self._point.model, str(self._device.torch))
        super().start()
        raw = self.raw  # whoever comes second in this process finds the library there, and would have had to wait too
        raw.startup_build_s = (raw.startup_build_s or 0.0) + loaded_s
        raw.startup_device_s = (raw.startup_device_s or 0.0) + used_s
        self.curve.add([self.fits.loss()])

    def warm_up(self, allowance_s: float) -> Iterator[None]:
        """Fit once more, or for as long as a block takes. Yields between timings.

        A fit is long beside whatever gets warm, and allocates all its memory anew: the first one is not used, nor the
        first block.
        """
        fit_s = self._warm_up_block(1)
        yield
        self._block_steps = max(1, math.ceil(BLOCK_MARGIN * MIN_BLOCK_S / fit_s)) if fit_s > 0 else 1
        if self._block_steps > 1 and fit_s < allowance_s:
            fit_s = self._warm_up_block(self._block_steps) / self._block_steps
            yield
        long_s = LONG_S if self.contender.on_host else LONG_ON_ACCELERATOR_S
        self.raw.lead_in_steps = max(1, math.ceil(LEAD_IN_S / fit_s)) if 0 < fit_s < long_s else 0

    def profile(self, budget_s: float, *, whole_epoch: bool = True, turns: bool = True) -> None:
        """A fit is one piece, and a whole training is one fit: only what does not depend on its rows can be told."""
        if (
            turns
            and 2 * room.estimate_memory_bytes(self._point, self.contender, self._data) <= self._device.free_bytes()
        ):
            self._use_settings()
            self._afterwards.take_turns(self.training, self._build_doubled_training, "doubled_step_s", budget_s)

    def examine(self) -> None:
        """Classify with the model that was fitted last; all of them are alike."""
        classify = partial(
            examine, self.fits.chances, self._point.network.classes, self._data, torch.device("cpu"), self.raw
        )
        self._afterwards.attempt("What it learned is", classify)

    def _build_doubled_training(self) -> Training:
        """Fits of a table that has every row twice: trees split as before, and each leaf has twice the rows."""
        train = self._data.train
        twice = Split(samples=train.samples.repeat_interleave(2, 0), labels=train.labels.repeat_interleave(2))
        fits = BoostingTraining(self._point, replace(self._data, train=twice), str(self._device.torch))
        fits.threads = self.fits.threads
        return fits

    def _lead_in_steps(self) -> int:
        return self.raw.lead_in_steps

    def _keep_weights(self) -> None:
        """Nothing: the last model is there."""

    def _prepare(self) -> float:
        """Nothing is compiled."""
        return 0.0

    def _use_settings(self) -> None:
        """Fit with this contender's threads from here on; the others have theirs."""
        if self._training is not None and self.raw.threads != BEST_THREADS:
            self.fits.use_threads(self.raw.threads)
