"""A CPU as rows that a machine would have measured, for predictions beside it."""

import dataclasses

from core.answer import predict
from core.question.experiment import Contender, Experiment, Point
from tests.rows import trial

SMALL = Point(dataset="signal", samples=20_000, model="mlp", hidden_size=8, depth=2, batch_size=32)
LARGE = dataclasses.replace(SMALL, hidden_size=4_096)
TINY_STEP_S = 150e-6


def measured(point: Point, step_s: float, *, contender: str = "cpu@2", **changes):
    threads = {"cpu@1": 1, "cpu@2": 2}.get(contender, 2)
    asked = Experiment(point=point, contenders=(Contender.parse(contender),))
    columns = {"threads": threads, "cores_usable": 2, **changes}
    return trial(contender=contender, experiment=asked, step_s=step_s, jitter=0.0, **columns)


def cpu_side(*rows):
    return predict.read_cpu([measured(SMALL, TINY_STEP_S), *rows])
