"""What comes before models of sequences: tokens as vectors, and other samples as sequences."""

from core.question.models.layers import FLOAT_BYTES, Layer, flatten, unflatten
from core.question.models.network import Shape

TOKEN_WIDTH = 16
"""Numbers that stand for a token in models that are not of sequences, and so have no width of their own for it."""


def embedding(vocabulary: int, width: int, steps: int) -> Layer:
    """A row of numbers for each token, (batch, steps) → (batch, steps, width); nothing is multiplied.

    It keeps what comes out, which the next layer takes in.
    """
    return Layer(
        module=("Embedding", (vocabulary, width)),
        parameters=vocabulary * width,
        tensors=1,
        launches=2,
        saved_bytes=FLOAT_BYTES * steps * width,
    )


def as_sequence(shape: Shape) -> tuple[tuple[Layer, ...], tuple[int, int]]:
    """Any sample as (steps, features): an image by its rows of pixels, a row of a table by its columns.

    Returns:
        The views that it takes, and its shape then.
    """
    match shape:
        case (columns,):
            return (unflatten(columns, 1),), (columns, 1)
        case (channels, height, width):
            return (flatten(1, 2),), (channels * height, width)
    steps, features = shape
    return (), (steps, features)
