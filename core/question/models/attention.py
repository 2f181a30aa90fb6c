"""The family of Transformer encoders."""

from collections.abc import Mapping

from core.question.models.layers import FLOAT_BYTES, Layer, linear
from core.question.models.network import Family, Shape
from core.question.models.sequences import as_sequence

WIDENED = 4
"""By how much the two fully connected layers of a block are wider between them, as in the published model."""


def positions(steps: int, hidden: int) -> Layer:
    """Trained numbers that are added at each place of a sequence, so that the order of tokens can be told."""
    return Layer(module=("Positions", (steps, hidden)), parameters=steps * hidden, tensors=1)


def encoder_block(hidden: int, heads: int, steps: int) -> Layer:
    """Attention of every place to every place, then two fully connected layers, both beside a way past them.

    Heads that do not divide the hidden size leave the rest of it out inside the attention.
    """
    inner = heads * max(1, hidden // heads)
    weights = 4 * hidden * inner + 2 * WIDENED * hidden**2
    biases = 3 * inner + hidden + WIDENED * hidden + hidden
    # every weight at every place, and two products of every place with every place
    products = 2 * steps * weights + 4 * steps**2 * inner
    # what goes into norms, products and attention, and what comes out of attention and rectifier
    kept = (4 * hidden + 4) + (4 * inner + heads) + WIDENED * hidden
    return Layer(
        module=("EncoderBlock", (hidden, heads)),
        parameters=weights + biases + 4 * hidden,  # those of two norms at the end
        tensors=12,
        flops=3 * products,
        saved_bytes=FLOAT_BYTES * steps * kept,
    )


def mean(hidden: int) -> Layer:
    """(batch, steps, hidden) → (batch, hidden): the mean over all places, which the last layer takes in."""
    return Layer(module=("Mean", ()), saved_bytes=FLOAT_BYTES * hidden)


def _transformer_layers(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    views, (steps, features) = as_sequence(shape)
    hidden = sizes["hidden_size"]
    widened = (linear(features, hidden, steps),) if views else ()  # tokens have that width
    blocks = [encoder_block(hidden, sizes["heads"], steps)] * sizes["depth"]
    return (*views, *widened, positions(steps, hidden), *blocks, mean(hidden), linear(hidden, classes))


TRANSFORMER = Family(
    name="transformer",
    title="Transformer",
    summary="Blocks of scaled dot-product attention and two fully connected layers, over a sequence as wide as the "
    "hidden size.",
    axes=("hidden_size", "depth", "heads"),
    layers=_transformer_layers,
    of_sequences=True,
)
