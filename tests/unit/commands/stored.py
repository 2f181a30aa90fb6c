"""Stores filled with the rows of a sweep as this machine would have measured them."""

import math
from collections.abc import Callable

from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from core.results import environment
from core.results.parquet import to_table
from core.results.schema import Trial
from core.results.store import Store
from tests import rows

SIZES = (16, 32, 64, 128, 256, 512, 1_024)
CROSSING = 150.0
PAIR = ("cpu", "cuda:0")


def step_s(contender: str, size: float) -> float:
    """The GPU's time does not depend on the size, the CPU's is proportional to its root; equal at `CROSSING`."""
    return 1e-3 if contender != PAIR[0] and contender != "cpu@1" else 1e-3 * math.sqrt(size / CROSSING)


def sweep(axis: str = "hidden_size", values=SIZES, *, point: Point | None = None, contenders=PAIR, **changes) -> Sweep:
    return Sweep(
        point=point or Point(),
        axes=(Axis(name=axis, values=tuple(values)),),
        contenders=tuple(map(Contender.parse, contenders)),
        **changes,
    )


def measured(
    asked: Sweep, *, seconds: Callable[[str, float], float] = step_s, prefix: str = "0", **changes
) -> list[Trial]:
    """Rows of every point; runs of different `prefix` are different runs."""
    here, found = environment.read_environment(), []
    about = {"machine_id": here.machine_id, "torch_version": here.torch_version, **changes}
    for number, point in enumerate(asked.points):
        times = {str(entry): seconds(str(entry), asked.size(point)) for entry in asked.contenders}
        found += rows.run(times, point=point, run_id=f"{prefix}{number:011x}", **about)
    return found


def fill(store: Store, *sweeps: list[Trial]) -> None:
    """Put rows there, a file a sweep: reading files is what takes long, and tests of the store have many."""
    for trials in sweeps:
        store.add_all(to_table(trials))
