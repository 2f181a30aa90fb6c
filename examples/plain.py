"""A loop as it stands in a script, with a `yield` in it. What one learns: nothing else is needed to time one's own."""

import torch


def build(size, device):
    """Weights of a line with `size` terms, found by hand."""
    inputs = torch.randn(256, size).to(device)
    wanted = inputs.sum(1)
    weights = torch.zeros(size, device=device, requires_grad=True)
    while True:
        loss = ((inputs @ weights - wanted) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            weights -= 0.1 / size * weights.grad
            weights.grad = None
        yield loss.detach()
