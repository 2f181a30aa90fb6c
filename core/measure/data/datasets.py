"""Data sets as seeded host tensors: drawn, read from scikit-learn's bundled files, or loaded by torchvision.

Every set is split into training, validation and test, and standardised with the mean and standard deviation
of its training samples. Nothing is ever substituted: files that are missing are said to be missing. This
module moves nothing to a device; `core.measure.data.batches` does.
"""

import contextlib
import hashlib
import math
import socket
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from core.errors import DatasetUnavailable, InvalidValue
from core.files import downloaded
from core.measure.data import bundled
from core.question import catalog

FOLDER = downloaded.folder()
"""Where torchvision keeps its files."""

IMAGES_VALIDATION = 10_000
"""Of torchvision's 60,000 training images; fewer where more than 50,000 are trained on."""

HELD_OUT_SHARE = 5
"""Synthetic sets draw one validation and one test sample for every five to train on, at least 100."""

DISC_RADIUS_SQUARED = 1 / (2 * np.pi)
"""The disc tutorial's code tests x² + y² < 1/(2π) on [0, 1]²; its prose says otherwise, the code is followed."""

DOWNLOAD_TIMEOUT_S = 15
"""A host without internet should say so soon, not hang."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """Samples with labels.

    Attributes:
        samples: float32 (n, *shape), standardised.
        labels: int64 (n,).
    """

    samples: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> "Split":
        """The split on `device`."""
        return Split(samples=self.samples.to(device), labels=self.labels.to(device))


@dataclass(frozen=True, kw_only=True)
class Data:
    """One data set, split.

    Attributes:
        train: what is trained on.
        validation: may be empty where every image is trained on.
        test: for the classification report.
        one_by_one: the training samples as the tutorials read them, one at a time with transforms.
        hash: 16 hexadecimal digits over every sample and label of the three parts.
    """

    train: Split
    validation: Split
    test: Split
    one_by_one: TorchDataset[Any]
    hash: str


_LOADED: weakref.WeakValueDictionary[tuple[str, int, int, Path], Data] = weakref.WeakValueDictionary()
"""What somebody still trains on: the points of a sweep share it."""


def load(name: str, *, samples: int, seed: int, folder: Path | None = None) -> Data:
    """Load and split one data set, unless it is in use already: then it is the same.

    Args:
        name: key of `core.question.catalog.DATASETS`.
        samples: training samples.
        seed: of the drawing and of the split.
        folder: of torchvision's files, `FOLDER` unless given.

    Raises:
        DatasetUnavailable: files are missing and could not be downloaded.
        InvalidValue: the files hold fewer samples than were asked for.
    """
    key = name, samples, seed, folder or FOLDER
    if (found := _LOADED.get(key)) is None:
        found = _LOADED[key] = _load(*key)
    return found


def _load(name: str, samples: int, seed: int, folder: Path) -> Data:
    facts = catalog.dataset(name)
    if facts.needs_files:
        return _torchvision(facts, samples, seed, folder)
    if facts.synthetic:
        return _synthetic(_DRAW[name], samples, seed)
    return _bundled(facts, samples, seed)


class _Rows(TorchDataset[tuple[Tensor, int]]):
    """Rows of an array, converted and standardised one at a time, as a tutorial's data set class does."""

    def __init__(self, rows: np.ndarray, labels: np.ndarray, mean: Tensor, std: Tensor) -> None:
        self._rows, self._labels, self._mean, self._std = rows, labels, mean, std

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        sample = torch.from_numpy(self._rows[index]).sub(self._mean).div(self._std)
        return sample, int(self._labels[index])


def _synthetic(
    draw: Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]], samples: int, seed: int
) -> Data:
    held_out = max(100, samples // HELD_OUT_SHARE)
    rows, labels = draw(np.random.default_rng(seed), samples + 2 * held_out)
    order = np.arange(len(rows))
    return _split_rows(rows, labels, order[:samples], order[samples : samples + held_out], order[samples + held_out :])


def _disc(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of [0, 1]² and whether they lie inside the quarter disc; (count, 2) float32 and (count,) int64."""
    points = rng.random((count, 2), dtype=np.float32)
    return points, ((points**2).sum(axis=1) < DISC_RADIUS_SQUARED).astype(np.int64)


def _signal(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulated events, half of them signal; (count, 20) float32 and (count,) int64.

    Eight momenta-like features with exponential tails, harder for the signal; one mass-like feature with a
    peak over a falling background; eleven angle-like features of which three are correlated in the signal.
    """
    labels = rng.integers(0, 2, count)
    momenta = rng.exponential(30.0 + 8.0 * labels[:, None], (count, 8))
    mass = np.where(labels == 1, rng.normal(125.0, 12.0, count), 60.0 + rng.exponential(60.0, count))
    angles = rng.normal(0.0, 1.5, (count, 11))
    angles[:, 1:3] += 0.4 * labels[:, None] * angles[:, :1]
    return np.column_stack([momenta, mass, angles]).astype(np.float32), labels.astype(np.int64)


_DRAW = {"disc": _disc, "signal": _signal}


def _bundled(facts: catalog.Dataset, samples: int, seed: int) -> Data:
    """A fifth is tested with, a tenth validated."""
    rows, labels = bundled.read(facts)
    test_end, validation_end = math.ceil(len(rows) / 5), math.ceil(len(rows) / 5) + math.ceil(len(rows) / 10)
    test, validation, train = np.split(np.random.default_rng(seed).permutation(len(rows)), [test_end, validation_end])
    return _split_rows(rows, labels, train[:samples], validation, test)


def _split_rows(
    rows: np.ndarray, labels: np.ndarray, train: np.ndarray, validation: np.ndarray, test: np.ndarray
) -> Data:
    """Tables are standardised column by column, images as a whole."""
    axes = (0,) if rows.ndim == 2 else None
    mean = torch.as_tensor(rows[train].mean(axis=axes, dtype=np.float64), dtype=torch.float32)
    std = torch.as_tensor(rows[train].std(axis=axes, dtype=np.float64), dtype=torch.float32)

    def split(indices: np.ndarray) -> Split:
        samples = torch.from_numpy(rows[indices]).sub(mean).div(std)
        return Split(samples=samples, labels=torch.from_numpy(labels[indices]))

    one_by_one = _Rows(rows[train], labels[train], mean, std)
    return _data(split(train), split(validation), split(test), one_by_one)


def _torchvision(facts: catalog.Dataset, samples: int, seed: int, folder: Path) -> Data:
    import torchvision
    from torchvision.transforms import Compose, Normalize, ToTensor

    loader = getattr(torchvision.datasets, downloaded.LOADERS[facts.name])
    with _files_of(facts, downloaded.place(facts.name, folder)):
        train_set, test_set = _open(loader, folder, train=True), _open(loader, folder, train=False)
    if samples > len(train_set):
        raise InvalidValue("samples", samples, f"at most the {len(train_set):,} training images in {folder}")
    order = np.random.default_rng(seed).permutation(len(train_set))
    train, validation = order[:samples], order[samples : samples + IMAGES_VALIDATION]
    pixels = train_set.data[torch.from_numpy(train)].double().div(255)
    mean, std = float(pixels.mean()), float(pixels.std())
    train_set.transform = Compose([ToTensor(), Normalize((mean,), (std,))])

    def split(source: Any, indices: np.ndarray) -> Split:
        chosen = torch.from_numpy(indices)
        images = source.data[chosen].unsqueeze(1).float().div(255).sub(mean).div(std)
        return Split(samples=images, labels=source.targets[chosen])

    one_by_one = torch.utils.data.Subset(train_set, train.tolist())
    return _data(
        split(train_set, train), split(train_set, validation), split(test_set, np.arange(len(test_set))), one_by_one
    )


def _open(loader: Any, folder: Path, *, train: bool) -> Any:
    """Files that are there are used as they are; torchvision downloads the others and checks their sums."""
    try:
        return loader(folder, train=train, download=False)
    except RuntimeError:
        return loader(folder, train=train, download=True)


@contextlib.contextmanager
def _files_of(facts: catalog.Dataset, raw: Path) -> Iterator[None]:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(DOWNLOAD_TIMEOUT_S)
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        message = (
            f"{facts.called} is not on this machine and could not be downloaded: put its four files"
            f" ({', '.join(downloaded.FILES)}) into {raw}, or choose digits, which needs no download."
        )
        raise DatasetUnavailable(message) from error
    finally:
        socket.setdefaulttimeout(before)


def _data(train: Split, validation: Split, test: Split, one_by_one: TorchDataset[Any]) -> Data:
    digest = hashlib.sha256()
    for part in (train, validation, test):
        digest.update(part.samples.numpy().tobytes())
        digest.update(part.labels.numpy().tobytes())
    return Data(train=train, validation=validation, test=test, one_by_one=one_by_one, hash=digest.hexdigest()[:16])
