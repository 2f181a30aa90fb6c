"""How should idle OpenMP threads wait? Steps of all threads against steps of one, for every way, in turns.

    python -m tests.benchmarks.waiting [--rounds 12] [--busy 0 1] [--json] [--preload libiomp5.so]

The time of a step with all threads over the time with one thread of the same round; below 1, more threads pay. Each way
is a process of its own, because OpenMP reads its environment once. `busy` processes that never rest share the machine.
`default` is what PyTorch does unasked; a number is how often a thread looks for work before it sleeps.

With `--preload`, the file of Intel's OpenMP (package intel-openmp), which PyTorch has on Windows and nearly on macOS:
its threads look for work for `KMP_BLOCKTIME`, of which 0, 300us and 1 ms are compared with GNU's as the app sets it.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import torch

from core.measure import datasets, networks
from core.measure.devices import use_strict_fp32
from core.measure.training import Training
from core.question.experiment import Contender, Point

WAYS: dict[str, dict[str, str]] = {
    "default": {},
    "passive": {"OMP_WAIT_POLICY": "PASSIVE"},
    **{looks: {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": looks} for looks in ("1000", "3000", "10000")},
}
"""Environment variables of each way to wait."""

KMP_TIMES = ("0", "300us", "1")
ONE = "one thread"
READING_S = 0.05
ALL = os.cpu_count() or 1

DISC = Point(dataset="disc", model="doubling-mlp", depth=8, batch_size=100, shuffle=False)
WORKLOADS = {
    "T1, 8 layers": (DISC, ""),
    "T1, 8 layers, compiled": (DISC, "+compiled"),
    "T2, 100 neurons": (Point(dataset="signal", model="mlp", hidden_size=100, depth=2, batch_size=32), ""),
    "T2, 1000 neurons": (Point(dataset="signal", model="mlp", hidden_size=1_000, depth=2, batch_size=32), ""),
    "256 neurons, batch 256": (Point(dataset="signal", model="mlp", hidden_size=256, depth=4, batch_size=256), ""),
}


def serve(pipe: Connection, workload: str, threads: int) -> None:
    """Train as many steps as the pipe asks for and answer with the seconds a step, until it closes."""
    use_strict_fp32()
    torch.set_num_threads(threads)
    point, lane = WORKLOADS[workload]
    contender = Contender.parse(f"cpu@{threads}{lane}")
    data = datasets.load_dataset(point.dataset, samples=point.samples, seed=0)
    feed = datasets.make_feed(point, data, data.train, torch.device("cpu"))
    run = Training(networks.build(point.network, 0), feed, learning_rate=point.learning_rate, lane=contender.lane)
    example = data.train.samples[: point.batch_size], data.train.labels[: point.batch_size]
    run.prepare(example, remainder=False)
    run.advance(200)
    with contextlib.suppress(EOFError):
        while True:
            steps, begin = pipe.recv(), time.perf_counter()
            run.advance(steps)
            run.read_losses()
            pipe.send((time.perf_counter() - begin) / steps)


def side(workload: str, way: str, threads: int) -> Connection:
    """A process that trains."""
    starts, own = multiprocessing.get_context("spawn"), WAYS[way]
    ours, theirs = starts.Pipe()
    os.environ.update(own)
    starts.Process(target=serve, args=(theirs, workload, threads), daemon=True).start()
    for name in own:
        del os.environ[name]
    theirs.close()
    return ours


@contextlib.contextmanager
def company(busy: int) -> Iterator[None]:
    """Processes that never rest."""
    others = [multiprocessing.get_context("spawn").Process(target=_spin, daemon=True) for _ in range(busy)]
    for other in others:
        other.start()
    yield
    for other in others:
        other.terminate()


def compare(sides: dict[str, Connection], rounds: int, busy: int) -> tuple[float, dict[str, list[float]]]:
    """Seconds of a step with one thread, and the ratios of each way to it, sorted."""
    with company(busy):
        steps = {name: max(10, _tens(READING_S / _read(pipe, 100))) for name, pipe in sides.items()}
        ratios: dict[str, list[float]] = {way: [] for way in WAYS}
        alone: list[float] = []
        for _ in range(rounds):
            found = {name: _read(sides[name], steps[name]) for name in random.sample(list(sides), len(sides))}
            alone.append(found[ONE])
            for way in WAYS:
                ratios[way].append(found[way] / found[ONE])
    return statistics.median(alone), {way: sorted(of) for way, of in ratios.items()}


def _read(pipe: Connection, steps: int) -> float:
    pipe.send(steps)
    return float(pipe.recv())


def _tens(steps: float) -> int:
    """Whole compiled calls."""
    return 10 * round(steps / 10)


def _spin() -> None:
    while True:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--preload", help="file of another OpenMP runtime, whose KMP_BLOCKTIME is compared")
    options = parser.parse_args()
    if options.preload:
        gnu = WAYS["3000"]
        WAYS.clear()
        preloaded = {"LD_PRELOAD": options.preload, "OMP_WAIT_POLICY": "PASSIVE"}
        WAYS.update({f"KMP_BLOCKTIME={each}": preloaded | {"KMP_BLOCKTIME": each} for each in KMP_TIMES})
        WAYS["libgomp"] = gnu
    if ALL == 1:
        sys.exit("This machine has one core; there is nothing to wait for.")
    if not options.json:
        print(f"| workload | one thread | {' | '.join(WAYS)} |\n|{'---|' * (len(WAYS) + 2)}", flush=True)
    results = {}
    for workload in WORKLOADS:
        sides = {ONE: side(workload, list(WAYS)[-1], 1)} | {way: side(workload, way, ALL) for way in WAYS}
        for busy in options.busy:
            step_s, ratios = compare(sides, options.rounds, busy)
            name = f"{workload}; {busy} busy"
            told = {way: (statistics.median(of), of[int(0.9 * len(of))]) for way, of in ratios.items()}
            results[name] = {"one_thread_step_s": step_s, "median_and_p90": told}
            if not options.json:
                cells = " | ".join(f"{median:.2f} ({p90:.2f})" for median, p90 in told.values())
                print(f"| {name} | {step_s * 1e6:.0f} us | {cells} |", flush=True)
        for pipe in sides.values():
            pipe.close()
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
