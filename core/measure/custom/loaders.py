"""Alternatives to the loader of a custom training: other workers, pinned memory, resident or larger batches.

Each alternative alternates with the original loader in the same training. Only the source of the batches or the number
of samples in a batch differs.
"""

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset

from ...errors import CustomTrainingFailed
from .. import devices
from ..datasets import Feed
from ..timer import MIN_BLOCK_S, Timer
from .training import CustomTraining

TURNS = 7
"""Number of turns: one more than an interval of the median needs."""

MOST_S = 10.0
"""Maximum seconds of all turns; alternatives that need more are not tried."""

RESIDENT = 8
"""Number of batches on the device that are used repeatedly: a step takes equally long with each."""

WORKERS = (0, 2)

LARGER_BATCH_FACTOR = 4
"""Ratio of the samples of a larger batch to those of the original one."""

GIVEN, LARGER = "given", "larger"

FAILED = {
    "workers0": "Training without loader workers failed.",
    "workers2": "Training with two persistent loader workers failed.",
    "pinned": "Training with batches in pinned memory failed.",
    "resident": "Training with batches that stay on the device failed.",
    LARGER: "Training with batches four times as large failed.",
}
"""Sentence for each alternative loader that was tried and failed."""


@dataclass(frozen=True, kw_only=True)
class AlternativeSource:
    """Source of batches in place of a DataLoader.

    Attributes:
        source: iterable of the batches.
        placed: whether the batches are already on the device.
        work: number of samples in a batch, relative to the DataLoader.
    """

    source: Iterable[Any]
    placed: bool = False
    work: float = 1.0


def list_alternative_loaders(
    source: Any, device: torch.device, place: Callable[[Any], Any]
) -> dict[str, AlternativeSource]:
    """List alternatives to a DataLoader, with the same samples in a batch.

    The list is empty unless the source is a DataLoader of PyTorch: other sources cannot be changed from outside.
    Workers persist across epochs, because starting them takes as long as hundreds of small batches.
    """
    if type(source) is not DataLoader:
        return {}
    found: dict[str, AlternativeSource] = {}
    if not isinstance(source.dataset, IterableDataset):
        wanted = [n for n in WORKERS if n != source.num_workers]
        found = {
            f"workers{n}": AlternativeSource(source=_rebuild_loader(source, num_workers=n, persistent_workers=n > 0))
            for n in wanted
        }
        if device.type == "cuda" and not source.pin_memory:
            found["pinned"] = AlternativeSource(source=_rebuild_loader(source, pin_memory=True))
    found["resident"] = AlternativeSource(source=_Resident(source, place), placed=True)
    return found


def list_larger_batches(source: Any) -> dict[str, AlternativeSource]:
    """Return larger batches from the same DataLoader.

    The result is empty if this is impossible, or if the loader is not PyTorch's.
    """
    if type(source) is not DataLoader or type(source.batch_sampler) is not BatchSampler:
        return {}
    given = source.batch_sampler
    sampler, size = given.sampler, LARGER_BATCH_FACTOR * given.batch_size
    if not isinstance(sampler, Sized) or len(sampler) < size:
        return {}
    each = given.batch_size if given.drop_last else len(sampler) / len(given)
    batches = BatchSampler(sampler, size, drop_last=True)
    return {LARGER: AlternativeSource(source=_rebuild_loader(source, batches), work=size / each)}


def select_affordable(
    tried: Mapping[str, AlternativeSource], step_s: float, most_s: float = MOST_S
) -> dict[str, AlternativeSource]:
    """Select the alternatives whose turns fit into the time; if not all fit, the first ones.

    Args:
        tried: the alternatives.
        step_s: seconds of a step with the original loader.
        most_s: maximum seconds of all turns.
    """
    spent_s, fitting = _turns_s(1.0, step_s), dict[str, AlternativeSource]()
    for name, other in tried.items():
        spent_s += _turns_s(other.work, step_s)
        if spent_s > most_s:
            break
        fitting[name] = other
    return fitting


def measure(
    training: CustomTraining,
    tried: Mapping[str, AlternativeSource],
    timer: Timer,
    step_s: float,
    most_s: float = MOST_S,
) -> dict[str, tuple[float, ...]]:
    """Return the seconds per step of each alternative and of the original loader, one entry per turn.

    Alternatives that fail in training are omitted; one whose first turn takes too long has no entries.

    Raises:
        OwnTrainingFailed: the script failed with its original loader.
    """
    given, chance = training.feed, random.Random(0)
    feeds = {name: training.build_feed(other.source, placed=other.placed) for name, other in tried.items()}
    try:
        feeds = {name: feed for name, feed in feeds.items() if _works(training, feed)} | {GIVEN: given}
        times: dict[str, list[float]] = {name: [] for name in feeds}
        round_s = 0.0
        for turn in range(TURNS):
            for name in chance.sample(list(feeds), len(feeds)):
                work = tried[name].work if name in tried else 1.0
                steps = _steps_per_turn(work, step_s)
                training.use(feeds[name])
                training.advance(1 + feeds[name].prefetched)  # what its workers had ready by now
                seconds = timer.time(partial(training.advance, steps)).seconds
                if turn == 0 and name != GIVEN and (round_s + seconds) * TURNS > most_s:
                    del feeds[name]
                    continue
                round_s += seconds
                times[name].append(seconds / steps / work)
    finally:
        training.use(given)
    return {name: tuple(values) for name, values in times.items()}


def explain_skipped_loaders(
    source: Any,
    tried: Iterable[str],
    begun: Iterable[str],
    timed: Mapping[str, Sequence[float]],
    most_s: float = MOST_S,
) -> list[str]:
    """Return a sentence for each alternative that was not timed; empty if all were timed.

    Args:
        source: source of the script's batches.
        tried: all alternatives.
        begun: alternatives for which the time seemed to suffice.
        timed: result of `measure`.
        most_s: maximum seconds of all turns.
    """
    tried, begun = list(tried), list(begun)
    said = []
    if type(source) is not DataLoader:
        said.append("Other loaders were not tried: its batches do not come from PyTorch's own DataLoader.")
    elif isinstance(source.dataset, IterableDataset):
        said.append(
            "Other workers were not tried: its IterableDataset has its own way of sharing samples among workers."
        )
    late = [name for name in tried if name not in begun or not timed.get(name, FAILED)]
    if late:
        which = "Larger batches" if late == [LARGER] else "Other loaders" if late == tried else "Some other loaders"
        said.append(f"{which} were not tried: their turns would take longer than {most_s:.2g} s.")
    return [*said, *(FAILED[name] for name in begun if name not in timed)]


def _steps_per_turn(work: float, step_s: float) -> int:
    """Return the number of steps of a turn, which has about the same number of samples with every alternative."""
    return max(1, math.ceil(MIN_BLOCK_S / step_s / work))


def _turns_s(work: float, step_s: float) -> float:
    """Return the minimum seconds of all turns, estimated from a step with the original loader."""
    return TURNS * _steps_per_turn(work, step_s) * work * step_s


def _works(training: CustomTraining, feed: Feed) -> bool:
    """Return whether training with a loader works: workers cannot load from a device, and memory may be exhausted."""
    training.use(feed)
    return devices.attempt(lambda: training.advance(1), _is_loader_failure) is None


def _is_loader_failure(error: Exception) -> bool:
    return isinstance(error, CustomTrainingFailed) or devices.is_out_of_memory(error)


def _rebuild_loader(source: DataLoader[Any], batches: BatchSampler | None = None, **changes: Any) -> DataLoader[Any]:
    options: dict[str, Any] = {
        "num_workers": source.num_workers,
        "persistent_workers": source.persistent_workers,
        "pin_memory": source.pin_memory,
        "collate_fn": source.collate_fn,
        "worker_init_fn": source.worker_init_fn,
        "generator": source.generator,
        **changes,
    }
    if options["num_workers"]:
        options["prefetch_factor"] = source.prefetch_factor
    if source.batch_sampler is not None:
        return DataLoader(source.dataset, batch_sampler=batches or source.batch_sampler, **options)
    return DataLoader(source.dataset, batch_size=None, sampler=source.sampler, **options)


class _Resident:
    """The first batches of a loader, after they were placed on the device."""

    def __init__(self, source: Iterable[Any], place: Callable[[Any], Any]) -> None:
        self._source, self._place = source, place
        self._placed: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        if not self._placed:
            self._placed = [self._place(batch) for batch in itertools.islice(self._source, RESIDENT)]
        return iter(self._placed)
