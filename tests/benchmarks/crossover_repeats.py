"""Does a second measurement find the same crossover? The same adaptive sweep, measured again and again.

    python -m tests.benchmarks.crossover_repeats [--tries 10] [--devices cpu@1,cpu@2]
    python -m tests.benchmarks.crossover_repeats --tries 5 --families lstm gru-cells
    python -m tests.benchmarks.crossover_repeats --tries 5 --families transformer --budget 130

Every sweep has a store of its own, so that none knows of another. Each is set against each of the others, and against
the answer of all rows together; the losses of both devices are compared beside. Without an accelerator, one thread
against all of them: sharing a step among threads costs time, and pays off from some size on.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from core.answer import study
from core.results.environment import usable_cores
from core.results.schema import Trial
from core.results.store import Store

_TOKENS = "--dataset token-order --depth 1 --sequence-length 16 --model"

TRAININGS = {
    "mlp": "--dataset signal --model mlp --depth 2 --batch-size 32",
    "lstm": f"{_TOKENS} lstm",
    "gru-cells": f"{_TOKENS} gru-cells",
    "transformer": f"{_TOKENS} transformer --batch-size 4",
}
"""Four sequences of 16 tokens are rows enough for two threads to share products from some size on, and too few below:
with 64 of them, threads and one thread were alike at every small size, and sweeps agreed on nothing."""

RANGES = {"mlp": "8:4096", "lstm": "8:512", "gru-cells": "8:512", "transformer": "16:512"}


def sweep(folder: Path, family: str, devices: str, budget_s: float) -> tuple[dict[str, Any], int, float]:
    """One adaptive sweep into an empty store: its answer, the sizes that it took, and seconds."""
    what = (*TRAININGS[family].split(), "--axis", "hidden_size", "--range", RANGES[family])
    command = [sys.executable, "-m", "core", "sweep", *what, "--adaptive", "--devices", devices]
    command += ["--budget", str(budget_s)]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--store", str(folder), "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    document = json.loads(done.stdout)
    return document["crossovers"][0], len(document["points"]), time.monotonic() - began


def losses_differ_by(rows: list[Trial]) -> float:
    """The largest relative difference of the two devices' losses, segment by segment of each run."""
    runs: dict[str, list[Trial]] = {}
    for row in rows:
        runs.setdefault(row.run_id, []).append(row)
    differences = [0.0]
    for one, other in (run for run in runs.values() if len(run) == 2):
        mine, theirs = (dict(zip(row.loss_step, row.loss, strict=True)) for row in (one, other))
        differences += [abs(mine[step] - theirs[step]) / abs(mine[step]) for step in mine.keys() & theirs.keys()]
    return max(differences)


def overlaps(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both are crossings whose intervals share a size."""
    if any(answer["outcome"] != "crossing" for answer in (one, other)):
        return False
    return bool(one["low"] <= other["high"] and other["low"] <= one["high"])


def report(family: str, tries: int, devices: str, budget_s: float, folder: Path) -> None:
    """Sweep so often, and say how far the answers agree with each other and with that of all rows together."""
    print(f"{family}: {TRAININGS[family]}, hidden size {RANGES[family]}, {devices}\n")
    print("| sweep | outcome | estimate | 95 % interval | noise a reading | sizes | time | losses differ by |")
    print("|---|---|---|---|---|---|---|---|")
    answers, rows = [], []
    for number in range(tries):
        answer, sizes, seconds = sweep(folder / family / str(number), family, devices, budget_s)
        found = Store(folder / family / str(number)).trials()
        answers.append(answer)
        rows += found
        interval = f"{answer['low']:.0f} to {answer['high']:.0f}" if answer["low"] else "–"
        estimate = f"{answer['estimate']:.0f}" if answer["estimate"] else "–"
        noise = f"{100 * answer['noise']:.0f} %" if answer["noise"] else "–"
        cells = (number + 1, answer["outcome"], estimate, interval, noise, sizes, f"{seconds:.0f} s")
        print("|", *(f"{cell} |" for cell in cells), f"{losses_differ_by(found):.1g} |", flush=True)
    pairs = list(itertools.combinations(answers, 2))
    print(f"\n{sum(overlaps(one, other) for one, other in pairs)} of {len(pairs)} pairs of intervals share a size.")
    pooled = [together.crossover() for together in study.studies(rows, axis="hidden_size")]
    for crossing in pooled:
        print(f"All rows together: {crossing.sentence}")
        if crossing.estimate:
            held = [answer["low"] and answer["low"] <= crossing.estimate <= answer["high"] for answer in answers]
            print(f"{sum(map(bool, held))} of {len(answers)} intervals hold its estimate.\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=10)
    parser.add_argument("--families", nargs="+", choices=TRAININGS, default=["mlp"])
    parser.add_argument("--devices", default=f"cpu@1,cpu@{usable_cores()}")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds of each sweep, after which it ends")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for family in options.families:
            report(family, options.tries, options.devices, options.budget, Path(folder))


if __name__ == "__main__":
    main()
