"""What a fit of gradient boosting takes beside its table: memory, and time where torch is in the process as well.

    python -m tests.benchmarks.boosting [--rows 500000] [--rounds 20] [--threads 1]

Each figure is of a process of its own. Memory is the peak beyond that after a small fit, over the bytes of the table;
seconds are the median of some fits. Torch shares its OpenMP runtime with XGBoost and LightGBM, and scikit-learn brings
another: with torch imported, and idle as in a block, fits should take as long as without.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

from core.measure.boosting import libraries
from core.question.experiment import Point
from core.question.models.boosting import LIBRARIES, missing

FITS = 5


def one(family: str, rows: int, rounds: int, threads: int, torch: bool) -> dict[str, float]:
    """Fit in this process."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, rows)
    table = rng.standard_normal((rows, 20), np.float32) + 0.3 * labels[:, None].astype(np.float32)
    assert torch or "torch" not in sys.modules
    libraries.load(family)
    libraries.use_threads(family, threads)
    point = Point(dataset="signal", model=family, rounds=rounds)
    _fit_s(point, table[:500], labels[:500], threads)
    before = _peak_bytes()
    seconds = [_fit_s(point, table, labels, threads) for _ in range(FITS)]
    return {"seconds": statistics.median(seconds), "tables": (_peak_bytes() - before) / table.nbytes}


def _fit_s(point: Point, table: np.ndarray, labels: np.ndarray, threads: int) -> float:
    made = libraries.model(point, "cpu", threads)
    began = time.perf_counter()
    libraries.fit(point.model, made, table, labels, threads)
    return time.perf_counter() - began


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--one", choices=tuple(LIBRARIES), help=argparse.SUPPRESS)
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        if asked.torch:
            import torch

            torch.ones(512, 512) @ torch.ones(512, 512)
        print(json.dumps(one(asked.one, asked.rows, asked.rounds, asked.threads, asked.torch)))
        return
    print(f"{asked.rows:,} rows of 20 features, {asked.rounds} rounds, {asked.threads} threads")
    print(f"{'library':<16}{'alone':>10}{'with torch':>12}{'tables beside it':>18}")
    for family in filter(lambda name: not missing(name), LIBRARIES):
        alone, beside = (_apart(family, asked, *more) for more in ((), ("--torch",)))
        print(f"{family:<16}{alone['seconds']:>9.2f}s{beside['seconds']:>11.2f}s{alone['tables']:>18.1f}")


def _apart(family: str, asked: argparse.Namespace, *more: str) -> dict[str, float]:
    sizes = (f"--{name}={getattr(asked, name)}" for name in ("rows", "rounds", "threads"))
    command = [sys.executable, "-m", "tests.benchmarks.boosting", "--one", family, *sizes, *more]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return found


if __name__ == "__main__":
    main()
