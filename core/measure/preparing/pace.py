"""Whether a training can be timed within its budget at all, before a step of it is run.

A step is never shorter than its matrix products. Where even these would take a multiple of the budget, nothing is
begun, since a step that has begun cannot be ended. What counts as too slow here is far beyond what a budget cuts short.
"""

import functools
import time

import torch

from core import units
from core.errors import TooSlow
from core.measure.device.devices import Device
from core.measure.readings.timer import MIN_BLOCK_STEPS

FIRST_STEPS = 4 + MIN_BLOCK_STEPS
"""Steps up to the end of the first block: the first of all, one to warm up, two to lead in."""

PATIENCE = 2.0
"""How many budgets these may take; the estimate is of matrix products alone, so they take longer still."""

SLOWEST_FLOPS = {"cpu": 5e9}
SLOWEST_ACCELERATOR_FLOPS = 5e11
"""Operations a second that any device manages: what takes no longer than the budget with these needs no look."""

PRODUCT_SIZE = {"cpu": 1024}
ACCELERATOR_PRODUCT_SIZE = 4096
"""Rows and columns of the product that is timed: some 50 ms on a core, a few on an accelerator."""


def check_speed(flops_per_step: int, budget_s: float, device: Device, called: str) -> None:
    """Find out whether the first block can be timed within a few budgets on a device, `called` so for people.

    Raises:
        TooSlow: it cannot.
    """
    kind = device.torch.type
    flops = FIRST_STEPS * flops_per_step
    if flops <= budget_s * SLOWEST_FLOPS.get(kind, SLOWEST_ACCELERATOR_FLOPS):
        return
    needed_s = flops / product_flops(device)
    if needed_s > PATIENCE * budget_s:
        reason = (
            f"one step on {called} takes at least {units.format_duration(needed_s / FIRST_STEPS)}, {FIRST_STEPS} are "
            "needed "
            f"before the first block is timed, and the budget is {units.format_duration(budget_s)}"
        )
        raise TooSlow(reason, "A smaller model or batch is needed, or a longer budget.")


@functools.cache
def product_flops(device: Device) -> float:
    """Operations a second of a matrix product in fp32 on a device, by the quicker of two."""
    size = PRODUCT_SIZE.get(device.torch.type, ACCELERATOR_PRODUCT_SIZE)
    factor = torch.ones(size, size, device=device.torch)
    quickest_s = min(_product_s(factor, device) for _ in range(2))
    return 2 * size**3 / quickest_s


def _product_s(factor: torch.Tensor, device: Device) -> float:
    device.synchronize()
    began = time.perf_counter()
    torch.mm(factor, factor)
    device.synchronize()
    return time.perf_counter() - began
