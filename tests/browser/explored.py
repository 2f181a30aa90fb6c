"""A server whose Explore page is in every state that visitors meet, without a measurement: rows and jobs are made."""

import contextlib
import dataclasses
from collections.abc import Iterator
from urllib.parse import urlencode

from core.answer.study import studies
from core.jobs import process
from core.jobs.job import Job
from core.jobs.machine import Machine, Serving
from core.progress import ContenderProgress, Progress
from core.question.experiment import Contender, Experiment, Point
from core.results.environment import DeviceInfo, Environment
from core.results.parquet import to_table
from pages.explore import settings
from pages.shared import links
from tests import rows
from tests.browser.conftest import Server

THREADS = tuple(map(Contender.parse, ("cpu@1", "cpu")))
OPENING = {**links.make_brief_link(settings.FIRST), "devices": ["cpu@1", "cpu"]}
RECURRENT = {"dataset": "signal", "model": "lstm", "hidden_size": "128", "card": "v100"}
TOO_LARGE = {"dataset": "digits", "model": "mlp", "samples": "100", "batch_size": "5000"}

STATES = {
    "empty": urlencode({"dataset": "digits", "model": "linear", "card": ""}),
    "dragging": urlencode({**OPENING, "card": "v100"}, doseq=True),
    "measuring": "job={job}",
    "decided": "run={decided}&card=v100",
    "conditional": "run={conditional}",
    "inconclusive": "run={inconclusive}",
    "predicted": urlencode({"dataset": "digits", "model": "cnn", "card": "h100", "accuracy": "true"}),
    "abstaining": urlencode(RECURRENT),
    "refused": urlencode(TOO_LARGE),
    "range": "study={range}",
}
"""State → parameters of the address that opens Explore in it; braces name what `fill` made."""


def fill(server: Server) -> dict[str, str]:
    """Give a server the rows and the machine of the states; return the names of the results."""
    row = rows.trial()
    here = Environment(**{field.name: getattr(row, field.name) for field in dataclasses.fields(Environment)})
    cpu = DeviceInfo(device="cpu", kind="cpu", name="Test CPU", memory_bytes=16 * 2**30)
    server.queue.folder.mkdir()
    server.queue.worker_file.take(Serving(process=process.current_process(), ready=True))
    hint = "There is no NVIDIA or AMD driver."
    server.queue.worker_file.report(
        Machine(environment=here, devices=(cpu,), startup_s={"cpu": 0.5}, hint=hint), process.current_process()
    )
    depths = [row for depth in range(5, 13) for row in _measure_depth(depth)]
    gpu = {"cpu": 4.2e-4, "cuda:0": 3e-4}
    busy = [_disturb(row) for row in rows.run(gpu, run_id="b" * 12)]
    close = rows.run({"cpu": 3e-4, "cuda:0": 2.8e-4}, run_id="c" * 12, point=Point(depth=3), jitter=0.5, pairs=6)
    server.store.add_all(to_table([*depths, *busy, *close]))
    (crossing,) = studies(depths, axis="depth")
    return {"decided": f"{10:012x}", "conditional": "b" * 12, "inconclusive": "c" * 12, "range": crossing.id}


@contextlib.contextmanager
def measuring(server: Server) -> Iterator[Job]:
    """A run of the opening question that is in the middle of its training."""
    asked = Experiment(point=dataclasses.replace(settings.FIRST, depth=11), contenders=THREADS)
    server.queue.submit(asked, server.store)
    job = server.queue.claim(process.current_process())
    done = [
        ContenderProgress(
            contender=name, steps=steps, total_steps=1000, step_s=step_s, threads=threads,
            loss_steps=(100, 200, 300), losses=(0.6, 0.4, 0.3), loss_seconds=(0.8, 1.6, 2.4),
        )
        for name, steps, step_s, threads in (("cpu@1", 400, 8e-3, 1), ("cpu", 300, 4.4e-3, 4))
    ]  # fmt: skip
    progress = Progress(phase="training", elapsed_s=6.0, budget_s=60.0, pairs=4, contenders=tuple(done))
    running = dataclasses.replace(job, progress=progress)
    server.queue.report(running)
    yield running
    server.queue.end(dataclasses.replace(running, state="stopped"))


def _measure_depth(depth: int):
    """Both thread counts of the opening question at a depth: threads cost a fixed time, one computes four times."""
    work = 8e-6 * 2.4**depth / 10
    steps = {"cpu@1": 2e-5 * depth + work, "cpu": 6e-5 * depth + work / 3.2}
    return rows.run(steps, run_id=f"{depth:012x}", point=dataclasses.replace(settings.FIRST, depth=depth), jitter=0.02)


def _disturb(row):
    return rows.beside_programs(row, waiting=0.9 if row.device_kind == "cpu" else 0.0)
