"""The machines of a Ray cluster of which some die: is a point lost, or measured twice?

    python -m tests.benchmarks.many_machines [--machines 8] [--killed 3] [--late 0] [--times 10] [--points 24] [--real]
        [--seed 16]

Machines are nodes of a Ray cluster on this one, each with jobs and a lock of its own; a machine is killed with all its
processes at a random moment, others come late. They share the points of a sweep, asked as `sweep --on ray` asks them.
What measures follows a script, unless `--real` trains.

Exit status 1 if a point is lost, or was measured to its end twice. It kills: better in a namespace of its own
(`unshare --pid --fork --mount-proc`).
"""

import argparse
import collections
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from core.jobs import client
from core.jobs.job import Job, RemoteTarget
from core.jobs.queue import Queue
from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from core.results.store import Store
from tests import nodes
from tests.integration import scripted_node
from tests.integration.scripted_worker import sweep

PATIENCE_S = 600.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--killed", type=int, default=3)
    parser.add_argument("--late", type=int, default=0)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--points", type=int, default=24)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--seed", type=int, default=16)
    options = parser.parse_args()
    if not options.real:
        client.DRIVER = scripted_node.DRIVER
    moments, wrong = random.Random(options.seed), 0
    print("| time | seconds | points | lost | measured twice | killed |\n|---|---|---|---|---|---|", flush=True)
    for number in range(options.times):
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            counts, killed = _measure_while_machines_die(Path(folder), options, moments)
            lost, twice = options.points - len(counts), sum(count > 1 for count in counts.values())
            wrong += lost + twice
            seconds = time.monotonic() - began
            print(f"| {number + 1} | {seconds:.0f} | {len(counts)} | {lost} | {twice} | {killed} |", flush=True)
    return 1 if wrong else 0


def _measure_while_machines_die(
    folder: Path, options: argparse.Namespace, moments: random.Random
) -> tuple[collections.Counter[int], int]:
    """How often each size was measured to its end, and how many machines were killed before that was over."""
    asked = _make_sweep(options)
    with nodes.ray_cluster(folder) as add:
        names = [f"machine{number}" for number in range(options.machines)]
        for name in names[: options.machines - options.late]:
            add(name)
        queue = Queue(folder / "asker" / "jobs")
        job = queue.submit(asked, Store(folder / "store"), elsewhere=RemoteTarget(on="ray", spread="shared"))
        ended: list[Job] = []
        follows = threading.Thread(target=lambda: ended.append(client.follow_job(queue, job.id, lambda _: None)))
        follows.start()
        _await_first_rows(folder)
        for name in names[options.machines - options.late :]:
            add(name)
        killed = 0
        for name in moments.sample(names, options.killed):
            time.sleep(moments.uniform(0.2, 2.0))
            killed += follows.is_alive()
            nodes.kill_machine(folder / name)
        follows.join(PATIENCE_S)
        return _count(folder, asked), killed


def _await_first_rows(folder: Path) -> None:
    """Machines take a while to load; a kill before that meets no measurement."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and not Store(folder / "store").trials():
        time.sleep(0.1)


def _count(folder: Path, asked: Sweep) -> collections.Counter[int]:
    rows = Store(folder / "store").trials(experiment_id=[asked.experiment(point).id for point in asked.points])
    first = str(asked.contenders[0])
    return collections.Counter(row.hidden_size for row in rows if row.outcome == "timed" and row.contender == first)


def _make_sweep(options: argparse.Namespace) -> Sweep:
    sizes = tuple(range(8, 8 + options.points))
    if not options.real:
        return sweep(sizes=sizes)
    return Sweep(
        point=Point(dataset="disc", model="mlp", depth=1),
        axes=(Axis(name="hidden_size", values=sizes),),
        contenders=(Contender(threads=1), Contender(threads=2)),
        pairs=2,
    )


if __name__ == "__main__":
    sys.exit(main())
