"""Is the Gallery quick with 50,000 trials from 40 machines? Server time of its first chart and of a filter change.

    python -m tests.benchmarks.gallery_scale [--trials 50000] [--machines 40] [--rounds 20]

Server time: from asking over the websocket to the end of the script run, without a browser. First visit: nothing was
read since the server started. Then each visitor is new, each filter one that nobody chose before, and a row is added
before a visit, as while somebody measures. Memory: resident, of the server's process. The store is made up (see
`made_up`) and compacted; `--loose` leaves a part of it in files of one row.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from core.jobs.queue import Queue
from core.results.parquet import to_table
from core.results.store import Store, compact
from tests.benchmarks import made_up
from tests.benchmarks.sessions import Session, server
from tests.rows import run

PAGE = "gallery"


def fill(store: Store, trials: int, machines: int, loose: int) -> int:
    """Rows that the store has now: made up and compacted, and some in files of their own."""
    count = 0
    for table in made_up.tables(trials, machines):
        store.add_all(table)
        count += table.num_rows
    compact(store.folder)
    for number in range(loose):
        store.add_all(to_table(run(run_id=f"{number:012x}")[:1]))
    return count + loose


def memory_bytes() -> int:
    """Resident memory of the server that this process started."""
    servers = [child for child in psutil.Process().children() if "streamlit" in " ".join(child.cmdline())]
    return max(child.memory_info().rss for child in servers)


async def visit(port: int) -> tuple[float, Session]:
    """Seconds until a new visitor's first run of the page has ended, and the visitor."""
    session, begin = Session(port, page=PAGE), time.perf_counter()
    await session.open()
    return time.perf_counter() - begin, session


async def measure(port: int, store: Store, rounds: int) -> dict[str, list[float]]:
    """Seconds by what was done."""
    compare = Session(port)
    await compare.open()
    await compare.close()
    seconds, session = await visit(port)
    found: dict[str, list[float]] = {"first visit since the server started": [seconds]}
    await session.close()
    visits, opened, changes, added = [], [], [], []
    for number in range(rounds):
        seconds, session = await visit(port)
        visits.append(seconds)
        opened.append(await session.unfold("Filters"))
        label, options = choice(session, number)
        changes.append(await session.choose(label, options))
        if session.faults:
            raise RuntimeError(session.faults[0])
        await session.close()
    for number in range(max(1, rounds // 4)):
        store.add_all(to_table(run(run_id=f"ffff{number:08x}")[:1]))
        seconds, session = await visit(port)
        added.append(seconds)
        await session.close()
    found |= {"a new visitor": visits, "opening the filters": opened, "a filter change": changes}
    return {**found, "a visit after a row was added": added}


def choice(session: Session, number: int) -> tuple[str, Sequence[str]]:
    """A filter and an option of it that were not chosen yet, as far as there are any."""
    known = sorted((label, options) for label, (_, options) in session.choices.items() if len(options) > 1)
    label, options = known[number % len(known)]
    return label, [options[number // len(known) % len(options)]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=50_000)
    parser.add_argument("--machines", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--loose", type=int, default=0, help="rows in files of their own beside the compacted ones")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name) / "results")
        rows = fill(store, options.trials, options.machines, options.loose)
        with server(CROSSOVER_JOBS=f"{name}/jobs", CROSSOVER_RESULTS=str(store.folder)) as port:
            found = asyncio.run(measure(port, store, options.rounds))
            memory = memory_bytes()
        Queue(Path(name) / "jobs").worker_file.dismiss()
    print(f"{rows:,} trials from {options.machines} machines\n")
    print("| what | median | lowest | highest | times |\n|---|---|---|---|---|")
    for what, times in found.items():
        cells = " | ".join(f"{1e3 * of(times):,.0f} ms" for of in (statistics.median, min, max))
        print(f"| {what} | {cells} | {len(times)} |")
    print(f"\nmemory of the server: {memory / 2**20:,.0f} MiB")


if __name__ == "__main__":
    main()
