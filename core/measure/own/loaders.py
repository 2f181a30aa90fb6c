"""What the loader of one's own training could be instead: other workers, pinned memory, batches on the device already.

Each takes turns with the loader as it is, on the same training: only where its batches come from is another.
"""

import contextlib
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from core.errors import OwnTrainingFailed
from core.measure.data.batches import Feed
from core.measure.own.training import OwnTraining
from core.measure.readings.timer import MIN_BLOCK_S, Timer

TURNS = 7
"""As many as an interval of the median needs, and one more."""

MOST_S = 10.0
"""Seconds that all turns may take; beyond, nothing is tried."""

RESIDENT = 8
"""Batches that are put on the device, and gone through over and over: a step takes as long with any."""

WORKERS = (0, 2)

GIVEN = "given"

FAILED = {
    "workers0": "Without workers of its loader it could not be trained.",
    "workers2": "With two workers of its loader it could not be trained.",
    "pinned": "With batches in pinned memory it could not be trained.",
    "resident": "With batches that stay on the device it could not be trained.",
}
"""What is said of a loader that was tried and failed."""


def others(source: Any, device: torch.device, place: Callable[[Any], Any]) -> dict[str, tuple[Iterable[Any], bool]]:
    """Sources of batches to try in place of a DataLoader, each with whether they have to be placed.

    Empty where it is none of PyTorch's own: what else makes batches has nothing that could be changed from outside.
    """
    if type(source) is not DataLoader:
        return {}
    found: dict[str, tuple[Iterable[Any], bool]] = {}
    if not isinstance(source.dataset, IterableDataset):
        found = {f"workers{n}": (_changed(source, num_workers=n), True) for n in WORKERS if n != source.num_workers}
        if device.type == "cuda" and not source.pin_memory:
            found["pinned"] = _changed(source, pin_memory=True), True
    found["resident"] = _Resident(source, place), False
    return found


def measure(
    training: OwnTraining, feeds: Mapping[str, Feed], timer: Timer, step_s: float
) -> dict[str, tuple[float, ...]]:
    """Seconds of a step with each feed and with the given one, an entry a turn; nothing where that takes too long.

    Raises:
        OwnTrainingFailed: by its own code with the loader that it has.
    """
    steps = max(1, math.ceil(MIN_BLOCK_S / step_s))
    if TURNS * (1 + len(feeds)) * steps * step_s > MOST_S:
        return {}
    given, working = training.feed, dict(feeds)
    chance = random.Random(0)
    try:
        for name, feed in feeds.items():
            if not _works(training, feed):
                del working[name]
        working[GIVEN] = given
        times: dict[str, list[float]] = {name: [] for name in working}
        for _ in range(TURNS):
            for name in chance.sample(list(working), len(working)):
                training.use(working[name])
                training.advance(1 + working[name].prefetched)  # what its workers had ready by now
                times[name].append(timer.time(partial(training.advance, steps)).seconds / steps)
    finally:
        training.use(given)
    return {name: tuple(values) for name, values in times.items()}


def left_out(source: Any, tried: Iterable[str], timed: Iterable[str]) -> list[str]:
    """Why other loaders were not timed, a sentence each; empty where all were."""
    tried, timed = list(tried), set(timed)
    if not tried:
        return ["Other loaders were not tried: its batches are no DataLoader of PyTorch's own."]
    if not timed:
        return [f"Other loaders were not tried: their turns would take longer than {MOST_S:.0f} s."]
    failed = [FAILED[name] for name in tried if name not in timed]
    if isinstance(source.dataset, IterableDataset):
        return ["Other workers were not tried: they share an IterableDataset in a way of its own.", *failed]
    return failed


def _works(training: OwnTraining, feed: Feed) -> bool:
    """Whether it can be trained from: workers cannot have what lies on a device, or what cannot be copied to them."""
    training.use(feed)
    with contextlib.suppress(OwnTrainingFailed):
        training.advance(1)
        return True
    return False


def _changed(source: DataLoader[Any], **changes: Any) -> DataLoader[Any]:
    options: dict[str, Any] = {
        "num_workers": source.num_workers,
        "pin_memory": source.pin_memory,
        "collate_fn": source.collate_fn,
        "worker_init_fn": source.worker_init_fn,
        "generator": source.generator,
        **changes,
    }
    if options["num_workers"]:
        options |= {"persistent_workers": source.persistent_workers, "prefetch_factor": source.prefetch_factor}
    if source.batch_sampler is not None:
        return DataLoader(source.dataset, batch_sampler=source.batch_sampler, **options)
    return DataLoader(source.dataset, batch_size=None, sampler=source.sampler, **options)


class _Resident:
    """The first batches of a loader as they are once they were placed."""

    def __init__(self, source: Iterable[Any], place: Callable[[Any], Any]) -> None:
        self._source, self._place = source, place
        self._placed: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        if not self._placed:
            self._placed = [self._place(batch) for batch in itertools.islice(self._source, RESIDENT)]
        return iter(self._placed)
