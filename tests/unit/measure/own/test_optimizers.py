"""Counters that optimizers of PyTorch read are no waits of one's own training; values that it reads itself are."""

import pytest
import torch

from core.measure.custom.op_counter import OperationCounter


def waits(step):
    step()  # which sets up the optimizer
    watching = OperationCounter(torch.device("cpu"), lambda: "here")
    with watching:
        step()
    return watching.counts["waits"]


@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop])
def test_counters_of_optimizers_are_no_waits(make):
    weight = torch.zeros(3, requires_grad=True)
    optimizer = make([weight], lr=0.1)

    def step():
        weight.grad = torch.ones(3)
        optimizer.step()

    assert waits(step) == 0
    assert waits(lambda: (step(), weight.sum().item())) == 1
