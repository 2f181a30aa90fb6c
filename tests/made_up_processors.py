"""Processors that are made up: how long a step takes with so many threads there, and what a clock reads of it.

A step has a part that one thread does, a part that is shared, and a price for each time that threads are called
together. What is shared is shared evenly, as OpenMP does it, so that the slowest thread decides: two threads on one
core, memory that is far, a program that takes a core. No figure here was measured.
"""

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Processor:
    """What is there, and what of it is told.

    Attributes:
        cores: physical cores.
        siblings: hardware threads of each.
        quota: processors that a container grants; 0 for no limit.
        shared_yield: what a core does with two threads on it, beside one.
        told: whether the system tells which hardware threads share a core; a virtual machine often does not.
    """

    cores: int
    siblings: int = 1
    quota: int = 0
    shared_yield: float = 1.2
    told: bool = True

    @property
    def usable(self) -> int:
        """Threads that may run at once."""
        return min(self.cores * self.siblings, self.quota or self.cores * self.siblings)

    @property
    def physical(self) -> int:
        """Cores among them, as far as the system tells."""
        return min(self.usable, self.cores if self.told else self.cores * self.siblings)

    @property
    def name(self) -> str:
        kind = "" if self.siblings == 1 else " with two threads each" + ("" if self.told else ", not told")
        return f"{self.cores} cores{kind}" + (f", {self.quota} granted" if self.quota else "")


@dataclass(frozen=True, kw_only=True)
class Work:
    """One step of a training.

    Attributes:
        alone_s: seconds that one thread does, whatever their number.
        shared_s: seconds of one thread that can be shared.
        calls: how often threads are called together.
        call_s: what calling one more thread costs, each time.
        most: threads beyond which the pieces are too small to be shared further.
        memory: threads that saturate the memory.
    """

    alone_s: float
    shared_s: float
    calls: int
    call_s: float
    most: int
    memory: float

    def step_s(self, processor: Processor, threads: int) -> float:
        """Seconds of an undisturbed step."""
        at_work = min(threads, self.most)
        speed = float(at_work)
        if at_work > processor.cores:  # some cores have two, and whoever has half a core is waited for
            speed *= processor.shared_yield / 2
        speed = (speed**-4 + self.memory**-4) ** -0.25
        far = 2.0 if at_work > processor.cores / 2 and processor.cores >= 64 else 1.0  # of two sockets
        called = self.calls * self.call_s * far * (at_work - 1) if at_work > 1 else 0.0
        return self.alone_s + self.shared_s / speed + called


@dataclass(kw_only=True)
class Readings:
    """What a clock reads on a processor that is not quiet.

    Attributes:
        processor: where.
        work: what is trained.
        noise: standard deviation of the logarithm of a reading.
        bursts: share of the readings in which another program is at work.
        draw: of noise and bursts.
        looks: counts that were timed, in order.
    """

    processor: Processor
    work: Work
    noise: float
    bursts: float
    draw: random.Random
    looks: list[int] = field(default_factory=list)
    _burst: tuple[str, int] = ("", 0)

    def __call__(self, threads: int) -> float:
        """Seconds a step, as they are read."""
        self.looks.append(threads)
        true_s = self.work.step_s(self.processor, threads)
        return true_s * math.exp(self.draw.gauss(0.0, self.noise)) * self._slowed(threads)

    def _slowed(self, threads: int) -> float:
        """How much longer it takes because of a program that comes and stays for some readings."""
        kind, left = self._burst
        if not left and self.draw.random() < self.bursts / 4:
            kind, left = self.draw.choice(("core", "guest")), self.draw.randint(2, 6)
        self._burst = kind, max(0, left - 1)
        if not left:
            return 1.0
        if kind == "guest":  # another guest of the host takes time from all
            return 1.4
        return 1.8 if threads == self.processor.usable > 1 else 1.05  # it takes a core; others may be free


PROCESSORS = (
    *(Processor(cores=cores) for cores in (2, 4, 8, 16, 32, 64, 128)),
    *(Processor(cores=cores, siblings=2) for cores in (2, 4, 8, 16, 32, 64)),
    *(Processor(cores=cores, siblings=2, shared_yield=0.9) for cores in (6, 12, 24)),
    *(Processor(cores=cores, siblings=2, told=False) for cores in (2, 4, 16)),
    Processor(cores=64, quota=3),
    Processor(cores=32, siblings=2, quota=6),
    Processor(cores=64, siblings=2, quota=48),
)


def work(draw: random.Random, size: str) -> Work:
    """A step of a small, medium or large network."""
    shared_s = {"small": 2e-4, "medium": 5e-3, "large": 0.3}[size] * 10 ** draw.uniform(-0.5, 0.5)
    most = {"small": (1, 8), "medium": (4, 64), "large": (64, 512)}[size]
    return Work(
        alone_s=shared_s * draw.uniform(0.02, 0.3 if size != "small" else 2.0),
        shared_s=shared_s,
        calls=draw.randint(10, 60),
        call_s=10 ** draw.uniform(-7, -5.7),
        most=round(2 ** draw.uniform(math.log2(most[0]), math.log2(most[1]))),
        memory=2 ** draw.uniform(2, 7),
    )


SIZES, NOISES, BURSTS = ("small", "medium", "large"), (0.02, 0.05, 0.1), (0.0, 0.15)
"""Networks, scatter of a reading, share of readings in which another program is at work."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One network on one processor, with the clock that its step is read from.

    Attributes:
        size: of the network.
        readings: what is read.
    """

    size: str
    readings: Readings

    def loss(self, threads: int) -> float:
        """How much longer a step takes than with the count that an exhaustive hand tuner finds, as a share."""
        processor, step_s = self.readings.processor, self.readings.work.step_s
        best_s = min(step_s(processor, count) for count in range(1, processor.usable + 1))
        return step_s(processor, threads) / best_s - 1

    @property
    def cost(self) -> float:
        """What was tried so far, in steps as long as the shortest that there is; each look is one step."""
        processor, step_s = self.readings.processor, self.readings.work.step_s
        best_s = min(step_s(processor, count) for count in range(1, processor.usable + 1))
        return sum(step_s(processor, count) for count in self.readings.looks) / best_s


def cases(each: int, seed: int) -> Iterator[Case]:
    """So many networks of each size on each processor, for each noise, with bursts and without."""
    draw = random.Random(seed)
    for processor, size, noise, bursts in itertools.product(PROCESSORS, SIZES, NOISES, BURSTS):
        for _ in range(each):
            asked = work(draw, size)
            yield Case(
                size=size, readings=Readings(processor=processor, work=asked, noise=noise, bursts=bursts, draw=draw)
            )
