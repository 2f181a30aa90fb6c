"""What makes a run differ from the next one? Variants of the measuring process, and how far apart its processors are.

    python -m tests.benchmarks.shift_causes [--repeats 7] [--seconds 90] [--devices cpu@1,cpu@2] [--training "…"]

First one question again and again, in measuring processes that differ in one thing, in turns. Each variant has a
process of its own, which its runs share, but for those with a new process for each run.

Then one process trains with one thread and with two, in turns, for some seconds. Between them it times how long two
processors take to hand a value back and forth, which says how far apart the host has placed them, and a fixed loop,
which says how fast they are. Readings are sorted by the exchange. Run it alone on a quiet machine with Linux.
"""

import argparse
import itertools
import math
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.answer.speedup import log_ratios, measure_repeatability, speedup
from core.files.project import PROJECT
from core.jobs.client import WAITING_POLICY
from core.jobs.queue import Queue
from core.results.store import Store
from tests.benchmarks.loaded_runs import surroundings
from tests.benchmarks.repeats import QUESTIONS

TRAINING = QUESTIONS["digits, MLP, hidden size 256"]

STEPS = 100
"""Steps of a reading, some tens of milliseconds."""

PARTS = 6
"""Groups of readings that a table shows."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """What differs from a measuring process as it is.

    Attributes:
        variables: environment variables that it starts with.
        prefix: command in front of Python's.
        is_new: whether each run starts a process of its own.
    """

    variables: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    is_new: bool = False


VARIANTS = {
    "as it is": Variant(),
    "a new process for each run": Variant(is_new=True),
    "huge pages": Variant(variables={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
    "freed memory not returned": Variant(
        variables={"MALLOC_TRIM_THRESHOLD_": str(2**34), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
    ),
    "the same addresses in each process": Variant(prefix=("setarch", "--addr-no-randomize"), is_new=True),
}


def measure(training: str, devices: str, variant: Variant, folder: Path) -> float | None:
    """Ask the question once: the logarithm of its speedup, or None where the run has no pairs or was disturbed."""
    before = {row.run_id for row in Store(folder / "results").trials()}
    command = [*variant.prefix, sys.executable, "-m", "core", "run", *training.split(), "--devices", devices]
    subprocess.run(
        [*command, "--fresh", "--store", str(folder / "results")],
        cwd=PROJECT,
        env={**surroundings(folder), **variant.variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=600,
    )
    if variant.is_new:
        Queue(folder / "jobs").worker_file.dismiss()
    rows = [row for row in Store(folder / "results").trials() if row.run_id not in before]
    first, other = sorted(rows, key=lambda row: row.contender)
    ratios = log_ratios(first, other)
    return statistics.median(ratios) if ratios and not speedup(first, other).is_conditional else None


def compare_variants(repeats: int, training: str, devices: str) -> Iterator[str]:
    """Lines of a table: of all runs of each variant."""
    ratios: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with tempfile.TemporaryDirectory() as name:
        folders = {variant: Path(name) / str(place) for place, variant in enumerate(VARIANTS)}
        for number, said in itertools.product(range(repeats), VARIANTS):
            ratio = measure(training, devices, VARIANTS[said], folders[said])
            print(f"{number + 1} {said}: {ratio}", file=sys.stderr, flush=True)
            ratios[said] += [] if ratio is None else [ratio]
        yield "| process | runs | median | lowest to highest | spread | shift of a round | of a run |"
        yield "|---|---|---|---|---|---|---|"
        for said, folder in folders.items():
            rows, speedups = Store(folder / "results").trials(), list(map(math.exp, ratios[said]))
            found = measure_repeatability(rows, rows[0].machine_id)
            shares = " | ".join(f"{100 * share:.0f} %" for share in (found.reach, found.shift, found.run_shift))
            ends = f"{min(speedups):.2f} to {max(speedups):.2f}"
            yield f"| {said} | {len(speedups)} | {statistics.median(speedups):.2f}× | {ends} | ±{shares} |"
            Queue(folder / "jobs").worker_file.dismiss()


def time_loop() -> float:
    """Return the shortest of three times of a fixed loop, in seconds."""

    def once() -> float:
        begin, total = time.perf_counter(), 0
        for number in range(100_000):
            total += number
        return time.perf_counter() - begin

    return min(once() for _ in range(3))


def time_exchange(turns: int = 3_000) -> float:
    """Return the seconds in which two processors, each spinning, hand a value back and forth once."""
    usable = os.sched_getaffinity(0)
    first, second = sorted(usable)[:2]
    shared = memoryview(mmap.mmap(-1, 8)).cast("q")
    child = os.fork()
    if not child:
        os.sched_setaffinity(0, {second})
        for turn in range(0, 2 * turns, 2):
            while shared[0] != turn + 1:
                pass
            shared[0] = turn + 2
        os._exit(0)
    os.sched_setaffinity(0, {first})
    begin = time.perf_counter()
    for turn in range(0, 2 * turns, 2):
        shared[0] = turn + 1
        while shared[0] != turn + 2:
            pass
        if not turn:  # the other process had to begin
            begin = time.perf_counter()
    took = time.perf_counter() - begin
    os.waitpid(child, 0)
    os.sched_setaffinity(0, usable)
    return took / (turns - 1)


def time_steps(seconds: float) -> list[tuple[float, float, float, float]]:
    """Readings: seconds of an exchange, of a step with two threads, of one with one thread, and of the fixed loop."""
    import torch

    from core.measure import datasets, networks
    from core.measure.devices import use_strict_fp32
    from core.measure.training import Training
    from core.question.experiment import Point

    use_strict_fp32()
    point = Point(dataset="digits", model="mlp", hidden_size=256, depth=2)
    data = datasets.load_dataset(point.dataset, samples=point.samples, seed=0)
    feed = datasets.make_feed(point, data, data.train, torch.device("cpu"))
    training = Training(networks.build(point.network, 0), feed, learning_rate=point.learning_rate)

    def step(threads: int) -> float:
        training.use_threads(threads)
        training.advance(STEPS // 10)
        training.read_losses()
        begin = time.perf_counter()
        training.advance(STEPS)
        training.read_losses()
        return (time.perf_counter() - begin) / STEPS

    step(2)
    readings, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        one, before = step(1), time_exchange()
        two, after = step(2), time_exchange()
        readings.append(((before + after) / 2, two, one, time_loop()))
    return readings


def sort_readings(readings: list[tuple[float, float, float, float]]) -> Iterator[str]:
    """Lines of a table: readings by the exchange, and how step times depend on it and on the loop."""
    yield "| exchange | readings | step, two threads | step, one thread | fixed loop |"
    yield "|---|---|---|---|---|"
    readings = sorted(readings)
    edges = [len(readings) * part // PARTS for part in range(PARTS + 1)]
    for begin, end in itertools.pairwise(edges):
        part = readings[begin:end]
        two, one, loop = (statistics.median(each[place] for each in part) for place in (1, 2, 3))
        yield (
            f"| {1e9 * part[0][0]:.0f} to {1e9 * part[-1][0]:.0f} ns | {len(part)} | {1e6 * two:.0f} µs "
            f"| {1e6 * one:.0f} µs | {1e3 * loop:.2f} ms |"
        )
    exchange, two, _, loop = zip(*readings, strict=True)
    for name, other in {"exchange": exchange, "loop": loop}.items():
        yield f"\nCorrelation of the step of two threads with the {name}: {statistics.correlation(two, other):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--devices", default="cpu@1,cpu@2")
    parser.add_argument("--training", default=TRAINING, help="options of run, as one text")
    options = parser.parse_args()
    if options.repeats:
        print(*compare_variants(options.repeats, options.training, options.devices), sep="\n")
    if WAITING_POLICY.items() <= os.environ.items():
        print("", *sort_readings(time_steps(options.seconds)), sep="\n")
    else:  # OpenMP reads its environment once
        command = [sys.executable, "-m", "tests.benchmarks.shift_causes", "--repeats", "0"]
        environment = {**os.environ, **WAITING_POLICY}
        subprocess.run([*command, "--seconds", str(options.seconds)], cwd=PROJECT, env=environment, check=True)


if __name__ == "__main__":
    main()
