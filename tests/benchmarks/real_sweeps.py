"""Do real sweeps agree, when every other one runs beside a program that comes and goes and takes a core?

    python -m tests.benchmarks.real_sweeps [--sweeps 10] [--seconds 60] [--grid] [--before OTHER_CHECKOUT]

One thread against two, hidden size 8 to 4,096, each sweep into a store of its own. Sweeps with even numbers have the
machine to themselves, the others run beside a program whose bursts and pauses have lengths by a seed. A sweep is taken
as it answers: its interval, or that one is always faster, or that nothing is decided; and whether it says that the
machine was busy. With `--before` each sweep is made by the code of another checkout as well, in turns.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.files.project import PROJECT
from core.jobs.queue import JOBS_VARIABLE

TRAINING = ("--dataset", "signal", "--model", "mlp", "--depth", "2", "--batch-size", "32")
SIZES = ("--axis", "hidden_size", "--range", "8:4096")

BURST_S, PAUSE_S = (0.5, 12.0), (0.5, 12.0)
"""Shortest and longest time for which the other program works, and rests."""

DISMISS = (
    "from core.jobs.queue import Queue; queue = Queue(); "
    "(queue.worker_file if hasattr(queue, 'worker_file') else queue.seat).dismiss()"
)
"""Ends the measuring process of a checkout, whatever the code of then calls its file."""


@dataclass(frozen=True)
class Swept:
    """What one sweep said, and the seconds that it took."""

    number: int
    code: str
    disturbed: bool
    answer: dict[str, Any]
    busy: bool
    sizes: int
    seconds: float

    @property
    def crossed(self) -> bool:
        return self.answer.get("outcome") == "crossing" and None not in (self.answer["low"], self.answer["high"])

    def overlaps(self, other: "Swept") -> bool:
        mine, theirs = self.answer, other.answer
        return bool(mine["low"] <= theirs["high"] and theirs["low"] <= mine["high"])


def come_and_go(seed: int) -> None:
    """Take a core in bursts until killed."""
    lengths = random.Random(seed)
    while True:
        ends = time.monotonic() + lengths.uniform(*BURST_S)
        while time.monotonic() < ends:
            sum(range(10_000))
        time.sleep(lengths.uniform(*PAUSE_S))


@contextmanager
def company(seed: int | None):
    """Another program beside what is done within; none without a seed."""
    process = multiprocessing.Process(target=come_and_go, args=(seed,), daemon=True) if seed is not None else None
    if process:
        process.start()
    try:
        yield
    finally:
        if process:
            process.kill()
            process.join()


def swept(number: int, code: str, checkout: Path, folder: Path, options: argparse.Namespace) -> Swept:
    """One sweep into an empty store, by the code of a checkout."""
    disturbed = number % 2 == 1
    command = [sys.executable, "-m", "core", "sweep", *TRAINING, *SIZES, "--devices", "cpu@1,cpu@2", "--json"]
    command += ["--store", str(folder / f"{code}-{number}"), "--budget", str(options.seconds)]
    command += [] if options.grid else ["--adaptive"]
    with company(options.seed + number if disturbed else None):
        began = time.monotonic()
        done = subprocess.run(
            command, cwd=checkout, env=environment(folder, code), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        seconds = time.monotonic() - began
    document = json.loads(done.stdout or b'{"crossovers": [], "points": []}')
    answer = next(iter(document["crossovers"]), {"outcome": "no answer"})
    said = "busy" in json.dumps([value for name, value in answer.items() if name != "sizes"]).lower()
    return Swept(number, code, disturbed, answer, said, len(document["points"]), seconds)


def environment(folder: Path, code: str) -> dict[str, str]:
    return {**os.environ, JOBS_VARIABLE: str(folder / f"jobs-{code}")}


def line(found: Swept) -> str:
    answer = found.answer
    interval = f"{answer['low']:.0f} to {answer['high']:.0f}" if found.crossed else "–"
    estimate = f"{answer['estimate']:.0f}" if answer.get("estimate") else "–"
    noise = f"{100 * answer['noise']:.0f} %" if answer.get("noise") else "–"
    company = "beside a program" if found.disturbed else "alone"
    busy = "yes" if found.busy else "no"
    cells = (found.number + 1, found.code, company, answer["outcome"], estimate, interval, noise, busy, found.sizes)
    return "| " + " | ".join(map(str, (*cells, f"{found.seconds:.0f} s"))) + " |"


def verdict(found: list[Swept]) -> str:
    """How many pairs of intervals overlap, and how many sweeps agree with those that were alone or say why not."""
    crossed = [one for one in found if one.crossed]
    pairs = list(itertools.combinations(crossed, 2))
    overlapping = sum(one.overlaps(other) for one, other in pairs)
    alone = [one for one in crossed if not one.disturbed]
    agree = sum(one.busy or (one.crossed and all(one.overlaps(other) for other in alone)) for one in found)
    seconds = sum(one.seconds for one in found) / max(1, len(found))
    return (
        f"{overlapping} of {len(pairs)} pairs of intervals overlap; {agree} of {len(found)} sweeps overlap all that "
        f"were alone or say that the machine was busy; {seconds:.0f} s a sweep."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sweeps", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of a sweep")
    parser.add_argument("--grid", action="store_true", help="every doubling instead of a search")
    parser.add_argument("--before", type=Path, help="another checkout, whose sweeps take turns with ours")
    parser.add_argument("--seed", type=int, default=1, help="of the bursts of the other program")
    options = parser.parse_args()
    checkouts = {"now": PROJECT, **({"before": options.before.resolve()} if options.before else {})}
    print("| sweep | code | machine | outcome | estimate | 95 % interval | noise | said busy | sizes | time |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    found: list[Swept] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            for number, (code, checkout) in itertools.product(range(options.sweeps), checkouts.items()):
                found.append(swept(number, code, checkout, folder, options))
                print(line(found[-1]), flush=True)
        finally:
            for code, checkout in checkouts.items():
                subprocess.run([sys.executable, "-c", DISMISS], cwd=checkout, env=environment(folder, code))
    for code in checkouts:
        print(f"\n{code}: {verdict([one for one in found if one.code == code])}")


if __name__ == "__main__":
    main()
