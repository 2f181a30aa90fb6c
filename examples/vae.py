"""A variational autoencoder. What one learns: noise that is drawn on each device differs, so losses do too."""

import torch
from torch import nn

from core.custom import from_module


class Vae(nn.Module):
    """Images of 784 numbers through 16."""

    def __init__(self, size):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(784, size), nn.ReLU(), nn.Linear(size, 32))
        self.decode = nn.Sequential(nn.Linear(16, size), nn.ReLU(), nn.Linear(size, 784))

    def forward(self, images):
        """Images, mean and logarithm of the variance."""
        mean, log_variance = self.encode(images).chunk(2, dim=1)
        return self.decode(mean + torch.randn_like(mean) * (log_variance / 2).exp()), mean, log_variance


def loss_of(found, images):
    """Reconstruction and divergence."""
    decoded, mean, log_variance = found
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1).mean()
    return nn.functional.mse_loss(decoded, images) + divergence / 784


def build(size, device):
    """Layers of `size` neurons."""
    images = torch.rand(16, 64, 784)
    return from_module(Vae(size), loss_of, [(batch, batch) for batch in images], device)
