"""How often would a hand tuner who times every thread count train faster than with the count that we choose? Simulated.

    python -m tests.benchmarks.thread_choice [--each 100] [--seed 1]

The rule of `core.measure.preflight` on the processors of `tests.made_up_processors`: 2 to 128 cores, with and
without two threads on each, quotas, small, medium and large networks, readings that scatter by 2, 5 and 10 %, half of
the cases with a program or another guest at work in 15 % of the readings. Beside it the rule of before: one, half and
all, three times each. Nothing is measured: this tests the choice, not a machine.
"""

import argparse
import statistics
from collections.abc import Callable, Iterable, Sequence

from core.measure import preflight
from tests.made_up_processors import NOISES, PROCESSORS, SIZES, Case, cases

FASTER = 0.05
"""A hand tuner whose step is shorter by more than this would say so."""


def ours(case: Case) -> int:
    processor = case.readings.processor
    choice = preflight.choose_thread_times(
        preflight.list_thread_counts(processor.usable, processor.physical), case.readings
    )
    while True:
        try:
            next(choice)
        except StopIteration as end:
            return preflight.rank_thread_counts(end.value)[0]


def before(case: Case) -> int:
    """One, half and all, in turns, three times."""
    usable = case.readings.processor.usable
    counts = sorted({1, max(1, usable // 2), usable})
    rounds = [[case.readings(count) for count in counts] for _ in range(3)]
    typical = [statistics.median(times) for times in zip(*rounds, strict=True)]
    return counts[typical.index(min(typical))]


def told(each: int, seed: int, rule: Callable[[Case], int]) -> list[tuple[Case, bool]]:
    """Each case, and whether a hand tuner would be faster by more than `FASTER`."""
    return [(case, case.loss(rule(case)) > FASTER) for case in cases(each, seed)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--each", type=int, default=100, help="networks of each size on each processor, noise and burst"
    )
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    found = {rule: told(asked.each, asked.seed, rule) for rule in (ours, before)}
    print(f"| {len(found[ours]):,} cases | hand tuner faster | with one, half, all | looks | before | steps | before |")
    print("|---|---|---|---|---|---|---|")
    for name, takes in rows():
        print("|".join(("", f" {name} ", *figures(found, takes), "")))


def rows() -> Iterable[tuple[str, Callable[[Case], bool]]]:
    """What the table tells apart."""
    yield "all", lambda case: True
    for size in SIZES:
        yield f"{size} network", lambda case, size=size: case.size == size
    for noise in NOISES:
        yield f"readings scatter by {noise:.0%}", lambda case, noise=noise: case.readings.noise == noise
    yield "undisturbed", lambda case: not case.readings.bursts
    yield "others at work in 15 %", lambda case: bool(case.readings.bursts)
    for processor in PROCESSORS:
        yield processor.name, lambda case, processor=processor: case.readings.processor == processor


def figures(found: dict[Callable[[Case], int], list[tuple[Case, bool]]], takes: Callable[[Case], bool]) -> list[str]:
    """Share of cases lost, looks, and their cost in steps of the fastest count; of both rules."""
    chosen = {rule: [(case, lost) for case, lost in told if takes(case)] for rule, told in found.items()}
    lost = [f" {statistics.mean(lost for _, lost in chosen[rule]):.1%} " for rule in found]
    looks = [f" {statistics.mean(len(case.readings.looks) for case, _ in chosen[rule]):.1f} " for rule in found]
    steps = [f" {statistics.mean(case.cost for case, _ in chosen[rule]):.0f} " for rule in found]
    return [*lost, *looks, *steps]


if __name__ == "__main__":
    main()
