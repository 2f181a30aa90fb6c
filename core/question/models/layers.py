"""Layers and networks as data: the cost of each layer, and how torch builds it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

FLOAT_BYTES = 4
"""Bytes of one fp32 number; a float64 number has twice as many."""

INDEX_BYTES = 8
"""Bytes of one int64 index, such as a label or the position of a maximum in max-pooling."""

Image = tuple[int, int, int]
"""Channels, height and width."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of a network; omitted costs are 0.

    Attributes:
        module: class of `torch.nn` or `core.measure.networks`, and its arguments.
        parameters: number of trainable parameters.
        tensors: number of parameter tensors, which an optimizer in a loop updates separately.
        flops: operations per sample forward and backward, of matrix products and convolutions only, as torch's
            `FlopCounterMode` counts them. There is one product forward, one for the gradient of the weights and one for
            that of the input.
        input_flops: part of `flops` for the gradient of the input, which the first layer of a network does not need; 0
            for layers that never come first.
        launches: operations that PyTorch dispatches forward and backward, without views.
        input_launches: part of `launches` that the first layer of a network does not need.
        saved_bytes: bytes per sample saved for the backward pass, in float32. The layer's input is not included: the
            layer that produces it counts it.
        saved_index_bytes: part of `saved_bytes` in integers, whose size is the same in float64.
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
    """Build a fully connected layer with bias, (batch, inputs) → (batch, outputs), at each position of a sequence."""
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
    """Build a convolution with equal stride and padding in both directions; return it with the output image."""
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
    """Build a max-pooling with stride equal to its kernel; return it with the output image.

    It saves its result and the index of each maximum.
    """
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
"""Shape of one sample: (features,), (channels, height, width), (steps, features) of a sequence, or (steps,) of tokens.
"""

Builder = Callable[[Shape, int, Mapping[str, int]], tuple[Layer, ...]]
"""Function from the shape of a sample (tokens as vectors), the number of classes and the family's sizes to layers."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network as data, with its cost.

    Attributes:
        input_shape: shape of one sample from the data set.
        classes: number of outputs.
        layers: layers in order; the last one is fully connected with one output per class.
        tokens: whether samples are tokens, which have 32 bits in every network.
        dtype: number format of weights, samples and losses, `float32` or `float64`.
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
        """Number of trainable parameters."""
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
        axes: sizes that shape the network; the first one is adjusted to reach a number of parameters.
        layers: builder of the layers.
        convolutions: whether it has convolutions, for which the memory format of images matters.
        of_sequences: whether it reads samples as sequences, and tokens as vectors of its hidden size.
        uncompiled: why torch.compile is not offered for it, if it is not.
        library: display name of the library that fits it, if it is not a network of torch; a step is then a whole fit.
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
        """The size adjusted to reach a number of parameters; empty if there is none."""
        return self.axes[0] if self.axes and not self.library else ""
