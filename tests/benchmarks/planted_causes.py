"""Whether a cause that was planted in a loop is named first, with its share: real time, on the CPU or an accelerator.

    python -m tests.benchmarks.planted_causes [--device cpu] [--seconds 3] [--json]

What is planted: a slow loader, work of the host, reading values, float64, a tiny batch. Its share is what the bare loop
takes longer for it, except for float64 (what the same loop takes longer than in operations with nothing to compute) and
the tiny batch (what a loop with one row a batch takes of it). Wanted: each first, its share within 10 points.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from core.jobs.client import WAITING_POLICY

os.environ.update(WAITING_POLICY)

import torch
from torch import nn

import core

PARTS = 5
"""Turns of bare loops without and with what is planted, of which the quickest count."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A loop with something planted in it."""

    device: torch.device
    rows: int = 256
    neurons: int = 256
    dtype: torch.dtype = torch.float32
    loader_s: float = 0.0
    host_s: float = 0.0
    reads: int = 0

    def run(self, steps: int, around: Callable[[Iterator[Any], nn.Module], Any] = lambda batches, _: batches) -> float:
        """Train so many steps; seconds of one."""
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, self.neurons), nn.ReLU(), nn.Linear(self.neurons, 8))
        model = model.to(self.device, self.dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        batch = torch.randn(self.rows, 64, device=self.device, dtype=self.dtype)
        labels = torch.zeros(self.rows, dtype=torch.int64, device=self.device)
        begin = time.perf_counter()
        for given in around(self.batches(batch, steps), model):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(given), labels)
            loss.backward()
            optimizer.step()
            for _ in range(self.reads):
                loss.item()
            pause(self.host_s)
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)
        return (time.perf_counter() - begin) / steps

    def batches(self, batch: torch.Tensor, steps: int) -> Iterator[torch.Tensor]:
        for _ in range(steps):
            pause(self.loader_s)
            yield batch


def pause(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def quickest(loop: Loop, seconds: float) -> float:
    """Seconds a step of the bare loop."""
    loop.run(20)
    steps = max(10, int(seconds / PARTS / loop.run(10)))
    return min(loop.run(steps) for _ in range(PARTS))


def shares(device: torch.device, seconds: float) -> dict[str, tuple[str, float, str, float]]:
    """By what is planted: kind and share that were planted, kind and share that were named first."""
    plain, tiny = Loop(device=device), Loop(device=device, rows=1, neurons=4)
    plain_s = quickest(plain, seconds)
    reads = 20 if device.type != "cpu" else 4_000
    longer = {
        "loader": Loop(device=device, loader_s=plain_s),
        "host": Loop(device=device, host_s=plain_s),
        "waits": Loop(device=device, reads=reads),
    }
    planted = {kind: (loop, 1 - plain_s / quickest(loop, seconds)) for kind, loop in longer.items()}
    double = Loop(device=device, rows=1024, neurons=1024, dtype=torch.float64)
    planted["float64"] = double, 1 - quickest(tiny, seconds) / quickest(double, seconds)
    few = Loop(device=device, rows=8, neurons=16)
    planted["small"] = few, quickest(tiny, seconds) / quickest(few, seconds)
    found = {}
    for kind, (loop, share) in planted.items():
        seen: list[Any] = []

        def around(batches: Iterator[Any], model: nn.Module, into: list[Any] = seen) -> Any:
            into.append(core.watch(batches, model, quiet=True))
            return into[0]

        loop.run(max(200, int(seconds / loop.run(20))), around)
        first = next(iter(seen[0].findings), None)
        found[kind] = (kind, min(1.0, share), first.kind if first else "", first.share or 0.0 if first else 0.0)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each loop")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = shares(torch.device(options.device), options.seconds)
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print("| planted | its share | named first | its share |\n|---|---|---|---|")
    for kind, share, named, said in results.values():
        print(f"| {kind} | {100 * share:.0f} % | {named or 'nothing'} | {100 * said:.0f} % |")


if __name__ == "__main__":
    main()
