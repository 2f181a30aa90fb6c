"""What a network and a model family are, as plain data."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.question.models.layers import FLOAT_BYTES, INDEX_BYTES, Layer

Shape = tuple[int, ...]
"""Of one sample as the data set delivers it: (features,) or (channels, height, width)."""

Builder = Callable[[Shape, int, Mapping[str, int]], tuple[Layer, ...]]
"""From the shape of a sample, the number of classes and the family's sizes to its layers."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network as data, with what it costs.

    Attributes:
        input_shape: shape of one sample as the data set delivers it.
        classes: number of outputs.
        layers: in order; the last is a `Linear` to the classes.
    """

    input_shape: Shape
    classes: int
    layers: tuple[Layer, ...]

    @property
    def parameters(self) -> int:
        """Trainable numbers."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def first(self) -> Layer:
        """The first layer with parameters, whose input is the batch, which needs no gradient."""
        return next(layer for layer in self.layers if layer.parameters)

    def flops_per_step(self, batch_size: int) -> int:
        """Floating-point operations of forward and backward over one batch.

        Each layer with weights multiplies three times: forward, gradient of its weights, gradient of its
        input; the first layer needs no gradient of its input. Counted as torch.utils.flop_counter does:
        matrix products and convolutions only.
        """
        every = sum(layer.forward_flops + layer.backward_flops for layer in self.layers)
        return batch_size * (every - self.first.input_flops)

    def memory_bytes(self, batch_size: int) -> int:
        """Bytes that a training step holds at once: weights, their gradients, and what backward needs.

        The batch, every kept activation, the log-probabilities and the labels; an allocator's slack and
        a device's own context come on top.
        """
        weights_and_gradients = 2 * FLOAT_BYTES * self.parameters
        per_sample = FLOAT_BYTES * (math.prod(self.input_shape) + self.classes) + INDEX_BYTES
        per_sample += sum(layer.saved_bytes for layer in self.layers)
        return weights_and_gradients + batch_size * per_sample


@dataclass(frozen=True, kw_only=True)
class Family:
    """One model family.

    Attributes:
        name: key in links, on the command line and in the store.
        title: label for people.
        summary: one sentence.
        axes: the sizes that shape it, the first of which reaches a wanted number of parameters; others do not matter.
        layers: its builder.
    """

    name: str
    title: str
    summary: str
    axes: tuple[str, ...]
    layers: Builder

    @property
    def size(self) -> str:
        """The size by which it reaches a wanted number of parameters; empty if it has none."""
        return self.axes[0] if self.axes else ""
