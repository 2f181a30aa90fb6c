"""Layers as plain data: what each costs, and how torch makes it. Layers of one family alone stand with the family."""

import math
from dataclasses import dataclass
from typing import Any

FLOAT_BYTES = 4
"""Bytes of one fp32 number; one in float64 has twice as many."""

INDEX_BYTES = 8
"""Bytes of one int64 index: labels, and where each max-pool window had its maximum."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of a network, which costs nothing but what its kind says."""

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        """How torch makes it: a class of `torch.nn` or of `core.measure.networks`, and what it is called with."""
        return type(self).__name__, ()

    @property
    def parameters(self) -> int:
        """Trainable numbers."""
        return 0

    @property
    def tensors(self) -> int:
        """Tensors that hold them, each of which is updated by itself where the optimizer is a loop."""
        return 2 if self.parameters else 0

    @property
    def forward_flops(self) -> int:
        """Operations per sample, of matrix products and convolutions only, as in torch's FlopCounterMode."""
        return 0

    @property
    def backward_flops(self) -> int:
        """The same backward: as many for the gradient of its weights as for that of its input."""
        return 2 * self.forward_flops

    @property
    def input_flops(self) -> int:
        """Of these, those for the gradient of its input, which the first layer of a network does not need."""
        return self.forward_flops

    @property
    def launches(self) -> int:
        """Operations that PyTorch dispatches forward and backward; views not counted."""
        return 0

    @property
    def input_launches(self) -> int:
        """Of these, those that the first layer of a network does not need."""
        return 0

    @property
    def saved_bytes(self) -> int:
        """Bytes per sample kept for the backward pass beyond the layer's input, which its maker keeps; in float32."""
        return 0

    @property
    def saved_index_bytes(self) -> int:
        """Of these, those of whole numbers, which are no longer in float64."""
        return 0


@dataclass(frozen=True, kw_only=True)
class Linear(Layer):
    """Fully connected layer with bias, (batch, inputs) → (batch, outputs), or the same at each place of a sequence."""

    inputs: int
    outputs: int
    positions: int = 1

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        return "Linear", (self.inputs, self.outputs)

    @property
    def parameters(self) -> int:
        return self.inputs * self.outputs + self.outputs

    @property
    def forward_flops(self) -> int:
        return 2 * self.inputs * self.outputs * self.positions

    @property
    def launches(self) -> int:
        """Product forward, products for weight and input backward, sum for the bias."""
        return 4

    @property
    def input_launches(self) -> int:
        return 1


@dataclass(frozen=True, kw_only=True)
class Conv2d(Layer):
    """Convolution, (batch, in_channels, height, width) in; as long and wide a stride and padding."""

    in_channels: int
    out_channels: int
    height: int
    width: int
    kernel: tuple[int, int]
    stride: int = 1
    padding: int = 0
    bias: bool = True

    @property
    def out_shape(self) -> tuple[int, int, int]:
        height, width = (
            (size + 2 * self.padding - kernel) // self.stride + 1
            for size, kernel in zip((self.height, self.width), self.kernel, strict=True)
        )
        return (self.out_channels, height, width)

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        plain = self.stride == 1 and not self.padding and self.bias
        more = () if plain else (self.stride, self.padding, 1, 1, self.bias)
        return "Conv2d", (self.in_channels, self.out_channels, self.kernel, *more)

    @property
    def parameters(self) -> int:
        window = self.in_channels * self.kernel[0] * self.kernel[1]
        return window * self.out_channels + self.out_channels * self.bias

    @property
    def tensors(self) -> int:
        return 1 + self.bias

    @property
    def forward_flops(self) -> int:
        """Two for every weight of every output position."""
        window = self.in_channels * self.kernel[0] * self.kernel[1]
        return 2 * window * math.prod(self.out_shape)

    @property
    def launches(self) -> int:
        return 2


@dataclass(frozen=True, kw_only=True)
class ReLU(Layer):
    """Rectifier over `elements` numbers per sample; keeps its result for the backward pass."""

    elements: int

    @property
    def launches(self) -> int:
        return 2

    @property
    def saved_bytes(self) -> int:
        return FLOAT_BYTES * self.elements


@dataclass(frozen=True, kw_only=True)
class MaxPool2d(Layer):
    """Max-pooling with stride equal to its kernel; keeps its result and the index of each maximum."""

    shape: tuple[int, int, int]
    kernel: tuple[int, int]

    @property
    def out_shape(self) -> tuple[int, int, int]:
        channels, height, width = self.shape
        return (channels, height // self.kernel[0], width // self.kernel[1])

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        return "MaxPool2d", (self.kernel,)

    @property
    def launches(self) -> int:
        return 2

    @property
    def saved_bytes(self) -> int:
        return FLOAT_BYTES * math.prod(self.out_shape) + self.saved_index_bytes

    @property
    def saved_index_bytes(self) -> int:
        return INDEX_BYTES * math.prod(self.out_shape)


@dataclass(frozen=True, kw_only=True)
class Flatten(Layer):
    """(batch, …) → (batch, features), or only up to the dimension `end`; a view, free of cost."""

    end: int = -1

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        return "Flatten", () if self.end == -1 else (1, self.end)


@dataclass(frozen=True, kw_only=True)
class Unflatten(Layer):
    """(batch, features) → (batch, *shape); a view, free of cost."""

    shape: tuple[int, ...]

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        return "Unflatten", (1, self.shape)
