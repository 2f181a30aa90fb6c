"""Messages along the edges of a graph, by gather and scatter. What one learns: such steps move memory, not numbers."""

import torch
from torch import nn


def build(size, device):
    """A random graph of `size` nodes with eight edges each."""
    ends = torch.randint(0, size, (2, 8 * size)).to(device)
    features, wanted = torch.randn(size, 32).to(device), torch.randint(0, 4, (size,)).to(device)
    layers = nn.ModuleList([nn.Linear(32, 32), nn.Linear(32, 4)]).to(device)
    optimizer = torch.optim.Adam(layers.parameters())

    def step():
        optimizer.zero_grad()
        nodes = features
        for layer in layers:
            messages = torch.zeros_like(nodes).index_add_(0, ends[1], nodes[ends[0]])
            nodes = layer(torch.relu(nodes + messages / 8))
        nn.functional.cross_entropy(nodes, wanted).backward()
        optimizer.step()

    return step
