"""A loop with Hugging Face's accelerate, if installed. What one learns: it picks one device a process; say which."""

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Prepared:
    """What `prepare` returned, a batch at a time; its loader puts batches on the device itself."""

    def __init__(self, accelerator, model, optimizer, loader):
        self.accelerator, self.loss = accelerator, None
        self.model, self.optimizer, self.batches = accelerator.prepare(model, optimizer, loader)

    def parameters(self):
        """What is trained."""
        return self.model.parameters()

    def step(self, batch):
        """Train one batch."""
        images, labels = batch
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        self.accelerator.backward(loss)
        self.optimizer.step()
        self.loss = loss.detach()


def build(size, device):
    """A hidden layer of `size` neurons, and images of random numbers."""
    AcceleratorState._reset_state(reset_partial_state=True)  # the device before may have been another
    accelerator = Accelerator(cpu=device.type == "cpu")
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, size), nn.ReLU(), nn.Linear(size, 10))
    images = TensorDataset(torch.randn(512, 1, 28, 28), torch.randint(0, 10, (512,)))
    loader = DataLoader(images, batch_size=64, shuffle=True)
    return Prepared(accelerator, model, torch.optim.AdamW(model.parameters()), loader)
