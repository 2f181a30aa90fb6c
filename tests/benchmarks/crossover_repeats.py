"""Does a second measurement find the same crossover? The same adaptive sweep, measured again and again.

    python -m tests.benchmarks.crossover_repeats [--tries 10] [--devices cpu@1,cpu@2]

Every sweep has a store of its own, so that none knows of another. The first is set against each of the others. Without
an accelerator, one thread against all of them: sharing a step among threads costs time, and pays off from some size on.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from core.results.environment import usable_cores

TRAINING = ("--dataset", "signal", "--model", "mlp", "--depth", "2", "--batch-size", "32")
RANGE = "8:4096"


def sweep(folder: Path, devices: str) -> tuple[dict[str, Any], int, float]:
    """One adaptive sweep into an empty store: its answer, the sizes that it took, and seconds."""
    command = [sys.executable, "-m", "core", "sweep", *TRAINING, "--axis", "hidden_size", "--range", RANGE]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--adaptive", "--devices", devices, "--store", str(folder), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    document = json.loads(done.stdout)
    return document["crossovers"][0], len(document["points"]), time.monotonic() - began


def overlaps(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both are crossings whose intervals share a size."""
    if any(answer["outcome"] != "crossing" for answer in (one, other)):
        return False
    return bool(one["low"] <= other["high"] and other["low"] <= one["high"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=10)
    parser.add_argument("--devices", default=f"cpu@1,cpu@{usable_cores()}")
    options = parser.parse_args()
    print("| sweep | outcome | estimate | 95 % interval | noise a reading | sizes | time | overlaps the first |")
    print("|---|---|---|---|---|---|---|---|")
    first, agreed = None, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.tries + 1):
            answer, sizes, seconds = sweep(Path(folder) / str(number), options.devices)
            same = first is not None and overlaps(first, answer)
            agreed += same
            interval = f"{answer['low']:.0f} to {answer['high']:.0f}" if answer["low"] else "–"
            estimate = f"{answer['estimate']:.0f}" if answer["estimate"] else "–"
            said = "–" if first is None else "yes" if same else "no"
            noise = f"{100 * answer['noise']:.0f} %" if answer["noise"] else "–"
            cells = (number + 1, answer["outcome"], estimate, interval, noise, sizes, f"{seconds:.0f} s", said)
            print("|", *(f"{cell} |" for cell in cells), flush=True)
            first = first or answer
    print(f"\n{agreed} of {options.tries} overlap the first.")


if __name__ == "__main__":
    main()
