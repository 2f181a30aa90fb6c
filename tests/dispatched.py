"""torch's own count of the operations of a training step, which counts of ours are compared with."""

from collections.abc import Collection

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from core.measure import networks
from core.question import models


class _Counter(TorchDispatchMode):
    """Counts what is dispatched and starts work."""

    def __init__(self, views: Collection[str]) -> None:
        super().__init__()
        self.count, self._views = 0, views

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        namespace, name = str(function).split(".")[:2]
        self.count += namespace == "aten" and name not in self._views
        return function(*args, **(kwargs or {}))


def count_dispatched(
    network: models.Network, *, views: Collection[str], device: str, foreach: bool = True, tokens: bool = False
) -> int:
    """The operations of one step with one update of all weights, without those that only view memory."""
    module = networks.build(network, 0).to(device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, foreach=foreach)
    kind = torch.int64 if tokens else torch.float32
    samples = torch.zeros(8, *network.input_shape, dtype=kind, device=device)
    labels = torch.zeros(8, dtype=torch.int64, device=device)
    with _Counter(views) as counter:
        optimizer.zero_grad()
        functional.cross_entropy(module(samples), labels).backward()
        optimizer.step()
    return counter.count
