"""A run as one file of plain PyTorch that anybody can read, run and change: the same training, timed the same way.

It needs neither this project nor its rows: network, data, batches, seed and protocol are written out, and the stored
times stand in it, to be printed beside its own. What rows say is put in as Python's own literals in ASCII, so that no
text can leave its place. The script that is made here is never run here.
"""

import re
import textwrap
from collections.abc import Mapping, Sequence

from core.errors import CrossoverError, InvalidValue
from core.question import models
from core.question.experiment import LOADER_PATHS, Contender, Point
from core.question.lanes import PLAIN
from core.results.schema import Trial
from core.text import in_python

FINGERPRINT = (
    "run_id",
    "started_at",
    "machine_id",
    "cpu_name",
    "cores_usable",
    "memory_bytes",
    "system",
    "python_version",
    "torch_version",
    "app_version",
    "app_commit",
    "omp_wait_policy",
    "protocol_version",
)
"""Columns that say on what the stored times were measured."""


def script(trials: Sequence[Trial]) -> str:
    """The script that repeats a run.

    Args:
        trials: rows of one run; those of lanes other than plain eager training in fp32 are left out, and it says so.

    Raises:
        CrossoverError: the rows ask for what this version does not offer, or for nothing that a plain script repeats.
    """
    first, point = trials[0], _point(trials[0])
    plain = [trial for trial in trials if Contender.parse(trial.contender).lane == PLAIN and trial.block_steps]
    if point.data_path == "tutorial":
        raise CrossoverError("There is no script for it: the tutorials' loader is part of the tutorial itself.")
    if not plain:
        raise CrossoverError("There is no script for it: none of its devices was timed in a plain eager training.")
    values = {
        "RUN": in_python(first.run_id),
        "FINGERPRINT": "\n".join(f"#   {name}: {in_python(getattr(first, name))}" for name in FINGERPRINT),
        "LEFT_OUT": _left_out(trials, plain),
        "STORED": "".join(map(_stored, plain)),
        "SETTINGS": _settings(point, first),
        "DATA": textwrap.dedent(_DATA[point.dataset]).strip(),
        "LAYERS": "".join(f"        {line},\n" for line in _layers(point)),
        "BATCHES": textwrap.dedent(_LOADER if point.data_path in LOADER_PATHS else _INDEXED).strip(),
    }
    return _filled(_SCRIPT, values)


def _point(trial: Trial) -> Point:
    try:
        return Point.of(trial)
    except InvalidValue as error:
        raise CrossoverError(f"There is no script for it, this version does not offer its settings: {error}") from error


def _filled(template: str, values: Mapping[str, str]) -> str:
    """The template with each @NAME@ replaced once; what is put in is not searched again."""
    return re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], template)


def _left_out(trials: Sequence[Trial], plain: Sequence[Trial]) -> str:
    kept = set(map(id, plain))  # rows are large, and comparing each with each takes long
    names = [in_python(trial.contender) for trial in trials if id(trial) not in kept]
    return f"# Left out, because they were not timed in a plain eager training: {', '.join(names)}\n" if names else ""


def _stored(trial: Trial) -> str:
    """One line of the table of what was measured."""
    device = Contender.parse(trial.contender).device
    times = ", ".join(f"{step_s:.6g}" for step_s in trial.step_s)
    name, threads = in_python(trial.contender), int(trial.threads)
    return f"    # {in_python(trial.device_name)}\n    ({name}, {in_python(device)}, {threads}, [{times}]),\n"


def _settings(point: Point, trial: Trial) -> str:
    names = ("samples", "batch_size", "learning_rate", "shuffle", "seed", "data_path", "loader_workers")
    lines = [f"{name.upper()} = {in_python(getattr(point, name))}" for name in names]
    lines += [f"DATASET_HASH = {in_python(trial.dataset_hash)}", f"LEAD_IN_STEPS = {int(trial.lead_in_steps)}"]
    return "\n".join(lines)


def _layers(point: Point) -> list[str]:
    """Torch's modules, a line each."""
    network = point.network
    lines = [_layer(layer) for layer in network.layers]
    if len(network.input_shape) == 1 and isinstance(network.layers[0], models.Conv2d):
        lines.insert(0, f"nn.Unflatten(1, (1, 1, {network.input_shape[0]}))")
    return lines


def _layer(layer: models.Layer) -> str:
    match layer:
        case models.Linear():
            return f"nn.Linear({layer.inputs}, {layer.outputs})"
        case models.Conv2d():
            return f"nn.Conv2d({layer.in_channels}, {layer.out_channels}, {layer.kernel})"
        case models.MaxPool2d():
            return f"nn.MaxPool2d({layer.kernel})"
        case models.ReLU():
            return "nn.ReLU()"
        case models.Flatten():
            return "nn.Flatten()"


_SCRIPT = '''\
"""Repeats a run of Crossover with plain PyTorch: the same training, timed the same way, printed beside what was stored.

Needs torch and numpy, and whatever `load` below reads. Usage: python THIS_FILE [--pairs 20]
"""

# What was measured, and on what: run @RUN@
@FINGERPRINT@
@LEFT_OUT@
import argparse
import hashlib
import math
import random
import statistics
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

# Name, device, CPU threads, and the seconds a step of every timed block, in the order of time. The first is the
# baseline. Take a line out to leave a device out.
STORED = [
@STORED@]

@SETTINGS@
STEPS_PER_EPOCH = SAMPLES // BATCH_SIZE  # every batch is full, the remainder of an epoch is left out
MIN_BLOCK_S = 0.1  # shorter blocks would time the clock


@DATA@


def split_rows(rows, labels, train, validation, test):
    """Tables are standardised column by column, images as a whole, with figures of the training samples."""
    axes = (0,) if rows.ndim == 2 else None
    mean = torch.as_tensor(rows[train].mean(axis=axes, dtype=np.float64), dtype=torch.float32)
    std = torch.as_tensor(rows[train].std(axis=axes, dtype=np.float64), dtype=torch.float32)
    return [
        (torch.from_numpy(rows[part]).sub(mean).div(std), torch.from_numpy(labels[part]))
        for part in (train, validation, test)
    ]


def fingerprint(parts):
    digest = hashlib.sha256()
    for samples, labels in parts:
        digest.update(samples.numpy().tobytes())
        digest.update(labels.numpy().tobytes())
    return digest.hexdigest()[:16]


def network():
    torch.manual_seed(SEED)  # drawn on the host, so that every device starts with the same weights
    return nn.Sequential(
@LAYERS@    )


def order(epoch):
    """Indices of the training samples in one epoch."""
    used = STEPS_PER_EPOCH * BATCH_SIZE
    if not SHUFFLE:
        return torch.arange(used)
    generator = torch.Generator().manual_seed(SEED + epoch * 1_000_003)
    return torch.randperm(SAMPLES, generator=generator)[:used]


@BATCHES@


class Training:
    """One device's training; it goes on past its last epoch for as long as it is timed."""

    def __init__(self, name, device, threads, train):
        self.name, self.device, self.threads = name, torch.device(device), threads
        self.times = []
        self.use_threads()
        self.model = network().to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)
        self.batches = batches(train, self.device)

    def use_threads(self):
        if self.threads:
            torch.set_num_threads(self.threads)

    def drain(self):
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)

    def advance(self, steps):
        for _ in range(steps):
            samples, labels = next(self.batches)
            self.optimizer.zero_grad()
            loss = functional.cross_entropy(self.model(samples), labels)
            loss.backward()
            self.optimizer.step()
        return loss.detach()

    def seconds(self, steps):
        """Drain, read the clock, train, drain, read the clock."""
        self.use_threads()
        self.drain()
        begin = time.perf_counter()
        self.advance(steps)
        self.drain()
        return time.perf_counter() - begin

    def warm_up(self):
        self.first_loss = float(self.advance(1))
        steps, spent = 1, 0.0
        while spent < 0.25:
            taken = self.seconds(steps)
            spent, self.block_steps = spent + taken, max(5, math.ceil(1.1 * MIN_BLOCK_S * steps / taken))
            steps *= 2

    def block(self):
        self.use_threads()
        self.advance(max(1, LEAD_IN_STEPS))  # caches refill, and the device wakes up
        self.times.append(self.seconds(self.block_steps) / self.block_steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20, help="blocks of each device")
    pairs = parser.parse_args().pairs
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False

    parts = load()
    same = fingerprint(parts) == DATASET_HASH
    print("The data are the same as those that were stored." if same else "The data are NOT those that were stored.")
    trainings = [Training(name, device, threads, parts[0]) for name, device, threads, _ in STORED]
    for training in trainings:
        training.warm_up()
        print(f"{training.name}: loss of the first step {training.first_loss:.6f}")
    for _ in range(pairs):  # in turns, so that whatever slows the machine meets all
        for training in random.sample(trainings, len(trainings)):
            training.block()

    print(f"{'device':<20}{'stored ms/step':>18}{'here ms/step':>18}{'stored speedup':>18}{'here speedup':>18}")
    first = trainings[0]
    for training, (name, _, _, stored) in zip(trainings, STORED):
        then, now = statistics.median(stored), statistics.median(training.times)
        base_then = statistics.median(STORED[0][3])
        here = statistics.median(a / b for a, b in zip(first.times, training.times))
        print(f"{name:<20}{1e3 * then:>18.4g}{1e3 * now:>18.4g}{base_then / then:>18.3g}{here:>18.3g}")


if __name__ == "__main__":
    main()
'''

_INDEXED = '''
def batches(train, device):
    """Endless batches, indexed on the device, or on the host and copied at every step."""
    home = device if DATA_PATH == "resident" else torch.device("cpu")
    samples, labels = (part.to(home) for part in train)
    epoch = 0
    while True:
        for indices in order(epoch).to(home).split(BATCH_SIZE):
            yield samples.index_select(0, indices).to(device), labels.index_select(0, indices).to(device)
        epoch += 1
'''

_LOADER = '''
class EpochBatches:
    """Endless batches of indices; the loader's workers live on across epochs."""

    def __iter__(self):
        epoch = 0
        while True:
            for indices in order(epoch).split(BATCH_SIZE):
                yield indices.tolist()
            epoch += 1


def batches(train, device):
    """Endless batches through torch's DataLoader, copied at every step."""
    pinned = device.type == "cuda"
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*train),
        batch_sampler=EpochBatches(),
        num_workers=LOADER_WORKERS,
        pin_memory=pinned,
    )
    for samples, labels in loader:
        yield samples.to(device, non_blocking=pinned), labels.to(device, non_blocking=pinned)
'''

_SYNTHETIC = """
    held_out = max(100, SAMPLES // 5)
    rows, labels = draw(np.random.default_rng(SEED), SAMPLES + 2 * held_out)
    order = np.arange(len(rows))
    ends = SAMPLES, SAMPLES + held_out
    return split_rows(rows, labels, order[: ends[0]], order[ends[0] : ends[1]], order[ends[1] :])
"""

_DISC = (
    '''
def draw(rng, count):
    """Synthetic: points of the unit square, and whether they lie inside a quarter disc."""
    points = rng.random((count, 2), dtype=np.float32)
    return points, ((points**2).sum(axis=1) < 1 / (2 * np.pi)).astype(np.int64)


def load():
    """Training, validation and test part."""'''
    + _SYNTHETIC
)

_SIGNAL = (
    '''
def draw(rng, count):
    """Synthetic: simulated events, half of them signal."""
    labels = rng.integers(0, 2, count)
    momenta = rng.exponential(30.0 + 8.0 * labels[:, None], (count, 8))
    mass = np.where(labels == 1, rng.normal(125.0, 12.0, count), 60.0 + rng.exponential(60.0, count))
    angles = rng.normal(0.0, 1.5, (count, 11))
    angles[:, 1:3] += 0.4 * labels[:, None] * angles[:, :1]
    return np.column_stack([momenta, mass, angles]).astype(np.float32), labels.astype(np.int64)


def load():
    """Training, validation and test part."""'''
    + _SYNTHETIC
)

_DIGITS = '''
def load():
    """Training, validation and test part of the digits that come with scikit-learn, which need not be imported."""
    import importlib.metadata

    file = importlib.metadata.distribution("scikit-learn").locate_file("sklearn/datasets/data/digits.csv.gz")
    table = np.loadtxt(str(file), delimiter=",", dtype=np.float32)
    rows, labels = table[:, :-1].reshape(-1, 1, 8, 8), table[:, -1].astype(np.int64)
    test, validation, train = np.split(np.random.default_rng(SEED).permutation(len(rows)), [360, 540])
    return split_rows(rows, labels, train[:SAMPLES], validation, test)
'''

_IMAGES = '''
def load():
    """Training, validation and test part of the images, which torchvision downloads into the folder `data`."""
    import torchvision

    source = torchvision.datasets.@CLASS@
    known, test = source("data", train=True, download=True), source("data", train=False, download=True)
    order = np.random.default_rng(SEED).permutation(len(known))
    train, validation = order[:SAMPLES], order[SAMPLES : SAMPLES + 10_000]
    pixels = known.data[torch.from_numpy(train)].double().div(255)
    mean, std = float(pixels.mean()), float(pixels.std())

    def part(images, indices):
        chosen = torch.from_numpy(indices)
        return images.data[chosen].unsqueeze(1).float().div(255).sub(mean).div(std), images.targets[chosen]

    return [part(known, train), part(known, validation), part(test, np.arange(len(test)))]
'''

_DATA = {
    "disc": _DISC,
    "signal": _SIGNAL,
    "digits": _DIGITS,
    "mnist": _IMAGES.replace("@CLASS@", "MNIST"),
    "fashion-mnist": _IMAGES.replace("@CLASS@", "FashionMNIST"),
}
