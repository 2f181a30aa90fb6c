"""Images through residual blocks. What one learns: convolutions have enough work for a GPU at few channels already."""

import itertools

import torch
from torch import nn
from torch.utils.data import TensorDataset

from core.custom import from_module


class Block(nn.Module):
    """Two convolutions, and a way around them."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.around = nn.Conv2d(before, after, 1, stride, bias=False)
        self.through = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
        )

    def forward(self, images):
        """Both, added."""
        return torch.relu(self.through(images) + self.around(images))


def build(size, device):
    """Three blocks, of `size`, twice and four times as many channels, on 128 images of 16 × 16 random numbers."""
    channels = [3, size, 2 * size, 4 * size]
    blocks = [Block(before, after, 1 + (before > 3)) for before, after in itertools.pairwise(channels)]
    model = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * size, 10))
    images = TensorDataset(torch.randn(128, 3, 16, 16), torch.randint(0, 10, (128,)))
    return from_module(model, nn.functional.cross_entropy, images, device)
