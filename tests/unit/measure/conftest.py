"""A host on which a step takes as long as a test says, and what is trained there."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from core.measure import contender, datasets, devices
from core.measure.timer import Timer
from core.measure.training import Training
from tests.fakes import FakeClock
from tests.unit.measure.started import POINT


@pytest.fixture
def machine(monkeypatch):
    """A host on which so many steps take as many seconds as `seconds` says."""
    clock, real = FakeClock(), Training.advance
    found = SimpleNamespace(clock=clock, seconds=lambda steps: steps * 1e-3, advanced=[])

    def advance(training, steps):
        real(training, steps)
        found.advanced.append(steps)
        clock.pass_s(found.seconds(steps))

    monkeypatch.setattr(Training, "advance", advance)
    monkeypatch.setattr(contender, "Timer", partial(Timer, clock=clock))
    threads = torch.get_num_threads()
    yield found
    torch.set_num_threads(threads)
    devices.use_strict_fp32()


@pytest.fixture(scope="module")
def data():
    return datasets.load_dataset("digits", samples=POINT.samples, seed=0)


@pytest.fixture
def uncompiled(monkeypatch):
    """Compiled lanes without the time that compiling takes."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
