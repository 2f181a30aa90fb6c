"""A bare PyTorch loop, run alone: the step time that the app's figure is held against. Imports nothing of ours.

    python -m tests.benchmarks.bare_loop 10 cuda:0

It is the training of `--preset disc --depth 8`, with one CPU thread, for so many seconds on a device.
"""

import sys
import time
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

torch.set_num_threads(1)
torch.manual_seed(0)
device = torch.device(sys.argv[2] if len(sys.argv) > 2 else "cpu")


def wait() -> None:
    """Wait for the device, which a CPU does not need."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


sizes = [2, *(2**i for i in range(2, 9)), 2]
layers = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())][:-1]
network = nn.Sequential(*layers).to(device)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
points = torch.rand(1_000, 2)
labels = ((points**2).sum(1) < 0.159).long()
points = ((points - points.mean()) / points.std()).to(device)
labels = labels.to(device)
times = []
end = time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < end:
    wait()
    begin = time.perf_counter()
    for step in range(100):
        at = step % 10 * 100
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(points[at : at + 100]), labels[at : at + 100])
        loss.backward()
        optimizer.step()
    wait()
    times.append((time.perf_counter() - begin) / 100)
print(sorted(times[3:])[len(times[3:]) // 2])
