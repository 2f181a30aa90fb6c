"""Accelerators of this machine for tests, a training on one, and CUDA's own report of calls that wait for it."""

import contextlib
import warnings
from collections.abc import Iterator

import pytest
import torch

from core.measure import datasets, devices, networks
from core.measure.training import Training
from core.question.experiment import Point

ACCELERATORS = [info.device for info in devices.discover() if info.kind != "cpu"]

ACCELERATOR_MARKS = [
    pytest.mark.gpu,
    pytest.mark.timed,
    pytest.mark.skipif(not ACCELERATORS, reason="PyTorch sees no accelerator on this machine"),
]

POINT = Point(dataset="disc", model="doubling-mlp", depth=8, batch_size=100, epochs=100, shuffle=False)


def start_training(device: devices.Device, point: Point = POINT) -> Training:
    """A training on a device that has done its first fifty steps."""
    data = datasets.load_dataset(point.dataset, samples=point.samples, seed=0)
    feed = datasets.make_feed(point, data, data.train.to(device.torch), device.torch)
    started = Training(networks.build(point.network, 0).to(device.torch), feed, learning_rate=point.learning_rate)
    started.advance(50)
    device.synchronize()
    return started


@contextlib.contextmanager
def waits(mode: str) -> Iterator[None]:
    """Let CUDA raise (`error`) or warn (`warn`) at every call that waits, until the block ends, however it ends.

    Torch warns that the mode itself is a prototype, which is an error wherever warnings are.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Ss]ynchronization debug mode")
        if mode == "warn":
            warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode(mode)
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")
