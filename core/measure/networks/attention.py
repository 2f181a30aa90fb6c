"""Parts of a Transformer encoder. Scripts that repeat a run have these very lines."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Positions(nn.Module):
    """Adds trained numbers at each place of a sequence."""

    def __init__(self, steps: int, hidden: int) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.randn(steps, hidden))

    def forward(self, sequence: Tensor) -> Tensor:
        return sequence + self.places


class EncoderBlock(nn.Module):
    """Attention, then two fully connected layers, each of what a norm makes of the sequence, and added to it."""

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
    """The mean over all places of a sequence."""

    def forward(self, sequence: Tensor) -> Tensor:
        return sequence.mean(1)
