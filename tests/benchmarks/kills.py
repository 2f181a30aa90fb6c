"""Kills of the server and of the measuring process while a class takes part: is anything lost, or there twice?

    python -m tests.benchmarks.kills [--students 10] [--server 20] [--worker 20] [--seed 20261122]

Scripted students come to a real server over the websocket: they join, expect, measure, and measure again, until all
kills (SIGKILL, at random moments) are over, and then once more. The server is started anew at once; the measuring
process by the app itself, as soon as anybody looks. What measures is `tests.integration.scripted_worker`, so nothing is
trained. Whatever a student was shown as done has to be there at the end, once; what was ever seen in a store too.

Exit status 1 if anything is lost, doubled, damaged or left behind. Only processes that this program started are killed.
"""

import argparse
import asyncio
import collections
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.classroom.classes import Class, Classes, Student
from core.classroom.question import NEVER, WINNERS
from core.classroom.students import fold_name
from core.errors import CrossoverError
from core.files import documents
from core.results.store import Store
from tests.benchmarks.kills_house import LOOK_EVERY_S, House
from tests.benchmarks.kills_pupils import Pupil
from tests.integration import scripted_worker

SEED = 20261122

BETWEEN_S = 2.0
"""Mean seconds from one kill to the next; short enough to hit who is just starting, too."""

PATIENCE_S = 1_800.0
"""How long everybody has to come to an end after the last kill."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """What became of everything.

    Attributes:
        figures: what happened, counted.
        faults: what must not be; empty if all is well.
    """

    figures: dict[str, int]
    faults: tuple[str, ...]


async def campaign(
    folder: Path, *, students: int, server: int, worker: int, seed: int = SEED, look_s: float = LOOK_EVERY_S
) -> Account:
    """Let a class take part while both are killed, and look at what is there afterwards."""
    house = House(folder, seed=seed, spread_s=BETWEEN_S * (server + worker) / 3, look_s=look_s)
    house.start()
    try:
        await house.healthy()
        pupils = [Pupil(number, house.port, house.of.code, house) for number in range(students)]
        attending = [asyncio.create_task(pupil.attend()) for pupil in pupils]
        await _kill_all(house, server=server, worker=worker)
        await asyncio.wait_for(asyncio.gather(*attending), timeout=PATIENCE_S)
        house.look()
    finally:
        house.stop()
    return account(house, pupils)


async def _kill_all(house: House, *, server: int, worker: int) -> None:
    """Kill both as often as asked, at random moments."""
    draw = random.Random(house.seed)
    order = ["server"] * server + ["worker"] * worker
    draw.shuffle(order)
    for whom in order:
        until = time.monotonic() + draw.expovariate(1 / BETWEEN_S)
        while time.monotonic() < until:
            house.look()
            await asyncio.sleep(LOOK_EVERY_S)
        while not await house.kill(whom):
            await asyncio.sleep(LOOK_EVERY_S)  # nobody serves just now
    house.last = True


def account(house: House, pupils: list[Pupil]) -> Account:
    """Look at what is there, once nobody writes any more."""
    students = {student.id: student for student in house.classes.students(house.of)}
    faults = [f"page: {fault}" for pupil in pupils for fault in pupil.faults]
    faults += _damages(house.classes, list(students.values()))
    for pupil in pupils:
        faults += _lost(pupil, house, students)
    doubled = [name for student in students for name, count in house.counted(student).items() if count > 1]
    faults += [f"the row {name} is there twice" for name in doubled]
    alike = collections.Counter(fold_name(student.nickname) for student in students.values())
    faults += [f"{nickname!r} is in the class twice" for nickname, count in alike.items() if count > 1]
    jobs = collections.Counter(job.state for job in house.queue.jobs())
    faults += _unsaved(house)
    left, swept = _left_behind(house)
    faults += [f"left behind: {path}" for path in swept]
    shown = [pupil.shown for pupil in pupils]
    figures = {
        "server killed": house.killed["server"],
        "worker killed": house.killed["worker"],
        "students": len(pupils),
        "joins shown": sum(bool(one.link) for one in shown),
        "joins stored": len(students),
        "predictions shown": sum(one.expected is not None for one in shown),
        "results shown": sum(one.results for one in shown),
        "jobs finished": jobs["finished"],
        "jobs cut off": jobs["crashed"],
        "jobs otherwise": sum(jobs.values()) - jobs["finished"] - jobs["crashed"],
        "rows": sum(len(house.counted(student)) for student in students),
        "temporary files of the dead": left,
        "lost, doubled, damaged or left": len(faults),
    }
    return Account(figures=figures, faults=tuple(faults))


def _damages(classes: Classes, students: list[Student]) -> Iterator[str]:
    yield from classes.damaged().values()
    for student in students:
        if student.fault:
            yield f"{student.nickname}: {student.fault}"


def _lost(pupil: Pupil, house: House, students: dict[str, Student]) -> Iterator[str]:
    """What somebody was shown as done and is not there."""
    shown = pupil.shown
    student_id, _, token = shown.link.partition(".")
    if not shown.link or student_id not in students:
        yield f"{shown.nickname or 'a pupil'} has joined and is not in the class"
        return
    try:
        known = house.classes.recognise(house.of, student_id, token)
    except CrossoverError as error:
        yield f"{shown.nickname} is not recognised: {error}"
        return
    if known.nickname != shown.nickname:
        yield f"{shown.nickname} is called {known.nickname}"
    if shown.expected is not None and shown.expected != in_words(house.of, known):
        yield f"{shown.nickname} expected {shown.expected}, and {known.prediction} is kept"
    there = house.rows_of(student_id)
    if missing := (shown.rows | house.seen.get(student_id, set())) - there:
        yield f"{shown.nickname} lost the rows {sorted(missing)}"


def in_words(of: Class, student: Student) -> tuple[str, str] | None:
    """What a student expects as the page words it."""
    from pages.classroom import view

    said = student.prediction
    if said is None:
        return None
    place = said.place if said.place is not None else NEVER
    return WINNERS[said.winner], view.place_label(of, place)


def _unsaved(house: House) -> Iterator[str]:
    """Jobs that go on although nobody measures, and rows that a job says it has and no store does."""
    stored = {name for student in house.classes.students(house.of) for name in house.rows_of(student.id)}
    for job in house.queue.jobs():
        if job.active or job.damage:
            yield f"the job {job.id} is {job.state}{job.damage and ' and damaged'}"
        if missing := set(job.trial_ids) - stored:
            yield f"the job {job.id} has rows that are in no store: {sorted(missing)}"


def _left_behind(house: House) -> tuple[int, list[Path]]:
    """How much the dead left, and what of it is still there when it is old and the app has gone on."""
    left = [path for path in house.folder.rglob(".*") if path.parent != house.folder]
    old = time.time() - 2 * documents.ABANDONED_S
    for path in left:
        os.utime(path, (old, old), follow_symlinks=False)
    house.classes.prune()
    for student in house.classes.students(house.of):
        house.classes.store(house.of, student).check_writable()
    asked = house.queue.submit(scripted_worker.experiment(scripted_worker.QUICK), Store(house.folder / "results"))
    house.queue.request_stop(asked.id)
    return len(left), [path for path in left if path.exists()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=10)
    parser.add_argument("--server", type=int, default=20, help="kills of the server")
    parser.add_argument("--worker", type=int, default=20, help="kills of the measuring process")
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="crossover-kills-"))
    numbers = {"students": asked.students, "server": asked.server, "worker": asked.worker, "seed": asked.seed}
    found = asyncio.run(campaign(folder, **numbers))
    print("| what | how many |\n|---|---|")
    for name, count in found.figures.items():
        print(f"| {name} | {count:,} |")
    for fault in found.faults:
        print(fault)
    print(f"Everything is in {folder}.", file=sys.stderr)
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
