"""What comes before models of sequences: tokens as vectors, and other samples as sequences."""

from dataclasses import dataclass
from typing import Any

from core.question.models.layers import FLOAT_BYTES, Flatten, Layer, Unflatten
from core.question.models.network import Shape

TOKEN_WIDTH = 16
"""Numbers that stand for a token in models that are not of sequences, and so have no width of their own for it."""


@dataclass(frozen=True, kw_only=True)
class Embedding(Layer):
    """A row of numbers for each token, (batch, steps) → (batch, steps, width); nothing is multiplied."""

    vocabulary: int
    width: int
    steps: int

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        return "Embedding", (self.vocabulary, self.width)

    @property
    def parameters(self) -> int:
        return self.vocabulary * self.width

    @property
    def tensors(self) -> int:
        return 1

    @property
    def launches(self) -> int:
        return 2

    @property
    def saved_bytes(self) -> int:
        """What comes out, which the next layer takes in."""
        return FLOAT_BYTES * self.steps * self.width


def as_sequence(shape: Shape) -> tuple[tuple[Layer, ...], tuple[int, int]]:
    """Any sample as (steps, features): an image by its rows of pixels, a row of a table by its columns.

    Returns:
        The views that it takes, and its shape then.
    """
    match shape:
        case (columns,):
            return (Unflatten(shape=(columns, 1)),), (columns, 1)
        case (channels, height, width):
            return (Flatten(end=2),), (channels * height, width)
    steps, features = shape
    return (), (steps, features)
