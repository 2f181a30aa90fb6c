"""Batches from a disk that has to turn first. What one learns: a faster device cannot speed up what it waits for."""

import io
import time

import torch
from torch import nn

TURN_S = 0.004
"""Seconds until a turning disk has the next place below its head."""


class Images:
    """Small images, read from something like files."""

    def __init__(self, size, device, turn_s):
        self.device, self.loss = device, None
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(3072, size), nn.ReLU(), nn.Linear(size, 10)).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.batches = Files(turn_s)

    def parameters(self):
        """What is trained."""
        return self.model.parameters()

    def place(self, batch):
        """Onto the device."""
        return batch[0].to(self.device), batch[1].to(self.device)

    def step(self, batch):
        """Train one batch."""
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        loss.backward()
        self.optimizer.step()
        self.loss = loss.detach()


class Files:
    """Sixteen files of a batch each; a read takes as long as a turning disk does, where there is one."""

    def __init__(self, turn_s):
        self.turn_s, self.files = turn_s, []
        for _ in range(16):
            file = io.BytesIO()
            torch.save((torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))), file)
            self.files.append(file.getvalue())

    def __iter__(self):
        for content in self.files:
            for _ in range(4 if self.turn_s else 0):
                time.sleep(self.turn_s)
            yield torch.load(io.BytesIO(content))


def turning_disk(size, device):
    """Each batch lies in four places of a turning disk."""
    return Images(size, device, TURN_S)


def in_memory(size, device):
    """The same files, read ahead into memory."""
    return Images(size, device, 0.0)
