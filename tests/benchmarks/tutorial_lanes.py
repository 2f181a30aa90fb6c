"""Each tutorial's own loop, rewritten faithfully, against our lanes: seconds an epoch, with the same losses.

    python -m tests.benchmarks.tutorial_lanes [--rounds 12] [--only T1] [--json]

All sides of one workload start from equal weights and see the same batches in the same order, each in a process of its
own: what the C library does with freed memory depends on the past of a process, and a tutorial's holds nothing but the
tutorial. They take turns epoch by epoch in random order; what counts is the ratio to the tutorial's own loop of the
same round, the quicker of one thread and all of them. Losses are compared over the first 1,000 steps. What a lane
compiles first is its start-up and is told apart.

Exit status 1 if the losses of a lane that promises the same mathematics differ by more than rounding explains.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import pickle
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from core.jobs.client import WAITING_POLICY

os.environ.update(WAITING_POLICY)

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from core.answer.statistics import median_interval
from core.measure import datasets, devices, networks
from core.measure.datasets import Split
from core.measure.devices import use_strict_fp32
from core.measure.training import Training
from core.question.experiment import Contender, Point
from core.question.presets import preset
from tests import idx
from tests.benchmarks.loader_share import at_once, one_by_one

READING_S = 0.1
"""Epochs are repeated within one reading until it takes so long."""

ROUNDING, COMPARED = 1e-3, 1_000
"""Largest relative difference of a loss over so many first steps. Training carries rounding on and on: with T2's 1,000
neurons it is 3e-7 over 1,200 steps, 5e-4 after 2,500 and 2e-2 after 5,000, while a wrong update shows at once."""

ALL = os.cpu_count() or 1


Epoch = Callable[[], list[float]]
"""Trains one epoch and returns the losses of its steps."""


@dataclass(kw_only=True)
class Side:
    """One way to train, in a process of its own.

    Attributes:
        pipe: takes a number of epochs, answers with seconds an epoch and losses.
        startup_s: seconds of compiling before the first epoch.
        losses: of every step so far.
        times: seconds an epoch of each round.
    """

    pipe: Connection
    startup_s: float = 0.0
    losses: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def train(self, epochs: int) -> float:
        """Seconds an epoch over so many."""
        self.pipe.send(epochs)
        seconds, losses = self.pipe.recv()
        self.losses += losses
        return seconds


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What is trained, how the tutorial does it, and in which lanes we do.

    Attributes:
        point: the training, data as the tutorial delivers them.
        own: the tutorial's own epoch, on tensors (T1, T2) or images that are read one at a time (T3, T4).
        lanes: contenders as written on the command line, on resident data.
        tested: whether an epoch ends with validation and test.
    """

    point: Point
    own: Callable[[nn.Module, torch.optim.Optimizer, Point, Any, Iterator[int]], list[float]]
    lanes: tuple[str, ...]
    tested: bool = False


def disc(
    network: nn.Module, optimizer: torch.optim.Optimizer, point: Point, data: Split, _epochs: Iterator[int]
) -> list[float]:
    """T1: slices of tensors in order, errors counted per batch, printed per epoch."""
    samples, labels, size = data.samples, data.labels, point.batch_size
    losses, errors = [], torch.zeros((), dtype=torch.int64)
    for at in range(0, point.steps_per_epoch * size, size):
        batch, wanted = samples[at : at + size], labels[at : at + size]
        scores = network(batch)
        loss = functional.cross_entropy(scores, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors += (scores.argmax(1) != wanted).sum()
        losses.append(loss.detach())
    print(f"{int(errors) / len(samples):.3f}", file=_PAPER)
    return torch.stack(losses).tolist()


def signal(
    network: nn.Module, optimizer: torch.optim.Optimizer, point: Point, data: Split, epochs: Iterator[int]
) -> list[float]:
    """T2: a DataLoader of tensors, loss and accuracy read at every step."""
    order = datasets.batch_order(point, next(epochs)).split(point.batch_size)
    losses = []
    for samples, labels in DataLoader(
        TensorDataset(data.samples, data.labels), batch_sampler=[part.tolist() for part in order]
    ):
        optimizer.zero_grad()
        scores = network(samples)
        loss = functional.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        (functional.softmax(scores, 1).argmax(1) == labels).float().mean().item()
        losses.append(loss.item())
    return losses


def images(
    network: nn.Module, optimizer: torch.optim.Optimizer, point: Point, data: Sized, epochs: Iterator[int]
) -> list[float]:
    """T3 and T4: one sample at a time with transforms, through the DataLoader; the loss read at every step."""
    order = datasets.batch_order(point, next(epochs)).split(point.batch_size)
    losses = []
    for samples, labels in DataLoader(
        data,  # type: ignore[arg-type]
        batch_sampler=[part.tolist() for part in order],
    ):
        scores = network(samples)
        loss = functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def workloads() -> dict[str, Workload]:
    """By the tutorial's number and what is varied."""
    t1, t2, t3, t4 = (preset(name).point for name in ("disc", "signal", "mnist-linear", "fashion-cnn"))
    compiled = ("cpu@1", "cpu@1+fused", "cpu@1+compiled", "cpu@1+compiled10", f"cpu@{ALL}", f"cpu@{ALL}+compiled10")
    large = ("cpu@1", f"cpu@{ALL}", "cpu@1+compiled", f"cpu@{ALL}+compiled")
    wide = ("cpu@1", f"cpu@{ALL}", f"cpu@{ALL}+kept", f"cpu@{ALL}+channels_last+kept", f"cpu@{ALL}+micro250")
    return {
        "T1, 4 layers": Workload(point=_with(t1, depth=4), own=disc, lanes=compiled),
        "T1, 8 layers": Workload(point=_with(t1, depth=8), own=disc, lanes=compiled),
        "T1, 10 layers": Workload(point=_with(t1, depth=10), own=disc, lanes=large),
        "T2, 10 neurons": Workload(point=_with(t2, hidden_size=10), own=signal, lanes=compiled),
        "T2, 1000 neurons": Workload(point=_with(t2, hidden_size=1_000), own=signal, lanes=large),
        "T3": Workload(
            point=t3, own=images, lanes=("cpu@1", f"cpu@{ALL}", "cpu@1+fused", "cpu@1+compiled10"), tested=True
        ),
        "T4, batch 1000": Workload(point=_with(t4, batch_size=1_000), own=images, lanes=wide),
        "T4, batch 10000": Workload(point=_with(t4, batch_size=10_000), own=images, lanes=wide),
    }


def _with(point: Point, **changes: object) -> Point:
    return Point.parse({**{name: getattr(point, name) for name in Point.__dataclass_fields__}, **changes})


def own_epoch(of: Workload, data: Any, threads: int) -> Epoch:
    """The tutorial's loop."""
    point = of.point
    torch.set_num_threads(threads)
    network = networks.build(point.network, point.seed)
    optimizer = torch.optim.SGD(network.parameters(), lr=point.learning_rate)
    count = one_by_one(point, data) if of.tested else None
    epochs = iter(range(10**9))

    def epoch() -> list[float]:
        losses = of.own(network, optimizer, point, data, epochs)
        if count:
            count(network)
        return losses

    return epoch


def lane_epoch(of: Workload, contender: Contender) -> tuple[Epoch, float]:
    """Our loop on resident data, in a lane, and the seconds of compiling it."""
    point = _with(of.point, data_path="resident", loader_workers=0)
    data = datasets.load_dataset(point.dataset, samples=point.samples, seed=point.seed)
    devices.set_memory_retention(keep=contender.lane.host_memory == "kept")
    torch.set_num_threads(contender.threads)
    network, host = networks.build(point.network, point.seed), torch.device("cpu")
    feed = datasets.make_feed(point, data, data.train, host)
    training = Training(network, feed, learning_rate=point.learning_rate, lane=contender.lane)
    example = data.train.samples[: point.batch_size], data.train.labels[: point.batch_size]
    startup_s = training.prepare(example, remainder=bool(point.steps_per_epoch % contender.lane.steps_per_call))
    count = at_once(data) if of.tested else None

    def epoch() -> list[float]:
        training.advance(point.steps_per_epoch)
        losses = training.read_losses()
        if count:
            count(network)
        return losses

    return epoch, startup_s


def serve(pipe: Connection, folder: Path, workload: str, lane: str, threads: int) -> None:
    """Be one side: make it ready, then train as many epochs as the pipe asks for, until it closes.

    Args:
        pipe: to the process that measures.
        folder: of the images, and of the tutorial's data as a file.
        workload: name of one.
        lane: a contender, or nothing for the tutorial's own loop.
        threads: of the own loop.
    """
    datasets.DATASETS_FOLDER, of = folder, workloads()[workload]
    use_strict_fp32()
    if lane:
        epoch, startup_s = lane_epoch(of, Contender.parse(lane))
    else:
        epoch, startup_s = own_epoch(of, pickle.loads((folder / "own").read_bytes()), threads), 0.0
    pipe.send(startup_s)
    with contextlib.suppress(EOFError):
        while True:
            epochs, losses = pipe.recv(), []
            begin = time.perf_counter()
            for _ in range(epochs):
                losses += epoch()
            pipe.send(((time.perf_counter() - begin) / epochs, losses))


def compare(name: str, of: Workload, rounds: int, folder: Path) -> dict[str, Side]:
    """Every side of a workload, timed in turns."""
    data = datasets.load_dataset(of.point.dataset, samples=of.point.samples, seed=of.point.seed, folder=folder)
    (folder / "own").write_bytes(pickle.dumps(data.one_by_one if of.own is images else data.train))
    wanted = {f"tutorial's loop, {threads} thread(s)": ("", threads) for threads in sorted({1, ALL})}
    wanted |= {lane: (lane, 0) for lane in of.lanes}
    starts, sides = multiprocessing.get_context("spawn"), {}
    for side, how in wanted.items():  # one after the other: compiling takes every core
        ours, theirs = starts.Pipe()
        starts.Process(target=serve, args=(theirs, folder, name, *how), daemon=True).start()
        theirs.close()
        sides[side] = Side(pipe=ours, startup_s=ours.recv())
    for each in sides.values():
        each.train(1)
    # the second epoch is warm and says how many make a reading
    repeats = {side: max(1, round(READING_S / each.train(1))) for side, each in sides.items()}
    for _ in range(rounds):
        for side in random.sample(list(sides), len(sides)):
            sides[side].times.append(sides[side].train(repeats[side]))
    for each in sides.values():
        each.pipe.close()
    return sides


def summary(sides: dict[str, Side]) -> dict[str, dict[str, float]]:
    """Seconds an epoch, how many times as fast as the tutorial's loop, and how far the losses are apart."""
    own = [side for name, side in sides.items() if name.startswith("tutorial")]
    quickest = min(own, key=lambda side: statistics.median(side.times))
    found = {}
    for name, side in sides.items():
        gains = [one / other for one, other in zip(quickest.times, side.times, strict=True)]
        low, high = median_interval(gains) or (min(gains), max(gains))
        first = zip(side.losses[:COMPARED], quickest.losses[:COMPARED], strict=False)
        apart = max(abs(a - b) / max(abs(b), 1e-12) for a, b in first)
        found[name] = {
            "epoch_s": statistics.median(side.times),
            "gain": statistics.median(gains),
            "low": low,
            "high": high,
            "losses_apart": apart,
            "startup_s": side.startup_s,
        }
    return found


def show(name: str, found: dict[str, dict[str, float]]) -> None:
    print(f"\n| {name} | epoch | times as fast (95 %) | losses apart | start-up |\n|---|---|---|---|---|")
    for side, of in found.items():
        print(
            f"| {side} | {of['epoch_s']:.4g} s | {of['gain']:.2f} ({of['low']:.2f} to {of['high']:.2f}) | "
            f"{of['losses_apart']:.0e} | {of['startup_s']:.0f} s |"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", default="", help="beginning of the names of the workloads, such as T3")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for loader in ("MNIST", "FashionMNIST"):
            idx.write(folder, train=60_000, test=10_000, loader=loader)
        for name, workload in workloads().items():
            if name.startswith(options.only):
                results[name] = summary(compare(name, workload, options.rounds, folder))
                if not options.json:
                    show(name, results[name])
                    sys.stdout.flush()
    if options.json:
        print(json.dumps(results, indent=2))
    return int(any(side["losses_apart"] > ROUNDING for found in results.values() for side in found.values()))


_PAPER = open(os.devnull, "w")  # noqa: SIM115, PTH123 – a tutorial prints once an epoch, for as long as it runs

if __name__ == "__main__":
    sys.exit(main())
