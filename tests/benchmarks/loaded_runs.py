"""Do runs on a loaded machine end in a sentence that can be believed? Default runs by the command line, as JSON.

    python -m tests.benchmarks.loaded_runs [--runs 20] [--kept FILE] [--json] [-- --dataset digits --hidden-size 256]

First so many runs on the quiet machine, then as many with one program that takes a core, then as many with one that
comes and goes. Each run with company is followed by a second one under the same load. Words behind `--` are options of
`run`; without them it is the default question. Twenty of each take about an hour; `--kept` has the runs that are done,
so that the experiment can be cut off and goes on behind them. Begin on a quiet machine with nothing else to do.

Counted: runs that end in a sentence with a number; unconditional verdicts that contradict the quiet ones; conditional
verdicts whose second run, under the same load, names the same device.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.files.project import PROJECT
from core.jobs.queue import Queue
from tests.benchmarks.busy_machine import company

LOADS: dict[str, tuple[int, bool]] = {"quiet": (0, False), "one core": (1, False), "comes and goes": (1, True)}
"""Load → how many programs, and whether they rest between bursts."""

LIMIT_S = 600


def run_command(words: Sequence[str], folder: Path) -> dict[str, Any]:
    """One run by the command line; its comparison of the first two devices, or why there is none."""
    command = [sys.executable, "-m", "core", "run", "--fresh", "--json", "--store", str(folder / "results"), *words]
    done = subprocess.run(
        command, cwd=PROJECT, env=surroundings(folder), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if not done.stdout.strip():
        lines = done.stderr.strip().splitlines()
        return {"sentence": "", "refused": lines[-1] if lines else f"status {done.returncode}"}
    document = json.loads(done.stdout)
    first = document["comparisons"][0]
    named = ("winner", "verdict", "condition", "value", "low", "high", "sentence", "refused")
    return {"question": document["experiment_id"], **{name: first.get(name) for name in named}}


def surroundings(folder: Path) -> dict[str, str]:
    """Environment variables that keep jobs and the lock of the experiment to itself."""
    return {**os.environ, "CROSSOVER_JOBS": str(folder / "jobs"), "CROSSOVER_LOCK": str(folder / "lock")}


def measure(runs: int, words: Sequence[str], kept: Path | None, folder: Path) -> list[dict[str, Any]]:
    """Return all runs, the second ones too; those that a file has are not repeated, and it gets the others."""
    done = [json.loads(line) for line in kept.read_text().splitlines()] if kept and kept.exists() else []
    known = {(entry["load"], entry["number"], entry["second"]) for entry in done}
    for load, (programs, rests) in LOADS.items():
        wanted = [(number, second) for number in range(runs) for second in ((False, True) if programs else (False,))]
        missing = [pair for pair in wanted if (load, *pair) not in known]
        with company(programs, rests) if missing else contextlib.nullcontext():
            for number, second in missing:
                entry = {"load": load, "number": number, "second": second, **run_command(words, folder)}
                done.append(entry)
                print(f"{load} {number + 1}{' again' if second else ''}: {entry['sentence']}", file=sys.stderr)
                if kept:
                    with kept.open("a") as lines:
                        print(json.dumps(entry), file=lines, flush=True)
    return done


def count(entries: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What was asked of the runs, a line for each load."""
    winner, _ = Counter(entry.get("winner") for entry in entries if entry["load"] == "quiet").most_common(1)[0]
    second = {(entry["load"], entry["number"]): entry for entry in entries if entry["second"]}
    for load in LOADS:
        first = [entry for entry in entries if entry["load"] == load and not entry["second"]]
        conditional = [entry for entry in first if entry.get("condition")]
        firm = [entry for entry in first if entry.get("winner") and not entry["condition"]]
        both = [(entry, second[load, entry["number"]]) for entry in conditional if (load, entry["number"]) in second]
        yield {
            "load": load,
            "runs": len(first),
            "questions": len({entry.get("question") for entry in first}),
            "end in a sentence with a number": sum("×" in entry["sentence"] for entry in first),
            "name a winner unconditionally": len(firm),
            "of them against the quiet winner": sum(bool(winner) and entry["winner"] != winner for entry in firm),
            "conditional": len(conditional),
            "of them with the winner of a second run": sum(
                one.get("winner") == other.get("winner") for one, other in both
            ),
            "of them with an interval that meets that of a second run": sum(_overlap(*pair) for pair in both),
            "without a winner": sum(not entry.get("winner") for entry in first),
        }


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    if not (one.get("low") and other.get("low")):
        return False
    return bool(one["low"] <= other["high"] and other["low"] <= one["high"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--kept", type=Path, help="file of the runs that are done (default: none)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("words", nargs="*", help="options of run, behind --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        try:
            entries = measure(options.runs, options.words, options.kept, Path(name))
        finally:
            Queue(Path(name) / "jobs").worker_file.dismiss()
    lines = list(count(entries))
    if options.json:
        print(json.dumps({"counts": lines, "runs": entries}, indent=2))
        return
    for line in lines:
        print("  ".join(f"{what}: {value}" for what, value in line.items()))


if __name__ == "__main__":
    main()
