"""Does the app measure what a bare loop measures, while 20 sessions watch it? Ratios from interleaved runs.

    python -m tests.benchmarks.disturbance [--rounds 8] [--sessions 20]

One round: the bare loop of `bare_loop.py` alone, then the same training (doubling MLP of 8 layers on the disc, batch
100, one thread) measured by the app with that many sessions polling its page; in random order.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from core.answer.speedup import step_time
from core.files.project import PROJECT
from core.jobs import client
from core.jobs.queue import Queue
from core.question.experiment import Contender, Experiment
from core.question.presets import preset
from core.results.store import Store
from tests.benchmarks.sessions import Session, server

SECONDS = 5.0
EXPERIMENT = Experiment(point=preset("disc").point, contenders=(Contender(threads=1),), budget_s=60)


def bare_s() -> float:
    """Median step of the bare loop in a process of its own."""
    command = [sys.executable, str(PROJECT / "tests" / "benchmarks" / "bare_loop.py"), str(SECONDS)]
    environment = {**os.environ, **client.WAITING_POLICY}
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


async def app_s(queue: Queue, store: Store, port: int, sessions: int) -> tuple[float, int]:
    """Median step that the app reports, and the page runs that the sessions made meanwhile."""
    job = queue.submit(EXPERIMENT, store, fresh=True)
    client.ensure_worker(queue)
    visitors = [Session(port, query=f"job={job.id}") for _ in range(sessions)]
    for visitor in visitors:
        await visitor.open()
    while client.watch(queue, job.id).active:
        await asyncio.sleep(0.5)
    for visitor in visitors:
        await visitor.close()
    (trial,) = client.load_job_rows(queue, queue.job(job.id))
    return step_time(trial).median_s or float("nan"), sum(visitor.runs for visitor in visitors)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    queue, store = Queue(folder / "jobs"), Store(folder / "results")
    variables = {"CROSSOVER_JOBS": str(queue.folder), "CROSSOVER_RESULTS": str(store.folder)}
    rows = []
    with server(**variables) as port:
        await app_s(queue, store, port, 1)
        for _ in range(options.rounds):
            found: dict[str, float] = {}
            for side in random.sample(["bare", "app"], 2):
                time.sleep(1)  # the page's last runs end
                if side == "bare":
                    found["bare_us"] = 1e6 * bare_s()
                else:
                    seconds, found["page_runs"] = await app_s(queue, store, port, options.sessions)
                    found["app_us"] = 1e6 * seconds
            found["ratio"] = found["app_us"] / found["bare_us"]
            rows.append(found)
            print(json.dumps(found), file=sys.stderr)
    queue.worker_file.dismiss()
    ratios = [row["ratio"] for row in rows]
    summary = {"sessions": options.sessions, "rounds": len(rows), "median": statistics.median(ratios)}
    print(json.dumps({**summary, "lowest": min(ratios), "highest": max(ratios)}))


if __name__ == "__main__":
    asyncio.run(main())
