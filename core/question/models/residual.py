"""The family of small residual networks."""

import math
from collections.abc import Mapping

from core.question.models.convolutional import as_image
from core.question.models.layers import FLOAT_BYTES, Image, Layer, conv2d, flatten, linear, relu
from core.question.models.network import Family, Shape

STAGES = (16, 32, 64)
"""Channels of the three stages of He et al.'s networks for small images (2015, section 4.2); all but the first halve
the image. The width multiplies them, as Zagoruyko and Komodakis do (2016)."""

GROUPS = 8
"""Groups of channels that are normalised together, in place of a batch (Wu and He 2018)."""


def group_norm(image: Image) -> Layer:
    """Each group of channels of a sample to mean 0 and variance 1, then scaled and shifted by channel.

    It keeps what goes in, which no convolution does, with mean and scale of each group.
    """
    return Layer(
        module=("GroupNorm", (GROUPS, image[0])),
        parameters=2 * image[0],
        tensors=2,
        launches=2,
        saved_bytes=FLOAT_BYTES * (math.prod(image) + 2 * GROUPS),
    )


def residual_block(image: Image, channels: int, stride: int) -> tuple[Layer, Image]:
    """Two convolutions with a norm each, and a way past them, which has a convolution where its shape changes."""
    first, after = convolution(image, channels, stride=stride)
    second, _ = convolution(after, channels)
    rectified = relu(math.prod(after))
    parts = [first, group_norm(after), rectified, second, group_norm(after), rectified]
    if stride > 1 or image[0] != channels:
        parts += [convolution(image, channels, kernel=1, stride=stride)[0], group_norm(after)]
    block = Layer(
        module=("ResidualBlock", (image[0], channels, stride, GROUPS)),
        parameters=sum(part.parameters for part in parts),
        tensors=sum(part.tensors for part in parts),
        flops=sum(part.flops for part in parts),
        launches=sum(part.launches for part in parts) + 2,  # the sum of both ways, and that of their gradients
        saved_bytes=sum(part.saved_bytes for part in parts),
    )
    return block, after


def convolution(image: Image, channels: int, *, kernel: int = 3, stride: int = 1) -> tuple[Layer, Image]:
    """A convolution without bias, which keeps the size of an image but for its stride; with the image after it."""
    return conv2d(image, channels, (kernel, kernel), stride=stride, padding=kernel // 2, bias=False)


def _resnet_layers(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    before, image = as_image(shape)
    stem, image = convolution(image, sizes["width"] * STAGES[0])
    layers = [*before, stem, group_norm(image), relu(math.prod(image))]
    for stage, channels in enumerate(STAGES):
        for number in range(sizes["depth"]):
            block, image = residual_block(image, channels * sizes["width"], 2 if stage and not number else 1)
            layers.append(block)
    # the mean over the image, which the next layer takes in
    mean = Layer(module=("AdaptiveAvgPool2d", (1,)), launches=2, saved_bytes=FLOAT_BYTES * image[0])
    return (*layers, mean, flatten(), linear(image[0], classes))


RESNET = Family(
    name="resnet",
    title="Small ResNet",
    summary="Three stages of residual blocks with two convolutions each, as many in each as the depth says, then the"
    " mean over the image; the width scales all channels. Its norms are over groups of channels, not over the batch.",
    axes=("width", "depth"),
    layers=_resnet_layers,
    convolutions=True,
)
