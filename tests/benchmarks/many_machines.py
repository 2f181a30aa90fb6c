"""Machines that share a store while some of them die: is a point lost, or measured twice? How quickly does a stop stop?

    python -m tests.benchmarks.many_machines [--machines 8] [--killed 3] [--late 0] [--leaving 0] [--times 10]
        [--points 24] [--on ray] [--s3] [--real] [--seed 16]

Machines are processes of this one, each with jobs, a lock and a copy of the store of its own; a machine is killed with
all its processes at a random moment; others come late, or leave early as at a keyboard's interrupt. With `--on ray`
they are nodes of a Ray cluster, asked as `sweep --on ray` asks them. A sweep is shared among them. What measures
follows a script, unless `--real` trains. A last question, for everybody, is taken away while all measure: from then on,
how long until all say that they have stopped; not through Ray.

Exit status 1 if a point is lost, or was measured to its end twice. It kills: better in a namespace of its own
(`unshare --pid --fork --mount-proc`).
"""

import argparse
import collections
import contextlib
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from core.jobs.shared import asking, board
from core.jobs.shared.board import Question
from core.jobs.shared.launching import Launcher, Nobody
from core.jobs.shared.on_ray import RayNodes
from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from core.remote import local_cache
from core.results import index
from core.results.store import Store
from tests import nodes, objects
from tests.integration.scripted_worker import UNTIL_RELEASED, sweep
from tests.nodes import Node

PATIENCE_S = 600.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--killed", type=int, default=3)
    parser.add_argument("--late", type=int, default=0)
    parser.add_argument("--leaving", type=int, default=0)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--points", type=int, default=24)
    parser.add_argument("--on", choices=("workers", "ray"), default="workers")
    parser.add_argument("--s3", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--seed", type=int, default=16)
    options = parser.parse_args()
    moments, wrong, stops = random.Random(options.seed), 0, []
    print("| time | seconds | points | lost | measured twice | killed |\n|---|---|---|---|---|---|", flush=True)
    for number in range(options.times):
        with tempfile.TemporaryDirectory() as folder, _address(Path(folder), s3=options.s3) as address:
            os.environ[local_cache.CACHES_VARIABLE] = f"{folder}/asker"
            began = time.monotonic()
            counts, stop_s = _once(Path(folder), address, options, moments)
            lost, twice = options.points - len(counts), sum(count > 1 for count in counts.values())
            wrong += lost + twice
            stops.append(stop_s)
            seconds = time.monotonic() - began
            print(f"| {number + 1} | {seconds:.0f} | {len(counts)} | {lost} | {twice} | {options.killed} |", flush=True)
    if known := [stop_s for stop_s in stops if stop_s is not None]:
        median_s, most_s = statistics.median(known), max(known)
        print(f"\nFrom taking a question away until all had stopped: {median_s:.1f} s, at most {most_s:.1f} s.")
    return 1 if wrong else 0


def _once(
    folder: Path, address: str, options: argparse.Namespace, moments: random.Random
) -> tuple[collections.Counter[int], float | None]:
    """One sweep while machines die: how often each size was measured to its end, and how long a stop took."""
    here, module = local_cache.resolve_store(address), "core" if options.real else nodes.MODULE
    question = Question(sweep=_sweep(options), spread="shared")
    with _machines(options, folder, address, module, question) as (start, launcher):
        running = [start(number) for number in range(options.machines - options.late)]
        asks = threading.Thread(target=_follow, args=(here, question, launcher), daemon=True)
        asks.start()
        for number in range(options.machines - options.late, options.machines):
            time.sleep(moments.uniform(0.0, 4.0))
            running.append(start(number))
        victims = moments.sample(running, options.killed + options.leaving)
        for place, victim in enumerate(victims):
            time.sleep(moments.uniform(1.0, 8.0))
            victim.kill() if place < options.killed else victim.leave()
        asks.join(PATIENCE_S)
        counts = _counts(here, question.sweep)
        return counts, _stop_s(here) if not options.real and options.on == "workers" else None


@contextlib.contextmanager
def _machines(
    options: argparse.Namespace, folder: Path, address: str, module: str, question: Question
) -> Iterator[tuple[Callable[[int], Any], Launcher]]:
    """What starts a machine of a number, and what has it work."""
    if options.on == "ray":
        with nodes.ray_cluster(folder) as start:
            command = ["worker", "--store", address, "--question", question.id]
            yield start, RayNodes("ray", command, module)
        return
    running: list[Node] = []

    def start(number: int) -> Node:
        running.append(Node(folder / f"machine{number}", address, module))
        return running[-1]

    with nodes.ended(running):
        yield start, Nobody()


def _follow(here: Path, question: Question, launcher: Launcher) -> None:
    with launcher:
        asking.follow(board.board_of(here), question, lambda _: None, launcher.keep)


def _counts(here: Path, asked: Sweep) -> collections.Counter[int]:
    index.list_files(here, now=True)
    rows = Store(here).trials(experiment_id=[asked.experiment(point).id for point in asked.points])
    first = str(asked.contenders[0])
    return collections.Counter(row.hidden_size for row in rows if row.outcome == "timed" and row.contender == first)


def _stop_s(here: Path) -> float:
    """Seconds from the end of a question on which all work until all say that they have stopped."""
    at = board.board_of(here)
    question = Question(sweep=sweep(UNTIL_RELEASED, sizes=(8, 16)), spread="everywhere")
    at.ask(question)
    while not all(member.state == "measuring" and member.message for member in at.members()):
        time.sleep(0.1)
    working = {member.host for member in at.members()}
    began = time.monotonic()
    at.close(question.id)
    while at.ends(question.id).keys() < working:
        time.sleep(0.05)
    return time.monotonic() - began


def _sweep(options: argparse.Namespace) -> Sweep:
    sizes = tuple(range(8, 8 + options.points))
    if not options.real:
        return sweep(sizes=sizes)
    return Sweep(
        point=Point(dataset="disc", model="mlp", depth=1),
        axes=(Axis(name="hidden_size", values=sizes),),
        contenders=(Contender(threads=1), Contender(threads=2)),
        pairs=2,
    )


@contextlib.contextmanager
def _address(folder: Path, *, s3: bool) -> Iterator[str]:
    if not s3:
        yield str(folder / "store")
        return
    os.environ.update(objects.KEYS)
    with objects.served() as server:
        yield server.address()


if __name__ == "__main__":
    sys.exit(main())
