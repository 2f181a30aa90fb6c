"""Rows of runs and sweeps whose contenders ran in lanes, without measuring anything."""

import dataclasses

from core.answer.causes import PART_TITLES
from core.question.experiment import Point
from tests import rows

LOSSES = (2.3, 2.2, 2.1)
COMPILE_S = 30.0
SIZES = {
    16: (1e-4, 4e-4),
    64: (1.2e-4, 4e-4),
    128: (2e-4, 4e-4),
    256: (3.6e-4, 4.2e-4),
    1024: (1.4e-3, 5e-4),
    2048: (4e-3, 8e-4),
}
"""Hidden size → seconds a step of plain steps on the CPU and on the GPU; they meet just above 256."""


def laned(steps_s, *, losses=None, **changes):
    """The rows of one run whose lanes computed what plain steps compute, unless `losses` says what they computed."""
    found = []
    for row in rows.run(steps_s, **changes):
        if "+" in row.contender:
            mine = (losses or {}).get(row.contender, LOSSES)
            row = dataclasses.replace(row, lane_loss=mine, reference_loss=LOSSES, startup_compile_s=0.0)
        if row.execution != "eager":
            whole = dict.fromkeys((f"breakdown_{part}_s" for part in PART_TITLES), ())
            row = dataclasses.replace(row, startup_compile_s=COMPILE_S, **whole)
        found.append(row)
    return found


def sweep(cpu_lane=0.9, gpu_lane=0.4, pairs=8, **changes):
    found = []
    for place, (size, (cpu, gpu)) in enumerate(SIZES.items()):
        steps = {"cpu": cpu, "cpu+compiled": cpu * cpu_lane, "cuda:0": gpu, "cuda:0+graph10": gpu * gpu_lane}
        found += laned(steps, run_id=f"{place:012x}", point=Point(hidden_size=size), pairs=pairs, **changes)
    return found
