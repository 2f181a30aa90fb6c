"""Run fuzzers: `python -m tests.fuzz [NAME ...] [--count N] [--seed S] [--case N] [--list]`.

Each case follows from the seed, the fuzzer's name and its number alone. What nobody may survive is tried in a namespace
of processes of its own, where the system has such and lets us: whatever is signalled there is ours. Exit status 1 if
any case did what it must not.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz import apart

WIDTHS = (12, 8, 8, 8, 9, 24, 9, 24, 9)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for."""
    from tests.fuzz import campaign
    from tests.fuzz.fuzzers import FUZZERS

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FUZZERS)}; all of them unless given")
    parser.add_argument("--count", type=int, help="cases of each; as many as a whole run has unless given")
    parser.add_argument("--seed", type=int, default=campaign.SEED)
    parser.add_argument("--case", type=int, help="only the case of this number")
    parser.add_argument("--keep", type=Path, help="folder for inputs of cases that fail")
    parser.add_argument("--list", action="store_true", help="say what there is")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.names) - set(FUZZERS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    if asked.list:
        for fuzzer in FUZZERS.values():
            print(f"{fuzzer.name:12} {fuzzer.total:>6,}  {fuzzer.about}")
        return 0
    keep = asked.keep or Path(tempfile.mkdtemp(prefix="crossover-fuzz-"))
    return _run([FUZZERS[name] for name in asked.names or FUZZERS], asked, keep)


def _run(fuzzers, asked: argparse.Namespace, keep: Path) -> int:
    from tests.fuzz import campaign

    print("signals: recorded, none is sent;", apart.said())
    _line("fuzzer", "cases", "taken", "refused", "slowest", "in", "memory", "in", "failures")
    failures = []
    for fuzzer in fuzzers:
        count = fuzzer.total if asked.count is None else asked.count
        numbers = range(count) if asked.case is None else range(asked.case, asked.case + 1)
        report = campaign.run(fuzzer, numbers, seed=asked.seed, keep=keep, on_case=_progress(fuzzer.name, len(numbers)))
        failures += report.failures
        slowest, largest = report.slowest, report.largest
        cost = (f"{1e3 * slowest.cpu_s:.0f} ms", slowest.part, f"{largest.grown_bytes / 2**20:.0f} MiB", largest.part)
        _line(fuzzer.name, report.cases, report.taken, report.refused, *cost, len(report.failures))
        for failure in report.failures[:20]:
            last = failure.why.strip().splitlines()[-1]
            print(f"  case {failure.number} of seed {asked.seed}: {failure.what}: {last[:300]}\n    {failure.file}")
    return 1 if failures else 0


def _progress(name: str, total: int):
    def show(report) -> None:
        if sys.stderr.isatty() or report.cases % 100 == 0:
            print(f"{name}: {report.cases:,} of {total:,}", end="\r", file=sys.stderr, flush=True)

    return show


def _line(*cells: object) -> None:
    shown = [f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells]
    print("  ".join(f"{text:>{width}}" for text, width in zip(shown, WIDTHS, strict=True)), flush=True)


if __name__ == "__main__":
    apart.go()
    sys.exit(main())
