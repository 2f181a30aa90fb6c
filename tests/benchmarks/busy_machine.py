"""What do other programs do to a speedup that is measured in turns, and which verdicts can still be believed?

    python -m tests.benchmarks.busy_machine [--runs 600]
    python -m tests.benchmarks.busy_machine --real [--programs 0 1 2 4] [--coming-and-going] [--json] [--kept FILE]

Simulated: two processors; programs, or another guest of the host, come and go in bursts of seeded lengths. A training
of one thread goes on elsewhere as long as a processor is free; two threads wait for each other, and so for the one that
shares its processor: somewhere between a fair share of all processors and every shared one holding up all. Each run has
20 pairs of blocks of 100 ms, and the product decides: quiet, marked, or refused. The quiet truth is known, and so is by
how much the interval misses it.

Real: one thread against two of this machine, and one thread against itself with every other block counted as twice its
steps (so that the truth is 2 by construction), alone and beside programs that never rest, or that rest between seeded
bursts. What the first, alone, says is the truth for the rest: begin on a quiet machine. Five numbers of programs make
twenty lines of about six seconds of blocks each; `--kept` has those that are done, so that a run can be cut off.
"""

import argparse
import dataclasses
import itertools
import json
import math
import multiprocessing
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, TextIO

from core.answer import interference
from core.answer.speedup import speedup
from core.answer.statistics import TIE, median_interval, p90_to_median
from core.answer.verdict import Verdict
from core.jobs.client import WAITING_POLICY
from core.question.experiment import Contender, Experiment, Point
from core.results.schema import Trial
from tests import rows

PROCESSORS = 2
NOISE = 0.03
PAIRS, BLOCK_S, LEAD_IN_S = 20, 0.1, 0.02
SWITCHES_PER_S = 150
"""Of a thread that shares its processor; as seen on Linux."""

RATIOS = (0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0)
OLD_SPREAD = 1.5

SIZES = (32, 512)
"""Hidden sizes of the real part: small steps, whose threads meet often, and larger ones."""


@dataclasses.dataclass(frozen=True)
class Others:
    """Who else is there: so many programs, or a guest that takes a share, in bursts with gaps; without gaps always."""

    programs: int = 0
    burst_s: float = 0.0
    gap_s: float = 1.0
    stolen: float = 0.0

    def __str__(self) -> str:
        who = f"a guest that takes {self.stolen:.0%}" if self.stolen else f"{self.programs} programs"
        if not (self.programs or self.stolen):
            return "nobody"
        return f"{who}, {f'{self.burst_s:g} s on, {self.gap_s:g} s off' if self.gap_s else 'always'}"


WHO = (
    Others(),
    *(Others(1, *times) for times in ((0.1, 0.5), (0.3, 1), (1, 2), (1, 1), (3, 3), (3, 1), (1, 0))),
    *(Others(count, *times) for count in (2, 4) for times in ((1, 2), (1, 1), (3, 1), (1, 0))),
    *(Others(0, *times, 0.3) for times in ((1, 2), (1, 1), (1, 0))),
    *(Others(0, *times, 0.5) for times in ((1, 1), (3, 1))),
)


class Day:
    """Bursts and gaps from a seed, and how fast each training goes on in them."""

    def __init__(self, others: Others, draw: random.Random) -> None:
        self.others = others
        self._bursts = self._drawn(draw)
        self._now = next(self._bursts)

    def _drawn(self, draw: random.Random) -> Iterator[tuple[float, bool, float]]:
        """(end, whether somebody is there, how unlucky the threads lie), one after another."""
        others, end = self.others, 0.0
        there = draw.random() < others.burst_s / ((others.burst_s + others.gap_s) or 1)
        while True:
            mean = others.burst_s if there else others.gap_s
            end += draw.expovariate(1 / mean) if mean else 0.0
            yield (math.inf if there and not others.gap_s else end), there, draw.random()
            there = not there

    def train(self, now: float, work_s: float, threads: int) -> tuple[float, float]:
        """When so much work is done, and the seconds in which its processors were shared."""
        shared = 0.0
        while True:
            while self._now[0] <= now:
                self._now = next(self._bursts)
            end, there, luck = self._now
            slower = self._slower(threads, luck) if there else 1.0
            took = min(work_s * slower, end - now)
            shared += took if slower > 1 else 0.0
            if work_s * slower <= end - now:
                return now + took, shared
            work_s, now = work_s - took / slower, end

    def _slower(self, threads: int, luck: float) -> float:
        programs, stolen = self.others.programs, self.others.stolen
        if stolen:
            return float((1 - stolen) ** -(1 + luck * (threads - 1)))
        fair = max(1.0, (threads + programs) / PROCESSORS)
        if threads == 1:
            worst = max(1.0, math.ceil((1 + programs) / PROCESSORS))
        else:
            worst = 2.0**programs if programs <= threads else (1 + programs / threads) ** threads
        return float(fair ** (1 - luck) * worst**luck)


def run(others: Others, threads: tuple[int, int], ratio: float, seed: int) -> tuple[Trial, Trial]:
    """Two rows as they would be stored."""
    draw = random.Random(seed)
    day, now = Day(others, draw), 0.0
    found: list[list[tuple[float, float]]] = [[], []]
    for side in itertools.chain.from_iterable(draw.sample((0, 1), 2) for _ in range(PAIRS)):
        now, _ = day.train(now, LEAD_IN_S, threads[side])
        end, shared = day.train(now, BLOCK_S * math.exp(draw.gauss(0, NOISE)), threads[side])
        found[side].append((end - now, shared / (end - now)))
        now = end + 0.002
    return _row(others, threads[0], found[0], 100, 0), _row(others, threads[1], found[1], round(100 * ratio), 1)


TEMPLATES = {threads: rows.trial(contender=f"cpu@{threads}", pairs=PAIRS) for threads in (1, 2)}


def _row(others: Others, threads: int, blocks: list[tuple[float, float]], steps: int, place: int) -> Trial:
    return dataclasses.replace(
        TEMPLATES[threads],
        contender=f"cpu@{threads}" + ("+fused" if place else ""),
        threads=threads,
        block_steps=(steps,) * PAIRS,
        block_begin_ns=tuple(n * 10**11 for n in range(PAIRS)),
        block_end_ns=tuple(n * 10**11 + round(1e9 * took) for n, (took, _) in enumerate(blocks)),
        block_switches=tuple(
            0 if others.stolen else round(SWITCHES_PER_S * threads * share * took) for took, share in blocks
        ),
        block_steal=tuple(others.stolen * share for _, share in blocks),
    )


def missed(pair: tuple[Trial, Trial], ratio: float) -> float:
    """Logarithm of how far the interval lies beside the truth, whatever the verdict; 0 where it holds it."""
    low, high = median_interval(ratios(pair)) or (0.0, 0.0)
    return max(0.0, low - math.log(ratio), math.log(ratio) - high)


def ratios(pair: tuple[Trial, Trial]) -> list[float]:
    """Logarithm of the speedup of each pair of blocks."""
    return [math.log(base / other) for base, other in zip(*(row.step_s for row in pair), strict=True)]


COLUMNS = (
    "refused before",
    *(f"{mark}: {what}" for mark in ("no mark", "marked", "refused") for what in ("runs", "holds the truth")),
    *(f"misses by, 99 %: {disturbed} disturbed" for disturbed in ("none", "few", "many")),
    "wrong winner before",
    "wrong winner now",
)


def simulate(runs: int) -> None:
    for threads in ((1, 1), (1, 2)):
        print(f"\n{threads[0]} thread against {threads[1]}\n")
        print(f"| others | {' | '.join(COLUMNS)} |\n{'|---' * (1 + len(COLUMNS))}|")
        for others in WHO:
            print(f"| {others} | {' | '.join(_told(others, threads, runs))} |", flush=True)


def _told(others: Others, threads: tuple[int, int], runs: int) -> list[str]:
    by_mark: dict[str, list[float]] = {"quiet": [], "marked": [], "refused": []}
    by_company: dict[str, list[float]] = {"none": [], "few": [], "many": []}
    counts: Counter[str] = Counter()
    for seed in range(runs):
        ratio = RATIOS[seed % len(RATIOS)]
        pair = run(others, threads, ratio, seed)
        company, found, beside = interference.trial_pair_interference(*pair), speedup(*pair), missed(pair, ratio)
        by_mark["refused" if found.value is None else "marked" if company else "quiet"].append(beside)
        by_company["many" if company and company.worse.many else "few" if company else "none"].append(beside)
        mute = max(p90_to_median(row.step_s) for row in pair) > OLD_SPREAD
        counts["mute"] += mute
        counts["before"] += not mute and _wrong(pair, ratio)
        counts["now"] += found.value is not None and _wrong(pair, ratio)
    shares = [f"{counts['mute'] / runs:.0%}"]
    for entries in by_mark.values():
        shares += [f"{len(entries) / runs:.0%}", _share(entries)]
    shares += [f"{math.exp(_quantile(entries, 0.99)):.2f}" if entries else "" for entries in by_company.values()]
    return [*shares, f"{counts['before'] / runs:.1%}", f"{counts['now'] / runs:.1%}"]


def _share(entries: list[float]) -> str:
    return f"{statistics.mean(not one for one in entries):.1%}" if entries else ""


def _wrong(pair: tuple[Trial, Trial], ratio: float) -> bool:
    """Whether the side that is not faster on a quiet machine is named, by more than 10 %."""
    each = ratios(pair)
    value, (low, high) = statistics.median(each), median_interval(each) or (0.0, 0.0)
    named = 0 if low <= 0 <= high or abs(value) <= math.log(TIE) else math.copysign(1, value)
    return bool(named and named * math.log(ratio) <= 0)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[round(share * (len(values) - 1))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--programs", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--coming-and-going", action="store_true", help="let the programs rest between bursts")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--kept", type=Path, default=Path(os.devnull), help="lines that are done, to go on behind them")
    options = parser.parse_args()
    if not options.real:
        return simulate(options.runs)
    with options.kept.open("a+") as kept:
        return measured(options.programs, options.coming_and_going, kept, as_json=options.json)


def measured(programs: list[int], coming_and_going: bool, kept: TextIO, *, as_json: bool) -> None:
    """A line for each; those that a file has are not measured again, and it gets the others as they are done."""
    os.environ.update(WAITING_POLICY)
    kept.seek(0)
    done = {(line["what"], line["hidden size"], line["programs"]): line for line in map(json.loads, kept)}
    lines = []
    for size in SIZES:
        asked = {"one against two": one_against_two, "one against itself, 2 by construction": one_against_itself}
        for name, ask in asked.items():
            quiet = None
            for count in programs:
                if not (line := done.get((name, size, count))):
                    with company(count, coming_and_going):
                        pair = ask(size)
                    value = math.exp(statistics.median(ratios(pair)))
                    line = _line(name, size, count, pair, speedup(*pair), value, quiet or value)
                    print(json.dumps(line), file=kept, flush=True)
                quiet = quiet or line["speedup"]
                lines.append(line)
                if not as_json:
                    print("  ".join(f"{key} {entry}" for key, entry in lines[-1].items()), flush=True)
    if as_json:
        print(json.dumps(lines, indent=2))


def _line(
    name: str, size: int, count: int, pair: tuple[Trial, Trial], found: Verdict, value: float, quiet: float
) -> dict[str, Any]:
    seen = [interference.row_interference([row]) for row in pair]
    return {
        "what": name,
        "hidden size": size,
        "programs": count,
        "speedup": round(value, 3),
        "of the quiet one": round(value / quiet, 3),
        "switches a second and thread": [
            round(statistics.median(n / s / row.threads for n, s in zip(row.block_switches, row.block_s, strict=True)))
            for row in pair
        ],
        "displaced": [round(one.displaced, 2) for one in seen],
        "slow": [round(one.slow, 2) for one in seen],
        "fast": [round(one.fast, 2) for one in seen],
        "verdict": found.verdict,
        "said": found.busy or found.reason,
    }


def one_against_two(size: int) -> tuple[Trial, Trial]:
    one, two = _measure(size, (Contender(threads=1), Contender(threads=2)), PAIRS)
    return one, two


def one_against_itself(size: int) -> tuple[Trial, Trial]:
    """Blocks of one training in pairs, of each pair one at random counted as twice its steps."""
    (row,) = _measure(size, (Contender(threads=1),), 2 * PAIRS)
    draw = random.Random(size)
    first = [2 * pair + draw.choice((0, 1)) for pair in range(PAIRS)]
    second = [at ^ 1 for at in first]
    return _blocks(row, first, 1, "cpu@1"), _blocks(row, second, 2, "cpu@1+fused")


def _blocks(row: Trial, places: list[int], times: int, contender: str) -> Trial:
    names = ("block_begin_ns", "block_end_ns", "block_load", "block_steal", "block_switches")
    kept = {name: tuple(getattr(row, name)[at] for at in places) for name in names}
    steps = tuple(times * row.block_steps[at] for at in places)
    return dataclasses.replace(row, contender=contender, block_pair=tuple(range(PAIRS)), block_steps=steps, **kept)


def _measure(size: int, contenders: tuple[Contender, ...], pairs: int) -> list[Trial]:
    from core.measure.trial import Hooks, measure

    point = Point(dataset="digits", samples=1200, model="mlp", hidden_size=size, depth=2, batch_size=64, epochs=1)
    return measure(Experiment(point=point, contenders=contenders, budget_s=120, pairs=pairs), hooks=Hooks())


@contextmanager
def company(programs: int, coming_and_going: bool) -> Iterator[None]:
    """So many programs beside us; each has its own seed."""
    starts = multiprocessing.get_context("spawn")
    ended = starts.Event()
    work: Callable[..., None] = _come_and_go if coming_and_going else _never_rest
    others = [starts.Process(target=work, args=(ended, seed), daemon=True) for seed in range(programs)]
    for other in others:
        other.start()
    time.sleep(1.0)  # until all of them run
    try:
        yield
    finally:
        ended.set()
        for other in others:
            other.join()


def _never_rest(ended: Event, seed: int) -> None:
    while not ended.is_set():
        _spin(0.05)


def _come_and_go(ended: Event, seed: int) -> None:
    draw = random.Random(seed)
    while not ended.is_set():
        _spin(min(5.0, draw.expovariate(1.0)))
        ended.wait(min(5.0, draw.expovariate(1.0)))


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


if __name__ == "__main__":
    main()
