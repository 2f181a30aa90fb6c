"""When steps of a loop may be counted, and what all others take: sums of a clock, and a budget.

Counting a step makes it slower, so that only a hundredth of a loop's time goes into that. How much slower a step
becomes is known once one was counted; before, it is taken for as long as a step.
"""

import math
from dataclasses import dataclass

WARM_UP = 10
"""Steps that are left out where there are more: they set up what later ones have."""

LEAST_S = 0.25
"""Seconds of a loop before anything is counted."""

SHARE = 0.01
"""Share of a loop's time that counting may cost."""

MOST, ENOUGH = 8, 3
"""Counted steps at most, and as many as suffice."""

FIRST_COST_S = 0.02
"""What the first counted step is thought to cost at most, before that is known."""


@dataclass
class Pace:
    """Sums of a loop's steps, those that were counted apart.

    Attributes:
        known_steps: steps that the loop will have; 0 if that is not known.
        steps: so far.
        plain: of these, those that count for the time.
        before_ns: of the plain ones, what came before each: its batch.
        within_ns: of the plain ones, the rest.
        total_ns: of all.
        counted: steps that were counted.
        cost_ns: that this took.
        due_ns: of the clock, before which nothing is to be counted.
    """

    known_steps: int = 0
    steps: int = 0
    plain: int = 0
    before_ns: int = 0
    within_ns: int = 0
    total_ns: int = 0
    counted: int = 0
    cost_ns: int = 0
    due_ns: float = math.inf
    _last_cost_ns: int = 0

    def start(self, now: int) -> int:
        """A loop begins, or goes on with its next pass; returns the time."""
        self.due_ns = math.inf if self.counted >= MOST else now + max(0, LEAST_S * 1e9 - self.total_ns)
        return now

    @property
    def step_s(self) -> float | None:
        """Seconds of a plain step with what came before it."""
        return (self.before_ns + self.within_ns) / 1e9 / self.plain if self.plain else None

    @property
    def before_s(self) -> float | None:
        """Seconds of what came before a plain step."""
        return self.before_ns / 1e9 / self.plain if self.plain else None

    def add(self, before_ns: int, within_ns: int) -> None:
        """Take in a plain step."""
        self.steps += 1
        self.total_ns += before_ns + within_ns
        if self.steps == WARM_UP + 1:
            self.plain = self.before_ns = self.within_ns = 0
        self.plain += 1
        self.before_ns += before_ns
        self.within_ns += within_ns

    def add_counted(self, before_ns: int, within_ns: int, now: int, *, more: bool = False) -> None:
        """Take in a step that was counted, and say when the next may be: at once if `more` of an update are to come."""
        self.steps += 1
        self.total_ns += before_ns + within_ns
        self.counted += not more
        self._last_cost_ns = max(0, within_ns - self.within_ns // max(1, self.plain))
        self.cost_ns += self._last_cost_ns
        pause_ns = math.inf if self.counted >= MOST else self.total_ns // (2 * MOST)
        self.due_ns = now if more else now + pause_ns

    def may_count(self, now: int, steps: int) -> bool:
        """Whether so many steps may be counted now; if not, that is asked again in a while."""
        mean_ns = (self.step_s or 0.0) * 1e9
        whole_ns = max(self.total_ns, mean_ns * self.known_steps)
        each_ns = self._last_cost_ns if self.counted else min(mean_ns, FIRST_COST_S * 1e9)
        if self.steps > WARM_UP and self.cost_ns + steps * each_ns <= SHARE * whole_ns:
            return True
        self.due_ns = now + max(self.total_ns // 4, mean_ns)
        return False
