"""How often is the wrong one named, or one where nobody is faster, when a run looks again and again whether to end?

    python -m tests.benchmarks.early_end [--runs 4000] [--seed 1] [--json]

Runs of two contenders are made up: logarithms of the ratios of their pairs scatter around a true one, and each takes
over a part of the last one's deviation, as where something goes on for longer than a pair. Five ways to end a run:
after 60 pairs whatever they say; by the 95 % interval at 20, 30, 45 and 60 pairs, as version 0.1.0 did; by the same
interval after every pair from 10 on, for comparison; once the wide interval lies beyond a tie altogether, or within
it, which our rule asked for before; and by the rule of `core.answer.speedup`, whose own function is asked. The
verdict is that of the 95 % interval at the end, as it is told. Nothing here is measured.
"""

import argparse
import dataclasses
import json
import math
import random
import statistics
from collections.abc import Callable, Sequence

from core.answer import speedup
from core.answer.statistics import TIE, median_interval
from core.question.defaults import LOOKS

MOST = LOOKS[-1]
Ends = Callable[[Sequence[float]], bool]


def ratios(rng: random.Random, truth: float, sd: float, kept: float) -> list[float]:
    """Logarithms of the ratios of all pairs of a run; `kept` is their correlation with the next."""
    deviation, found = rng.gauss(0, sd), []
    for _ in range(MOST):
        found.append(math.log(truth) + deviation)
        deviation = kept * deviation + math.sqrt(1 - kept**2) * rng.gauss(0, sd)
    return found


def verdict(values: Sequence[float]) -> int:
    """Who is named the faster one: 1 the challenger, -1 the baseline, 0 nobody."""
    low, high = median_interval(values) or (0.0, 0.0)
    middle = statistics.median(values)
    if low <= 0 <= high or abs(middle) <= math.log(TIE):
        return 0
    return 1 if middle > 0 else -1


def usual(values: Sequence[float]) -> bool:
    """Whether the 95 % interval says who is faster, or that nobody is by enough to matter."""
    low, high = median_interval(values) or (0.0, 0.0)
    return not low <= 0 <= high or (low >= -math.log(TIE) and high <= math.log(TIE))


def all_beyond(values: Sequence[float]) -> bool:
    """Whether the wide interval lies beyond a tie altogether, or within one."""
    interval, tie = median_interval(values, speedup.LEVEL / 2), math.log(TIE)
    return interval is not None and (
        interval[0] > tie or interval[1] < -tie or -tie <= interval[0] <= interval[1] <= tie
    )


def ours(values: Sequence[float]) -> bool:
    """Whether our rule ends a run of these pairs."""
    return speedup.is_beyond_doubt(values)


RULES: dict[str, tuple[Sequence[int], Ends]] = {
    "60 pairs": ((), usual),
    "95 % at 20, 30, 45": ((20, 30, 45), usual),
    "95 % after every pair": (range(10, MOST), usual),
    "all beyond a tie": (LOOKS[:-1], all_beyond),
    "our rule": (LOOKS[:-1], ours),
}


@dataclasses.dataclass(frozen=True)
class Cell:
    """Of many runs: shares that named somebody wrongly and rightly, and whose interval held the truth; their pairs."""

    wrong: float
    right: float
    held: float
    pairs: float


def cell(rule: str, truth: float, sd: float, kept: float, *, runs: int, seed: int) -> Cell:
    """Many runs of one kind, ended by one rule."""
    rng, (looks, ends) = random.Random(seed), RULES[rule]
    told, pairs, held = [], [], []
    for _ in range(runs):
        values = ratios(rng, truth, sd, kept)
        count = next((look for look in looks if ends(values[:look])), MOST)
        low, high = median_interval(values[:count]) or (0.0, 0.0)
        told.append(verdict(values[:count]))
        pairs.append(count)
        held.append(low <= math.log(truth) <= high)
    side = 0 if truth == 1 else 1
    wrong = sum(name not in (0, side) for name in told) / runs
    return Cell(wrong, sum(name == side for name in told) / runs, sum(held) / runs, statistics.mean(pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    if not options.json:
        print("| truth | scatter | kept | ended by | wrong | right | interval holds | pairs |\n" + "|---" * 8 + "|")
    for truth in (1.0, 1.3, 1.67):
        for sd in (0.05, 0.1, 0.15, 0.3):
            for kept in (0.0, 0.3, 0.6):
                for rule in RULES:
                    found = cell(rule, truth, sd, kept, runs=options.runs, seed=options.seed)
                    results.append({"truth": truth, "sd": sd, "kept": kept, "rule": rule, **dataclasses.asdict(found)})
                    if not options.json:
                        shares = " | ".join(f"{100 * share:.1f} %" for share in (found.wrong, found.right, found.held))
                        print(
                            f"| {truth:g} | {100 * sd:g} % | {kept:g} | {rule} | {shares} | {found.pairs:.1f} |",
                            flush=True,
                        )
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
