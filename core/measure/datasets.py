"""Data sets as seeded host tensors: generated, read from scikit-learn's bundled files, or loaded by torchvision.

Each data set is split into training, validation and test, and standardised with the mean and standard deviation of its
training samples. Missing data is never replaced. scikit-learn is not imported: it would load a second OpenMP runtime.

The batches of a training are endless, in an order that depends on the seed alone. Every data path yields the same
batches in the same order, so devices and data paths can be compared. A batch is first built (the loader's part) and
then placed on the device (the transfer). `core.measure.breakdown` times the two parts separately.
"""

import contextlib
import hashlib
import importlib.metadata
import itertools
import math
import socket
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data import Dataset as TorchDataset

from ..errors import DatasetUnavailable, InvalidValue
from ..files import sources
from ..question import catalog
from ..question.experiment import Point
from ..question.models.operations import GATHERED_BYTES
from .execution import Batch

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


PINNED_TYPES = ("cuda", "xpu")
"""Types of devices to which PyTorch copies from pinned memory without waiting."""

PREFETCHED_PER_WORKER = 2
"""Number of batches that a DataLoader worker prepares in advance; torch's default."""


@dataclass(frozen=True, kw_only=True)
class Feed:
    """Batches of one training.

    Attributes:
        batches: endless iterator; calling `next` on it is the loader's part of a step.
        take: the requested number of next batches, concatenated into one. The result comes from the same stream and is
            valid only until the next call.
        place: function that moves batches to the device (the host-to-device transfer).
        batch_size: number of samples in a batch.
        at_once: number of batches to request with one call of `take` for the best speed.
        indices: returns the sample indices of the next batches if samples are resident; otherwise None.
        gather: returns batches by their indices if samples are resident; otherwise None.
        prefetched: number of batches that may be ready before they are requested.
    """

    batches: Iterator[Batch]
    take: Callable[[int], Batch]
    place: Callable[[Batch], Batch]
    batch_size: int
    at_once: int = 1
    indices: Callable[[int], Tensor] | None = None
    gather: Callable[[Tensor], Batch] | None = None
    prefetched: int = 0


def batch_order(point: Point, epoch: int) -> Tensor:
    """Return the indices of one epoch's training samples, int64 (steps_per_epoch × batch_size,); full batches only."""
    used = point.steps_per_epoch * point.batch_size
    if not point.shuffle:
        return torch.arange(used)
    generator = torch.Generator().manual_seed(point.seed + epoch * 1_000_003)
    return torch.randperm(point.samples, generator=generator)[:used]


def make_feed(point: Point, data: Data, resident: Split, device: torch.device, *, first_step: int = 0) -> Feed:
    """Return the batches of `point` from step `first_step` on.

    If the data is resident, the batches come from `resident`, on the device.
    """
    if point.data_path == "resident":
        return _build_index_feed(point, resident, device, _leave, first_step)
    pinned = point.data_path == "pinned" and device.type in PINNED_TYPES
    place = _leave if device.type == "cpu" else _mover(device, non_blocking=pinned)
    if point.data_path == "per_batch":
        host = _build_index_feed(point, data.train, torch.device("cpu"), place, first_step)
        return replace(host, at_once=1, indices=None, gather=None)
    source = data.one_by_one if point.data_path == "tutorial" else TensorDataset(data.train.samples, data.train.labels)
    batches = _loader(point, source, pinned=pinned, first_step=first_step)
    return Feed(
        batches=batches,
        take=partial(_join_batches, batches, pinned=pinned),
        place=place,
        batch_size=point.batch_size,
        prefetched=PREFETCHED_PER_WORKER * point.loader_workers,
    )


class _Order:
    """Position of a training in its endless sequence of samples."""

    def __init__(self, point: Point, device: torch.device, first_step: int) -> None:
        self._point, self._device = point, device
        self._epoch, self._step = divmod(first_step, point.steps_per_epoch)
        self._indices = self._load()

    def take(self, steps: int) -> Tensor:
        """Return the indices of the next batches in one tensor; they may extend into the next epochs."""
        pieces: list[Tensor] = []
        while steps:
            if self._step == self._point.steps_per_epoch:
                self._epoch, self._step = self._epoch + 1, 0
                self._indices = self._load() if self._point.shuffle else self._indices
            count = min(steps, self._point.steps_per_epoch - self._step)
            size = self._point.batch_size
            pieces.append(self._indices[self._step * size : (self._step + count) * size])
            self._step += count
            steps -= count
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces)

    def _load(self) -> Tensor:
        """Return the order of this epoch on the device.

        It is copied once per epoch, from pinned memory if that avoids a wait.
        """
        indices = batch_order(self._point, self._epoch)
        if self._device.type in PINNED_TYPES:
            return indices.pin_memory().to(self._device, non_blocking=True)
        return indices.to(self._device)


def _build_index_feed(
    point: Point, split: Split, device: torch.device, place: Callable[[Batch], Batch], first_step: int
) -> Feed:
    samples, labels = split.samples, split.labels
    place_in_order = _Order(point, device, first_step)

    def gather(indices: Tensor) -> Batch:
        return samples.index_select(0, indices), labels.index_select(0, indices)

    room: dict[int, Batch] = {}

    def take(steps: int) -> Batch:
        """Gather the next batches in reused memory, because allocating memory takes as long as copying the samples."""
        indices = place_in_order.take(steps)
        if len(indices) not in room:
            return room.setdefault(len(indices), gather(indices))
        for source, into in zip((samples, labels), room[len(indices)], strict=True):
            torch.index_select(source, 0, indices, out=into)
        return room[len(indices)]

    batch_bytes = point.batch_size * (samples.numel() // max(1, len(samples)) * samples.element_size() + 8)
    return Feed(
        batches=map(gather, map(place_in_order.take, itertools.repeat(1))),
        take=take,
        place=place,
        batch_size=point.batch_size,
        at_once=max(1, GATHERED_BYTES // batch_bytes),
        indices=place_in_order.take,
        gather=gather,
    )


def _join_batches(batches: Iterator[Batch], steps: int, *, pinned: bool) -> Batch:
    drawn = list(itertools.islice(batches, steps))
    if steps == 1:
        return drawn[0]
    samples, labels = zip(*drawn, strict=True)
    return _join_tensors(samples, pinned=pinned), _join_tensors(labels, pinned=pinned)


def _join_tensors(parts: tuple[Tensor, ...], *, pinned: bool) -> Tensor:
    """Concatenate tensors, into pinned memory if they are pinned: a copy from other memory would wait."""
    if not pinned:
        return torch.cat(parts)
    shape = sum(map(len, parts)), *parts[0].shape[1:]
    return torch.cat(parts, out=torch.empty(shape, dtype=parts[0].dtype, pin_memory=True))


class _BatchSampler:
    """Endless batches of indices for a DataLoader, whose workers continue across epochs."""

    def __init__(self, point: Point, first_step: int) -> None:
        self._point, self._first_step = point, first_step

    def __iter__(self) -> Iterator[list[int]]:
        upcoming = _Order(self._point, torch.device("cpu"), self._first_step)
        while True:
            yield upcoming.take(1).tolist()


def _loader(point: Point, source: Any, *, pinned: bool, first_step: int) -> Iterator[Batch]:
    loader: DataLoader[Any] = DataLoader(
        source,
        batch_sampler=_BatchSampler(point, first_step),
        num_workers=point.loader_workers,
        prefetch_factor=PREFETCHED_PER_WORKER if point.loader_workers else None,
        pin_memory=pinned,
    )
    yield from loader


def _leave(batch: Batch) -> Batch:
    return batch


def _mover(device: torch.device, *, non_blocking: bool) -> Callable[[Batch], Batch]:
    """Return the function that copies tensors to `device`.

    A copy that does not wait is safe only from pinned memory, and only to `PINNED_TYPES`.
    """

    def move(batch: Batch) -> Batch:
        samples, labels = batch
        return samples.to(device, non_blocking=non_blocking), labels.to(device, non_blocking=non_blocking)

    return move
