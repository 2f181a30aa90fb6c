"""The family of Transformer encoders."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.question.models.layers import FLOAT_BYTES, Layer, Linear
from core.question.models.network import Family, Shape
from core.question.models.sequences import as_sequence

WIDENED = 4
"""By how much the two fully connected layers of a block are wider between them, as in the published model."""


@dataclass(frozen=True, kw_only=True)
class Positions(Layer):
    """Trained numbers that are added at each place of a sequence, so that the order of tokens can be told."""

    steps: int
    hidden: int

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        return "Positions", (self.steps, self.hidden)

    @property
    def parameters(self) -> int:
        return self.steps * self.hidden

    @property
    def tensors(self) -> int:
        return 1


@dataclass(frozen=True, kw_only=True)
class EncoderBlock(Layer):
    """Attention of every place to every place, then two fully connected layers, both beside a way past them.

    Heads that do not divide the hidden size leave the rest of it out inside the attention.
    """

    hidden: int
    heads: int
    steps: int

    @property
    def inner(self) -> int:
        """Numbers of all heads together."""
        return self.heads * max(1, self.hidden // self.heads)

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        return "EncoderBlock", (self.hidden, self.heads)

    @property
    def parameters(self) -> int:
        """Weights and biases of the four products, and those of two norms."""
        biases = 3 * self.inner + self.hidden + WIDENED * self.hidden + self.hidden
        return self._weights + biases + 4 * self.hidden

    @property
    def tensors(self) -> int:
        return 12

    @property
    def forward_flops(self) -> int:
        """Every weight at every place, and two products of every place with every place."""
        return 2 * self.steps * self._weights + 4 * self.steps**2 * self.inner

    @property
    def saved_bytes(self) -> int:
        """What goes into norms, products and attention, and what comes out of attention and rectifier."""
        of_norms, of_attention = 4 * self.hidden + 4, 4 * self.inner + self.heads
        return FLOAT_BYTES * self.steps * (of_norms + of_attention + WIDENED * self.hidden)

    @property
    def _weights(self) -> int:
        return 4 * self.hidden * self.inner + 2 * WIDENED * self.hidden**2


@dataclass(frozen=True, kw_only=True)
class Mean(Layer):
    """(batch, steps, hidden) → (batch, hidden): the mean over all places, which the last layer takes in."""

    hidden: int

    @property
    def saved_bytes(self) -> int:
        return FLOAT_BYTES * self.hidden


def _layers(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    views, (steps, features) = as_sequence(shape)
    hidden = sizes["hidden_size"]
    widened = (Linear(inputs=features, outputs=hidden, positions=steps),) if views else ()  # tokens have that width
    blocks = [EncoderBlock(hidden=hidden, heads=sizes["heads"], steps=steps)] * sizes["depth"]
    ends = Mean(hidden=hidden), Linear(inputs=hidden, outputs=classes)
    return (*views, *widened, Positions(steps=steps, hidden=hidden), *blocks, *ends)


TRANSFORMER = Family(
    name="transformer",
    title="Transformer",
    summary="Blocks of scaled dot-product attention and two fully connected layers, over a sequence as wide as the "
    "hidden size.",
    axes=("hidden_size", "depth", "heads"),
    layers=_layers,
    of_sequences=True,
)
