"""A network as data becomes a torch module: each layer the class of torch, or of this room, that it names."""

import torch
from torch import nn

from core.measure.networks import attention, recurrent, residual
from core.question import models

MODULES: dict[str, type[nn.Module]] = {
    made.__name__: made
    for made in (
        *(recurrent.FusedLayers, recurrent.CellLoop),
        *(attention.Positions, attention.EncoderBlock, attention.Mean),
        residual.ResidualBlock,
    )
}
"""Classes of this room by their names: what torch has no module for."""


def build(network: models.Network, seed: int) -> nn.Sequential:
    """A module with the layers of `network`, on the host, where weights are drawn so that every device starts equal.

    Returns:
        Module from (batch, *network.input_shape) to logits (batch, network.classes). Weights are drawn in fp32 and
        are the same numbers in float64.
    """
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        module = nn.Sequential(*map(_module, network.layers))
    return module.to(getattr(torch, network.dtype))


def _module(layer: models.Layer) -> nn.Module:
    name, arguments = layer.module
    made: type[nn.Module] = MODULES.get(name) or getattr(nn, name)
    return made(*arguments)
