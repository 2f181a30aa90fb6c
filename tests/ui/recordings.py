"""Rows of an accelerator of another machine, and of this machine's CPU."""

from core.question.experiment import Point
from tests import rows
from tests.ui.find import TIMES

NAME = "NVIDIA Test GPU (111111)"
AWAY = {"machine_id": "1" * 12, "cpu_name": "Other CPU", "started_at": "2026-10-01T12:00:00+00:00"}


def record_study(world, sizes=tuple(TIMES), **changes):
    found = []
    for place, size in enumerate(sizes):
        cpu, gpu = TIMES[size]
        point = Point(hidden_size=size, **changes)
        found += rows.run({"cpu": cpu, "cuda:0": gpu}, point=point, run_id=f"b{place:011x}", pairs=8, **AWAY)
    world.ship(found)


def measured_here(sizes=tuple(TIMES), contenders=("cpu",)):
    found = []
    for place, size in enumerate(sizes):
        steps = dict.fromkeys(contenders, TIMES[size][0])
        found += rows.run(steps, run_id=f"a{place:011x}", point=Point(hidden_size=size), pairs=6)
    return found
