"""Rows of whole studies and tutorials, as real sweeps would have left them, without measuring anything."""

import dataclasses

from core.answer import study
from core.answer.lessons import tutorials
from core.question.experiment import Contender, Experiment, Point
from core.question.presets import PRESETS
from core.question.sweep import Sweep
from core.results.parquet import to_table
from tests import rows

PAIR = ("cpu", "cuda:0")
TRAINING = Point(dataset="signal", depth=2, batch_size=64, epochs=10)
OTHER_MACHINE = {"machine_id": "beefbeefbeef", "cpu_name": "Other CPU", "cores": 64}


def measured(name: str, scale="class", devices=PAIR, *, cpu_s=5e-5, gpu_s=4e-4, pairs=6, **changes):
    """Rows of a tutorial's sweep: the CPU's step grows with the parameters, the GPU's hardly."""
    of = PRESETS[name]
    contenders = tuple(map(Contender.parse, devices))
    found = []
    for number, point in enumerate(
        Sweep(point=of.point_at_scale(scale), axes=of.axes_at_scale(scale), contenders=contenders).points
    ):
        size = point.network.parameters * point.batch_size
        steps = dict(zip(devices, (cpu_s + size * 1e-10, gpu_s + size * 1e-12), strict=True))
        found += rows.run(steps, run_id=f"{number:012x}", point=point, pairs=pairs, **changes)
    return found


def compared(name: str, found, scale="class", devices=PAIR, **changes):
    return tutorials.compare_with_published(
        PRESETS[name], scale, found, baseline=devices[0], challenger=devices[1], **changes
    )


def sweep(letter: str, *, axis: str = "hidden_size", sizes=(16, 64, 256), training: Point = TRAINING, **changes):
    """The one study of runs that differ in one size; `letter` and the size make up the names of its runs."""
    found = []
    for size in sizes:
        point = dataclasses.replace(training, **{axis: size})
        steps = {"cpu": 1e-4 * size / 64, "cuda:0": 1e-4}
        found += rows.run(steps, point=point, run_id=f"{letter}{size:011d}", jitter=0.01, **changes)
    (only,) = study.studies(found, axis=axis)
    return only


def rows_of(*known):
    """The rows of some studies, one study after the other."""
    return [row for of in known for run in of.runs for row in run]


def stored(server):
    """A study in the store; its id."""
    measured_rows = []
    for place, (size, cpu, gpu) in enumerate(
        ((16, 1e-4, 4e-4), (64, 1.2e-4, 4e-4), (256, 3e-4, 4.2e-4), (1024, 1e-3, 5e-4), (4096, 8e-3, 1e-3))
    ):
        steps = {"cpu": cpu, "cpu@1": 1.5 * cpu, "cuda:0": gpu}
        measured_rows += rows.run(steps, run_id=f"{place:012x}", point=Point(hidden_size=size), pairs=6)
    server.store.add_all(to_table(measured_rows))
    found = study.studies(server.store.trials())
    return next(entry.id for entry in found if (entry.baseline, entry.challenger) == ("cpu", "cuda:0"))


def ways(shares=(0.9, 0.2), contenders=("cpu",)):
    """Rows of one training with samples one by one and with data on the device; the loader's share of each step."""
    found = []
    for number, (path, step_s, share) in enumerate((("tutorial", 1e-2, shares[0]), ("resident", 2e-4, shares[1]))):
        point = Point(dataset="digits", model="linear", batch_size=128, epochs=5, data_path=path)
        asked = Experiment(point=point, contenders=tuple(map(Contender.parse, contenders)))
        parts = {"loader": share, "forward": 1 - share, "transfer": 0.0, "backward": 0.0, "optimizer": 0.0}
        columns = {f"breakdown_{part}_s": (of * step_s,) * 5 for part, of in parts.items()}
        found += [
            rows.trial(run_id=f"{number:012x}", contender=name, experiment=asked, step_s=step_s, jitter=0.0, **columns)
            for name in contenders
        ]
    return found


def seeds(count, *, worse=0, **changes):
    """Rows of a training with several seeds; `worse` test items more are wrong on the GPU."""
    found = []
    for seed in range(count):
        run = rows.run({"cpu": 1e-3, "cuda:0": 5e-4}, point=Point(seed=seed), run_id=f"{seed:012x}", **changes)
        found += [run[0], _wrong(run[1], worse)]
    return found


def _wrong(row, items):
    """The row with so many right answers of each class turned into the next class."""
    counts, answers = list(row.confusion), bytearray(row.predictions)
    for place in range(items):
        label = next(at for at in range(10) if counts[at * 10 + at] > 1 and at >= place % 10)
        counts[label * 11] -= 1
        counts[label * 10 + (label + 1) % 10] += 1
        answers[place] = (answers[place] + 1) % 10
    return dataclasses.replace(row, confusion=tuple(counts), predictions=bytes(answers))


def batches(fixed_s, per_sample_s, contenders=PAIR):
    found = []
    for batch in (32, 8_192):
        point = Point(dataset="signal", samples=16_384, batch_size=batch, epochs=2)
        steps = dict.fromkeys(contenders, fixed_s + per_sample_s * batch)
        found += rows.run(steps, point=point, run_id=f"{batch:012x}", jitter=0.0)
    return found
