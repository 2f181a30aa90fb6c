"""The operations of a training step on a GPU, from the layers alone: computation, memory traffic and launches.

The step is eager PyTorch in float32 with cross entropy and SGD without momentum, as in `core.measure.training`. Layers
have counts of parameters, operations and launches if given; the rest was counted in PyTorch's dispatcher.

The module also estimates the cost of a training before it is measured. For networks the cost follows from their layers.
For a fit of gradient boosting it is unknown: its estimate orders sizes, enforces server limits and prevents
out-of-memory errors, and is never shown as a fact.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..experiment import Point
from .layers import FLOAT_BYTES, Layer, Network, Shape

OperationKind = Literal["matmul", "conv", "conv_weights", "conv3x3", "conv3x3_weights", "memory"]

OPERATION_KINDS: tuple[OperationKind, ...] = ("matmul", "conv", "conv_weights", "conv3x3", "conv3x3_weights", "memory")
"""Kinds of operation: matrix products, convolutions, the gradient of their weights, and memory operations.

`conv3x3` and `conv3x3_weights` are convolutions with 3×3 kernels and stride 1, for which an algorithm with fewer
multiplications exists (Winograd). Memory operations only move numbers.
"""

WINOGRAD_WINDOW = 9 * 16
"""Minimum product of channels and taps of a convolution for which that algorithm is faster despite its transforms."""

LOSS_LAUNCHES, GATHER_LAUNCHES = 5, 2
"""Number of operations of the loss, forward and backward, and of gathering a batch from resident samples."""

GATHERED_BYTES = 256 * 2**10
"""Limit in bytes up to which several resident batches are gathered at once; this fits any cache.

For small batches the call takes as long as the gathering. Large ones are still in the cache when they are read if each
is gathered separately.
"""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation of a device.

    Attributes:
        flops: multiplications and additions; 0 if numbers are only moved.
        bytes: bytes read and written.
        outputs: numbers that a product or convolution computes, which determine how well it fills the device.
        count: number of times per step.
    """

    kind: OperationKind
    flops: int = 0
    bytes: int = 0
    outputs: int = 0
    count: int = 1


@dataclass(frozen=True, kw_only=True)
class LayerWork:
    """Work of a step for one layer, forward and backward.

    Attributes:
        name: name of its class in torch or in `core.measure.networks`.
        shape: shape of a sample before and after the layer: "20 → 1,000".
        launches: number of operations that PyTorch dispatches.
    """

    name: str
    shape: str
    parameters: int
    flops: int
    launches: int
    operations: tuple[Operation, ...]


@dataclass(frozen=True, kw_only=True)
class StepWork:
    """Work of a training step.

    Attributes:
        layers: layers with work.
        update: update of all weights, in one launch.
        more: the loss, and gathering the batch from resident samples.
        uncovered: names of layers whose operations are unknown.
    """

    layers: tuple[LayerWork, ...]
    update: Operation
    more: tuple[Operation, ...]
    launches: int
    uncovered: tuple[str, ...] = ()

    @property
    def operations(self) -> tuple[Operation, ...]:
        """All operations except the update."""
        return (*(one for layer in self.layers for one in layer.operations), *self.more)


def describe_step(network: Network, batch_size: int, *, gathers: bool = True) -> StepWork:
    """Return the work of a network's step for one batch.

    Args:
        network: network with layers; without layers, as for boosted trees, the step is empty.
        batch_size: number of samples.
        gathers: whether the batch is gathered from resident samples.
    """
    layers: list[LayerWork] = []
    uncovered: list[str] = []
    shape, first = network.input_shape, network.first if network.layers else None
    for layer in network.layers:
        name, arguments = layer.module
        if name not in _MAKERS:  # as of recurrent layers, which a GPU runs as one fused sequence
            uncovered.append(name)
            before, shape = shape, (arguments[2],)
            layers.append(_layer_work(layer, before, shape, (), 0, batch_size, is_first=layer is first))
            continue
        made, after, launches = _MAKERS[name](arguments, shape, batch_size)
        is_first = layer is first and layer.input_flops > 0
        if made:
            kept = tuple(made[:-1]) if is_first else tuple(made)  # makers put the gradient of the input last
            layers.append(_layer_work(layer, shape, after, kept, launches, batch_size, is_first=is_first))
        shape = after
    batch = [_move(2 * batch_size * math.prod(network.input_shape)), _move(4 * batch_size)] if gathers else []
    loss = [_move(4 * batch_size * network.classes, LOSS_LAUNCHES)]
    return StepWork(
        layers=tuple(layers),
        update=_move(3 * network.parameters),
        more=(*loss, *batch),
        launches=sum(layer.launches for layer in layers) + LOSS_LAUNCHES + 1 + GATHER_LAUNCHES * gathers,
        uncovered=tuple(dict.fromkeys(uncovered)),
    )


def _layer_work(
    layer: Layer,
    before: Shape,
    after: Shape,
    operations: tuple[Operation, ...],
    launches: int,
    batch_size: int,
    *,
    is_first: bool,
) -> LayerWork:
    known = layer.launches - layer.input_launches * is_first if layer.launches else launches
    shown = [" × ".join(f"{size:,}" for size in shape) for shape in (before, after)]
    return LayerWork(
        name=layer.module[0],
        shape=" → ".join(dict.fromkeys(shown)),
        parameters=layer.parameters,
        flops=batch_size * (layer.flops - layer.input_flops * is_first),
        launches=known,
        operations=operations,
    )


def _move(numbers: int, count: int = 1) -> Operation:
    return Operation(kind="memory", bytes=FLOAT_BYTES * numbers // count, count=count)


def _multiply(rows: int, columns: int, inner: int, batch: int = 1, count: int = 1) -> Operation:
    moved = rows * inner + inner * columns + rows * columns
    return Operation(
        kind="matmul",
        flops=2 * batch * rows * columns * inner,
        bytes=FLOAT_BYTES * batch * moved,
        outputs=batch * rows * columns,
        count=count,
    )


Made = tuple[Sequence[Operation], Shape, int]
"""Operations with the gradient of the input last, the output shape, and launches that the layer does not count."""


def _make_linear(arguments: tuple[Any, ...], shape: Shape, batch: int) -> Made:
    inputs, outputs = arguments
    rows = batch * math.prod(shape[:-1])
    forward, weights = _multiply(rows, outputs, inputs), _multiply(inputs, outputs, rows)
    return (
        [forward, weights, _move(rows * outputs), _multiply(rows, inputs, outputs)],
        (*shape[:-1], outputs),
        4,
    )


def _make_conv(arguments: tuple[Any, ...], shape: Shape, batch: int) -> Made:
    inputs, channels, kernel = arguments[:3]
    stride, padding, bias = (arguments[3], arguments[4], arguments[7]) if len(arguments) > 3 else (1, 0, True)
    after = [(size + 2 * padding - length) // stride + 1 for size, length in zip(shape[1:], kernel, strict=True)]
    taps, read, made = math.prod(kernel), batch * math.prod(shape), batch * channels * math.prod(after)
    window = inputs * taps
    square = kernel == (3, 3) and stride == 1
    flops, moved = 2 * made * window, FLOAT_BYTES * (read + window * channels + made)

    def convolve(kind: Literal["conv", "conv_weights"], outputs: int, depth: int) -> Operation:
        fast: dict[str, OperationKind] = {"conv": "conv3x3", "conv_weights": "conv3x3_weights"}
        chosen: OperationKind = fast[kind] if square and depth >= WINOGRAD_WINDOW else kind
        return Operation(kind=chosen, flops=flops, bytes=moved, outputs=outputs)

    biases = [_move(2 * made), _move(made)] if bias else []
    weights = convolve("conv_weights", channels * window, window)
    of_input = convolve("conv", read, channels * taps)
    return [convolve("conv", made, window), weights, *biases, of_input], (channels, *after), 2


def _make_elementwise(numbers: tuple[int, int], launches: int = 2) -> Callable[..., Made]:
    """Return an elementwise layer, with the numbers moved per input number, forward and backward."""

    def make(_: tuple[Any, ...], shape: Shape, batch: int) -> Made:
        size = batch * math.prod(shape)
        return [_move(share * size) for share in numbers], shape, launches

    return make


def _make_pool(arguments: tuple[Any, ...], shape: Shape, batch: int) -> Made:
    kernel = arguments[0]
    after = (shape[0], *(size // length for size, length in zip(shape[1:], kernel, strict=True)))
    read, made = batch * math.prod(shape), batch * math.prod(after)
    return [_move(read + 3 * made), _move(2 * read + 3 * made)], after, 2


def _make_mean(after: Callable[[Shape], Shape]) -> Callable[..., Made]:
    def make(_: tuple[Any, ...], shape: Shape, batch: int) -> Made:
        size = batch * math.prod(shape)
        return [_move(size), _move(size)], after(shape), 2

    return make


def _make_view(after: Callable[[tuple[Any, ...], Shape], Shape]) -> Callable[..., Made]:
    return lambda arguments, shape, _: ((), after(arguments, shape), 0)


def _flatten(arguments: tuple[Any, ...], shape: Shape) -> Shape:
    if arguments:  # the channels and the height of an image
        return (shape[0] * shape[1], *shape[2:])
    return (math.prod(shape),)


def _make_embedding(arguments: tuple[Any, ...], shape: Shape, batch: int) -> Made:
    rows, width = arguments
    taken = batch * math.prod(shape) * width
    return [_move(2 * taken), _move(2 * taken + rows * width)], (*shape, width), 2


def _make_residual(arguments: tuple[Any, ...], shape: Shape, batch: int) -> Made:
    inputs, outputs, stride, groups = arguments
    made: list[Operation] = []
    after = shape

    def add(name: str, *given: Any) -> None:
        nonlocal after
        operations, after, _ = _MAKERS[name](given, after, batch)
        made.extend(operations)

    for step in (stride, 1):
        add("Conv2d", inputs if step == stride and not made else outputs, outputs, (3, 3), step, 1, 1, 1, False)
        add("GroupNorm", groups, outputs)
        add("ReLU")
    if stride > 1 or inputs != outputs:
        end, after = after, shape
        add("Conv2d", inputs, outputs, (1, 1), stride, 0, 1, 1, False)
        add("GroupNorm", groups, outputs)
        after = end
    size = batch * math.prod(after)
    return [*made, _move(3 * size), _move(3 * batch * math.prod(shape))], after, 0


ATTENTION_LAUNCHES, CELL_LAUNCHES = 30, 14
"""Launches of a block of attention, as PyTorch dispatches them; added up, of a cell in one time step on a GPU, which
computes all gates in one: two products and the gates forward; the gates, a sum, four products, four sums of gradients,
one of states backward."""


def _make_encoder(arguments: tuple[Any, ...], shape: Shape, batch: int) -> Made:
    hidden, heads = arguments
    steps, each = shape[0], max(1, hidden // heads)
    inner, size = heads * each, batch * shape[0] * hidden
    made: list[Operation] = []
    for inputs, outputs in ((hidden, 3 * inner), (inner, hidden), (hidden, 4 * hidden), (4 * hidden, hidden)):
        made += _make_linear((inputs, outputs), (steps, inputs), batch)[0]
    # scores and values forward, scores again and four gradients backward
    made += [_multiply(steps, steps, each, batch * heads, 4), _multiply(steps, each, steps, batch * heads, 3)]
    norms, sums = [_move(2 * size, 1), _move(3 * size, 1)] * 2, [_move(3 * size)] * 4
    return [*made, *norms, *sums, _move(5 * 4 * size, 2), _move(6 * size, 2)], shape, ATTENTION_LAUNCHES


def _make_cells(arguments: tuple[Any, ...], shape: Shape, batch: int) -> Made:
    kind, inputs, hidden, depth = arguments
    steps, gates = shape[0], {"LSTM": 4, "GRU": 3}[kind] * hidden
    made: list[Operation] = []
    for taken in (inputs, *[hidden] * (depth - 1)):
        for source in (taken, hidden):
            made += [
                _multiply(batch, gates, source, count=steps),
                _multiply(source, gates, batch, count=steps),
                _multiply(batch, source, gates, count=steps),
                Operation(kind="memory", bytes=FLOAT_BYTES * 3 * gates * source, count=steps),
            ]
        made.append(Operation(kind="memory", bytes=FLOAT_BYTES * 4 * batch * gates, count=4 * steps))
    return made, (hidden,), CELL_LAUNCHES * steps * depth


_MAKERS: dict[str, Callable[[tuple[Any, ...], Shape, int], Made]] = {
    "Linear": _make_linear,
    "Conv2d": _make_conv,
    "ReLU": _make_elementwise((2, 3)),
    "GroupNorm": _make_elementwise((2, 3)),
    "Positions": _make_elementwise((3, 1)),
    "MaxPool2d": _make_pool,
    "AdaptiveAvgPool2d": _make_mean(lambda shape: (shape[0], 1, 1)),
    "Mean": _make_mean(lambda shape: shape[1:]),
    "Flatten": _make_view(_flatten),
    "Unflatten": _make_view(lambda arguments, shape: (*arguments[1], *shape[1:])),
    "Embedding": _make_embedding,
    "ResidualBlock": _make_residual,
    "EncoderBlock": _make_encoder,
    "CellLoop": _make_cells,
}
"""Functions by the name of a layer's class.

Fused recurrent layers are omitted: the work of a library on a sequence is unknown, and no published training checks a
model of it.
"""


FIT_OPERATIONS = 20
"""Equivalent operations per number of a table, per round and class, within an order of magnitude.

A fit of 20,000 rows thus counts like a network with the same duration.
"""

FIT_BYTES = 16 * 2**20
"""Bytes that any fit needs for threads, buffers and the first use of a library.

XGBoost needed 12 MiB for 3,000 rows, the others less than 8. The figures below are bounds too
(`tests.benchmarks.boosting --memory`).
"""

FIT_TABLES, FIT_ROW_BYTES, FIT_TREE_BYTES = 4, 112, 16
"""Memory estimate of a fit: extra copies of its table at most, bytes per row, and bytes per row and tree of a round.

Bytes per row do not depend on its width; scikit-learn has about 100. Bytes per row and tree are gradients of both
orders, and the sum of the trees so far.
"""

HISTOGRAM_BYTES = 2 * 256 * 16
"""Bytes for each leaf and feature: a histogram of 256 bins with two sums in double precision.

XGBoost stores those of all nodes, twice as many as leaves; the other libraries store fewer.
"""


def work(point: Point) -> int:
    """Return the operations of one step, or a quantity that grows with them if they are unknown."""
    if point.training:
        return point.size
    network = point.network
    if not point.is_fit:
        return network.flops_per_step(point.batch_size)
    numbers = point.samples * network.sample_bytes // network.number_bytes
    return FIT_OPERATIONS * numbers * point.rounds * _trees(network.classes)


def step_bytes(point: Point, at_once: int) -> int:
    """Return the bytes that a step of a network or fit needs in addition to its samples.

    Args:
        point: the training; not a custom script.
        at_once: number of samples of a batch that are trained at once.
    """
    network = point.network
    if not point.is_fit:
        return network.memory_bytes(at_once)
    of_row = FIT_TABLES * network.sample_bytes + FIT_ROW_BYTES + FIT_TREE_BYTES * _trees(network.classes)
    features = network.sample_bytes // network.number_bytes
    return FIT_BYTES + point.samples * of_row + min(point.leaves, point.samples) * features * HISTOGRAM_BYTES


def _trees(classes: int) -> int:
    """Return the number of trees per round: one for two classes, otherwise one per class."""
    return classes if classes > 2 else 1
