"""Endless batches of one training, in an order that depends on the seed alone.

Every data path yields the same batches in the same order, so devices and data paths can be compared. A batch is first
built (the loader's part) and then placed on the device (the transfer). `core.measure.breakdown` times the two parts
separately.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from ..question.experiment import Point
from ..question.models.operations import GATHERED_BYTES
from .datasets import Data, Split
from .execution import Batch

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


def order(point: Point, epoch: int) -> Tensor:
    """Return the indices of one epoch's training samples, int64 (steps_per_epoch × batch_size,); full batches only."""
    used = point.steps_per_epoch * point.batch_size
    if not point.shuffle:
        return torch.arange(used)
    generator = torch.Generator().manual_seed(point.seed + epoch * 1_000_003)
    return torch.randperm(point.samples, generator=generator)[:used]


def feed(point: Point, data: Data, resident: Split, device: torch.device, *, first_step: int = 0) -> Feed:
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
        indices = order(self._point, self._epoch)
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
