"""A fresh network in training as one recipe for the clock wants it: with what it reads, counts, prints and tests.

It knows no clock. Steps are those of `core.measure.training` unless a recipe looks into every one of them.
"""

import io
from collections.abc import Collection
from dataclasses import replace

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Subset

from core.measure import networks
from core.measure.data import batches
from core.measure.data.datasets import Data, Split
from core.measure.execution.step import Batch
from core.measure.training import Training
from core.question.demonstration import Recipe
from core.question.experiment import Point
from core.question.fields import LOADER_PATHS

WATCHED = {"item_every_step", "accuracy_every_step", "errors_printed"}
"""Shortcuts for which a step must be looked into."""


class RecipeTraining:
    """One fresh network in training.

    Attributes:
        prefetched: batches that may be ready before they are asked for.
    """

    def __init__(self, recipe: Recipe, point: Point, data: Data, resident: Split, device: torch.device) -> None:
        """Build the network on the device, where `resident` is; the data path of the point does not matter."""
        self._point, self._data, self._device = point_for_recipe(recipe, point), data, device
        self._switched: Collection[str] = recipe.switched
        network = networks.build(point.network, point.seed).to(device)
        feed = batches.feed(self._point, data, resident, device)
        self.prefetched = feed.prefetched
        self._training = Training(network, feed, learning_rate=point.learning_rate)
        self._errors, self._paper = torch.zeros((), dtype=torch.int64, device=device), io.StringIO()

    def advance(self, steps: int) -> None:
        """Train so many steps, looking at each as the recipe does."""
        if not WATCHED.intersection(self._switched):
            self._training.advance(steps)
            return
        for _ in range(steps):
            self._step(self._training.place(self._training.draw()))

    def end_epoch(self) -> None:
        """Do what the recipe does after an epoch: print, test, or nothing."""
        if "errors_printed" in self._switched:
            print(int(self._errors), file=self._paper)
            self._errors.zero_()
        if "tests_inside" in self._switched:
            self._test()

    def settle(self) -> None:
        """Read the losses between timings; waits for the device."""
        self._training.read_losses()

    def _step(self, batch: Batch) -> None:
        """A step of `core.measure.training`, with scores at hand."""
        samples, labels = batch
        self._training.optimizer.zero_grad()
        scores = self._training.network(samples)
        loss = functional.cross_entropy(scores, labels)
        loss.backward()
        self._training.optimizer.step()
        if "item_every_step" in self._switched:
            loss.item()
        if "accuracy_every_step" in self._switched:
            (scores.argmax(dim=1) == labels).float().mean().item()
        if "errors_printed" in self._switched:
            self._errors += (scores.argmax(dim=1) != labels).sum()

    @torch.no_grad()
    def _test(self) -> None:
        """Read and classify as many samples one by one as validation and test have."""
        count, train = count_held_out(self._data), len(self._data.train)
        source = Subset(self._data.one_by_one, [index % train for index in range(count)])
        for samples, labels in DataLoader(source, batch_size=self._point.batch_size):
            scores = self._training.network(samples.to(self._device))
            (scores.argmax(dim=1) == labels.to(self._device)).sum().item()


def point_for_recipe(recipe: Recipe, point: Point) -> Point:
    """The training with the data path of the recipe; workers of a loader only where the training has some."""
    path = recipe.loader or "resident"
    workers = point.loader_workers if path in LOADER_PATHS and point.data_path in LOADER_PATHS else 0
    return replace(point, data_path=path, loader_workers=workers)


def count_held_out(data: Data) -> int:
    """Samples of validation and test together."""
    return len(data.validation) + len(data.test)
