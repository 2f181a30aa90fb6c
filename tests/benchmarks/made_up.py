"""Stores of any size, made up: rows as real sweeps leave them, many thousand a second. No time in them was measured.

A sweep is one training at 20 hidden sizes on a CPU and a GPU of one machine, one run after the other; machines take
turns. Names, settings and every block differ from row to row of a table, so that files are as large as real ones.
"""

import datetime
import functools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from core.question.experiment import Point
from core.results.parquet import to_table
from core.results.schema import SCHEMA
from tests.rows import run

SIZES = np.unique(np.geomspace(16, 4096, 20).round()).astype(np.int64)
ROWS = 2 * len(SIZES)
"""Rows of a sweep."""

BLOCKS = 12
BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
QUESTIONS = 500
"""Sweeps of a machine that ask for something else each; then it measures them again."""

PART_SWEEPS = 300
"""Sweeps of a large part: it takes some 40 MiB in memory, as those that compaction makes."""

DATASETS, BATCHES, DEPTHS = ("digits", "mnist", "fashion-mnist"), (32, 64, 128), (1, 2, 3)
GPUS = ("NVIDIA H200", "NVIDIA A100", "NVIDIA L4", "AMD MI300X")


def tables(trials: int, machines: int, *, at_once: int = 10_000) -> Iterator[pa.Table]:
    """At least so many trials, in the order of time, some thousand in each table."""
    sweeps, step = -(-trials // ROWS), max(1, at_once // ROWS)
    for first in range(0, sweeps, step):
        yield table(np.arange(first, min(first + step, sweeps)), machines)


def parts(machine: int, trials: int, machines: int) -> Iterator[pa.Table]:
    """One machine's share of at least so many trials as compaction leaves them: large parts, sorted, by time."""
    of_machine = -(-trials // (ROWS * machines))
    for first in range(0, of_machine, PART_SWEEPS):
        turns = np.arange(first, min(first + PART_SWEEPS, of_machine))
        yield table(turns[np.argsort(turns % len(DATASETS), kind="stable")] * machines + machine, machines)


def table(sweeps: "np.ndarray[tuple[int], np.dtype[np.int64]]", machines: int) -> pa.Table:
    """The rows of some sweeps, by number."""
    count = len(sweeps) * ROWS
    sweep, place = np.repeat(sweeps, ROWS), np.tile(np.arange(ROWS), len(sweeps))
    machine, question = sweep % machines, sweep // machines % QUESTIONS
    size, gpu = SIZES[place // 2], place % 2
    depth = np.array(DEPTHS)[question // 9 % 3]
    run_number = sweep * len(SIZES) + place // 2
    names = {
        "trial_id": [f"{number:012x}-{side}" for number, side in zip(run_number, gpu, strict=True)],
        "run_id": [f"{number:012x}" for number in run_number],
        "experiment_id": [experiment_id(of, width) for of, width in zip(question, size, strict=True)],
        "started_at": [(BEGIN + datetime.timedelta(seconds=20 * int(n))).isoformat() for n in run_number],
        "dataset": np.array(DATASETS)[question % 3],
        "dataset_hash": [f"{of % 3:016x}" for of in question],
        "machine_id": [machine_id(of) for of in machine],
        "cpu_name": [f"Test CPU {of % 12}" for of in machine],
        "device_name": np.where(gpu == 1, np.array(GPUS)[machine % len(GPUS)], "Test CPU"),
        "batch_size": np.array(BATCHES)[question // 3 % 3],
        "depth": depth,
        "seed": question,  # so that sweeps at several depths or batch sizes are not studies along those as well
        "hidden_size": size,
        "parameters": 64 * size + (depth - 1) * size**2 + 11 * size,
    }
    found = _measured(count)
    for name, values in names.items():
        kind = SCHEMA.field(name).type
        found = found.set_column(SCHEMA.get_field_index(name), SCHEMA.field(name), pa.array(values, kind))
    return found


@functools.lru_cache(maxsize=2)
def _measured(count: int) -> pa.Table:
    """What so many rows measured, the same in each table: files are no smaller for it."""
    pair = to_table(run(pairs=BLOCKS, point=Point(hidden_size=128, depth=2, batch_size=64)))
    found = pair.take(pa.array(np.tile([0, 1], count // 2)))
    place = np.tile(np.arange(ROWS), count // ROWS)
    for name, values in _blocks(np.random.default_rng(0), SIZES[place // 2], place % 2, count).items():
        found = found.set_column(SCHEMA.get_field_index(name), SCHEMA.field(name), values)
    return found


def machine_id(machine: int) -> str:
    """Name of a machine by its number."""
    return f"{int(machine) * 2654435761 % 2**48:012x}"


def experiment_id(question: int, size: int) -> str:
    """Name of a question at a size."""
    return f"{int(question) * 2**13 + int(size):012x}"


def _blocks(draw: np.random.Generator, size: np.ndarray, gpu: np.ndarray, count: int) -> dict[str, pa.Array]:
    """Lists of blocks with noise of their own: the CPU's time grows with the size, the GPU's does not at first."""
    step_s = np.where(gpu == 1, 2e-4 + 1e-8 * size, 2e-6 * size**0.8)[:, None]
    steps = np.maximum(5, (0.1 / step_s).round()).astype(np.int64) * np.ones((1, BLOCKS), np.int64)
    times = step_s * np.exp(draw.normal(0, 0.02, (count, BLOCKS))) * steps
    begin = 5 * 10**12 + np.cumsum(3e9 * np.ones((count, BLOCKS)), axis=1).astype(np.int64)
    first = np.cumsum(steps, axis=1)
    parts = {f"breakdown_{part}_s": step_s * draw.uniform(0.1, 0.3, (count, 5)) for part in PARTS}
    values = {
        "block_pair": np.tile(np.arange(BLOCKS), (count, 1)),
        "block_first_step": first,
        "block_steps": steps,
        "block_begin_ns": begin,
        "block_end_ns": begin + (1e9 * times).astype(np.int64),
        "block_load": draw.uniform(0.2, 3, (count, BLOCKS)),
        "block_steal": draw.uniform(0, 0.02, (count, BLOCKS)),
        "block_switches": draw.integers(0, 50, (count, BLOCKS)),
        "block_clock_mhz": draw.uniform(1400, 1900, (count, BLOCKS)),
        "loss_step": first + steps,
        "loss": draw.uniform(0.1, 2.3, (count, BLOCKS)),
        **parts,
    }
    return {name: pa.ListArray.from_arrays(_offsets(of), of.ravel()) for name, of in values.items()}


PARTS = ("loader", "transfer", "forward", "backward", "optimizer")


def _offsets(values: np.ndarray) -> pa.Array:
    count, length = values.shape
    return pa.array(np.arange(count + 1) * length, pa.int32())
