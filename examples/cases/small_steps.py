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


class Cells(nn.Module):
    """A sequence through an LSTM or a GRU, one cell after the other in Python."""

    def __init__(self, cell, inputs, size):
        super().__init__()
        self.cell, self.head = cell(inputs, size), nn.Linear(size, 2)

    def forward(self, sequences):
        state = None
        for now in sequences.unbind(1):
            state = self.cell(now) if state is None else self.cell(now, state)
        return self.head(state[0] if isinstance(state, tuple) else state)


class Fused(nn.Module):
    """The same through PyTorch's own layer, which goes through the whole sequence in one call."""

    def __init__(self, layer, inputs, size):
        super().__init__()
        self.layer, self.head = layer(inputs, size, batch_first=True), nn.Linear(size, 2)

    def forward(self, sequences):
        return self.head(self.layer(sequences)[0][:, -1])


def _sequences(model, device, batch, length, inputs):
    drawn = torch.randn(batch, length, inputs), torch.randint(0, 2, (batch,))
    return _trained(model, device, drawn, lambda model, x, y: nn.functional.cross_entropy(model(x), y))


def lstm_cells(size, device):
    """64 sequences of 32 numbers through LSTM cells."""
    return _sequences(Cells(nn.LSTMCell, 3, size), device, 64, 32, 3)


def lstm_fused(size, device):
    """The same through a fused LSTM."""
    return _sequences(Fused(nn.LSTM, 3, size), device, 64, 32, 3)


def gru_cells(size, device):
    """32 sequences of 16 vectors through GRU cells."""
    return _sequences(Cells(nn.GRUCell, size, size), device, 32, 16, size)


def gru_fused(size, device):
    """The same through a fused GRU."""
    return _sequences(Fused(nn.GRU, size, size), device, 32, 16, size)


def lstm_alone(size, device):
    """One sequence of 20 numbers at a time through LSTM cells."""
    return _sequences(Cells(nn.LSTMCell, 3, size), device, 1, 20, 3)


def lstm_together(size, device):
    """64 sequences of 20 numbers at once through LSTM cells."""
    return _sequences(Cells(nn.LSTMCell, 3, size), device, 64, 20, 3)


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


def _encoder(size, device, batch):
    """Two layers of a transformer on sequences of 32 words."""
    layer = nn.TransformerEncoderLayer(size, 4, 4 * size, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return _trained(model, device, (torch.randn(batch, 32, size),), lambda model, x: model(x).pow(2).mean())


def encoder(size, device):
    """One sequence at a time."""
    return _encoder(size, device, 1)


def encoder_of_more(size, device):
    """64 sequences at once."""
    return _encoder(size, device, 64)


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
