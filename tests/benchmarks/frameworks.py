"""What a step costs in the loops that people use, over a bare PyTorch loop on the same batches.

    pip install lightning accelerate skorch pytorch-ignite
    python -m tests.benchmarks.frameworks [--rounds 15] [--json]

Every loop starts from equal weights and is fed by the same iterator over the same tensors, which also reads the clock:
when the first counted batch is asked for, and when the last batch is. So what a framework does before and after its
loop is not counted, only what it adds to each step. Loops take turns in random order; the ratio to the bare loop of
the same round is what counts. Logging, progress bars, checkpoints and callbacks are off wherever they can be.

A framework that is not installed is named and left out.
"""

import argparse
import importlib.util
import json
import logging
import os
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator

from core.jobs.client import WAITING_POLICY

os.environ.update(WAITING_POLICY)

import torch
from torch import Tensor, nn
from torch.nn import functional

from core.answer.statistics import median_interval
from core.measure import datasets, networks
from core.measure.datasets import Feed
from core.measure.training import Training
from core.question.experiment import Point

WORKLOADS = {
    "T1, 8 layers": Point(dataset="disc", model="doubling-mlp", depth=8, batch_size=100, epochs=100, shuffle=False),
    "T2, 100 neurons": Point(dataset="signal", hidden_size=100, batch_size=32),
    "T2, 1000 neurons": Point(dataset="signal", hidden_size=1_000, batch_size=32),
}

ROUND_S = 0.4
"""How long each loop runs in a round, roughly."""

LEAD_IN = 20
"""Steps before the clock is read: lazily made things are made by then."""


class Batches:
    """So many batches of one training, over and over its first epoch, and the clock at both ends of those counted."""

    def __init__(self, made: list[tuple[Tensor, Tensor]], steps: int) -> None:
        self._made, self._steps = made, steps
        self._begin = self._end = 0.0

    def __len__(self) -> int:
        return LEAD_IN + self._steps + 1

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        made, last = self._made, len(self) - 1
        for number in range(len(self)):
            if number == LEAD_IN:
                self._begin = time.perf_counter()
            if number == last:
                self._end = time.perf_counter()
            yield made[number % len(made)]

    @property
    def step_s(self) -> float:
        assert self._end > self._begin, "the loop did not come to its end"
        return (self._end - self._begin) / self._steps


Loop = Callable[[nn.Module, Point, Batches], None]


def bare(network: nn.Module, point: Point, batches: Batches) -> None:
    optimizer = torch.optim.SGD(network.parameters(), lr=point.learning_rate)
    for samples, labels in batches:
        optimizer.zero_grad()
        functional.cross_entropy(network(samples), labels).backward()
        optimizer.step()


def ours(network: nn.Module, point: Point, batches: Batches) -> None:
    stream = iter(batches)
    feed = Feed(batches=stream, take=lambda _: next(stream), place=lambda batch: batch, batch_size=point.batch_size)
    training = Training(network, feed, learning_rate=point.learning_rate)
    training.advance(len(batches))
    training.read_losses()


def lightning_trainer(network: nn.Module, point: Point, batches: Batches, *, barebones: bool = False) -> None:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def training_step(self, batch, _index):
            samples, labels = batch
            return functional.cross_entropy(self.network(samples), labels)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=point.learning_rate)

    off = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    options = {"barebones": True} if barebones else off
    lightning.Trainer(accelerator="cpu", devices=1, max_epochs=1, **options).fit(Module(), batches)


def lightning_barebones(network: nn.Module, point: Point, batches: Batches) -> None:
    lightning_trainer(network, point, batches, barebones=True)


def fabric(network: nn.Module, point: Point, batches: Batches) -> None:
    import lightning

    plain = lightning.Fabric(accelerator="cpu", devices=1)
    model, optimizer = plain.setup(network, torch.optim.SGD(network.parameters(), lr=point.learning_rate))
    for samples, labels in batches:
        optimizer.zero_grad()
        plain.backward(functional.cross_entropy(model(samples), labels))
        optimizer.step()


def accelerate(network: nn.Module, point: Point, batches: Batches) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(network, torch.optim.SGD(network.parameters(), lr=point.learning_rate))
    for samples, labels in batches:
        optimizer.zero_grad()
        accelerator.backward(functional.cross_entropy(model(samples), labels))
        optimizer.step()


def skorch(network: nn.Module, point: Point, batches: Batches) -> None:
    from skorch import NeuralNet

    net = NeuralNet(
        network,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.SGD,
        lr=point.learning_rate,
        max_epochs=1,
        iterator_train=lambda _dataset, **_options: batches,
        train_split=None,
        callbacks="disable",
        verbose=0,
        device="cpu",
    )
    net.fit(*next(iter(batches)))


def ignite_supervised(network: nn.Module, point: Point, batches: Batches) -> None:
    from ignite.engine import create_supervised_trainer

    optimizer = torch.optim.SGD(network.parameters(), lr=point.learning_rate)
    trainer = create_supervised_trainer(network, optimizer, functional.cross_entropy, device="cpu")
    trainer.run(batches, max_epochs=1)


def ignite_engine(network: nn.Module, point: Point, batches: Batches) -> None:
    from ignite.engine import Engine

    optimizer = torch.optim.SGD(network.parameters(), lr=point.learning_rate)

    def step(_engine, batch):
        samples, labels = batch
        optimizer.zero_grad()
        functional.cross_entropy(network(samples), labels).backward()
        optimizer.step()

    Engine(step).run(batches, max_epochs=1)


LOOPS: dict[str, tuple[str, Loop]] = {
    "bare PyTorch loop": ("torch", bare),
    "Crossover": ("torch", ours),
    "Lightning Fabric": ("lightning", fabric),
    "ignite Engine": ("ignite", ignite_engine),
    "ignite, supervised trainer": ("ignite", ignite_supervised),
    "HF accelerate": ("accelerate", accelerate),
    "skorch, callbacks off": ("skorch", skorch),
    "Lightning Trainer, all off": ("lightning", lightning_trainer),
    "Lightning Trainer, barebones": ("lightning", lightning_barebones),
}
"""Name → the package that it needs, and the loop."""


def compare(point: Point, loops: dict[str, Loop], rounds: int) -> dict[str, list[float]]:
    """Seconds a step of each loop in each round, in turns."""
    data = datasets.load_dataset(point.dataset, samples=point.samples, seed=point.seed)
    parts = datasets.batch_order(point, 0).split(point.batch_size)
    made = [(data.train.samples[part], data.train.labels[part]) for part in parts]
    steps = max(50, int(ROUND_S / _step_s(bare, point, made, 50)))
    times: dict[str, list[float]] = {name: [] for name in loops}
    for number in range(rounds + 1):
        for name in random.sample(list(loops), len(loops)):
            step_s = _step_s(loops[name], point, made, steps)
            times[name] += [step_s] if number else []  # the first round warms up
    return times


def _step_s(loop: Loop, point: Point, made: list[tuple[Tensor, Tensor]], steps: int) -> float:
    counted = Batches(made, steps)
    loop(networks.build(point.network, point.seed), point, counted)
    return counted.step_s


def summary(times: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Step time, and ratio to the bare loop with its 95 % interval over the rounds."""
    first = times["bare PyTorch loop"]
    found = {}
    for name, values in times.items():
        ratios = [value / one for value, one in zip(values, first, strict=True)]
        low, high = median_interval(ratios) or (min(ratios), max(ratios))
        added = statistics.median(value - one for value, one in zip(values, first, strict=True))
        found[name] = {
            "step_us": 1e6 * statistics.median(values),
            "ratio": statistics.median(ratios),
            "low": low,
            "high": high,
            "added_us": 1e6 * added,
        }
    return found


def show(results: dict[str, dict[str, dict[str, float]]]) -> None:
    print(f"| loop | {' | '.join(results)} |")
    print("|---|" + "---|" * len(results))
    for name in next(iter(results.values())):
        cells = [
            f"{r['ratio']:.3f} ({r['low']:.3f} to {r['high']:.3f}), {r['added_us']:+.0f} µs"
            for r in (found[name] for found in results.values())
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    steps = ", ".join(f"{name} {found['bare PyTorch loop']['step_us']:.0f} µs" for name, found in results.items())
    print(f"\nA step of the bare loop: {steps}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    for name in ("lightning", "lightning.pytorch", "lightning.fabric", "ignite"):
        logging.getLogger(name).setLevel(logging.ERROR)
    torch.set_num_threads(1)
    loops = {name: loop for name, (package, loop) in LOOPS.items() if importlib.util.find_spec(package)}
    for name in LOOPS.keys() - loops.keys():
        print(f"{name} is not installed and left out", file=sys.stderr)
    results = {name: summary(compare(point, loops, options.rounds)) for name, point in WORKLOADS.items()}
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        show(results)


if __name__ == "__main__":
    main()
