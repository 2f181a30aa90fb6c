"""Trainings that have begun in a lane."""

import torch

from core.measure import datasets, networks
from core.measure.training import Training
from core.question.experiment import Point
from core.question.lanes import PLAIN, Lane

CPU = torch.device("cpu")
POINT = Point(samples=300, hidden_size=8, depth=1, batch_size=20)
"""15 steps an epoch, of which no call of 2, 4 or 10 steps is a divisor."""
CNN = Point(samples=60, model="cnn", batch_size=20)


def started(data, lane: Lane = PLAIN, *, point: Point = POINT, steps: int = 0, **options: object) -> Training:
    feed = datasets.make_feed(point, data, data.train, CPU, first_step=steps)
    network = networks.build(point.network, seed=0)
    training = Training(network, feed, learning_rate=0.1, lane=lane, **options)
    training.rewind(feed, steps)
    size = point.batch_size
    training.prepare((data.train.samples[:size], data.train.labels[:size]), remainder=True)
    return training


def losses(training: Training, *pieces: int) -> list[float]:
    for steps in pieces:
        training.advance(steps)
    return training.read_losses()


def graph(steps: int = 1, **fields: object) -> Lane:
    return Lane(execution="graph", steps_per_call=steps, **fields)
