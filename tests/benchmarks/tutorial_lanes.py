"""Each tutorial's own loop, rewritten faithfully, against our lanes: seconds an epoch, with the same losses.

    python -m tests.benchmarks.tutorial_lanes [--rounds 12] [--only T1] [--json]

All sides of one workload start from equal weights and see the same batches in the same order. They take turns epoch by
epoch in random order; what counts is the ratio to the tutorial's own loop of the same round, the quicker of one thread
and all of them. Losses are compared over the first 1,000 steps. What a lane compiles first is its start-up and
is told apart.

Exit status 1 if the losses of a lane that promises the same mathematics differ by more than rounding explains.
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from core import batches, datasets, networks
from core.answer.summary import median_interval
from core.datasets import Data
from core.devices import use_strict_fp32
from core.experiment import Contender, Point
from core.presets import preset
from core.training import Training
from tests import idx
from tests.benchmarks.loader_share import Count, at_once, one_by_one

READING_S = 0.1
"""Epochs are repeated within one reading until it takes so long."""

ROUNDING, COMPARED = 1e-3, 1_000
"""Largest relative difference of a loss over so many first steps. Training carries rounding on and on: with T2's 1,000
neurons it is 3e-7 over 1,200 steps, 5e-4 after 2,500 and 2e-2 after 5,000, while a wrong update shows at once."""

ALL = os.cpu_count() or 1


@dataclass(kw_only=True)
class Side:
    """One way to train.

    Attributes:
        epoch: trains one epoch and returns the losses of its steps.
        startup_s: seconds of compiling before the first epoch.
        losses: of every step so far.
        times: seconds an epoch of each round.
    """

    epoch: Callable[[], list[float]]
    startup_s: float = 0.0
    losses: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What is trained, how the tutorial does it, and in which lanes we do.

    Attributes:
        point: the training, data as the tutorial delivers them.
        own: the tutorial's own epoch.
        lanes: contenders as written on the command line, on resident data.
        tested: whether an epoch ends with validation and test.
    """

    point: Point
    own: Callable[[nn.Module, torch.optim.Optimizer, Point, Data, Iterator[int]], list[float]]
    lanes: tuple[str, ...]
    tested: bool = False


def disc(
    network: nn.Module, optimizer: torch.optim.Optimizer, point: Point, data: Data, _epochs: Iterator[int]
) -> list[float]:
    """T1: slices of tensors in order, errors counted per batch, printed per epoch."""
    samples, labels, size = data.train.samples, data.train.labels, point.batch_size
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
    network: nn.Module, optimizer: torch.optim.Optimizer, point: Point, data: Data, epochs: Iterator[int]
) -> list[float]:
    """T2: a DataLoader of tensors, loss and accuracy read at every step."""
    order = batches.order(point, next(epochs)).split(point.batch_size)
    losses = []
    for samples, labels in DataLoader(
        TensorDataset(data.train.samples, data.train.labels), batch_sampler=[part.tolist() for part in order]
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
    network: nn.Module, optimizer: torch.optim.Optimizer, point: Point, data: Data, epochs: Iterator[int]
) -> list[float]:
    """T3 and T4: one sample at a time with transforms, through the DataLoader; the loss read at every step."""
    order = batches.order(point, next(epochs)).split(point.batch_size)
    losses = []
    for samples, labels in DataLoader(data.one_by_one, batch_sampler=[part.tolist() for part in order]):
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
    compiled = ("cpu@1", "cpu@1+fused", "cpu@1+compiled", "cpu@1+compiled10")
    wide = ("cpu@1", f"cpu@{ALL}", f"cpu@{ALL}+channels_last", "cpu@1+micro250+channels_last", f"cpu@{ALL}+micro250")
    return {
        "T1, 4 layers": Workload(point=_with(t1, depth=4), own=disc, lanes=compiled),
        "T1, 8 layers": Workload(point=_with(t1, depth=8), own=disc, lanes=compiled),
        "T1, 10 layers": Workload(point=_with(t1, depth=10), own=disc, lanes=("cpu@1", f"cpu@{ALL}", "cpu@1+compiled")),
        "T2, 10 neurons": Workload(point=_with(t2, hidden_size=10), own=signal, lanes=compiled),
        "T2, 1000 neurons": Workload(
            point=_with(t2, hidden_size=1_000), own=signal, lanes=("cpu@1", f"cpu@{ALL}", "cpu@1+compiled")
        ),
        "T3": Workload(
            point=t3, own=images, lanes=("cpu@1", f"cpu@{ALL}", "cpu@1+fused", "cpu@1+compiled10"), tested=True
        ),
        "T4, batch 1000": Workload(point=_with(t4, batch_size=1_000), own=images, lanes=wide),
        "T4, batch 10000": Workload(point=_with(t4, batch_size=10_000), own=images, lanes=wide),
    }


def _with(point: Point, **changes: object) -> Point:
    return Point.parse({**{name: getattr(point, name) for name in Point.__dataclass_fields__}, **changes})


def own_side(of: Workload, data: Data, threads: int) -> Side:
    """The tutorial's loop."""
    point = of.point
    network = networks.build(point.network, point.seed)
    optimizer = torch.optim.SGD(network.parameters(), lr=point.learning_rate)
    count = one_by_one(point, data) if of.tested else None
    epochs = iter(range(10**9))

    def epoch() -> list[float]:
        torch.set_num_threads(threads)
        losses = of.own(network, optimizer, point, data, epochs)
        if count:
            count(network)
        return losses

    return Side(epoch=epoch)


def lane_side(of: Workload, data: Data, contender: Contender) -> Side:
    """Our loop on resident data, in a lane."""
    point = _with(of.point, data_path="resident", loader_workers=0)
    network, host = networks.build(point.network, point.seed), torch.device("cpu")
    feed = batches.feed(point, data, data.train, host)
    training = Training(network, feed, learning_rate=point.learning_rate, lane=contender.lane)
    torch.set_num_threads(contender.threads)
    example = tuple(part[: point.batch_size] for part in (data.train.samples, data.train.labels))
    remainder = bool(point.steps_per_epoch % contender.lane.steps_per_call)
    startup_s = training.prepare(example, remainder=remainder)  # type: ignore[arg-type]
    count: Count | None = at_once(data) if of.tested else None

    def epoch() -> list[float]:
        torch.set_num_threads(contender.threads)
        training.advance(point.steps_per_epoch)
        losses = training.read_losses()
        if count:
            count(network)
        return losses

    return Side(epoch=epoch, startup_s=startup_s)


def compare(of: Workload, rounds: int) -> dict[str, Side]:
    """Every side of a workload, timed in turns."""
    data = datasets.load(of.point.dataset, samples=of.point.samples, seed=of.point.seed)
    sides = {f"tutorial's loop, {threads} thread(s)": own_side(of, data, threads) for threads in sorted({1, ALL})}
    sides |= {name: lane_side(of, data, Contender.parse(name)) for name in of.lanes}
    repeats = {name: _read(side, 1) and 1 for name, side in sides.items()}
    for name, side in sides.items():  # the second epoch is warm and says how many make a reading
        repeats[name] = max(1, round(READING_S / _read(side, 1)))
    for _ in range(rounds):
        for name in random.sample(list(sides), len(sides)):
            sides[name].times.append(_read(sides[name], repeats[name]))
    return sides


def _read(side: Side, epochs: int) -> float:
    """Seconds an epoch over so many."""
    begin = time.perf_counter()
    for _ in range(epochs):
        side.losses += side.epoch()
    return (time.perf_counter() - begin) / epochs


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
    use_strict_fp32()
    results = {}
    with tempfile.TemporaryDirectory() as made:
        for loader in ("MNIST", "FashionMNIST"):
            datasets.FOLDER = idx.write(Path(made), train=60_000, test=10_000, loader=loader)
        for name, workload in workloads().items():
            if name.startswith(options.only):
                results[name] = summary(compare(workload, options.rounds))
                if not options.json:
                    show(name, results[name])
                    sys.stdout.flush()
    if options.json:
        print(json.dumps(results, indent=2))
    return int(any(side["losses_apart"] > ROUNDING for found in results.values() for side in found.values()))


_PAPER = open(os.devnull, "w")  # noqa: SIM115, PTH123 – a tutorial prints once an epoch, for as long as it runs

if __name__ == "__main__":
    sys.exit(main())
