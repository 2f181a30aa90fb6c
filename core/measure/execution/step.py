"""One training step: what every lane computes, however it is run. Cross entropy, plain SGD, nothing else.

A lane of micro-batches adds up their gradients before it updates: the gradient of the whole batch, in another order of
summation. Nothing here knows a clock, where data come from, or how many steps there are.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from core.question.lanes import PLAIN, Lane

Batch = tuple[Tensor, Tensor]
"""Samples (batch, *shape) in the numbers of the weights, and labels (batch,) int64."""


class Step:
    """The step of one network, which is on the device already."""

    def __init__(self, network: nn.Module, *, learning_rate: float, lane: Lane = PLAIN) -> None:
        """Take over a network; its memory format becomes that of the lane."""
        if lane.memory_format == "channels_last":
            network.to(memory_format=torch.channels_last)
        self.network, self.learning_rate, self.lane = network, learning_rate, lane
        self.parameters = list(network.parameters())
        chosen: dict[str, Any] = {} if lane.optimizer == "default" else {lane.optimizer: True}
        self.optimizer = torch.optim.SGD(self.parameters, lr=learning_rate, **chosen)
        self._plain = lane.precision != "bf16" and not lane.micro_batch

    def train(self, batch: Batch) -> Tensor:
        """One update on a batch that is on the device; returns the loss, still there."""
        for parameter in self.parameters:  # as the optimizer's zero_grad, which also talks to the profiler
            parameter.grad = None
        if not self._plain:
            return self._train_in_its_way(batch)
        loss = functional.cross_entropy(self.network(batch[0]), batch[1])
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def pieces(self, batch: Batch) -> Sequence[Batch]:
        """What goes forward and backward at once: the batch, or its micro-batches."""
        size = self.lane.micro_batch
        return list(zip(*(part.split(size) for part in batch), strict=True)) if size else (batch,)

    def loss(self, piece: Batch, pieces: int = 1) -> Tensor:
        """Forward pass and loss of one of so many pieces of a batch: its share in the batch's mean."""
        return self.compute_loss(self.network, piece, pieces)

    def compute_loss(self, network: Callable[[Tensor], Tensor], piece: Batch, pieces: int) -> Tensor:
        """The step with its network called in another way."""
        with self._arithmetic(piece[1].device.type):
            loss = functional.cross_entropy(network(piece[0]), piece[1])
        return loss / pieces if pieces > 1 else loss

    def _train_in_its_way(self, batch: Batch) -> Tensor:
        pieces, losses = self.pieces(batch), []
        for piece in pieces:
            loss = self.loss(piece, len(pieces))
            loss.backward()
            losses.append(loss.detach())
        self.optimizer.step()
        return sum(losses[1:], losses[0])

    def _arithmetic(self, device_type: str) -> contextlib.AbstractContextManager[Any]:
        """TF32 is no context but a setting of the process, see `core.measure.device.devices.use_tf32`."""
        if self.lane.precision != "bf16":
            return contextlib.nullcontext()
        # without its cache of cast weights, which neither a graph nor a compiled step may keep from step to step
        return torch.autocast(device_type, dtype=torch.bfloat16, cache_enabled=False)
