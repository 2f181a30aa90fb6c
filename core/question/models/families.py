"""The one table of model families, and the networks that they make."""

import itertools

from ...errors import require_choice
from .. import catalog
from .architectures import (
    CNN,
    DOUBLING_MLP,
    GRU,
    GRU_CELLS,
    LINEAR,
    LSTM,
    LSTM_CELLS,
    MLP,
    RESNET,
    TOKEN_WIDTH,
    TRANSFORMER,
    embedding,
)
from .boosting import HIST_BOOSTING, LIGHTGBM, XGBOOST
from .layers import Family, Layer, Network, Shape

FAMILIES: dict[str, Family] = {
    entry.name: entry
    for entry in (
        LINEAR,
        MLP,
        DOUBLING_MLP,
        CNN,
        RESNET,
        LSTM,
        LSTM_CELLS,
        GRU,
        GRU_CELLS,
        TRANSFORMER,
        HIST_BOOSTING,
        XGBOOST,
        LIGHTGBM,
    )
}

_AXES = (*(entry.axes for entry in FAMILIES.values()), *(entry.axes for entry in catalog.DATASETS.values()))

AXES = tuple(dict.fromkeys(itertools.chain(*_AXES)))
"""Every size that some network is shaped by: those of families, and of data sets."""


def family(name: str) -> Family:
    """Facts of the model family called `name`.

    Raises:
        InvalidValue: no family has that name.
    """
    return FAMILIES[require_choice("model", name, FAMILIES)]


def list_model_sizes(name: str, dataset: str) -> tuple[str, ...]:
    """The sizes that shape the networks of a family for a data set, those of the family first.

    Raises:
        InvalidValue: there is no such family, or no such data set.
    """
    return (*family(name).axes, *catalog.dataset(dataset).axes)


def network(
    name: str, *, input_shape: Shape, classes: int, vocabulary: int = 0, dtype: str = "float32", **sizes: int
) -> Network:
    """The network of family `name` for one data set; tokens become vectors first.

    Args:
        name: key of `FAMILIES`.
        input_shape: (features,) or (channels, height, width), or (steps,) of tokens.
        classes: number of classes.
        vocabulary: how many different tokens there are, where samples are tokens.
        dtype: in which numbers it is.
        sizes: those of `AXES` that shape the family; others do not matter.
    """
    facts, shape, front = family(name), input_shape, tuple[Layer, ...]()
    if vocabulary and not facts.library:
        width = sizes["hidden_size"] if facts.of_sequences else TOKEN_WIDTH
        front = (embedding(vocabulary, width, shape[0]),)
        shape = (*shape, width)
    layers = front + facts.layers(shape, classes, sizes)
    return Network(input_shape=input_shape, classes=classes, layers=layers, dtype=dtype, tokens=vocabulary > 0)
