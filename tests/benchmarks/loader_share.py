"""How much of the MNIST lab's epoch is its loader, and what the same training takes with other ways of feeding it?

    python -m tests.benchmarks.loader_share
    python -m tests.benchmarks.loader_share --workers 0 --files data/datasets

The training is the preset's at full size, read by torchvision's own MNIST class. Without --files it reads files of
the full shape (60,000 and 10,000 images) that are made up for this: what an image shows does not change what it costs
to load. One thread trains, so that loader and training share the processor in the same way in every run.

The table's runs follow each other, minutes apart; on a machine that others use, ratios between them mean little. The
ratio that counts, the tutorial's way without workers against resident data, is therefore measured in turns, the median
over pairs with its interval: once for the training alone, in blocks as devices are measured, and once for an epoch as
the lab counts it, which is training, validation and test.

Exit status 1 if the loss curves differ by more than rounding, or the lab's epoch is not at least 30 times as fast.
"""

import argparse
import dataclasses
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from core.jobs.client import WAITING_POLICY

os.environ.update(WAITING_POLICY)

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision.datasets import MNIST

from core import units
from core.answer.causes import PART_TITLES
from core.answer.lessons.limits import Bottleneck, find_bottleneck
from core.answer.statistics import median_interval
from core.measure import datasets, networks
from core.measure.contender import MeasuredContender
from core.measure.datasets import Data
from core.measure.devices import open_device, use_strict_fp32
from core.measure.timer import Timer
from core.measure.training import Training, classify
from core.measure.trial import Hooks, measure
from core.question.experiment import Contender, Experiment, Point
from core.question.presets import preset
from core.results.schema import Trial
from tests import idx

WANTED_GAIN = 30
PAIRS = 40
EPOCHS = 15
BUDGET_S = 1_200
WARM_UP_S = 60


def ways(workers: list[int]) -> list[Point]:
    """The preset's training, its data delivered in every way."""
    point = preset("mnist-linear").point
    through_loader = [
        dataclasses.replace(point, data_path=path, loader_workers=count)
        for path in ("tutorial", "loader")
        for count in workers
    ]
    return [*through_loader, *(dataclasses.replace(point, data_path=path) for path in ("per_batch", "resident"))]


def trained(point: Point, device: str) -> Trial:
    """The row of one whole training."""
    asked = Experiment(point=point, contenders=(Contender.parse(device),), budget_s=BUDGET_S)
    (row,) = measure(asked, hooks=Hooks())
    print(
        f"{point.data_path} {point.loader_workers}: {row.outcome} {row.message}".rstrip(), file=sys.stderr, flush=True
    )
    return row


def turns(slow: Point, fast: Point, device: str) -> list[float]:
    """Step time of one way over that of the other, from blocks that took turns in random order."""
    data = datasets.load_dataset(slow.dataset, samples=slow.samples, seed=slow.seed)
    all_measured = [MeasuredContender(Contender.parse(device), point, data) for point in (slow, fast)]
    for measured in all_measured:
        measured.start()
        for _ in measured.warm_up(WARM_UP_S):
            pass
    order = random.Random(0)
    for pair in range(PAIRS):
        for measured in order.sample(all_measured, len(all_measured)):
            measured.block(pair)
    times = [_step_s(measured) for measured in all_measured]
    return [one / other for one, other in zip(*times, strict=True)]


def _step_s(measured: MeasuredContender) -> list[float]:
    raw = measured.raw
    readings = zip(raw.block_begin_ns, raw.block_end_ns, raw.block_steps, strict=True)
    return [(end - begin) / 1e9 / steps for begin, end, steps in readings]


def lab_epochs(slow: Point, fast: Point, contender: Contender) -> list[float]:
    """Whole epochs of one way over those of the other, in turns: training, then validation and test in its own way.

    Raises:
        AssertionError: the two ways do not get the same number of answers right.
    """
    data = datasets.load_dataset(slow.dataset, samples=slow.samples, seed=slow.seed)
    torch.set_num_threads(contender.threads or torch.get_num_threads())
    timer = Timer(device=open_device(contender.device))
    ways = [(_training(slow, data), one_by_one(slow, data.one_by_one)), (_training(fast, data), at_once(data))]
    ratios = []
    for number in range(EPOCHS + 1):
        right: list[int] = []
        times = [timer.time(partial(_epoch, *way, slow.steps_per_epoch, right)).seconds for way in ways]
        assert right[0] == right[1], "the two ways learn differently"
        ratios += [times[0] / times[1]] if number else []  # the first warms up
        print(f"epochs of {times[0]:.2f} s and {times[1]:.3f} s", file=sys.stderr, flush=True)
    return ratios


Count = Callable[[nn.Module], int]
"""Counts the right answers on validation and test samples together."""


def _training(point: Point, data: Data) -> Training:
    feed = datasets.make_feed(point, data, data.train, torch.device("cpu"))
    return Training(networks.build(point.network, point.seed), feed, learning_rate=point.learning_rate)


def _epoch(training: Training, count: Count, steps: int, right: list[int]) -> None:
    training.advance(steps)
    training.read_losses()
    right.append(count(training.network))


def one_by_one(point: Point, trained: object) -> Count:
    """Validation and test samples as the lab reads them: one at a time with transforms, in batches of the training.

    Args:
        point: the training.
        trained: what it is trained on, as `Data.one_by_one` has it.
    """
    assert isinstance(trained, Subset)
    images = trained.dataset
    held_out = np.random.default_rng(point.seed).permutation(len(images))[
        point.samples :
    ]  # as core.measure.datasets splits
    tests = MNIST(datasets.DATASETS_FOLDER, train=False, transform=images.transform)
    loaders = [DataLoader(each, batch_size=point.batch_size) for each in (Subset(images, held_out.tolist()), tests)]

    @torch.no_grad()
    def count(network: nn.Module) -> int:
        found = (network(samples).argmax(1) == labels for each in loaders for samples, labels in each)
        return sum(int(hits.sum()) for hits in found)

    return count


def at_once(data: Data) -> Count:
    """The same samples from tensors, as every measurement here tests what was learned."""

    def count(network: nn.Module) -> int:
        splits = (data.validation, data.test)
        return sum(int((classify(network, each, torch.device("cpu")) == each.labels).sum()) for each in splits)

    return count


def show(found: Bottleneck) -> None:
    print(f"| way | epoch | {' | '.join(PART_TITLES)} | loader share | at most |")
    print("|---|---|" + "---|" * (len(PART_TITLES) + 2))
    for way in found.ways:
        parts = [units.format_duration(way.parts_s[part]) for part in PART_TITLES]
        share, bound = units.format_share(way.loader_share or 0.0), units.format_ratio(way.bound) if way.bound else "–"
        print(f"| {way.title} | {units.format_duration(way.epoch_s)} | {' | '.join(parts)} | {share} | {bound} |")
    print(f"\n{found.ways[0].sentence}\n{found.sentence}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu@1")
    parser.add_argument("--workers", default="0,1,2,4", help="numbers of loader workers, comma-separated")
    parser.add_argument("--files", type=Path, help="folder of torchvision's MNIST; made up for this unless given")
    options = parser.parse_args()
    use_strict_fp32()
    counts = [int(count) for count in options.workers.split(",")]
    with tempfile.TemporaryDirectory() as made:
        datasets.DATASETS_FOLDER = options.files or idx.write(Path(made), train=60_000, test=10_000)
        found = find_bottleneck([trained(point, options.device) for point in ways(counts)])
        tutorial = preset("mnist-linear").point
        resident = dataclasses.replace(tutorial, data_path="resident")
        training = turns(tutorial, resident, options.device)
        whole = lab_epochs(tutorial, resident, Contender.parse(options.device))
    assert found is not None
    show(found)
    print(f"In turns, the training alone is {_summary(training)} with resident data.")
    print(f"In turns, an epoch of the lab, with validation and test, is {_summary(whole)} with resident data.")
    return 0 if found.same_losses and statistics.median(whole) >= WANTED_GAIN else 1


def _summary(ratios: list[float]) -> str:
    low, high = median_interval(ratios) or (min(ratios), max(ratios))
    interval = f"95 % interval {units.format_ratio(low)} to {units.format_ratio(high)}, {len(ratios)} pairs"
    return f"{units.format_ratio(statistics.median(ratios))} as fast ({interval})"


if __name__ == "__main__":
    sys.exit(main())
