"""How many CPU threads train fastest: which counts are tried, and how a count is timed.

The choice is a rule that is given a way to time one count, so that a simulated machine can be chosen for as well as
this one. Counts take turns, so that a disturbance meets all of them.
"""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from core.measure.timer import Timer
from core.measure.training import Training

ROUNDS = 3
LOOK_S = 0.03
"""Each thread count is tried so often, for so long or one step."""

Times = Mapping[int, Sequence[float]]
"""Thread count → seconds a step, each time that it was tried."""


def candidates(usable: int) -> tuple[int, ...]:
    """Thread counts worth trying on a machine that lets us use `usable`: one, half of them, all."""
    return tuple(sorted({1, max(1, usable // 2), usable}))


def choose(counts: Sequence[int], look: Callable[[int], float]) -> Generator[None, None, Times]:
    """Time thread counts in turns; yields before each.

    Args:
        counts: ascending.
        look: trains a little with so many threads; seconds a step.
    """
    times: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(ROUNDS):
        for count in counts:
            yield
            times[count].append(look(count))
    return times


@dataclass(kw_only=True)
class Look:
    """Trains a little with a number of threads.

    Attributes:
        training: what is trained; whoever wants its steps taken back does that.
        timer: of its device.
        prepare: compiles for the number of threads that is set; seconds.
        compile_s: thread count → seconds that compiling for it took.
        step_s: of the last look; sizes the next one.
    """

    training: Training
    timer: Timer
    prepare: Callable[[], float]
    compile_s: dict[int, float]
    step_s: float | None = field(default=None, init=False)

    def __call__(self, count: int) -> float:
        """Seconds a step with `count` threads, after one call that is not timed."""
        torch.set_num_threads(count)
        if count not in self.compile_s:
            self.compile_s[count] = self.prepare()
        self.training.advance(self._whole(1))
        if self.step_s is None:
            self._time(self._whole(2))
        self.step_s = self._time(self._whole(math.ceil(LOOK_S / (self.step_s or LOOK_S))))
        self.training.read_losses()
        return self.step_s

    def _time(self, steps: int) -> float:
        self.step_s = self.timer.time(lambda: self.training.advance(steps)).seconds / steps
        return self.step_s

    def _whole(self, steps: int) -> int:
        """At least so many steps, in whole calls of the lane."""
        each = self.training.lane.steps_per_call
        return math.ceil(steps / each) * each
