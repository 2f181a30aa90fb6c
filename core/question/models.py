"""Model families as plain data: a network is a list of layers whose cost is known before torch is imported.

Parameters, floating-point operations and memory follow from the layers alone, so a page can show them
while a slider moves. `core.measure.networks` turns the same list into a torch module; a test holds every figure
here against torch's own counts. Nothing here trains, times or imports torch.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from core.errors import InvalidValue

FLOAT_BYTES = 4
"""Bytes of one fp32 number, the only precision of parameters."""

INDEX_BYTES = 8
"""Bytes of one int64 index: labels, and where each max-pool window had its maximum."""

CNN_CHANNELS = (6, 12)
CNN_FEATURES = (120, 60)
CNN_KERNEL = 5
CNN_POOL = 2
"""The deeplizard tutorial's network: conv 1→6 and 6→12 of 5×5, max-pool 2, fully connected 120 → 60."""


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Fully connected layer with bias, (batch, inputs) → (batch, outputs)."""

    inputs: int
    outputs: int

    @property
    def parameters(self) -> int:
        return self.inputs * self.outputs + self.outputs

    @property
    def forward_flops(self) -> int:
        """Operations per sample, 2·inputs·outputs; the bias is not counted, as in torch's FlopCounterMode."""
        return 2 * self.inputs * self.outputs

    @property
    def saved_bytes(self) -> int:
        """Bytes per sample kept for the backward pass beyond the layer's input, which its maker keeps."""
        return 0


@dataclass(frozen=True, kw_only=True)
class Conv2d:
    """Convolution with bias, stride 1, no padding, (batch, in_channels, height, width) in."""

    in_channels: int
    out_channels: int
    height: int
    width: int
    kernel: tuple[int, int]

    @property
    def out_shape(self) -> tuple[int, int, int]:
        return (self.out_channels, self.height - self.kernel[0] + 1, self.width - self.kernel[1] + 1)

    @property
    def parameters(self) -> int:
        window = self.in_channels * self.kernel[0] * self.kernel[1]
        return window * self.out_channels + self.out_channels

    @property
    def forward_flops(self) -> int:
        """Operations per sample: two for every weight of every output position."""
        window = self.in_channels * self.kernel[0] * self.kernel[1]
        return 2 * window * _product(self.out_shape)

    @property
    def saved_bytes(self) -> int:
        return 0


@dataclass(frozen=True, kw_only=True)
class ReLU:
    """Rectifier over `elements` numbers per sample; keeps its result for the backward pass."""

    elements: int
    parameters: int = 0
    forward_flops: int = 0

    @property
    def saved_bytes(self) -> int:
        return FLOAT_BYTES * self.elements


@dataclass(frozen=True, kw_only=True)
class MaxPool2d:
    """Max-pooling with stride equal to its kernel; keeps its result and the index of each maximum."""

    shape: tuple[int, int, int]
    kernel: tuple[int, int]
    parameters: int = 0
    forward_flops: int = 0

    @property
    def out_shape(self) -> tuple[int, int, int]:
        channels, height, width = self.shape
        return (channels, height // self.kernel[0], width // self.kernel[1])

    @property
    def saved_bytes(self) -> int:
        return (FLOAT_BYTES + INDEX_BYTES) * _product(self.out_shape)


@dataclass(frozen=True, kw_only=True)
class Flatten:
    """(batch, …) → (batch, features); a view, free of cost."""

    parameters: int = 0
    forward_flops: int = 0
    saved_bytes: int = 0


Layer = Linear | Conv2d | ReLU | MaxPool2d | Flatten


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network as data, with what it costs.

    Attributes:
        input_shape: shape of one sample as the data set delivers it.
        classes: number of outputs.
        layers: in order; the last is a `Linear` to the classes.
    """

    input_shape: tuple[int, ...]
    classes: int
    layers: tuple[Layer, ...]

    @property
    def parameters(self) -> int:
        """Trainable numbers."""
        return sum(layer.parameters for layer in self.layers)

    def flops_per_step(self, batch_size: int) -> int:
        """Floating-point operations of forward and backward over one batch.

        Each layer with weights multiplies three times: forward, gradient of its weights, gradient of its
        input; the first layer needs no gradient of its input. Counted as torch.utils.flop_counter does:
        matrix products and convolutions only.
        """
        forward = [layer.forward_flops for layer in self.layers if layer.forward_flops]
        return batch_size * (3 * sum(forward) - forward[0])

    def memory_bytes(self, batch_size: int) -> int:
        """Bytes that a training step holds at once: weights, their gradients, and what backward needs.

        The batch, every kept activation, the log-probabilities and the labels; an allocator's slack and
        a device's own context come on top.
        """
        weights_and_gradients = 2 * FLOAT_BYTES * self.parameters
        per_sample = FLOAT_BYTES * (_product(self.input_shape) + self.classes) + INDEX_BYTES
        per_sample += sum(layer.saved_bytes for layer in self.layers)
        return weights_and_gradients + batch_size * per_sample


@dataclass(frozen=True, kw_only=True)
class Family:
    """One model family.

    Attributes:
        name: key in links, on the command line and in the store.
        title: label for people.
        summary: one sentence.
        axes: the sizes that shape it, the first of which reaches a wanted number of parameters; others do not matter.
    """

    name: str
    title: str
    summary: str
    axes: tuple[str, ...]

    @property
    def size(self) -> str:
        """The size by which it reaches a wanted number of parameters; empty if it has none."""
        return self.axes[0] if self.axes else ""


FAMILIES: dict[str, Family] = {
    entry.name: entry
    for entry in (
        Family(name="linear", title="Linear", summary="One layer from features to classes.", axes=()),
        Family(
            name="mlp",
            title="Fully connected",
            summary="Hidden layers of equal size, each neuron connected with all of the layer before, ReLU between.",
            axes=("hidden_size", "depth"),
        ),
        Family(
            name="doubling-mlp",
            title="Doubling layers",
            summary="Fully connected layers, each twice the size of the one before: features → 4 → 8 → … → classes.",
            axes=("depth",),
        ),
        Family(
            name="cnn",
            title="Convolutional",
            summary="Two convolutions with max-pooling, then three fully connected layers; the width scales them all.",
            axes=("width",),
        ),
    )
}

AXES = tuple(dict.fromkeys(axis for entry in FAMILIES.values() for axis in entry.axes))
"""Every size that some family is shaped by."""


def family(name: str) -> Family:
    """Facts of the model family called `name`.

    Raises:
        InvalidValue: no family has that name.
    """
    try:
        return FAMILIES[name]
    except (KeyError, TypeError):
        raise InvalidValue("model", name, f"one of {', '.join(FAMILIES)}") from None


def network(
    name: str, *, input_shape: tuple[int, ...], classes: int, hidden_size: int = 0, depth: int = 0, width: int = 0
) -> Network:
    """The network of family `name` for one data set.

    Args:
        name: key of `FAMILIES`.
        input_shape: (features,) or (channels, height, width).
        classes: number of classes.
        hidden_size: neurons of each hidden layer (`mlp`).
        depth: hidden layers (`mlp`) or linear layers but the last of the family's own (`doubling-mlp`).
        width: factor on every channel and feature count (`cnn`).
    """
    builders: dict[str, Callable[[], tuple[Layer, ...]]] = {
        "linear": lambda: _dense((_product(input_shape), classes)),
        "mlp": lambda: _dense((_product(input_shape), *[hidden_size] * depth, classes)),
        "doubling-mlp": lambda: _dense((_product(input_shape), *(2**i for i in range(2, depth + 1)), classes)),
        "cnn": lambda: _convolutional(_as_image(input_shape), classes, width),
    }
    layers = builders[family(name).name]()
    flatten: tuple[Layer, ...] = (Flatten(),) if len(input_shape) > 1 and name != "cnn" else ()
    return Network(input_shape=input_shape, classes=classes, layers=flatten + layers)


def _dense(sizes: tuple[int, ...]) -> tuple[Layer, ...]:
    layers: list[Layer] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [Linear(inputs=inputs, outputs=outputs), ReLU(elements=outputs)]
    return tuple(layers[:-1])


def _convolutional(image: tuple[int, int, int], classes: int, width: int) -> tuple[Layer, ...]:
    layers: list[Layer] = []
    for channels in CNN_CHANNELS:
        in_channels, height, rows_width = image
        kernel = (min(CNN_KERNEL, height), min(CNN_KERNEL, rows_width))
        convolution = Conv2d(
            in_channels=in_channels, out_channels=channels * width, height=height, width=rows_width, kernel=kernel
        )
        image = convolution.out_shape
        layers += [convolution, ReLU(elements=_product(image))]
        pool = MaxPool2d(shape=image, kernel=(min(CNN_POOL, image[1]), min(CNN_POOL, image[2])))
        if pool.kernel != (1, 1):
            layers.append(pool)
            image = pool.out_shape
    features = [_product(image), *(count * width for count in CNN_FEATURES), classes]
    return (*layers, Flatten(), *_dense(tuple(features)))


def _as_image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """A table's row is read as an image of one channel and one line, so that a CNN runs on every data set."""
    if len(shape) == 1:
        return (1, 1, shape[0])
    channels, height, width = shape
    return (channels, height, width)


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
