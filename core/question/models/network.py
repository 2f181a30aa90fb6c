"""What a network and a model family are, as plain data."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.question.models.layers import FLOAT_BYTES, INDEX_BYTES, Layer

Shape = tuple[int, ...]
"""Of one sample: (features,), (channels, height, width), or of a sequence (steps, features), and (steps,) of tokens."""

Builder = Callable[[Shape, int, Mapping[str, int]], tuple[Layer, ...]]
"""From the shape of a sample, whose tokens are vectors already, the number of classes and the family's sizes to its
layers."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network as data, with what it costs.

    Attributes:
        input_shape: shape of one sample as the data set delivers it.
        classes: number of outputs.
        layers: in order; the last is fully connected with the classes.
        tokens: whether samples are tokens, which have 32 bits in every network.
        dtype: in which numbers weights, samples and losses are, `float32` or `float64`.
    """

    input_shape: Shape
    classes: int
    layers: tuple[Layer, ...]
    dtype: str = "float32"
    tokens: bool = False

    @property
    def number_bytes(self) -> int:
        """Bytes of one weight, and of one number of a sample."""
        return FLOAT_BYTES * (2 if self.dtype == "float64" else 1)

    @property
    def sample_bytes(self) -> int:
        """Bytes of one sample without its label."""
        return (FLOAT_BYTES if self.tokens else self.number_bytes) * math.prod(self.input_shape)

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
        matrix products and convolutions only; 0, for not known, of what has no layers.
        """
        if not self.layers:
            return 0
        return batch_size * (sum(layer.flops for layer in self.layers) - self.first.input_flops)

    def memory_bytes(self, batch_size: int) -> int:
        """Bytes that a training step holds at once: weights, their gradients, and what backward needs.

        The batch, every kept activation, the log-probabilities and the labels; an allocator's slack and
        a device's own context come on top.
        """
        kept = sum(layer.saved_bytes - layer.saved_index_bytes for layer in self.layers) // FLOAT_BYTES
        indices = sum(layer.saved_index_bytes for layer in self.layers) + INDEX_BYTES
        per_sample = self.sample_bytes + self.number_bytes * (kept + self.classes) + indices
        return 2 * self.number_bytes * self.parameters + batch_size * per_sample


@dataclass(frozen=True, kw_only=True)
class Family:
    """One model family.

    Attributes:
        name: key in links, on the command line and in the store.
        title: label for people.
        summary: one sentence.
        axes: the sizes that shape it, the first of which reaches a wanted number of parameters; others do not matter.
        layers: its builder.
        convolutions: whether it has any, for which it matters how images are stored.
        of_sequences: whether it takes samples in as sequences, and tokens as vectors of its hidden size.
        uncompiled: why torch.compile is not offered for it, if it is not.
        library: what fits it, for people, where it is no network of torch; a step is then a whole fit.
    """

    name: str
    title: str
    summary: str
    axes: tuple[str, ...]
    layers: Builder
    convolutions: bool = False
    library: str = ""
    of_sequences: bool = False
    uncompiled: str = ""

    @property
    def size(self) -> str:
        """The size by which it reaches a wanted number of parameters; empty if it has none."""
        return self.axes[0] if self.axes and not self.library else ""
