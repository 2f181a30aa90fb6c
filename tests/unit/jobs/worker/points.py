"""Points of sweeps that are measured at once, in whatever way a test wants, and what the store has of them."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable

from core.jobs.worker.reporter import Reporter
from core.jobs.worker.sweep import Begin, Measurement
from core.question.experiment import Experiment
from core.results.schema import Trial
from core.results.store import CUT_OFF
from tests.integration.scripted_worker import Visited, timed

SIZES = (8, 16, 32, 64)
TWO = (8, 16)
Measure = Callable[[Experiment, Reporter], list[Trial]]


class Bench:
    """Measures at once, and remembers what it measured.

    Attributes:
        measured: hidden sizes in order.
        special: hidden size → what is done there instead.
    """

    def __init__(self, **special: Measure) -> None:
        self.measured: list[int] = []
        self.special = {int(name.lstrip("_")): measure for name, measure in special.items()}

    def __call__(self, experiment: Experiment, record: Reporter) -> list[Trial]:
        size = experiment.point.hidden_size
        self.measured.append(size)
        return self.special.get(size, instant)(experiment, record)


def instant(experiment: Experiment, record: Reporter, **changes) -> list[Trial]:
    return timed(experiment, record.job.derive_run_id(experiment), **changes)


def full(experiment: Experiment, record: Reporter, **ended: str) -> list[Trial]:
    """The first contender does not fit."""
    first, second = instant(experiment, record)
    nothing = dict.fromkeys(("warmup_steps", "warmup_s", "loss_step", "loss"), ())
    nothing |= {entry.name: () for entry in dataclasses.fields(Trial) if entry.name.startswith("block_")}
    ended = {"outcome": "out_of_memory", "message": "The training needs 1 TiB.", **ended}
    return [dataclasses.replace(first, **ended, **nothing), second]


def nothing(experiment: Experiment, record: Reporter) -> list[Trial]:
    return []


class Visits:
    """The visits that points get.

    Attributes:
        log: hidden size and pair of each, in order.
        points: every point that was begun.
        then: called after each, with the hidden size.
    """

    def __init__(self) -> None:
        self.log: list[tuple[int, int]] = []
        self.points: list[Visited] = []
        self.then: Callable[[int], object] = lambda _: None

    def begin(self, measure: Measure) -> Begin:
        def begin(experiment: Experiment, record: Reporter) -> Measurement:
            visits = self

            class Logged(Visited):
                def run_round(self) -> bool:
                    more = super().run_round()
                    visits.log.append((experiment.point.hidden_size, self.pairs))
                    visits.then(experiment.point.hidden_size)
                    return more

            self.points.append(Logged(measure, experiment, record))
            return self.points[-1]

        return begin

    @property
    def rounds(self) -> list[list[int]]:
        """Hidden sizes of each round after the first visits of all points."""
        first = sum(pair == 1 for _, pair in self.log)
        others = [size for size, _ in self.log[first:]]
        return [others[at : at + first] for at in range(0, len(others), first)]


def sizes(rows: list[Trial]) -> list[int]:
    """Hidden sizes of rows in their order, each once."""
    return [size for size, _ in itertools.groupby(row.hidden_size for row in rows)]


def runs(stored: Iterable[Trial]) -> dict[int, set[str]]:
    """Hidden size → names of the runs that were stored of it, those that were cut off left out."""
    found: dict[int, set[str]] = {}
    for row in stored:
        if row.outcome not in CUT_OFF:
            found.setdefault(row.hidden_size, set()).add(row.run_id)
    return found


def cut_off(rows: list[Trial]) -> dict[int, set[int]]:
    """Hidden size → pairs of its rows that were cut off."""
    found: dict[int, set[int]] = {}
    for row in rows:
        if row.outcome in CUT_OFF:
            found.setdefault(row.hidden_size, set()).add(len(row.block_pair))
    return found
