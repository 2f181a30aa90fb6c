"""Many sessions on one server: does anything fail, and does the memory come back?

    python -m tests.benchmarks.endurance [--sessions 300] [--seconds 120] [--reruns 200] [--descriptors 4096]
    python -m tests.benchmarks.endurance --short [--app FOLDER]

Every session opens a page of its own and stays; together they have so many runs a minute. Then all of them leave, the
time passes for which Streamlit keeps who has left, and one more visitor comes. Counted are refusals, lost connections
and exceptions on pages; looked at are the server's memory and its descriptors. No time is measured.

`--short` asks one thing, in less than four minutes: does a server with 100 visitors, who look at everything for 20 s,
stay below 600 MB, and does it give back what they took? With `--app` it is the app of another checkout.

Exit status 1 if anything failed, or if 100 take more than 600 MB.
"""

import argparse
import asyncio
import collections
import json
import random
import re
import sys
import tempfile
import time
from pathlib import Path

import psutil

from core.files.project import PROJECT
from core.jobs.queue import Queue
from tests.benchmarks.sessions import Refused, Session, server

PAGES = ("", "compare", "crossover", "gallery", "tutorials", "lessons", "devices")

KEPT_S = 90.0
"""How long Streamlit keeps the state of who has left."""

TIDIED_S = 90.0
"""Beyond that, until the server has surely tidied up."""

SHORT = {"sessions": 100, "seconds": 20.0}
"""What stands for the options of these names with `--short`."""

MOST_MB = 600
"""Memory of a server that has 100 visitors."""

AT_ONCE = 8
"""Sessions that are opened at the same moment."""


class House:
    """The sessions that were let in.

    Attributes:
        inside: those that hold.
        troubles: what went wrong, counted.
    """

    def __init__(self, port: int) -> None:
        self.inside: list[Session] = []
        self.troubles: collections.Counter[str] = collections.Counter()
        self._port = port
        self._door = asyncio.Semaphore(AT_ONCE)

    async def enter(self, number: int) -> None:
        """One visitor comes."""
        session = Session(self._port, page=PAGES[number % len(PAGES)])
        async with self._door:
            try:
                await asyncio.wait_for(session.open(), timeout=120)
                self.inside.append(session)
            except Refused as error:
                self.troubles[f"refused: {error}"] += 1
            except TimeoutError:
                self.troubles["never drawn"] += 1

    async def browse(self, runs_a_minute: float, seconds: float) -> None:
        """Every now and then one of them moves a slider, or has the page drawn anew."""
        draw, until, acts = random.Random(7), time.monotonic() + seconds, set()
        while time.monotonic() < until:
            await asyncio.sleep(draw.expovariate(runs_a_minute / 60))
            session = draw.choice(self.inside)
            acts.add(task := asyncio.create_task(self._act(session, draw)))
            task.add_done_callback(acts.discard)
        await asyncio.gather(*acts)

    async def _act(self, session: Session, draw: random.Random) -> None:
        try:
            if session.sliders and draw.random() < 0.7:
                label, slider = draw.choice(sorted(session.sliders.items()))
                values = sorted(draw.randint(int(slider.low), int(slider.high)) for _ in range(slider.handles))
                await asyncio.wait_for(session.slide(label, *values), timeout=60)
            else:
                await asyncio.wait_for(session.go(draw.choice(PAGES)), timeout=60)
        except (Refused, TimeoutError) as error:
            self.troubles[f"lost: {type(error).__name__} {error}"] += 1

    async def leave(self) -> None:
        """All of them leave."""
        for session in self.inside:
            self.troubles.update(f"on a page: {fault}" for fault in session.faults)
            if session.lost is not None:
                self.troubles[f"lost: {session.lost}"] += 1
            await session.close()


def looked_at(app: psutil.Process) -> dict[str, int]:
    """Memory in MB and descriptors of the server."""
    return {"mb": round(app.memory_info().rss / 1e6), "descriptors": app.num_fds(), "threads": app.num_threads()}


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--reruns", type=float, default=200, help="runs a minute, of all together")
    parser.add_argument("--descriptors", type=int, default=4096)
    parser.add_argument("--short", action="store_true", help="100 sessions and no more visitors afterwards")
    parser.add_argument("--app", type=Path, default=PROJECT, help="another checkout of it, to set beside this one")
    options = parser.parse_args()
    if options.short:
        vars(options).update(SHORT)
    folder = Path(tempfile.mkdtemp())
    queue, log = Queue(folder / "jobs"), folder / "server.log"
    host = {"CROSSOVER_RESULTS": str(folder / "results"), "CROSSOVER_POLICY": str(PROJECT / "crossover.hosted.toml")}
    folders = {"CROSSOVER_JOBS": str(queue.folder), **host}
    with server(app=options.app.absolute(), descriptors=options.descriptors, log=log, **folders) as port:
        (app,) = (child for child in psutil.Process().children() if "streamlit" in " ".join(child.cmdline()))
        seen, troubles = await _stay(port, app, options)
    queue.worker_file.dismiss()
    printed = log.read_text(errors="replace")
    complaints = collections.Counter(re.findall(r"^\w*(?:Error|Exception)\b.*$", printed, re.M))
    found = {"troubles": dict(troubles), "server": seen, "complaints": dict(complaints)}
    most = max(stage["mb"] for stage in seen.values())
    print(json.dumps({"sessions": options.sessions, "most_mb": most, **found, "log": str(log)}, indent=2))
    if options.sessions <= SHORT["sessions"] and most > MOST_MB:
        return 1
    return 1 if troubles or complaints else 0


async def _stay(
    port: int, app: psutil.Process, options: argparse.Namespace
) -> tuple[dict[str, dict[str, int]], collections.Counter[str]]:
    """What was seen of the server at each stage, and what went wrong."""
    seen: dict[str, dict[str, int]] = {}
    first = House(port)
    for number in range(2 * len(PAGES)):
        await first.enter(number)
    await first.leave()
    await asyncio.sleep(20)  # what is imported in the background
    seen["warm"] = looked_at(app)
    house = House(port)
    await asyncio.gather(*(house.enter(number) for number in range(options.sessions)))
    seen["full"] = looked_at(app)
    await house.browse(options.reruns, options.seconds)
    seen["after the runs"] = looked_at(app) | {"inside": len(house.inside)}
    await house.leave()
    await asyncio.sleep(5)
    seen["left"] = looked_at(app)
    await asyncio.sleep(KEPT_S + TIDIED_S)
    seen["forgotten"] = looked_at(app)
    if options.short:
        return seen, first.troubles + house.troubles
    last = House(port)
    await last.enter(0)
    await last.leave()
    await asyncio.sleep(TIDIED_S)
    seen["one more visitor"] = looked_at(app)
    return seen, first.troubles + house.troubles + last.troubles


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
