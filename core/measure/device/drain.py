"""Whether waiting for a device really waits: tried before anything is timed on it.

A clock that is read after a drain tells the truth only if no work is left. A backend whose `synchronize` returns early
would make its device look fast, whatever is measured. A value cannot be read before it is there: if reading one takes
a noticeable share of the work after the drain, work was left.
"""

import time
from collections.abc import Callable
from functools import partial

import torch

from core import units
from core.errors import DeviceUnavailable
from core.measure.readings.timer import Clock, Synchronizable

WORK_S = 0.3
"""Work that is queued, in seconds: so long that neither queueing it nor reading one value passes for it."""

NOTICEABLE = 0.1
"""Share of the work that may be left: reading a value takes far less than a tenth of `WORK_S` on any bus."""

TRIES = 3
"""Tries before a device is refused: on a busy machine reading a value may wait, but not every time."""

SIZES = 512, 4096
"""Rows and columns of the products that are tried first, and of the largest, whose matrices take 64 MiB each."""

MOST_PRODUCTS = 512
"""Products in a row; queues of launches are full at about a thousand, and who queues more waits without a drain."""

Queue = Callable[[int, int], Callable[[], object]]
"""Queues products of matrices of a size, so many in a row, each of the one before; returns what reads a value."""


def check_synchronization(device: Synchronizable, handle: torch.device) -> None:
    """Refuse a device that is not done when it says so.

    Raises:
        DeviceUnavailable: work was left.
    """
    queue = partial(_queue, handle)
    least = 1.0
    for _ in range(TRIES):
        least = min(least, share_left(device, queue))
        if least <= NOTICEABLE:
            return
    raise DeviceUnavailable(
        f"The device {handle} is not timed: when PyTorch said that it had done all its work, "
        f"{units.format_share(least)} "
        "of the work was left, so every time would be too short."
    )


def share_left(device: Synchronizable, queue: Queue, clock: Clock = time.perf_counter_ns) -> float:
    """Share of its work that a device had left when it was said to be drained.

    The work is doubled until it takes `WORK_S` up to the value that is read, so an early drain cannot make it short.
    """
    (size, largest), products = SIZES, 1
    while True:
        queue(size, products)()  # what is done for the first time loads libraries, or is compiled when it is read
        device.synchronize()
        began = clock()
        read = queue(size, products)
        device.synchronize()
        drained = clock()
        read()
        ended = clock()
        whole_s = (ended - began) / 1e9
        if whole_s >= WORK_S or products >= MOST_PRODUCTS:
            return (ended - drained) / max(1, ended - began)
        size, products = (2 * size, products) if size < largest else (size, 2 * products)


def _queue(device: torch.device, size: int, products: int) -> Callable[[], object]:
    factor = torch.full((size, size), 1 / size, device=device)
    product = factor
    for _ in range(products):
        product = torch.mm(product, factor)
    return lambda: product[0, 0].item()
