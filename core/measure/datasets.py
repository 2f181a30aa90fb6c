"""Data sets as seeded host tensors: generated, read from scikit-learn's bundled files, or loaded by torchvision.

Each data set is split into training, validation and test, and standardised with the mean and standard deviation of its
training samples. Missing data is never replaced. scikit-learn is not imported: it would load a second OpenMP runtime.
"""

import contextlib
import hashlib
import importlib.metadata
import itertools
import math
import socket
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from ..errors import DatasetUnavailable, InvalidValue
from ..files import sources
from ..question import catalog
from ..question.experiment import Point

LabelledTable = tuple[np.ndarray, np.ndarray]
"""Rows float32 (n, features) and labels int64 (n,)."""

DIABETES_CUTS = (100.0, 184.0)
"""Maximum progression of the first and of the second third of the patients, whose values range from 25 to 346."""


def read_bundled_dataset(facts: catalog.Dataset) -> LabelledTable:
    """Return all samples of a data set, (n, *shape), in the order of its file.

    Raises:
        DatasetUnavailable: scikit-learn is not installed.
    """
    try:
        package = importlib.metadata.distribution("scikit-learn")
    except importlib.metadata.PackageNotFoundError as error:
        message = (
            f"The data set {facts.called} comes with scikit-learn, which is not installed: pip install scikit-learn."
        )
        raise DatasetUnavailable(message) from error
    folder = Path(str(package.locate_file("sklearn/datasets/data")))
    rows, labels = (_diabetes if facts.name == "diabetes" else _read_labelled_table)(folder, facts.bundled)
    return rows.reshape(-1, *facts.shape), labels


def _read_labelled_table(folder: Path, name: str) -> LabelledTable:
    """Return a table whose last column is the label; every file except the digits has a header line."""
    headings = 0 if name.startswith("digits") else 1
    table = np.loadtxt(folder / name, delimiter=",", dtype=np.float32, skiprows=headings)
    return table[:, :-1], table[:, -1].astype(np.int64)


def _diabetes(folder: Path, name: str) -> LabelledTable:
    """Return the patients, labelled with the third of the progression that they belong to."""
    progression = np.loadtxt(folder / "diabetes_target.csv.gz")
    return np.loadtxt(folder / name, dtype=np.float32), np.searchsorted(DIABETES_CUTS, progression).astype(np.int64)


DATASETS_FOLDER = sources.folder()
"""Folder of torchvision's files."""

IMAGES_VALIDATION = 10_000
"""Number of validation images, out of torchvision's 60,000 training images; fewer if more than 50,000 are used for
training.
"""

HELD_OUT_SHARE = 5
"""Number of validation samples, and of test samples, of a synthetic data set per training sample; at least 100."""

DISC_RADIUS_SQUARED = 1 / (2 * np.pi)
"""Square of the radius: the tutorial's code tests x² + y² < 1/(2π) on [0, 1]².

Its text differs; Crossover follows the code.
"""

CATEGORIES = 100_000
"""Number of categories in each column of the clicks."""

DOWNLOAD_TIMEOUT_S = 15
"""Seconds after which a download fails on a host without internet access."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """Samples with labels.

    Attributes:
        samples: (n, *shape) in the number format of the training, standardised; tokens are int32 (n, steps), unchanged.
        labels: int64 (n,).
    """

    samples: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> "Split":
        """Return the split on `device`."""
        return Split(samples=self.samples.to(device), labels=self.labels.to(device))


@dataclass(frozen=True, kw_only=True)
class Data:
    """One data set with its three parts.

    Attributes:
        validation: empty if every image is used for training.
        one_by_one: training samples as in the tutorials, read one at a time with transforms.
        hash: 16 hexadecimal digits computed from all samples and labels.
    """

    train: Split
    validation: Split
    test: Split
    one_by_one: TorchDataset[Any]
    hash: str


_LOADED: weakref.WeakValueDictionary[tuple[str, int, int, int, int, Path, str], Data] = weakref.WeakValueDictionary()
"""Data sets in use by a training; the points of a sweep share them."""


def load_dataset(
    name: str,
    *,
    samples: int,
    seed: int,
    sequence_length: int = 0,
    embedding_rows: int = 0,
    dtype: str = "float32",
    folder: Path | None = None,
) -> Data:
    """Load and split one data set, or return the loaded one if it is in use.

    Args:
        name: key of `core.question.catalog.DATASETS`.
        samples: number of training samples.
        seed: seed of the random numbers and of the split.
        sequence_length: number of tokens per sample, if samples are tokens.
        embedding_rows: number of distinct values of a category, if samples are categories.
        dtype: number format of samples other than integers; it changes neither values nor hash.
        folder: folder of torchvision's files, `DATASETS_FOLDER` by default.

    Raises:
        DatasetUnavailable: files are missing and could not be downloaded.
        InvalidValue: the files have fewer samples than were requested.
    """
    key = name, samples, seed, sequence_length, embedding_rows, folder or DATASETS_FOLDER, dtype
    if (found := _LOADED.get(key)) is None:
        found = _LOADED[key] = _convert_dtype(_load(*key[:-1]), getattr(torch, dtype))
    return found


def load_point_data(point: Point) -> Data:
    """Load the data of a training.

    Raises:
        DatasetUnavailable: files are missing and could not be downloaded.
        InvalidValue: the files have fewer samples than were requested.
    """
    return load_dataset(
        point.dataset,
        samples=point.samples,
        seed=point.seed,
        sequence_length=point.sequence_length,
        embedding_rows=point.embedding_rows,
        dtype=point.dtype,
    )


def _convert_dtype(data: Data, dtype: torch.dtype) -> Data:
    if data.train.samples.dtype in (dtype, torch.int32):
        return data
    train, validation, test = (
        Split(samples=part.samples.to(dtype), labels=part.labels) for part in (data.train, data.validation, data.test)
    )
    one_by_one = _Converted(data.one_by_one, dtype)
    return Data(train=train, validation=validation, test=test, one_by_one=one_by_one, hash=data.hash)


class _Converted(TorchDataset[tuple[Tensor, int]]):
    """Samples one at a time, converted to another number format."""

    def __init__(self, source: TorchDataset[Any], dtype: torch.dtype) -> None:
        self._source, self._dtype = source, dtype

    def __len__(self) -> int:
        return len(self._source)  # type: ignore[arg-type]  # all data sets here have a length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        sample, label = self._source[index]
        return sample.to(self._dtype), label


def _load(name: str, samples: int, seed: int, sequence_length: int, embedding_rows: int, folder: Path) -> Data:
    facts = catalog.dataset(name)
    if facts.needs_files:
        return _torchvision(facts, samples, seed, folder)
    if "embedding_rows" in facts.axes:
        return _synthetic(partial(_clicks, facts, embedding_rows), samples, seed)
    if facts.vocabulary:
        return _synthetic(partial(_token_order, facts, sequence_length), samples, seed)
    if facts.synthetic:
        return _synthetic(_DRAW[name], samples, seed)
    return _load_bundled(facts, samples, seed)


class _Rows(TorchDataset[tuple[Tensor, int]]):
    """Rows of an array, converted and standardised one at a time, like the data set class of a tutorial."""

    def __init__(self, rows: np.ndarray, labels: np.ndarray, prepare: Callable[[np.ndarray], Tensor]) -> None:
        self._rows, self._labels, self._prepare = rows, labels, prepare

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self._prepare(self._rows[index]), int(self._labels[index])


def _synthetic(
    draw: Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]], samples: int, seed: int
) -> Data:
    held_out = max(100, samples // HELD_OUT_SHARE)
    rows, labels = draw(np.random.default_rng(seed), samples + 2 * held_out)
    order = np.arange(len(rows))
    return _split_rows(rows, labels, order[:samples], order[samples : samples + held_out], order[samples + held_out :])


def _disc(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of [0, 1]² and whether they are inside the quarter disc; (count, 2) float32 and (count,) int64."""
    points = rng.random((count, 2), dtype=np.float32)
    return points, ((points**2).sum(axis=1) < DISC_RADIUS_SQUARED).astype(np.int64)


def _signal(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulate events, half of them signal; (count, 20) float32 and (count,) int64.

    Eight features resemble momenta with exponential tails, harder for the signal; one resembles a mass with a peak over
    a falling background; eleven resemble angles, three of them correlated in the signal.
    """
    labels = rng.integers(0, 2, count)
    momenta = rng.exponential(30.0 + 8.0 * labels[:, None], (count, 8))
    mass = np.where(labels == 1, rng.normal(125.0, 12.0, count), 60.0 + rng.exponential(60.0, count))
    angles = rng.normal(0.0, 1.5, (count, 11))
    angles[:, 1:3] += 0.4 * labels[:, None] * angles[:, :1]
    return np.column_stack([momenta, mass, angles]).astype(np.float32), labels.astype(np.int64)


def _token_order(
    facts: catalog.Dataset, length: int, rng: np.random.Generator, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return sequences of tokens, labelled with the order of 0, 1 and 2; (count, length) int32 and (count,) int64."""
    tokens = rng.integers(3, facts.vocabulary, (count, length), dtype=np.int32)
    labels = rng.integers(0, len(facts.classes), count)
    places = np.sort(rng.integers(0, length - 2, (count, 3)), axis=1) + np.arange(3)
    orders = np.array(list(itertools.permutations(range(3))), dtype=np.int32)
    np.put_along_axis(tokens, places, orders[labels], axis=1)
    return tokens, labels.astype(np.int64)


def _clicks(facts: catalog.Dataset, rows: int, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return categories below `rows`, (count, columns) int32, and whether their effects add up to a purchase.

    The frequency of a category is proportional to one over its rank. A hash determines its number and effect.
    """
    columns = np.arange(facts.shape[0], dtype=np.uint64)
    ranks = np.floor(CATEGORIES ** rng.random((count, len(columns)))).astype(np.uint64)
    mixed = (ranks + columns * np.uint64(CATEGORIES)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    effects = (mixed >> np.uint64(63)).astype(np.int64) * 2 - 1
    numbers = (mixed >> np.uint64(20)) % np.uint64(rows)
    return numbers.astype(np.int32), (effects.sum(axis=1) > 0).astype(np.int64)


_DRAW = {"disc": _disc, "signal": _signal}


def _load_bundled(facts: catalog.Dataset, samples: int, seed: int) -> Data:
    """Load a bundled data set; a fifth of it is the test set and a tenth the validation set."""
    rows, labels = read_bundled_dataset(facts)
    test_end, validation_end = math.ceil(len(rows) / 5), math.ceil(len(rows) / 5) + math.ceil(len(rows) / 10)
    test, validation, train = np.split(np.random.default_rng(seed).permutation(len(rows)), [test_end, validation_end])
    return _split_rows(rows, labels, train[:samples], validation, test)


def _split_rows(
    rows: np.ndarray, labels: np.ndarray, train: np.ndarray, validation: np.ndarray, test: np.ndarray
) -> Data:
    """Split rows and standardise them: tables by column, images as a whole, tokens not at all."""
    prepare = torch.from_numpy if rows.dtype == np.int32 else _standardising(rows[train])

    def split(indices: np.ndarray) -> Split:
        return Split(samples=prepare(rows[indices]), labels=torch.from_numpy(labels[indices]))

    one_by_one = _Rows(rows[train], labels[train], prepare)
    return _data(split(train), split(validation), split(test), one_by_one)


def _standardising(rows: np.ndarray) -> Callable[[np.ndarray], Tensor]:
    axes = (0,) if rows.ndim == 2 else None
    mean = torch.as_tensor(rows.mean(axis=axes, dtype=np.float64), dtype=torch.float32)
    std = torch.as_tensor(rows.std(axis=axes, dtype=np.float64), dtype=torch.float32)
    return partial(_standardise, mean=mean, std=std)


def _standardise(rows: np.ndarray, *, mean: Tensor, std: Tensor) -> Tensor:
    return torch.from_numpy(rows).sub(mean).div(std)


def _torchvision(facts: catalog.Dataset, samples: int, seed: int, folder: Path) -> Data:
    import torchvision
    from torchvision.transforms import Compose, Normalize, ToTensor

    loader = getattr(torchvision.datasets, sources.LOADERS[facts.name])
    with _explain_missing_files(facts, sources.locate_dataset(facts.name, folder)):
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
    """Open a data set: existing files are used unchanged; torchvision downloads the others and checks their sums."""
    try:
        return loader(folder, train=train, download=False)
    except RuntimeError:
        return loader(folder, train=train, download=True)


@contextlib.contextmanager
def _explain_missing_files(facts: catalog.Dataset, raw: Path) -> Iterator[None]:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(DOWNLOAD_TIMEOUT_S)
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        message = (
            f"{facts.called} is not on this machine and could not be downloaded: put its four files"
            f" ({', '.join(sources.FILES)}) into {raw}, or choose digits, which needs no download."
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
