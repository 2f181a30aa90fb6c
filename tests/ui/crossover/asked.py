"""Sweeps that the Crossover page shows, measured, stored or under way."""

import dataclasses

from core.progress import ContenderProgress, Progress, SweepProgress
from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from tests import rows
from tests.ui.find import TIMES

PAGE = "/crossover"


PAIR = (Contender(), Contender(device="cuda:0"))


GRID = Sweep(
    point=Point(hidden_size=16),
    axes=(Axis(name="hidden_size", values=tuple(TIMES)), Axis(name="batch_size", values=(32, 64))),
    contenders=PAIR,
)


ADAPTIVE = Sweep(
    point=Point(hidden_size=16),
    axes=(Axis.from_range("hidden_size", 16, 2_048, adaptive=True),),
    contenders=PAIR,
    adaptive=True,
)


PROGRESS = Progress(
    phase="training",
    elapsed_s=9.0,
    contenders=(ContenderProgress(contender="cpu", step_s=2e-3), ContenderProgress(contender="cuda:0")),
    sweep=SweepProgress(
        done=3,
        total=57,
        size_label="hidden size 512",
        remaining_s=80.0,
        least_s=30.0,
        notes=("hidden size 2,048 was skipped.",),
    ),
)


def measured(*, batch_size=64, sizes=tuple(TIMES), third=False, **changes):
    """Rows of one run for each size."""
    found = []
    for place, size in enumerate(sizes):
        cpu, gpu = TIMES[size]
        steps = {"cpu": cpu, "cpu@1": 2 * cpu, "cuda:0": gpu} if third else {"cpu": cpu, "cuda:0": gpu}
        point = Point(hidden_size=size, batch_size=batch_size)
        found += rows.run(steps, run_id=f"{batch_size:04x}{place:08x}", point=point, pairs=6, **changes)
    return found


def job_of(world, asked, progress=PROGRESS, kept=()):
    """A sweep that is being measured, with rows that are stored by now."""
    running = world.run(asked, progress=progress)
    runs = tuple(dict.fromkeys(row.run_id for row in kept))
    running = dataclasses.replace(running, run_ids=runs, trial_ids=tuple(row.trial_id for row in kept))
    world.queue.report(running)
    return running
