"""The family of the deeplizard tutorial's CNN."""

import math
from collections.abc import Mapping

from core.question.models.dense import dense
from core.question.models.layers import Conv2d, Flatten, Layer, MaxPool2d, ReLU, Unflatten
from core.question.models.network import Family, Shape

CNN_CHANNELS = (6, 12)
CNN_FEATURES = (120, 60)
CNN_KERNEL = 5
CNN_POOL = 2
"""The deeplizard tutorial's network: conv 1→6 and 6→12 of 5×5, max-pool 2, fully connected 120 → 60."""


def as_image(shape: Shape) -> tuple[tuple[Layer, ...], tuple[int, int, int]]:
    """A table's row is an image of one line, a sequence one of a line a step, so that a CNN runs on every data set."""
    if len(shape) == 1:
        return (Unflatten(shape=(1, 1, *shape)),), (1, 1, shape[0])
    if len(shape) == 2:
        return (Unflatten(shape=(1, shape[0])),), (1, *shape)
    channels, height, width = shape
    return (), (channels, height, width)


def _layers(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    width = sizes["width"]
    before, image = as_image(shape)
    layers: list[Layer] = list(before)
    for channels in CNN_CHANNELS:
        in_channels, height, rows_width = image
        kernel = (min(CNN_KERNEL, height), min(CNN_KERNEL, rows_width))
        convolution = Conv2d(
            in_channels=in_channels, out_channels=channels * width, height=height, width=rows_width, kernel=kernel
        )
        image = convolution.out_shape
        layers += [convolution, ReLU(elements=math.prod(image))]
        pool = MaxPool2d(shape=image, kernel=(min(CNN_POOL, image[1]), min(CNN_POOL, image[2])))
        if pool.kernel != (1, 1):
            layers.append(pool)
            image = pool.out_shape
    return (*layers, Flatten(), *dense(math.prod(image), *(count * width for count in CNN_FEATURES), classes))


CNN = Family(
    name="cnn",
    title="Convolutional",
    summary="Two convolutions with max-pooling, then three fully connected layers; the width scales them all.",
    axes=("width",),
    layers=_layers,
    convolutions=True,
)
