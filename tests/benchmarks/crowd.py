"""A class on one server: many sessions browse and filter while a measurement runs. How long do their pages take?

    python -m tests.benchmarks.crowd [--sessions 100] [--seconds 120] [--think 2]

Each session speaks Streamlit's own websocket protocol. It opens a page, then again and again thinks for a while (drawn
from an exponential distribution) and moves a slider, opens what is folded away, changes a filter of the gallery, or
goes to another page. Timed is the server: from sending what the visitor did to the end of the script run, without a
browser's drawing.

The server has the settings of a host (crossover.hosted.toml). What is measured meanwhile is T1 with 8 layers on one
thread, over and over; before and after the crowd it is measured alone.

Exit status 1 if a page showed an exception.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil

from core.answer.speedup import step_time
from core.files.project import PROJECT
from core.jobs import client
from core.jobs.queue import Queue
from core.question.experiment import Contender, Experiment
from core.question.presets import preset
from core.results.store import Store
from tests.benchmarks.sessions import Session, server

PAGES = ("compare", "crossover", "gallery", "tutorials", "lessons", "devices")
"""Addresses; the gallery and the first page are visited more often than the others."""

WEIGHTS = (3, 1, 4, 1, 1, 1)

OPENING_S = 10.0
"""A class does not open its link within one second; sessions begin spread over so long."""

ALONE = 3
"""Measurements without a crowd, before and after it each."""

EXPERIMENT = Experiment(point=preset("disc").point, contenders=(Contender(threads=1),), budget_s=60, pairs=40)


class Crowd:
    """Sessions that browse, and what they waited for.

    Attributes:
        opened: seconds of each first run.
        waited: seconds of each later run.
        faults: what pages showed as exceptions.
    """

    def __init__(self, port: int, think_s: float) -> None:
        self.opened: list[float] = []
        self.waited: list[float] = []
        self.faults: list[str] = []
        self._port, self._think_s = port, think_s

    async def visit(self, number: int, until: float) -> None:
        """One visitor from the opened link to the end."""
        draw = random.Random(number)
        await asyncio.sleep(draw.uniform(0, OPENING_S))
        session = Session(self._port, page=draw.choices(PAGES, WEIGHTS)[0])
        begin = time.perf_counter()
        await session.open()
        self.opened.append(time.perf_counter() - begin)
        while time.monotonic() < until:
            await asyncio.sleep(draw.expovariate(1 / self._think_s))
            self.waited.append(await self._act(session, draw)())
        self.faults += session.faults
        await session.close()

    def _act(self, session: Session, draw: random.Random) -> Callable[[], Awaitable[float]]:
        """What a visitor does next."""
        acts: list[Callable[[], Awaitable[float]]] = [lambda: session.go(draw.choices(PAGES, WEIGHTS)[0])]
        for label, slider in session.sliders.items():
            values = sorted(draw.randint(int(slider.low), int(slider.high)) for _ in range(slider.handles))
            acts.append(lambda label=label, values=values: session.slide(label, *values))
        for label, (_, options) in session.choices.items():
            some = draw.sample(options, min(len(options), draw.randint(0, 2)))
            acts.append(lambda label=label, some=some: session.choose(label, some))
        for label in session.parts:
            acts.append(lambda label=label: session.unfold(label))
        return draw.choice(acts)


async def measured_s(queue: Queue, store: Store) -> float:
    """Median step of one measurement."""
    job = queue.submit(EXPERIMENT, store, fresh=True)
    await asyncio.to_thread(client.ensure_worker, queue)
    while (await asyncio.to_thread(client.watch, queue, job.id)).active:
        await asyncio.sleep(0.5)
    (trial,) = client.load_job_rows(queue, queue.job(job.id))
    return step_time(trial).median_s or float("nan")


def cpu_s() -> dict[str, float]:
    """Seconds of processor time that the server and the visitors have used."""
    this = psutil.Process()
    (app,) = (child for child in this.children() if "streamlit" in " ".join(child.cmdline()))
    return {name: sum(of.cpu_times()[:2]) for name, of in (("server", app), ("visitors", this))}


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--think", type=float, default=2.0, help="mean seconds between what a visitor does")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    queue, store = Queue(folder / "jobs"), Store(folder / "results")
    host = PROJECT / "crossover.hosted.toml"
    with server(
        CROSSOVER_JOBS=str(queue.folder), CROSSOVER_RESULTS=str(store.folder), CROSSOVER_POLICY=str(host)
    ) as port:
        first = Session(port)
        await first.open()  # the charts' imports and the worker's start are another benchmark's
        await first.close()
        await measured_s(queue, store)
        alone = [await measured_s(queue, store) for _ in range(ALONE)]
        crowd, until = Crowd(port, options.think), time.monotonic() + options.seconds
        used = cpu_s()
        visitors = [asyncio.create_task(crowd.visit(number, until)) for number in range(options.sessions)]
        among = []
        while time.monotonic() < until - 10:
            among.append(await measured_s(queue, store))
            print(f"{len(crowd.waited)} runs so far, a step takes {1e6 * among[-1]:.0f} µs", file=sys.stderr)
        await asyncio.gather(*visitors)
        cores = {name: round((now - used[name]) / options.seconds, 2) for name, now in cpu_s().items()}
        await asyncio.sleep(2)
        alone += [await measured_s(queue, store) for _ in range(ALONE)]
    queue.worker_file.dismiss()
    print(json.dumps(_summary(options, crowd, alone, among) | {"cores_used": cores}, indent=2))
    return 1 if crowd.faults else 0


def _summary(options: argparse.Namespace, crowd: Crowd, alone: list[float], among: list[float]) -> dict[str, object]:
    return {
        "sessions": options.sessions,
        "think_s": options.think,
        "opened_ms": _percentiles(crowd.opened),
        "rerun_ms": _percentiles(crowd.waited),
        "reruns": len(crowd.waited),
        "faults": sorted(set(crowd.faults)),
        "step_alone_us": [round(1e6 * value) for value in alone],
        "step_among_them_us": [round(1e6 * value) for value in among],
        "ratio_of_medians": round(statistics.median(among) / statistics.median(alone), 3),
    }


def _percentiles(seconds: list[float]) -> dict[str, int]:
    ordered = sorted(seconds)
    at = {"p50": 0.5, "p95": 0.95, "most": 1.0}
    return {name: round(1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]) for name, share in at.items()}


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
