"""Fresh trainings of a point on a device: a network with its first weights, and its batches from any step on."""

from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn

from core.measure import networks
from core.measure.data import batches, datasets
from core.measure.data.batches import Feed
from core.measure.data.datasets import Data, Split
from core.measure.execution.step import Batch
from core.measure.training import Training
from core.question.experiment import Point
from core.question.lanes import Lane

_RESIDENT: WeakValueDictionary[tuple[str, str, str], Split] = WeakValueDictionary()
"""Data that somebody trains on where they are: hash, dtype and device → what the contenders of all points share."""


@dataclass(kw_only=True)
class FreshTrainings:
    """Makes the trainings of one point on one device, all from the same weights on the same batches.

    Attributes:
        prefetched: batches that the loader of the last feed may have ready.
        resident: the data on the device, once they were moved there.
    """

    point: Point
    data: Data
    device: torch.device
    prefetched: int = field(default=0, init=False)
    resident: Split | None = field(default=None, init=False)

    def move_data(self) -> None:
        """Put all samples on the device, unless somebody trains on them there already."""
        key = self.data.hash, self.point.dtype, str(self.device)
        self.resident = _RESIDENT.setdefault(key, self.data.train.to(self.device))

    def training(self, lane: Lane) -> Training:
        """A fresh network in training, with a feed that begins with the first step."""
        return Training(self.network(), self.feed(0), learning_rate=self.point.learning_rate, lane=lane)

    def build_float32_training(self, lane: Lane) -> Training:
        """The same in float32."""
        point = replace(self.point, dtype="float32")
        single = FreshTrainings(point=point, data=datasets.load_point_data(point), device=self.device)
        if self.resident is not None:
            single.move_data()
        return single.training(lane)

    def network(self) -> nn.Module:
        """A fresh network on the device."""
        return networks.build(self.point.network, self.point.seed).to(self.device)

    def weights(self) -> list[Tensor]:
        """The first weights."""
        return list(self.network().parameters())

    def feed(self, first_step: int) -> Feed:
        """The batches from a step on."""
        resident = self.data.train if self.resident is None else self.resident
        feed = batches.feed(self.point, self.data, resident, self.device, first_step=first_step)
        self.prefetched = feed.prefetched
        return feed

    def example(self) -> Batch:
        """A batch on the device, which nobody trains on."""
        samples, labels = (
            part[: self.point.batch_size].to(self.device) for part in (self.data.train.samples, self.data.train.labels)
        )
        return samples, labels
