"""The training loop: cross entropy, plain SGD, whole steps. It knows no clock, no file and no screen.

Losses stay on the device as the loop runs; reading them waits for the device, so that happens between blocks.
"""

import math
from dataclasses import dataclass, field
from itertools import islice

import torch
from torch import Tensor, nn
from torch.nn import functional

from core.batches import Batch, Feed
from core.datasets import Split

CURVE_SEGMENTS = 200
"""Points of a stored loss curve; the grid depends on the number of steps alone, so curves of devices line up."""

EVALUATION_BATCH = 4096
"""Samples that are classified at once; bounds memory, changes no result."""


class Training:
    """One network in training.

    Attributes:
        network: on the device.
        optimizer: of its parameters.
        steps: steps done so far.
    """

    def __init__(self, network: nn.Module, feed: Feed, *, learning_rate: float, steps: int = 0) -> None:
        """Take over a network that has `steps` steps behind it, and a feed that begins with the next one."""
        self.network = network
        self.optimizer = torch.optim.SGD(network.parameters(), lr=learning_rate)
        self.steps = steps
        self._feed = feed
        self._losses: list[Tensor] = []

    def advance(self, steps: int) -> None:
        """Train `steps` whole steps; on an accelerator this returns before they are done."""
        place, keep = self._feed.place, self._losses.append
        for batch in islice(self._feed.batches, steps):
            keep(self.step(place(batch)))
        self.steps += steps

    def step(self, batch: Batch) -> Tensor:
        """One optimizer update on a batch that is on the device; returns the loss, still there."""
        samples, labels = batch
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.network(samples), labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def draw(self) -> Batch:
        """The next batch as the loader makes it, not yet placed."""
        return next(self._feed.batches)

    def place(self, batch: Batch) -> Batch:
        """Put a drawn batch on the device."""
        return self._feed.place(batch)

    def read_losses(self) -> list[float]:
        """Losses of the steps since the last call, in order. Waits for the device."""
        if not self._losses:
            return []
        losses: list[float] = torch.stack(self._losses).tolist()
        self._losses.clear()
        return losses

    def weights(self) -> list[Tensor]:
        """Copies of all parameters, on the device."""
        return [parameter.detach().clone() for parameter in self.network.parameters()]

    def set_weights(self, weights: list[Tensor]) -> None:
        """Put earlier weights back.

        Raises:
            ValueError: they are not of this network.
        """
        with torch.no_grad():
            for parameter, value in zip(self.network.parameters(), weights, strict=True):
                parameter.copy_(value)


@dataclass(kw_only=True)
class LossCurve:
    """Mean loss over equal segments of a training; steps past its end are left out.

    Attributes:
        total_steps: steps of the training.
        steps: steps taken in so far.
        sums: sum of losses of each segment begun.
    """

    total_steps: int
    steps: int = 0
    sums: list[float] = field(default_factory=list)

    @property
    def segment(self) -> int:
        """Steps of one segment; the last may be shorter."""
        return math.ceil(self.total_steps / CURVE_SEGMENTS)

    def add(self, losses: list[float]) -> None:
        """Take in the losses of the next steps."""
        for loss in losses[: self.total_steps - self.steps]:
            if self.steps % self.segment == 0:
                self.sums.append(0.0)
            self.sums[-1] += loss
            self.steps += 1

    @property
    def last_steps(self) -> tuple[int, ...]:
        """Last step of each segment."""
        ends = range(self.segment, self.segment * len(self.sums) + 1, self.segment)
        return tuple(min(end, self.steps) for end in ends)

    @property
    def means(self) -> tuple[float, ...]:
        """Mean loss of each segment."""
        starts = (0, *self.last_steps)
        return tuple(total / (end - start) for total, start, end in zip(self.sums, starts, starts[1:], strict=False))

    @property
    def diverged(self) -> bool:
        """Whether some loss was NaN or infinite; both stay in a sum for good."""
        return not all(math.isfinite(total) for total in self.sums)


@torch.no_grad()
def classify(network: nn.Module, split: Split, device: torch.device, *, at_most: int | None = None) -> Tensor:
    """Predicted class of each sample, int64 (n,), on the host. Waits for the device."""
    samples = split.samples[:at_most]
    predicted = [network(chunk.to(device)).argmax(dim=1).cpu() for chunk in samples.split(EVALUATION_BATCH)]
    return torch.cat(predicted) if predicted else torch.empty(0, dtype=torch.int64)
