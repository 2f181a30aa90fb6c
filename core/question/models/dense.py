"""Families of fully connected layers."""

import itertools
import math
from collections.abc import Mapping

from core.question.models.layers import Layer, flatten, linear, relu
from core.question.models.network import Family, Shape

DOUBLING_DEPTH = (2, 14)
"""The doubling MLP starts at two layers (2 → 4 → 2) and passes 10⁸ parameters at 14."""


def dense(*sizes: int) -> tuple[Layer, ...]:
    """Fully connected layers from one size to the next, ReLU between."""
    layers: list[Layer] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [linear(inputs, outputs), relu(outputs)]
    return tuple(layers[:-1])


def _flat(shape: Shape, *sizes: int) -> tuple[Layer, ...]:
    layers = dense(math.prod(shape), *sizes)
    return (flatten(), *layers) if len(shape) > 1 else layers


def _linear(shape: Shape, classes: int, _sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    return _flat(shape, classes)


def _mlp(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    return _flat(shape, *[sizes["hidden_size"]] * sizes["depth"], classes)


def _doubling(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    return _flat(shape, *(2**power for power in range(2, sizes["depth"] + 1)), classes)


LINEAR = Family(name="linear", title="Linear", summary="One layer from features to classes.", axes=(), layers=_linear)

MLP = Family(
    name="mlp",
    title="Fully connected",
    summary="Hidden layers of equal size, each neuron connected with all of the layer before, ReLU between.",
    axes=("hidden_size", "depth"),
    layers=_mlp,
)

DOUBLING_MLP = Family(
    name="doubling-mlp",
    title="Doubling layers",
    summary="Fully connected layers, each twice the size of the one before: features → 4 → 8 → … → classes.",
    axes=("depth",),
    layers=_doubling,
)
