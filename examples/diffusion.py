"""Noise is learned to be told from images. What one learns: a U-Net has work for a GPU, its time steps add little."""

import torch
from torch import nn


class UNet(nn.Module):
    """Down, up, and across; the time of the noise is added in the middle."""

    def __init__(self, channels):
        super().__init__()
        self.enter, self.down = nn.Conv2d(1, channels, 3, padding=1), nn.Conv2d(channels, 2 * channels, 3, 2, padding=1)
        self.time = nn.Sequential(nn.Linear(1, 2 * channels), nn.SiLU(), nn.Linear(2 * channels, 2 * channels))
        self.middle = nn.Conv2d(2 * channels, 2 * channels, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, 2)
        self.leave = nn.Conv2d(2 * channels, 1, 3, padding=1)

    def forward(self, images, time):
        """The noise that is in images."""
        high = nn.functional.silu(self.enter(images))
        low = nn.functional.silu(self.down(high)) + self.time(time[:, None])[:, :, None, None]
        return self.leave(torch.cat([high, self.up(nn.functional.silu(self.middle(low)))], dim=1))


def squares(count):
    """Images of 16 × 16 with a white square somewhere in each."""
    places, across = torch.randint(0, 10, (count, 2, 1)), torch.arange(16)
    inside = (across >= places) & (across < places + 6)
    return (inside[:, 0, :, None] & inside[:, 1, None, :]).float()[:, None]


def build(size, device):
    """A U-Net of `size` channels; noise and times are drawn on the host, so that all devices see the same."""
    model = UNet(size).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    images, draw = squares(32).to(device), torch.Generator().manual_seed(0)
    while True:
        noise, time = (
            torch.randn(32, 1, 16, 16, generator=draw).to(device),
            torch.rand(32, generator=draw).to(device),
        )
        share = torch.cos(time * torch.pi / 2)[:, None, None, None]
        loss = nn.functional.mse_loss(model(share * images + (1 - share**2).sqrt() * noise, time), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.detach()
