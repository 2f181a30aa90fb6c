"""Which steps of a loop are looked at or counted, and what all others take: sums of a clock, and two budgets.

Short steps are passed by, many at a time, between two that are looked at: these tell what comes before a step, all
together how long a step takes. Counting a step makes it slower, so that only a hundredth of a loop's time goes into
that. How much slower a step becomes is known once one was counted; before, it is taken for as long as a step.
"""

import math
import random
import statistics
from array import array
from dataclasses import dataclass, field

WARM_UP = 10
"""Steps that are left out where there are more: they set up what later ones have."""

LOOK_EVERY_S = 0.005
"""Seconds of a loop for each step that is looked at. A look takes 4 millionths, and some 30 where none was for long, as
nothing of what looks is in the processor's caches then."""

MOST_PASSED = 1_000
"""Steps that are passed by at once, at most."""

MOST_KEPT = 4_096
"""Times of steps that are kept; beyond, half of them are dropped at random."""

LONG = 3
"""Times the usual from which on a step is a long one."""

MIN_LOOKS = 3
"""Steps that must have been looked at before it is said what comes before a step."""

LEAST_S = 0.25
"""Seconds of a loop before anything is counted."""

SHARE = 0.01
"""Share of a loop's time that counting may cost."""

MOST, ENOUGH = 8, 3
"""Counted steps at most, and as many as suffice."""

FIRST_COST_S = 0.02
"""What the first counted step is thought to cost at most, before that is known."""


def count_batches(batches: object) -> int:
    """How many batches there are; 0 if they do not say."""
    try:
        return len(batches)  # type: ignore[arg-type]
    except Exception:  # whatever somebody's own batches raise
        return 0


@dataclass
class Pace:
    """Sums of a loop's steps, those that were counted apart.

    Attributes:
        known_steps: steps that the loop will have; 0 if that is not known.
        once_ns: what is still to be paid, once, when anything is counted.
        steps: so far.
        plain: of these, those that count for the time.
        plain_ns: that they took.
        looked: of the plain ones, those that were looked at one by one.
        before_ns: of these, what came before each: its batch.
        total_ns: of all.
        counted: steps that were counted.
        cost_ns: that this took.
        due_ns: of the clock, before which nothing is to be counted.
    """

    known_steps: int = 0
    once_ns: float = 0.0
    steps: int = 0
    plain: int = 0
    plain_ns: int = 0
    looked: int = 0
    before_ns: int = 0
    total_ns: int = 0
    counted: int = 0
    cost_ns: int = 0
    due_ns: float = math.inf
    _last_cost_ns: int = 0
    _chance: random.Random = field(default_factory=lambda: random.Random(0))
    _taken_ns: "array[int]" = field(default_factory=lambda: array("q"))
    _each: int = 1

    def start(self, now: int) -> int:
        """A loop begins, or goes on with its next pass; returns the time."""
        self.due_ns = math.inf if self.counted >= MOST else now + max(0, LEAST_S * 1e9 - self.total_ns)
        return now

    @property
    def step_s(self) -> float | None:
        """Seconds of a plain step with what came before it."""
        return self.plain_ns / 1e9 / self.plain if self.plain else None

    @property
    def before_s(self) -> float | None:
        """Seconds of what came before a plain step; None where too few were looked at."""
        return self.before_ns / 1e9 / self.looked if self.looked >= MIN_LOOKS else None

    @property
    def uneven(self) -> tuple[float, float]:
        """Share of steps that take `LONG` times the usual, and of the time what they take beyond that."""
        whole_ns = sum(self._taken_ns)
        if not whole_ns:
            return 0.0, 0.0
        usual_ns = statistics.median(self._taken_ns)
        beyond = [each - usual_ns for each in self._taken_ns if each > LONG * usual_ns]
        return len(beyond) / len(self._taken_ns), sum(beyond) / whole_ns

    @property
    def passing(self) -> int:
        """Steps to pass by now: at random around the wanted mean, as what is slow may come again at regular steps."""
        if self.steps <= WARM_UP or self.plain_ns >= LOOK_EVERY_S * 1e9 * self.plain:
            return 0
        wanted = LOOK_EVERY_S * 1e9 * self.plain / max(1, self.plain_ns)
        return int(min(MOST_PASSED, 2 * wanted * self._chance.random()))

    def look(self, before_ns: int, within_ns: int) -> None:
        """Take in a plain step that was looked at."""
        self.add_steps(1, before_ns + within_ns)
        self.looked += 1
        self.before_ns += before_ns
        if self._each == 1 or self._chance.random() * self._each < 1:
            self._taken_ns.append(within_ns)
            if len(self._taken_ns) >= MOST_KEPT:
                kept = self._chance.sample(list(self._taken_ns), MOST_KEPT // 2)
                self._each, self._taken_ns = 2 * self._each, array("q", kept)

    def add_steps(self, steps: int, taken_ns: int) -> None:
        """Take in plain steps that were not looked at."""
        if self.steps <= WARM_UP < self.steps + steps:
            self.plain = self.plain_ns = self.looked = self.before_ns = 0
            del self._taken_ns[:]
        self.steps += steps
        self.plain += steps
        self.plain_ns += taken_ns
        self.total_ns += taken_ns

    def add_counted(self, before_ns: int, within_ns: int, now: int, *, more: bool = False) -> None:
        """Take in a step that was counted, and say when the next may be: at once if `more` of an update are to come."""
        self.steps += 1
        self.total_ns += before_ns + within_ns
        self.counted += not more
        self._last_cost_ns = max(0, before_ns + within_ns - self.plain_ns // max(1, self.plain))
        self.cost_ns += self._last_cost_ns
        pause_ns = math.inf if self.counted >= MOST else self.total_ns // (2 * MOST)
        self.due_ns = now if more else now + pause_ns

    def may_count(self, now: int, steps: int) -> bool:
        """Whether so many steps may be counted now; if not, that is asked again in a while."""
        mean_ns = (self.step_s or 0.0) * 1e9
        whole_ns = max(self.total_ns, mean_ns * self.known_steps)
        each_ns = self._last_cost_ns if self.counted else min(mean_ns, FIRST_COST_S * 1e9)
        if self.steps > WARM_UP and self.once_ns + self.cost_ns + steps * each_ns <= SHARE * whole_ns:
            return True
        self.due_ns = now + max(self.total_ns // 4, mean_ns)
        return False
