"""How often does the interval of a run hold the truth, where rounds differ and a run ends as soon as it is certain?

    python -m tests.benchmarks.round_coverage [--runs 1000] [--noise 0.03 0.07] [--run-shift 0.2]

Runs are made up: logarithms of the ratios of pairs scatter around the true one, and each round shifts all of its own.
With `--run-shift`, each run shifts all of its rounds, too, as where a host moves the processors of a virtual machine.
They end at the looks of a real run, by the rule of `core.answer.speedup`. Each machine either never repeated a question
or repeated some, whose runs are made up alike. Widths are those of the interval over the one of the blocks alone, which
leaves rounds out. Nothing here is measured.
"""

import argparse
import math
import random
import statistics
from dataclasses import dataclass

from core.answer.statistics import (
    TIE,
    UNKNOWN_REPEATABILITY,
    Repeatability,
    estimate_repeatability,
    median_interval,
    rounds_interval,
)
from core.answer.verdict import closeness_reason
from core.question.presets import LOOKS, ROUND_PAIRS

SHIFTS = (0.0, 0.05, 0.10, 0.15)
"""By how much a round shifts its pairs (standard deviation of the logarithm)."""

SPEEDUPS = (1.0, 1.16, 1.5, 3.3)

REPEATED = 7
"""Runs of the question that a machine was asked again and again."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What some made-up runs said.

    Attributes:
        held: share of the intervals that hold the truth.
        pairs: mean number of pairs.
        width: median width over that of the blocks alone.
        wrong: share that names a winner of equal devices, or the slower device.
    """

    held: float
    pairs: float
    width: float
    wrong: float


def make_up_run(
    rng: random.Random, truth: float, noise: float, shift: float, pairs: int, run_shift: float = 0.0
) -> tuple[list[float], list[int]]:
    """Logarithms of the ratios of the pairs of a run, and the round of each."""
    values, rounds = [], [pair // ROUND_PAIRS for pair in range(pairs)]
    shifts = [rng.gauss(0, shift) for _ in set(rounds)]
    middle = math.log(truth) + (rng.gauss(0, run_shift) if run_shift else 0.0)
    values = [middle + shifts[number] + rng.gauss(0, noise) for number in rounds]
    return values, rounds


def make_up_machine(rng: random.Random, noise: float, shift: float, run_shift: float = 0.0) -> Repeatability:
    """What a machine knows that was asked one question again and again."""
    runs = [make_up_run(rng, 1.5, noise, shift, LOOKS[1], run_shift) for _ in range(REPEATED)]
    return estimate_repeatability([runs])


def end_run(values: list[float], rounds: list[int], machine: Repeatability) -> tuple[int, tuple[float, float]]:
    """After how many pairs a run ends, and its interval then."""
    for look in LOOKS:
        pairs, numbers = values[:look], rounds[:look]
        low, high = rounds_interval(pairs, numbers, machine)
        is_equal = max(-low, high) <= math.log(TIE)
        if look == LOOKS[-1] or is_equal or not closeness_reason(statistics.median(pairs), low, high):
            break
    return look, (low, high)


def blocks_width(values: list[float]) -> float:
    """Width of the interval of blocks alone, which leaves rounds out."""
    low, high = median_interval(values) or (0.0, 0.0)
    return high - low


def simulate(
    truth: float, noise: float, shift: float, *, runs: int, repeated: bool, run_shift: float = 0.0, seed: int = 1
) -> Coverage:
    """Make up runs, and compare what they say with the truth."""
    rng, held, wrong, pairs, widths = random.Random(seed), 0, 0, [], []
    for _ in range(runs):
        machine = make_up_machine(rng, noise, shift, run_shift) if repeated else UNKNOWN_REPEATABILITY
        values, rounds = make_up_run(rng, truth, noise, shift, LOOKS[-1], run_shift)
        look, (low, high) = end_run(values, rounds, machine)
        held += low <= math.log(truth) <= high
        pairs.append(look)
        middle = statistics.median(values[:look])
        wrong += not closeness_reason(middle, low, high) and middle * math.log(truth) <= 0
        widths.append((high - low) / blocks_width(values[:look]))
    return Coverage(held=held / runs, pairs=statistics.mean(pairs), width=statistics.median(widths), wrong=wrong / runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.03, 0.07])
    parser.add_argument("--run-shift", type=float, default=0.0)
    options = parser.parse_args()
    print(
        "| machine | noise | speedup |",
        " | ".join(f"rounds {100 * shift:.0f} %: held, pairs, width, wrong" for shift in SHIFTS),
        "|",
    )
    print("|---|---|---|" + "---|" * len(SHIFTS))
    for repeated in (False, True):
        for noise in options.noise:
            for truth in SPEEDUPS:
                told = {"runs": options.runs, "repeated": repeated, "run_shift": options.run_shift}
                found = [simulate(truth, noise, shift, **told) for shift in SHIFTS]
                cells = [
                    f"{100 * one.held:.1f} %, {one.pairs:.0f}, {one.width:.1f}×, {100 * one.wrong:.1f} %"
                    for one in found
                ]
                name = f"{REPEATED} runs before" if repeated else "unknown"
                print(f"| {name} | {100 * noise:.0f} % | {truth:g}× | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
