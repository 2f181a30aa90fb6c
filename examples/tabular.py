"""A table with words and numbers. What one learns: a large embedding is all memory, and its update reads every row."""

import torch
from torch import nn

from core.custom import from_module


class Table(nn.Module):
    """Two columns of words, each with a row for every one, and eight of numbers."""

    def __init__(self, words):
        super().__init__()
        self.columns = nn.ModuleList([nn.Embedding(words, 16) for _ in range(2)])
        self.layers = nn.Sequential(nn.Linear(2 * 16 + 8, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, row):
        """Classes of rows."""
        words, numbers = row
        embedded = [column(words[:, place]) for place, column in enumerate(self.columns)]
        return self.layers(torch.cat([*embedded, numbers], dim=1))


def build(size, device):
    """Columns of `size` words."""
    words, numbers = torch.randint(0, size, (16, 128, 2)), torch.randn(16, 128, 8)
    labels = (numbers.sum(2) > 0).long()
    rows = [((word, number), label) for word, number, label in zip(words, numbers, labels, strict=True)]
    return from_module(Table(size), nn.functional.cross_entropy, rows, device)
