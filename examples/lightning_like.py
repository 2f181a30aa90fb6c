"""A module in Lightning's manner, without Lightning. What one learns: what steps take without the trainer."""

import torch
from torch import nn

from core.own import from_lightning


class Tabular(nn.Module):
    """Twenty columns, two classes."""

    def __init__(self, size):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, size), nn.ReLU(), nn.Linear(size, 2))

    def training_step(self, batch, batch_idx):
        """The loss of a batch."""
        return nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def configure_optimizers(self):
        """An optimizer with its schedule, as Lightning takes it."""
        return {"optimizer": torch.optim.AdamW(self.parameters())}


def build(size, device):
    """A hidden layer of `size` neurons."""
    rows, labels = torch.randn(1024, 20), torch.randint(0, 2, (1024,))
    return from_lightning(Tabular(size), list(zip(rows.split(64), labels.split(64), strict=True)), device)
