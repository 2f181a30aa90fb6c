"""Does the interval of a run say what the next run will say? Three questions, each asked again and again.

    python -m tests.benchmarks.repeats [--repeats 20] [--devices cpu@1,cpu@2] [--store FOLDER]

Every run goes through the command line with `--fresh`, all questions in turns. For each question: the median of all
runs, the share of intervals that hold it, the median width of an interval, and how far results spread. Run it alone on
a quiet machine. With `--store`, runs are added to those of a store, so that the machine's repeated questions count.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass

QUESTIONS = {
    "digits, MLP, hidden size 1,024": "--dataset digits --model mlp --hidden-size 1024",
    "digits, MLP, hidden size 256": "--dataset digits --model mlp --hidden-size 256",
    "tokens, GRU, hidden size 128": "--dataset token-order --model gru --hidden-size 128 --depth 1",
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one run said of its challenger."""

    value: float
    low: float
    high: float
    pairs: int
    rounds: int
    condition: str


def ask_question(training: str, devices: str, store: str) -> Answer | None:
    """Run a question anew; None where it has no interval."""
    command = [sys.executable, "-m", "core", "run", *training.split(), "--devices", devices, "--fresh", "--json"]
    done = subprocess.run(
        [*command, "--store", store], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=600
    )
    found = json.loads(done.stdout)["comparisons"][0]
    if found["low"] is None:
        return None
    return Answer(**{name: found[name] for name in Answer.__dataclass_fields__})


def summarize(answers: list[Answer]) -> str:
    """Cells of a table: of all runs of one question."""
    middle = statistics.median(one.value for one in answers)
    held = sum(one.low <= middle <= one.high for one in answers)
    width = statistics.median(one.high / one.low for one in answers)
    spread = math.exp(1.96 * statistics.pstdev(math.log(one.value) for one in answers)) - 1
    loaded = sum(bool(one.condition) for one in answers)
    return (
        f"{middle:.3f}× | {held} of {len(answers)} | {width:.3f} | ±{100 * spread:.0f} % | "
        f"{statistics.mean(one.pairs for one in answers):.0f} | {loaded}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--devices", default="cpu@1,cpu@2")
    parser.add_argument("--store", default="")
    options = parser.parse_args()
    answers: dict[str, list[Answer]] = {name: [] for name in QUESTIONS}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.repeats):
            for name, training in QUESTIONS.items():
                if (found := ask_question(training, options.devices, options.store or folder)) is not None:
                    answers[name].append(found)
                    print(f"{number + 1} {name}: {found}", file=sys.stderr, flush=True)
    print("| question | median | intervals that hold it | width (high / low) | spread of results | pairs | loaded |")
    print("|---|---|---|---|---|---|---|")
    for name, found in answers.items():
        print(f"| {name} | {summarize(found) if found else 'no interval | | | | |'} |")


if __name__ == "__main__":
    main()
