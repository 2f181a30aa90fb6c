"""A class on one host, from the first join to the revealed curve: how long it takes, and how fast pages are meanwhile.

    python -m tests.benchmarks.class_of_thirty [--students 30] [--sizes 12] [--look 10] [--seed 20261124]

Scripted students join over the websocket, predict, and measure the size that each is dealt, of twelve; they are real
trainings. The projector follows. Once half of the sizes are measured, the server and the measuring process are killed
once each. When every size is measured the teacher presses Reveal, and the clock stops when the projector shows the
curve. Everybody stays until nobody waits any more. Nothing that a student was shown as done may be lost.

Exit status 1 if anything is lost, doubled, damaged or left behind. Only processes that this program started are killed.
"""

import argparse
import asyncio
import collections
import contextlib
import dataclasses
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from core.classroom.question import ANYBODY, ClassQuestion
from core.question.presets import PRESETS
from core.question.sweep import Sweep
from tests.benchmarks import kills
from tests.benchmarks.kills_house import House
from tests.benchmarks.kills_pupils import Pupil, Visit
from tests.benchmarks.sessions import Refused

SEED = 20261124

SIZES = (5, 10, 20, 50, 100, 200, 300, 500, 800, 1_000, 1_500, 2_000)
SPREAD_S = 20.0
"""Within which the class opens its link."""

LOOK_S = 10.0
"""Seconds between two whole re-runs of the page that a student causes, in addition to its own updates."""

MOST_S = 1_800.0

SIZES_SHOWN = re.compile(r"(\d+) of (\d+) sizes measured by the class")


def question(sizes: int) -> ClassQuestion:
    """The tutorial on signal and background at the scale of a class, with twelve sizes or fewer."""
    asked = PRESETS["signal"].build_question("class", ANYBODY)
    assert isinstance(asked, Sweep)
    axis = dataclasses.replace(asked.axes[0], values=SIZES[:: len(SIZES) // sizes][:sizes])
    return ClassQuestion(title="Hidden size", question=dataclasses.replace(asked, axes=(axis,)), words="")


class Wall:
    """The teacher's browser, which shows the projector's view.

    Attributes:
        curve_s: seconds from the beginning until every size was on the revealed curve; None until then.
        answer: the curve in words.
    """

    def __init__(self, house: House) -> None:
        self.curve_s: float | None = None
        self.answer = ""
        self._house, self._began_s = house, time.monotonic()

    async def project(self) -> None:
        """Show the class until the whole curve is on the wall; come back whenever the server does."""
        while self.curve_s is None:
            visit = Visit(self._house.port, f"class={self._house.of.code}&view=projector&teach={self._house.secret}")
            try:
                await asyncio.wait_for(visit.open(), timeout=60)
                await self._follow(visit)
            except (Refused, TimeoutError, OSError):
                await asyncio.sleep(LOOK_S)
            finally:
                with contextlib.suppress(Exception):
                    await visit.close()

    async def _follow(self, visit: Visit) -> None:
        while self.curve_s is None:
            await asyncio.sleep(LOOK_S)
            await asyncio.wait_for(visit.rerun(), timeout=60)
            sizes = len(self._house.of.question.dealt_sizes)
            if len(measured_sizes(self._house)) == sizes and "Reveal" in visit.buttons:
                await asyncio.wait_for(visit.press(visit.buttons["Reveal"]), timeout=60)
            shown = next((found for text in visit.said if (found := SIZES_SHOWN.match(text))), None)
            if shown and shown[1] == shown[2] == str(sizes):
                self.curve_s = time.monotonic() - self._began_s
                print(f"{self.curve_s:.0f} s: the curve is revealed", file=sys.stderr, flush=True)
                self.answer = next((text[3:].replace("\\", "") for text in visit.said if text.startswith("## ")), "")


def measured_sizes(house: House) -> set[int]:
    """The sizes that somebody has measured."""
    done = (job for job in house.queue.jobs() if job.state == "finished" and job.experiment)
    return {job.experiment.point.hidden_size for job in done if job.experiment}


async def hold(
    folder: Path, *, students: int, sizes: int, seed: int, look_s: float = LOOK_S, trains: bool = True
) -> tuple[kills.Account, dict[str, str]]:
    """Let a class take place; returns what became of everything, and the figures."""
    house = House(folder, seed=seed, spread_s=SPREAD_S, look_s=look_s, question=question(sizes), trains=trains)
    house.last = True  # each student measures one size
    house.start()
    try:
        await house.healthy()
        wall = Wall(house)
        pupils = [Pupil(number, house.port, house.of.code, house) for number in range(students)]
        tasks = [asyncio.create_task(pupil.attend()) for pupil in pupils]
        tasks += [asyncio.create_task(wall.project()), asyncio.create_task(_kill_in_the_middle(house, sizes))]
        reports = asyncio.create_task(_report(house, pupils))
        began_s = time.monotonic()
        await asyncio.wait_for(asyncio.gather(*tasks), timeout=MOST_S)
        all_s = time.monotonic() - began_s
        reports.cancel()
        house.look()
    finally:
        house.stop()
    reruns_ms = sorted(1e3 * taken_s for pupil in pupils for taken_s in pupil.rerun_s)
    percentiles = statistics.quantiles(reruns_ms, n=100)
    figures = {
        "from the start to the revealed curve": f"{wall.curve_s:.0f} s",
        "until nobody waits": f"{all_s:.0f} s",
        "runs of the page": f"{len(reruns_ms):,}",
        "their median, p95, p99": " ms, ".join(f"{percentiles[place]:.0f}" for place in (49, 94, 98)) + " ms",
        "the curve": wall.answer,
    }
    return kills.account(house, pupils), figures


async def _report(house: House, pupils: list[Pupil]) -> None:
    """Print how far the class is, every 30 s."""
    began_s = time.monotonic()
    while True:
        await asyncio.sleep(30.0)
        joined, results = sum(bool(pupil.shown.link) for pupil in pupils), sum(pupil.over for pupil in pupils)
        sizes, jobs = len(measured_sizes(house)), collections.Counter(job.state for job in house.queue.jobs())
        shown = (
            f"{time.monotonic() - began_s:.0f} s: {joined} joined, {sizes} sizes measured, {results} gone, {dict(jobs)}"
        )
        print(shown, file=sys.stderr, flush=True)


async def _kill_in_the_middle(house: House, sizes: int) -> None:
    """Kill the server and the measuring process once, when half of what is going to be measured is."""
    while len(measured_sizes(house)) < sizes // 2:
        house.look()
        await asyncio.sleep(0.2)
    await house.kill("server")
    await house.healthy()
    while not await house.kill("worker"):
        await asyncio.sleep(0.1)  # nobody measures just now


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=30, help="at least as many as sizes, or the curve has gaps")
    parser.add_argument("--sizes", type=int, default=len(SIZES), choices=(2, 3, 4, 6, 12))
    parser.add_argument("--look", type=float, default=LOOK_S, help="seconds between two re-runs that a student causes")
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="crossover-class-"))
    held = hold(folder, students=asked.students, sizes=asked.sizes, seed=asked.seed, look_s=asked.look)
    found, figures = asyncio.run(held)
    print("| what | figure |\n|---|---|")
    for name, figure in (figures | {name: f"{count:,}" for name, count in found.figures.items()}).items():
        print(f"| {name} | {figure} |")
    for fault in found.faults:
        print(fault)
    print(f"Everything is in {folder}.", file=sys.stderr)
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
