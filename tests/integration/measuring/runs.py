"""Real measurements on the CPU, as small as they can be."""

import pytest

from core.measure.trial import Hooks, measure
from core.question.experiment import Contender, Experiment, Point
from core.results import environment
from core.results.schema import Trial

ONE, TWO, BEST = Contender(threads=1), Contender(threads=2), Contender()

two_cores = pytest.mark.skipif(environment.usable_cores() < 2, reason="needs two usable cores")


def run(point: Point, *contenders: Contender, budget_s: float = 600, pairs: int = 0, **hooks: object) -> list[Trial]:
    asked = Experiment(point=point, contenders=contenders or (ONE,), budget_s=budget_s, pairs=pairs)
    return measure(asked, hooks=Hooks(**hooks))


def small(**changes: object) -> Point:
    return Point(**{"samples": 300, "hidden_size": 16, "depth": 1, "batch_size": 50, "epochs": 4, **changes})
