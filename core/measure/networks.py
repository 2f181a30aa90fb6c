"""Torch modules from the plain layers of `core.question.models`, with weights that depend on the seed alone."""

import torch
from torch import nn

from core.question import models


def build(network: models.Network, seed: int) -> nn.Sequential:
    """A module with the layers of `network`, on the host.

    Args:
        network: layers as data.
        seed: of torch's CPU generator; weights are drawn on the host, so that every device starts equal.

    Returns:
        Module from (batch, *network.input_shape) to logits (batch, network.classes), fp32.
    """
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        modules = [_module(layer) for layer in network.layers]
    table_read_as_image = len(network.input_shape) == 1 and isinstance(network.layers[0], models.Conv2d)
    if table_read_as_image:
        modules.insert(0, nn.Unflatten(1, (1, 1, network.input_shape[0])))
    return nn.Sequential(*modules)


def _module(layer: models.Layer) -> nn.Module:
    match layer:
        case models.Linear():
            return nn.Linear(layer.inputs, layer.outputs)
        case models.Conv2d():
            return nn.Conv2d(layer.in_channels, layer.out_channels, layer.kernel)
        case models.ReLU():
            return nn.ReLU()
        case models.MaxPool2d():
            return nn.MaxPool2d(layer.kernel)
        case models.Flatten():
            return nn.Flatten()
