"""Before the blocks: checks of the contenders, fresh trainings, and the search for the fastest number of CPU threads.

The checks are: distinct contenders, enough memory, a step within the budget. The search gets a function that times one
thread count, so it also works with a simulated processor (`tests.benchmarks.thread_choice`). Counts take turns, so a
disturbance affects all of them.

The module also measures the limits of a device, and the cost of reading the clock, in a fresh process:

    python -m core.measure.preflight cuda:0

It prints JSON. No step of a training can be faster than these figures allow, so they show whether its times are
plausible.
"""

import argparse
import functools
import json
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn

from .. import units
from ..errors import InvalidValue, OutOfMemory, SameTraining, TooSlow
from ..question.experiment import Contender, Experiment, Point
from ..question.lanes import Lane
from ..question.models import operations
from ..results import environment
from . import datasets, devices, networks
from .datasets import Data, Feed, Split
from .devices import Device
from .execution import Batch
from .timer import MIN_BLOCK_S, MIN_BLOCK_STEPS, Timer
from .training import Training

LOST, LOSSES = 1.1, 2
"""Time relative to the fastest count above which a count has lost; losses in a row after which the search ends."""

ROUNDS = 10
"""Maximum number of readings per count."""

FIRST_ROOM, ROOM, GAIN = 2.0, 0.3, 0.04
"""Limits beyond which a count is dropped.

A count that takes twice as long in the first reading is dropped, and later a count that is slower by more than 0.3 /
√rounds minus 4 %. A reading of 30 ms varies by 2 to 10 %, and a difference of 4 % is not worth more readings.
"""

MOST_FINALISTS = 3
"""Maximum number of counts after the second round."""

LOOK_S = 0.03
"""Seconds of one reading, at least one step."""

LONG_S = 0.5
"""Seconds of a step above which no untimed step precedes it: caches are refilled within a small part of it."""

COMPILED_FOR = 2
"""Number of thread counts for which a CPU variant is compiled: the fastest ones of eager steps."""

Late = Callable[[], bool]
"""Function called between rounds; returns whether the time for the search is over."""

Times = Mapping[int, Sequence[float]]
"""Thread count → seconds per step, one entry per reading."""


def require_usable(threads: int) -> None:
    """Refuse more threads than this process may use; raises InvalidValue."""
    if threads > (usable := environment.usable_cores()):
        raise InvalidValue("threads", threads, f"at most the {usable} this process may use")


def candidate_threads() -> tuple[int, ...]:
    """Return thread counts worth trying here, ascending: 1, 2, 4, 6, 8, 12, … all, and numbers of cores."""
    cores = environment.physical_cores(), environment.performance_cores(), environment.socket_cores()
    return list_thread_counts(environment.usable_cores(), *cores)


def list_thread_counts(usable: int, *cores: int) -> tuple[int, ...]:
    """Return the powers of two up to `usable`, from 6 on also their midpoints, and the given numbers of cores."""
    powers = {2**power for power in range(usable.bit_length())}
    midway = {3 * 2**power for power in range(1, usable.bit_length())}
    return tuple(sorted(count for count in powers | midway | {usable, *cores} if 0 < count <= usable))


def no_deadline() -> bool:
    """Return False; a deadline check that never expires."""
    return False


def choose_thread_times(
    counts: Sequence[int], look: Callable[[int], float], *, late: Late = no_deadline
) -> Generator[None, None, Times]:
    """Time each thread count once in ascending order, then possible winners in rounds; yield before each reading."""
    times: dict[int, list[float]] = {}
    lost = 0
    for count in counts:
        yield
        times[count] = [look(count)]
        lost = lost + 1 if times[count][0] > LOST * min(first for (first,) in times.values()) else 0
        if lost == LOSSES:
            break
    staying = list(times)
    for rounds in range(1, ROUNDS):
        staying = _staying(median_thread_times({count: times[count] for count in staying}), rounds)
        if len(staying) == 1 or late():
            break
        for count in staying:
            yield
            times[count].append(look(count))
    return times


def median_thread_times(times: Times) -> dict[int, float]:
    """Return the median of each count, the lower of two: disturbances only make a step longer."""
    return {count: statistics.median_low(readings) for count, readings in times.items()}


def rank_thread_counts(times: Times) -> list[int]:
    """Return the tried counts, the fastest first."""
    step_s = median_thread_times(times)
    return sorted(step_s, key=step_s.__getitem__)


def _staying(step_s: Mapping[int, float], rounds: int) -> list[int]:
    """Return the counts that may still be the fastest after some rounds, ascending."""
    room = FIRST_ROOM if rounds == 1 else 1 + ROOM / math.sqrt(rounds) - GAIN
    near = [count for count, seconds in step_s.items() if seconds <= room * min(step_s.values())]
    return near if rounds == 1 else sorted(sorted(near, key=step_s.__getitem__)[:MOST_FINALISTS])


@dataclass(kw_only=True)
class ThreadLook:
    """Trains for a short time with a number of threads.

    Attributes:
        prepare: prepares the variant for the present number of threads and returns the seconds; most variants do not
            need it.
        prepare_s: thread count → seconds of the preparation.
    """

    training: Training
    timer: Timer
    prepare: Callable[[], float] | None = None
    prepare_s: dict[int, float] = field(default_factory=dict)
    _step_s: float | None = field(default=None, init=False)

    def __call__(self, count: int) -> float:
        """Return the seconds per step with `count` threads."""
        self.training.use_threads(count)
        if self.prepare and count not in self.prepare_s:
            self.prepare_s[count] = self.prepare()
        if self._step_s is None:
            self._step_s = self._time(1)  # a first step: it only tells how many make a look
            self._step_s = self._time(2) if self._step_s < LONG_S else self._step_s
        elif self._step_s < LONG_S:
            self.training.advance(self.training.lane.round_up_to_calls(1))
        self._step_s = self._time(math.ceil(LOOK_S / (self._step_s or LOOK_S)))
        self.training.read_losses()
        return self._step_s

    def _time(self, steps: int) -> float:
        whole = self.training.lane.round_up_to_calls(steps)
        return self.timer.time(lambda: self.training.advance(whole)).seconds / whole


_RESIDENT: WeakValueDictionary[tuple[str, str, str], Split] = WeakValueDictionary()
"""Resident data in use, by hash, dtype and device; the contenders of all points share it."""


@dataclass(kw_only=True)
class FreshTrainings:
    """Builds the trainings of one point on one device, all from the same weights and batches.

    Attributes:
        prefetched: number of batches that the loader of the last feed may have prepared.
        resident: the data on the device, after it was moved there.
    """

    point: Point
    data: Data
    device: torch.device
    prefetched: int = field(default=0, init=False)
    resident: Split | None = field(default=None, init=False)

    def move_data(self) -> None:
        """Move all samples to the device, unless they are already there for another training."""
        key = self.data.hash, self.point.dtype, str(self.device)
        self.resident = _RESIDENT.setdefault(key, self.data.train.to(self.device))

    def training(self, lane: Lane) -> Training:
        """Return a new training, with a feed that starts at the first step."""
        return Training(self.network(), self.feed(0), learning_rate=self.point.learning_rate, lane=lane)

    def build_float32_training(self, lane: Lane) -> Training:
        """Return the same training in float32."""
        point = replace(self.point, dtype="float32")
        single = FreshTrainings(point=point, data=datasets.load_point_data(point), device=self.device)
        if self.resident is not None:
            single.move_data()
        return single.training(lane)

    def network(self) -> nn.Module:
        """Return a fresh network on the device."""
        return networks.build(self.point.network, self.point.seed).to(self.device)

    def weights(self) -> list[Tensor]:
        """Return the first weights."""
        return list(self.network().parameters())

    def feed(self, first_step: int) -> Feed:
        """Return the batches from a step on."""
        resident = self.data.train if self.resident is None else self.resident
        feed = datasets.make_feed(self.point, self.data, resident, self.device, first_step=first_step)
        self.prefetched = feed.prefetched
        return feed

    def example(self) -> Batch:
        """Return a batch on the device that is not used for training."""
        samples, labels = (
            part[: self.point.batch_size].to(self.device) for part in (self.data.train.samples, self.data.train.labels)
        )
        return samples, labels


def check_distinct(contenders: Sequence[Contender], threads: Sequence[int]) -> None:
    """Refuse a comparison of a training with itself; `threads` are the thread counts that the contenders would use.

    Raises:
        SameTraining: all of several contenders use the same device, variant and number of threads.
    """
    sorts = {(one.device, one.lane, count) for one, count in zip(contenders, threads, strict=True)}
    if len(contenders) < 2 or len(sorts) > 1:
        return
    names = " and ".join(f"{one}" for one in contenders)
    raise SameTraining(
        f"Nothing was measured: {names} turned out to be the same training on "
        f"{units.format_quantity(threads[0], 'thread')}. "
        "Give each its own number of threads, or choose a larger model, for which more threads may pay off."
    )


FIRST_STEPS = 4 + MIN_BLOCK_STEPS
"""Number of steps before the first block: the first one, one of warm-up and two of lead-in."""

PATIENCE = 2.0
"""Number of budgets that these steps may take by the estimate, which covers matrix products only."""

SLOWEST_FLOPS = {"cpu": 5e9}
SLOWEST_ACCELERATOR_FLOPS = 5e11
"""Operations per second that every device reaches; a training that fits the budget at this speed needs no check."""

PRODUCT_SIZE = {"cpu": 1024}
ACCELERATOR_PRODUCT_SIZE = 4096
"""Number of rows of the timed matrix product: about 50 ms on a core, a few on an accelerator."""


def check_speed(flops_per_step: int, budget_s: float, device: Device, called: str) -> None:
    """Check that the first block can be timed within a few budgets on a device, whose display name is `called`.

    Raises:
        TooSlow: it cannot.
    """
    kind = device.torch.type
    flops = FIRST_STEPS * flops_per_step
    if flops <= budget_s * SLOWEST_FLOPS.get(kind, SLOWEST_ACCELERATOR_FLOPS):
        return
    needed_s = flops / product_flops(device)
    if needed_s > PATIENCE * budget_s:
        reason = (
            f"one step on {called} takes at least {units.format_duration(needed_s / FIRST_STEPS)}, {FIRST_STEPS} are "
            "needed "
            f"before the first block is timed, and the budget is {units.format_duration(budget_s)}"
        )
        raise TooSlow(reason, "Choose a smaller model or batch, or a longer budget.")


@functools.cache
def product_flops(device: Device) -> float:
    """Return the operations per second of an fp32 matrix product on a device, the faster of two readings."""
    size = PRODUCT_SIZE.get(device.torch.type, ACCELERATOR_PRODUCT_SIZE)
    factor = torch.ones(size, size, device=device.torch)
    quickest_s = min(_product_s(factor, device) for _ in range(2))
    return 2 * size**3 / quickest_s


def _product_s(factor: torch.Tensor, device: Device) -> float:
    device.synchronize()
    began = time.perf_counter()
    torch.mm(factor, factor)
    device.synchronize()
    return time.perf_counter() - began


SHARE = 0.7
"""Share of free memory that trainings which stay in memory may use; the rest is for everything not counted here."""

SHARING_HOST = ("mps",)
"""Devices that share the memory of the host."""

MOST_WORKERS = 16
"""Maximum number of loader processes that may wait for their turn."""


def check_memory(point: Point, contender: Contender, data: Data, device: Device) -> None:
    """Refuse a training that cannot fit.

    Raises:
        OutOfMemory: network, batch and data need more than the free memory of the device.
    """
    needed, free = estimate_memory_bytes(point, contender, data), device.free_bytes()
    if needed > free:
        have = f"{units.format_memory(free)} of {contender.device} are free"
        raise OutOfMemory(f"The training needs about {units.format_memory(needed)}, but {have}.")


def can_fit_in_memory(new: Sequence[Experiment], alive: Sequence[Experiment] = ()) -> bool:
    """Return whether all trainings fit into memory at once, with space for the next step of each.

    Raises:
        DeviceUnavailable: a contender's device is not on this machine.
    """
    if any(asked.point.training for asked in (*new, *alive)):
        return len(new) + len(alive) <= 1  # nobody knows what it needs
    workers = sum(len(asked.contenders) * asked.point.loader_workers for asked in (*new, *alive))
    needed = Counter[str]()
    for asked in new:
        needed += _count_training_bytes(asked)
    for (_, _, _, device), size in dict(entry for asked in new for entry in _samples(asked)).items():
        needed[device] += size
    if alive:
        needed += _count_training_bytes(max(alive, key=lambda asked: _count_training_bytes(asked).total()))
    enough = all(size <= SHARE * devices.open_device(device).free_bytes() for device, size in needed.items())
    return enough and workers <= MOST_WORKERS


def _count_training_bytes(experiment: Experiment) -> Counter[str]:
    """Return device → bytes of its trainings, without resident samples."""
    found = Counter[str]()
    for contender in experiment.contenders:
        found[_memory_device(contender)] += _training_bytes(experiment.point, contender)
    return found


def _samples(experiment: Experiment) -> Iterator[tuple[tuple[str, int, int, str], int]]:
    """Yield the samples that a training has on the host, and resident on its devices, with their bytes."""
    point = experiment.point
    staying = map(_memory_device, experiment.contenders) if point.data_path == "resident" else ()
    for device in {"cpu", *staying}:
        key = (
            f"{point.dataset} {point.sequence_length} {point.embedding_rows} {point.dtype}",
            point.samples,
            point.seed,
            device,
        )
        yield key, point.samples * point.network.sample_bytes


def _memory_device(contender: Contender) -> str:
    """Return the device whose memory a training uses."""
    return "cpu" if contender.device in SHARING_HOST else contender.device


def estimate_memory_bytes(point: Point, contender: Contender, data: Data) -> int:
    """Return the bytes that a training needs at once, including resident samples."""
    samples = data.train.samples
    resident = samples.numel() * samples.element_size() if point.data_path == "resident" else 0
    return _training_bytes(point, contender) + resident


def _training_bytes(point: Point, contender: Contender) -> int:
    """Return the bytes of the network, and of the activations of a batch or micro-batch, without resident samples.

    The batches of one call are added.
    """
    at_once = contender.lane.micro_batch or point.batch_size
    waiting = point.batch_size * contender.lane.steps_per_call - at_once
    return operations.step_bytes(point, at_once) + max(0, waiting) * point.network.sample_bytes


READINGS = 15
"""Number of readings of each figure; the median is used."""

SELF_CHECK_SIZE, HOST_PRODUCT_SIZE = 4096, 1024
"""Number of rows of the square matrices; large enough for the full speed of a device."""

PASS_BYTES, HOST_PASS_BYTES = 2**30, 2**27
"""Bytes that a memory pass reads and writes; larger than the caches of a device."""


def check_device(name: str) -> dict[str, float]:
    """Return the figures of one device.

    Returns:
        `drain_share`: share of the shortest block that two synchronizations and clock readings of an idle device take;
        `flops`: operations per second of an fp32 matrix product; `bytes_per_s`: bytes read and written in memory per
        second.
    """
    device = devices.open_device(name)
    on_host = device.torch.type == "cpu"
    timer = Timer(device=device)
    size, count = (HOST_PRODUCT_SIZE, HOST_PASS_BYTES) if on_host else (SELF_CHECK_SIZE, PASS_BYTES)
    matrix, values = torch.ones(size, size, device=device.torch), torch.zeros(count // 4, device=device.torch)
    return {
        "drain_share": _median_s(timer, lambda: None) / MIN_BLOCK_S,
        "flops": 2 * size**3 / _median_s(timer, lambda: matrix @ matrix),
        "bytes_per_s": 2 * count / _median_s(timer, lambda: values.add_(1)),
    }


def _median_s(timer: Timer, work: Callable[[], object]) -> float:
    timer.time(work)
    return statistics.median(timer.time(work).seconds for _ in range(READINGS))


def report_self_check(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of one device as JSON."""
    parser = argparse.ArgumentParser(prog=f"{__package__}.preflight", description="Check the clock and a device.")
    parser.add_argument("device", help="device, such as cpu or cuda:0")
    sys.stdout.write(json.dumps(check_device(parser.parse_args(arguments).device)) + "\n")


if __name__ == "__main__":
    report_self_check()
