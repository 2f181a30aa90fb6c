"""The family of the deeplizard tutorial's CNN."""

import math
from collections.abc import Mapping

from core.question.models.dense import dense
from core.question.models.layers import Image, Layer, conv2d, flatten, max_pool, relu, unflatten
from core.question.models.network import Family, Shape

CNN_CHANNELS = (6, 12)
CNN_FEATURES = (120, 60)
CNN_KERNEL = 5
CNN_POOL = 2
"""The deeplizard tutorial's network: conv 1→6 and 6→12 of 5×5, max-pool 2, fully connected 120 → 60."""


def as_image(shape: Shape) -> tuple[tuple[Layer, ...], Image]:
    """A table's row is an image of one line, a sequence one of a line a step, so that a CNN runs on every data set."""
    if len(shape) == 1:
        return (unflatten(1, 1, *shape),), (1, 1, shape[0])
    if len(shape) == 2:
        return (unflatten(1, shape[0]),), (1, *shape)
    channels, height, width = shape
    return (), (channels, height, width)


def _cnn_layers(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    width = sizes["width"]
    before, image = as_image(shape)
    layers: list[Layer] = list(before)
    for channels in CNN_CHANNELS:
        convolution, image = conv2d(image, channels * width, _window(CNN_KERNEL, image))
        layers += [convolution, relu(math.prod(image))]
        if image[1:] != (1, 1):
            pool, image = max_pool(image, _window(CNN_POOL, image))
            layers.append(pool)
    return (*layers, flatten(), *dense(math.prod(image), *(count * width for count in CNN_FEATURES), classes))


def _window(kernel: int, image: Image) -> tuple[int, int]:
    """Height and width of a kernel that fits into an image."""
    return min(kernel, image[1]), min(kernel, image[2])


CNN = Family(
    name="cnn",
    title="Convolutional",
    summary="Two convolutions with max-pooling, then three fully connected layers; the width scales them all.",
    axes=("width",),
    layers=_cnn_layers,
    convolutions=True,
)
