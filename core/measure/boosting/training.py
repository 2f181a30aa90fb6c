"""Fits of gradient boosting in the loop that all trainings have: a step is one whole fit, from nothing.

A fit returns when its trees are there, which the host has to read to find the next split; whatever the library may
have left on its stream belongs to the device's one context, and is waited for by the drain before each reading.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.measure.boosting import libraries
from core.measure.data.batches import Feed
from core.measure.data.datasets import Data, Split
from core.measure.training import Training
from core.question.experiment import BEST_THREADS, Point
from core.question.lanes import PLAIN

SCORED = 10_000
"""Training rows of which the loss is read, at most; as many as of which a network's accuracy is."""

LEAST_CHANCE = 1e-15
"""Lowest probability of the right class, so that a loss is a number."""


class BoostingTraining(Training):
    """One model that is fitted again and again.

    Attributes:
        threads: of the CPU, for every fit from now on; 0 for the library's own choice.
    """

    def __init__(self, point: Point, data: Data, device: str) -> None:
        """Take the rows as a table, each a line of numbers."""
        self._point, self._device = point, device
        self.classes, self._labels = np.unique(data.train.labels.numpy(), return_inverse=True)
        self._samples = _to_table(data.train.samples)
        self._scored = Split(samples=data.train.samples[:SCORED], labels=data.train.labels[:SCORED])
        self._all_classes = point.network.classes
        self._model: libraries.Model | None = None
        self.threads, self.lane, self._engine, self._losses, self.steps = BEST_THREADS, PLAIN, None, [], 0
        super().rewind(NOTHING, 0)

    def use_threads(self, count: int) -> None:
        """Fit with so many threads from here on."""
        self.threads = count
        libraries.use_threads(self._point.model, count)

    def advance(self, steps: int) -> None:
        """Fit so many times, each time from nothing.

        Raises:
            LibraryFailed: the library refused.
        """
        family = self._point.model
        for _ in range(steps):
            self._model = libraries.model(self._point, self._device, self.threads)
            libraries.fit(family, self._model, self._samples, self._labels, self.threads)
        self.steps += steps

    def rewind(self, feed: Feed, steps: int) -> None:
        """Only the count of fits: each begins from nothing anyway."""
        self.steps = steps

    def weights(self, device: str | None = None) -> list[Tensor]:
        """None: trees are the library's business."""
        return []

    def set_weights(self, weights: list[Tensor]) -> None:
        """Nothing, as `rewind`."""

    def rehearsal(self) -> Callable[[], object]:
        """One fit."""
        return partial(self.advance, 1)

    def read_losses(self) -> list[float]:
        """Nothing between blocks: each fit has the loss of the first, see `loss`."""
        return []

    def loss(self) -> float:
        """Mean log loss of the model over the first training rows."""
        chances = self.chances(self._scored.samples).gather(1, self._scored.labels[:, None])
        return float(-chances.clamp_min(LEAST_CHANCE).log().mean())

    def chances(self, samples: Tensor) -> Tensor:
        """Probability of every class of the data set, (rows, classes), as a network's outputs are."""
        if self._model is None:
            raise RuntimeError("nothing was fitted yet")
        known = torch.as_tensor(np.asarray(self._model.predict_proba(_to_table(samples))), dtype=torch.float64)
        every = torch.zeros(len(samples), self._all_classes, dtype=torch.float64)
        every[:, torch.from_numpy(self.classes)] = known
        return every


def _to_table(samples: Tensor) -> Any:
    return samples.reshape(len(samples), -1).numpy()


def _no_batch(*_: object) -> Any:
    raise RuntimeError("a fit has no batches")


NOTHING = Feed(batches=iter(()), take=_no_batch, place=_no_batch, batch_size=0)
