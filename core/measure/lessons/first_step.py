"""How far two contenders are apart after their first step: the same weights, the same batch, two orders of summation.

Rounding alone gives 1e-7 to 1e-5; a difference beyond 1e-3 is a bug or another precision.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from core.measure import networks
from core.measure.data import batches, datasets
from core.measure.data.datasets import Split
from core.measure.device import devices
from core.measure.lessons.stage import Stage
from core.question.demonstration import Demonstration
from core.question.experiment import Contender, Point
from core.results.exhibits.exhibit import FirstStep


def run_first_step_lesson(demonstration: Demonstration, stage: Stage) -> FirstStep:
    """Take the first step on both contenders and compare loss and gradients.

    Raises:
        DatasetUnavailable: the files of the data set are missing.
    """
    point, (one, other) = demonstration.point, demonstration.contenders
    stage.tell("loading data", total=2)
    data = datasets.load_point_data(point)
    first = batches.order(point, 0)[: point.batch_size]
    batch = Split(samples=data.train.samples[first], labels=data.train.labels[first])
    losses, gradients = [], []
    for done, contender in enumerate((one, other)):
        stage.tell(f"taking the first step on {contender.spoken}", done=done, total=2)
        stage.use_threads(contender)
        loss, gradient = _step(point, contender, batch)
        losses.append(loss)
        gradients.append(gradient)
    pairs = zip(gradients[0].items(), gradients[1].values(), strict=True)
    return FirstStep(
        parameters=tuple((name, relative(mine, theirs)) for (name, mine), theirs in pairs),
        loss_difference=relative(*(torch.tensor([loss], dtype=torch.float64) for loss in losses)),
        contenders=(str(one), str(other)),
    )


def relative(one: Tensor, other: Tensor) -> float:
    """Length of the difference over the length of `one`; 0 where the two are equal, 1 where that is no number."""
    difference, length = float((other - one).norm()), float(one.norm())
    if difference == 0:
        return 0.0
    return difference / length if length and math.isfinite(difference / length) else 1.0


def _step(point: Point, contender: Contender, batch: Split) -> tuple[float, dict[str, Tensor]]:
    """Loss and gradients of the first step, in float64 on the host."""
    device = devices.open_device(contender.device).torch
    network, placed = networks.build(point.network, point.seed).to(device), batch.to(device)
    loss = functional.cross_entropy(network(placed.samples), placed.labels)
    loss.backward()
    gradients = {}
    layers = [layer for layer in network if any(True for _ in layer.parameters())]
    for number, layer in enumerate(layers, start=1):
        for name, parameter in layer.named_parameters():
            gradient = parameter.grad
            assert gradient is not None
            gradients[f"layer {number} {name}"] = gradient.cpu().double()
    return float(loss.item()), gradients
