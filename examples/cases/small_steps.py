"""Steps with little in each. What one learns: launching costs as much for a small operation as for a large one."""

import torch
from torch import nn


def _trained(model, device, batch, loss_of):
    model = model.to(device)
    optimizer, batch = torch.optim.Adam(model.parameters()), tuple(part.to(device) for part in batch)

    def step():
        optimizer.zero_grad()
        loss_of(model, *batch).backward()
        optimizer.step()

    return step


def _autoencoder(size, device, batch):
    """Counts of 1,200 genes through ten hidden numbers."""
    model = nn.Sequential(
        *(nn.Linear(1200, size), nn.BatchNorm1d(size), nn.ReLU(), nn.Linear(size, 10)),
        *(nn.Linear(10, size), nn.BatchNorm1d(size), nn.ReLU(), nn.Linear(size, 1200)),
    )
    return _trained(model, device, (torch.rand(batch, 1200),), lambda model, x: nn.functional.mse_loss(model(x), x))


def autoencoder(size, device):
    """Batches of 128 cells."""
    return _autoencoder(size, device, 128)


def autoencoder_of_more(size, device):
    """Batches of 1,024 cells."""
    return _autoencoder(size, device, 1024)


def _forecast(size, device, batch):
    """A recurrent layer, attention over what it saw, and gates, as in a temporal fusion transformer."""

    class Forecast(nn.Module):
        """Ten numbers a day of thirty days, to one."""

        def __init__(self):
            super().__init__()
            self.lstm, self.seen = nn.LSTM(10, size, batch_first=True), nn.MultiheadAttention(size, 4, batch_first=True)
            self.gates = nn.ModuleList(nn.Linear(size, 2 * size) for _ in range(4))
            self.head = nn.Linear(size, 1)

        def forward(self, days):
            states = self.lstm(days)[0]
            states = states + self.seen(states, states, states, need_weights=False)[0]
            for gate in self.gates:
                states = states + nn.functional.glu(gate(states))
            return self.head(states[:, -1]).squeeze(1)

    drawn = torch.randn(batch, 30, 10), torch.randn(batch)
    return _trained(Forecast(), device, drawn, lambda model, x, y: nn.functional.mse_loss(model(x), y))


def forecast(size, device):
    """Batches of 16 series."""
    return _forecast(size, device, 16)


def forecast_of_more(size, device):
    """Batches of 512 series."""
    return _forecast(size, device, 512)


def _letters(size, device, batch):
    """The next letter from the four before, 64 numbers for each."""
    model = nn.Sequential(nn.Embedding(27, 64), nn.Flatten(), nn.Linear(256, size), nn.Tanh(), nn.Linear(size, 27))
    drawn = torch.randint(0, 27, (batch, 4)), torch.randint(0, 27, (batch,))
    return _trained(model, device, drawn, lambda model, x, y: nn.functional.cross_entropy(model(x), y))


def letters(size, device):
    """Batches of 128."""
    return _letters(size, device, 128)


def letters_of_more(size, device):
    """Batches of 4,096."""
    return _letters(size, device, 4096)
