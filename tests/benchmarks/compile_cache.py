"""What compiled code on disk spares: a run in compiled lanes in a fresh process, without it and with it.

    python -m tests.benchmarks.compile_cache --preset disc

Of each run: the seconds of the whole command, and by lane what its row says of compiling, whether its code came from
the disk, and its median step, which must not depend on that. The lanes are those of "What would help?" on a CPU.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from core.files.project import PROJECT
from core.measure.execution import COMPILED_VARIABLE
from core.results.store import Store

LANES = "cpu,cpu+compiled10,cpu+compiled,cpu+kept,cpu+fused,cpu+channels_last,cpu+foreach"


def main() -> None:
    """Run twice and print."""
    parser = argparse.ArgumentParser(description="Time a run in compiled lanes without and with code on disk.")
    parser.add_argument("--preset", default="disc")
    parser.add_argument("--devices", default=LANES)
    parser.add_argument("--budget", default="60", help="seconds, without compiling")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("no code on disk", "code on disk"):
            began = time.perf_counter()
            rows = _run(Path(folder), asked.preset, asked.devices, asked.budget)
            print(f"{name}: {time.perf_counter() - began:.0f} s")
            for row in rows:
                step_us = sorted(row["step_s"])[len(row["step_s"]) // 2] * 1e6 if row.get("step_s") else float("nan")
                compiling = f"compiling {row['startup_compile_s'] or 0:6.1f} s, served {row['startup_compile_served']}"
                print(f"  {row['contender']:24} {compiling}, step {step_us:8.1f} µs")


def _run(folder: Path, preset: str, devices: str, budget: str) -> list[dict[str, Any]]:
    store = folder / f"store-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "core", "run", "--preset", preset, "--devices", devices, "--budget", budget]
    environment = os.environ | {COMPILED_VARIABLE: str(folder / "compiled")}
    subprocess.run(
        [*command, "--store", str(store)], cwd=PROJECT, env=environment, check=True, stdout=subprocess.DEVNULL
    )
    return [{**vars(trial), "step_s": trial.step_s} for trial in Store(store).trials()]


if __name__ == "__main__":
    main()
