"""How long does "What would help?" take on the first tutorial's training, from pressing the button to the answer?

    python -m tests.benchmarks.what_would_help [--depth 4 8] [--json]

For each depth the plain steps are measured first, on one thread and on as many as are best. Then the page's own
question is asked of either row, twice: with nothing compiled before, and with the code of the first time on disk.
Exit status 1 if one takes longer than is promised.
"""

import argparse
import dataclasses
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from core.answer.remedies import lane_remedies
from core.jobs import client
from core.jobs.machine import Machine
from core.jobs.queue import Queue
from core.measure.execution import COMPILED_VARIABLE
from core.question.experiment import Contender, Experiment
from core.question.presets import preset
from core.results.schema import Trial
from core.results.store import Store
from pages.shared.run_view import make_remedy_questions

PROMISED_S = 90.0


def measured(queue: Queue, store: Store, asked: Experiment) -> tuple[float, list[Trial]]:
    """Seconds from asking to the end of the job, and its rows."""
    begin = time.perf_counter()
    job = queue.submit(asked, store, fresh=True)
    client.ensure_worker(queue)
    while client.watch(queue, job.id).active:
        time.sleep(0.1)
    return time.perf_counter() - begin, client.load_job_rows(queue, queue.job(job.id))


def machine_of(queue: Queue) -> Machine:
    """This machine as the measuring process sees it, once it does."""
    client.ensure_worker(queue)
    while (found := client.load_machine(queue)) is None:
        time.sleep(0.1)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--depth", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    os.environ[COMPILED_VARIABLE] = str(folder / "compiled")
    queue, store = Queue(folder / "jobs"), Store(folder / "results")
    machine, found = machine_of(queue), []
    for depth in options.depth:
        point = dataclasses.replace(preset("disc").point, depth=depth)
        for contender in (Contender(threads=1), Contender()):
            _, (plain,) = measured(queue, store, Experiment(point=point, contenders=(contender,), pairs=10))
            asked = make_remedy_questions(plain, machine)[0]
            for code in ("nothing compiled", "compiled before"):
                seconds, rows = measured(queue, store, asked)
                (told,) = lane_remedies(rows) or (None,)
                found.append(
                    {
                        "depth": depth,
                        "asked of": asked.contenders[0].title,
                        "code": code,
                        "seconds": round(seconds, 1),
                        "lanes": [row.contender for row in rows],
                        "told": told.headline if told else "nothing",
                    }
                )
                if not options.json:
                    print(*(str(value) for value in found[-1].values()), sep=" | ", flush=True)
    queue.worker_file.dismiss()
    if options.json:
        print(json.dumps(found, indent=2))
    return int(max(line["seconds"] for line in found) > PROMISED_S)


if __name__ == "__main__":
    sys.exit(main())
