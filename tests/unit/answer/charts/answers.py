"""Answers of studies to be drawn, and what a chart's layers are."""

import dataclasses
import math
import random
import statistics

from core.answer.charts import study_charts
from core.answer.charts.study_charts import Cell
from core.answer.judgement import Band, Crossing, Crossover, Evidence, Size

CPU, GPU = "cpu (Test CPU, 4 threads)", "cuda:0 (Test GPU)"
SIZES = (1_000, 10_000, 100_000, 1_000_000)


def evidence(size: float, baseline_s: float, challenger_s: float, readings: int = 6) -> Evidence:
    draw = random.Random(size)
    base, other = (
        tuple(median * math.exp(draw.gauss(0, 0.05)) for _ in range(readings)) for median in (baseline_s, challenger_s)
    )
    return Evidence(size=size, baseline_s=base, challenger_s=other)


def answer(pairs, *, crossings=(), tie=None, axis="parameters", basis="steady", names=(CPU, GPU)) -> Crossover:
    sizes = tuple(map(judged, pairs))
    timed = [size for size in sizes if size.speedup]
    figures = tuple(size.speedup for size in timed)
    found = [Crossing(estimate=middle, low=low, high=high, challenger_above=True) for low, middle, high in crossings]
    only = found[0] if len(found) == 1 else None
    return Crossover(
        axis=axis,
        basis=basis,
        baseline=names[0],
        challenger=names[1],
        outcome="crossing" if only else "several" if found else "undecided",
        estimate=only.estimate if only else None,
        low=only.low if only else None,
        high=only.high if only else None,
        tie=tie,
        crossings=tuple(found),
        sizes=sizes,
        band=Band(sizes=tuple(size.size for size in timed), speedup=figures, low=figures, high=figures),
        noise=0.05,
        level=0.98,
        reason="",
        sentence="",
    )


def judged(pair: Evidence) -> Size:
    if pair.obstacle:
        nothing = dict.fromkeys(("baseline_s", "challenger_s", "speedup", "low", "high"))
        return Size(size=pair.size, readings=0, verdict="missing", reason=pair.obstacle, **nothing)
    base, other = map(statistics.median, (pair.baseline_s, pair.challenger_s))
    ratio = base / other
    verdict = "too_close" if 1 / 1.1 < ratio < 1.1 else "gpu_faster" if ratio > 1 else "cpu_faster"
    return Size(
        size=pair.size,
        baseline_s=base,
        challenger_s=other,
        readings=len(pair.baseline_s),
        speedup=ratio,
        low=ratio / 1.1,
        high=ratio * 1.1,
        verdict=verdict,
    )


PAIRS = [evidence(size, 1e-5 + size * 1e-9, 1e-4 + size * 1e-10) for size in SIZES]
MEMORY = Evidence(size=10_000_000, obstacle="the model did not fit into the memory of cuda:0")
FOUND = answer([*PAIRS, MEMORY], crossings=[(90_000, 100_000, 110_000)], tie=(80_000, 130_000))
BUSY = dataclasses.replace(FOUND, busy="Measured on a busy machine: other programs took what they could.")
TWO_CPUS = answer(PAIRS, crossings=[(9e4, 1e5, 1.1e5)], names=("cpu@1 (Test CPU)", "cpu@4 (Test CPU)"))
CELLS = [
    Cell(x=16, y=32, verdict="cpu_faster", speedup=0.5),
    Cell(x=16, y=64, verdict="too_close", speedup=1.02, reason="the difference is within 10 %"),
    Cell(x=256, y=32, verdict="gpu_faster", speedup=12.3),
    Cell(x=256, y=64, verdict="missing", reason="out of memory"),
]
AXES, DEVICES = ("hidden_size", "batch_size"), ("cpu", "cuda:0")
EVERY_CHART = {
    "crossover": study_charts.crossover_chart(FOUND, [*PAIRS, MEMORY]),
    "one size": study_charts.crossover_chart(answer(PAIRS[:1]), PAIRS[:1]),
    "no crossing": study_charts.crossover_chart(answer(PAIRS[:2]), PAIRS[:2]),
    "several": study_charts.crossover_chart(answer(PAIRS, crossings=[(2e3, 3e3, 4e3), (9e4, 1e5, 1.1e5)]), PAIRS),
    "two CPUs": study_charts.crossover_chart(TWO_CPUS, PAIRS),
    "busy": study_charts.crossover_chart(BUSY, [*PAIRS, MEMORY]),
    "speedup of a busy machine": study_charts.speedup_chart(BUSY),
    "speedup": study_charts.speedup_chart(FOUND),
    "speedup of one size": study_charts.speedup_chart(answer(PAIRS[:1])),
    "map": study_charts.winners_chart(CELLS, axes=AXES, devices=DEVICES),
}


def rows(spec, layer):
    return [row for row in spec["data"]["values"] if row.get("layer") == layer]


def layers(spec, kind):
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]


def scale(spec, channel):
    """Scale of a channel, by name of what it tells apart."""
    found = next(layer["encoding"][channel]["scale"] for layer in spec["layer"] if channel in layer["encoding"])
    return dict(zip(found["domain"], found["range"], strict=True))
