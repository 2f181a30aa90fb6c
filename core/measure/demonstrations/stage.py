"""Where a demonstration is given: it tells how far it is, heeds a stop, and knows what is left of its budget."""

import time
from dataclasses import dataclass, field

import torch

from ...progress import ContenderProgress, Progress
from ...question.demonstrations import Demonstration
from ...question.experiment import BEST_THREADS, Contender
from ...results import environment
from ..trial import Hooks


class Stopped(Exception):
    """Someone wants the demonstration to end now; of a lesson that was not finished nothing is kept."""


@dataclass(kw_only=True)
class Stage:
    """One demonstration under way.

    Attributes:
        hooks: told of progress and asked about a stop; nothing is saved to go on from.
        threads: contender → CPU threads that serve it, once they are settled.
    """

    demonstration: Demonstration
    hooks: Hooks = field(default_factory=Hooks)
    threads: dict[Contender, int] = field(default_factory=dict)
    _began: float = field(default_factory=time.perf_counter)

    def tell(self, phase: str, *, done: int = 0, total: int = 0) -> None:
        """Say what is being done and how many of all parts are, all contenders together; then heed a stop.

        Raises:
            Stopped: someone wants it to end.
        """
        contenders = tuple(
            ContenderProgress(contender=str(each), steps=done, total_steps=total, threads=self.threads.get(each))
            for each in self.demonstration.contenders
        )
        budget_s = self.demonstration.budget_s
        self.hooks.progress(Progress(phase=phase, elapsed_s=self.elapsed_s, budget_s=budget_s, contenders=contenders))
        self.raise_if_stopped()

    def raise_if_stopped(self) -> None:
        """End here if someone wants that.

        Raises:
            Stopped: someone does.
        """
        if self.hooks.should_stop():
            raise Stopped

    def use_threads(self, contender: Contender, threads: int = BEST_THREADS) -> None:
        """Let a contender be served by so many CPU threads from here on; by all that are usable if none are said."""
        self.threads[contender] = threads or contender.threads or environment.usable_cores()
        if torch.get_num_threads() != self.threads[contender]:
            torch.set_num_threads(self.threads[contender])

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._began

    @property
    def remaining_s(self) -> float:
        """Seconds of the budget that are left; none below 0."""
        return max(0.0, self.demonstration.budget_s - self.elapsed_s)
