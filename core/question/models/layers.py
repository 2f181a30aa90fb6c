"""Layers and networks as data: the cost of each layer, and how torch makes it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

FLOAT_BYTES = 4
"""Bytes of one fp32 number; one in float64 has twice as many."""

INDEX_BYTES = 8
"""Bytes of one int64 index: labels, and where each max-pool window had its maximum."""

Image = tuple[int, int, int]
"""Channels, height and width."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of a network; attributes that are left out cost nothing.

    Attributes:
        module: how torch makes it: a class of `torch.nn` or of `core.measure.networks`, and its arguments.
        parameters: trainable numbers.
        tensors: parameter tensors, each of which is updated by itself where the optimizer is a loop.
        flops: operations per sample forward and backward, of matrix products and convolutions only, as torch's
            `FlopCounterMode` counts them. There is one product forward, one for the gradient of the weights and one
            for that of the input.
        input_flops: of these, those for the gradient of its input, which the first layer of a network does not need;
            left out of layers that never come first.
        launches: operations that PyTorch dispatches forward and backward; views not counted.
        input_launches: of these, those that the first layer of a network does not need.
        saved_bytes: per sample, saved for the backward pass, in float32. The layer's input is not included: the layer
            that produces it counts it.
        saved_index_bytes: of these, those of whole numbers, whose size is the same in float64.
    """

    module: tuple[str, tuple[Any, ...]]
    parameters: int = 0
    tensors: int = 0
    flops: int = 0
    input_flops: int = 0
    launches: int = 0
    input_launches: int = 0
    saved_bytes: int = 0
    saved_index_bytes: int = 0


def linear(inputs: int, outputs: int, positions: int = 1) -> Layer:
    """Build a fully connected layer with bias, (batch, inputs) → (batch, outputs), at each place of a sequence."""
    product = 2 * inputs * outputs * positions
    return Layer(
        module=("Linear", (inputs, outputs)),
        parameters=inputs * outputs + outputs,
        tensors=2,
        flops=3 * product,
        input_flops=product,
        launches=4,  # product forward, products for weight and input backward, sum for the bias
        input_launches=1,
    )


def conv2d(
    image: Image, channels: int, kernel: tuple[int, int], *, stride: int = 1, padding: int = 0, bias: bool = True
) -> tuple[Layer, Image]:
    """Build a convolution of an image, as long and wide a stride and padding; with the output image."""
    height, width = (
        (size + 2 * padding - length) // stride + 1 for size, length in zip(image[1:], kernel, strict=True)
    )
    after = (channels, height, width)
    window = image[0] * math.prod(kernel)
    product = 2 * window * math.prod(after)  # two for every weight of every output position
    more = () if stride == 1 and not padding and bias else (stride, padding, 1, 1, bias)
    layer = Layer(
        module=("Conv2d", (image[0], channels, kernel, *more)),
        parameters=window * channels + channels * bias,
        tensors=1 + bias,
        flops=3 * product,
        input_flops=product,
        launches=2,
    )
    return layer, after


def relu(elements: int) -> Layer:
    """Build a rectifier over `elements` numbers per sample; saves its result for the backward pass."""
    return Layer(module=("ReLU", ()), launches=2, saved_bytes=FLOAT_BYTES * elements)


def max_pool(image: Image, kernel: tuple[int, int]) -> tuple[Layer, Image]:
    """Max-pooling with stride equal to its kernel, which keeps its result and the index of each maximum; with that."""
    after = (image[0], image[1] // kernel[0], image[2] // kernel[1])
    elements = math.prod(after)
    layer = Layer(
        module=("MaxPool2d", (kernel,)),
        launches=2,
        saved_bytes=(FLOAT_BYTES + INDEX_BYTES) * elements,
        saved_index_bytes=INDEX_BYTES * elements,
    )
    return layer, after


def flatten(*ends: int) -> Layer:
    """Flatten (batch, …) → (batch, features), or only between two dimensions; a view, free of cost."""
    return Layer(module=("Flatten", ends))


def unflatten(*shape: int) -> Layer:
    """Unflatten (batch, features) → (batch, *shape); a view, free of cost."""
    return Layer(module=("Unflatten", (1, shape)))


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
        """Return the floating-point operations of forward and backward over one batch.

        Each layer with weights multiplies three times: forward, gradient of its weights, gradient of its input; the
        first layer needs no gradient of its input. Counted as torch.utils.flop_counter does: matrix products and
        convolutions only. 0 means unknown, for networks without layers.
        """
        if not self.layers:
            return 0
        return batch_size * (sum(layer.flops for layer in self.layers) - self.first.input_flops)

    def memory_bytes(self, batch_size: int) -> int:
        """Return the bytes that a training step needs at once: weights, their gradients, and inputs of backward.

        The batch, every saved activation, the log-probabilities and the labels are included; an allocator's slack and a
        device's own context come on top.
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
