"""What a fit of gradient boosting takes beside its table: memory, and time where torch is in the process as well.

    python -m tests.benchmarks.boosting [--rows 500000] [--rounds 20] [--threads 1]
    python -m tests.benchmarks.boosting --memory

Each figure is of a process of its own. Memory is the peak of a process's first fit beyond what it had before it, beside
what the app takes a fit to need at most; seconds are the median of some fits. Torch shares its OpenMP runtime with
XGBoost and LightGBM, and scikit-learn brings another: with torch imported, and idle as in a block, fits should take as
long as without.
"""

import argparse
import itertools
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from core.measure import boosting
from core.question.experiment import Point
from core.question.models import operations
from core.question.models.families import LIBRARIES, explain_missing_library

FITS = 5

SIZES = (
    ("signal", 300, 31),
    ("disc", 300, 31),
    ("signal", 3_000, 31),
    ("signal", 30_000, 31),
    ("disc", 300_000, 31),
    ("signal", 300_000, 31),
    ("signal", 100_000, 1_024),
    ("digits", 1_257, 31),
    ("token-order", 30_000, 31),
)
"""Data set, whose features and classes count, rows and leaves of which memory is looked at; numbers are random."""


def one(point: Point, threads: int, fits: int) -> dict[str, float]:
    """Fit in this process: median seconds of a fit, and bytes of the first beyond what was there."""
    rng, network = np.random.default_rng(0), point.network
    labels = rng.integers(0, network.classes, point.samples)
    table = rng.standard_normal((point.samples, math.prod(network.input_shape)), np.float32)
    table += 0.3 * labels[:, None].astype(np.float32)
    boosting.load(point.model)
    boosting.use_threads(point.model, threads)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _status_bytes("VmRSS")
    seconds = [_fit_s(point, table, labels, threads)]
    peak = _status_bytes("VmHWM") - before
    seconds += [_fit_s(point, table, labels, threads) for _ in range(fits - 1)]
    return {"seconds": statistics.median(seconds), "bytes": peak}


def _fit_s(point: Point, table: np.ndarray, labels: np.ndarray, threads: int) -> float:
    made = boosting.model(point, "cpu", threads)
    began = time.perf_counter()
    boosting.fit(point.model, made, table, labels, threads)
    return time.perf_counter() - began


def _status_bytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", action="store_true", help="peaks of several sizes, and not times")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--fits", type=int, default=FITS, help=argparse.SUPPRESS)
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        if asked.torch:
            import torch

            torch.ones(512, 512) @ torch.ones(512, 512)
        assert asked.torch or "torch" not in sys.modules
        print(json.dumps(one(Point(**json.loads(asked.one)), asked.threads, asked.fits)))
        return
    families = [family for family in LIBRARIES if not explain_missing_library(family)]
    (memory if asked.memory else times)(families, asked)


def times(families: list[str], asked: argparse.Namespace) -> None:
    print(f"{asked.rows:,} rows of 20 features, {asked.rounds} rounds, {asked.threads} threads")
    print(f"{'library':<16}{'alone':>10}{'with torch':>12}")
    for family in families:
        point = {"dataset": "signal", "samples": asked.rows, "model": family, "rounds": asked.rounds}
        alone, beside = (_apart(point, asked.threads, *more)["seconds"] for more in ((), ("--torch",)))
        print(f"{family:<16}{alone:>9.2f}s{beside:>11.2f}s", flush=True)


def memory(families: list[str], asked: argparse.Namespace) -> None:
    print(f"{'library':<16}{'data':<15}{'rows':>9}{'leaves':>8}{'peak':>12}{'at most':>12}")
    for family, (dataset, rows, leaves) in itertools.product(families, SIZES):
        point = {"dataset": dataset, "samples": rows, "model": family, "rounds": 2, "leaves": leaves}
        most = operations.step_bytes(Point(**point), 0)
        found = _apart(point, asked.threads, "--fits=1")["bytes"]
        said = f"{found / 2**20:>8.1f} MiB{most / 2**20:>8.1f} MiB{'' if found <= most else '  too little'}"
        print(f"{family:<16}{dataset:<15}{rows:>9,}{leaves:>8,}{said}", flush=True)


def _apart(point: dict[str, Any], threads: int, *more: str) -> dict[str, float]:
    what = (f"--one={json.dumps(point)}", f"--threads={threads}", *more)
    command = [sys.executable, "-m", "tests.benchmarks.boosting", *what]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return found


if __name__ == "__main__":
    main()
