"""A module of Lightning's, if installed, and no trainer. What one learns: what a step takes that is no trainer's."""

import torch
from pytorch_lightning import LightningModule
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from core.custom import from_lightning


class Autoencoder(LightningModule):
    """Images of 784 numbers through 8."""

    def __init__(self, size):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(784, size), nn.ReLU(), nn.Linear(size, 8))
        self.decode = nn.Sequential(nn.Linear(8, size), nn.ReLU(), nn.Linear(size, 784))

    def training_step(self, batch, batch_idx):
        """The loss of a batch, which is logged too; without a trainer that does nothing."""
        images = batch[0].flatten(1)
        loss = nn.functional.mse_loss(self.decode(self.encode(images)), images)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        """An optimizer with its schedule, as Lightning takes it."""
        optimizer = torch.optim.AdamW(self.parameters())
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 100)}

    def train_dataloader(self):
        """Images of random numbers."""
        return DataLoader(TensorDataset(torch.rand(512, 28, 28)), batch_size=64)


def build(size, device):
    """Layers of `size` neurons."""
    module = Autoencoder(size)
    return from_lightning(module, module.train_dataloader(), device)
