"""Torch modules from the layer descriptions of `core.question.models`, with weights that depend on the seed alone.

Exported scripts contain the source code of these classes unchanged.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..question import models


class Positions(nn.Module):
    """Adds a trained vector at each position of a sequence."""

    def __init__(self, steps: int, hidden: int) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.randn(steps, hidden))

    def forward(self, sequence: Tensor) -> Tensor:
        return sequence + self.places


class EncoderBlock(nn.Module):
    """Transformer encoder block: attention, then two fully connected layers, each after a norm and with a residual."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        inner, self.heads = heads * max(1, hidden // heads), heads
        self.norm, self.parts, self.joined = (
            nn.LayerNorm(hidden),
            nn.Linear(hidden, 3 * inner),
            nn.Linear(inner, hidden),
        )
        self.wide = nn.Sequential(
            nn.LayerNorm(hidden), nn.Linear(hidden, 4 * hidden), nn.ReLU(), nn.Linear(4 * hidden, hidden)
        )

    def forward(self, sequence: Tensor) -> Tensor:
        # (3, batch, heads, steps, numbers of a head)
        query, key, value = self.parts(self.norm(sequence)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value)
        sequence = sequence + self.joined(attended.transpose(1, 2).flatten(2))
        wide: Tensor = sequence + self.wide(sequence)
        return wide


class Mean(nn.Module):
    """Mean over all positions of a sequence."""

    def forward(self, sequence: Tensor) -> Tensor:
        return sequence.mean(1)


class FusedLayers(nn.Module):
    """torch's recurrent layers, which process the whole sequence in one call."""

    def __init__(self, kind: str, inputs: int, hidden: int, depth: int) -> None:
        super().__init__()
        self.layers = getattr(nn, kind)(inputs, hidden, depth, batch_first=True)

    def forward(self, sequence: Tensor) -> Tensor:
        outputs: Tensor = self.layers(sequence)[0]
        return outputs[:, -1]


class CellLoop(nn.Module):
    """Recurrent layers with the same weights, computed cell by cell."""

    def __init__(self, kind: str, inputs: int, hidden: int, depth: int) -> None:
        super().__init__()
        cell = getattr(nn, f"{kind}Cell")
        self.cells = nn.ModuleList(cell(hidden if above else inputs, hidden) for above in range(depth))

    def forward(self, sequence: Tensor) -> Tensor:
        outputs = list(sequence.unbind(1))
        for cell in self.cells:
            state = None
            for step, output in enumerate(outputs):
                state = cell(output, state)
                outputs[step] = state[0] if isinstance(state, tuple) else state
        return outputs[-1]


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions with a norm each, and a residual, with a convolution if the shape changes.

    The norms are group norms: without running statistics, training and testing compute the same on every device.
    Micro-batches give the same result, and a batch may have a single sample.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, groups: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.GroupNorm(groups, outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.GroupNorm(groups, outputs),
        )
        self.past = nn.Sequential()
        if stride > 1 or inputs != outputs:
            self.past = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.GroupNorm(groups, outputs)
            )
        self.rectified = nn.ReLU()

    def forward(self, image: Tensor) -> Tensor:
        rectified: Tensor = self.rectified(self.inner(image) + self.past(image))
        return rectified


MODULES: dict[str, type[nn.Module]] = {
    made.__name__: made for made in (FusedLayers, CellLoop, Positions, EncoderBlock, Mean, ResidualBlock)
}
"""Modules that torch does not have, by their names."""


def build(network: models.Network, seed: int) -> nn.Sequential:
    """Build the module of `network` on the host, where its weights are initialized equally for every device.

    Returns:
        Module from (batch, *network.input_shape) to logits (batch, network.classes). Weights are generated in fp32 and
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
