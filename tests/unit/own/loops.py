"""A loop that tests watch, and what they ask of it."""

import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks
from torch.utils._python_dispatch import _get_current_dispatch_mode

from core.custom.watch import Watch

STEPS = 120


class Loop:
    """Whatever a test trains, ten milliseconds a step."""

    def __init__(self, costs, *, lr=0.1):
        self.costs = costs
        self.model = nn.Linear(2, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.batch = torch.ones(3, 2)

    def watch(self, *, batches=STEPS, model=True, **options):
        given = [self.batch] * batches if isinstance(batches, int) else batches
        options = {"clock": self.costs.clock, "synchronize": self.costs.drain, **options}
        return Watch(given, self.model if model else None, **options)

    def step(self, batch, *, host_s=0.01, update=True):
        loss = self.model(batch).sum()
        loss.backward()
        self.costs.clock.pass_s(host_s)
        if update:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss


def kinds(seen):
    return [found.kind for found in seen.findings]


def hooks_now():
    return len(_global_optimizer_post_hooks)


def on_top():
    return _get_current_dispatch_mode()
