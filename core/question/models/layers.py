"""Layers as plain data: what each costs, and how torch makes it. Layers of one family alone stand with the family."""

import math
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
    """A layer of a network, which costs nothing but what is said of it.

    Attributes:
        module: how torch makes it: a class of `torch.nn` or of `core.measure.networks`, and what it is called with.
        parameters: trainable numbers.
        tensors: that hold them, each of which is updated by itself where the optimizer is a loop.
        flops: operations per sample forward and backward, of matrix products and convolutions only, as in torch's
            FlopCounterMode: one product forward, one for the gradient of the weights, one for that of the input.
        input_flops: of these, those for the gradient of its input, which the first layer of a network does not need;
            left out of what never comes first.
        launches: operations that PyTorch dispatches forward and backward; views not counted.
        input_launches: of these, those that the first layer of a network does not need.
        saved_bytes: per sample, kept for the backward pass beyond the layer's input, which its maker keeps; in float32.
        saved_index_bytes: of these, those of whole numbers, which are no longer in float64.
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
    """Fully connected layer with bias, (batch, inputs) → (batch, outputs), or the same at each place of a sequence."""
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
    """Convolution of an image, as long and wide a stride and padding; with the image that comes out."""
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
    """Rectifier over `elements` numbers per sample; keeps its result for the backward pass."""
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
    """(batch, …) → (batch, features), or only between two dimensions; a view, free of cost."""
    return Layer(module=("Flatten", ends))


def unflatten(*shape: int) -> Layer:
    """(batch, features) → (batch, *shape); a view, free of cost."""
    return Layer(module=("Unflatten", (1, shape)))
