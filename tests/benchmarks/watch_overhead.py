"""What `core.watch` costs a loop, and what the measured step of one's own training costs: against the bare loop.

    python -m tests.benchmarks.watch_overhead [--pairs 30] [--seconds 2] [--processor] [--json]

Each pair is a whole loop of so many seconds bare and the same loop watched (or as `run --training` trains it), in
random order in one process; the ratio of each pair is what counts, since the machine's speed drifts. Wanted: at most
1.02. A loop is watched from its first step to what is known at its end: everything that a user waits for counts. With
`--processor` it is the thread's processor time that is compared, for a machine that others use too; where steps wait,
more of them are looked at for each second of it than by the clock on the wall. Last comes what a loop takes beside a
step, which is the whole of what a measured step can cost.
"""

import argparse
import functools
import itertools
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from core.jobs.client import WAITING_POLICY

os.environ.update(WAITING_POLICY)

import torch
from torch import nn

import core
from core.answer.statistics import median_interval
from core.measure.custom.training import CustomTraining
from core.measure.custom.user_code import UserCode

SHAPES = {
    "20-16-2, batch 32 (~0.1 ms)": (20, 16, 1, 32),
    "20-64-64-2, batch 64 (~0.3 ms)": (20, 64, 2, 64),
    "784-256-256-10, batch 64 (~1.5 ms)": (784, 256, 2, 64),
    "784-1024-1024-10, batch 256 (~40 ms)": (784, 1024, 2, 256),
}
"""Inputs, neurons, hidden layers, batch."""


class Training:
    """What anyone would write: a network, an optimizer, batches and a step."""

    def __init__(self, inputs: int, neurons: int, layers: int, batch: int) -> None:
        torch.manual_seed(0)
        sizes = [inputs, *[neurons] * layers]
        hidden = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
        self.model = nn.Sequential(*hidden, nn.Linear(neurons, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        samples, labels = torch.randn(8 * batch, inputs), torch.randint(0, 10, (8 * batch,))
        self.batches = list(zip(samples.split(batch), labels.split(batch), strict=True))

    def step(self, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(batch[0]), batch[1]).backward()
        self.optimizer.step()

    def endless(self, steps: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for number in range(steps):
            yield self.batches[number % len(self.batches)]


def bare(training: Training, steps: int) -> None:
    for batch in training.endless(steps):
        training.step(batch)


def watched(training: Training, steps: int) -> None:
    for batch in core.watch(training.endless(steps), training.model, quiet=True):
        training.step(batch)


def watched_around(training: Training, steps: int) -> None:
    with core.watch(training.model, quiet=True):
        bare(training, steps)


def measured(training: Training, steps: int) -> None:
    """The loop of a contender, each step clocked singly, around the training that is bare on the other side."""
    trained = own(training)
    trained.clocked_steps = 1
    trained.advance(steps)
    del trained.clocked_ns[:]


@functools.cache
def own(training: Training) -> CustomTraining:
    return CustomTraining(training, UserCode(Path(__file__)))


def compare(
    shape: tuple[int, int, int, int],
    other: Callable[[Training, int], None],
    pairs: int,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Seconds a step of the bare loop, and the ratio of the other to it with its 95 % interval over the pairs."""
    training = Training(*shape)
    bare(training, 20)
    begin = clock()
    bare(training, 20)
    steps = max(20, int(seconds * 20 / (clock() - begin)))
    sides = {"bare": bare, "other": other}
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(pairs):
        for name in random.sample(list(sides), 2):
            begin = clock()
            sides[name](training, steps)
            times[name].append((clock() - begin) / steps)
    ratios = [a / b for a, b in zip(times["other"], times["bare"], strict=True)]
    low, high = median_interval(ratios) or (float("nan"), float("nan"))
    return {"step_s": statistics.median(times["bare"]), "ratio": statistics.median(ratios), "low": low, "high": high}


class Nothing(Training):
    """A training whose step does nothing, so that only what stands around it is left."""

    def __init__(self) -> None:
        self.batches = [(torch.empty(0), torch.empty(0))] * 8

    def step(self, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        pass


def around(steps: int = 20_000) -> dict[str, float]:
    """Seconds of processor time that a loop takes for each step beside the step itself, the least of some tries."""
    training, sides = Nothing(), {"bare": bare, "run --training": measured}
    tries: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(20):
        for name, side in sides.items():
            begin = time.thread_time()
            side(training, steps)
            tries[name].append((time.thread_time() - begin) / steps)
    return {name: min(times) for name, times in tries.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each loop")
    parser.add_argument("--processor", action="store_true", help="compare processor time")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results, clock = {}, time.thread_time if options.processor else time.perf_counter
    for name, shape in SHAPES.items():
        for kind, other in (("for", watched), ("with", watched_around), ("run --training", measured)):
            results[f"{name}, {kind}"] = compare(shape, other, options.pairs, options.seconds, clock)
    beside = around()
    if options.json:
        print(json.dumps({**results, "beside a step, s": beside}, indent=2))
        return
    print("| loop | bare step | ratio (95 %) |\n|---|---|---|")
    for name, r in results.items():
        print(f"| {name} | {1e3 * r['step_s']:.2f} ms | {r['ratio']:.3f} ({r['low']:.3f} to {r['high']:.3f}) |")
    print("Beside a step, of processor time: " + ", ".join(f"{side} {1e6 * s:.2f} µs" for side, s in beside.items()))


if __name__ == "__main__":
    main()
