"""Our training loop against a bare PyTorch loop on the same batches: overhead per step, interleaved in one process.

    python -m tests.benchmarks.loop_overhead [--pairs 60] [--json]

Both sides start from equal weights and take turns block by block in random order; the ratio of each pair is what
counts, since the machine's speed drifts. The bare loop is what anyone would write by hand.
"""

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable

from core.jobs.client import WAITING_POLICY

os.environ.update(WAITING_POLICY)

import torch
from torch.nn import functional

from core.answer.statistics import median_interval
from core.measure import datasets, networks
from core.measure.training import Training
from core.question.experiment import Point

WORKLOADS = {
    "T1, 8 layers (~1 ms step)": Point(
        dataset="disc", model="doubling-mlp", depth=8, batch_size=100, epochs=100, shuffle=False
    ),
    "T2, 100 neurons": Point(dataset="signal", hidden_size=100, batch_size=32),
    "T2, 1000 neurons": Point(dataset="signal", hidden_size=1_000, batch_size=32),
    "digits, 128 neurons, shuffled": Point(),
}


def bare(point: Point, data: datasets.Data) -> Callable[[int], None]:
    """A plain loop over the same batches; advances by a number of steps."""
    network = networks.build(point.network, point.seed)
    optimizer = torch.optim.SGD(network.parameters(), lr=point.learning_rate)
    samples, labels, size = data.train.samples, data.train.labels, point.batch_size
    state = {"epoch": 0, "order": datasets.batch_order(point, 0), "at": 0}

    def advance(steps: int) -> None:
        order, at = state["order"], state["at"]
        for _ in range(steps):
            if at == len(order):
                state["epoch"] += 1
                order, at = datasets.batch_order(point, state["epoch"]), 0
            indices = order[at : at + size]
            at += size
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(samples[indices]), labels[indices])
            loss.backward()
            optimizer.step()
        state["order"], state["at"] = order, at

    return advance


def ours(point: Point, data: datasets.Data) -> Callable[[int], None]:
    network = networks.build(point.network, point.seed)
    feed = datasets.make_feed(point, data, data.train, torch.device("cpu"))
    training = Training(network, feed, learning_rate=point.learning_rate)

    def advance(steps: int) -> None:
        training.advance(steps)
        training.read_losses()

    return advance


def compare(point: Point, pairs: int) -> dict[str, float]:
    """Step time of both and the ratio ours / bare with its 95 % interval over the pairs."""
    data = datasets.load_dataset(point.dataset, samples=point.samples, seed=point.seed)
    sides = {"bare": bare(point, data), "ours": ours(point, data)}
    for advance in sides.values():
        advance(50)
    begin = time.perf_counter()
    sides["bare"](50)
    steps = max(20, int(0.05 * 50 / (time.perf_counter() - begin)))
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(pairs):
        for name in random.sample(list(sides), 2):
            begin = time.perf_counter()
            sides[name](steps)
            times[name].append((time.perf_counter() - begin) / steps)
    ratios = [a / b for a, b in zip(times["ours"], times["bare"], strict=True)]
    low, high = median_interval(ratios) or (float("nan"), float("nan"))
    return {
        "bare_us": 1e6 * statistics.median(times["bare"]),
        "ours_us": 1e6 * statistics.median(times["ours"]),
        "ratio": statistics.median(ratios),
        "low": low,
        "high": high,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {name: compare(point, options.pairs) for name, point in WORKLOADS.items()}
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print("| workload | bare loop | ours | ratio (95 %) |\n|---|---|---|---|")
    for name, r in results.items():
        print(
            f"| {name} | {r['bare_us']:.0f} µs | {r['ours_us']:.0f} µs | "
            f"{r['ratio']:.3f} ({r['low']:.3f} to {r['high']:.3f}) |"
        )


if __name__ == "__main__":
    main()
