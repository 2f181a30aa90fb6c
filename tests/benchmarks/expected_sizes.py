"""Does what is expected at a size hold what was measured there? Points of the gallery's studies, held back one by one.

    python -m tests.benchmarks.expected_sizes [--widths]

Every measured size of every study between its first and its last is left out once; the others say what to expect
there, and that is set beside what was measured. Beside it the band of the curve alone, without what a measurement adds
of its own. Reads stored rows and times nothing, so it gives the same on every machine.
"""

import argparse
import math

import numpy as np

from core.answer.crossover import locate_crossover
from core.answer.expectations import ExpectedSpeedup, expect_speedup
from core.answer.judgement import Evidence
from core.answer.study import studies
from core.results.store import GALLERY, Store


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--widths", action="store_true", help="print every point")
    shown = parser.parse_args().widths
    said = held = curve_alone = silent = 0
    for study in studies(Store(GALLERY).trials()):
        timed = [one for one in study.evidence("steady") if not one.obstacle]
        print(f"{study.axis}, {study.challenger} against {study.baseline}: {len(timed)} sizes")
        for left_out in timed[1:-1]:
            told, measured = expect_speedup(timed, left_out.size, exclude=left_out.size), _measured(left_out)
            if told is None:
                silent += 1
                continue
            said += 1
            held += told.low <= measured <= told.high
            curve_alone += _within_curve(timed, left_out, measured)
            if shown:
                print(_line(told, measured))
    print(f"{held} of {said} intervals hold what was measured; nothing was said at {silent} points")
    print(f"{curve_alone} of {said} bands of the curve alone do")


def _measured(entry: Evidence) -> float:
    return math.exp(float(np.median(np.log(entry.baseline_s) - np.log(entry.challenger_s))))


def _within_curve(timed: list[Evidence], left_out: Evidence, measured: float) -> bool:
    rest = [one for one in timed if one is not left_out]
    band = locate_crossover(rest, axis="size", baseline="cpu", challenger="gpu").band
    low, high = (np.interp(left_out.size, band.sizes, ends) for ends in (band.low, band.high))
    return bool(low <= measured <= high)


def _line(told: ExpectedSpeedup, measured: float) -> str:
    mark = "" if told.low <= measured <= told.high else "  not held"
    return f"  {told.size:8.6g}: {told.figures}, measured {measured:.3g}×{mark}"


if __name__ == "__main__":
    main()
