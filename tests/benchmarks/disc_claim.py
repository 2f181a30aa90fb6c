"""The disc tutorial says that 8 layers reach 0 % training error within 100 epochs. Do they, over ten seeds?

    python -m tests.benchmarks.disc_claim

The error is that of all 1,000 training points after each epoch.
"""

import dataclasses
import os

from core.jobs.client import WAITING_POLICY

os.environ.update(WAITING_POLICY)

import torch

from core.measure import datasets, networks
from core.measure.training import Training, classify
from core.question.presets import preset

SEEDS = range(10)


def errors(seed: int) -> list[float]:
    """Share of wrong training points after each epoch."""
    point = dataclasses.replace(preset("disc").point, seed=seed)
    data = datasets.load_dataset(point.dataset, samples=point.samples, seed=seed)
    cpu = torch.device("cpu")
    training = Training(
        networks.build(point.network, seed), datasets.make_feed(point, data, data.train, cpu), learning_rate=0.1
    )
    found = []
    for _ in range(point.epochs):
        training.advance(point.steps_per_epoch)
        wrong = classify(training.network, data.train, cpu) != data.train.labels
        found.append(float(wrong.double().mean()))
    return found


def main() -> None:
    torch.set_num_threads(1)
    print("| seed | lowest within 100 epochs | after epoch 100 |\n|---|---|---|")
    for seed in SEEDS:
        found = errors(seed)
        print(f"| {seed} | {100 * min(found):.1f} % (epoch {found.index(min(found)) + 1}) | {100 * found[-1]:.1f} % |")


if __name__ == "__main__":
    main()
