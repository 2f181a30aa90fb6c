"""The table of all model families: of networks, whose layers are known, and of gradient boosting.

With fused recurrent layers the whole sequence is one call, which cuDNN turns into a few kernels. A loop over cells
launches every cell of every time step separately. The weights are the same.

Gradient boosting has trees of libraries other than torch, and one training is one fit. These families have their own
sizes (boosting rounds and leaves), and neither layers nor batches. The number of trained numbers and of operations is
unknown, and is not guessed. Nothing here imports one of the libraries.
"""

import importlib.util
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...errors import InvalidValue, require_choice
from .. import catalog
from .layers import (
    FLOAT_BYTES,
    Family,
    Image,
    Layer,
    Network,
    Shape,
    conv2d,
    flatten,
    linear,
    max_pool,
    relu,
    unflatten,
)

TOKEN_WIDTH = 16
"""Embedding dimension of a token in models that do not read sequences, and therefore have no width for it."""


def embedding(vocabulary: int, width: int, steps: int) -> Layer:
    """Build an embedding, a vector for each token: (batch, steps) → (batch, steps, width).

    It saves its output, which is the input of the next layer.
    """
    return Layer(
        module=("Embedding", (vocabulary, width)),
        parameters=vocabulary * width,
        tensors=1,
        launches=2,
        saved_bytes=FLOAT_BYTES * steps * width,
    )


def as_sequence(shape: Shape) -> tuple[tuple[Layer, ...], tuple[int, int]]:
    """Return layers that convert a sample to (steps, features): an image by rows, a table's row by columns.

    Returns:
        The views, and the new shape.
    """
    match shape:
        case (columns,):
            return (unflatten(columns, 1),), (columns, 1)
        case (channels, height, width):
            return (flatten(1, 2),), (channels * height, width)
    steps, features = shape
    return (), (steps, features)


DOUBLING_DEPTH = (2, 14)
"""The doubling MLP starts at two layers (2 → 4 → 2) and passes 10⁸ parameters at 14."""


def dense(*sizes: int) -> tuple[Layer, ...]:
    """Build fully connected layers from one size to the next, with ReLU between them."""
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
    summary="Hidden layers of equal size, fully connected, with ReLU between them.",
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


CNN_CHANNELS = (6, 12)
CNN_FEATURES = (120, 60)
CNN_KERNEL = 5
CNN_POOL = 2
"""The deeplizard tutorial's network: conv 1→6 and 6→12 of 5×5, max-pool 2, fully connected 120 → 60."""


def as_image(shape: Shape) -> tuple[tuple[Layer, ...], Image]:
    """Return layers that convert a sample to an image for CNNs, and its shape.

    A row of a table becomes an image of one line, a sequence one of many lines.
    """
    if len(shape) == 1:
        return (unflatten(1, 1, *shape),), (1, 1, shape[0])
    if len(shape) == 2:
        return (unflatten(1, shape[0]),), (1, *shape)
    channels, height, width = shape
    return (), (channels, height, width)


def _cnn_layers(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    width = sizes["width"]
    before, image = as_image(shape)
    layers: list[Layer] = list(before)
    for channels in CNN_CHANNELS:
        convolution, image = conv2d(image, channels * width, _window(CNN_KERNEL, image))
        layers += [convolution, relu(math.prod(image))]
        if image[1:] != (1, 1):
            pool, image = max_pool(image, _window(CNN_POOL, image))
            layers.append(pool)
    return (*layers, flatten(), *dense(math.prod(image), *(count * width for count in CNN_FEATURES), classes))


def _window(kernel: int, image: Image) -> tuple[int, int]:
    """Return height and width of a kernel that fits into an image."""
    return min(kernel, image[1]), min(kernel, image[2])


CNN = Family(
    name="cnn",
    title="Convolutional",
    summary="Two convolutions with max-pooling, then three fully connected layers; the width scales them all.",
    axes=("width",),
    layers=_cnn_layers,
    convolutions=True,
)


STAGES = (16, 32, 64)
"""Channels of the three stages of the networks of He et al. for small images (2015, section 4.2); all but the first
halve the image.

The width multiplies them, as Zagoruyko and Komodakis do (2016).
"""

GROUPS = 8
"""Number of groups of channels for group normalisation, in place of batch normalisation (Wu and He 2018)."""


def group_norm(image: Image) -> Layer:
    """Build a norm of each group of channels of a sample to mean 0 and variance 1, then scale and shift by channel.

    It saves its input, unlike a convolution, and the mean and scale of each group.
    """
    return Layer(
        module=("GroupNorm", (GROUPS, image[0])),
        parameters=2 * image[0],
        tensors=2,
        launches=2,
        saved_bytes=FLOAT_BYTES * (math.prod(image) + 2 * GROUPS),
    )


def residual_block(image: Image, channels: int, stride: int) -> tuple[Layer, Image]:
    """Build two convolutions with a norm each, and a residual path, with a convolution if the shape changes."""
    first, after = convolution(image, channels, stride=stride)
    second, _ = convolution(after, channels)
    rectified = relu(math.prod(after))
    parts = [first, group_norm(after), rectified, second, group_norm(after), rectified]
    if stride > 1 or image[0] != channels:
        parts += [convolution(image, channels, kernel=1, stride=stride)[0], group_norm(after)]
    block = Layer(
        module=("ResidualBlock", (image[0], channels, stride, GROUPS)),
        parameters=sum(part.parameters for part in parts),
        tensors=sum(part.tensors for part in parts),
        flops=sum(part.flops for part in parts),
        launches=sum(part.launches for part in parts) + 2,  # the sum of both ways, and that of their gradients
        saved_bytes=sum(part.saved_bytes for part in parts),
    )
    return block, after


def convolution(image: Image, channels: int, *, kernel: int = 3, stride: int = 1) -> tuple[Layer, Image]:
    """Return a convolution without bias, which changes the size of an image only by its stride.

    The second value is the output image.
    """
    return conv2d(image, channels, (kernel, kernel), stride=stride, padding=kernel // 2, bias=False)


def _resnet_layers(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    before, image = as_image(shape)
    stem, image = convolution(image, sizes["width"] * STAGES[0])
    layers = [*before, stem, group_norm(image), relu(math.prod(image))]
    for stage, channels in enumerate(STAGES):
        for number in range(sizes["depth"]):
            block, image = residual_block(image, channels * sizes["width"], 2 if stage and not number else 1)
            layers.append(block)
    # the mean over the image, which the next layer takes in
    mean = Layer(module=("AdaptiveAvgPool2d", (1,)), launches=2, saved_bytes=FLOAT_BYTES * image[0])
    return (*layers, mean, flatten(), linear(image[0], classes))


RESNET = Family(
    name="resnet",
    title="Small ResNet",
    summary="Three stages of residual blocks with two convolutions each, then the mean over the image. The depth is the"
    " number of blocks per stage; the width scales all channels. It normalizes over groups of channels, not the batch.",
    axes=("width", "depth"),
    layers=_resnet_layers,
    convolutions=True,
)


Kind = Literal["LSTM", "GRU"]

GATES: dict[Kind, int] = {"LSTM": 4, "GRU": 3}
"""Number of gates whose products are computed in each step."""

KEPT: dict[tuple[Kind, bool], int] = {("LSTM", True): 20, ("LSTM", False): 7, ("GRU", True): 8, ("GRU", False): 7}
"""Numbers per neuron that a step saves for the backward pass, by kind and whether it is fused.

The numbers are gates and states, plus extra memory of the CPU libraries behind the fused layers, rounded up.
"""

UNCOMPILED = {
    True: "torch.compile does not compile the fused layers",
    False: "torch.compile unrolls every cell of the sequence, which takes minutes",
}
"""Reason why there is no compiled variant, by whether layers are fused."""


def recurrent(kind: Kind, *, fused: bool, inputs: int, hidden: int, depth: int, steps: int) -> Layer:
    """Build stacked recurrent layers, (batch, steps, inputs) → (batch, hidden): the last step's output."""
    gates = GATES[kind] * hidden
    taken_in = inputs + (2 * depth - 1) * hidden  # by a step, of inputs and states of all layers together
    products = steps * 2 * gates * taken_in
    states = steps * KEPT[kind, fused] + (kind == "GRU")  # of every step, and in a GRU those before the first
    return Layer(
        module=("FusedLayers" if fused else "CellLoop", (kind, inputs, hidden, depth)),
        parameters=gates * (taken_in + 2 * depth),  # with a bias for the input and one for the state, as torch has it
        tensors=4 * depth,
        flops=3 * products - depth * 2 * gates * hidden,  # states before the first step need no gradient
        input_flops=steps * 2 * gates * inputs,
        saved_bytes=FLOAT_BYTES * states * depth * hidden,
    )


def _recurrent_family(name: str, title: str, summary: str, kind: Kind, *, fused: bool) -> Family:
    def layers(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
        views, (steps, features) = as_sequence(shape)
        hidden = sizes["hidden_size"]
        cells = recurrent(kind, fused=fused, inputs=features, hidden=hidden, depth=sizes["depth"], steps=steps)
        return (*views, cells, linear(hidden, classes))

    return Family(
        name=name,
        title=title,
        summary=summary,
        axes=("hidden_size", "depth"),
        layers=layers,
        of_sequences=True,
        uncompiled=UNCOMPILED[fused],
    )


_LOOPED = "one cell after another in a loop, with the same weights: every step is launched separately."

LSTM = _recurrent_family(
    "lstm", "LSTM", "Long short-term memory over a sequence, as torch's fused layers.", "LSTM", fused=True
)
LSTM_CELLS = _recurrent_family("lstm-cells", "LSTM by cells", f"An LSTM as {_LOOPED}", "LSTM", fused=False)
GRU = _recurrent_family(
    "gru", "GRU", "Gated recurrent units over a sequence, as torch's fused layers.", "GRU", fused=True
)
GRU_CELLS = _recurrent_family("gru-cells", "GRU by cells", f"A GRU as {_LOOPED}", "GRU", fused=False)


WIDENED = 4
"""Ratio of the inner width of the two fully connected layers of a block to their outer width, as published."""


def positions(steps: int, hidden: int) -> Layer:
    """Build trained vectors that are added at each position of a sequence, so that the order of tokens matters."""
    return Layer(module=("Positions", (steps, hidden)), parameters=steps * hidden, tensors=1)


def encoder_block(hidden: int, heads: int, steps: int) -> Layer:
    """Build attention between all positions, then two fully connected layers, both with a residual connection.

    If the number of heads does not divide the hidden size, the attention ignores the remainder.
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
    """Build the mean over all positions, (batch, steps, hidden) → (batch, hidden), for the last layer."""
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


SETTLED: Mapping[str, Any] = {
    "batch_size": 0,
    "epochs": 1,
    "data_path": "per_batch",
    "loader_workers": 0,
    "dtype": "float32",
    "shuffle": False,
}
"""Values of these fields in a fit, which uses every row in every round.

There are no batches, one step is the whole training, and each fit copies the table to an accelerator again.
"""


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library that fits a family of gradient boosting.

    Attributes:
        title: name for people.
        package: name to import.
        install: how to install it.
        devices: kinds of devices that it supports, by PyTorch's names.
    """

    title: str
    package: str
    install: str = "pip install -r requirements-boosting.txt"
    devices: tuple[str, ...] = ("cpu", "cuda")


LIBRARIES: Mapping[str, Library] = {
    "hist-boosting": Library(
        title="scikit-learn", package="sklearn", install="pip install scikit-learn", devices=("cpu",)
    ),
    "xgboost": Library(title="XGBoost", package="xgboost"),
    "lightgbm": Library(title="LightGBM", package="lightgbm"),
}
"""By family."""


ROWS = "rows"
"""Name of a fit's samples, which are the rows of its table."""


def answer_axis_name(axis: str, model: str) -> str:
    """Return the name of an axis in answers: rows, where it varies the samples of a fit."""
    return ROWS if axis == "samples" and model in LIBRARIES else axis


def field_of_answer_axis(axis: str) -> str:
    """Return the varied field, by the name of its axis in answers."""
    return "samples" if axis == ROWS else axis


def explain_missing_library(model: str) -> str:
    """Return a sentence on how to install the missing library of a family; empty if none is missing."""
    library = LIBRARIES.get(model)
    if library is None or importlib.util.find_spec(library.package) is not None:
        return ""
    return f"{library.title} is not installed here: {library.install}."


def check_device(model: str, device: str) -> None:
    """Refuse a device that the library of a family does not support; families of torch accept every device.

    Raises:
        InvalidValue: the library does not support the device.
    """
    library = LIBRARIES.get(model)
    if library is not None and device.partition(":")[0] not in library.devices:
        raise InvalidValue("devices", device, f"{' or '.join(library.devices)}, where {library.title} fits its trees")


def _no_layers(_shape: Shape, _classes: int, _sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    return ()


def _family(name: str, title: str, summary: str) -> Family:
    library = LIBRARIES[name].title
    return Family(
        name=name, title=title, summary=summary, axes=("rounds", "leaves"), layers=_no_layers, library=library
    )


HIST_BOOSTING = _family(
    "hist-boosting",
    "Gradient boosting (scikit-learn)",
    "Trees of scikit-learn's HistGradientBoostingClassifier, on the CPU only.",
)

XGBOOST = _family(
    "xgboost",
    "XGBoost",
    "XGBoost, on CPU or CUDA. Install it separately: `pip install -r requirements-boosting.txt`.",
)

LIGHTGBM = _family(
    "lightgbm",
    "LightGBM",
    "LightGBM, on CPU or a GPU that its build supports. Install it separately: "
    "`pip install -r requirements-boosting.txt`.",
)


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
"""All sizes that shape networks: those of families, and of data sets."""


def family(name: str) -> Family:
    """Return facts of the model family called `name`.

    Raises:
        InvalidValue: no family has that name.
    """
    return FAMILIES[require_choice("model", name, FAMILIES)]


def list_model_sizes(name: str, dataset: str) -> tuple[str, ...]:
    """Return the sizes that shape the networks of a family for a data set, those of the family first.

    Raises:
        InvalidValue: there is no such family, or no such data set.
    """
    return (*family(name).axes, *catalog.dataset(dataset).axes)


def network(
    name: str, *, input_shape: Shape, classes: int, vocabulary: int = 0, dtype: str = "float32", **sizes: int
) -> Network:
    """Return the network of family `name` for one data set; tokens become vectors first.

    Args:
        name: key of `FAMILIES`.
        input_shape: (features,) or (channels, height, width), or (steps,) of tokens.
        classes: number of classes.
        vocabulary: number of different tokens, if samples are tokens.
        dtype: number format of the network.
        sizes: values of `AXES` that shape the family; others are ignored.
    """
    facts, shape, front = family(name), input_shape, tuple[Layer, ...]()
    if vocabulary and not facts.library:
        width = sizes["hidden_size"] if facts.of_sequences else TOKEN_WIDTH
        front = (embedding(vocabulary, width, shape[0]),)
        shape = (*shape, width)
    layers = front + facts.layers(shape, classes, sizes)
    return Network(input_shape=input_shape, classes=classes, layers=layers, dtype=dtype, tokens=vocabulary > 0)
