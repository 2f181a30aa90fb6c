"""The family of small residual networks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.question.models.convolutional import as_image
from core.question.models.layers import FLOAT_BYTES, Conv2d, Flatten, Layer, Linear, ReLU
from core.question.models.network import Family, Shape

STAGES = (16, 32, 64)
"""Channels of the three stages of He et al.'s networks for small images (2015, section 4.2); all but the first halve
the image. The width multiplies them, as Zagoruyko and Komodakis do (2016)."""

GROUPS = 8
"""Groups of channels that are normalised together, in place of a batch (Wu and He 2018)."""


@dataclass(frozen=True, kw_only=True)
class GroupNorm(Layer):
    """Each group of channels of a sample to mean 0 and variance 1, then scaled and shifted by channel."""

    shape: tuple[int, int, int]

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        return "GroupNorm", (GROUPS, self.shape[0])

    @property
    def parameters(self) -> int:
        return 2 * self.shape[0]

    @property
    def launches(self) -> int:
        return 2

    @property
    def saved_bytes(self) -> int:
        """What goes in, which no convolution keeps, with mean and scale of each group."""
        return FLOAT_BYTES * (math.prod(self.shape) + 2 * GROUPS)


@dataclass(frozen=True, kw_only=True)
class GlobalMean(Layer):
    """(batch, channels, height, width) → (batch, channels, 1, 1): the mean over the image."""

    channels: int

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        return "AdaptiveAvgPool2d", (1,)

    @property
    def launches(self) -> int:
        return 2

    @property
    def saved_bytes(self) -> int:
        """What comes out, which the next layer takes in."""
        return FLOAT_BYTES * self.channels


@dataclass(frozen=True, kw_only=True)
class ResidualBlock(Layer):
    """Two convolutions with a norm each, and a way past them, which has a convolution where its shape changes."""

    inputs: int
    outputs: int
    stride: int
    height: int
    width: int

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        return "ResidualBlock", (self.inputs, self.outputs, self.stride, GROUPS)

    @property
    def parts(self) -> tuple[Layer, ...]:
        """The layers that it is made of."""
        first = convolution(self.inputs, self.outputs, (self.height, self.width), stride=self.stride)
        after = first.out_shape
        second = convolution(self.outputs, self.outputs, after[1:])
        past: tuple[Layer, ...] = ()
        if self.stride > 1 or self.inputs != self.outputs:
            size = (self.height, self.width)
            past = (convolution(self.inputs, self.outputs, size, kernel=1, stride=self.stride), GroupNorm(shape=after))
        rectified = ReLU(elements=math.prod(after))
        return (first, GroupNorm(shape=after), rectified, second, GroupNorm(shape=after), *past, rectified)

    @property
    def parameters(self) -> int:
        return sum(part.parameters for part in self.parts)

    @property
    def tensors(self) -> int:
        return sum(part.tensors for part in self.parts)

    @property
    def forward_flops(self) -> int:
        return sum(part.forward_flops for part in self.parts)

    @property
    def launches(self) -> int:
        """Those of its parts, the sum of both ways, and that of their gradients."""
        return sum(part.launches for part in self.parts) + 2

    @property
    def saved_bytes(self) -> int:
        return sum(part.saved_bytes for part in self.parts)


def convolution(inputs: int, outputs: int, size: tuple[int, int], *, kernel: int = 3, stride: int = 1) -> Conv2d:
    """A convolution without bias, which keeps the size of an image but for its stride."""
    return Conv2d(
        in_channels=inputs,
        out_channels=outputs,
        height=size[0],
        width=size[1],
        kernel=(kernel, kernel),
        stride=stride,
        padding=kernel // 2,
        bias=False,
    )


def _layers(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    before, (inputs, *size) = as_image(shape)
    channels = sizes["width"] * STAGES[0]
    stem = convolution(inputs, channels, (size[0], size[1]))
    image, blocks = stem.out_shape, list[Layer]()
    for stage, outputs in enumerate(STAGES):
        for number in range(sizes["depth"]):
            stride = 2 if stage and not number else 1
            block = ResidualBlock(
                inputs=image[0], outputs=outputs * sizes["width"], stride=stride, height=image[1], width=image[2]
            )
            blocks.append(block)
            image = (block.outputs, -(-image[1] // stride), -(-image[2] // stride))
    first = stem, GroupNorm(shape=stem.out_shape), ReLU(elements=math.prod(stem.out_shape))
    return (
        *before,
        *first,
        *blocks,
        GlobalMean(channels=image[0]),
        Flatten(),
        Linear(inputs=image[0], outputs=classes),
    )


RESNET = Family(
    name="resnet",
    title="Small ResNet",
    summary="Three stages of residual blocks with two convolutions each, as many in each as the depth says, then the"
    " mean over the image; the width scales all channels. Its norms are over groups of channels, not over the batch.",
    axes=("width", "depth"),
    layers=_layers,
    convolutions=True,
)
