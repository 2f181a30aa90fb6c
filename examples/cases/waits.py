"""Losses read by the host in each step, as for a progress bar. What one learns: reading a value waits for all work."""

import torch
from torch import nn


def _training(size, device, losses):
    """A wide network on batches of 1,024, whose operations have much to compute; and how many losses a step has."""
    model = nn.Sequential(nn.Linear(64, size), nn.ReLU(), nn.Linear(size, losses)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = torch.randn(1024, 64).to(device)

    def step():
        optimizer.zero_grad()
        each = (model(rows) ** 2).mean(0)
        each.sum().backward()
        optimizer.step()
        return each.detach()

    return step


def each_step(size, device):
    """Log the loss of every step."""
    train, log = _training(size, device, 1), []

    def step():
        log[:] = [train().item()]

    return step


def each_part(size, device):
    """Log eight parts of the loss of every step, each brought to the host on its own."""
    train, log = _training(size, device, 8), []

    def step():
        log[:] = [float(part.cpu()) for part in train()]

    return step


def now_and_then(size, device):
    """Log one loss in every fifty steps."""
    train, log, done = _training(size, device, 1), [], 0

    def step():
        nonlocal done
        loss, done = train(), done + 1
        if done % 50 == 0:
            log[:] = [loss.item()]

    return step


def parts_now_and_then(size, device):
    """Log eight parts of the loss in every fifty steps, together."""
    train, log, done = _training(size, device, 8), [], 0

    def step():
        nonlocal done
        parts, done = train(), done + 1
        if done % 50 == 0:
            log[:] = parts.tolist()

    return step
