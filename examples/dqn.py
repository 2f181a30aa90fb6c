"""Q-learning from a memory of moves. What one learns: a tiny network and batches drawn each step keep a GPU waiting."""

import copy

import torch
from torch import nn


def build(size, device):
    """A network of `size` neurons, and a memory of random moves on the host."""
    online = nn.Sequential(nn.Linear(4, size), nn.ReLU(), nn.Linear(size, 2)).to(device)
    target, optimizer = copy.deepcopy(online), torch.optim.Adam(online.parameters())
    states, rewards, moves = torch.randn(2001, 4), torch.rand(2000), torch.randint(0, 2, (2000, 1))

    def step():
        drawn = torch.randint(0, 2000, (32,))
        now, after = states[drawn].to(device), states[drawn + 1].to(device)
        with torch.no_grad():
            wanted = rewards[drawn].to(device) + 0.99 * target(after).max(1).values
        found = online(now).gather(1, moves[drawn].to(device)).squeeze(1)
        optimizer.zero_grad()
        nn.functional.smooth_l1_loss(found, wanted).backward()
        optimizer.step()

    return step
