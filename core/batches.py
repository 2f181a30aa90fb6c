"""How data reach the device: endless batches of one training in an order that depends on the seed alone.

Every data path yields the same batches in the same order, so that devices and paths can be compared. A batch
is made (the loader's part) and then placed on the device (the transfer); `core.phases` times the two apart.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from core.datasets import Data, Split
from core.experiment import Point

Batch = tuple[Tensor, Tensor]
"""Samples (batch, *shape) float32 and labels (batch,) int64."""

PREFETCHED_PER_WORKER = 2
"""torch's own default; a DataLoader worker keeps as many batches ready."""


@dataclass(frozen=True, kw_only=True)
class Feed:
    """Batches of one training.

    Attributes:
        batches: endless; drawing from it is the loader's part of a step.
        place: puts a drawn batch on the device, the host-to-device transfer.
        prefetched: batches that may be ready before they are asked for.
    """

    batches: Iterator[Batch]
    place: Callable[[Batch], Batch]
    prefetched: int = 0


def order(point: Point, epoch: int) -> Tensor:
    """Indices of the training samples in one epoch, int64 (steps_per_epoch × batch_size,), full batches only."""
    used = point.steps_per_epoch * point.batch_size
    if not point.shuffle:
        return torch.arange(used)
    generator = torch.Generator().manual_seed(point.seed + epoch * 1_000_003)
    return torch.randperm(point.samples, generator=generator)[:used]


def feed(point: Point, data: Data, resident: Split, device: torch.device, *, first_step: int = 0) -> Feed:
    """The batches of `point` from step `first_step` on.

    Args:
        point: says which data path, batch size, order and workers.
        data: on the host.
        resident: `data.train` on the device; only the resident path uses it.
        device: where batches go.
        first_step: steps that were trained before.
    """
    if point.data_path == "resident":
        return Feed(batches=_indexed(point, resident, device, first_step), place=_leave)
    pinned = point.data_path == "loader" and device.type == "cuda"
    place = _leave if device.type == "cpu" else _mover(device, non_blocking=pinned)
    if point.data_path == "per_batch":
        return Feed(batches=_indexed(point, data.train, torch.device("cpu"), first_step), place=place)
    source = data.one_by_one if point.data_path == "tutorial" else TensorDataset(data.train.samples, data.train.labels)
    batches = _loader(point, source, pinned=pinned, first_step=first_step)
    return Feed(batches=batches, place=place, prefetched=PREFETCHED_PER_WORKER * point.loader_workers)


def _indexed(point: Point, split: Split, device: torch.device, first_step: int) -> Iterator[Batch]:
    samples, labels = split.samples, split.labels
    for indices in _batch_indices(point, device, first_step):
        yield samples.index_select(0, indices), labels.index_select(0, indices)


def _batch_indices(point: Point, device: torch.device, first_step: int) -> Iterator[Tensor]:
    """Indices of every batch, epoch after epoch; one copy to the device an epoch."""
    epoch, skipped = divmod(first_step, point.steps_per_epoch)
    while True:
        yield from order(point, epoch).to(device).split(point.batch_size)[skipped:]
        epoch, skipped = epoch + 1, 0


class _BatchSampler:
    """Endless batches of indices for a DataLoader; its workers live on across epochs."""

    def __init__(self, point: Point, first_step: int) -> None:
        self._point, self._first_step = point, first_step

    def __iter__(self) -> Iterator[list[int]]:
        for indices in _batch_indices(self._point, torch.device("cpu"), self._first_step):
            yield indices.tolist()


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
    """A copy to `device`; PyTorch promises a safe copy that does not wait only from pinned memory towards CUDA."""

    def move(batch: Batch) -> Batch:
        samples, labels = batch
        return samples.to(device, non_blocking=non_blocking), labels.to(device, non_blocking=non_blocking)

    return move
