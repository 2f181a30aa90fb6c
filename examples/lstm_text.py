"""Letters through an LSTM. What one learns: one small step after the other keeps a GPU waiting for the host."""

import torch
from torch import nn


class Letters:
    """The next letter of a random text, `size` letters at a time."""

    def __init__(self, size, device):
        self.device, self.loss = device, None
        self.embed, self.lstm = nn.Embedding(64, 32).to(device), nn.LSTM(32, 64, batch_first=True).to(device)
        self.head = nn.Linear(64, 64).to(device)
        self.optimizer = torch.optim.Adam(self.parameters())
        self.batches = torch.randint(0, 64, (8, 16, size + 1))

    def parameters(self):
        """What is trained."""
        return [*self.embed.parameters(), *self.lstm.parameters(), *self.head.parameters()]

    def place(self, text):
        """Onto the device."""
        return text.to(self.device)

    def step(self, text):
        """Train one batch."""
        self.optimizer.zero_grad()
        found = self.head(self.lstm(self.embed(text[:, :-1]))[0])
        loss = nn.functional.cross_entropy(found.flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        self.optimizer.step()
        self.loss = loss.detach()


def build(size, device):
    """Texts of `size` letters."""
    return Letters(size, device)
