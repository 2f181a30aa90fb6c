"""Search for the fastest number of CPU threads: which counts to try, when to drop one, and how to time one.

The rule gets a function that times one count, so it also works with a simulated processor
(`tests.benchmarks.thread_choice`). Counts take turns, so a disturbance affects all of them.
"""

import math
import statistics
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import InvalidValue
from ..results import environment
from .timer import Timer
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


def candidates() -> tuple[int, ...]:
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
        staying = _staying(median_times({count: times[count] for count in staying}), rounds)
        if len(staying) == 1 or late():
            break
        for count in staying:
            yield
            times[count].append(look(count))
    return times


def median_times(times: Times) -> dict[int, float]:
    """Return the median of each count, the lower of two: disturbances only make a step longer."""
    return {count: statistics.median_low(readings) for count, readings in times.items()}


def rank_thread_counts(times: Times) -> list[int]:
    """Return the tried counts, the fastest first."""
    step_s = median_times(times)
    return sorted(step_s, key=step_s.__getitem__)


def _staying(step_s: Mapping[int, float], rounds: int) -> list[int]:
    """Return the counts that may still be the fastest after some rounds, ascending."""
    room = FIRST_ROOM if rounds == 1 else 1 + ROOM / math.sqrt(rounds) - GAIN
    near = [count for count, seconds in step_s.items() if seconds <= room * min(step_s.values())]
    return near if rounds == 1 else sorted(sorted(near, key=step_s.__getitem__)[:MOST_FINALISTS])


@dataclass(kw_only=True)
class Look:
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
