"""One machine measured through Ray and by hand, in turns: is a step as long, on the same threads and processors?

    python -m tests.benchmarks.ray_by_hand [--pairs 10] [--threads 1]

A Ray cluster of one node on this machine; each turn asks the same point once through it and once of the machine's own
queue, in stores of their own, so that neither is answered from the other. Both have the same folder of jobs, and the
order changes from turn to turn. The machine should have nothing else to do.
"""

import argparse
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path

from core.answer.statistics import median_interval
from core.jobs import client
from core.jobs.job import RemoteTarget
from core.jobs.queue import Queue
from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from core.results.schema import Trial
from core.results.store import Store
from tests import nodes

SAME = ("threads", "cores_usable", "omp_wait_policy", "device_name", "cpu_name", "torch_version")
"""Columns that must be alike."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    asked = Sweep(
        point=Point(dataset="signal", samples=20_000, model="mlp", depth=2, batch_size=256),
        axes=(Axis(name="hidden_size", values=(256,)),),
        contenders=(Contender(threads=options.threads),),
        pairs=20,
    )
    with tempfile.TemporaryDirectory() as folder:
        return _compare(Path(folder), asked, options.pairs)


def _compare(folder: Path, asked: Sweep, pairs: int) -> int:
    with nodes.ray_cluster(folder) as add:
        add("machine")
        os.environ.update(nodes.surroundings(folder / "machine"))  # of which this process and the driver are part too
        return _take_turns(folder, asked, pairs)


def _take_turns(folder: Path, asked: Sweep, pairs: int) -> int:
    ratios = []
    for number in range(pairs):
        ways = [_through_ray, _by_hand][:: 1 if number % 2 else -1]
        rows = {way.__name__: way(Store(folder / f"{number}{way.__name__}"), asked) for way in ways}
        ray_row, own_row = rows["_through_ray"], rows["_by_hand"]
        different = [name for name in SAME if getattr(ray_row, name) != getattr(own_row, name)]
        if different:
            print(f"These differ: {', '.join(different)}")
            return 1
        ratio = statistics.median(ray_row.step_s) / statistics.median(own_row.step_s)
        ratios.append(ratio)
        print(f"turn {number + 1}: {ratio:.3f}", flush=True)
    interval = median_interval([math.log(ratio) for ratio in ratios])
    shown = f" ({math.exp(interval[0]):.3f} to {math.exp(interval[1]):.3f})" if interval else ""
    print(f"Time of a step through Ray over that by hand: {statistics.median(ratios):.3f}{shown}, {len(ratios)} turns.")
    print(f"Alike in every turn: {', '.join(SAME)}.")
    return 0


def _through_ray(store: Store, asked: Sweep) -> Trial:
    queue = Queue()
    job = queue.submit(asked, store, elsewhere=RemoteTarget(on="ray"))
    [row] = client.load_job_rows(queue, client.follow_job(queue, job.id, lambda _: None))
    return row


def _by_hand(store: Store, asked: Sweep) -> Trial:
    [row] = client.run(asked, store, Queue())
    return row


if __name__ == "__main__":
    sys.exit(main())
