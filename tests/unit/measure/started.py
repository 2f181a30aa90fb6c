"""Contenders that have begun, on made-up devices."""

import torch

from core.measure import datasets, networks
from core.measure.contender import MeasuredContender
from core.measure.training import Training
from core.question.experiment import Contender, Point

CPU = torch.device("cpu")
POINT = Point(samples=300, hidden_size=8, depth=1, batch_size=20, epochs=100)
"""15 steps an epoch."""


def started(data, name="cpu@1", **fields):
    measured = MeasuredContender(Contender.parse(name), Point(**{**vars(POINT), **fields}), data)
    measured.start()
    return measured


def warm(data, name="cpu@1", *, allowance_s=60.0, **fields):
    measured = started(data, name, **fields)
    assert len(list(measured.warm_up(allowance_s))) == len(measured.raw.warmup_steps)
    return measured


def plain(data, steps, **fields):
    """What anyone gets who trains so many steps."""
    point = Point(**{**vars(POINT), **fields})
    feed = datasets.make_feed(point, data, data.train, CPU)
    training = Training(networks.build(point.network, point.seed), feed, learning_rate=point.learning_rate)
    training.advance(steps)
    return training
